/* bench histogram - counts of digits, which exact percentiles are made of. The rival, on a GPU, reads as many bytes and does
 * nothing with them. */
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/kernels.h"
#include "src/bench.h"

#include <string.h>

enum { UNIT = 4096, CHECKED = 1 << 20 /* elements that the processor counts again */ };

typedef struct scene {
    const char *name;
    gm_dtype type;
    int is_constant; /* all elements 0, the worst for counters that all want */
    int shift, bits, prefixes;
    uint64_t prefix[GM_HISTOGRAM_PREFIXES];
} scene;

/* Second digits: of those floats that a percentile near 0.01 and one near 0.99 lie among. */
static const scene scenes[] = {
    {"u16", GM_U16, 0, 0, 16, 1, {0}},
    {"u16 constant", GM_U16, 1, 0, 16, 1, {0}},
    {"u8", GM_U8, 0, 0, 8, 1, {0}},
    {"f32 first digit", GM_F32, 0, 16, 16, 1, {0}},
    {"f32 second, 2 ranges", GM_F32, 0, 0, 16, 2, {0xbc23, 0xbf7d}},
    {"f32 constant, second", GM_F32, 1, 0, 16, 2, {0x8000, 0xbf7d}},
};
enum { SCENES = sizeof scenes / sizeof scenes[0] };

typedef struct work {
    gm_bench *bench;
    const scene *scene;
    int64_t bytes;
    uint64_t key;
    void *src, *prefix, *counts, *zeros; /* device memory */
} work;

static gm_histogram_call make_call(const work *w, int64_t n)
{
    const scene *s = w->scene;
    return (gm_histogram_call){.rows = 1, .cols = n, .src = w->src, .type = s->type, .shift = s->shift, .bits = s->bits, .prefixes = s->prefixes,
                               .prefix = w->prefix, .counts = w->counts};
}

static int run_histogram(void *context, gm_queue *queue)
{
    const work *w = context;
    gm_histogram_call call = make_call(w, w->bytes / (int64_t)gm_dtype_size(w->scene->type));
    return w->bench->ops->histogram(queue, &call);
}

static int run_read(void *context, gm_queue *queue)
{
    const work *w = context;
    return w->bench->measure->flush(queue, w->zeros, (size_t)w->bytes);
}

static size_t counts_size(const scene *s)
{
    return ((size_t)s->prefixes << s->bits) * sizeof(uint64_t);
}

static int make_data(work *w)
{
    gm_bench *bench = w->bench;
    const scene *s = w->scene;
    int status = bench->ops->alloc(bench->device, (size_t)w->bytes, &w->src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)w->bytes, &w->zeros);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof s->prefix, &w->prefix);
    if (!status)
        status = bench->ops->alloc(bench->device, counts_size(s), &w->counts);
    if (!status)
        status = gm_bench_upload(bench, w->prefix, s->prefix, sizeof s->prefix);
    if (!status)
        status = bench->ops->zero(bench->queue, w->counts, counts_size(s));
    if (!status)
        status = bench->ops->zero(bench->queue, w->zeros, (size_t)w->bytes);
    if (!status && s->is_constant)
        status = bench->ops->zero(bench->queue, w->src, (size_t)w->bytes);
    else if (!status)
        status = gm_bench_fill(bench, w->src, s->type, w->bytes / UNIT, UNIT / (int64_t)gm_dtype_size(s->type), UNIT / (int64_t)gm_dtype_size(s->type), w->key);
    return status;
}

static void free_data(work *w)
{
    w->bench->ops->free(w->bench->device, w->counts);
    w->bench->ops->free(w->bench->device, w->prefix);
    w->bench->ops->free(w->bench->device, w->zeros);
    w->bench->ops->free(w->bench->device, w->src);
}

/* Counts of the first elements against the processor's; *wrong: how many differ. */
static int check(work *w, int64_t *wrong)
{
    const scene *s = w->scene;
    size_t size = counts_size(s);
    int64_t n = gm_min(CHECKED, w->bytes / (int64_t)gm_dtype_size(s->type));
    void *src = NULL, *right = NULL, *got = NULL;
    gm_histogram_call call = make_call(w, n);
    int status = gm_host_alloc((size_t)n * gm_dtype_size(s->type), &src);
    if (!status)
        status = gm_host_alloc(size, &right);
    if (!status)
        status = gm_host_alloc(size, &got);
    if (!status)
        status = w->bench->ops->zero(w->bench->queue, w->counts, size);
    if (!status)
        status = w->bench->ops->histogram(w->bench->queue, &call);
    if (!status)
        status = gm_bench_download(w->bench, got, w->counts, size);
    if (!status) {
        memset(src, 0, (size_t)n * gm_dtype_size(s->type));
        memset(right, 0, size);
        if (!s->is_constant)
            gm_cpu_random(src, s->type, 0, GM_DISTRIBUTION_UNIFORM, w->key, 0, n);
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

static int measure_scene(gm_bench *bench, const scene *s, int64_t bytes, gm_heat heat, int by_size)
{
    work w = {.bench = bench, .scene = s, .bytes = bytes, .key = gm_random_key(1, 2)};
    gm_subject subjects[2] = {{run_histogram, &w}, {run_read, &w}};
    gm_timing timings[2] = {0};
    char size[GM_SIZE_TEXT];
    int64_t wrong = 0;
    int status = make_data(&w), count = bench->ops->unified ? 1 : 2; /* a processor's flush does more than read: it waits */
    if (!status)
        status = gm_bench_time(bench, subjects, count, by_size ? GM_WARM : heat, timings); /* large buffers flush the cache themselves */
    if (!status)
        status = check(&w, &wrong);
    gm_bench_row row = {.test = "histogram", .kernel = "histogram", .heat = heat, .timing = timings[0], .work = (double)bytes, .unit = gm_unit_bytes,
                        .limit = heat == GM_COLD ? bench->job->info.memory_limit : 0,
                        .rival = timings[1].median > 0 ? (double)bytes / timings[1].median : 0, .max_error = (double)wrong, .mean_error = -1};
    snprintf(row.variant, sizeof row.variant, "%s", s->name);
    snprintf(row.shape, sizeof row.shape, "%s", gm_size_format(bytes, size));
    if (!status)
        status = gm_bench_add(bench, &row);
    if (!status && wrong > 0)
        status = gm_fail(GM_ECHECK, "bench histogram: %s: %lld counts are wrong", s->name, (long long)wrong);
    free_data(&w);
    return status;
}

int gm_bench_histogram(gm_bench *bench)
{
    int64_t sizes[GM_BENCH_SIZES] = {gm_bench_large(bench, UNIT)};
    int count = 1, status = GM_OK;
    if (!bench->ops->histogram || !bench->measure->flush) {
        gm_note("bench histogram: not supported on a device of kind %s", bench->ops->kind);
        return GM_OK;
    }
    if (bench->job->options->shapes)
        status = gm_bench_parse_sizes(bench, "histogram", UNIT, sizes, &count);
    for (int i = 0; i < count && !status; i++) {
        int by_size = sizes[i] >= 4 * bench->cache_bytes;
        for (int s = 0; s < SCENES && !status; s++) {
            if (2 * sizes[i] <= bench->cache_bytes)
                status = measure_scene(bench, &scenes[s], sizes[i], GM_WARM, 0);
            if (!status)
                status = measure_scene(bench, &scenes[s], sizes[i], GM_COLD, by_size);
        }
    }
    return status;
}
