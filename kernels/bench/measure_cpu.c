/* The processor's table for benchmarks. A queue does its work at once, so there is no hold. */
#include <omp.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "kernels/bench/launch.h"
#include "kernels/blas/blas.h"
#include "kernels/device_cpu.h"
#include "kernels/lab/lab_ops.h"

static const int64_t chunk = 1 << 20; /* bytes; threads copy whole chunks */

/* OpenMP's threads spin for some milliseconds after a loop. The next measurement must not share its processors with
 * them. */
static int cpu_flush(gm_queue *queue, const void *buffer, size_t bytes)
{
    const uint64_t *word = buffer;
    int64_t words = (int64_t)(bytes / sizeof *word);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(queue->device->threads) reduction(| : seen)
    for (int64_t i = 0; i < words; i++)
        seen |= word[i];
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return seen == 0 ? GM_OK : gm_fail(GM_EINTERNAL, "the buffer that flushes the caches is not zero");
}

static int cpu_copy(gm_queue *queue, void *dst, const void *src, size_t bytes)
{
    int64_t size = (int64_t)bytes;
#pragma omp parallel for num_threads(queue->device->threads) schedule(static)
    for (int64_t at = 0; at < size; at += chunk)
        memcpy((char *)dst + at, (const char *)src + at, (size_t)gm_min(chunk, size - at));
    return GM_OK;
}

static int cpu_read(gm_queue *queue, const void *src, size_t bytes, void *sink)
{
    const uint64_t *word = src;
    int64_t words = (int64_t)(bytes / sizeof *word);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(queue->device->threads) reduction(^ : seen)
    for (int64_t i = 0; i < words; i++)
        seen ^= word[i];
    memcpy(sink, &seen, sizeof seen);
    return GM_OK;
}

static int cpu_copy_rival(gm_queue *queue, void *dst, const void *src, size_t bytes)
{
    (void)queue;
    memcpy(dst, src, bytes);
    return GM_OK;
}

static const char *cpu_rival(gm_device *device, const char **absence)
{
    (void)device;
    *absence = NULL;
    return GM_BLAS_TITLE;
}

/* BLAS has float32 and float64, and no integers. */
static const gm_rival_product *cpu_rival_of(gm_precision precision)
{
    static const gm_rival_product fp32 = {GM_PRECISION_FP32, sizeof(float), GM_DTYPE_F32, 0, 0},
                                  fp64 = {GM_PRECISION_FP64, sizeof(double), GM_DTYPE_F64, 0, 0};
    gm_dtype operand = gm_precision_get(precision)->operand;
    return operand == GM_DTYPE_F64 ? &fp64 : operand == GM_DTYPE_F32 ? &fp32 : NULL;
}

/* One call on all threads, as a user would write it. A batch is a loop of them: not every BLAS has a call for it. */
static int cpu_rival_product(gm_queue *queue, const gm_gemm_call *call, int *refused)
{
    (void)refused;
    gm_blas_int m = (gm_blas_int)call->m, n = (gm_blas_int)call->n, k = (gm_blas_int)call->k;
    gm_blas_int lda = (gm_blas_int)call->lda, ldb = (gm_blas_int)call->ldb, ldc = (gm_blas_int)call->ldc;
    if (m != call->m || n != call->n || k != call->k || lda != call->lda || ldb != call->ldb || ldc != call->ldc)
        return gm_fail(GM_EDEVICE, "product by " GM_BLAS_TITLE ": more elements in a row than it can count");
    int status = gm_blas_room(1, queue->device->threads - 1);
    if (status)
        return status;
    int before = omp_get_max_threads();
    omp_set_num_threads(queue->device->threads); /* BLAS on OpenMP uses this number */
    gm_blas_threads(queue->device->threads);
    for (int64_t f = 0; f < gm_max(call->batch, 1); f++) {
        int64_t a = f * call->next_a, b = f * call->next_b, c = f * call->next_c;
        if (call->precision == GM_PRECISION_FP64)
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, (const double *)call->a + a, lda,
                        (const double *)call->b + b, ldb, 0, (double *)call->c + c, ldc);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, (const float *)call->a + a, lda,
                        (const float *)call->b + b, ldb, 0, (float *)call->c + c, ldc);
    }
    gm_blas_threads(1);
    omp_set_num_threads(before);
    return GM_OK;
}

/* The functions of the laboratory as entries of the table. */
#define RUN_NONE(name)
#define RUN_CPU(name)                                                           \
    static int run_##name(gm_queue *queue, const struct gm_##name##_call *call) \
    {                                                                           \
        return gm_cpu_##name(queue->device->threads, call);                     \
    }
#define GM_LAB_OP(name, cpu, cuda) RUN_##cpu(name)
#include "kernels/lab/lab_ops.def"
#undef GM_LAB_OP

#define ENTRY_NONE(name)
#define ENTRY_CPU(name) .name = run_##name,

const gm_measure_ops gm_cpu_measure = {
    .flush = cpu_flush,
    .copy = cpu_copy,
    .copy_rival = cpu_copy_rival,
    .copy_rival_name = "memcpy",
    .read = cpu_read,
    .rival = cpu_rival,
    .rival_of = cpu_rival_of,
    .rival_product = cpu_rival_product,
#define GM_LAB_OP(name, cpu, cuda) ENTRY_##cpu(name)
#include "kernels/lab/lab_ops.def"
#undef GM_LAB_OP
};
