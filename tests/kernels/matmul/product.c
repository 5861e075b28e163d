/* All products of every device against long double, and their promises about bits. */
#include <math.h>

#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "tests/kernels/each.h"

enum { GUARD = 3 }; /* columns of acc past n that must stay as they are */
static const double guard = 12345.0;

/* Of the result in its own type, relative to |A| |B|. */
static const double tolerance[GM_PRECISIONS] = {
    [GM_PRECISION_FP64] = 3e-14, [GM_PRECISION_FP32] = 1e-6, [GM_PRECISION_EXACT] = 6e-8, [GM_PRECISION_TF32] = 1e-3,
    [GM_PRECISION_FP16] = 1e-3,  [GM_PRECISION_BF16] = 8e-3, [GM_PRECISION_INT8] = 0};

/* The types of operands and accumulators. */
#define EACH_TYPE(of) of(F32, float) of(F64, double) of(I8, int8_t) of(U8, uint8_t) of(I32, int32_t)

static double get(const void *array, gm_dtype type, int64_t i)
{
    switch (type) {
#define GET(id, ctype)  \
    case GM_DTYPE_##id: \
        return (double)((const ctype *)array)[i];
        EACH_TYPE(GET)
    default:
        return NAN;
    }
}

/* Integers: NaN is a number that is not 0. */
static void set(void *array, gm_dtype type, int64_t i, double value)
{
    value = isnan(value) && gm_dtype_get_kind(type) != GM_FLOAT ? 99 : value;
    switch (type) {
#define SET(id, ctype)                        \
    case GM_DTYPE_##id:                       \
        ((ctype *)array)[i] = (ctype)(value); \
        break;
        EACH_TYPE(SET)
    default:
        break;
    }
}

/* A matrix [rows][cols] in the panel's type, its rows padded with NaN, on the host and on the device. */
typedef struct panel {
    int64_t rows, cols, ld;
    size_t bytes;
    gm_dtype type;
    void *host, *device;
} panel;

static panel panel_make(bench *b, int64_t rows, int64_t cols, gm_dtype type, gm_dtype data, int integers, uint64_t seed)
{
    int64_t unit = 16 / (int64_t)gm_dtype_size(type);
    panel p = {.rows = rows, .cols = cols, .ld = gm_round_up(cols, unit) + unit, .type = type};
    p.bytes = (size_t)(rows * p.ld) * gm_dtype_size(type);
    p.host = host_memory(p.bytes);
    for (int64_t i = 0; i < rows * p.ld; i++) {
        double value = random_real(&seed);
        value = integers               ? floor(4 * value) + (type == GM_DTYPE_U8 ? 4 : 0)
                : type == GM_DTYPE_I8  ? floor(128 * value)
                : type == GM_DTYPE_U8  ? floor(128 * value) + 128
                : data == GM_DTYPE_F32 ? (float)value
                                       : value;
        set(p.host, type, i, i % p.ld < cols ? value : NAN);
    }
    p.device = lend(b, p.host, p.bytes);
    return p;
}

static void panel_free(bench *b, panel *p)
{
    reclaim(b, p->device, NULL, 0);
    free(p->host);
}

/* One product on one device. of: of integers of 8 bits, bit 0: those of A are unsigned; bit 1: those of B. */
typedef struct problem {
    bench *b;
    const gm_product *product;
    gm_precision precision;
    int64_t m, n, k, leaf;
    int transpose_a, transpose_b;
    panel a_panel, b_panel;
} problem;

static gm_dtype panel_type(const gm_product *product, int is_unsigned)
{
    return gm_panel_type(product->operand, is_unsigned ? GM_DTYPE_U8 : GM_DTYPE_I8);
}

static problem problem_make(bench *b, const gm_product *product, int64_t m, int64_t n, int64_t k, int transposes,
                            int integers, int of)
{
    gm_dtype data = gm_precision_get(product->precision)->operand;
    problem p = {b, product, product->precision, m, n, k, 128, transposes & 1, transposes >> 1, {0}, {0}};
    p.a_panel = panel_make(b, p.transpose_a ? k : m, p.transpose_a ? m : k, panel_type(product, of & 1), data, integers,
                           1);
    p.b_panel = panel_make(b, p.transpose_b ? n : k, p.transpose_b ? k : n, panel_type(product, of & 2), data, integers,
                           2);
    return p;
}

static void problem_free(problem *p)
{
    panel_free(p->b, &p->a_panel);
    panel_free(p->b, &p->b_panel);
}

static int64_t a_at(const problem *p, int64_t i, int64_t l)
{
    return p->transpose_a ? l * p->a_panel.ld + i : i * p->a_panel.ld + l;
}

static int64_t b_at(const problem *p, int64_t l, int64_t j)
{
    return p->transpose_b ? j * p->b_panel.ld + l : l * p->b_panel.ld + j;
}

/* Work space for a panel of some lines, and some leaves side by side. */
static void *work_for(const problem *p, int64_t outer, int64_t parts)
{
    size_t bytes = gm_split_lay(&p->product->work, outer, p->k, p->leaf, parts).bytes;
    void *work = NULL;
    if (bytes)
        must(p->b->ops->alloc(p->b->device, bytes, &work));
    return work;
}

/* Computes the block of C from (i0, j0) on, [m][n + GUARD], in calls that end at the given places of k, of up to
 * `parts` leaves side by side; the caller frees it. */
static void *multiply_by_parts(problem *p, int64_t i0, int64_t j0, int64_t m, int64_t n, const int64_t *ends,
                               int64_t parts)
{
    size_t operand = gm_dtype_size(p->product->operand), size = gm_dtype_size(p->product->accumulator);
    int64_t ld = n + GUARD, l0 = 0;
    size_t bytes = (size_t)(m * ld) * size;
    void *host = host_memory(bytes);
    for (int64_t i = 0; i < m * ld; i++)
        set(host, p->product->accumulator, i, i % ld < n ? NAN : guard);
    void *acc = lend(p->b, host, bytes);
    int64_t tile_count = 2 * p->product->wants_tiles;
    size_t tiles_bytes = (size_t)(tile_count * p->product->tile * p->product->tile) * size;
    void *tiles = lend(p->b, NULL, tiles_bytes);
    void *work[2] = {work_for(p, m, parts), work_for(p, n, parts)};
    void *room = parts ? lend(p->b, NULL, (size_t)parts * bytes) : NULL;
    do {
        gm_product_call call = {
            .m = m,
            .n = n,
            .k = *ends - l0,
            .transpose_a = p->transpose_a,
            .transpose_b = p->transpose_b,
            .a = (char *)p->a_panel.device + (size_t)a_at(p, i0, l0) * operand,
            .lda = p->a_panel.ld,
            .b = (char *)p->b_panel.device + (size_t)b_at(p, l0, j0) * operand,
            .ldb = p->b_panel.ld,
            .acc = acc,
            .ldacc = ld,
            .leaf = p->leaf,
            .tile = p->product->tile,
            .accumulate = l0 > 0,
            .tiles = tiles,
            .tile_count = tile_count,
            .parts = room,
            .part_count = parts,
            .work = {work[0], work[1]},
            .is_unsigned = {p->a_panel.type == GM_DTYPE_U8, p->b_panel.type == GM_DTYPE_U8},
        };
        must(p->product->run(p->b->queue, &call));
        l0 = *ends++;
    } while (l0 < p->k);
    for (int i = 0; i < 2; i++)
        p->b->ops->free(p->b->device, work[i]);
    if (parts)
        reclaim(p->b, room, NULL, 0);
    reclaim(p->b, tiles, NULL, 0);
    reclaim(p->b, acc, host, bytes);
    return host;
}

static void *multiply(problem *p, int64_t i0, int64_t j0, int64_t m, int64_t n, const int64_t *ends)
{
    return multiply_by_parts(p, i0, j0, m, n, ends, 0);
}

/* The largest error of acc relative to |A| |B| (absolute where that is 0), over all elements of a small C, of a large
 * one over those whose row or column is among the first or last ones of a tile or of C. */
static double worst_error(const problem *p, const void *acc)
{
    gm_dtype type = p->product->accumulator, result = gm_precision_get(p->precision)->result;
    double worst = 0;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            int64_t on_row = (i + 1) % 64 < 2 || i == p->m - 1, on_column = (j + 1) % 64 < 2 || j == p->n - 1;
            if (p->m * p->n > 20000 && !((on_row && j % 7 == 0) || (on_column && i % 7 == 0)))
                continue;
            long double sum = 0, magnitude = 0;
            for (int64_t l = 0; l < p->k; l++) {
                long double term = (long double)get(p->a_panel.host, p->a_panel.type, a_at(p, i, l)) *
                                   get(p->b_panel.host, p->b_panel.type, b_at(p, l, j));
                sum += term;
                magnitude += fabsl(term);
            }
            double value = get(acc, type, i * (p->n + GUARD) + j);
            value = result == GM_DTYPE_F32 ? (float)value : value;
            worst = worse(worst, (double)(fabsl(value - sum) / (magnitude > 0 ? magnitude : 1)));
        }
    }
    return worst;
}

static int guard_untouched(const problem *p, const void *acc)
{
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = p->n; j < p->n + GUARD; j++) {
            if (get(acc, p->product->accumulator, i * (p->n + GUARD) + j) != guard)
                return 0;
        }
    }
    return 1;
}

static const int64_t sizes[] = {1, 2, 3, 63, 64, 65, 127, 300, 513, 1000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void test_values(bench *b, const gm_product *product)
{
    const char *name = product->kernel;
    for (int transposes = 0; transposes < 4; transposes++) {
        double exact = 0, rounded = 0;
        int untouched = 1;
        for (int shape = 0; shape < 2 * SIZES; shape++) {
            int i = shape % SIZES, mixed = shape >= SIZES;
            int64_t m = sizes[i], n = sizes[(i + 3 * mixed) % SIZES], k = sizes[(i + 7 * mixed) % SIZES];
            for (int integers = 0; integers < 2; integers++) {
                problem p = problem_make(b, product, m, n, k, transposes, integers, shape);
                void *acc = multiply(&p, 0, 0, m, n, &k);
                double *worst = integers ? &exact : &rounded;
                *worst = worse(*worst, worst_error(&p, acc));
                untouched = untouched && guard_untouched(&p, acc);
                free(acc);
                problem_free(&p);
            }
        }
        tap_ok(exact == 0, "%s %s transposes %d: small integers give exact products", b->ops->kind, name, transposes);
        tap_ok(rounded <= tolerance[product->precision], "%s %s transposes %d: error %.2g of at most %.2g",
               b->ops->kind, name, transposes, rounded, tolerance[product->precision]);
        tap_ok(untouched, "%s %s transposes %d: nothing beyond column n is written", b->ops->kind, name, transposes);
    }
}

/* Is the block from (i0, j0) on of the same bits as in the whole? */
static int same_block(problem *p, const void *whole, int64_t i0, int64_t j0, int64_t m, int64_t n)
{
    size_t size = gm_dtype_size(p->product->accumulator);
    char *block = multiply(p, i0, j0, m, n, &p->k);
    int same = 1;
    for (int64_t i = 0; i < m; i++) {
        const char *expected = (const char *)whole + (size_t)((i0 + i) * (p->n + GUARD) + j0) * size;
        same = same && memcmp(expected, block + (size_t)(i * (n + GUARD)) * size, (size_t)n * size) == 0;
    }
    free(block);
    return same;
}

static void test_bits(bench *b, const gm_product *product)
{
    const char *name = product->kernel;
    for (int transposes = 0; transposes < 4; transposes++) {
        problem p = problem_make(b, product, 900, 1100, 1000, transposes, 0, transposes);
        int64_t tile = p.product->tile, pieces[] = {256, 384, 896, 1000};
        size_t bytes = (size_t)(p.m * (p.n + GUARD)) * gm_dtype_size(p.product->accumulator);
        void *whole = multiply(&p, 0, 0, p.m, p.n, &p.k), *split = multiply(&p, 0, 0, p.m, p.n, pieces);
        tap_ok(memcmp(whole, split, bytes) == 0, "%s %s transposes %d: k in four calls gives the same bits",
               b->ops->kind, name, transposes);
        tap_ok(same_block(&p, whole, tile, tile, p.m - tile, p.n - tile) &&
                   same_block(&p, whole, 0, tile, tile, tile) && same_block(&p, whole, 0, 0, p.m, tile),
               "%s %s transposes %d: blocks of C have the same bits as the whole", b->ops->kind, name, transposes);
        free(whole);
        free(split);
        problem_free(&p);
    }
}

/* A large C has other tiles than a small one where a device has many multiprocessors. */
static void test_tiles(bench *b, const gm_product *product)
{
    if (b->ops->unified)
        return;
    problem p = problem_make(b, product, 2000, 2000, 300, 0, 0, 0);
    void *whole = multiply(&p, 0, 0, p.m, p.n, &p.k);
    int64_t tile = product->tile, last = p.m / tile * tile;
    tap_ok(same_block(&p, whole, 0, 0, tile, tile) && same_block(&p, whole, last, tile, p.m - last, 2 * tile) &&
               same_block(&p, whole, tile, last, 3, p.n - last),
           "%s %s: small blocks of a large C have the same bits", b->ops->kind, product->kernel);
    free(whole);
    problem_free(&p);
}

/* Leaves side by side, all at once and a few at a time. */
static void test_parts(bench *b, const gm_product *product)
{
    for (int transposes = 0; transposes < 4; transposes++) {
        problem p = problem_make(b, product, 130, 67, 1000, transposes, 0, transposes);
        int64_t pieces[] = {256, 384, 1000};
        size_t bytes = (size_t)(p.m * (p.n + GUARD)) * gm_dtype_size(p.product->accumulator);
        void *one = multiply(&p, 0, 0, p.m, p.n, &p.k);
        int same = 1, untouched = 1;
        for (int64_t parts = 2; parts <= 8; parts += 3) {
            void *all = multiply_by_parts(&p, 0, 0, p.m, p.n, &p.k, parts),
                 *split = multiply_by_parts(&p, 0, 0, p.m, p.n, pieces, parts);
            same = same && memcmp(one, all, bytes) == 0 && memcmp(one, split, bytes) == 0;
            untouched = untouched && guard_untouched(&p, all) && guard_untouched(&p, split);
            free(all);
            free(split);
        }
        tap_ok(same && untouched, "%s %s transposes %d: leaves side by side give the same bits", b->ops->kind,
               product->kernel, transposes);
        free(one);
        problem_free(&p);
    }
}

static void test_threads(bench *b, const gm_product *product)
{
    void *results[2];
    size_t bytes = 0;
    for (int i = 0; i < 2; i++) {
        bench other = bench_open(b->ops, i == 0 ? 1 : 3);
        problem p = problem_make(&other, product, 700, 600, 500, 0, 0, 0);
        bytes = (size_t)(p.m * (p.n + GUARD)) * gm_dtype_size(p.product->accumulator);
        results[i] = multiply(&p, 0, 0, p.m, p.n, &p.k);
        problem_free(&p);
        bench_close(&other);
    }
    tap_ok(memcmp(results[0], results[1], bytes) == 0, "%s %s: one thread and three give the same bits", b->ops->kind,
           product->kernel);
    free(results[0]);
    free(results[1]);
}

static void test_nothing(bench *b, const gm_product *product)
{
    problem p = problem_make(b, product, 70, 5, 64, 0, 0, 0);
    p.k = 0;
    void *acc = multiply(&p, 0, 0, p.m, p.n, &p.k);
    tap_ok(worst_error(&p, acc) == 0 && guard_untouched(&p, acc), "%s %s: k = 0 gives zeros", b->ops->kind,
           product->kernel);
    free(acc);
    problem_free(&p);
}

static void test_products(bench *b)
{
    const gm_product *product;
    for (int i = 0; (product = b->ops->product(b->device, i)) != NULL; i++) {
        test_values(b, product);
        test_bits(b, product);
        test_tiles(b, product);
        test_parts(b, product);
        test_threads(b, product);
        test_nothing(b, product);
    }
}

int main(void)
{
    each_device(test_products);
    return tap_done();
}
