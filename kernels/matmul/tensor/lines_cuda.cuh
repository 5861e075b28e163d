/* lines_cuda.cuh - the lines of panels of float32 (split.h): their ranges, and the scales and schemes that these give.
 */
#ifndef GM_KERNELS_MATMUL_TENSOR_LINES_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_LINES_CUDA_CUH

#include "kernels/matmul/launch_cuda.cuh"
#include "kernels/matmul/tensor/units_cuda.cuh"

/* A scheme takes the largest element of a line to [2^TOP, 2^(TOP + 1)), and is exact, for float16 up to 1 of 2^24, for
 * elements that are 2^RANGE times smaller. */
enum { F16_TOP = 14, F16_RANGE = 26, BF16_TOP = 0, BF16_RANGE = 109 };
enum { RANGE_THREADS = 1024, RANGE_K = 1024 };

/* --- Panels --- */

struct split_panel {
    const float *src; /* [outer][ld], k fastest; or [k][ld] */
    int64_t outer, k, ld, leaf;
    int64_t leaves, groups;
    int64_t frames, next; /* panels of a batch, and elements from one to the next; those with schemes are one */
    void *planes;         /* [planes][frames][outer][pitch] */
    void *wide;           /* three planes of bfloat16 of the same shape, which are made at the same time; NULL */
    int64_t pitch;
    uint32_t *largest, *least; /* [leaves][outer], as in split.h */
    int16_t *scale[2];
    uint8_t *scheme;
    uint32_t *count, *all;
};

/* Panels of a launch: a block works on that of blockIdx.z. The grid has the blocks and the frames of the larger one. */
struct split_task {
    split_panel panel[2];
    bool k_fastest[2];
    int count;
};

/* The panel of frame blockIdx.y, of elements T, to planes of elements of some bytes. */
template <typename T>
static __device__ __forceinline__ split_panel panel_of_block(const split_task &task, int64_t bytes)
{
    split_panel p = task.panel[blockIdx.z];
    p.src = (const float *)((const T *)p.src + blockIdx.y * p.next);
    p.planes = (uint8_t *)p.planes + blockIdx.y * p.outer * p.pitch * bytes;
    return p;
}

/* --- Ranges --- */

static __device__ __forceinline__ uint32_t magnitude(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

/* The range of the elements of a line. */
struct split_range {
    uint32_t largest, least;

    __device__ __forceinline__ void add(float x)
    {
        uint32_t bits = magnitude(x);
        largest = max(largest, bits);
        least = max(least, bits ? 0x7fffffffu - bits : 0);
    }
};

/* floor(log2 |x|) of a finite number that is not 0. */
static __device__ __forceinline__ int exponent_of(uint32_t bits)
{
    return bits >= 0x00800000u ? (int)(bits >> 23) - 127 : -118 - __clz((int)bits);
}

/* Pieces of RANGE_K elements of a leaf. */
static __host__ __device__ __forceinline__ int64_t range_pieces(const split_panel &p)
{
    return divide_up(p.leaf < p.k ? p.leaf : p.k, RANGE_K);
}

/* The range of each line, k fastest in memory: a warp for each. */
static __device__ __forceinline__ void find_range_k(const split_panel &p)
{
    int64_t line = ((int64_t)blockIdx.x * RANGE_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    int64_t leaf = line / p.outer, begin = leaf * p.leaf, end = begin + p.leaf < p.k ? begin + p.leaf : p.k;
    int64_t whole = begin + (end - begin) / 4 * 4;
    const float *src = p.src + line % p.outer * p.ld;
    split_range r = {0, 0};

    if (leaf >= p.leaves)
        return;
#pragma unroll 4
    for (int64_t k = begin + lane * 4; k < whole; k += 128) {
        float4 x = *(const float4 *)(src + k);
        r.add(x.x);
        r.add(x.y);
        r.add(x.z);
        r.add(x.w);
    }
    if (whole + lane < end)
        r.add(src[whole + lane]);
    r.largest = __reduce_max_sync(~0u, r.largest);
    r.least = __reduce_max_sync(~0u, r.least);
    if (lane == 0) {
        p.largest[line] = r.largest;
        p.least[line] = r.least;
    }
}

/* The same, outer fastest in memory: a block for a group in a piece of a leaf, threads side by side for its lines.
 * Where a leaf has several pieces the ranges begin as 0. A maximum has no order. */
static __device__ __forceinline__ void find_range_outer(const split_panel &p)
{
    enum { BELOW = RANGE_THREADS / GM_SPLIT_GROUP };
    __shared__ split_range found[BELOW][GM_SPLIT_GROUP];
    int64_t pieces = range_pieces(p), piece = blockIdx.x / p.groups, leaf = piece / pieces;
    int64_t outer = blockIdx.x % p.groups * GM_SPLIT_GROUP + threadIdx.x % GM_SPLIT_GROUP;
    int64_t begin = leaf * p.leaf + piece % pieces * RANGE_K;
    int64_t last = (leaf + 1) * p.leaf < p.k ? (leaf + 1) * p.leaf : p.k,
            end = begin + RANGE_K < last ? begin + RANGE_K : last;
    int below = (int)threadIdx.x / GM_SPLIT_GROUP;
    split_range r = {0, 0};

    if (leaf >= p.leaves)
        return;
    if (outer < p.outer)
#pragma unroll 16
        for (int64_t k = begin + below; k < end; k += BELOW)
            r.add(p.src[k * p.ld + outer]);
    found[below][threadIdx.x % GM_SPLIT_GROUP] = r;
    __syncthreads();
    if (below > 0 || outer >= p.outer)
        return;
#pragma unroll
    for (int i = 1; i < BELOW; i++) {
        r.largest = max(r.largest, found[i][threadIdx.x].largest);
        r.least = max(r.least, found[i][threadIdx.x].least);
    }
    if (pieces > 1) {
        atomicMax(&p.largest[leaf * p.outer + outer], r.largest);
        atomicMax(&p.least[leaf * p.outer + outer], r.least);
    } else {
        p.largest[leaf * p.outer + outer] = r.largest;
        p.least[leaf * p.outer + outer] = r.least;
    }
}

/* The ranges of all lines. The counts of schemes are cleared for the split that follows. */
static __global__ void __launch_bounds__(RANGE_THREADS, 1) find_ranges(const __grid_constant__ split_task task)
{
    const split_panel &p = task.panel[blockIdx.z];
    wait_for_kernel_ahead();
    if (blockIdx.x == 0) {
        for (int64_t i = threadIdx.x; i < p.leaves * GM_SCHEMES; i += RANGE_THREADS)
            p.count[i] = 0;
        if (threadIdx.x < GM_SCHEMES)
            p.all[threadIdx.x] = 0;
    }
    if (task.k_fastest[blockIdx.z])
        find_range_k(p);
    else
        find_range_outer(p);
}

/* --- Schemes --- */

/* Of a line: floor(log2) of the largest element; 0, if all are 0 or one is not finite. */
static __device__ __forceinline__ int top_of(uint32_t largest)
{
    return largest && largest < 0x7f800000u ? exponent_of(largest) : 0;
}

/* Scales and schemes of a group in a leaf, by a whole block. */
static __device__ __forceinline__ void choose_scheme(const split_panel &p, int64_t leaf, int64_t group)
{
    int64_t outer = group * GM_SPLIT_GROUP + threadIdx.x, line = leaf * p.outer + outer;
    int scheme = GM_SCHEME_F16;

    if (threadIdx.x < GM_SPLIT_GROUP && outer < p.outer) {
        uint32_t largest = p.largest[line], least = 0x7fffffffu - p.least[line];
        int top = top_of(largest);
        if (largest >= 0x7f800000u) {
            scheme = GM_SCHEME_F32;
        } else if (largest) {
            int range = top - exponent_of(least);
            scheme = range <= F16_RANGE ? GM_SCHEME_F16 : range <= BF16_RANGE ? GM_SCHEME_BF16 : GM_SCHEME_F32;
        }
        p.scale[GM_SCHEME_F16][line] = (int16_t)(top - F16_TOP);
        p.scale[GM_SCHEME_BF16][line] = (int16_t)(top - BF16_TOP);
    }
    int is_f32 = __syncthreads_or(scheme == GM_SCHEME_F32), is_bf16 = __syncthreads_or(scheme == GM_SCHEME_BF16);
    scheme = is_f32 ? GM_SCHEME_F32 : is_bf16 ? GM_SCHEME_BF16 : GM_SCHEME_F16;
    if (threadIdx.x == 0) {
        p.scheme[leaf * p.groups + group] = (uint8_t)scheme;
        atomicAdd(&p.count[leaf * GM_SCHEMES + scheme], 1);
        atomicAdd(&p.all[scheme], 1);
    }
}

#endif
