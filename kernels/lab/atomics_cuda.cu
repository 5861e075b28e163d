/* A sum by several threads: each adds to a cell that others change as well, or to one of its own. */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

enum { THREADS = GM_ATOMICS_BLOCK, BLOCKS = GM_ATOMICS_BLOCKS /* of threads with sums of their own */ };

/* As written here, and not as the compiler would combine the adds of a warp. */
static __device__ __forceinline__ void add_to(unsigned *cell, unsigned x)
{
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" : : "l"(cell), "r"(x) : "memory");
}

static __device__ __forceinline__ void add_to(float *cell, float x)
{
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" : : "l"(cell), "f"(x) : "memory");
}

static __device__ __forceinline__ unsigned value_of(unsigned bits, unsigned)
{
    return bits;
}

static __device__ __forceinline__ float value_of(unsigned bits, float)
{
    return gm_atomics_float(bits);
}

/* A thread adds one element. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    add_each(const unsigned *src, int64_t count, unsigned mask, T *cells, T *)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < count)
        add_to(&cells[gm_atomics_cell((uint32_t)at, mask)], value_of(src[at], T()));
}

/* The lanes of a warp add their elements first; count is a multiple of the block. */
static __global__ void __launch_bounds__(THREADS)
    add_warps(const unsigned *src, int64_t, unsigned, unsigned *cells, unsigned *)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned sum = __reduce_add_sync(~0u, src[at]);
    if (threadIdx.x % 32 == 0)
        add_to(cells, sum);
}

/* The warps of a block add theirs in shared memory first. */
static __global__ void __launch_bounds__(THREADS)
    add_blocks(const unsigned *src, int64_t, unsigned, unsigned *cells, unsigned *)
{
    __shared__ unsigned partial;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned x = src[at];
    if (threadIdx.x == 0)
        partial = 0;
    __syncthreads();
    atomicAdd(&partial, x);
    __syncthreads();
    if (threadIdx.x == 0)
        add_to(cells, partial);
}

/* own[0] = own[0] + own[1] + ...: each step adds the upper half to the lower one. */
template <typename T, int COUNT>
static __device__ __forceinline__ void add_halves(T *own)
{
#pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            own[threadIdx.x] += own[threadIdx.x + half];
    }
}

/* Each thread adds elements on its own, then the threads of a block add their sums as a tree, without an atomic. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    add_private(const unsigned *src, int64_t count, unsigned, T *, T *partials)
{
    __shared__ T own[THREADS];
    const uint4 *words = (const uint4 *)src + (int64_t)blockIdx.x * THREADS + threadIdx.x;
    T sum = 0;
#pragma unroll 4
    for (int64_t at = 0; at < count / 4; at += GM_ATOMICS_PRIVATE) {
        uint4 v = words[at];
        sum += value_of(v.x, T());
        sum += value_of(v.y, T());
        sum += value_of(v.z, T());
        sum += value_of(v.w, T());
    }
    own[threadIdx.x] = sum;
    add_halves<T, THREADS>(own);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = own[0];
}

/* The sum of the partial sums of the blocks. */
template <typename T>
static __global__ void __launch_bounds__(BLOCKS) add_partials(T *cells, const T *partials)
{
    __shared__ T own[BLOCKS];
    own[threadIdx.x] = partials[threadIdx.x];
    add_halves<T, BLOCKS>(own);
    if (threadIdx.x == 0)
        cells[0] = own[0];
}

template <typename T>
static int launch(cudaStream_t stream, const gm_atomics_call *c,
                  void (*kernel)(const unsigned *src, int64_t count, unsigned mask, T *cells, T *partials))
{
    int is_private = c->method == GM_ATOMICS_OWN || c->method == GM_ATOMICS_FLOAT_OWN;
    int64_t blocks = is_private ? (int64_t)BLOCKS : (c->count + THREADS - 1) / THREADS;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    kernel<<<(unsigned)blocks, THREADS, 0, stream>>>((const unsigned *)c->src, c->count, (unsigned)c->cells - 1,
                                                     (T *)c->sums, (T *)c->partials);
    if (is_private)
        add_partials<T><<<1, BLOCKS, 0, stream>>>((T *)c->sums, (const T *)c->partials);
    return cudaGetLastError();
}

extern "C" int gm_cuda_atomics(gm_cuda_stream stream, const gm_atomics_call *call)
{
    return call->method == GM_ATOMICS_EACH         ? launch<unsigned>(stream, call, add_each<unsigned>)
           : call->method == GM_ATOMICS_WARPS      ? launch<unsigned>(stream, call, add_warps)
           : call->method == GM_ATOMICS_BLOCKWISE  ? launch<unsigned>(stream, call, add_blocks)
           : call->method == GM_ATOMICS_OWN        ? launch<unsigned>(stream, call, add_private<unsigned>)
           : call->method == GM_ATOMICS_FLOAT_EACH ? launch<float>(stream, call, add_each<float>)
                                                   : launch<float>(stream, call, add_private<float>);
}
