/* Columns on the processor: batches of up to ABREAST columns by the rows of a leaf, read row by row. */

#include "base/size.h"
#include "kernels/reduce/reduce_cpu.h"

enum {
    ABREAST = 128,     /* columns of a batch */
    ALONE = 16384,     /* elements: fewer are reduced by one thread */
    WHOLE_LEAF = 4096, /* rows after which the sums of integers, which have no leaves, fold into the total;
                          partial sums hold this many */
};

typedef struct batch_source {
    const char *src;
    size_t pitch;
    int64_t rows, cols;
    int swap;
} batch_source;

typedef struct batch {
    uint64_t min[ABREAST], max[ABREAST]; /* as in gm_moments; anything where all are NaN */
    uint32_t nan[ABREAST];
    double shift[ABREAST], sum[ABREAST], squares[ABREAST], dsum[ABREAST], dsquares[ABREAST]; /* floats */
    gm_whole_sums whole[ABREAST];                                                            /* integers */
} batch;

#define INLINED static inline __attribute__((always_inline))

/* One more 64-bit integer of column k. */
INLINED void add_large(batch *b, int64_t k, uint64_t magnitude, unsigned __int128 value)
{
    unsigned __int128 squared = (unsigned __int128)magnitude * magnitude;
    b->whole[k].sum += value;
    b->whole[k].squares_low += (uint64_t)squared;
    b->whole[k].squares_high += squared >> 64;
}

typedef void walk(const batch_source *source, batch *b);

#define VARIANT(name) name##_any
#include "kernels/reduce/reduce_columns_loops.h"
#undef VARIANT

#if GM_AVX2
GM_AVX2_BEGIN
#define VARIANT(name) name##_avx2
#include "kernels/reduce/reduce_columns_loops.h"
#undef VARIANT
GM_AVX2_END
#define WALKS (GM_HAS_AVX2() ? walks_avx2 : walks_any)
#else
#define WALKS walks_any
#endif

/* The first element of a column other than NaN, if it is finite, else 0. */
static double shift_of(const batch_source *s, int64_t col, gm_dtype type)
{
    double value;
    for (int64_t i = 0; i < s->rows; i++) {
        gm_cpu_row_f64(&value, s->src + (size_t)i * s->pitch + (size_t)col * gm_dtype_size(type), 1, type, s->swap);
        if (value == value)
            return value - value == 0 ? value : 0;
    }
    return 0;
}

/* Loads the sums of floats that a batch continues. */
static void load(const batch_source *s, gm_dtype type, unsigned want, const gm_moments *open, batch *b)
{
    for (int64_t k = 0; k < s->cols; k++) {
        const double *real = open[k].sum.real;
        b->sum[k] = real[GM_REAL_SUM];
        b->squares[k] = real[GM_REAL_SQUARES];
        b->shift[k] = open[k].count > 0 || !(want & GM_WANT_SPREAD) ? real[GM_REAL_SHIFT] : shift_of(s, k, type);
        b->dsum[k] = real[GM_REAL_SHIFTED_SUM];
        b->dsquares[k] = real[GM_REAL_SHIFTED_SQUARES];
    }
}

static void store_sums(const batch *b, int64_t k, unsigned want, gm_moments *open)
{
    double *real = open->sum.real;
    if (want & GM_WANT_SUM)
        real[GM_REAL_SUM] = b->sum[k];
    if (want & GM_WANT_SQUARES)
        real[GM_REAL_SQUARES] = b->squares[k];
    if (want & GM_WANT_SPREAD) {
        real[GM_REAL_SHIFT] = b->shift[k];
        real[GM_REAL_SHIFTED_SUM] = b->dsum[k];
        real[GM_REAL_SHIFTED_SQUARES] = b->dsquares[k];
    }
}

/* Extremes, counts and places of a batch's column to its record; row: number of the batch's first row. */
static void store_range(const batch_source *s, const batch *b, int64_t k, const gm_reduce_columns_call *c, int64_t row,
                        gm_moments *open)
{
    gm_dtype_kind kind = gm_dtype_get_kind(c->type);
    const char *x = s->src + (size_t)k * gm_dtype_size(c->type);
    int64_t nan = kind == GM_FLOAT ? b->nan[k] : 0, argmin = -1, argmax = -1;
    int arg = (c->want & GM_WANT_ARG) != 0;
    if (nan > 0 && arg && open->argnan < 0)
        open->argnan = row + gm_cpu_find(c->type, x, s->pitch, s->rows, s->swap, UINT64_MAX);
    open->nan += (uint64_t)nan;
    if (nan == s->rows)
        return;
    if (arg) {
        argmin = row + gm_cpu_find(c->type, x, s->pitch, s->rows, s->swap, b->min[k]);
        argmax = row + gm_cpu_find(c->type, x, s->pitch, s->rows, s->swap, b->max[k]);
    }
    if (c->want & GM_WANT_RANGE) {
        gm_extreme_merge(kind, 0, open->count == 0, &open->min, &open->argmin, b->min[k], argmin);
        gm_extreme_merge(kind, 1, open->count == 0, &open->max, &open->argmax, b->max[k], argmax);
    }
    open->count += (uint64_t)(s->rows - nan);
}

/* Rows [row, row + rows) of the call, all in one leaf, to the records of columns [col, col + cols). */
static void take_batch(const gm_reduce_columns_call *c, int64_t row, int64_t rows, int64_t col, int64_t cols,
                       gm_moments *open)
{
    batch b;
    batch_source s = {(const char *)c->src + (size_t)row * c->pitch + (size_t)col * gm_dtype_size(c->type), c->pitch,
                      rows, cols, c->swap};
    int is_float = gm_dtype_get_kind(c->type) == GM_FLOAT;
    if (is_float)
        load(&s, c->type, c->want, open, &b);
    WALKS[c->type](&s, &b);
    for (int64_t k = 0; k < cols; k++) {
        if (is_float)
            store_sums(&b, k, c->want, &open[k]);
        else
            gm_whole_sums_add(open[k].sum.whole, &b.whole[k], c->want);
        store_range(&s, &b, k, c, c->row0 + row, &open[k]);
    }
}

static void close_leaves(const gm_reduce_columns_call *c, int64_t col, int64_t cols)
{
    gm_dtype_kind kind = gm_dtype_get_kind(c->type);
    for (int64_t k = col; k < col + cols; k++) {
        gm_total_add(&c->total[k], &c->open[k], kind);
        gm_moments_begin(&c->open[k]);
    }
}

/* Rows [row, end) of the call, leaf after leaf, columns in parallel. */
static void walk_rows(int threads, const gm_reduce_columns_call *c, int64_t row, int64_t end)
{
    int64_t blocks = gm_ceil_div(c->cols, ABREAST);
    int64_t leaf = gm_dtype_get_kind(c->type) == GM_FLOAT ? GM_LEAF_COLUMN : WHOLE_LEAF;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t block = 0; block < blocks; block++) {
        int64_t col = block * ABREAST, cols = gm_min(ABREAST, c->cols - col);
        for (int64_t at = row, n; at < end; at += n) {
            n = gm_min(leaf - (c->row0 + at) % leaf, end - at);
            take_batch(c, at, n, col, cols, &c->open[col]);
            if ((c->row0 + at + n) % leaf == 0)
                close_leaves(c, col, cols);
        }
    }
}

/* Whole leaves from row on, leaves in parallel: records in scratch, then folded. Returns the row after the last
 * leaf. */
static int64_t walk_leaves(int threads, const gm_reduce_columns_call *c, int64_t row, int64_t leaves)
{
    gm_dtype_kind kind = gm_dtype_get_kind(c->type);
    int64_t blocks = gm_ceil_div(c->cols, ABREAST), at_once = c->scratch_count / c->cols;
    for (int64_t n; leaves > 0; leaves -= n, row += n * GM_LEAF_COLUMN) {
        n = gm_min(leaves, at_once);
#pragma omp parallel num_threads(threads)
        {
#pragma omp for collapse(2) schedule(static)
            for (int64_t leaf = 0; leaf < n; leaf++) {
                for (int64_t block = 0; block < blocks; block++) {
                    int64_t col = block * ABREAST, cols = gm_min(ABREAST, c->cols - col);
                    gm_moments *record = c->scratch + leaf * c->cols + col;
                    for (int64_t k = 0; k < cols; k++)
                        gm_moments_begin(&record[k]);
                    take_batch(c, row + leaf * GM_LEAF_COLUMN, GM_LEAF_COLUMN, col, cols, record);
                }
            }
#pragma omp for schedule(static)
            for (int64_t k = 0; k < c->cols; k++)
                for (int64_t leaf = 0; leaf < n; leaf++)
                    gm_total_add(&c->total[k], &c->scratch[leaf * c->cols + k], kind);
        }
    }
    return row;
}

int gm_cpu_reduce_columns(int threads, const gm_reduce_columns_call *c)
{
    int64_t row = 0, head = gm_min((GM_LEAF_COLUMN - c->row0 % GM_LEAF_COLUMN) % GM_LEAF_COLUMN, c->rows);
    int64_t leaves = (c->rows - head) / GM_LEAF_COLUMN;
    if (gm_mul_sat(c->rows, c->cols) < ALONE)
        threads = 1;
    for (int64_t k = 0; k < c->cols && c->begin; k++) {
        gm_moments_begin(&c->open[k]);
        gm_total_begin(&c->total[k]);
    }
    if (leaves > 1 && gm_ceil_div(c->cols, ABREAST) < threads && c->scratch != NULL && c->scratch_count >= c->cols) {
        walk_rows(threads, c, 0, head);
        row = walk_leaves(threads, c, head, leaves);
    }
    walk_rows(threads, c, row, c->rows);
    if (c->end)
        close_leaves(c, 0, c->cols);
    return GM_OK;
}
