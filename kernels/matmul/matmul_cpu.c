/* Products on the processor: a tile of C and a leaf of k make ONE single-threaded BLAS call, so neither the number of
 * threads nor the block of C that a rank holds has a say in the bits; the threads share out the tiles, of all products
 * of a batch. */
#include <inttypes.h>
#include <omp.h>
#include <string.h>

#include "base/size.h"
#include "base/stop.h"
#include "kernels/blas/blas.h"
#include "kernels/matmul/calls.h"

/* The types of operands, so that what follows is written once. c: [m][ldc] = op(a) op(b), with the tiles of a thread
 * but the first as work space; add: to [m][ld] += tile [m][n]. */
typedef struct real {
    size_t operand, size; /* bytes of an element of a and b, and of c */
    void (*gemm)(const gm_product_call *call, int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c,
                 int64_t ldc, float *work);
    void (*add)(int64_t m, int64_t n, void *to, int64_t ld, const void *tile);
} real;

#define ADD(type)                                                                        \
    static void add_##type(int64_t m, int64_t n, void *to, int64_t ld, const void *tile) \
    {                                                                                    \
        for (int64_t i = 0; i < m; i++) {                                                \
            type *row = (type *)to + i * ld;                                             \
            const type *more = (const type *)tile + i * n;                               \
            _Pragma("omp simd") for (int64_t j = 0; j < n; j++)                          \
            {                                                                            \
                row[j] += more[j];                                                       \
            }                                                                            \
        }                                                                                \
    }

#define REAL(type, blas)                                                                                               \
    ADD(type)                                                                                                          \
    static void gemm_##type(const gm_product_call *call, int64_t m, int64_t n, int64_t k, const void *a,               \
                            const void *b, void *c, int64_t ldc, float *work)                                          \
    {                                                                                                                  \
        (void)work;                                                                                                    \
        cblas_##blas(CblasRowMajor, call->transpose_a ? CblasTrans : CblasNoTrans,                                     \
                     call->transpose_b ? CblasTrans : CblasNoTrans, (gm_blas_int)m, (gm_blas_int)n, (gm_blas_int)k, 1, \
                     a, (gm_blas_int)call->lda, b, (gm_blas_int)call->ldb, 0, c, (gm_blas_int)ldc);                    \
    }                                                                                                                  \
    static const real real_##type = {sizeof(type), sizeof(type), gemm_##type, add_##type};

REAL(float, sgemm)
REAL(double, dgemm)

static const void *element(const real *real, const void *matrix, int64_t ld, int64_t row, int64_t column)
{
    return (const char *)matrix + (size_t)(row * ld + column) * real->operand;
}

/* --- Integers of 8 bits: sums of this many products are integers below 2^24, which float32 holds --- */

enum { INT8_DEPTH = 256 };
ADD(int32_t)

#define WIDEN(type)                                              \
    _Pragma("omp simd") for (int64_t i = 0; i < cols; i++)       \
    {                                                            \
        to[row * cols + i] = ((const type *)from)[row * ld + i]; \
    }

/* [rows][ld] of 8-bit integers to [rows][cols]. */
static void widen(int is_unsigned, int64_t rows, int64_t cols, const void *from, int64_t ld, float *to)
{
    for (int64_t row = 0; row < rows; row++) {
        if (is_unsigned) {
            WIDEN(uint8_t)
        } else {
            WIDEN(int8_t)
        }
    }
}

static void gemm_int8(const gm_product_call *call, int64_t m, int64_t n, int64_t k, const void *a, const void *b,
                      void *c, int64_t ldc, float *work)
{
    int64_t depth = gm_min(call->tile, INT8_DEPTH), area = call->tile * call->tile;
    float *wide_a = work, *wide_b = wide_a + area, *sums = wide_b + area;
    for (int64_t l0 = 0; l0 < k; l0 += depth) {
        int64_t l = gm_min(depth, k - l0), across_a = call->transpose_a ? m : l, across_b = call->transpose_b ? l : n;
        widen(call->is_unsigned[0], call->transpose_a ? l : m, across_a,
              (const char *)a + (call->transpose_a ? l0 * call->lda : l0), call->lda, wide_a);
        widen(call->is_unsigned[1], call->transpose_b ? n : l, across_b,
              (const char *)b + (call->transpose_b ? l0 : l0 * call->ldb), call->ldb, wide_b);
        cblas_sgemm(CblasRowMajor, call->transpose_a ? CblasTrans : CblasNoTrans,
                    call->transpose_b ? CblasTrans : CblasNoTrans, (gm_blas_int)m, (gm_blas_int)n, (gm_blas_int)l, 1,
                    wide_a, (gm_blas_int)across_a, wide_b, (gm_blas_int)across_b, 0, sums, (gm_blas_int)n);
        for (int64_t i = 0; i < m; i++) {
            int32_t *row = (int32_t *)c + i * ldc;
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                row[j] = (l0 > 0 ? row[j] : 0) + (int32_t)sums[i * n + j];
        }
    }
}

static const real real_int8 = {sizeof(int8_t), sizeof(int32_t), gemm_int8, add_int32_t};

/* --- All of them --- */

/* Is the product still wanted? The main thread hears of the other ranks. */
static int is_wanted(int *stopped)
{
    int now;
#pragma omp atomic read
    now = *stopped;
    if (!now && gm_stop_status()) {
        now = 1;
#pragma omp atomic write
        *stopped = 1;
    }
    return !now;
}

/* The product number `index` of a batch, alone. */
static gm_product_call product_of(const real *real, const gm_product_call *call, int64_t index)
{
    gm_product_call one = *call;
    one.a = element(real, call->a, call->next_a, index, 0);
    one.b = element(real, call->b, call->next_b, index, 0);
    one.acc = (char *)call->acc + (size_t)(index * call->next_acc) * real->size;
    return one;
}

/* Tile (i0, j0) of C, all its leaves; buffer: the tiles of this thread. */
static void make_tile(const real *real, const gm_product_call *call, int64_t i0, int64_t j0, void *buffer, int *stopped)
{
    int64_t m = gm_min(call->tile, call->m - i0), n = gm_min(call->tile, call->n - j0);
    float *work = (float *)(void *)((char *)buffer + (size_t)(call->tile * call->tile) * real->size);
    char *acc = (char *)call->acc + (size_t)(i0 * call->ldacc + j0) * real->size;
    if (call->k == 0 && !call->accumulate) {
        for (int64_t i = 0; i < m; i++)
            memset(acc + (size_t)(i * call->ldacc) * real->size, 0, (size_t)n * real->size);
    }
    for (int64_t l0 = 0; l0 < call->k && is_wanted(stopped); l0 += call->leaf) {
        int64_t k = gm_min(call->leaf, call->k - l0);
        const void *a = call->transpose_a ? element(real, call->a, call->lda, l0, i0)
                                          : element(real, call->a, call->lda, i0, l0);
        const void *b = call->transpose_b ? element(real, call->b, call->ldb, j0, l0)
                                          : element(real, call->b, call->ldb, l0, j0);
        if (l0 == 0 && !call->accumulate) {
            real->gemm(call, m, n, k, a, b, acc, call->ldacc, work);
        } else {
            real->gemm(call, m, n, k, a, b, buffer, n, work);
            real->add(m, n, acc, call->ldacc, buffer);
        }
    }
}

static int blas_takes(const gm_product_call *call)
{
    int64_t longest = gm_max(gm_max(call->lda, call->ldb), gm_max(call->ldacc, gm_min(call->leaf, call->k)));
    return (int64_t)(gm_blas_int)longest == longest;
}

/* tiles_each: of a thread. */
static int matmul(const real *real, int tiles_each, int threads, const gm_product_call *call)
{
    if (!blas_takes(call)) {
        return gm_fail(GM_EDEVICE,
                       "product on the CPU: a row of %" PRId64 ", %" PRId64 " or %" PRId64
                       " elements is longer than BLAS"
                       " can count",
                       call->lda, call->ldb, call->ldacc);
    }
    int64_t across = gm_ceil_div(call->n, call->tile), tiles = across * gm_ceil_div(call->m, call->tile);
    int64_t batch = gm_max(call->batch, 1);
    int stopped = 0;
    threads = (int)gm_min(threads, call->tile_count / tiles_each);
#pragma omp parallel num_threads(threads)
    {
        gm_blas_alone();
        int64_t before = tiles_each * omp_get_thread_num();
        char *buffer = (char *)call->tiles + (size_t)(before * call->tile * call->tile) * real->size;
#pragma omp for schedule(dynamic)
        for (int64_t at = 0; at < batch * tiles; at++) {
            gm_product_call one = product_of(real, call, at / tiles);
            int64_t tile = at % tiles;
            make_tile(real, &one, tile / across * call->tile, tile % across * call->tile, buffer, &stopped);
        }
    }
    return stopped ? gm_stop_status() : GM_OK; /* after a signal the rest of the product was left out */
}

int gm_cpu_matmul_fp32(int threads, const gm_product_call *call)
{
    return matmul(&real_float, GM_CPU_TILES, threads, call);
}

int gm_cpu_matmul_fp64(int threads, const gm_product_call *call)
{
    return matmul(&real_double, GM_CPU_TILES, threads, call);
}

int gm_cpu_matmul_int8(int threads, const gm_product_call *call)
{
    return matmul(&real_int8, GM_CPU_TILES_INT8, threads, call);
}
