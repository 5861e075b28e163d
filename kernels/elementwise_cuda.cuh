/* elementwise_cuda.cuh - blocks and threads of kernels that visit a matrix element by element. */
#ifndef GM_KERNELS_ELEMENTWISE_CUDA_CUH
#define GM_KERNELS_ELEMENTWISE_CUDA_CUH

#include <cuda_runtime.h>

#include "kernels/kernels.h"

/* A warp has WIDTH columns of one row, each thread EACH of them, LANES apart: accesses of a warp coalesce, and each
 * thread has EACH loads in flight. */
enum { LANES = 32, WARPS = 8, EACH = 4, WIDTH = LANES * EACH };

/* Enough blocks to fill any device a few times; blocks go on to further columns and rows. */
static inline dim3 elementwise_grid(int64_t rows, int64_t cols)
{
    const int64_t most = 16384;
    int64_t x = (cols + WIDTH - 1) / WIDTH, y = (rows + WARPS - 1) / WARPS;
    x = x < most ? x : most;
    y = y < most / x ? y : most / x;
    return dim3((unsigned)x, (unsigned)(y > 0 ? y : 1));
}

static inline dim3 elementwise_block(void)
{
    return dim3(LANES, WARPS);
}

/* Runs body(i, j, n): this thread's elements of row i are the columns j, j + LANES, ..., n of them (EACH at most). */
template <typename BODY>
static __device__ __forceinline__ void elementwise(int64_t rows, int64_t cols, BODY body)
{
    for (int64_t i = (int64_t)blockIdx.y * WARPS + threadIdx.y; i < rows; i += (int64_t)gridDim.y * WARPS) {
        for (int64_t j = (int64_t)blockIdx.x * WIDTH + threadIdx.x; j < cols; j += (int64_t)gridDim.x * WIDTH) {
            int64_t left = (cols - j + LANES - 1) / LANES;
            body(i, j, left < EACH ? (int)left : EACH);
        }
    }
}

/* Elements are read whole, so that they must lie at multiples of their size. */
static inline int misaligned(const void *memory, size_t pitch, gm_dtype type)
{
    return (((size_t)memory | pitch) & (gm_dtype_size(type) - 1)) != 0;
}

#endif
