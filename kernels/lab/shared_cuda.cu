/* Loads from shared memory whose addresses conflict in the banks or do not. */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

/* The sum of the 32-bit parts of BYTES bytes of shared memory. Loads that are volatile stay in their loop. */
template <int BYTES>
static __device__ __forceinline__ unsigned loaded(unsigned at)
{
    unsigned x, y = 0, z = 0, w = 0;
    if (BYTES == 1)
        asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(x) : "r"(at));
    else if (BYTES == 2)
        asm volatile("ld.volatile.shared.u16 %0, [%1];" : "=r"(x) : "r"(at));
    else if (BYTES == 4)
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(x) : "r"(at));
    else if (BYTES == 8)
        asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at));
    else
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                     : "r"(at));
    return x + y + z + w;
}

/* A warp loads at GM_SHARED_LOADS places, one row of banks from each other. */
template <int BYTES>
static __global__ void __launch_bounds__(GM_SHARED_THREADS)
    read_words(unsigned stride, unsigned share, int rounds, unsigned *out)
{
    __shared__ __align__(16) unsigned words[GM_SHARED_WORDS];
    unsigned at = (unsigned)__cvta_generic_to_shared(words) + threadIdx.x % 32 / share * stride * BYTES, sum = 0;
    for (unsigned i = threadIdx.x; i < GM_SHARED_WORDS; i += GM_SHARED_THREADS)
        words[i] = gm_shared_word(i);
    __syncthreads();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (unsigned u = 0; u < GM_SHARED_LOADS; u++)
            sum += loaded<BYTES>(at + u * GM_SHARED_ROW);
    }
    out[blockIdx.x * GM_SHARED_THREADS + threadIdx.x] = sum;
}

/* A warp loads the columns of a tile, one after the other. */
template <int PITCH>
static __global__ void __launch_bounds__(GM_SHARED_THREADS)
    read_columns(unsigned stride, unsigned share, int rounds, unsigned *out)
{
    __shared__ unsigned tile[GM_SHARED_TILE][PITCH];
    unsigned lane = threadIdx.x % GM_SHARED_TILE, warp = threadIdx.x / GM_SHARED_TILE, sum = 0;
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[lane][0]);
    tile[warp][lane] = gm_shared_word(threadIdx.x);
    __syncthreads();
    (void)stride, (void)share;
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (unsigned c = 0; c < GM_SHARED_TILE; c++)
            sum += loaded<4>(at + 4 * c);
    }
    out[blockIdx.x * GM_SHARED_THREADS + threadIdx.x] = sum;
}

extern "C" int gm_cuda_shared_read(gm_cuda_stream stream, const gm_shared_read_call *call)
{
    static void (*const kernels[GM_SHARED_READS])(unsigned stride, unsigned share, int rounds,
                                                  unsigned *out) = {read_words<1>,
                                                                    read_words<2>,
                                                                    read_words<4>,
                                                                    read_words<8>,
                                                                    read_words<16>,
                                                                    read_columns<GM_SHARED_TILE>,
                                                                    read_columns<GM_SHARED_TILE + 1>};
    kernels[call->kind]<<<(unsigned)call->blocks, GM_SHARED_THREADS, 0, stream>>>(
        (unsigned)call->stride, (unsigned)call->share, call->rounds, (unsigned *)call->out);
    return cudaGetLastError();
}
