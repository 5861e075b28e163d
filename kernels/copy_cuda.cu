/* Copies within the device's memory. Each thread has EACH reads of 16 bytes in flight before it writes; a block takes one piece, and no block stays
 * for a second: the hardware hands out pieces faster than a loop would. Neither side will be used again soon, and is cached so. */
#include <cuda_runtime.h>

#include "kernels/kernels.h"

enum { THREADS = 256, EACH = 4, PIECE = THREADS * EACH };

static __global__ void __launch_bounds__(THREADS) copy_piece(uint4 *__restrict__ dst, const uint4 *__restrict__ src, int64_t words, int rest)
{
    int64_t first = (int64_t)blockIdx.x * PIECE, at = first + threadIdx.x;
    uint4 v[EACH];

    if (first + PIECE <= words) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            v[e] = __ldcs(src + at + e * THREADS);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            __stcs(dst + at + e * THREADS, v[e]);
        return;
    }
    for (; at < words; at += THREADS)
        dst[at] = src[at];
    if ((int)threadIdx.x < rest) /* bytes behind the last whole word */
        ((char *)(dst + words))[threadIdx.x] = ((const char *)(src + words))[threadIdx.x];
}

extern "C" int gm_cuda_copy(gm_cuda_stream stream, void *dst, const void *src, size_t bytes)
{
    int64_t words = (int64_t)(bytes / sizeof(uint4)), rest = (int64_t)(bytes % sizeof(uint4));
    int64_t blocks = words / PIECE + (words % PIECE != 0 || rest != 0);

    if ((((uintptr_t)dst | (uintptr_t)src) & (sizeof(uint4) - 1)) != 0)
        return cudaErrorMisalignedAddress;
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    copy_piece<<<(unsigned)blocks, THREADS, 0, stream>>>((uint4 *)dst, (const uint4 *)src, words, (int)rest);
    return cudaGetLastError();
}
