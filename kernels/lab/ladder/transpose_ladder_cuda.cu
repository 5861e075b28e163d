/* The steps to a fast transposition: blocks of 32 x 8 threads, each of which moves four elements of a tile of 32 x 32.
 */
#include <cuda_runtime.h>

#include "kernels/lab/ladder/ladders.h"

enum { SIDE = GM_TRANSPOSE_LADDER_SIDE, ROWS = 8 };

/* Reads rows, writes columns. */
static __global__ void __launch_bounds__(SIDE *ROWS) transpose_naive(const uint32_t *src, uint32_t *dst, int64_t n)
{
    int64_t i = (int64_t)blockIdx.y * SIDE + threadIdx.y, j = (int64_t)blockIdx.x * SIDE + threadIdx.x;
    uint32_t v[SIDE / ROWS];
#pragma unroll
    for (int r = 0; r < SIDE / ROWS; r++)
        v[r] = src[(i + r * ROWS) * n + j];
#pragma unroll
    for (int r = 0; r < SIDE / ROWS; r++)
        dst[j * n + i + r * ROWS] = v[r];
}

/* Reads rows and writes rows; columns are read in shared memory, from one bank without the pad of a word. */
template <int PAD>
static __global__ void __launch_bounds__(SIDE *ROWS) transpose_tile(const uint32_t *src, uint32_t *dst, int64_t n)
{
    __shared__ uint32_t tile[SIDE][SIDE + PAD];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t i = (int64_t)blockIdx.y * SIDE, j = (int64_t)blockIdx.x * SIDE;
#pragma unroll
    for (int r = 0; r < SIDE; r += ROWS)
        tile[y + r][x] = src[(i + y + r) * n + j + x];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < SIDE; r += ROWS)
        dst[(j + y + r) * n + i + x] = tile[x][y + r];
}

extern "C" int gm_cuda_transpose_ladder(gm_cuda_stream stream, const gm_transpose_ladder_call *call)
{
    static void (*const kernels[])(const uint32_t *src, uint32_t *dst, int64_t n) = {transpose_naive, transpose_tile<0>,
                                                                                     transpose_tile<1>};
    int64_t tiles = call->n / SIDE;
    if (call->n % SIDE != 0 || tiles > UINT16_MAX)
        return cudaErrorInvalidConfiguration;
    if (tiles == 0)
        return cudaSuccess;
    kernels[call->stage]<<<dim3((unsigned)tiles, (unsigned)tiles), dim3(SIDE, ROWS), 0, stream>>>(call->src, call->dst,
                                                                                                  call->n);
    return cudaGetLastError();
}
