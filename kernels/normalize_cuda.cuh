/* normalize_cuda.cuh - what the kernels of normalize have in common: the rules of kernels/normalize.h by type, and how what they count is added up. */
#ifndef GM_KERNELS_NORMALIZE_CUDA_CUH
#define GM_KERNELS_NORMALIZE_CUDA_CUH

#include <cuda_runtime.h>

#include "kernels/kernels.h"
#include "kernels/normalize.h"

/* Of a call, in the type of its arithmetic. */
template <typename REAL>
struct gm_limits {
    REAL add, lo, hi;
    uint64_t below, above, marked;
};

template <typename REAL>
static inline gm_limits<REAL> limits_of(const gm_normalize_call *call)
{
    return {(REAL)call->add, (REAL)call->lo, (REAL)call->hi, call->below, call->above, call->marked};
}

/* What one thread has seen. */
struct gm_tally {
    unsigned clipped, nan, marked;
};

/* The types of out, for templates. */
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    struct gm_target_##id { \
        typedef gm_raw##bytes raw; \
        static __device__ __forceinline__ raw store(float v, const gm_limits<float> &l) \
        { \
            return gm_store_float_##id(v, l.lo, l.hi, (raw)l.below, (raw)l.above); \
        } \
        static __device__ __forceinline__ raw store(double v, const gm_limits<double> &l) \
        { \
            return gm_store_double_##id(v, l.lo, l.hi, (raw)l.below, (raw)l.above); \
        } \
        static __device__ __forceinline__ int clips(float v, const gm_limits<float> &l) { return gm_clips_float_##id(v, l.lo, l.hi); } \
        static __device__ __forceinline__ int clips(double v, const gm_limits<double> &l) { return gm_clips_double_##id(v, l.lo, l.hi); } \
        static __device__ __forceinline__ bool whole() { return GM_##kind != GM_FLOAT; } \
    };
#include "base/dtypes.def"
#undef GM_DTYPE

static __device__ __forceinline__ float scaled(float p, float sub, float factor, float add)
{
    return gm_scaled_float(p, sub, factor, add);
}

static __device__ __forceinline__ double scaled(double p, double sub, double factor, double add)
{
    return gm_scaled_double(p, sub, factor, add);
}

static __device__ __forceinline__ float whole(float v, gm_rounding rounding)
{
    return gm_whole_float(v, rounding);
}

static __device__ __forceinline__ double whole(double v, gm_rounding rounding)
{
    return gm_whole_double(v, rounding);
}

/* v as an element of out. Only of NaN is it asked where it comes from: is_marked says from the factor and not from the element. */
template <typename OUT, typename REAL>
static __device__ __forceinline__ typename OUT::raw stored(REAL v, bool is_marked, const gm_limits<REAL> &limits, gm_tally *tally)
{
    typename OUT::raw raw = OUT::store(v, limits);
    tally->clipped += OUT::clips(v, limits);
    if (v != v) {
        raw = is_marked ? (typename OUT::raw)limits.marked : raw;
        tally->marked += is_marked;
        tally->nan += !is_marked;
    }
    return raw;
}

/* Adds the threads' tallies to the counts: all threads of a block, THREADS of them, call it once. As a rule there is nothing to count. */
template <int THREADS>
static __device__ __forceinline__ void count(gm_normalize_counts *counts, const gm_tally &tally)
{
    __shared__ unsigned sums[3][THREADS / 32];
    if (!__syncthreads_or((int)(tally.clipped | tally.nan | tally.marked)))
        return;
    unsigned sum[3] = {__reduce_add_sync(~0u, tally.clipped), __reduce_add_sync(~0u, tally.nan), __reduce_add_sync(~0u, tally.marked)};
    if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < 3; i++)
            sums[i][threadIdx.x / 32] = sum[i];
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        unsigned long long all = 0, *to = (unsigned long long *)&counts->clipped; /* nan and marked lie behind it */
        for (int i = 0; i < THREADS / 32; i++)
            all += sums[threadIdx.x][i];
        if (all != 0)
            atomicAdd(to + threadIdx.x, all);
    }
}

/* Any call: out in the order of its elements, at whatever addresses. kernels/normalize_any_cuda.cu. */
int gm_cuda_normalize_any(gm_cuda_stream stream, const gm_normalize_call *call);

#endif
