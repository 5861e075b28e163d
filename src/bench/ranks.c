/* The ranks of a benchmark: they measure the same cases on their own devices, begin each one together, and rank 0 has
 * the results of all. Ranks meet only here: where a case begins, where a row is added, where a test ends. A rank that
 * fails meets the others at once, at their next point, so that no rank waits. */
#include "base/memory.h"
#include "src/bench/bench.h"

#include <stdlib.h>

int gm_bench_meet_all(gm_bench *bench, gm_bench_point point, int status)
{
    const gm_ranks *ranks = bench->job->ranks;
    int64_t least = point, most = -(int64_t)point;
    if (bench->is_alone || bench->has_failed || ranks->size == 1)
        return status;
    status = gm_agree_all(ranks, status);
    if (!status)
        status = gm_min_all(&least);
    if (!status)
        status = gm_min_all(&most);
    if (!status && least != -most)
        status = gm_fail(GM_EINTERNAL, "bench %s: the ranks measure different cases", bench->test);
    bench->has_failed = status != GM_OK;
    return status;
}

int gm_bench_level_all(gm_bench *bench)
{
    int64_t cache = -bench->cache_bytes;
    bench->device_cap = gm_memory_cap(GM_DEVICE);
    bench->host_cap = gm_memory_cap(GM_HOST);
    int status = gm_min_all(&bench->device_cap);
    if (!status)
        status = gm_min_all(&bench->host_cap);
    if (!status)
        status = gm_min_all(&cache);
    bench->cache_bytes = -cache;
    return status;
}

typedef struct result {
    double seconds;
    int rank;
    char host[GM_HOST_MAX];
} result;

static int by_seconds(const void *a, const void *b)
{
    double x = ((const result *)a)->seconds, y = ((const result *)b)->seconds;
    return (x > y) - (x < y);
}

static void summarize(result *all, int count, gm_bench_row *row)
{
    qsort(all, (size_t)count, sizeof *all, by_seconds);
    row->timing.median = (all[(count - 1) / 2].seconds + all[count / 2].seconds) / 2;
    row->rate_max = row->work / all[0].seconds;
    row->rate_min = row->work / all[count - 1].seconds;
    row->slow_rank = all[count - 1].rank;
    snprintf(row->slow_host, sizeof row->slow_host, "%s", all[count - 1].host);
}

int gm_bench_gather_all(gm_bench *bench, gm_bench_row *row)
{
    const gm_ranks *ranks = bench->job->ranks;
    result own = {.seconds = row->timing.median, .rank = ranks->rank}, *all = NULL;
    if (row->ranks > 0)
        return GM_OK;
    row->ranks = bench->is_alone ? 1 : ranks->size;
    if (row->ranks == 1)
        return GM_OK;
    int leading = ranks->rank == 0;
    snprintf(own.host, sizeof own.host, "%s", ranks->host);
    if (leading && !(all = calloc((size_t)ranks->size, sizeof *all)))
        gm_fail(GM_EDEVICE, "no memory for the results of %d ranks", ranks->size);
    int status = gm_bench_meet_all(bench, GM_BENCH_ADDS, leading && !all ? GM_EDEVICE : GM_OK);
    if (!status)
        status = gm_gather_all(ranks, &own, sizeof own, all);
    if (!status && leading)
        summarize(all, ranks->size, row);
    free(all);
    return status;
}
