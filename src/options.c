#include "src/options.h"

#include "base/size.h"
#include "base/status.h"
#include "base/text/nearest.h"
#include "base/text/words.h"

#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_kind { FLAG, TEXT, CHOICE, COUNT, INDEX, SIZE, SIZE_OR_0, REAL } option_kind;

typedef struct option_row {
    const char *name;
    int letter;
    option_kind kind;
    size_t field;
    uint64_t operations;
    const char *metavar, *help;
} option_row;

static const option_row rows[] = {
#define GM_OPTION(field, name, letter, kind, start, operations, metavar, help) \
    {name, letter, kind, offsetof(gm_options, field), operations, metavar, help},
#include "src/options.def"
#undef GM_OPTION
};
enum { ROWS = GM_OPTIONS, LONG_BASE = 256 };
_Static_assert(GM_OPERATIONS <= 32, "option_row.operations has a bit for each operation, below those of the groups");

static const gm_options defaults = {
    .operation = GM_OPERATIONS,
#define GM_OPTION(field, name, letter, kind, start, operations, metavar, help) .field = start,
#include "src/options.def"
#undef GM_OPTION
};

static const struct {
    const char *name;
    unsigned groups;
    int least, most;
    const char *arguments, *help;
} operations[GM_OPERATIONS] = {
#define GM_OPERATION(id, name, operation, device, groups, least, most, arguments, help) \
    {name, groups, least, most, arguments, help},
#include "src/operations.def"
#undef GM_OPERATION
};

#define GM_OPERATION(id, name, operation, device, groups, least, most, arguments, help) \
    _Static_assert((most) <= GM_WORDS_MOST, "gm_options.operands holds what " name " takes");
#include "src/operations.def"
#undef GM_OPERATION

static int takes(int operation, const option_row *row)
{
    return (row->operations >> operation & 1) || (row->operations >> 32 & operations[operation].groups);
}

/* The characters of the first form of the arguments. */
static int usual_form(int operation)
{
    return (int)strcspn(operations[operation].arguments, "\n");
}

const char *gm_operation_name(int operation)
{
    return operation < GM_OPERATIONS ? operations[operation].name : "";
}

/* Is value one of the words of "a|b|c"? */
static int is_choice(const char *words, const char *value)
{
    char word[32];
    for (const char *list = words; list;)
        if (gm_word_next(&list, '|', word, sizeof word) && strcmp(word, value) == 0)
            return 1;
    return 0;
}

/* Digits of a number that no 64-bit integer holds need another word than those that are no number. */
static const char *expect_integer(const char *value, const char *usual)
{
    const char *digits = value + (*value == '+');
    int is_large = digits[strspn(digits, "0123456789")] == '\0' && strlen(digits) >= strlen("9223372036854775807");
    return is_large ? "an integer of at most 9223372036854775807" : usual;
}

static int store(const option_row *row, const char *value, gm_options *options)
{
    void *field = (char *)options + row->field;
    int bad = 0;
    const char *expected = "";
    if (options->given[row - rows])
        return gm_fail(GM_EUSAGE, "--%s is given twice, expected once", row->name);
    switch (row->kind) {
    case FLAG:
        *(int *)field = 1;
        break;
    case TEXT:
        *(const char **)field = value;
        bad = !*value;
        expected = "a value that is not empty";
        break;
    case CHOICE:
        *(const char **)field = value;
        bad = !is_choice(row->metavar, value);
        expected = row->metavar;
        break;
    case COUNT:
        bad = gm_integer_parse(value, 1, INT64_MAX, field);
        expected = expect_integer(value, "a positive integer");
        break;
    case INDEX:
        bad = gm_integer_parse(value, 0, INT64_MAX, field);
        expected = expect_integer(value, "a non-negative integer");
        break;
    case SIZE:
        bad = gm_size_parse(value, field) || *(int64_t *)field == 0;
        expected = "a size such as 512M, 1.5G or 4GiB, of at most " GM_SIZE_MOST_TEXT;
        break;
    case SIZE_OR_0:
        bad = gm_size_parse(value, field);
        expected = "a size such as 512K or 4MiB, of at most " GM_SIZE_MOST_TEXT ", or 0";
        break;
    case REAL:
        bad = gm_real_parse(value, field);
        expected = "a finite number that float64 holds";
        break;
    }
    if (bad)
        return gm_fail(GM_EUSAGE, "--%s '%s': expected %s", row->name, value, expected);
    options->given[row - rows] = 1;
    return GM_OK;
}

/* Fails with "no operation 'matmull' (did you mean 'matmul'?); ...". */
static int fail_unknown(const char *what, const char *word, const char *nearest)
{
    return gm_fail(GM_EUSAGE, "%s '%s'%s%s%s; gpumem-run --help lists them", what, word,
                   nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
}

static int find_operation(const char *word, gm_options *options)
{
    for (int i = 0; i < GM_OPERATIONS; i++)
        if (strcmp(word, operations[i].name) == 0) {
            options->operation = i;
            return GM_OK;
        }
    return fail_unknown("no operation", word, gm_nearest(word, gm_operation_name, GM_OPERATIONS));
}

static const char *option_name(int index)
{
    return rows[index].name;
}

/* word: as in "--sise=3". */
static int fail_option(const char *word)
{
    char name[64], dashed[64];
    size_t dashes = strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + dashes, "="), word + dashes);
    const char *nearest = gm_nearest(name, option_name, ROWS);
    snprintf(dashed, sizeof dashed, "--%s", nearest ? nearest : "");
    return fail_unknown("unknown or ambiguous option", word, nearest ? dashed : NULL);
}

/* The arguments of getopt_long: its table and the string of letters. */
static void getopt_tables(struct option *longs, char *letters)
{
    *letters++ = ':';
    for (int i = 0; i < ROWS; i++) {
        int argument = rows[i].kind == FLAG ? no_argument : required_argument;
        longs[i] = (struct option){rows[i].name, argument, NULL, LONG_BASE + i};
        if (rows[i].letter) {
            *letters++ = (char)rows[i].letter;
            if (argument)
                *letters++ = ':';
        }
    }
    longs[ROWS] = (struct option){0};
    *letters = '\0';
}

/* Is there a file that --force may be about? Operations with an output know for themselves. */
static int may_replace(const gm_options *o)
{
    return operations[o->operation].groups & GM_GROUP_OUTPUT || o->report || o->json || o->csv || o->plot || o->clean;
}

static int check_fit(const gm_options *options)
{
    int op = options->operation;
    for (int i = 0; i < ROWS; i++)
        if (options->given[i] && !takes(op, &rows[i]))
            return gm_fail(GM_EUSAGE, "--%s is not an option of %s", rows[i].name, operations[op].name);
    if (options->quiet && options->verbose)
        return gm_fail(GM_EUSAGE, "--quiet and --verbose exclude each other, expected one of them");
    if (options->force && !may_replace(options))
        return gm_fail(GM_EUSAGE, "--force: %s writes no file here, expected --%s as well", operations[op].name,
                       options->leftovers ? "clean" : "report");
    if (options->threads > GM_THREADS_MOST)
        return gm_fail(GM_EUSAGE, "--threads %lld: expected at most %d", (long long)options->threads, GM_THREADS_MOST);
    if (options->model && !options->plan)
        return gm_fail(GM_EUSAGE, "--model describes a machine for --plan, expected --plan as well");
    if (options->operand_count < operations[op].least)
        return gm_fail(GM_EUSAGE, "%s needs %.*s; gpumem-run %s --help explains it", operations[op].name,
                       usual_form(op), operations[op].arguments, operations[op].name);
    return GM_OK;
}

static int take_word(const char *word, gm_options *options)
{
    if (options->operation == GM_OPERATIONS)
        return find_operation(word, options);
    if (options->operand_count == operations[options->operation].most)
        return gm_fail(GM_EUSAGE, "%s takes %.*s; '%s' is one too many", operations[options->operation].name,
                       usual_form(options->operation), operations[options->operation].arguments, word);
    options->operands[options->operand_count++] = word;
    return GM_OK;
}

int gm_options_parse(int argc, char **argv, gm_options *options)
{
    struct option longs[ROWS + 1];
    char letters[2 * ROWS + 2];
    getopt_tables(longs, letters);
    *options = defaults;
    unsetenv("POSIXLY_CORRECT"); /* by which getopt_long() takes all words after the operation for operands */
    opterr = 0;
    optind = 0; /* start anew, as GNU and musl have it */
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        const char *word = argv[optind - 1];
        if (c == '?' && optopt && optopt < LONG_BASE)
            return gm_fail(GM_EUSAGE, "unknown option '-%c'; gpumem-run --help lists them", optopt);
        if (c == '?' && optopt)
            return gm_fail(GM_EUSAGE, "'%s': this option takes no value", word);
        if (c == '?')
            return fail_option(word);
        if (c == ':')
            return gm_fail(GM_EUSAGE, "'%s' needs a value", word);
        int i = c - LONG_BASE;
        for (int j = 0; c < LONG_BASE && j < ROWS; j++)
            if (rows[j].letter == c)
                i = j;
        int status = store(&rows[i], optarg, options);
        if (status)
            return status;
    }
    for (; optind < argc; optind++) {
        int status = take_word(argv[optind], options);
        if (status)
            return status;
    }
    if (options->help || options->version)
        return GM_OK;
    if (options->operation == GM_OPERATIONS)
        return gm_fail(GM_EUSAGE, "an operation is needed; gpumem-run --help lists them");
    return check_fit(options);
}

int gm_options_given(const gm_options *options, const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return options->given[i];
    return 0;
}

static void help_on_options(FILE *out, int operation)
{
    for (int i = 0; i < ROWS; i++) {
        if (operation < GM_OPERATIONS && !takes(operation, &rows[i]))
            continue;
        char left[64], letter[8] = "    ";
        if (rows[i].letter)
            snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, rows[i].name, rows[i].metavar ? " " : "",
                 rows[i].metavar ? rows[i].metavar : "");
        fprintf(out, "  %-42s %s\n", left, rows[i].help);
    }
}

static void help_on_forms(FILE *out, int operation)
{
    const char *form = operations[operation].arguments, *left = "Usage:";
    for (int length; *form; form += length + (form[length] == '\n'), left = "      ") {
        length = (int)strcspn(form, "\n");
        fprintf(out, "%s gpumem-run %s [OPTION]... %.*s\n", left, operations[operation].name, length, form);
    }
}

void gm_options_help(FILE *out, int operation)
{
    if (operation < GM_OPERATIONS) {
        help_on_forms(out, operation);
        fprintf(out, "%s.\n\nOptions:\n", operations[operation].help);
        help_on_options(out, operation);
        return;
    }
    fprintf(out,
            "Usage: gpumem-run OPERATION [OPTION]... FILE[:DATASET[SELECTION]]...\n"
            "Operations on matrices and image stacks in HDF5 files of any size, on the GPUs or CPUs of a cluster:\n"
            "under mpirun, under srun, or alone.\n\nOperations:\n");
    for (int i = 0; i < GM_OPERATIONS; i++)
        fprintf(out, "  %-10s %-22.*s %s\n", operations[i].name, usual_form(i), operations[i].arguments,
                operations[i].help);
    fprintf(out, "\nOptions (gpumem-run OPERATION --help: those of one operation):\n");
    help_on_options(out, GM_OPERATIONS);
    fprintf(out, "\nExit codes:\n");
    for (int code = 0; code < 128; code++)
        if (gm_status_meaning(code))
            fprintf(out, "  %-3d %s\n", code, gm_status_meaning(code));
}

void gm_options_each(const gm_options *options, gm_option_visit *visit, void *context)
{
    for (int i = 0; i < ROWS; i++) {
        if (!options->given[i])
            continue;
        const void *field = (const char *)options + rows[i].field;
        char text[64] = "true";
        const char *value = text;
        if (rows[i].kind == TEXT || rows[i].kind == CHOICE)
            value = *(const char *const *)field;
        else if (rows[i].kind == REAL)
            snprintf(text, sizeof text, "%.17g", *(const double *)field);
        else if (rows[i].kind != FLAG)
            snprintf(text, sizeof text, "%lld", *(const long long *)field);
        visit(context, rows[i].name, value);
    }
}
