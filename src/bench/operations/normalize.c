/* bench normalize - (p - sub) * factor of images. The rival is a copy of the larger of the two stacks. Bytes count once
 * as read and once as written. */
#include "base/memory.h"
#include "base/size.h"
#include "kernels/host.h"
#include "kernels/normalize/calls.h"
#include "src/bench/bench.h"

#include <math.h>
#include <string.h>

enum {
    UNIT = 4096,        /* bytes that sizes are multiples of */
    BLOCKS = 64,        /* of a result that are checked */
    BLOCK = 4096,       /* elements of one */
    FRAME = 2048 * 2048 /* pixels, each with its own sub and factor */
};

typedef struct variant {
    const char *name;
    gm_dtype in, out;
    int wide, by_pixel;
    gm_rounding rounding;
    double sub, factor, lo, hi; /* sub and factor by pixel: times a random number in [1, 1.5) */
    double published;           /* GB/s; 0: none */
} variant;

static const variant variants[] = {
    {"u16-u16 nearest-even", GM_DTYPE_U16, GM_DTYPE_U16, 0, 0, GM_ROUND_NEAREST_EVEN, 3000, 1.06, 0, 65535, 20},
    {"u16-u16 half-up", GM_DTYPE_U16, GM_DTYPE_U16, 0, 0, GM_ROUND_HALF_UP, 3000, 1.06, 0, 65535, 26},
    {"u16-u16 truncate", GM_DTYPE_U16, GM_DTYPE_U16, 0, 0, GM_ROUND_TRUNCATE, 3000, 1.06, 0, 65535, 26},
    {"u16-f32", GM_DTYPE_U16, GM_DTYPE_F32, 0, 0, GM_ROUND_NEAREST_EVEN, 100, 1 / 65000., 0, 1, 0},
    {"f32-f32", GM_DTYPE_F32, GM_DTYPE_F32, 0, 0, GM_ROUND_NEAREST_EVEN, 0.01, 1.01, 0, 1, 0},
    {"u8-u8", GM_DTYPE_U8, GM_DTYPE_U8, 0, 0, GM_ROUND_NEAREST_EVEN, 12, 1.06, 0, 255, 0},
    {"f64-f64", GM_DTYPE_F64, GM_DTYPE_F64, 1, 0, GM_ROUND_NEAREST_EVEN, 0.01, 1.01, 0, 1, 0},
    {"flatfield u16-f32", GM_DTYPE_U16, GM_DTYPE_F32, 0, 1, GM_ROUND_NEAREST_EVEN, 100, 1 / 40000., -INFINITY, INFINITY,
     0},
    {"flatfield u16-u16", GM_DTYPE_U16, GM_DTYPE_U16, 0, 1, GM_ROUND_NEAREST_EVEN, 100, 0.9, 0, 65535, 0},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* The data of a variant. on_...: device memory. */
typedef struct buffers {
    gm_bench *bench;
    const variant *variant;
    int64_t bytes; /* of the larger of src and out */
    int64_t rows, cols;
    uint64_t key;
    void *on_src, *on_out, *on_sub, *on_factor, *on_counts;
    void *sub, *factor; /* host memory, the same values */
} buffers;

static gm_normalize_call make_call(const buffers *b)
{
    const variant *s = b->variant;
    gm_normalize_call call = {.rows = b->rows,
                              .cols = b->cols,
                              .src = b->on_src,
                              .src_type = s->in,
                              .out = b->on_out,
                              .out_type = s->out,
                              .wide = s->wide,
                              .sub = b->on_sub,
                              .factor = b->on_factor,
                              .col_step = s->by_pixel,
                              .rounding = s->rounding,
                              .lo = s->lo,
                              .hi = s->hi,
                              .counts = b->on_counts};
    float lo = (float)s->lo, hi = (float)s->hi;
    if (gm_dtype_get_kind(s->out) != GM_FLOAT) {
        call.below = (uint64_t)s->lo;
        call.above = (uint64_t)s->hi;
    } else if (s->out == GM_DTYPE_F32) {
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
    const buffers *b = context;
    gm_normalize_call call = make_call(b);
    return b->bench->ops->normalize(queue, &call);
}

static int run_copy(void *context, gm_queue *queue)
{
    const buffers *b = context;
    return b->bench->measure->copy_rival(queue, b->on_out, b->on_src, (size_t)b->bytes);
}

/* n values of sub or factor: base if n is 1, else random numbers in [base, 1.5 base). */
static int make_gains(buffers *b, double base, uint64_t dataset, int64_t n, void **host, void **device)
{
    size_t size = b->variant->wide ? sizeof(double) : sizeof(float);
    int status = gm_host_alloc((size_t)n * size, host);
    if (!status)
        status = b->bench->ops->alloc(b->bench->device, (size_t)n * size, device);
    for (int64_t i = 0; i < n && !status; i++) {
        double random = n > 1 ? (double)(gm_random_bits(gm_random_key(1, dataset), (uint64_t)i) >> 11) * 0x1p-54 : 0,
               value = base * (1 + random);
        if (b->variant->wide)
            ((double *)*host)[i] = value;
        else
            ((float *)*host)[i] = (float)value;
    }
    return status ? status : gm_bench_upload(b->bench, *device, *host, (size_t)n * size);
}

static int make_data(buffers *b)
{
    gm_bench *bench = b->bench;
    int64_t n = b->rows * b->cols, line = UNIT / 8; /* divides n */
    int status = bench->ops->alloc(bench->device, (size_t)b->bytes, &b->on_src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)b->bytes, &b->on_out);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof(gm_normalize_counts), &b->on_counts);
    if (!status)
        status = bench->ops->zero(bench->queue, b->on_counts, sizeof(gm_normalize_counts));
    if (!status &&
        n * (int64_t)gm_dtype_size(b->variant->in) < b->bytes) /* the copy reads the bytes after the elements too */
        status = gm_bench_fill(bench, b->on_src, GM_DTYPE_U64, b->bytes / UNIT, UNIT / 8, UNIT / 8, b->key + 1);
    if (!status)
        status = gm_bench_fill(bench, b->on_src, b->variant->in, n / line, line, line, b->key);
    return status;
}

static void free_data(buffers *b)
{
    b->bench->ops->free(b->bench->device, b->on_factor);
    b->bench->ops->free(b->bench->device, b->on_sub);
    b->bench->ops->free(b->bench->device, b->on_counts);
    b->bench->ops->free(b->bench->device, b->on_out);
    b->bench->ops->free(b->bench->device, b->on_src);
    gm_host_free(b->factor);
    gm_host_free(b->sub);
}

/* Compares a block that begins at element `at` and ends with its row at the latest with the result of the processor.
 * Adds the number of wrong elements to *wrong. */
static int check_block(const buffers *b, int64_t at, int64_t *wrong)
{
    uint64_t src[BLOCK], right[BLOCK], got[BLOCK]; /* of up to 8 bytes each */
    gm_normalize_counts counts = {0};
    int64_t row = at / b->cols, col = at % b->cols, n = gm_min(BLOCK, b->cols - col);
    size_t out = gm_dtype_size(b->variant->out), real = b->variant->wide ? sizeof(double) : sizeof(float);
    gm_normalize_call call = make_call(b);
    gm_cpu_random(src, b->variant->in, 0, GM_DISTRIBUTION_UNIFORM, b->key, row * b->cols + col, n);
    call.rows = 1;
    call.cols = n;
    call.src = src;
    call.out = right;
    call.sub = (const char *)b->sub + (size_t)(col * call.col_step) * real;
    call.factor = (const char *)b->factor + (size_t)(col * call.col_step) * real;
    call.counts = &counts;
    int status = gm_cpu_normalize(1, &call);
    if (!status)
        status = gm_bench_download(b->bench, got, (const char *)b->on_out + (size_t)at * out, (size_t)n * out);
    for (int64_t i = 0; i < n && !status; i++)
        *wrong += memcmp((char *)got + (size_t)i * out, (char *)right + (size_t)i * out, out) != 0;
    return status;
}

/* Checks blocks from all over out, the first and the last elements among them. */
static int check_blocks(buffers *b, int64_t *wrong)
{
    int64_t n = b->rows * b->cols, block = gm_min(BLOCK, n);
    int status = b->bench->ops->zero(b->bench->queue, b->on_out, (size_t)b->bytes);
    if (!status)
        status = run_normalize(b, b->bench->queue);
    for (int i = 0; i < BLOCKS && !status; i++)
        status = check_block(b, i == BLOCKS - 1 ? n - block : (n - block) / (BLOCKS - 1) * i, wrong);
    return status;
}

/* The rule in plain C and in float32, for one value of an unsigned short. */
static uint16_t plain_rule(int code, float sub, float factor, gm_rounding rounding, uint64_t *clipped)
{
    volatile float difference = (float)code - sub, value = difference * factor,
                   raised = value + 0.5f; /* volatile: each operation is rounded */
    float whole = rounding == GM_ROUND_NEAREST_EVEN ? rintf(value)
                  : rounding == GM_ROUND_HALF_UP    ? floorf(raised)
                                                    : truncf(value);
    *clipped += whole < 0 || whole > 65535;
    return whole < 0 ? 0 : whole > 65535 ? 65535 : (uint16_t)whole;
}

static const float pairs[][2] = {{0, 1}, {1234.5f, 1.7f}, {100, 65535.0f / 4000}, {-31.25f, 0.01f}, {40000, -2.5f}};
enum { CODES = 65536, PAIRS = sizeof pairs / sizeof pairs[0] };

/* Checks the device's results for all codes with each pair of sub and factor. Adds the number of wrong ones to *wrong.
 */
static int check_codes(gm_bench *bench, gm_rounding rounding, int64_t *wrong)
{
    static const variant codes = {"", GM_DTYPE_U16, GM_DTYPE_U16, 0, 0, GM_ROUND_NEAREST_EVEN, 0, 0, 0, 65535, 0};
    uint16_t src[CODES], got[CODES];
    buffers b = {.bench = bench, .variant = &codes, .rows = 1, .cols = CODES};
    int status = bench->ops->alloc(bench->device, sizeof src, &b.on_src);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof got, &b.on_out);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof pairs, &b.on_sub);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof(gm_normalize_counts), &b.on_counts);
    for (int i = 0; i < CODES; i++)
        src[i] = (uint16_t)i;
    if (!status)
        status = gm_bench_upload(bench, b.on_src, src, sizeof src);
    if (!status)
        status = gm_bench_upload(bench, b.on_sub, pairs, sizeof pairs);
    for (int p = 0; p < PAIRS && !status; p++) {
        gm_normalize_counts counts;
        uint64_t clipped = 0;
        gm_normalize_call call = make_call(&b);
        call.rounding = rounding;
        call.sub = (const float *)b.on_sub + 2 * p;
        call.factor = (const float *)b.on_sub + 2 * p + 1;
        status = bench->ops->zero(bench->queue, b.on_counts, sizeof counts);
        if (!status)
            status = bench->ops->normalize(bench->queue, &call);
        if (!status)
            status = gm_bench_download(bench, got, b.on_out, sizeof got);
        if (!status)
            status = gm_bench_download(bench, &counts, b.on_counts, sizeof counts);
        for (int i = 0; i < CODES && !status; i++)
            *wrong += got[i] != plain_rule(i, pairs[p][0], pairs[p][1], rounding, &clipped);
        *wrong += !status && (counts.clipped != clipped || counts.nan != 0 || counts.marked != 0);
    }
    free_data(&b);
    return status;
}

/* The bytes that must move at least once: the elements, and each sub and factor. */
static double bytes_moved(const buffers *b)
{
    size_t real = b->variant->wide ? sizeof(double) : sizeof(float);
    double elements = (double)(b->rows * b->cols), pixels = b->variant->by_pixel ? (double)b->cols : 1;
    return elements * (double)(gm_dtype_size(b->variant->in) + gm_dtype_size(b->variant->out)) +
           pixels * 2 * (double)real;
}

static int add_row(buffers *b, gm_cache_state cache, const gm_bench_timing *timings, int64_t wrong)
{
    gm_bench_row row = gm_bench_row_make(b->bench, b->variant->name, "normalize", cache, &timings[0]);
    row.work = bytes_moved(b);
    row.computed = gm_bench_memory_limit(b->bench, cache);
    row.rival = timings[1].median > 0 ? 2.0 * (double)b->bytes / timings[1].median : 0;
    row.max_error = (double)wrong;
    row.published = (gm_bench_published){b->variant->published * 1e9, -1, -1};
    gm_size_format(b->bytes, row.shape);
    return gm_bench_add(b->bench, &row);
}

static int measure_variant(gm_bench *bench, const variant *s, int64_t bytes, gm_bench_cache cache)
{
    int64_t n = bytes / gm_max((int64_t)gm_dtype_size(s->in), (int64_t)gm_dtype_size(s->out)), wrong = 0;
    buffers b = {.bench = bench, .variant = s, .bytes = bytes, .rows = 1, .cols = n, .key = gm_random_key(1, 2)};
    gm_bench_timing timings[2] = {0};
    if (s->by_pixel) {
        b.cols = gm_min(FRAME, gm_max(n / 16, 1)); /* several frames even of few elements */
        b.rows = n / b.cols;
    }
    int status = make_data(&b);
    if (!status)
        status = make_gains(&b, s->sub, 3, s->by_pixel ? b.cols : 1, &b.sub, &b.on_sub);
    if (!status)
        status = make_gains(&b, s->factor, 4, s->by_pixel ? b.cols : 1, &b.factor, &b.on_factor);
    gm_bench_case cases[2] = {{run_normalize, &b}, {run_copy, &b}};
    if (!status)
        status = gm_bench_time(bench, cases, 2, cache.flush, timings);
    if (!status)
        status = check_blocks(&b, &wrong);
    if (!status && s->in == GM_DTYPE_U16 && s->out == GM_DTYPE_U16 && !s->by_pixel)
        status = check_codes(bench, s->rounding, &wrong);
    if (!status)
        status = add_row(&b, cache.state, timings, wrong);
    if (!status && wrong > 0)
        status = gm_fail(GM_ECHECK, "bench normalize: %s: %lld of the checked elements are wrong", s->name,
                         (long long)wrong);
    free_data(&b);
    return status;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    gm_bench_cache caches[GM_CACHE_STATES];
    int count = gm_bench_cache_states(bench, 2 * bytes, 2 * bytes, caches), status = GM_OK;
    for (int v = 0; v < VARIANTS; v++)
        for (int c = 0; c < count && !status; c++)
            status = measure_variant(bench, &variants[v], bytes, caches[c]);
    return status;
}

int gm_bench_normalize(gm_bench *bench)
{
    if (!bench->ops->normalize || !bench->measure->copy_rival)
        return gm_bench_skip(bench, NULL);
    return gm_bench_each_size(bench, UNIT, NULL, 0, measure_size);
}
