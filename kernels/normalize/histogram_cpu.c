/* Counts of digits on the processor. Rows with counts of their own go to one thread each; otherwise each thread counts
 * into a table of its own, if there is memory for it. */
#include <string.h>

#include "base/memory.h"
#include "base/size.h"
#include "kernels/normalize/normalize.h"

enum { SHORT = 16384 /* elements: fewer are counted by one thread */ };

/* n elements into 32-bit counts, or into the 64-bit ones of the call. */
#define LOOP(bytes, id, TABLE)                                                    \
    for (int64_t i = 0; i < n; i++) {                                             \
        gm_raw##bytes raw;                                                        \
        memcpy(&raw, from + i * (bytes), bytes);                                  \
        uint64_t key = gm_key_##id(raw, swap), digit = key >> call->shift & mask, \
                 above = key >> call->shift >> call->bits;                        \
        if (gm_nan_##id(raw, swap))                                               \
            continue;                                                             \
        for (int p = 0; p < call->prefixes; p++) {                                \
            if (above == prefix[p])                                               \
                TABLE[(uint64_t)p << call->bits | digit]++;                       \
        }                                                                         \
    }
#define COUNT(id, bytes)                                                                                      \
    static void count_##id(const gm_histogram_call *call, const void *src, int64_t n, const uint64_t *prefix, \
                           uint32_t *own, uint64_t *counts)                                                   \
    {                                                                                                         \
        const char *from = src;                                                                               \
        uint64_t mask = ((uint64_t)1 << call->bits) - 1;                                                      \
        int swap = call->swap;                                                                                \
        if (own != NULL) {                                                                                    \
            LOOP(bytes, id, own)                                                                              \
        } else {                                                                                              \
            LOOP(bytes, id, counts)                                                                           \
        }                                                                                                     \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) COUNT(id, bytes)
#include "base/types/dtypes.def"
#undef GM_DTYPE

static void (*const counters[GM_DTYPES])(const gm_histogram_call *, const void *, int64_t, const uint64_t *, uint32_t *,
                                         uint64_t *) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) count_##id,
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

/* Elements [at, at + n) by all threads, each counting its share into a table of its own of `bins` numbers. */
static void count_shared(int threads, const gm_histogram_call *call, int64_t at, int64_t n, const uint64_t *prefix,
                         uint64_t *counts, uint32_t *tables, int64_t bins)
{
    int64_t size = (int64_t)gm_dtype_size(call->type), each = gm_ceil_div(n, threads);
    const char *src = (const char *)call->src + at * size;
    memset(tables, 0, (size_t)(threads * bins) * sizeof *tables);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; t++) {
        int64_t begin = gm_min(t * each, n), end = gm_min(begin + each, n);
        counters[call->type](call, src + begin * size, end - begin, prefix, tables + t * bins, NULL);
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < bins; i++) {
        for (int t = 0; t < threads; t++)
            counts[i] += tables[t * bins + i];
    }
}

int gm_cpu_histogram(int threads, const gm_histogram_call *call)
{
    const int64_t most = (int64_t)1 << 31; /* of elements, so that no 32-bit count overflows */
    int64_t bins = (int64_t)call->prefixes << call->bits, size = (int64_t)gm_dtype_size(call->type);
    int64_t groups = call->row_step ? call->rows : 1, each = call->row_step ? call->cols : call->rows * call->cols;
    void *tables = NULL;
    threads = groups * each > SHORT ? threads : 1;
    if (groups >= threads || threads == 1 || each < 2 * bins ||
        !gm_host_try((size_t)(threads * bins) * sizeof(uint32_t), &tables)) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t g = 0; g < groups; g++) {
            const char *src = (const char *)call->src + g * each * size;
            counters[call->type](call, src, each, call->prefix + g * call->prefixes, NULL, call->counts + g * bins);
        }
        return GM_OK;
    }
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t at = 0; at < each; at += most)
            count_shared(threads, call, g * each + at, gm_min(most, each - at), call->prefix + g * call->prefixes,
                         call->counts + g * bins, tables, bins);
    }
    gm_host_free(tables);
    return GM_OK;
}
