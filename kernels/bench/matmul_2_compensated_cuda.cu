/* Step 2: as step 1, with compensated summation: the rounding error of each addition goes into the next one. W. Kahan,
 * "Further remarks on reducing truncation errors", Comm. ACM 8 (1965) 40, doi:10.1145/363707.363723. */
#include <cuda_runtime.h>

#include "kernels/bench/launch.h"

enum { SIDE = 16 };

static __global__ void multiply(gm_gemm_call call)
{
    int64_t i = (int64_t)blockIdx.y * SIDE + threadIdx.y, j = (int64_t)blockIdx.x * SIDE + threadIdx.x;
    const float *a = (const float *)call.a + i * call.lda, *b = (const float *)call.b + j;
    float sum = 0, lost = 0;

    if (i >= call.m || j >= call.n)
        return;
    for (int64_t l = 0; l < call.k; l++) {
        float term = a[l] * b[l * call.ldb] - lost, next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    ((float *)call.c)[i * call.ldc + j] = sum;
}

extern "C" int gm_cuda_matmul_2_compensated(gm_cuda_stream stream, const gm_gemm_call *call)
{
    dim3 block(SIDE, SIDE), grid((unsigned)((call->n + SIDE - 1) / SIDE), (unsigned)((call->m + SIDE - 1) / SIDE));

    if (call->type != GM_DTYPE_F32)
        return cudaErrorInvalidValue;
    multiply<<<grid, block, 0, stream>>>(*call);
    return cudaGetLastError();
}
