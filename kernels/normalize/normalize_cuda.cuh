/* normalize_cuda.cuh - the common parts of the kernels of normalize: the rules of kernels/normalize/normalize.h by
 * type, and the sums of their counts. */
#ifndef GM_KERNELS_NORMALIZE_NORMALIZE_CUDA_CUH
#define GM_KERNELS_NORMALIZE_NORMALIZE_CUDA_CUH

#include "kernels/dispatch.cuh"
#include "kernels/normalize/normalize.h"

/* Limits of a call, in the type of its arithmetic. */
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

/* Counts of one thread. */
struct gm_tally {
    unsigned clipped, nan, marked;
};

/* An element type as type of out. */
template <typename ELEMENT>
struct gm_target;

/* The rules of a type for numbers of a type of arithmetic. */
#define RULES(id, real, bytes)                                                                        \
    static __device__ __forceinline__ gm_raw##bytes store(real v, const gm_limits<real> &l)           \
    {                                                                                                 \
        return gm_store_##real##_##id(v, l.lo, l.hi, (gm_raw##bytes)l.below, (gm_raw##bytes)l.above); \
    }                                                                                                 \
    static __device__ __forceinline__ int clips(real v, const gm_limits<real> &l)                     \
    {                                                                                                 \
        return gm_clips_##real##_##id(v, l.lo, l.hi);                                                 \
    }

#define GM_DTYPE(id, name, ctype, kind, bytes, ...)    \
    template <>                                        \
    struct gm_target<gm_element_##id> {                \
        typedef gm_raw##bytes raw;                     \
        RULES(id, float, bytes)                        \
        RULES(id, double, bytes)                       \
        static __device__ __forceinline__ bool whole() \
        {                                              \
            return GM_##kind != GM_FLOAT;              \
        }                                              \
    };                                                 \
    typedef gm_target<gm_element_##id> gm_target_##id;
#include "base/types/dtypes.def"
#undef GM_DTYPE
#undef RULES

static __device__ __forceinline__ float times(float p, float sub, float factor)
{
    return gm_times_float(p, sub, factor);
}

static __device__ __forceinline__ double times(double p, double sub, double factor)
{
    return gm_times_double(p, sub, factor);
}

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

/* v as an element of out. is_marked: if v is NaN, it comes from the factor and not from the element. */
template <typename OUT, typename REAL>
static __device__ __forceinline__ typename OUT::raw stored(REAL v, bool is_marked, const gm_limits<REAL> &limits,
                                                           gm_tally *tally)
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

/* Adds the threads' tallies to the counts. All THREADS threads of a block call it once. Usually there is nothing to
 * count. */
template <int THREADS>
static __device__ __forceinline__ void count(gm_normalize_counts *counts, const gm_tally &tally)
{
    __shared__ unsigned sums[3][THREADS / 32];
    if (!__syncthreads_or((int)(tally.clipped | tally.nan | tally.marked)))
        return;
    unsigned sum[3] = {__reduce_add_sync(~0u, tally.clipped), __reduce_add_sync(~0u, tally.nan),
                       __reduce_add_sync(~0u, tally.marked)};
    if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < 3; i++)
            sums[i][threadIdx.x / 32] = sum[i];
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        unsigned long long all = 0, *to = (unsigned long long *)&counts->clipped; /* followed by nan and marked */
        for (int i = 0; i < THREADS / 32; i++)
            all += sums[threadIdx.x][i];
        if (all != 0)
            atomicAdd(to + threadIdx.x, all);
    }
}

/* Any call, at any addresses. kernels/normalize/normalize_any_cuda.cu. */
int gm_cuda_normalize_any(gm_cuda_stream stream, const gm_normalize_call *call);

#endif
