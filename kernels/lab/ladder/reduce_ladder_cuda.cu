/* The steps to a fast sum of squares. Each kernel has one idea more than the one before it. */
#include <cuda_runtime.h>

#include "kernels/lab/ladder/ladders.h"

enum { THREADS = GM_REDUCE_LADDER_THREADS, WARP = 32, WARPS = THREADS / WARP };

/* The squares of elements first, first + step, ... below end. */
static __device__ __forceinline__ unsigned squares(const int32_t *src, int first, int end, int step)
{
    unsigned sum = 0;
    for (int i = first; i < end; i += step)
        sum += (unsigned)(src[i] * src[i]);
    return sum;
}

/* Threads of a warp take turns: they read elements that lie together. */
static __device__ __forceinline__ unsigned squares_in_turn(const int32_t *src, int count)
{
    return squares(src, (int)(blockIdx.x * blockDim.x + threadIdx.x), count, (int)(gridDim.x * blockDim.x));
}

/* Threads of a warp read elements that lie a part apart. One thread: all elements. */
static __global__ void sum_parts(const int32_t *src, int count, unsigned *out)
{
    int64_t threads = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = squares(src, (int)(count * t / threads), (int)(count * (t + 1) / threads), 1);
}

static __global__ void sum_in_turn(const int32_t *src, int count, unsigned *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = squares_in_turn(src, count);
}

static __global__ void __launch_bounds__(THREADS) sum_by_thread_0(const int32_t *src, int count, unsigned *out)
{
    __shared__ unsigned sums[THREADS];
    sums[threadIdx.x] = squares_in_turn(src, count);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (int i = 0; i < THREADS; i++)
            sum += sums[i];
        out[blockIdx.x] = sum;
    }
}

/* Thread t adds words 2 t w and (2 t + 1) w: of 32 banks a warp uses 32 / (2 w). */
static __global__ void __launch_bounds__(THREADS) sum_tree_conflicts(const int32_t *src, int count, unsigned *out)
{
    __shared__ unsigned sums[THREADS];
    sums[threadIdx.x] = squares_in_turn(src, count);
    __syncthreads();
#pragma unroll 1
    for (int w = 1; w < THREADS; w *= 2) {
        int at = 2 * w * threadIdx.x;
        if (at < THREADS)
            sums[at] += sums[at + w];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = sums[0];
}

/* Thread t adds words t and t + w: a bank for each thread of a warp. */
static __global__ void __launch_bounds__(THREADS) sum_tree(const int32_t *src, int count, unsigned *out)
{
    __shared__ unsigned sums[THREADS];
    sums[threadIdx.x] = squares_in_turn(src, count);
    __syncthreads();
#pragma unroll 1
    for (int w = THREADS / 2; w > 0; w /= 2) {
        if ((int)threadIdx.x < w)
            sums[threadIdx.x] += sums[threadIdx.x + w];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = sums[0];
}

template <int FROM>
static __device__ __forceinline__ unsigned sum_of_lanes(unsigned sum)
{
#pragma unroll
    for (int w = FROM; w > 0; w /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, w);
    return sum;
}

static __global__ void __launch_bounds__(THREADS) sum_unrolled(const int32_t *src, int count, unsigned *out)
{
    __shared__ unsigned sums[WARPS];
    unsigned sum = sum_of_lanes<WARP / 2>(squares_in_turn(src, count));
    if (threadIdx.x % WARP == 0)
        sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x >= WARP)
        return;
    sum = sum_of_lanes<WARPS / 2>(sums[threadIdx.x % WARPS]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

extern "C" int gm_cuda_reduce_ladder(gm_cuda_stream stream, const gm_reduce_ladder_call *call)
{
    static void (*const kernels[])(const int32_t *src, int count, unsigned *out) = {
        sum_parts, sum_parts, sum_in_turn, sum_by_thread_0, sum_tree_conflicts, sum_tree, sum_unrolled};
    if (call->count > INT32_MAX / 2 || (call->stage > GM_REDUCE_LADDER_GRID && call->threads != THREADS))
        return cudaErrorInvalidConfiguration;
    kernels[call->stage]<<<(unsigned)call->blocks, (unsigned)call->threads, 0, stream>>>(call->src, (int)call->count,
                                                                                         call->out);
    return cudaGetLastError();
}
