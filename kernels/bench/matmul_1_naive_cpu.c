/* Step 1 on the processor: each element of C is a plain float32 sum over k, with the bits of matmul_1_naive_cuda.cu.
 * The inner loop runs over columns, so that it is vectorized. */
#include "base/size.h"
#include "kernels/bench/launch.h"

enum { COLUMNS = 64 };

static void multiply(const gm_gemm_call *call, int64_t i, int64_t j0, int64_t columns)
{
    const float *a = (const float *)call->a + i * call->lda, *b = (const float *)call->b + j0;
    float *c = (float *)call->c + i * call->ldc + j0, sum[COLUMNS] = {0};
    for (int64_t l = 0; l < call->k; l++, b += call->ldb)
        for (int64_t j = 0; j < columns; j++)
            sum[j] += a[l] * b[j];
    for (int64_t j = 0; j < columns; j++)
        c[j] = sum[j];
}

int gm_cpu_matmul_1_naive(int threads, const gm_gemm_call *call)
{
    if (call->type != GM_DTYPE_F32)
        return gm_fail(GM_EINTERNAL, "ladder of products: not a float32 product");
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < call->m; i++)
        for (int64_t j = 0; j < call->n; j += COLUMNS)
            multiply(call, i, j, gm_min(COLUMNS, call->n - j));
    return GM_OK;
}
