/* split_cuda.cuh - panels of float32 as planes of the operands of tensor cores (split.h).
 *
 * A split makes `planes` elements of one float32. Those that scale take the largest element of each line to [2^TOP,
 * 2^(TOP + 1)) by a power of 2: all they do is a function of the line alone. */
#ifndef GM_KERNELS_MATMUL_TENSOR_SPLIT_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_SPLIT_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/matmul/launch_cuda.cuh"
#include "kernels/matmul/tensor/units_cuda.cuh"

enum { SPLIT_THREADS = 256, SPLIT_EACH = 8, RANGE_THREADS = 1024, RANGE_K = 1024 };

struct split_panel {
    const float *src; /* [outer][ld], k fastest; or [k][ld] */
    int64_t outer, k, ld, leaf;
    int64_t leaves, groups;
    int64_t frames, next; /* panels of a batch, and elements from one to the next; those with schemes are one */
    void *planes;         /* [planes][frames][outer][pitch] */
    int64_t pitch;
    uint32_t *largest, *least; /* [leaves][outer], as in split.h */
    int16_t *scale[2];
    uint8_t *scheme;
    uint32_t *count, *all;
};

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

/* x 2^e, exact for what the schemes ask of it. */
static __device__ __forceinline__ float scale_element(float x, int e)
{
    int half = e / 2;
    return x * __int_as_float((half + 127) << 23) * __int_as_float((e - half + 127) << 23);
}

/* hi + lo / 2^11: exact up to 1 of 2^24 for elements that are 2^26 times smaller than the largest one. */
struct split_f16x2 {
    typedef __half element;
    enum { PLANES = 2, SCHEME = GM_SCHEME_F16, TOP = 14, RANGE = 26 };
    static __device__ __forceinline__ void split(float x, int scale, __half (&part)[PLANES])
    {
        float y = scale_element(x, scale);
        part[0] = __float2half_rn(y);
        part[1] = __float2half_rn((y - __half2float(part[0])) * 0x1p11f);
    }
};

/* high + middle + low: exact for elements that are 2^109 times smaller than the largest one. */
struct split_bf16x3 {
    typedef __nv_bfloat16 element;
    enum { PLANES = 3, SCHEME = GM_SCHEME_BF16, TOP = 0, RANGE = 109 };
    static __device__ __forceinline__ void split(float x, int scale, __nv_bfloat16 (&part)[PLANES])
    {
        float y = scale_element(x, scale);
        part[0] = __float2bfloat16_rn(y);
        y -= __bfloat162float(part[0]);
        part[1] = __float2bfloat16_rn(y);
        part[2] = __float2bfloat16_rn(y - __bfloat162float(part[1]));
    }
};

/* One plane: rounded to nearest, ties to even. */
enum { SPLIT_UNSCALED = -1 };
struct split_f16 {
    typedef __half element;
    enum { PLANES = 1, SCHEME = SPLIT_UNSCALED, TOP = 0 };
    static __device__ __forceinline__ void split(float x, int, __half (&part)[1])
    {
        part[0] = __float2half_rn(x);
    }
};

struct split_bf16 {
    typedef __nv_bfloat16 element;
    enum { PLANES = 1, SCHEME = SPLIT_UNSCALED, TOP = 0 };
    static __device__ __forceinline__ void split(float x, int, __nv_bfloat16 (&part)[1])
    {
        part[0] = __float2bfloat16_rn(x);
    }
};

struct split_tf32 {
    typedef float element;
    enum { PLANES = 1, SCHEME = SPLIT_UNSCALED, TOP = 0 };
    static __device__ __forceinline__ void split(float x, int, float (&part)[1])
    {
        const uint32_t infinite = 0x7f800000u, nan = 0x7fc00000u;
        uint32_t bits = __float_as_uint(x), size = magnitude(x);
        if (size < infinite)
            bits += 0xfffu + (bits >> 13 & 1);
        part[0] = __uint_as_float(size > infinite ? nan : bits & 0xffffe000u);
    }
};

/* --- Panels --- */

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

/* --- Lines --- */

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
            scheme = range <= split_f16x2::RANGE    ? GM_SCHEME_F16
                     : range <= split_bf16x3::RANGE ? GM_SCHEME_BF16
                                                    : GM_SCHEME_F32;
        }
        p.scale[GM_SCHEME_F16][line] = (int16_t)(top - split_f16x2::TOP);
        p.scale[GM_SCHEME_BF16][line] = (int16_t)(top - split_bf16x3::TOP);
    }
    int is_f32 = __syncthreads_or(scheme == GM_SCHEME_F32), is_bf16 = __syncthreads_or(scheme == GM_SCHEME_BF16);
    scheme = is_f32 ? GM_SCHEME_F32 : is_bf16 ? GM_SCHEME_BF16 : GM_SCHEME_F16;
    if (threadIdx.x == 0) {
        p.scheme[leaf * p.groups + group] = (uint8_t)scheme;
        atomicAdd(&p.count[leaf * GM_SCHEMES + scheme], 1);
        atomicAdd(&p.all[scheme], 1);
    }
}

/* --- Planes --- */

template <class SPLIT>
static __device__ __forceinline__ void store_parts(const split_panel &p, int64_t outer, int64_t k,
                                                   const float (&x)[SPLIT_EACH])
{
    typedef typename SPLIT::element element;
    enum { PACKS = (int)sizeof(element) * SPLIT_EACH / 16 };
    union {
        element part[SPLIT_EACH];
        uint4 pack[PACKS];
    } out[SPLIT::PLANES];
    int scale = SPLIT::SCHEME == SPLIT_UNSCALED ? 0 : SPLIT::TOP - top_of(p.largest[k / p.leaf * p.outer + outer]);

#pragma unroll
    for (int i = 0; i < SPLIT_EACH; i++) {
        element part[SPLIT::PLANES];
        SPLIT::split(x[i], scale, part);
#pragma unroll
        for (int plane = 0; plane < SPLIT::PLANES; plane++)
            out[plane].part[i] = part[plane];
    }
#pragma unroll
    for (int plane = 0; plane < SPLIT::PLANES; plane++)
#pragma unroll
        for (int i = 0; i < PACKS; i++)
            ((uint4 *)((element *)p.planes + (plane * p.frames * p.outer + outer) * p.pitch +
                       k))[i] = out[plane].pack[i];
}

/* Splits 64 x 64 elements. Planes go on with zeros up to the pitch. The first split of a panel chooses its schemes. */
template <class SPLIT, bool K_FASTEST>
static __device__ __forceinline__ void split_block(const split_panel &p)
{
    enum { PACKS = GM_SPLIT_K / SPLIT_EACH };
    __shared__ float tile[K_FASTEST ? 1 : GM_SPLIT_K][GM_SPLIT_GROUP + 1];
    int64_t along = p.pitch / GM_SPLIT_K, k0 = blockIdx.x % along * GM_SPLIT_K,
            outer0 = blockIdx.x / along * GM_SPLIT_GROUP;

    if (outer0 >= p.outer)
        return;
    if (SPLIT::SCHEME == GM_SCHEME_F16 && k0 % p.leaf == 0)
        choose_scheme(p, k0 / p.leaf, outer0 / GM_SPLIT_GROUP);
    if (!K_FASTEST) {
#pragma unroll
        for (int i = (int)threadIdx.x; i < GM_SPLIT_K * GM_SPLIT_GROUP; i += SPLIT_THREADS) {
            int64_t k = k0 + i / GM_SPLIT_GROUP, outer = outer0 + i % GM_SPLIT_GROUP;
            tile[i / GM_SPLIT_GROUP][i % GM_SPLIT_GROUP] = k < p.k && outer < p.outer ? p.src[k * p.ld + outer] : 0;
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = (int)threadIdx.x; i < PACKS * GM_SPLIT_GROUP; i += SPLIT_THREADS) {
        int pack = K_FASTEST ? i % PACKS : i / GM_SPLIT_GROUP, down = K_FASTEST ? i / PACKS : i % GM_SPLIT_GROUP;
        int64_t k = k0 + pack * SPLIT_EACH, outer = outer0 + down;
        const float *src = p.src + outer * p.ld + k;
        float x[SPLIT_EACH];
        if (outer >= p.outer)
            continue;
        if (K_FASTEST && k + SPLIT_EACH <= p.k)
#pragma unroll
            for (int e = 0; e < SPLIT_EACH; e += 4) {
                float4 v = *(const float4 *)(src + e);
                x[e] = v.x;
                x[e + 1] = v.y;
                x[e + 2] = v.z;
                x[e + 3] = v.w;
            }
        else
#pragma unroll
            for (int e = 0; e < SPLIT_EACH; e++)
                x[e] = !K_FASTEST ? tile[pack * SPLIT_EACH + e][down] : k + e < p.k ? src[e] : 0;
        store_parts<SPLIT>(p, outer, k, x);
    }
}

/* units: not at all, if there are none. */
template <class SPLIT>
static __global__ void __launch_bounds__(SPLIT_THREADS)
    split_elements(const __grid_constant__ split_task task, units_of units)
{
    const split_panel p = panel_of_block<float>(task, sizeof(typename SPLIT::element));
    wait_for_kernel_ahead();
    if (blockIdx.y >= p.frames || !may_be_there(&units))
        return;
    if (task.k_fastest[blockIdx.z])
        split_block<SPLIT, true>(p);
    else
        split_block<SPLIT, false>(p);
}

/* Bytes as they are, 64 x 64 of them. */
template <bool K_FASTEST>
static __device__ __forceinline__ void lay_out_block(const split_panel &p)
{
    __shared__ uint8_t tile[K_FASTEST ? 1 : GM_SPLIT_K][GM_SPLIT_GROUP + 4];
    const uint8_t *src = (const uint8_t *)p.src;
    int64_t along = p.pitch / GM_SPLIT_K, k0 = blockIdx.x % along * GM_SPLIT_K,
            outer0 = blockIdx.x / along * GM_SPLIT_GROUP;

    if (outer0 >= p.outer)
        return;
    if (!K_FASTEST) {
#pragma unroll
        for (int i = (int)threadIdx.x; i < GM_SPLIT_K * GM_SPLIT_GROUP; i += SPLIT_THREADS) {
            int64_t k = k0 + i / GM_SPLIT_GROUP, outer = outer0 + i % GM_SPLIT_GROUP;
            tile[i / GM_SPLIT_GROUP][i % GM_SPLIT_GROUP] = k < p.k && outer < p.outer ? src[k * p.ld + outer] : 0;
        }
        __syncthreads();
    }
    for (int i = (int)threadIdx.x; i < GM_SPLIT_K / 16 * GM_SPLIT_GROUP; i += SPLIT_THREADS) {
        int pack = i % (GM_SPLIT_K / 16), down = i / (GM_SPLIT_K / 16);
        int64_t k = k0 + pack * 16, outer = outer0 + down;
        union {
            uint8_t byte[16];
            uint4 all;
        } x;
        if (outer >= p.outer)
            continue;
        if (K_FASTEST && k + 16 <= p.k)
            x.all = *(const uint4 *)(src + outer * p.ld + k);
        else
#pragma unroll
            for (int e = 0; e < 16; e++)
                x.byte[e] = !K_FASTEST ? tile[pack * 16 + e][down] : k + e < p.k ? src[outer * p.ld + k + e] : 0;
        *(uint4 *)((uint8_t *)p.planes + outer * p.pitch + k) = x.all;
    }
}

static __global__ void __launch_bounds__(SPLIT_THREADS) lay_out_bytes(const __grid_constant__ split_task task)
{
    const split_panel p = panel_of_block<uint8_t>(task, 1);
    wait_for_kernel_ahead();
    if (blockIdx.y >= p.frames)
        return;
    if (task.k_fastest[blockIdx.z])
        lay_out_block<true>(p);
    else
        lay_out_block<false>(p);
}

#endif
