/* Loads through the L1 cache (ld.global.ca) and past it (ld.global.cg): of scattered words, and of windows again and
 * again. Sums keep the loads, and show that each was made. */
#include "kernels/lab/chunks_cuda.cuh"

enum { THREADS = 256, EACH = GM_LOAD_TILE / THREADS };

template <bool PAST_L1, class T>
static __device__ __forceinline__ T load_one(const T *src)
{
    return PAST_L1 ? __ldcg(src) : __ldca(src);
}

template <bool PAST_L1, bool IS_RANDOM>
static __global__ void __launch_bounds__(THREADS)
    load(const uint32_t *src, uint32_t *dst, int64_t base, int64_t stride, int64_t words)
{
    int64_t t = (int64_t)blockIdx.x * GM_LOAD_TILE + threadIdx.x;
    uint32_t v[EACH], sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int64_t at = t + e * THREADS;
        v[e] = load_one<PAST_L1>(src + (IS_RANDOM ? gm_lab_permuted(at, words) : base + stride * at));
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
        sum += v[e];
    gm_warp_store(dst, sum);
}

template <bool PAST_L1, bool IS_RANDOM>
static int launch_load(cudaStream_t stream, const gm_load_call *c)
{
    gm_prefer_l1(load<PAST_L1, IS_RANDOM>);
    load<PAST_L1, IS_RANDOM>
        <<<(unsigned)(c->count / GM_LOAD_TILE), THREADS, 0, stream>>>(c->src, c->dst, c->base, c->stride, c->words);
    return cudaGetLastError();
}

extern "C" int gm_cuda_load(gm_cuda_stream stream, const gm_load_call *call)
{
    if (call->count == 0)
        return cudaSuccess;
    if (call->count % GM_LOAD_TILE != 0 || call->count / GM_LOAD_TILE > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (call->is_random)
        return call->past_l1 ? launch_load<true, true>(stream, call) : launch_load<false, true>(stream, call);
    return call->past_l1 ? launch_load<true, false>(stream, call) : launch_load<false, false>(stream, call);
}

/* own: words of 16 bytes from a block's window to the next one, 0: all blocks have the same. total: chunks of all
 * blocks, or of each that has its own. */
template <bool PAST_L1>
static __global__ void __launch_bounds__(GM_CHUNK_THREADS)
    window(const uint4 *src, uint32_t *dst, int64_t own, int step, int chunks, int64_t total)
{
    const uint4 *first = src + own * blockIdx.x + threadIdx.x;
    int at = own > 0 ? 0 : blockIdx.x % chunks;
    int64_t count = own > 0 ? total : (total - blockIdx.x + gridDim.x - 1) / gridDim.x;
    gm_warp_store(
        dst, gm_chunks_sum([first](int chunk) { return load_one<PAST_L1>(first + (int64_t)chunk * GM_CHUNK_THREADS); },
                           at, step, chunks, count));
}

template <bool PAST_L1>
static int launch_window(cudaStream_t stream, const gm_window_call *c)
{
    int64_t chunks = c->window / GM_LAB_CHUNK, own = c->is_own ? c->window / (int64_t)sizeof(uint4) : 0;
    int step = (int)((c->is_own ? 1 : c->blocks) % chunks);
    gm_prefer_l1(window<PAST_L1>);
    window<PAST_L1><<<(unsigned)c->blocks, GM_CHUNK_THREADS, 0, stream>>>((const uint4 *)c->src, c->dst[0], own, step,
                                                                          (int)chunks, chunks * c->passes);
    return cudaGetLastError();
}

extern "C" int gm_cuda_window(gm_cuda_stream stream, const gm_window_call *call)
{
    int64_t chunks = call->window / GM_LAB_CHUNK;
    if (chunks < 1 || chunks > INT32_MAX / 2 || call->blocks < 1 || call->blocks > INT32_MAX ||
        call->blocks > chunks * call->passes)
        return cudaErrorInvalidConfiguration;
    return call->past_l1 ? launch_window<true>(stream, call) : launch_window<false>(stream, call);
}
