/* Products on the processor: a tile of C and a leaf of k make ONE single-threaded BLAS call, or one for each 256 k of
 * operands that are copied. So neither the number of threads nor the block of C that a rank holds has a say in the
 * bits; the threads share out the tiles, of all products of a batch. */
#include <inttypes.h>
#include <omp.h>
#include <string.h>

#include "base/size.h"
#include "base/stop.h"
#include "base/types/float.h"
#include "kernels/blas/blas.h"
#include "kernels/matmul/calls.h"

/* A row of operands as floats. */
typedef void copy_row(int64_t n, const void *from, float *to);

/* The types of operands, so that what follows is written once. */
typedef struct real real;
struct real {
    size_t operand, size; /* bytes of an element of a and b, and of c */
    /* c [m][ldc] = op(a) op(b), with the tiles of a thread but the first as work space. */
    void (*gemm)(const real *real, const gm_product_call *call, int64_t m, int64_t n, int64_t k, const void *a,
                 const void *b, void *c, int64_t ldc, float *work);
    void (*add)(int64_t m, int64_t n, void *to, int64_t ld, const void *tile); /* to [m][ld] += tile [m][n] */
    /* Operands that BLAS does not take: */
    copy_row *copy[2];                                                              /* signed, unsigned */
    void (*add_sums)(int64_t m, int64_t n, void *to, int64_t ld, const void *sums); /* the same for floats [m][n] */
};

#define ADD(name, type, part)                                                            \
    static void add_##name(int64_t m, int64_t n, void *to, int64_t ld, const void *tile) \
    {                                                                                    \
        for (int64_t i = 0; i < m; i++) {                                                \
            type *row = (type *)to + i * ld;                                             \
            const part *more = (const part *)tile + i * n;                               \
            _Pragma("omp simd") for (int64_t j = 0; j < n; j++)                          \
            {                                                                            \
                row[j] += (type)more[j];                                                 \
            }                                                                            \
        }                                                                                \
    }
ADD(float, float, float)
ADD(double, double, double)
ADD(int32, int32_t, int32_t)
ADD(sums, int32_t, float)

static const void *element(const real *real, const void *matrix, int64_t ld, int64_t row, int64_t column)
{
    return (const char *)matrix + (size_t)(row * ld + column) * real->operand;
}

static void clear(const real *real, int64_t m, int64_t n, void *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++)
        memset((char *)c + (size_t)(i * ldc) * real->size, 0, (size_t)n * real->size);
}

/* --- Operands that BLAS takes --- */

#define GEMM(type, blas)                                                                                               \
    static void gemm_##type(const real *real, const gm_product_call *call, int64_t m, int64_t n, int64_t k,            \
                            const void *a, const void *b, void *c, int64_t ldc, float *work)                           \
    {                                                                                                                  \
        (void)real;                                                                                                    \
        (void)work;                                                                                                    \
        cblas_##blas(CblasRowMajor, call->transpose_a ? CblasTrans : CblasNoTrans,                                     \
                     call->transpose_b ? CblasTrans : CblasNoTrans, (gm_blas_int)m, (gm_blas_int)n, (gm_blas_int)k, 1, \
                     a, (gm_blas_int)call->lda, b, (gm_blas_int)call->ldb, 0, c, (gm_blas_int)ldc);                    \
    }
GEMM(float, sgemm)
GEMM(double, dgemm)

static const real real_float = {sizeof(float), sizeof(float), gemm_float, add_float, {NULL}, NULL};
static const real real_double = {sizeof(double), sizeof(double), gemm_double, add_double, {NULL}, NULL};

/* --- Operands that are copied to floats, block by block --- */

/* Sums of this many products of 8-bit integers are integers below 2^24, which float32 holds. */
enum { COPY_DEPTH = 256 };

#define COPY(name, type, value)                                     \
    static void copy_##name(int64_t n, const void *from, float *to) \
    {                                                               \
        const type *x = from;                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)         \
        {                                                           \
            to[i] = value;                                          \
        }                                                           \
    }
COPY(i8, int8_t, x[i])
COPY(u8, uint8_t, x[i])
COPY(tf32, float, gm_float_without(13, x[i]))
COPY(bf16, float, gm_float_without(16, x[i]))
COPY(fp16, float, gm_bits_gm_f16(gm_raw_gm_f16(gm_round_gm_f16((double)x[i]))))

/* [rows][ld] to [rows][cols]. */
static void copy_block(const real *real, int is_unsigned, int64_t rows, int64_t cols, const void *from, int64_t ld,
                       float *to)
{
    for (int64_t row = 0; row < rows; row++)
        real->copy[is_unsigned](cols, element(real, from, ld, row, 0), to + row * cols);
}

static void gemm_copies(const real *real, const gm_product_call *call, int64_t m, int64_t n, int64_t k, const void *a,
                        const void *b, void *c, int64_t ldc, float *work)
{
    int64_t depth = gm_min(call->tile, COPY_DEPTH), area = call->tile * call->tile;
    float *copy_a = work, *copy_b = copy_a + area, *sums = copy_b + area;
    int turn_a = call->transpose_a, turn_b = call->transpose_b;
    clear(real, m, n, c, ldc);
    for (int64_t l0 = 0; l0 < k; l0 += depth) {
        int64_t l = gm_min(depth, k - l0), across_a = turn_a ? m : l, across_b = turn_b ? l : n;
        copy_block(real, call->is_unsigned[0], turn_a ? l : m, across_a,
                   element(real, a, call->lda, turn_a ? l0 : 0, turn_a ? 0 : l0), call->lda, copy_a);
        copy_block(real, call->is_unsigned[1], turn_b ? n : l, across_b,
                   element(real, b, call->ldb, turn_b ? 0 : l0, turn_b ? l0 : 0), call->ldb, copy_b);
        cblas_sgemm(CblasRowMajor, turn_a ? CblasTrans : CblasNoTrans, turn_b ? CblasTrans : CblasNoTrans,
                    (gm_blas_int)m, (gm_blas_int)n, (gm_blas_int)l, 1, copy_a, (gm_blas_int)across_a, copy_b,
                    (gm_blas_int)across_b, 0, sums, (gm_blas_int)n);
        real->add_sums(m, n, c, ldc, sums);
    }
}

static const real real_int8 = {sizeof(int8_t), sizeof(int32_t), gemm_copies, add_int32, {copy_i8, copy_u8}, add_sums};
static const real real_tf32 = {sizeof(float), sizeof(float), gemm_copies, add_float, {copy_tf32}, add_float};
static const real real_fp16 = {sizeof(float), sizeof(float), gemm_copies, add_float, {copy_fp16}, add_float};
static const real real_bf16 = {sizeof(float), sizeof(float), gemm_copies, add_float, {copy_bf16}, add_float};

/* --- All of them --- */

/* The types of acc. */
static const real *acc_of(const real *real, const gm_product_call *call)
{
    return call->rounded ? &real_float : real;
}

/* acc [m][ldacc] = tile [m][n], float64, rounded. */
static void store_rounded(const gm_product_call *call, int64_t m, int64_t n, float *acc, const double *tile)
{
    uint64_t over = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            over += (uint64_t)gm_round_overflows(tile[i * n + j], &acc[i * call->ldacc + j]);
    if (over > 0) {
#pragma omp atomic
        call->rounded->overflow += over;
#pragma omp atomic
        call->rounded->inf -= over;
    }
}

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
    one.acc = (char *)call->acc + (size_t)(index * call->next_acc) * acc_of(real, call)->size;
    return one;
}

/* Tile (i0, j0) of C, all its leaves; buffer: the tiles of this thread. */
static void make_tile(const real *real, const gm_product_call *call, int64_t i0, int64_t j0, void *buffer, int *stopped)
{
    int64_t m = gm_min(call->tile, call->m - i0), n = gm_min(call->tile, call->n - j0);
    float *work = (float *)(void *)((char *)buffer + (size_t)(call->tile * call->tile) * real->size);
    char *acc = (char *)call->acc + (size_t)(i0 * call->ldacc + j0) * acc_of(real, call)->size;
    if (call->k == 0 && !call->accumulate)
        clear(acc_of(real, call), m, n, acc, call->ldacc);
    for (int64_t l0 = 0; l0 < call->k && is_wanted(stopped); l0 += call->leaf) {
        int64_t k = gm_min(call->leaf, call->k - l0);
        const void *a = call->transpose_a ? element(real, call->a, call->lda, l0, i0)
                                          : element(real, call->a, call->lda, i0, l0);
        const void *b = call->transpose_b ? element(real, call->b, call->ldb, j0, l0)
                                          : element(real, call->b, call->ldb, l0, j0);
        if (call->rounded) {
            real->gemm(real, call, m, n, k, a, b, buffer, n, work);
            store_rounded(call, m, n, (float *)(void *)acc, buffer);
        } else if (l0 == 0 && !call->accumulate) {
            real->gemm(real, call, m, n, k, a, b, acc, call->ldacc, work);
        } else {
            real->gemm(real, call, m, n, k, a, b, buffer, n, work);
            real->add(m, n, acc, call->ldacc, buffer);
        }
    }
}

static int blas_takes(const gm_product_call *call)
{
    int64_t longest = gm_max(gm_max(call->lda, call->ldb), gm_max(call->ldacc, gm_min(call->leaf, call->k)));
    return (int64_t)(gm_blas_int)longest == longest;
}

static int matmul(const real *real, int threads, const gm_product_call *call)
{
    if (!blas_takes(call)) {
        return gm_fail(GM_EDEVICE,
                       "product on the CPU: a row of %" PRId64 ", %" PRId64 " or %" PRId64
                       " elements is longer than BLAS"
                       " can count",
                       call->lda, call->ldb, call->ldacc);
    }
    if (call->rounded && (call->accumulate || call->k > call->leaf))
        return gm_fail(GM_EINTERNAL, "product on the CPU: sums of several parts cannot be rounded once");
    int64_t across = gm_ceil_div(call->n, call->tile), tiles = across * gm_ceil_div(call->m, call->tile);
    int64_t batch = gm_max(call->batch, 1);
    int stopped = 0, tiles_each = real->copy[0] ? GM_CPU_TILES_COPIES : GM_CPU_TILES;
    threads = (int)gm_min(threads, call->tile_count / tiles_each);
    int status = gm_blas_room(threads, 0);
    if (status)
        return status;
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

#define MATMUL(name, real)                                             \
    int gm_cpu_matmul_##name(int threads, const gm_product_call *call) \
    {                                                                  \
        return matmul(&real, threads, call);                           \
    }
MATMUL(fp32, real_float)
MATMUL(fp64, real_double)
MATMUL(tf32, real_tf32)
MATMUL(fp16, real_fp16)
MATMUL(bf16, real_bf16)
MATMUL(int8, real_int8)
