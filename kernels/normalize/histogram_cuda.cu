/* Counts of one digit of the elements' keys, by one of three kernels: 16-bit digits of one prefix in shared memory, in
 * counters of 16 bits; 8-bit digits in shared memory, several tables per block; 16-bit digits of several prefixes,
 * which few elements have, directly in the counts. Equal elements of a whole warp are counted at once, so that constant
 * images are not slower than others. */
#include "kernels/dispatch.cuh"
#include "kernels/normalize/normalize.h"

enum {
    TABLE_THREADS = 1024,
    TABLE_BINS = 65536,
    TABLE_BYTES = TABLE_BINS * 2,
    FULL = 0x8000, /* what a 16-bit counter passes on to the counts */
    THREADS = 256,
    COPIES = 4, /* of the small table in a block */
    AGREED = 4, /* rounds in which a warp looks for equal bins */
    NONE = -1
};

/* The type for arithmetic with keys of BYTES bytes. */
template <int BYTES>
struct key_word {
    typedef uint32_t type;
};

template <>
struct key_word<8> {
    typedef uint64_t type;
};

/* The keys of an element type. */
template <typename ELEMENT>
struct keyed;

#define GM_DTYPE(id, name, ctype, kind, bytes, ...)                 \
    template <>                                                     \
    struct keyed<gm_element_##id> {                                 \
        typedef gm_raw##bytes raw;                                  \
        typedef key_word<bytes>::type word;                         \
        static __device__ __forceinline__ word key(raw x, int swap) \
        {                                                           \
            return gm_key_##id(x, swap);                            \
        }                                                           \
        static __device__ __forceinline__ bool nan(raw x, int swap) \
        {                                                           \
            return gm_nan_##id(x, swap);                            \
        }                                                           \
    };
#include "base/types/dtypes.def"
#undef GM_DTYPE

/* The rows of a call as groups with separate counts, each cut into parts. */
struct parts {
    int64_t groups, n; /* n: elements of a group */
    int64_t part;      /* elements of a part; the last may have fewer */
};

static __device__ __forceinline__ void add(uint64_t *count, unsigned long long more)
{
    atomicAdd((unsigned long long *)count, more);
}

/* The prefixes of a group; unused entries repeat the first one, which is found before them. */
template <typename ELEMENT>
struct prefixes {
    typename ELEMENT::word value[GM_HISTOGRAM_PREFIXES];
};

template <typename ELEMENT>
static __device__ __forceinline__ prefixes<ELEMENT> load_prefixes(const gm_histogram_call &call, int64_t group)
{
    const uint64_t most = (typename ELEMENT::word) - 1; /* larger than the part of any key above a digit */
    prefixes<ELEMENT> p;
#pragma unroll
    for (int i = 0; i < GM_HISTOGRAM_PREFIXES; i++) {
        uint64_t value = call.prefix[group * call.prefixes + (i < call.prefixes ? i : 0)];
        p.value[i] = (typename ELEMENT::word)(value < most ? value : most);
    }
    return p;
}

/* The bin of an element: prefix << bits | digit, or NONE. */
template <typename ELEMENT, int MOST>
static __device__ __forceinline__ int find_bin(const gm_histogram_call &call, const prefixes<ELEMENT> &p,
                                               typename ELEMENT::raw raw)
{
    typename ELEMENT::word key = ELEMENT::key(raw, call.swap) >> call.shift, above = key >> call.bits;
    int digit = (int)key & ((1 << call.bits) - 1), bin = NONE;
#pragma unroll
    for (int i = MOST - 1; i >= 0; i--)
        bin = above == p.value[i] ? i << call.bits | digit : bin;
    return ELEMENT::nan(raw, call.swap) ? (int)NONE : bin;
}

/* The bins of a thread's elements of a step: at, at + STRIDE, ... below end. */
template <typename ELEMENT, int EACH>
static __device__ __forceinline__ void fetch(typename ELEMENT::raw (&raw)[EACH], const void *src, int64_t at,
                                             int64_t end, int stride)
{
#pragma unroll
    for (int e = 0; e < EACH; e++)
        raw[e] = at + e * stride < end ? ((const typename ELEMENT::raw *)src)[at + e * stride] : 0;
}

template <typename ELEMENT, int MOST, int EACH>
static __device__ __forceinline__ void find_bins(int (&bin)[EACH], const gm_histogram_call &call,
                                                 const prefixes<ELEMENT> &p, const typename ELEMENT::raw (&raw)[EACH],
                                                 int64_t at, int64_t end, int stride)
{
#pragma unroll
    for (int e = 0; e < EACH; e++)
        bin[e] = at + e * stride < end ? find_bin<ELEMENT, MOST>(call, p, raw[e]) : (int)NONE;
}

/* Whether all bins of the warp are equal. */
template <int EACH>
static __device__ __forceinline__ bool all_equal(const int (&bin)[EACH])
{
    int same = 1, everywhere;
#pragma unroll
    for (int e = 1; e < EACH; e++)
        same &= bin[e] == bin[0];
    __match_all_sync(~0u, same ? bin[0] : -2 - (int)(threadIdx.x % 32), &everywhere);
    return everywhere;
}

/* Counters of 16 bits, two in a word. The thread that makes a counter reach FULL subtracts FULL before the next
 * barrier. Between two barriers no counter grows by more than FULL - 1, so that none overflows into its neighbour. */
template <typename ELEMENT, int EACH>
static __global__ void __launch_bounds__(TABLE_THREADS)
    count_table(const __grid_constant__ gm_histogram_call call, const __grid_constant__ parts cut)
{
    static_assert(EACH * TABLE_THREADS < FULL, "a step must not fill a counter");
    extern __shared__ unsigned table[];
    typename ELEMENT::raw now[EACH], next[EACH];
    int bin[EACH];
    for (int i = threadIdx.x; i < TABLE_BINS / 2; i += TABLE_THREADS)
        table[i] = 0;
    for (int64_t group = blockIdx.y; group < cut.groups; group += gridDim.y) {
        const void *src = (const typename ELEMENT::raw *)call.src + group * cut.n;
        const prefixes<ELEMENT> p = load_prefixes<ELEMENT>(call, group);
        uint64_t *counts = call.counts + group * TABLE_BINS;
        int64_t at = blockIdx.x * cut.part, end = at + cut.part < cut.n ? at + cut.part : cut.n;
        fetch<ELEMENT>(next, src, at + threadIdx.x, end, TABLE_THREADS);
        for (; at < end; at += EACH * TABLE_THREADS) {
            int64_t mine = at + threadIdx.x, further = mine + EACH * TABLE_THREADS;
#pragma unroll
            for (int e = 0; e < EACH; e++)
                now[e] = next[e];
            fetch<ELEMENT>(next, src, further, end, TABLE_THREADS);
            find_bins<ELEMENT, 1>(bin, call, p, now, mine, end, TABLE_THREADS);
            __syncthreads();
            if (all_equal(bin)) {
                if (threadIdx.x % 32 == 0 && bin[0] != NONE)
                    add(counts + bin[0], 32 * EACH);
                continue;
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (bin[e] == NONE)
                    continue;
                int place = 16 * (bin[e] & 1);
                unsigned before = atomicAdd(&table[bin[e] / 2], 1u << place) >> place & 0xffff;
                if (before == FULL - 1) {
                    atomicSub(&table[bin[e] / 2], (unsigned)FULL << place);
                    add(counts + bin[e], FULL);
                }
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < TABLE_BINS / 2; i += TABLE_THREADS) {
            unsigned both = table[i];
            if ((both & 0xffff) != 0)
                add(counts + 2 * i, both & 0xffff);
            if (both >> 16 != 0)
                add(counts + 2 * i + 1, both >> 16);
            table[i] = 0;
        }
        __syncthreads();
    }
}

/* 8-bit digits: tables of [prefixes][256] counters of 32 bits, which count all elements of a part. */
template <typename ELEMENT, int EACH>
static __global__ void __launch_bounds__(THREADS)
    count_small(const __grid_constant__ gm_histogram_call call, const __grid_constant__ parts cut)
{
    __shared__ unsigned tables[COPIES][GM_HISTOGRAM_PREFIXES * 256];
    const int bins = call.prefixes * 256;
    unsigned *table = tables[threadIdx.x / 32 % COPIES];
    typename ELEMENT::raw raw[EACH];
    int bin[EACH];
    for (int64_t group = blockIdx.y; group < cut.groups; group += gridDim.y) {
        const void *src = (const typename ELEMENT::raw *)call.src + group * cut.n;
        const prefixes<ELEMENT> p = load_prefixes<ELEMENT>(call, group);
        int64_t at = blockIdx.x * cut.part, end = at + cut.part < cut.n ? at + cut.part : cut.n;
        for (int i = threadIdx.x; i < COPIES * bins; i += THREADS)
            tables[i / bins][i % bins] = 0;
        __syncthreads();
        for (; at < end; at += EACH * THREADS) {
            fetch<ELEMENT>(raw, src, at + threadIdx.x, end, THREADS);
            find_bins<ELEMENT, GM_HISTOGRAM_PREFIXES>(bin, call, p, raw, at + threadIdx.x, end, THREADS);
            if (all_equal(bin)) {
                if (threadIdx.x % 32 == 0 && bin[0] != NONE)
                    atomicAdd(&table[bin[0]], 32 * EACH);
                continue;
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (bin[e] != NONE)
                    atomicAdd(&table[bin[e]], 1);
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < bins; i += THREADS) {
            unsigned long long sum = 0;
            for (int copy = 0; copy < COPIES; copy++)
                sum += tables[copy][i];
            if (sum != 0)
                add(call.counts + group * bins + i, sum);
        }
        __syncthreads();
    }
}

/* Counts one bin of each lane: equal bins together, for AGREED rounds. */
static __device__ __forceinline__ void count_warp(uint64_t *counts, int bin)
{
    unsigned left = __ballot_sync(~0u, bin != NONE);
    for (int round = 0; round < AGREED && left != 0; round++) {
        int leader = __ffs((int)left) - 1;
        unsigned same = __ballot_sync(~0u, bin == __shfl_sync(~0u, bin, leader));
        if (threadIdx.x % 32 == leader)
            add(counts + bin, __popc(same));
        left &= ~same;
    }
    if (left >> threadIdx.x % 32 & 1)
        add(counts + bin, 1);
}

template <typename ELEMENT, int EACH>
static __global__ void __launch_bounds__(THREADS)
    count_direct(const __grid_constant__ gm_histogram_call call, const __grid_constant__ parts cut)
{
    typename ELEMENT::raw raw[EACH];
    int bin[EACH];
    for (int64_t group = blockIdx.y; group < cut.groups; group += gridDim.y) {
        const void *src = (const typename ELEMENT::raw *)call.src + group * cut.n;
        const prefixes<ELEMENT> p = load_prefixes<ELEMENT>(call, group);
        uint64_t *counts = call.counts + (group * call.prefixes << call.bits);
        int64_t at = blockIdx.x * cut.part, end = at + cut.part < cut.n ? at + cut.part : cut.n;
        for (; at < end; at += EACH * THREADS) {
            fetch<ELEMENT>(raw, src, at + threadIdx.x, end, THREADS);
            find_bins<ELEMENT, GM_HISTOGRAM_PREFIXES>(bin, call, p, raw, at + threadIdx.x, end, THREADS);
            if (all_equal(bin)) {
                if (threadIdx.x % 32 == 0 && bin[0] != NONE)
                    add(counts + bin[0], 32 * EACH);
                continue;
            }
#pragma unroll
            for (int e = 0; e < EACH; e++)
                count_warp(counts, bin[e]);
        }
    }
}

/* Cuts each group into parts for about `wanted` blocks of `least` to 2^31 elements. Returns the grid. */
static dim3 cut_parts(const gm_histogram_call *call, int64_t wanted, int64_t least, int64_t step, parts *cut)
{
    const int64_t most = (int64_t)1 << 31;
    cut->groups = call->row_step ? call->rows : 1;
    cut->n = call->row_step ? call->cols : call->rows * call->cols;
    int64_t x = (wanted + cut->groups - 1) / cut->groups, some = (cut->n + least - 1) / least,
            y = cut->groups < 65535 ? cut->groups : 65535;
    x = x < some ? x : some;
    x = x > (cut->n + most - 1) / most ? x : (cut->n + most - 1) / most;
    cut->part = ((cut->n + x - 1) / x + step - 1) / step * step;
    return dim3((unsigned)((cut->n + cut->part - 1) / cut->part), (unsigned)y);
}

template <typename ELEMENT>
static int launch(gm_cuda_stream stream, const gm_histogram_call *call, int processors)
{
    enum { EACH = sizeof(typename ELEMENT::raw) <= 4 ? 16 : 8 };
    parts cut;
    if (call->bits == 8) {
        dim3 grid = cut_parts(call, 8 * processors, 65536, EACH * THREADS, &cut);
        count_small<ELEMENT, EACH><<<grid, THREADS, 0, stream>>>(*call, cut);
    } else if (sizeof(typename ELEMENT::raw) == 1) {
        return cudaErrorInvalidValue;
    } else if (call->prefixes == 1) {
        /* Clearing and adding a table takes as long as 100 000 elements: one table per multiprocessor, or, with counts
         * for each row, several per row that is long enough. */
        dim3 grid = cut_parts(call, call->row_step && call->rows > 1 ? 8 * processors : processors, 65536,
                              EACH * TABLE_THREADS, &cut);
        cudaError_t error = cudaFuncSetAttribute(count_table<ELEMENT, EACH>,
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, TABLE_BYTES);
        if (error != cudaSuccess)
            return error;
        count_table<ELEMENT, EACH><<<grid, TABLE_THREADS, TABLE_BYTES, stream>>>(*call, cut);
    } else {
        dim3 grid = cut_parts(call, 32 * processors, 16384, EACH * THREADS, &cut);
        count_direct<ELEMENT, EACH><<<grid, THREADS, 0, stream>>>(*call, cut);
    }
    return cudaGetLastError();
}

extern "C" int gm_cuda_histogram(gm_cuda_stream stream, const gm_histogram_call *call)
{
    int device, processors;
    if (call->rows == 0 || call->cols == 0)
        return cudaSuccess;
    if ((uintptr_t)call->src % gm_dtype_size(call->type) != 0)
        return cudaErrorMisalignedAddress;
    if ((call->bits != 8 && call->bits != 16) || call->prefixes < 1 || call->prefixes > GM_HISTOGRAM_PREFIXES)
        return cudaErrorInvalidValue;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess)
        return error;
    return dispatch(call->type,
                    [&](auto element) { return launch<keyed<decltype(element)>>(stream, call, processors); });
}
