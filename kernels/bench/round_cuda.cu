/* Data rounded to the operands of cuBLAS. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/bench/launch.h"

enum { THREADS = 256 };
static const int64_t most_blocks = 1 << 16;

static __device__ __forceinline__ void round_to(__half *dst, float value)
{
    *dst = __float2half_rn(value);
}

static __device__ __forceinline__ void round_to(__nv_bfloat16 *dst, float value)
{
    *dst = __float2bfloat16_rn(value);
}

template <typename OPERAND>
static __global__ void __launch_bounds__(THREADS) round_elements(gm_rival_round_call call)
{
    int64_t count = call.rows * call.cols, step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        int64_t at = i / call.cols * call.ld + i % call.cols;
        round_to((OPERAND *)call.dst + at, call.src[at]);
    }
}

extern "C" int gm_cuda_rival_round(gm_cuda_stream stream, const gm_rival_round_call *call)
{
    int64_t blocks = (call->rows * call->cols + THREADS - 1) / THREADS;
    unsigned grid = (unsigned)(blocks < most_blocks ? blocks : most_blocks);
    if (call->precision == GM_PRECISION_BF16)
        round_elements<__nv_bfloat16><<<grid, THREADS, 0, stream>>>(*call);
    else if (call->precision == GM_PRECISION_FP16)
        round_elements<__half><<<grid, THREADS, 0, stream>>>(*call);
    else
        return cudaErrorNotSupported;
    return cudaGetLastError();
}
