/* Kernels of the harness: a gate that holds a stream, and a reader that flushes the L2 cache. */
#include <cuda_runtime.h>

#include "kernels/bench/launch.h"

static __device__ __forceinline__ uint64_t nanoseconds(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

/* Spins until the host releases this hold. The limit in nanoseconds makes sure that it ends. */
static __global__ void wait_at_gate(volatile gm_cuda_gate *gate, unsigned hold, uint64_t limit)
{
    uint64_t start = nanoseconds();

    while ((int)(gate->released - hold) < 0) {
        if (nanoseconds() - start > limit) {
            gate->expired = hold;
            __threadfence_system();
            return;
        }
        __nanosleep(500);
    }
}

extern "C" int gm_cuda_hold(gm_cuda_stream stream, gm_cuda_gate *gate, unsigned hold, int seconds)
{
    wait_at_gate<<<1, 1, 0, stream>>>(gate, hold, (uint64_t)seconds * 1000000000);
    return cudaGetLastError();
}

enum { THREADS = 256, EACH = 4 };
static const int64_t most_blocks = 4096;

/* Reads everything and writes nothing: the buffer holds zeros, which the compiler cannot know. */
static __global__ void __launch_bounds__(THREADS) read_all(uint4 *buffer, int64_t words)
{
    int64_t stride = (int64_t)gridDim.x * THREADS * EACH;
    unsigned seen = 0;

    for (int64_t at = (int64_t)blockIdx.x * THREADS * EACH + threadIdx.x; at < words; at += stride) {
        uint4 v[EACH] = {};
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (at + e * THREADS < words)
                v[e] = __ldcg(buffer + at + e * THREADS);
        }
#pragma unroll
        for (int e = 0; e < EACH; e++)
            seen |= v[e].x | v[e].y | v[e].z | v[e].w;
    }
    if (seen != 0)
        buffer[0].x = 0;
}

extern "C" int gm_cuda_flush(gm_cuda_stream stream, const void *buffer, size_t bytes)
{
    int64_t words = (int64_t)(bytes / sizeof(uint4)), blocks = (words + THREADS * EACH - 1) / (THREADS * EACH);

    if (words == 0)
        return cudaSuccess;
    read_all<<<(unsigned)(blocks < most_blocks ? blocks : most_blocks), THREADS, 0, stream>>>((uint4 *)buffer, words);
    return cudaGetLastError();
}
