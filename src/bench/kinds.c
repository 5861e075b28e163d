/* Kinds of random matrices: what data do to the errors of a product depends on their signs and their range. */
#include "kernels/host.h"
#include "src/bench/bench.h"

#include <math.h>

static const double span = 50;     /* powers of two: 1e-15 to 1e15, so that no product of two is outside of float32 */
static const double huge = 0x1p15; /* a value of every float type */
static const uint64_t key_of_lines = 0x6c696e65; /* scales and places have random numbers of their own */

static const char *const names[GM_BENCH_KINDS] = {[GM_BENCH_UNIFORM] = "uniform",
                                                  [GM_BENCH_CENTRED] = "centred",
                                                  [GM_BENCH_NORMAL] = "normal",
                                                  [GM_BENCH_SCALED] = "scaled",
                                                  [GM_BENCH_HUGE] = "huge"};

const char *gm_bench_kind_name(gm_bench_kind kind)
{
    return names[kind];
}

int gm_bench_kind_applies(gm_bench_kind kind, gm_dtype type)
{
    return kind == GM_BENCH_UNIFORM || kind == GM_BENCH_NORMAL || type == GM_DTYPE_F32 || type == GM_DTYPE_F64;
}

static double scale_of(const gm_bench_matrix *matrix, int64_t line)
{
    uint64_t bits = gm_random_bits(matrix->key + key_of_lines, (uint64_t)line);
    return exp2(span * (0x1p-52 * (double)(bits >> 11) - 1));
}

/* x, of [0, 1): element (row, col) of the kind. `far`: the column of the huge entry of the row. */
static double transform(const gm_bench_matrix *matrix, int64_t row, int64_t col, int64_t far, double x)
{
    double y = 2 * x - 1;
    if (matrix->kind == GM_BENCH_SCALED)
        return y * scale_of(matrix, matrix->by_columns ? col : row);
    return matrix->kind == GM_BENCH_HUGE && col == far ? y * huge : y;
}

void gm_bench_elements(const gm_bench_matrix *matrix, int64_t row, int64_t col, int64_t n, void *dst)
{
    int is_normal = matrix->kind == GM_BENCH_NORMAL;
    gm_cpu_random(dst, matrix->type, 0, is_normal ? GM_DISTRIBUTION_NORMAL : GM_DISTRIBUTION_UNIFORM, matrix->key,
                  row * matrix->cols + col, n);
    if (is_normal || matrix->kind == GM_BENCH_UNIFORM)
        return;
    int64_t far = (int64_t)(gm_random_bits(matrix->key + key_of_lines, (uint64_t)row) % (uint64_t)matrix->cols);
    for (int64_t j = 0; j < n; j++)
        if (matrix->type == GM_DTYPE_F32)
            ((float *)dst)[j] = (float)transform(matrix, row, col + j, far, (double)((float *)dst)[j]);
        else
            ((double *)dst)[j] = transform(matrix, row, col + j, far, ((double *)dst)[j]);
}
