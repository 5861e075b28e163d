/* Sizes of tests that take bytes. */
#include "base/size.h"
#include "src/bench.h"

#include <string.h>

int gm_bench_parse_sizes(const gm_bench *bench, const char *test, int64_t unit, int64_t *sizes, int *count)
{
    const char *text = bench->job->options->shapes;
    *count = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)gm_min((int64_t)strcspn(at, ","), sizeof word - 1), at);
        if (*count == GM_BENCH_SIZES || gm_size_parse(word, &sizes[*count]) || sizes[*count] < unit)
            return gm_fail(GM_EUSAGE, "--shapes '%s': bench %s expected up to %d sizes from %lld bytes on, such as 64M,1G", text, test, GM_BENCH_SIZES,
                           (long long)unit);
        sizes[*count] = sizes[*count] / unit * unit;
        ++*count;
    }
    return GM_OK;
}

int64_t gm_bench_large(const gm_bench *bench, int64_t unit)
{
    const int64_t wanted = bench->ops->unified ? INT64_C(64) << 20 : INT64_C(4) << 30;
    int64_t size = unit;
    while (2 * size <= wanted && 5 * size <= gm_bench_room(bench))
        size *= 2;
    return size;
}
