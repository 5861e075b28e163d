/* bench - measures the devices: a table of tests (benches.def), on all ranks. Or compares the results of two runs, or
 * draws those of one. */
#include "base/log.h"
#include "io/describe/describe.h"
#include "io/write/output.h"
#include "src/bench/bench.h"
#include "src/operation.h"

#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *name;
    gm_bench_test *run;
    const char *argument, *experiments, *help;
} tests[] = {
#define GM_BENCH(name, function, argument, experiments, help) {name, function, argument, experiments, help},
#include "src/bench/benches.def"
#undef GM_BENCH
};
enum { TESTS = sizeof tests / sizeof tests[0] };

typedef struct choice {
    int wanted;
    const char *argument;
} choice;

/* The text that an experiment is from, by the letter of its number. */
static const char *text_of(char letter)
{
    static const struct {
        char letter;
        const char *text;
    } texts[] = {{'A', "article A"}, {'B', "lecture B"}, {'C', "article C"}, {'D', "article D"}, {'E', "tutorial E"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].letter == letter)
            return texts[i].text;
    return "text";
}

/* "article A, section 5; lecture B, section 4 (A5 B4)" of the experiments "A5 B4". */
static void print_origin(const char *experiments)
{
    for (const char *at = experiments; *at; at += strcspn(at, " "), at += strspn(at, " "))
        printf("%s%s, section %.*s", at == experiments ? "; from " : "; ", text_of(*at), (int)strcspn(at + 1, " "),
               at + 1);
    printf(*experiments ? " (%s)\n" : "\n", experiments);
}

/* The first option given that only measurements take; "": none. */
static const char *option_of_measurements(const gm_options *o)
{
    return o->json                         ? "json"
           : o->csv                        ? "csv"
           : o->shapes                     ? "shapes"
           : o->output                     ? "output"
           : gm_options_given(o, "kernel") ? "kernel"
                                           : "";
}

/* Refuses what bench compare, bench plot and bench --list do not take. option: the first such option; "": none. */
static int check_none(const char *what, const char *option)
{
    return *option ? gm_fail(GM_EUSAGE, "bench %s takes no --%s", what, option) : GM_OK;
}

static int list(const gm_options *o)
{
    if (o->operand_count > 0)
        return gm_fail(GM_EUSAGE, "bench --list takes no '%s': it lists all tests", o->operands[0]);
    int status = check_none("--list", o->plot ? "plot" : option_of_measurements(o));
    if (status)
        return status;
    for (int i = 0; i < TESTS; i++) {
        printf("%-9s %-14s  %s", tests[i].name, tests[i].argument ? tests[i].argument : "", tests[i].help);
        print_origin(tests[i].experiments);
    }
    printf("%-9s %-14s  %s", "info", "(operation)", "the devices of this machine, and their limits");
    print_origin("B4 E1");
    return gm_stdout_flush();
}

/* Is the argument of a test a file that it reads? */
static int takes_file(int test)
{
    return tests[test].argument && strncmp(tests[test].argument, "FILE", 4) == 0;
}

static int find(const char *name)
{
    for (int i = 0; i < TESTS; i++)
        if (strcmp(name, tests[i].name) == 0)
            return i;
    return -1;
}

/* Does a test multiply, by the kernels that --kernel names? */
static int multiplies(int test)
{
    return strcmp(tests[test].name, "matmul") == 0 ||
           (tests[test].argument && strcmp(tests[test].argument, "matmul") == 0);
}

/* The tests that are named; if none is, all that take no argument. */
static int choose(const gm_options *o, choice choices[TESTS])
{
    int count = 0, files = 0, products = 0;
    for (int i = 0; i < TESTS; i++)
        choices[i] = (choice){.wanted = o->operand_count == 0 && !tests[i].argument};
    for (int w = 0; w < o->operand_count; w++) {
        int i = find(o->operands[w]);
        if (i < 0)
            return gm_fail(GM_EUSAGE, "unknown test '%s'; gpumem-run bench --list shows all tests", o->operands[w]);
        choices[i].wanted = 1;
        if (!tests[i].argument)
            continue;
        if (++w == o->operand_count)
            return gm_fail(GM_EUSAGE,
                           takes_file(i) ? "bench %s needs a %s argument" : "bench %s needs an operation: %s",
                           tests[i].name, tests[i].argument);
        choices[i].argument = o->operands[w];
        if (!takes_file(i) && strcmp(o->operands[w], tests[i].argument) != 0)
            return gm_fail(GM_EUSAGE, "bench %s: unknown operation '%s', expected %s", tests[i].name, o->operands[w],
                           tests[i].argument);
    }
    for (int i = 0; i < TESTS; i++) {
        count += choices[i].wanted;
        files += choices[i].argument && takes_file(i);
        products += choices[i].wanted && multiplies(i);
    }
    if (gm_options_given(o, "kernel") && products == 0)
        return gm_fail(GM_EUSAGE, "--kernel '%s': only bench matmul and bench scaling matmul have kernels of products",
                       o->kernel);
    if (o->output && files == 0)
        return gm_fail(GM_EUSAGE, "--output '%s': only tests with a FILE argument write files", o->output);
    return o->shapes && count > 1
               ? gm_fail(GM_EUSAGE, "--shapes '%s' needs exactly one test: each test has shapes of its own", o->shapes)
               : GM_OK;
}

/* The files of the tests must not be replaced by the results. */
static int check_files(gm_bench *bench, const choice choices[TESTS])
{
    gm_file_list sources = {0};
    gm_dataset input;
    int status = GM_OK, at_stake = gm_text_is_at_stake(&bench->json) || gm_text_is_at_stake(&bench->csv) ||
                                   gm_text_is_at_stake(&bench->plot) || gm_text_is_at_stake(&bench->job->report.file);
    for (int i = 0; i < TESTS && !status && at_stake; i++) {
        if (!choices[i].wanted || !takes_file(i))
            continue;
        status = gm_describe(choices[i].argument, NULL, &input);
        if (!status)
            status = gm_output_sources(&input, 1, &sources);
    }
    if (!status)
        status = gm_bench_files_check(bench, &sources);
    gm_file_list_free(&sources);
    return status;
}

static int run_test_all(gm_bench *bench, int test, const char *argument)
{
    bench->test = tests[test].name;
    bench->argument = argument;
    return gm_bench_meet_all(bench, GM_BENCH_ENDS, tests[test].run(bench));
}

static int measure_all(gm_bench *bench, const choice choices[TESTS])
{
    gm_job *job = bench->job;
    if (job->ranks->rank == 0)
        printf("%s: %s, %s\n", job->ranks->host, job->info.kind, job->info.name);
    int status = gm_bench_open_all(job, bench);
    if (!status && gm_options_given(job->options, "kernel"))
        status = gm_job_agree_all(job, gm_job_check_kernel(job, gm_kernel_find(job->options->kernel)));
    for (int i = 0; i < TESTS && !status; i++)
        if (choices[i].wanted)
            status = run_test_all(bench, i, choices[i].argument);
    return status;
}

static int prepare_files(gm_bench *bench, const choice choices[TESTS])
{
    int status = gm_bench_files_open(bench);
    return status ? status : check_files(bench, choices);
}

static int bench_all(gm_job *job, const choice choices[TESTS])
{
    gm_bench bench = {.job = job, .is_brief = job->options->operand_count == 0};
    int leading = job->ranks->rank == 0;
    int status = gm_job_agree_all(job, leading ? prepare_files(&bench, choices) : GM_OK);
    if (!status)
        status = gm_job_agree_all(job, measure_all(&bench, choices));
    if (!status)
        status = gm_job_agree_all(job, leading ? gm_bench_files_write(&bench) : GM_OK);
    if (!status)
        status = gm_job_agree_all(job, leading ? gm_bench_check_limits(&bench) : GM_OK);
    if (leading)
        gm_bench_files_close(&bench);
    gm_bench_close(&bench);
    return status;
}

/* bench compare OLD NEW: rank 0 alone. */
static int compare_all(gm_run *run)
{
    gm_job *job = run->job;
    const gm_options *o = job->options;
    int slower = 0, status = GM_OK;
    if (o->operand_count != 3)
        status = gm_fail(GM_EUSAGE, "bench compare expects two files of bench --json, OLD and NEW");
    else
        status = check_none("compare", o->list ? "list" : o->plot ? "plot" : option_of_measurements(o));
    if (!status && job->ranks->rank == 0)
        status = gm_bench_compare(o->operands[1], o->operands[2], &slower);
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(&slower, sizeof slower));
    run->outcome = slower ? GM_DIFFER : GM_OK;
    return status;
}

/* Rank 0. */
static int draw(gm_bench *bench)
{
    const gm_options *o = bench->job->options;
    gm_file_list sources = {0};
    struct stat info;
    int status = gm_file_list_begin(&sources, o->operands[1]);
    if (!status && stat(o->operands[1], &info) == 0)
        status = gm_file_list_add(&sources, GM_FILE_INPUT, (uint64_t)info.st_dev, (uint64_t)info.st_ino);
    if (!status)
        status = gm_bench_files_open(bench);
    if (!status)
        status = gm_bench_files_check(bench, &sources);
    if (!status)
        status = gm_bench_draw(bench, o->operands[1], o->operands + 2, o->operand_count - 2);
    gm_bench_files_close(bench);
    gm_bench_close(bench);
    gm_file_list_free(&sources);
    return status;
}

/* bench plot RESULTS [TEST]...: rank 0 alone. */
static int draw_all(gm_run *run)
{
    gm_job *job = run->job;
    const gm_options *o = job->options;
    gm_bench bench = {.job = job};
    int status = GM_OK;
    if (o->operand_count < 2 || !o->plot)
        status = gm_fail(GM_EUSAGE, "bench plot expects a file of bench --json, and --plot FILE");
    else
        status = check_none("plot", o->list ? "list" : option_of_measurements(o));
    if (!status && job->ranks->rank == 0)
        status = draw(&bench);
    return gm_job_agree_all(job, status);
}

static int is_named(const gm_options *o, const char *name)
{
    return o->operand_count > 0 && strcmp(o->operands[0], name) == 0;
}

static int is_of_files(const gm_options *o)
{
    return o->list || is_named(o, "compare") || is_named(o, "plot");
}

static int run_all(gm_run *run)
{
    gm_job *job = run->job;
    choice choices[TESTS];
    if (is_named(job->options, "compare"))
        return compare_all(run);
    if (is_named(job->options, "plot"))
        return draw_all(run);
    if (job->options->list)
        return gm_job_agree_all(job, job->ranks->rank == 0 ? list(job->options) : GM_OK);
    int status = gm_job_agree_all(job, choose(job->options, choices));
    return status ? status : bench_all(job, choices);
}

const gm_operation gm_op_bench = {.is_of_files = is_of_files, .run_all = run_all};
