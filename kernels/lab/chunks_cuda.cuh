/* The loop that reads a window of any space again and again, in chunks of 16 bytes a thread. */
#ifndef GM_KERNELS_LAB_CHUNKS_CUDA_CUH
#define GM_KERNELS_LAB_CHUNKS_CUDA_CUH

#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

enum { GM_CHUNK_THREADS = GM_LAB_CHUNK / (int)sizeof(uint4), GM_CHUNKS_AHEAD = 4 };

static __device__ __forceinline__ unsigned gm_words_sum(uint4 v)
{
    return v.x + v.y + v.z + v.w;
}

/* The sum over `count` chunks: at, at + step and so on, modulo `chunks`; step < chunks, at < chunks. load(c): the word
 * of this thread in chunk c. The compiler knows none of the numbers, so it cannot keep words in registers. */
template <class LOAD>
static __device__ __forceinline__ unsigned gm_chunks_sum(LOAD load, int at, int step, int chunks, int64_t count)
{
    unsigned sum = 0;
    for (; count >= GM_CHUNKS_AHEAD; count -= GM_CHUNKS_AHEAD) {
        uint4 v[GM_CHUNKS_AHEAD];
#pragma unroll
        for (int a = 0; a < GM_CHUNKS_AHEAD; a++) {
            v[a] = load(at);
            at += step;
            at -= at >= chunks ? chunks : 0;
        }
#pragma unroll
        for (int a = 0; a < GM_CHUNKS_AHEAD; a++)
            sum += gm_words_sum(v[a]);
    }
    for (; count > 0; count--) {
        sum += gm_words_sum(load(at));
        at += step;
        at -= at >= chunks ? chunks : 0;
    }
    return sum;
}

/* dst[warp of the grid] = the sum over the warp. */
static __device__ __forceinline__ void gm_warp_store(uint32_t *dst, unsigned sum)
{
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x % 32 == 0)
        dst[((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32] = sum;
}

/* The L1 cache as large as it can be: the kernel wants this much shared memory, in percent. */
template <class KERNEL>
static void gm_prefer_l1(KERNEL *kernel)
{
    cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                         cudaSharedmemCarveoutMaxL1);
}

#endif
