/* Sizes of the tests of buffers, and the cache states to measure them in. */
#include "base/size.h"
#include "base/text/words.h"
#include "src/bench/bench.h"

static int parse_sizes(const gm_bench *bench, int64_t unit, int64_t *sizes, int *count)
{
    const char *text = bench->job->options->shapes;
    *count = 0;
    for (const char *list = text; list;) {
        char word[32];
        if (!gm_word_next(&list, ',', word, sizeof word) || *count == GM_BENCH_SIZES ||
            gm_size_parse(word, &sizes[*count]) || sizes[*count] < unit)
            return gm_fail(
                GM_EUSAGE,
                "--shapes '%s': bench %s expected up to %d sizes of at least %lld bytes, at most " GM_SIZE_MOST_TEXT
                ", such as 64M,1G",
                text, bench->test, GM_BENCH_SIZES, (long long)unit);
        sizes[*count] = sizes[*count] / unit * unit;
        ++*count;
    }
    return GM_OK;
}

int64_t gm_bench_wanted(const gm_bench *bench, int64_t usual)
{
    const int64_t most = bench->ops->unified ? bench->is_brief ? 16 << 20 : 64 << 20
                         : bench->is_brief   ? 1 << 30
                                             : INT64_MAX;
    return gm_min(usual, most);
}

/* A size at which the speed of memory shows: 4 GiB on a GPU, cut down by gm_bench_wanted(), or less where two buffers
 * would not fit; unit times a power of two. */
static int64_t large_size(const gm_bench *bench, int64_t unit)
{
    const int64_t wanted = gm_bench_wanted(bench, INT64_C(4) << 30);
    int64_t size = unit;
    while (2 * size <= wanted && 5 * size <= gm_bench_room(bench))
        size *= 2;
    return size;
}

int gm_bench_each_size(gm_bench *bench, int64_t unit, const int64_t *defaults, int count,
                       int (*measure)(gm_bench *bench, int64_t bytes))
{
    int64_t asked[GM_BENCH_SIZES], large = large_size(bench, unit);
    const int64_t *sizes = defaults ? defaults : &large;
    int status = GM_OK;
    if (!defaults)
        count = 1;
    if (bench->job->options->shapes) {
        status = parse_sizes(bench, unit, asked, &count);
        sizes = asked;
    }
    for (int i = 0; i < count && !status; i++)
        status = measure(bench, sizes[i]);
    return status;
}

int gm_bench_cache_states(const gm_bench *bench, int64_t buffer_bytes, int64_t case_bytes,
                          gm_bench_cache caches[GM_CACHE_STATES])
{
    int count = 0, by_size = case_bytes >= GM_BENCH_SEVERAL * bench->cache_bytes;
    if (buffer_bytes <= bench->cache_bytes)
        caches[count++] = (gm_bench_cache){GM_CACHE_WARM, 0};
    if (count > 0 && bench->is_brief && bench->ops->unified) /* the caches of a processor take long to flush */
        return count;
    if (by_size || bench->measure->flush)
        caches[count++] = (gm_bench_cache){GM_CACHE_COLD, !by_size};
    return count;
}
