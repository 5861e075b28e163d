/* A row of results: its rate and its limits. */
#include "src/bench/bench.h"

#include <stdio.h>
#include <string.h>

const gm_bench_unit gm_bench_unit_flops = {"Tflop/s", 1e12, 0}, gm_bench_unit_bytes = {"GB/s", 1e9, 0},
                    gm_bench_unit_ops = {"Gop/s", 1e9, 0}, gm_bench_unit_calls = {"1000/s", 1e3, 0},
                    gm_bench_unit_latency = {"ns", 1e-9, 1};

int gm_bench_unit_is_time(const char *name)
{
    return strcmp(name, gm_bench_unit_latency.name) == 0;
}

static const double most_of_limit = 1.02; /* of a rate: clocks and times are not exact */

const char *gm_bench_cache_name(gm_cache_state cache)
{
    static const char *const names[] = {[GM_CACHE_WARM] = "warm", [GM_CACHE_COLD] = "cold"};
    return names[cache];
}

double gm_bench_rate(const gm_bench_row *row)
{
    return row->timing.median > 0 ? row->work / row->timing.median : 0;
}

double gm_bench_in_unit(const gm_bench_unit *unit, double rate)
{
    return !unit->is_time ? rate / unit->scale : rate > 0 ? 1 / rate / unit->scale : 0;
}

double gm_bench_memory_limit(const gm_bench *bench, gm_cache_state cache)
{
    return cache == GM_CACHE_COLD ? bench->job->info.memory_limit : 0;
}

double gm_bench_limit(const gm_bench_row *row)
{
    return row->measured > 0 ? row->measured : row->computed;
}

const char *gm_bench_limit_name(const gm_bench_row *row)
{
    return row->measured > 0 ? row->measured_of : row->computed > 0 ? "computed" : "-";
}

int gm_bench_check_limits(const gm_bench *bench)
{
    const gm_bench_row *first = NULL;
    int count = 0;
    for (int i = 0; i < bench->row_count; i++) {
        const gm_bench_row *row = &bench->rows[i];
        if (row->computed > 0 && gm_bench_rate(row) > most_of_limit * row->computed) {
            first = first ? first : row;
            count++;
        }
    }
    return !first ? GM_OK
                  : gm_fail(GM_ECHECK,
                            "bench %s: %s %s is %.3f of its computed limit, expected at most %.2f: the measurement is "
                            "wrong (%d such rate%s)",
                            first->test, first->variant, first->shape, gm_bench_rate(first) / first->computed,
                            most_of_limit, count, count > 1 ? "s" : "");
}

gm_bench_row gm_bench_row_make(const gm_bench *bench, const char *variant, const char *kernel, gm_cache_state cache,
                               const gm_bench_timing *timing)
{
    gm_bench_row row = {.test = bench->test,
                        .cache = cache,
                        .timing = *timing,
                        .unit = gm_bench_unit_bytes,
                        .max_error = -1,
                        .mean_error = -1};
    snprintf(row.variant, sizeof row.variant, "%s", variant);
    snprintf(row.kernel, sizeof row.kernel, "%s", kernel);
    return row;
}
