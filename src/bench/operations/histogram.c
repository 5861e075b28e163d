/* bench histogram - counts of digits, the steps of exact percentiles. The rival, on a GPU, only reads as many bytes. */
#include "base/memory.h"
#include "base/size.h"
#include "kernels/host.h"
#include "kernels/normalize/calls.h"
#include "src/bench/bench.h"

#include <string.h>

enum { UNIT = 4096, CHECKED = 1 << 20 /* elements that the processor counts too */ };

typedef struct variant {
    const char *name;
    gm_dtype type;
    int is_constant; /* all elements are 0: all threads contend for one counter */
    int shift, bits, prefixes;
    uint64_t prefix[GM_HISTOGRAM_PREFIXES];
} variant;

/* Second digits: those of the floats near 0.01 and near 0.99. */
static const variant variants[] = {
    {"u16", GM_DTYPE_U16, 0, 0, 16, 1, {0}},
    {"u16 constant", GM_DTYPE_U16, 1, 0, 16, 1, {0}},
    {"u8", GM_DTYPE_U8, 0, 0, 8, 1, {0}},
    {"f32 first digit", GM_DTYPE_F32, 0, 16, 16, 1, {0}},
    {"f32 second, 2 ranges", GM_DTYPE_F32, 0, 0, 16, 2, {0xbc23, 0xbf7d}},
    {"f32 constant, second", GM_DTYPE_F32, 1, 0, 16, 2, {0x8000, 0xbf7d}},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

typedef struct buffers {
    gm_bench *bench;
    const variant *variant;
    int64_t bytes;
    uint64_t key;
    void *src, *prefix, *counts, *zeros; /* device memory */
} buffers;

static gm_histogram_call make_call(const buffers *b, int64_t n)
{
    const variant *s = b->variant;
    return (gm_histogram_call){.rows = 1,
                               .cols = n,
                               .src = b->src,
                               .type = s->type,
                               .shift = s->shift,
                               .bits = s->bits,
                               .prefixes = s->prefixes,
                               .prefix = b->prefix,
                               .counts = b->counts};
}

static int run_histogram(void *context, gm_queue *queue)
{
    const buffers *b = context;
    gm_histogram_call call = make_call(b, b->bytes / (int64_t)gm_dtype_size(b->variant->type));
    return b->bench->ops->histogram(queue, &call);
}

static int run_read(void *context, gm_queue *queue)
{
    const buffers *b = context;
    return b->bench->measure->flush(queue, b->zeros, (size_t)b->bytes);
}

static size_t counts_size(const variant *s)
{
    return ((size_t)s->prefixes << s->bits) * sizeof(uint64_t);
}

static int make_data(buffers *b)
{
    gm_bench *bench = b->bench;
    const variant *s = b->variant;
    int status = bench->ops->alloc(bench->device, (size_t)b->bytes, &b->src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)b->bytes, &b->zeros);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof s->prefix, &b->prefix);
    if (!status)
        status = bench->ops->alloc(bench->device, counts_size(s), &b->counts);
    if (!status)
        status = gm_bench_upload(bench, b->prefix, s->prefix, sizeof s->prefix);
    if (!status)
        status = bench->ops->zero(bench->queue, b->counts, counts_size(s));
    if (!status)
        status = bench->ops->zero(bench->queue, b->zeros, (size_t)b->bytes);
    if (!status && s->is_constant)
        status = bench->ops->zero(bench->queue, b->src, (size_t)b->bytes);
    else if (!status)
        status = gm_bench_fill(bench, b->src, s->type, b->bytes / UNIT, UNIT / (int64_t)gm_dtype_size(s->type),
                               UNIT / (int64_t)gm_dtype_size(s->type), b->key);
    return status;
}

static void free_data(buffers *b)
{
    b->bench->ops->free(b->bench->device, b->counts);
    b->bench->ops->free(b->bench->device, b->prefix);
    b->bench->ops->free(b->bench->device, b->zeros);
    b->bench->ops->free(b->bench->device, b->src);
}

/* Compares the counts of the first elements with the processor's; *wrong: the number of counts that differ. */
static int check(buffers *b, int64_t *wrong)
{
    const variant *s = b->variant;
    size_t size = counts_size(s);
    int64_t n = gm_min(CHECKED, b->bytes / (int64_t)gm_dtype_size(s->type));
    void *src = NULL, *right = NULL, *got = NULL;
    gm_histogram_call call = make_call(b, n);
    int status = gm_host_alloc((size_t)n * gm_dtype_size(s->type), &src);
    if (!status)
        status = gm_host_alloc(size, &right);
    if (!status)
        status = gm_host_alloc(size, &got);
    if (!status)
        status = b->bench->ops->zero(b->bench->queue, b->counts, size);
    if (!status)
        status = b->bench->ops->histogram(b->bench->queue, &call);
    if (!status)
        status = gm_bench_download(b->bench, got, b->counts, size);
    if (!status) {
        memset(src, 0, (size_t)n * gm_dtype_size(s->type));
        memset(right, 0, size);
        if (!s->is_constant)
            gm_cpu_random(src, s->type, 0, GM_DISTRIBUTION_UNIFORM, b->key, 0, n);
        call.src = src;
        call.prefix = s->prefix;
        call.counts = right;
        status = gm_cpu_histogram(1, &call);
    }
    for (size_t i = 0; i < size / sizeof(uint64_t) && !status; i++)
        *wrong += ((uint64_t *)got)[i] != ((uint64_t *)right)[i];
    gm_host_free(got);
    gm_host_free(right);
    gm_host_free(src);
    return status;
}

static int measure_variant(gm_bench *bench, const variant *s, int64_t bytes, gm_bench_cache cache)
{
    buffers b = {.bench = bench, .variant = s, .bytes = bytes, .key = gm_random_key(1, 2)};
    gm_bench_case cases[2] = {{run_histogram, &b}, {run_read, &b}};
    gm_bench_timing timings[2] = {0};
    int64_t wrong = 0;
    int count = bench->ops->unified ? 1 : 2; /* flush of a processor waits after it has read */
    int status = make_data(&b);
    if (!status)
        status = gm_bench_time(bench, cases, count, cache.flush, timings);
    if (!status)
        status = check(&b, &wrong);
    gm_bench_row row = gm_bench_row_make(bench, s->name, "histogram", cache.state, &timings[0]);
    row.work = (double)bytes;
    row.computed = gm_bench_memory_limit(bench, cache.state);
    row.rival = timings[1].median > 0 ? (double)bytes / timings[1].median : 0;
    row.max_error = (double)wrong;
    gm_size_format(bytes, row.shape);
    if (!status)
        status = gm_bench_add(bench, &row);
    if (!status && wrong > 0)
        status = gm_fail(GM_ECHECK, "bench histogram: %s: %lld counts are wrong", s->name, (long long)wrong);
    free_data(&b);
    return status;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    gm_bench_cache caches[GM_CACHE_STATES];
    int count = gm_bench_cache_states(bench, 2 * bytes, bytes, caches), status = GM_OK;
    for (int v = 0; v < VARIANTS; v++)
        for (int c = 0; c < count && !status; c++)
            status = measure_variant(bench, &variants[v], bytes, caches[c]);
    return status;
}

int gm_bench_histogram(gm_bench *bench)
{
    if (!bench->ops->histogram || !bench->measure->flush)
        return gm_bench_skip(bench, NULL);
    return gm_bench_each_size(bench, UNIT, NULL, 0, measure_size);
}
