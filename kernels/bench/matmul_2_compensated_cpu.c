/* Step 2 on the processor: as step 1, with compensated summation (matmul_2_compensated_cuda.cu names the source). */
#include "base/size.h"
#include "kernels/bench/launch.h"

enum { COLUMNS = 64 };

static void multiply(const gm_gemm_call *call, int64_t i, int64_t j0, int64_t columns)
{
    const float *a = (const float *)call->a + i * call->lda, *b = (const float *)call->b + j0;
    float *c = (float *)call->c + i * call->ldc + j0, sum[COLUMNS] = {0}, lost[COLUMNS] = {0};
    for (int64_t l = 0; l < call->k; l++, b += call->ldb)
        for (int64_t j = 0; j < columns; j++) {
            float term = a[l] * b[j] - lost[j], next = sum[j] + term;
            lost[j] = (next - sum[j]) - term;
            sum[j] = next;
        }
    for (int64_t j = 0; j < columns; j++)
        c[j] = sum[j];
}

int gm_cpu_matmul_2_compensated(int threads, const gm_gemm_call *call)
{
    if (call->type != GM_DTYPE_F32)
        return gm_fail(GM_EINTERNAL, "ladder of products: not a float32 product");
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < call->m; i++)
        for (int64_t j = 0; j < call->n; j += COLUMNS)
            multiply(call, i, j, gm_min(COLUMNS, call->n - j));
    return GM_OK;
}
