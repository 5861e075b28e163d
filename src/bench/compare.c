/* bench compare - the results of two runs of bench (--json), line by line: the change of each rate, and a verdict. A
 * change counts when it is larger than the noise: the larger of 2 % and of twice the larger spread. */
#include "base/log.h"
#include "base/text/escape.h"
#include "src/bench/results.h"

#include <math.h>
#include <string.h>

enum { KEYS = 4, CELL = 4 * GM_BENCH_TEXT };

static const double least_noise = 0.02, spreads = 2;
static const char *const keys[KEYS] = {"test", "variant", "shape", "cache"}; /* of a row: all of them, and `threads` */

static int are_alike(const json_t *a, const json_t *b)
{
    for (int k = 0; k < KEYS; k++)
        if (strcmp(gm_results_text(a, keys[k]), gm_results_text(b, keys[k])) != 0)
            return 0;
    return gm_results_number(a, "threads") == gm_results_number(b, "threads");
}

/* The row of `others` that is alike row number `at` of `rows`, with as many alike before it; NULL: none. A library is
 * measured again beside each variant that it rivals. */
static const json_t *find(const json_t *others, const json_t *rows, size_t at)
{
    const json_t *row = json_array_get(rows, at);
    size_t before = 0, i;
    json_t *other;
    for (i = 0; i < at; i++)
        before += are_alike(json_array_get(rows, i), row);
    json_array_foreach (others, i, other)
        if (are_alike(other, row) && before-- == 0)
            return other;
    return NULL;
}

static const char *cell(const json_t *row, const char *key, char text[CELL])
{
    return gm_escape_line(gm_results_text(row, key), text, CELL);
}

/* "-" where there is no rate. */
static const char *rate_text(double rate, char text[32])
{
    snprintf(text, 32, rate > 0 ? "%.3f" : "-", rate);
    return text;
}

static void print_line(const json_t *row, double old, double new, double noise, const char *verdict)
{
    char text[KEYS + 1][CELL], change[16], least[16], before[32], now[32];
    for (int k = 0; k < KEYS; k++)
        cell(row, keys[k], text[k]);
    snprintf(change, sizeof change, old > 0 && new > 0 ? "%+.2f %%" : "-", 100 * (new / old - 1));
    snprintf(least, sizeof least, old > 0 && new > 0 ? "%.2f %%" : "-", 100 * noise);
    printf("%-9s %-24s %-20s %-5s %10s %10s %-7s %9s %8s  %s\n", text[0], text[1], text[2], text[3],
           rate_text(old, before), rate_text(new, now), cell(row, "unit", text[KEYS]), change, least, verdict);
}

/* Returns whether the work has become slower. */
static int compare_row(const json_t *old, const json_t *new)
{
    double before = old ? gm_results_number(old, "rate") : 0, now = gm_results_number(new, "rate");
    double noise = fmax(least_noise,
                        spreads * fmax(old ? gm_results_number(old, "spread") : 0, gm_results_number(new, "spread")));
    if (before <= 0 || now <= 0 || strcmp(gm_results_text(old, "unit"), gm_results_text(new, "unit")) != 0) {
        print_line(new, before, now, noise, old ? "not comparable" : "new");
        return 0;
    }
    double change = gm_bench_unit_is_time(gm_results_text(new, "unit")) ? before / now - 1 : now / before - 1;
    print_line(new, before, now, noise, change < -noise ? "slower" : change > noise ? "faster" : "the same");
    return change < -noise;
}

static void warn_of_devices(const json_t *old, const json_t *new)
{
    char a[CELL], b[CELL];
    const json_t *before = json_object_get(old, "device"), *now = json_object_get(new, "device");
    if (strcmp(gm_results_text(before, "name"), gm_results_text(now, "name")) != 0)
        gm_warn("the results are of different devices: %s, %s", cell(before, "name", a), cell(now, "name", b));
}

static void compare(const json_t *old, const json_t *new, int *slower)
{
    const json_t *before = json_object_get(old, "rows"), *now = json_object_get(new, "rows");
    size_t i, compared = 0;
    json_t *row;
    warn_of_devices(old, new);
    printf("%-9s %-24s %-20s %-5s %10s %10s %-7s %9s %8s  %s\n", "test", "variant", "shape", "cache", "old", "new",
           "unit", "change", "noise", "verdict");
    *slower = 0;
    json_array_foreach (now, i, row) {
        const json_t *other = find(before, now, i);
        compared += other != NULL;
        *slower += compare_row(other, row);
    }
    json_array_foreach (before, i, row)
        if (!find(now, before, i))
            print_line(row, gm_results_number(row, "rate"), 0, least_noise, "gone");
    printf("%zu compared, %d slower\n", compared, *slower);
    if (compared == 0)
        gm_warn("the results have no test in common");
}

int gm_bench_compare(const char *old_file, const char *new_file, int *slower)
{
    json_t *old = NULL, *new = NULL;
    *slower = 0;
    int status = gm_results_load(old_file, &old);
    if (!status)
        status = gm_results_load(new_file, &new);
    if (!status) {
        compare(old, new, slower);
        status = gm_stdout_flush();
    }
    json_decref(old);
    json_decref(new);
    return status;
}
