/* The times of ranks: each phase over them, the slowest rank, what limits a run; the line and the table. */
#include "src/summary/times.h"
#include "base/log.h"
#include "base/size.h"
#include "tests/capture.h"
#include "tests/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3 };
static gm_rank_record all[RANKS];

static int is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* Rank 1 computes longest; rank 0 waits for it in exchange, rank 2 in open. */
static void fill(void)
{
    static const double seconds[RANKS][GM_PHASES] = {
        {[GM_PHASE_OPEN] = 0.1, [GM_PHASE_READ] = 1, [GM_PHASE_COMPUTE] = 0.5, [GM_PHASE_EXCHANGE] = 3},
        {[GM_PHASE_OPEN] = 0.1, [GM_PHASE_READ] = 1, [GM_PHASE_COMPUTE] = 2, [GM_PHASE_EXCHANGE] = 0.5},
        {[GM_PHASE_OPEN] = 4, [GM_PHASE_READ] = 1, [GM_PHASE_COMPUTE] = 0.5, [GM_PHASE_EXCHANGE] = 0},
    };
    memset(all, 0, sizeof all);
    for (int r = 0; r < RANKS; r++) {
        snprintf(all[r].host, sizeof all[r].host, "host%d", r);
        memcpy(all[r].times.seconds, seconds[r], sizeof seconds[r]);
        all[r].init_s = 0.25 + 0.25 * r;
        all[r].bytes_read = 10000000000;
        all[r].bytes_written = 1000000000;
        all[r].flop = 4e12;
    }
}

static void test_spreads(void)
{
    gm_run_times t;
    fill();
    gm_times_find(all, RANKS, 4, &t);
    const gm_spread *compute = &t.row[GM_PHASE_COMPUTE], *read = &t.row[GM_PHASE_READ], *work = &t.row[GM_ROW_WORK];
    tap_ok(is_near(compute->least, 0.5) && is_near(compute->average, 1) && is_near(compute->most, 2) &&
               compute->rank == 1,
           "least, average and most of a phase, and the rank of the most");
    tap_ok(read->rank == 0, "of equal ranks the lowest");
    tap_ok(is_near(work->most, 3) && is_near(work->average, 2) && t.slowest == 1 && is_near(t.imbalance, 1.5),
           "waiting in exchange and open is no work");
    tap_ok(t.limit == GM_PHASE_COMPUTE && t.limit_rank == 1 && is_near(t.limit_s, 2),
           "the limit is the longest phase of the slowest rank");
    tap_ok(t.bytes_read == 3e10 && t.bytes_written == 3e9 && t.flop == 1.2e13, "sums over the ranks");

    all[1].times.seconds[GM_PHASE_EXCHANGE] = 2.5;
    gm_times_find(all, RANKS, 4, &t);
    tap_ok(t.limit == GM_PHASE_EXCHANGE && t.slowest == 1, "exchange may be what limits it");
    all[0].sync_s = 2.75;
    gm_times_find(all, RANKS, 4, &t);
    tap_ok(t.limit == GM_ROW_SYNC && t.limit_rank == 0 && is_near(t.limit_s, 2.75),
           "and so may flushing, on the rank that does");
    all[2].init_s = 6.5;
    gm_times_find(all, RANKS, 4, &t);
    tap_ok(t.limit == GM_ROW_SYNC, "the start does not while it is shorter than the run with its flush");
    all[2].init_s = 7;
    gm_times_find(all, RANKS, 4, &t);
    tap_ok(t.limit == GM_ROW_START && t.limit_rank == 2, "but then it does");

    memset(all, 0, sizeof all);
    gm_times_find(all, RANKS, 0, &t);
    tap_ok(t.imbalance == 1 && t.slowest == 0 && t.limit == GM_PHASE_OPEN && t.limit_s == 0, "no time at all");
}

/* The text on standard error for the ranks' records. */
static void show(int ranks, double wall, gm_level level, char *text, size_t size)
{
    gm_run_times t;
    capture errors;
    gm_times_find(all, ranks, wall, &t);
    gm_log_setup(1, level);
    capture_start(&errors);
    gm_times_say(&t, all);
    capture_end(&errors, text, size);
}

static void check_line(int ranks, double wall, const char *want, const char *name)
{
    char text[4096];
    show(ranks, wall, GM_NORMAL, text, sizeof text);
    tap_ok(strcmp(text, want) == 0, "%s: %s", name, text);
}

static void test_line(void)
{
    fill();
    check_line(
        RANKS, 4,
        "gpumem-run: note: 30 GB read, 3 GB written in 4.000 s: 8.25 GB/s, 3 Tflop/s, limited by compute (2.000 s on "
        "rank 1); start 0.750 s\n",
        "three ranks");
    all[0].sync_s = 0.5;
    all[0].flop = 0;
    check_line(
        1, 4,
        "gpumem-run: note: 10 GB read, 1 GB written in 4.000 s: 2.75 GB/s, limited by exchange (3.000 s); start 0.250 "
        "s, sync 0.500 s\n",
        "one rank, no product");
    all[0].bytes_written = 0;
    all[0].init_s = 5;
    check_line(1, 4, "gpumem-run: note: 10 GB read in 4.000 s: 2.5 GB/s, limited by start (5.000 s); sync 0.500 s\n",
               "nothing is said twice");
    memset(all, 0, sizeof all);
    all[0].bytes_written = 999;
    check_line(1, 0.5, "gpumem-run: note: 999 B written in 0.500 s: 2 kB/s, limited by open (0.000 s)\n",
               "only written");
    all[0].bytes_written = 0;
    check_line(1, 0, "gpumem-run: note: 0 B read in 0.000 s: 0 B/s, limited by open (0.000 s)\n",
               "nothing, in no time");
    char text[4096];
    show(1, 1, GM_QUIET, text, sizeof text);
    tap_ok(!*text, "quiet: nothing");
}

static void test_table(void)
{
    char text[4096];
    size_t longest = 0;
    fill();
    show(RANKS, 4, GM_VERBOSE, text, sizeof text);
    static const char *const want[] = {
        "phase           min s     avg s     max s   rank  % wall\n",
        "start           0.250     0.500     0.750      2       -\n",
        "open            0.100     1.400     4.000      2    35.0\n",
        "read            1.000     1.000     1.000      0    25.0\n",
        "compute         0.500     1.000     2.000      1    25.0\n",
        "exchange        0.000     1.167     3.000      0    29.2\n",
        "work            1.500     2.000     3.000      1    50.0\n",
        "imbalance 1.50 (work, max / avg), slowest rank 1 on host1\n",
        "30 GB read",
    };
    const char *at = text;
    int lines = 0;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++, lines++) {
        const char *prefix = "gpumem-run: note: ";
        tap_ok(strncmp(at, prefix, strlen(prefix)) == 0 && strncmp(at + strlen(prefix), want[i], strlen(want[i])) == 0,
               "the table: %.*s", (int)strcspn(want[i], "\n"), want[i]);
        const char *end = strchr(at, '\n');
        if (!end)
            break;
        longest = lines < 8 && (size_t)(end - at) > longest ? (size_t)(end - at) : longest;
        at = end + 1;
    }
    tap_ok(longest <= 80 && !*at, "of 80 columns, and nothing else: %zu", longest);
}

static void test_report(void)
{
    gm_run_times t;
    fill();
    gm_times_find(all, RANKS, 4, &t);
    json_t *root = json_object();
    gm_times_report(&t, all, 1, root);
    json_t *compute = json_object_get(json_object_get(root, "phases"), "compute"),
           *work = json_object_get(root, "work"), *limit = json_object_get(root, "limit");
    tap_ok(json_object_size(json_object_get(root, "phases")) == GM_PHASES &&
               json_real_value(json_object_get(compute, "min")) == 0.5 &&
               json_real_value(json_object_get(compute, "median")) == 0.5 &&
               is_near(json_real_value(json_object_get(compute, "average")), 1) &&
               json_real_value(json_object_get(compute, "max")) == 2 &&
               json_integer_value(json_object_get(compute, "slowest")) == 1,
           "a phase in the report");
    tap_ok(json_real_value(json_object_get(work, "imbalance")) == 1.5 &&
               json_integer_value(json_object_get(work, "slowest")) == 1 &&
               strcmp(json_string_value(json_object_get(limit, "phase")), "compute") == 0 &&
               json_integer_value(json_object_get(limit, "rank")) == 1,
           "work and limit");
    json_decref(root);
    root = json_object();
    gm_times_report(&t, all, 0, root);
    tap_ok(json_object_get(root, "phases") && !json_object_get(root, "limit"), "a run that has failed has no limit");
    json_decref(root);
}

static void test_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0 "},        {1, "1 "},           {999, "999 "},    {999.4, "999 "},   {999.5, "1 k"},
                 {1234, "1.23 k"}, {34.36e9, "34.4 G"}, {999.6e9, "1 T"}, {2.5e18, "2.5 E"}, {1e22, "1e+04 E"}};
    char text[GM_SIZE_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        tap_ok(strcmp(gm_si_format(cases[i].value, text), cases[i].text) == 0, "%g: '%s'", cases[i].value, text);
}

int main(void)
{
    test_spreads();
    test_line();
    test_table();
    test_report();
    test_numbers();
    return tap_done();
}
