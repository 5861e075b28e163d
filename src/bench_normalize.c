/* bench normalize - (p - sub) * factor of images. The rival is a copy of as many bytes as the larger of the two stacks has. Bytes count as elements read and
 * written; what sub and factor add by pixel is not counted. */
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/kernels.h"
#include "src/bench.h"

#include <math.h>
#include <string.h>

enum {
    UNIT = 4096,        /* bytes that sizes are multiples of */
    BLOCKS = 64,        /* of a result that are looked at */
    BLOCK = 4096,       /* elements of one */
    FRAME = 2048 * 2048 /* elements that have a sub and a factor each */
};

typedef struct scene {
    const char *name;
    gm_dtype in, out;
    int wide, by_pixel;
    gm_rounding rounding;
    double sub, factor, lo, hi; /* by pixel: up to half as much again, at random */
    double old;                 /* GB/s in the text on unsigned short pixels; 0: not in it */
} scene;

static const scene scenes[] = {
    {"u16-u16 nearest-even", GM_U16, GM_U16, 0, 0, GM_ROUND_NEAREST_EVEN, 3000, 1.06, 0, 65535, 20},
    {"u16-u16 half-up", GM_U16, GM_U16, 0, 0, GM_ROUND_HALF_UP, 3000, 1.06, 0, 65535, 26},
    {"u16-u16 truncate", GM_U16, GM_U16, 0, 0, GM_ROUND_TRUNCATE, 3000, 1.06, 0, 65535, 26},
    {"u16-f32", GM_U16, GM_F32, 0, 0, GM_ROUND_NEAREST_EVEN, 100, 1 / 65000., 0, 1, 0},
    {"f32-f32", GM_F32, GM_F32, 0, 0, GM_ROUND_NEAREST_EVEN, 0.01, 1.01, 0, 1, 0},
    {"u8-u8", GM_U8, GM_U8, 0, 0, GM_ROUND_NEAREST_EVEN, 12, 1.06, 0, 255, 0},
    {"f64-f64", GM_F64, GM_F64, 1, 0, GM_ROUND_NEAREST_EVEN, 0.01, 1.01, 0, 1, 0},
    {"flatfield u16-f32", GM_U16, GM_F32, 0, 1, GM_ROUND_NEAREST_EVEN, 100, 1 / 40000., -INFINITY, INFINITY, 0},
    {"flatfield u16-u16", GM_U16, GM_U16, 0, 1, GM_ROUND_NEAREST_EVEN, 100, 0.9, 0, 65535, 0},
};
enum { SCENES = sizeof scenes / sizeof scenes[0] };

/* A scene at work. on_...: device memory. */
typedef struct work {
    gm_bench *bench;
    const scene *scene;
    int64_t bytes; /* of the larger of src and out */
    int64_t rows, cols;
    uint64_t key;
    void *on_src, *on_out, *on_sub, *on_factor, *on_counts;
    void *sub, *factor; /* host memory, the same numbers */
} work;

static gm_normalize_call make_call(const work *w)
{
    const scene *s = w->scene;
    gm_normalize_call call = {.rows = w->rows, .cols = w->cols, .src = w->on_src, .src_type = s->in, .out = w->on_out, .out_type = s->out, .wide = s->wide,
                              .sub = w->on_sub, .factor = w->on_factor, .col_step = s->by_pixel, .rounding = s->rounding, .lo = s->lo, .hi = s->hi,
                              .counts = w->on_counts};
    float lo = (float)s->lo, hi = (float)s->hi;
    if (gm_dtype_get_kind(s->out) != GM_FLOAT) {
        call.below = (uint64_t)s->lo;
        call.above = (uint64_t)s->hi;
    } else if (s->out == GM_F32) {
        memcpy(&call.below, &lo, sizeof lo);
        memcpy(&call.above, &hi, sizeof hi);
    } else {
        memcpy(&call.below, &s->lo, sizeof s->lo);
        memcpy(&call.above, &s->hi, sizeof s->hi);
    }
    return call;
}

static int run_normalize(void *context, gm_queue *queue)
{
    const work *w = context;
    gm_normalize_call call = make_call(w);
    return w->bench->ops->normalize(queue, &call);
}

static int run_copy(void *context, gm_queue *queue)
{
    const work *w = context;
    return w->bench->measure->copy_rival(queue, w->on_out, w->on_src, (size_t)w->bytes);
}

/* n subs or factors: base, or something between that and one and a half times as much. */
static int make_gains(work *w, double base, uint64_t dataset, int64_t n, void **host, void **device)
{
    size_t size = w->scene->wide ? sizeof(double) : sizeof(float);
    int status = gm_host_alloc((size_t)n * size, host);
    if (!status)
        status = w->bench->ops->alloc(w->bench->device, (size_t)n * size, device);
    for (int64_t i = 0; i < n && !status; i++) {
        double random = n > 1 ? (double)(gm_random_bits(gm_random_key(1, dataset), (uint64_t)i) >> 11) * 0x1p-54 : 0, value = base * (1 + random);
        if (w->scene->wide)
            ((double *)*host)[i] = value;
        else
            ((float *)*host)[i] = (float)value;
    }
    return status ? status : gm_bench_upload(w->bench, *device, *host, (size_t)n * size);
}

static int make_data(work *w)
{
    gm_bench *bench = w->bench;
    int64_t n = w->rows * w->cols, line = UNIT / 8; /* divides n */
    int status = bench->ops->alloc(bench->device, (size_t)w->bytes, &w->on_src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)w->bytes, &w->on_out);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof(gm_normalize_counts), &w->on_counts);
    if (!status)
        status = bench->ops->zero(bench->queue, w->on_counts, sizeof(gm_normalize_counts));
    if (!status && n * (int64_t)gm_dtype_size(w->scene->in) < w->bytes) /* the copy reads what lies behind the elements, too */
        status = gm_bench_fill(bench, w->on_src, GM_U64, w->bytes / UNIT, UNIT / 8, UNIT / 8, w->key + 1);
    if (!status)
        status = gm_bench_fill(bench, w->on_src, w->scene->in, n / line, line, line, w->key);
    return status;
}

static void free_data(work *w)
{
    w->bench->ops->free(w->bench->device, w->on_factor);
    w->bench->ops->free(w->bench->device, w->on_sub);
    w->bench->ops->free(w->bench->device, w->on_counts);
    w->bench->ops->free(w->bench->device, w->on_out);
    w->bench->ops->free(w->bench->device, w->on_src);
    gm_host_free(w->factor);
    gm_host_free(w->sub);
}

/* How many elements of a block from element `at` on, within one row, are not what the processor makes of the same numbers. */
static int check_block(const work *w, int64_t at, int64_t *wrong)
{
    uint64_t src[BLOCK], right[BLOCK], got[BLOCK]; /* of up to 8 bytes each */
    gm_normalize_counts counts = {0};
    int64_t row = at / w->cols, col = at % w->cols, n = gm_min(BLOCK, w->cols - col);
    size_t out = gm_dtype_size(w->scene->out), real = w->scene->wide ? sizeof(double) : sizeof(float);
    gm_normalize_call call = make_call(w);
    gm_cpu_random(src, w->scene->in, 0, GM_DISTRIBUTION_UNIFORM, w->key, row * w->cols + col, n);
    call.rows = 1;
    call.cols = n;
    call.src = src;
    call.out = right;
    call.sub = (const char *)w->sub + (size_t)(col * call.col_step) * real;
    call.factor = (const char *)w->factor + (size_t)(col * call.col_step) * real;
    call.counts = &counts;
    int status = gm_cpu_normalize(1, &call);
    if (!status)
        status = gm_bench_download(w->bench, got, (const char *)w->on_out + (size_t)at * out, (size_t)n * out);
    for (int64_t i = 0; i < n && !status; i++)
        *wrong += memcmp((char *)got + (size_t)i * out, (char *)right + (size_t)i * out, out) != 0;
    return status;
}

/* Blocks from all over out, the first and the last elements among them. */
static int check_blocks(work *w, int64_t *wrong)
{
    int64_t n = w->rows * w->cols, block = gm_min(BLOCK, n);
    int status = w->bench->ops->zero(w->bench->queue, w->on_out, (size_t)w->bytes);
    if (!status)
        status = run_normalize(w, w->bench->queue);
    for (int i = 0; i < BLOCKS && !status; i++)
        status = check_block(w, i == BLOCKS - 1 ? n - block : (n - block) / (BLOCKS - 1) * i, wrong);
    return status;
}

/* The rule in plain C, as float32 does it: for all codes of an unsigned short. */
static uint16_t plain_rule(int code, float sub, float factor, gm_rounding rounding, uint64_t *clipped)
{
    volatile float difference = (float)code - sub, value = difference * factor, raised = value + 0.5f; /* each rounded, whatever the compiler likes */
    float whole = rounding == GM_ROUND_NEAREST_EVEN ? rintf(value) : rounding == GM_ROUND_HALF_UP ? floorf(raised) : truncf(value);
    *clipped += whole < 0 || whole > 65535;
    return whole < 0 ? 0 : whole > 65535 ? 65535 : (uint16_t)whole;
}

static const float pairs[][2] = {{0, 1}, {1234.5f, 1.7f}, {100, 65535.0f / 4000}, {-31.25f, 0.01f}, {40000, -2.5f}};
enum { CODES = 65536, PAIRS = sizeof pairs / sizeof pairs[0] };

/* How many of the codes come out wrong on the device with any of the pairs of sub and factor. */
static int check_codes(gm_bench *bench, gm_rounding rounding, int64_t *wrong)
{
    static const scene codes = {"", GM_U16, GM_U16, 0, 0, GM_ROUND_NEAREST_EVEN, 0, 0, 0, 65535, 0};
    uint16_t src[CODES], got[CODES];
    work w = {.bench = bench, .scene = &codes, .rows = 1, .cols = CODES};
    int status = bench->ops->alloc(bench->device, sizeof src, &w.on_src);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof got, &w.on_out);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof pairs, &w.on_sub);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof(gm_normalize_counts), &w.on_counts);
    for (int i = 0; i < CODES; i++)
        src[i] = (uint16_t)i;
    if (!status)
        status = gm_bench_upload(bench, w.on_src, src, sizeof src);
    if (!status)
        status = gm_bench_upload(bench, w.on_sub, pairs, sizeof pairs);
    for (int p = 0; p < PAIRS && !status; p++) {
        gm_normalize_counts counts;
        uint64_t clipped = 0;
        gm_normalize_call call = make_call(&w);
        call.rounding = rounding;
        call.sub = (const float *)w.on_sub + 2 * p;
        call.factor = (const float *)w.on_sub + 2 * p + 1;
        status = bench->ops->zero(bench->queue, w.on_counts, sizeof counts);
        if (!status)
            status = bench->ops->normalize(bench->queue, &call);
        if (!status)
            status = gm_bench_download(bench, got, w.on_out, sizeof got);
        if (!status)
            status = gm_bench_download(bench, &counts, w.on_counts, sizeof counts);
        for (int i = 0; i < CODES && !status; i++)
            *wrong += got[i] != plain_rule(i, pairs[p][0], pairs[p][1], rounding, &clipped);
        *wrong += !status && (counts.clipped != clipped || counts.nan != 0 || counts.marked != 0);
    }
    free_data(&w);
    return status;
}

/* What has to move at least once: the elements, and each sub and factor. */
static double bytes_moved(const work *w)
{
    size_t real = w->scene->wide ? sizeof(double) : sizeof(float);
    double elements = (double)(w->rows * w->cols), pixels = w->scene->by_pixel ? (double)w->cols : 1;
    return elements * (double)(gm_dtype_size(w->scene->in) + gm_dtype_size(w->scene->out)) + pixels * 2 * (double)real;
}

static int add_row(work *w, gm_heat heat, const gm_timing *timings, int64_t wrong)
{
    const scene *s = w->scene;
    char size[GM_SIZE_TEXT];
    gm_bench_row row = {.test = "normalize", .kernel = "normalize", .heat = heat, .timing = timings[0], .unit = gm_unit_bytes,
                        .work = bytes_moved(w),
                        .limit = heat == GM_COLD ? w->bench->job->info.memory_limit : 0,
                        .rival = timings[1].median > 0 ? 2.0 * (double)w->bytes / timings[1].median : 0,
                        .max_error = (double)wrong, .mean_error = -1, .old = {s->old * 1e9, -1, -1}};
    snprintf(row.variant, sizeof row.variant, "%s", s->name);
    snprintf(row.shape, sizeof row.shape, "%s", gm_size_format(w->bytes, size));
    return gm_bench_add(w->bench, &row);
}

static int measure_scene(gm_bench *bench, const scene *s, int64_t bytes, gm_heat heat, int by_size)
{
    int64_t n = bytes / gm_max((int64_t)gm_dtype_size(s->in), (int64_t)gm_dtype_size(s->out)), wrong = 0;
    work w = {.bench = bench, .scene = s, .bytes = bytes, .rows = 1, .cols = n, .key = gm_random_key(1, 2)};
    gm_timing timings[2] = {0};
    if (s->by_pixel) {
        w.cols = gm_min(FRAME, gm_max(n / 16, 1)); /* of few elements as well, frames are several */
        w.rows = n / w.cols;
    }
    int status = make_data(&w);
    if (!status)
        status = make_gains(&w, s->sub, 3, s->by_pixel ? w.cols : 1, &w.sub, &w.on_sub);
    if (!status)
        status = make_gains(&w, s->factor, 4, s->by_pixel ? w.cols : 1, &w.factor, &w.on_factor);
    gm_subject subjects[2] = {{run_normalize, &w}, {run_copy, &w}};
    if (!status)
        status = gm_bench_time(bench, subjects, 2, by_size ? GM_WARM : heat, timings); /* large buffers flush the cache themselves */
    if (!status)
        status = check_blocks(&w, &wrong);
    if (!status && s->in == GM_U16 && s->out == GM_U16 && !s->by_pixel)
        status = check_codes(bench, s->rounding, &wrong);
    if (!status)
        status = add_row(&w, heat, timings, wrong);
    if (!status && wrong > 0)
        status = gm_fail(GM_ECHECK, "bench normalize: %s: %lld elements looked at are wrong", s->name, (long long)wrong);
    free_data(&w);
    return status;
}

int gm_bench_normalize(gm_bench *bench)
{
    int64_t sizes[GM_BENCH_SIZES] = {gm_bench_large(bench, UNIT)};
    int count = 1, status = GM_OK;
    if (!bench->ops->normalize || !bench->measure->copy_rival) {
        gm_note("bench normalize: not supported on a device of kind %s", bench->ops->kind);
        return GM_OK;
    }
    if (bench->job->options->shapes)
        status = gm_bench_parse_sizes(bench, "normalize", UNIT, sizes, &count);
    for (int i = 0; i < count && !status; i++) {
        int by_size = 2 * sizes[i] >= 4 * bench->cache_bytes;
        for (int s = 0; s < SCENES && !status; s++) {
            if (2 * sizes[i] <= bench->cache_bytes)
                status = measure_scene(bench, &scenes[s], sizes[i], GM_WARM, 0);
            if (!status && (by_size || bench->measure->flush))
                status = measure_scene(bench, &scenes[s], sizes[i], GM_COLD, by_size);
        }
    }
    return status;
}
