/* The first steps to a fast product, by the processor, with the bits of matmul_ladder_cuda.cu. The inner loops run over
 * columns, so that they are vectorized. */
#include "base/size.h"
#include "kernels/lab/ladder/ladders.h"

enum { COLUMNS = 64 };

static void plain(const gm_gemm_call *call, int64_t i, int64_t j0, int64_t columns)
{
    const float *a = (const float *)call->a + i * call->lda, *b = (const float *)call->b + j0;
    float *c = (float *)call->c + i * call->ldc + j0, sum[COLUMNS] = {0};
    for (int64_t l = 0; l < call->k; l++, b += call->ldb)
        for (int64_t j = 0; j < columns; j++)
            sum[j] += a[l] * b[j];
    for (int64_t j = 0; j < columns; j++)
        c[j] = sum[j];
}

static void compensated(const gm_gemm_call *call, int64_t i, int64_t j0, int64_t columns)
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

int gm_cpu_matmul_ladder(int threads, const gm_matmul_ladder_call *call)
{
    const gm_gemm_call *g = &call->gemm;
    if (g->type != GM_DTYPE_F32 || call->stage > GM_MATMUL_LADDER_COMPENSATED)
        return gm_fail(GM_EINTERNAL, "ladder of products: a processor has no step %d", (int)call->stage);
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j += COLUMNS)
            (call->stage == GM_MATMUL_LADDER_PLAIN ? plain : compensated)(g, i, j, gm_min(COLUMNS, g->n - j));
    return GM_OK;
}
