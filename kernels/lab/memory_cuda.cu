/* The spaces of a GPU: their bandwidth, by windows that are read again and again, and their latency, by one thread that
 * follows a chain of addresses. */
#include "kernels/lab/chunks_cuda.cuh"
#include "kernels/lab/kinds.h"

enum { THREADS = 256, WARM = 4096 /* places that are read before a chain through L1 is followed, at most */ };

static __constant__ uint32_t constants[2 * GM_LAB_CONSTANTS];

extern "C" int gm_cuda_constants(gm_cuda_stream stream, const gm_constants_call *call)
{
    return cudaMemcpyToSymbolAsync(constants, call->src, sizeof constants, 0, cudaMemcpyDeviceToDevice, stream);
}

/* --- Bandwidth. The numbers of chunks are arguments: what the compiler knows it could keep in registers. --- */

static __global__ void __launch_bounds__(GM_CHUNK_THREADS)
    read_local(const uint4 *src, uint32_t *dst, int chunks, int64_t count)
{
    uint4 own[GM_LAB_LOCAL_CHUNKS];
    src += (int64_t)blockIdx.x * (GM_LAB_LOCAL_CHUNKS * GM_CHUNK_THREADS) + threadIdx.x;
    for (int i = 0; i < GM_LAB_LOCAL_CHUNKS; i++)
        own[i] = src[i * GM_CHUNK_THREADS];
    gm_warp_store(dst, gm_chunks_sum([&own](int chunk) { return own[chunk]; }, 0, 1, chunks, count));
}

static __global__ void __launch_bounds__(GM_CHUNK_THREADS)
    read_shared(const uint4 *src, uint32_t *dst, int chunks, int64_t count)
{
    __shared__ uint4 words[GM_LAB_SHARED_CHUNKS * GM_CHUNK_THREADS];
    src += (int64_t)blockIdx.x * (GM_LAB_SHARED_CHUNKS * GM_CHUNK_THREADS);
    for (int i = threadIdx.x; i < GM_LAB_SHARED_CHUNKS * GM_CHUNK_THREADS; i += GM_CHUNK_THREADS)
        words[i] = src[i];
    __syncthreads();
    const uint4 *first = words + threadIdx.x;
    gm_warp_store(dst,
                  gm_chunks_sum([first](int chunk) { return first[chunk * GM_CHUNK_THREADS]; }, 0, 1, chunks, count));
}

static __global__ void __launch_bounds__(GM_CHUNK_THREADS)
    read_texture(cudaTextureObject_t texture, uint32_t *dst, int chunks, int64_t count)
{
    int first = blockIdx.x * (GM_LAB_TEXTURE_CHUNKS * GM_CHUNK_THREADS) + threadIdx.x;
    gm_warp_store(
        dst, gm_chunks_sum(
                 [texture, first](int chunk) { return tex1Dfetch<uint4>(texture, first + chunk * GM_CHUNK_THREADS); },
                 0, 1, chunks, count));
}

/* apart: words from the place of a thread to that of the next one. */
static __global__ void __launch_bounds__(GM_CHUNK_THREADS) read_constant(uint32_t *dst, unsigned apart, int64_t count)
{
    const unsigned mask = GM_LAB_CONSTANTS - 1;
    unsigned sum = 0, at = threadIdx.x % 32 * apart;
    for (int64_t i = 0; i < count; i += 8) {
#pragma unroll
        for (unsigned a = 0; a < 8; a++)
            sum += constants[(at + a) & mask];
        at += 8;
    }
    gm_warp_store(dst, sum);
}

extern "C" int gm_cuda_space(gm_cuda_stream stream, const gm_space_call *call)
{
    unsigned blocks = (unsigned)call->blocks;
    const uint4 *src = (const uint4 *)call->src;
    uint32_t *dst = call->dst[0];
    if (call->blocks < 1 || call->blocks > 65535)
        return cudaErrorInvalidConfiguration;
    if (call->space == GM_SPACE_LOCAL) {
        gm_prefer_l1(read_local);
        read_local<<<blocks, GM_CHUNK_THREADS, 0, stream>>>(src, dst, GM_LAB_LOCAL_CHUNKS,
                                                            GM_LAB_LOCAL_CHUNKS * call->passes);
    } else if (call->space == GM_SPACE_SHARED) {
        read_shared<<<blocks, GM_CHUNK_THREADS, 0, stream>>>(src, dst, GM_LAB_SHARED_CHUNKS,
                                                             GM_LAB_SHARED_CHUNKS * call->passes);
    } else if (call->space == GM_SPACE_TEXTURE) {
        gm_prefer_l1(read_texture);
        read_texture<<<blocks, GM_CHUNK_THREADS, 0, stream>>>(call->texture, dst, GM_LAB_TEXTURE_CHUNKS,
                                                              GM_LAB_TEXTURE_CHUNKS * call->passes);
    } else if (call->space == GM_SPACE_CONSTANT) {
        read_constant<<<blocks, GM_CHUNK_THREADS, 0, stream>>>(dst, call->is_divergent != 0,
                                                               GM_LAB_CONSTANTS * call->passes);
    } else {
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

/* --- Latency --- */

template <class T>
static __global__ void __launch_bounds__(THREADS) chain(gm_chain_call c)
{
    int64_t s = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (s < c.count) {
        int64_t next = gm_lab_permuted((s + 1) & (c.count - 1), c.count);
        *(T *)((char *)c.dst + gm_lab_permuted(s, c.count) * c.stride) = (T)(c.base + c.scale * next);
    }
}

extern "C" int gm_cuda_chain(gm_cuda_stream stream, const gm_chain_call *call)
{
    int64_t blocks = (call->count + THREADS - 1) / THREADS;
    if (blocks < 1 || blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (call->bytes == 8)
        chain<uint64_t><<<(unsigned)blocks, THREADS, 0, stream>>>(*call);
    else
        chain<uint32_t><<<(unsigned)blocks, THREADS, 0, stream>>>(*call);
    return cudaGetLastError();
}

/* Where a chain is after some steps. next(at): the link at a place. */
template <class T, class NEXT>
static __device__ __forceinline__ T follow(NEXT next, T at, int64_t steps)
{
#pragma unroll 8
    for (int s = 0; s < (int)steps; s++)
        at = next(at);
    return at;
}

static __global__ void follow_global(gm_chase_call c)
{
    uint64_t base = (uint64_t)c.src;
    *c.state = follow([](uint64_t at) { return (uint64_t)__ldcg((const unsigned long long *)at); }, base + *c.state,
                      c.steps) -
               base;
}

/* The links are multiples of 8, which the compiler cannot know: nothing is stored by the threads that fill L1. */
static __global__ void __launch_bounds__(THREADS) follow_l1(gm_chase_call c)
{
    uint64_t base = (uint64_t)c.src, seen = 0;
    for (int64_t i = threadIdx.x; i < c.count; i += THREADS)
        seen |= __ldca((const unsigned long long *)(base + (uint64_t)(i * c.stride)));
    if (seen % 8 != 0)
        *c.state = seen;
    __syncthreads();
    if (threadIdx.x == 0)
        *c.state = follow([](uint64_t at) { return (uint64_t)__ldca((const unsigned long long *)at); }, base + *c.state,
                          c.steps) -
                   base;
}

static __global__ void follow_local(gm_chase_call c)
{
    uint32_t links[GM_LAB_LOCAL_LINKS];
    for (int i = 0; i < GM_LAB_LOCAL_LINKS; i++)
        links[i] = ((const uint32_t *)c.src)[i];
    const char *base = (const char *)links;
    *c.state = follow([base](uint32_t at) { return *(const uint32_t *)(base + at); }, (uint32_t)*c.state, c.steps);
}

static __global__ void __launch_bounds__(THREADS) follow_shared(gm_chase_call c)
{
    __shared__ uint32_t links[GM_LAB_SHARED_LINKS];
    for (int i = threadIdx.x; i < GM_LAB_SHARED_LINKS; i += THREADS)
        links[i] = ((const uint32_t *)c.src)[i];
    __syncthreads();
    const char *base = (const char *)links;
    if (threadIdx.x == 0)
        *c.state = follow([base](uint32_t at) { return *(const uint32_t *)(base + at); }, (uint32_t)*c.state, c.steps);
}

static __global__ void follow_constant(gm_chase_call c)
{
    *c.state = follow(
        [](uint32_t at) { return *(const uint32_t *)((const char *)(constants + GM_LAB_CONSTANTS) + at); },
        (uint32_t)*c.state, c.steps);
}

static __global__ void follow_texture(gm_chase_call c)
{
    cudaTextureObject_t texture = c.texture;
    *c.state = follow([texture](uint32_t at) { return tex1Dfetch<unsigned>(texture, (int)at); }, (uint32_t)*c.state,
                      c.steps);
}

extern "C" int gm_cuda_chase(gm_cuda_stream stream, const gm_chase_call *call)
{
    static const struct {
        void (*kernel)(gm_chase_call c);
        int threads;
        int64_t most; /* places; 0: any number */
    } chases[GM_SPACES] = {{follow_global, 1, 0},
                           {follow_l1, THREADS, WARM},
                           {follow_local, 1, GM_LAB_LOCAL_LINKS},
                           {follow_shared, THREADS, GM_LAB_SHARED_LINKS},
                           {follow_constant, 1, GM_LAB_CONSTANTS},
                           {follow_texture, 1, 0}};
    if (call->steps > INT32_MAX || (chases[call->space].most > 0 && call->count > chases[call->space].most))
        return cudaErrorInvalidValue;
    if (call->space == GM_SPACE_L1)
        gm_prefer_l1(follow_l1);
    chases[call->space].kernel<<<1, chases[call->space].threads, 0, stream>>>(*call);
    return cudaGetLastError();
}
