/* Elements that change places by way of shared memory, and kernels for which the part of the L1 cache that is shared
 * memory matters. */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

enum {
    PART = GM_SHARED_PART,
    THREADS = 256,
    EACH = PART / THREADS,
    WINDOW_WORDS = GM_CARVEOUT_WINDOW / 16,
    WINDOW_THREADS = GM_CARVEOUT_THREADS,
    STAGE_WORDS = GM_CARVEOUT_STAGE / 16,
    STAGE_THREADS = 128,
    STAGE_EACH = 4
};

template <typename T>
static __device__ __forceinline__ void take(T v[EACH], const T *src)
{
#pragma unroll
    for (int e = 0; e < EACH; e++)
        v[e] = src[e * THREADS + threadIdx.x];
}

template <typename T>
static __device__ __forceinline__ void put(T *dst, const T v[EACH])
{
#pragma unroll
    for (int e = 0; e < EACH; e++)
        dst[e * THREADS + threadIdx.x] = v[e];
}

template <typename T>
static __device__ __forceinline__ void take_reversed(T v[EACH], const T *src)
{
#pragma unroll
    for (int e = 0; e < EACH; e++)
        v[e] = src[PART - 1 - (e * THREADS + threadIdx.x)];
}

extern __shared__ __align__(16) unsigned char dynamic[];

static __global__ void __launch_bounds__(THREADS) reverse_directly(const unsigned *src, unsigned *dst, int64_t)
{
    unsigned v[EACH];
    take_reversed(v, src + (int64_t)blockIdx.x * PART);
    put(dst + (int64_t)blockIdx.x * PART, v);
}

static __device__ __forceinline__ void reverse_through(unsigned *staged, const unsigned *src, unsigned *dst)
{
    unsigned v[EACH];
    take(v, src + (int64_t)blockIdx.x * PART);
    put(staged, v);
    __syncthreads();
    take_reversed(v, staged);
    put(dst + (int64_t)blockIdx.x * PART, v);
}

static __global__ void __launch_bounds__(THREADS) reverse_static(const unsigned *src, unsigned *dst, int64_t)
{
    __shared__ unsigned staged[PART];
    reverse_through(staged, src, dst);
}

static __global__ void __launch_bounds__(THREADS) reverse_dynamic(const unsigned *src, unsigned *dst, int64_t)
{
    reverse_through((unsigned *)dynamic, src, dst);
}

/* [count] int, [count] float, [count] char, one after the other in global as in shared memory. */
static __global__ void __launch_bounds__(THREADS) reverse_arrays(const unsigned *src, unsigned *dst, int64_t count)
{
    const int64_t at = (int64_t)blockIdx.x * PART;
    int *ints = (int *)dynamic, i[EACH];
    float *floats = (float *)(ints + PART), f[EACH];
    char *chars = (char *)(floats + PART), c[EACH];
    take(i, (const int *)src + at);
    take(f, (const float *)(src + count) + at);
    take(c, (const char *)(src + 2 * count) + at);
    put(ints, i);
    put(floats, f);
    put(chars, c);
    __syncthreads();
    take_reversed(i, ints);
    take_reversed(f, floats);
    take_reversed(c, chars);
    put((int *)dst + at, i);
    put((float *)(dst + count) + at, f);
    put((char *)(dst + 2 * count) + at, c);
}

extern "C" int gm_cuda_shared_move(gm_cuda_stream stream, const gm_shared_move_call *call)
{
    static const struct {
        void (*kernel)(const unsigned *src, unsigned *dst, int64_t count);
        size_t dynamic_bytes;
    } reversals[] = {{reverse_directly, 0},
                     {reverse_static, 0},
                     {reverse_dynamic, PART * sizeof(int)},
                     {reverse_arrays, PART * (sizeof(int) + sizeof(float) + sizeof(char))}};
    reversals[call->kind]
        .kernel<<<(unsigned)(call->count / PART), THREADS, reversals[call->kind].dynamic_bytes, stream>>>(
            (const unsigned *)call->src, (unsigned *)call->dst, call->count);
    return cudaGetLastError();
}

/* Each block reads a window again and again. The lanes of a warp change places each time, so that no load repeats. */
static __global__ void __launch_bounds__(WINDOW_THREADS)
    read_window(const uint4 *src, uint4 *dst, unsigned *out, int rounds)
{
    const uint4 *window = src + (int64_t)blockIdx.x * WINDOW_WORDS;
    unsigned sum = 0;
    (void)dst;
#pragma unroll 1
    for (unsigned r = 0; r < (unsigned)rounds; r++) {
        const uint4 *at = window + (threadIdx.x ^ (r & 31));
#pragma unroll
        for (int e = 0; e < WINDOW_WORDS / WINDOW_THREADS; e++) {
            uint4 v = at[e * WINDOW_THREADS];
            sum += v.x + v.y + v.z + v.w;
        }
    }
    out[blockIdx.x * WINDOW_THREADS + threadIdx.x] = sum;
}

/* Each block reverses the words of its part, which fills 48 KiB of shared memory. */
static __global__ void __launch_bounds__(STAGE_THREADS)
    reverse_stage(const uint4 *src, uint4 *dst, unsigned *out, int rounds)
{
    __shared__ uint4 stage[STAGE_WORDS];
    const uint4 *from = src + (int64_t)blockIdx.x * STAGE_WORDS + threadIdx.x;
    uint4 *to = dst + (int64_t)blockIdx.x * STAGE_WORDS + threadIdx.x;
    (void)out, (void)rounds;
#pragma unroll 1
    for (int at = 0; at < STAGE_WORDS; at += STAGE_EACH * STAGE_THREADS) {
        uint4 v[STAGE_EACH];
#pragma unroll
        for (int e = 0; e < STAGE_EACH; e++)
            v[e] = from[at + e * STAGE_THREADS];
#pragma unroll
        for (int e = 0; e < STAGE_EACH; e++)
            stage[at + e * STAGE_THREADS + threadIdx.x] = v[e];
    }
    __syncthreads();
#pragma unroll STAGE_EACH
    for (int at = 0; at < STAGE_WORDS; at += STAGE_THREADS)
        to[at] = stage[STAGE_WORDS - 1 - (at + threadIdx.x)];
}

extern "C" int gm_cuda_carveout(gm_cuda_stream stream, const gm_carveout_call *call)
{
    void (*kernel)(const uint4 *src, uint4 *dst, unsigned *out, int rounds) = call->stages ? reverse_stage
                                                                                           : read_window;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, call->percent);
    if (error != cudaSuccess)
        return error;
    kernel<<<(unsigned)call->blocks, call->stages ? STAGE_THREADS : WINDOW_THREADS, 0, stream>>>(
        (const uint4 *)call->src, (uint4 *)call->dst, (unsigned *)call->out, call->rounds);
    return cudaGetLastError();
}
