/* split_cuda.cuh - panels of float32 as planes of the operands of tensor cores (split.h).
 *
 * A split makes `planes` elements of one float32. Those that scale take the largest element of each line to [2^TOP,
 * 2^(TOP + 1)) by a power of 2: all they do is a function of the line alone. */
#ifndef GM_KERNELS_MATMUL_TENSOR_SPLIT_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_SPLIT_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/matmul/tensor/lines_cuda.cuh"

enum { SPLIT_THREADS = 256, SPLIT_EACH = 8, SPLIT_RESIDENT = 4 /* blocks of a multiprocessor, or more */ };

/* x 2^e, exact for what the schemes ask of it. */
static __device__ __forceinline__ float scale_element(float x, int e)
{
    int half = e / 2;
    return x * __int_as_float((half + 127) << 23) * __int_as_float((e - half + 127) << 23);
}

/* hi + lo / 2^11 */
struct split_f16x2 {
    typedef __half element;
    enum { PLANES = 2, SCHEME = GM_SCHEME_F16, TOP = F16_TOP };
    static __device__ __forceinline__ void split(float x, int scale, __half (&part)[PLANES])
    {
        float y = scale_element(x, scale);
        part[0] = __float2half_rn(y);
        part[1] = __float2half_rn((y - __half2float(part[0])) * 0x1p11f);
    }
};

/* high + middle + low */
struct split_bf16x3 {
    typedef __nv_bfloat16 element;
    enum { PLANES = 3, SCHEME = GM_SCHEME_BF16, TOP = BF16_TOP };
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

/* --- Planes --- */

template <class SPLIT>
static __device__ __forceinline__ void store_parts(const split_panel &p, void *planes, int64_t outer, int64_t k,
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
            ((uint4 *)((element *)planes + (plane * p.frames * p.outer + outer) * p.pitch + k))[i] = out[plane].pack[i];
}

/* Blocks of 64 x 64 elements of a panel. */
static __host__ __device__ __forceinline__ int64_t split_blocks(const split_panel &p)
{
    return divide_up(p.outer, GM_SPLIT_GROUP) * (p.pitch / GM_SPLIT_K);
}

/* Splits a block of elements. Planes go on with zeros up to the pitch. The first split of a panel chooses its schemes.
 */
template <class SPLIT, bool K_FASTEST>
static __device__ __forceinline__ void split_block(const split_panel &p, int64_t block)
{
    enum { PACKS = GM_SPLIT_K / SPLIT_EACH };
    __shared__ float tile[K_FASTEST ? 1 : GM_SPLIT_K][GM_SPLIT_GROUP + 1];
    int64_t along = p.pitch / GM_SPLIT_K, k0 = block % along * GM_SPLIT_K, outer0 = block / along * GM_SPLIT_GROUP;

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
        store_parts<SPLIT>(p, p.planes, outer, k, x);
        if (SPLIT::SCHEME == GM_SCHEME_F16 && p.wide != NULL)
            store_parts<split_bf16x3>(p, p.wide, outer, k, x);
    }
}

/* units: not at all, if there are none. The grid may have fewer blocks than the panels. */
template <class SPLIT>
static __global__ void __launch_bounds__(SPLIT_THREADS)
    split_elements(const __grid_constant__ split_task task, units_of units)
{
    const split_panel p = panel_of_block<float>(task, sizeof(typename SPLIT::element));
    wait_for_kernel_ahead();
    if (blockIdx.y >= p.frames || !may_be_there(&units))
        return;
    for (int64_t block = blockIdx.x; block < split_blocks(p); block += gridDim.x) {
        if (task.k_fastest[blockIdx.z])
            split_block<SPLIT, true>(p, block);
        else
            split_block<SPLIT, false>(p, block);
        __syncthreads(); /* the next block has the same shared memory */
    }
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
