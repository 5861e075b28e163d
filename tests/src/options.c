/* The command line: tables, kinds of values, refusals. */
#include "base/status.h"
#include "src/options.h"
#include "tests/tap.h"

#include <string.h>

static int parse(gm_options *options, const char *line)
{
    static char words[16][128];
    char *argv[17] = {0}, copy[1024];
    int argc = 0;
    snprintf(copy, sizeof copy, "gpumem-run %s", line);
    for (char *word = strtok(copy, " "); word && argc < 16; word = strtok(NULL, " ")) {
        snprintf(words[argc], sizeof words[0], "%s", word);
        argv[argc] = words[argc];
        argc++;
    }
    return gm_options_parse(argc, argv, options);
}

static void test_good(void)
{
    gm_options o;
    tap_ok(parse(&o, "matmul a.h5") == GM_OK && o.operation == GM_OP_MATMUL && o.operand_count == 1 && o.alpha == 1 &&
               o.beta == 0 && strcmp(o.device, "auto") == 0,
           "defaults");
    tap_ok(
        parse(&o, "matmul --alpha 2.5 --host-memory=1.5G --threads 3 a.h5:/A b.h5:/B -o c.h5 --transpose ab --force") ==
                GM_OK &&
            o.alpha == 2.5 && o.host_memory == INT64_C(3) << 29 && o.threads == 3 && o.operand_count == 2 &&
            strcmp(o.output, "c.h5") == 0 && strcmp(o.transpose, "ab") == 0 && o.force,
        "values of every kind, --opt value and --opt=value");
    tap_ok(gm_options_given(&o, "alpha") && o.given[GM_OPTION_ROW_alpha] && !gm_options_given(&o, "beta") &&
               !o.given[GM_OPTION_ROW_beta],
           "what was given is known");
    tap_ok(parse(&o, "compare -- -a.h5 -b.h5") == GM_OK && strcmp(o.operands[0], "-a.h5") == 0, "-- ends the options");
    tap_ok(parse(&o, "matmul --alpha -1e-3 a.h5") == GM_OK && o.alpha == -1e-3, "a negative number is a value");
    static const char *const forced[] = {"compare a b --force --report r.json", "info --force --report r.json",
                                         "info --leftovers a --clean --force",  "bench --force --json r.json",
                                         "bench --force --csv r.csv",           "bench --force --plot r.svg"};
    for (size_t i = 0; i < sizeof forced / sizeof *forced; i++)
        tap_ok(parse(&o, forced[i]) == GM_OK && o.force, "'%s'", forced[i]);
    tap_ok(parse(&o, "--help") == GM_OK && o.help, "--help alone");
    tap_ok(parse(&o, "matmul --help") == GM_OK && o.help && o.operation == GM_OP_MATMUL, "--help of an operation");
}

static void test_bad(void)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"", "an operation is needed"},
        {"multiply a.h5", "no operation 'multiply'"},
        {"matmul", "needs"},
        {"matmul a b c", "one too many"},
        {"matmul a --frobnicate", "--frobnicate"},
        {"matmul a -Z", "-Z"},
        {"matmul a --alpha", "needs a value"},
        {"matmul a --alpha one", "finite number"},
        {"matmul a --alpha inf", "finite number"},
        {"matmul a --alpha 1x", "finite number"},
        {"matmul a --alpha 1e-400", "finite number that float64 holds"},
        {"matmul a --threads 0", "a positive integer"},
        {"matmul a --threads -2", "a positive integer"},
        {"matmul a --depth 9223372036854775808", "an integer of at most 9223372036854775807"},
        {"gen stack a --seed 18446744073709551616", "an integer of at most 9223372036854775807"},
        {"gen stack a --seed +18446744073709551616", "an integer of at most 9223372036854775807"},
        {"gen stack a --seed -18446744073709551616", "a non-negative integer"},
        {"matmul a --threads 1025", "--threads 1025: expected at most 1024"},
        {"matmul a --host-memory 12Q", "a size"},
        {"matmul a --host-memory 0", "a size"},
        {"matmul a --host-memory -1G", "a size"},
        {"matmul a --host-memory 9223372036854775807", "4GiB, of at most 4194304T"},
        {"matmul a --buffer 4194305T", "4MiB, of at most 4194304T, or 0"},
        {"matmul a --transpose c", "a|b|ab"},
        {"matmul a --device tpu", "auto|cuda|cpu"},
        {"matmul a --device aut", "auto|cuda|cpu"},
        {"matmul a --force=yes", "no value"},
        {"matmul a --tolerance 1", "not an option of matmul"},
        {"compare a b --grid 1x1x1", "not an option of compare"},
        {"gen matrices f --alpha 2", "not an option of gen"},
        {"normalize a --flat b --dark c --flat d", "--flat is given twice"},
        {"normalize a --flat b --flat=b", "--flat is given twice"},
        {"matmul a -o b --output c", "--output is given twice"},
        {"matmul a -o b -o c", "--output is given twice"},
        {"matmul a --alpha 2 --alph 2", "--alpha is given twice"},
        {"matmul a --force --force", "--force is given twice"},
        {"matmul a -q b --quiet", "--quiet is given twice"},
        {"matmul a -qvq", "--quiet is given twice"},
        {"--help -h", "--help is given twice"},
        {"matmul a --quiet -v", "exclude each other"},
        {"compare a b --force", "--force: compare writes no file"},
        {"info --force", "--force: info writes no file"},
        {"info --leftovers a --force", "--force: info writes no file"},
        {"bench flip --force", "--force: bench writes no file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_options o;
        gm_error error;
        int status = parse(&o, cases[i].line);
        gm_error_get(&error);
        tap_ok(status == GM_EUSAGE && strstr(error.text, cases[i].message), "'%s': %s", cases[i].line, error.text);
        gm_error_clear();
    }
}

int main(void)
{
    test_good();
    test_bad();
    return tap_done();
}
