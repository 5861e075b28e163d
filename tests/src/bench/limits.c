/* Limits of benchmarks: the one that a rate is held against, and rates that exceed what the hardware can reach. */
#include "base/status.h"
#include "src/bench/bench.h"
#include "tests/tap.h"

static gm_bench_row row_of(double rate, double computed, double measured)
{
    return (gm_bench_row){.test = "copy",
                          .variant = "ours",
                          .timing = {.median = 1},
                          .work = rate,
                          .computed = computed,
                          .measured = measured,
                          .measured_of = "plain read"};
}

int main(void)
{
    gm_bench_row rows[] = {row_of(101, 100, 0), row_of(130, 0, 100), row_of(5, 0, 0), row_of(103, 100, 0)};
    gm_bench bench = {.rows = rows, .row_count = 3};
    tap_ok(gm_bench_limit(&rows[0]) == 100 && gm_bench_limit(&rows[1]) == 100 && gm_bench_limit(&rows[2]) == 0,
           "a rate is held against the measured limit, else the computed one");
    rows[1].computed = 200;
    tap_ok(gm_bench_limit(&rows[1]) == 100, "the measured limit comes first");
    tap_ok(gm_bench_check_limits(&bench) == GM_OK, "1.01 of a computed limit and 1.3 of a measured one are good");
    bench.row_count = 4;
    tap_ok(gm_bench_check_limits(&bench) == GM_ECHECK, "1.03 of a computed limit is an error");
    rows[3].timing.median = 0;
    tap_ok(gm_bench_check_limits(&bench) == GM_OK, "a rate without time is none");
    bench.job = &(gm_job){.info = {.memory_limit = 7}};
    tap_ok(gm_bench_memory_limit(&bench, GM_CACHE_COLD) == 7 && gm_bench_memory_limit(&bench, GM_CACHE_WARM) == 0,
           "caches may be faster than memory");
    return tap_done();
}
