/* normalize of every type to every type, bit for bit against the same steps through libm, one element at a time. */
#include <math.h>

#include "base/statistics.h"
#include "kernels/normalize/calls.h"
#include "tests/kernels/each.h"

enum { ROWS = 5, COLS = 1037, FEW_COLS = 133 };
enum { MOST = 208000, MOST_COLS = 10256 }; /* elements, and subs and factors, of a call */

static int few; /* under valgrind: shorter rows, and of numbers that are all alike to it some */

/* Any bits, or a small number. */
static double element(uint64_t *state, gm_dtype type, int swap, unsigned char *out)
{
    unsigned char raw[8];
    size_t size = gm_dtype_size(type);
    if (random_bits(state) % 4)
        return random_element(state, type, swap, out);
    uint64_t bits = random_bits(state);
    if (gm_dtype_get_kind(type) == GM_FLOAT && bits % 8 == 0) { /* NaN, infinities, zeros, denormals */
        uint64_t infinity = infinity_bits(type), sign = (uint64_t)1 << (8 * size - 1);
        const uint64_t special[] = {infinity | infinity >> 1 | 1, sign | infinity, infinity, sign, 0, 1};
        bits = special[bits / 8 % 6];
    }
    memcpy(raw, &bits, sizeof raw);
    for (size_t i = 0; i < size; i++)
        out[i] = raw[swap ? size - 1 - i : i];
    switch (type) {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) \
    case GM_DTYPE_##id: {                              \
        gm_raw##bytes plain;                           \
        memcpy(&plain, raw, bytes);                    \
        return gm_f64_##id(plain, 0);                  \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE
    default:
        return 0;
    }
}

static double rounded(double v, int wide)
{
    volatile float narrow = (float)v;
    return wide ? v : narrow;
}

static double whole(double v, gm_rounding rounding, int wide)
{
    return rounding == GM_ROUND_NEAREST_EVEN ? rint(v)
           : rounding == GM_ROUND_HALF_UP    ? floor(rounded(v + 0.5, wide))
                                             : trunc(v);
}

/* An element of a type that holds v, in the low bytes. */
static uint64_t pack(gm_dtype type, double v)
{
    uint64_t raw = 0;
    gm_value value = {.kind = GM_VALUE_REAL, .real = v};
    if (gm_dtype_get_kind(type) == GM_FLOAT)
        gm_value_store(&value, type, &raw);
    else
        raw = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
    return gm_dtype_size(type) == 8 ? raw : raw & (((uint64_t)1 << (8 * gm_dtype_size(type))) - 1);
}

static int is_number(gm_dtype type, uint64_t raw)
{
    return (raw & (((uint64_t)1 << (8 * gm_dtype_size(type) - 1)) - 1)) <= infinity_bits(type);
}

/* The expected result of p; a logarithm is compared with a tolerance (*near). */
static uint64_t expect(const gm_normalize_call *call, double p, double sub, double factor, gm_normalize_counts *counts,
                       int *near)
{
    int wide = call->wide, is_float = gm_dtype_get_kind(call->out_type) == GM_FLOAT;
    const uint64_t none = is_float ? infinity_bits(call->out_type) | infinity_bits(call->out_type) >> 1 : 0;
    volatile double difference = rounded(p - sub, wide), product = rounded(difference * factor, wide);
    double v = call->add != 0 ? rounded(product + call->add, wide) : product;
    *near = 0;
    if (isnan(factor) && !isnan(p)) {
        counts->marked++;
        return call->marked;
    }
    if (call->log) {
        *near = 1;
        v = rounded((double)-logl((long double)v), wide);
    }
    if (isnan(v)) {
        counts->nan++;
        return is_float ? none : 0;
    }
    if (!is_float)
        v = whole(v, call->rounding, wide);
    counts->clipped += v < call->lo || v > call->hi ||
                       (is_float && isfinite(v) && isinf(bits_value(call->out_type, pack(call->out_type, v))));
    return v >= call->hi ? call->above : v <= call->lo ? call->below : pack(call->out_type, v);
}

/* Distance in units of the last place of two numbers of the same sign. */
static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static double limit_of(gm_dtype type, int upper)
{
    double bits = 8.0 * (double)gm_dtype_size(type);
    switch (gm_dtype_get_kind(type)) {
    case GM_UNSIGNED:
        return upper ? exp2(bits) - (bits < 64) : 0;
    case GM_SIGNED:
        return upper ? exp2(bits - 1) - (bits < 64) : -exp2(bits - 1);
    default:
        return upper ? INFINITY : -INFINITY;
    }
}

static uint64_t all_ones(gm_dtype type)
{
    return ~(uint64_t)0 >> (64 - 8 * gm_dtype_size(type) + (gm_dtype_get_kind(type) == GM_SIGNED));
}

typedef struct data {
    unsigned char src[(MOST + 1) * 8], out[MOST * 8];
    double p[MOST], sub[MOST_COLS], factor[MOST_COLS];
    float sub32[MOST_COLS], factor32[MOST_COLS];
} data;

/* How many numbers there are to subtract, and to multiply by. */
static int64_t scales_of(const gm_normalize_call *call)
{
    return call->col_step ? call->cols : call->row_step ? call->rows : 1;
}

/* A few factors are marked. */
static void make_scales(data *d, const gm_normalize_call *call, uint64_t *state)
{
    double span = gm_dtype_get_kind(call->out_type) == GM_FLOAT ? 1 : call->hi - call->lo;
    double from = gm_dtype_get_kind(call->src_type) == GM_FLOAT ? 1 : limit_of(call->src_type, 1);
    for (int64_t i = 0; i < scales_of(call); i++) {
        d->sub[i] = random_real(state) * from / 4;
        d->factor[i] = (random_real(state) + 0.2) * span / from * 1.5;
        if (random_bits(state) % 64 == 0)
            d->factor[i] = NAN;
        d->sub32[i] = (float)d->sub[i];
        d->factor32[i] = (float)d->factor[i];
        if (!call->wide) {
            d->sub[i] = d->sub32[i];
            d->factor[i] = d->factor32[i];
        }
    }
}

/* Runs a call whose shape and types are set, with `before` elements, 0 or 1, before the first of src; returns how many
 * elements are wrong, and checks the counts. */
static int64_t run(bench *b, data *d, gm_normalize_call call, int before, uint64_t seed)
{
    if (!is_due())
        return 0;
    size_t from = gm_dtype_size(call.src_type), to = gm_dtype_size(call.out_type),
           real = call.wide ? sizeof(double) : sizeof(float);
    gm_normalize_counts counts = {1, 2, 3}, expected = counts;
    int64_t n = call.rows * call.cols, bad = 0;
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++)
        d->p[i] = rounded(element(&state, call.src_type, call.swap, d->src + (size_t)(i + before) * from), call.wide);
    make_scales(d, &call, &state);
    void *src = lend(b, d->src, (size_t)(n + before) * from), *out = lend(b, NULL, (size_t)n * to),
         *on_counts = lend(b, &counts, sizeof counts);
    size_t scales = (size_t)scales_of(&call) * real;
    void *sub = lend(b, call.wide ? (void *)d->sub : d->sub32, scales),
         *factor = lend(b, call.wide ? (void *)d->factor : d->factor32, scales);
    call.src = (char *)src + (size_t)before * from;
    call.out = out;
    call.sub = sub;
    call.factor = factor;
    call.counts = on_counts;
    must(b->ops->normalize(b->queue, &call));
    reclaim(b, out, d->out, (size_t)n * to);
    reclaim(b, on_counts, &counts, sizeof counts);
    reclaim(b, src, NULL, 0);
    reclaim(b, sub, NULL, 0);
    reclaim(b, factor, NULL, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / call.cols * call.row_step + i % call.cols * call.col_step;
        uint64_t got = 0;
        int near;
        uint64_t want = expect(&call, d->p[i], d->sub[at], d->factor[at], &expected, &near);
        memcpy(&got, d->out + (size_t)i * to, to);
        bad += near && is_number(call.out_type, want) ? distance(got, want) > 2 : got != want;
    }
    if (memcmp(&counts, &expected, sizeof counts))
        tap_diag("clipped %llu nan %llu marked %llu, expected %llu %llu %llu", (unsigned long long)counts.clipped,
                 (unsigned long long)counts.nan, (unsigned long long)counts.marked,
                 (unsigned long long)expected.clipped, (unsigned long long)expected.nan,
                 (unsigned long long)expected.marked);
    return bad + (memcmp(&counts, &expected, sizeof counts) != 0);
}

static int is_wide(gm_dtype type)
{
    return gm_dtype_digits(type) > 24;
}

/* Limits that are elements of out. */
static void set_limits(gm_normalize_call *call, double lo, double hi)
{
    call->lo = lo;
    call->hi = hi;
    call->below = pack(call->out_type, lo);
    call->above = pack(call->out_type, hi);
}

/* Types, orders of bytes, what varies with what, limits, roundings. */
static void test_pair(bench *b, data *d, gm_dtype from, gm_dtype to)
{
    int64_t bad = 0, cols = few ? FEW_COLS : COLS;
    int is_float = gm_dtype_get_kind(to) == GM_FLOAT;
    for (int i = 0; i < 24; i++) {
        gm_normalize_call call = {.rows = i % 4 == 3 ? 1 : ROWS,
                                  .cols = i % 4 == 3 ? ROWS * cols / 7 : cols,
                                  .src_type = from,
                                  .swap = i % 2,
                                  .out_type = to,
                                  .wide = i % 3 == 0 || is_wide(from) || is_wide(to),
                                  .row_step = i % 3 == 1,
                                  .col_step = i % 3 == 2 && i % 4 != 3,
                                  .add = i % 5      ? 0
                                         : is_float ? 0.25
                                                    : 3,
                                  .rounding = (gm_rounding)(i / 2 % 3),
                                  .lo = limit_of(to, 0),
                                  .hi = limit_of(to, 1),
                                  .marked = pack(to, 7)};
        call.below = is_float ? pack(to, -INFINITY) : gm_dtype_get_kind(to) == GM_SIGNED ? all_ones(to) + 1 : 0;
        call.above = is_float ? pack(to, INFINITY) : all_ones(to);
        if (i >= 12)
            set_limits(&call, is_float ? -0.25 : 5, is_float ? 0.5 : 100);
        if (i % 4 == 3)
            call.row_step = 0;
        bad += run(b, d, call, 1, (uint64_t)(1000 * from + 50 * to + (gm_dtype)i));
    }
    tap_ok(bad == 0, "%s normalize %s to %s: %lld wrong", b->ops->kind, gm_dtype_name(from), gm_dtype_name(to),
           (long long)bad);
}

/* Types of images, of which many rows and words are made at a time. */
static const gm_dtype image_types[][2] = {
    {GM_DTYPE_U16, GM_DTYPE_U16}, {GM_DTYPE_U16, GM_DTYPE_F32}, {GM_DTYPE_U16, GM_DTYPE_U8},
    {GM_DTYPE_F32, GM_DTYPE_F32}, {GM_DTYPE_F32, GM_DTYPE_U16}, {GM_DTYPE_U8, GM_DTYPE_U8},
    {GM_DTYPE_U8, GM_DTYPE_F32},  {GM_DTYPE_I16, GM_DTYPE_I16}, {GM_DTYPE_F64, GM_DTYPE_F64}};

/* Long rows, and many: src where words of 16 bytes lie, and an element further on. */
static void test_images(bench *b, data *d, gm_dtype from, gm_dtype to)
{
    static const struct {
        int64_t rows, cols;
        int by_row, by_col;
    } shapes[] = {{13, MOST_COLS, 0, 1}, {50, 4109, 0, 1}, {100, 2000, 0, 1}, {1, MOST, 0, 0}, {4, 51997, 1, 0}};
    int is_float = gm_dtype_get_kind(to) == GM_FLOAT;
    int64_t bad = 0;
    for (size_t i = (size_t)few; i < 2 * sizeof shapes / sizeof shapes[0]; i += few ? 2 : 1) {
        gm_normalize_call call = {.rows = shapes[i / 2].rows,
                                  .cols = shapes[i / 2].cols,
                                  .src_type = from,
                                  .swap = i % 3 == 2,
                                  .out_type = to,
                                  .wide = is_wide(from) || is_wide(to),
                                  .row_step = shapes[i / 2].by_row,
                                  .col_step = shapes[i / 2].by_col,
                                  .rounding = (gm_rounding)(i % 3),
                                  .marked = pack(to, 7)};
        set_limits(&call, is_float ? -INFINITY : 5, is_float ? INFINITY : 100);
        bad += run(b, d, call, i % 2, 7000 + i);
    }
    tap_ok(bad == 0, "%s normalize images, %s to %s: %lld wrong", b->ops->kind, gm_dtype_name(from), gm_dtype_name(to),
           (long long)bad);
}

/* Every 16-bit code, every rounding, factors and subtrahends as minmax and scale have them. */
static void test_codes(bench *b)
{
    enum { CODES = 65536 };
    static const float pairs[][2] = {
        {0, 1}, {100, 65535.0f / (60000 - 100)}, {-0.5f, 0.5f}, {32768, 1.9999999f}, {1234.567f, 0.01234567f}};
    uint16_t *src = host_memory(CODES * sizeof *src), *out = host_memory(CODES * sizeof *out);
    for (int i = 0; i < CODES; i++)
        src[i] = (uint16_t)i;
    for (int pair = 0; pair < (few ? 1 : 5); pair++) {
        for (int rounding = 0; rounding < 3; rounding++) {
            int64_t bad = 0;
            void *on_src = lend(b, src, CODES * sizeof *src), *on_out = lend(b, NULL, CODES * sizeof *out),
                 *scales = lend(b, pairs[pair], sizeof pairs[pair]);
            void *counts = lend(b, NULL, sizeof(gm_normalize_counts));
            gm_normalize_call call = {.rows = 1,
                                      .cols = CODES,
                                      .src = on_src,
                                      .src_type = GM_DTYPE_U16,
                                      .out = on_out,
                                      .out_type = GM_DTYPE_U16,
                                      .sub = scales,
                                      .factor = (float *)scales + 1,
                                      .rounding = (gm_rounding)rounding,
                                      .hi = 65535,
                                      .above = 65535,
                                      .counts = counts};
            must(b->ops->normalize(b->queue, &call));
            reclaim(b, on_out, out, CODES * sizeof *out);
            reclaim(b, on_src, NULL, 0);
            reclaim(b, scales, NULL, 0);
            reclaim(b, counts, NULL, 0);
            for (int i = 0; i < CODES; i++) {
                volatile float difference = (float)i - pairs[pair][0], v = difference * pairs[pair][1], half = v + 0.5f;
                float r = rounding == GM_ROUND_NEAREST_EVEN ? rintf(v)
                          : rounding == GM_ROUND_HALF_UP    ? floorf(half)
                                                            : truncf(v);
                bad += out[i] != (r <= 0 ? 0 : r >= 65535 ? 65535 : (uint16_t)r);
            }
            tap_ok(bad == 0, "%s normalize of all 16-bit codes, rounding %d, pair %d: %lld wrong", b->ops->kind,
                   rounding, pair, (long long)bad);
        }
    }
    free(src);
    free(out);
}

static void test_log(bench *b, data *d, gm_dtype from, gm_dtype to, int wide)
{
    gm_normalize_call call = {.rows = ROWS,
                              .cols = COLS,
                              .src_type = from,
                              .out_type = to,
                              .wide = wide,
                              .col_step = 1,
                              .log = 1,
                              .lo = -INFINITY,
                              .hi = INFINITY,
                              .below = pack(to, -INFINITY),
                              .above = pack(to, INFINITY),
                              .marked = pack(to, 0)};
    int64_t bad = run(b, d, call, 1, 99);
    tap_ok(bad == 0, "%s normalize %s to %s in float%d with logarithm: %lld wrong", b->ops->kind, gm_dtype_name(from),
           gm_dtype_name(to), wide ? 64 : 32, (long long)bad);
}

static void test_normalize(bench *b)
{
    data *d = host_memory(sizeof *d);
    if (b->ops->normalize == NULL) {
        tap_skip("not supported", "%s normalize", b->ops->kind);
        free(d);
        return;
    }
    for (int from = 0; from < GM_DTYPES; from++)
        for (int to = 0; to < GM_DTYPES; to++)
            test_pair(b, d, (gm_dtype)from, (gm_dtype)to);
    for (size_t i = 0; i < sizeof image_types / sizeof image_types[0]; i++)
        test_images(b, d, image_types[i][0], image_types[i][1]);
    test_codes(b);
    test_log(b, d, GM_DTYPE_U16, GM_DTYPE_F32, 0);
    test_log(b, d, GM_DTYPE_F32, GM_DTYPE_F32, 0);
    test_log(b, d, GM_DTYPE_U16, GM_DTYPE_F64, 1);
    test_log(b, d, GM_DTYPE_F64, GM_DTYPE_F64, 1);
    free(d);
}

int main(void)
{
    few = getenv("GPUMEM_TEST_MEMCHECK") != NULL;
    each_device(test_normalize);
    return tap_done();
}
