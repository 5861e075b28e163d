/* matmul_cuda_hopper.cu - products on the tensor cores of sm_90a: splits the panels, then multiplies leaf after leaf.
 *
 * float32 takes three kernels for each leaf, one for each scheme (split.h); those that have no units end at once. */
#include <cuda_runtime.h>

#include "kernels/matmul/calls.h"

extern "C" int gm_cuda_hopper_is_built(void)
{
#ifdef GM_HAVE_SM90A
    return 1;
#else
    return 0;
#endif
}

#ifdef GM_HAVE_SM90A /* before CUDA 12 there is neither sm_90a nor a type for maps of tensors */
#include "kernels/matmul/hopper_cuda.cuh"
#include "kernels/matmul/split_cuda.cuh"

#include <cudaTypedefs.h>

/* An operand of a call. */
struct operand {
    const void *src;
    int64_t ld;
    bool k_fastest, ready;
    uint8_t *work;
    gm_split_layout at;
};

static operand operand_of(const gm_product_call *call, int which, const gm_split_kind *kind)
{
    operand o = {which ? call->b : call->a,
                 which ? call->ldb : call->lda,
                 (which ? call->transpose_b : !call->transpose_a) != 0,
                 call->ready[which] != 0,
                 (uint8_t *)call->work[which],
                 gm_split_lay(kind, which ? call->n : call->m, call->k, call->leaf)};
    return o;
}

static split_panel panel_of(const gm_product_call *call, const operand *o)
{
    split_panel p;
    p.src = (const float *)o->src;
    p.outer = o->at.outer;
    p.k = call->k;
    p.ld = o->ld;
    p.leaf = call->leaf;
    p.leaves = o->at.leaves;
    p.groups = o->at.groups;
    p.planes = o->work + o->at.planes;
    p.pitch = o->at.pitch;
    p.largest = (uint32_t *)(o->work + o->at.largest);
    p.least = (uint32_t *)(o->work + o->at.least);
    for (int i = 0; i < 2; i++)
        p.scale[i] = (int16_t *)(o->work + o->at.scale[i]);
    p.scheme = o->work + o->at.scheme;
    p.count = (uint32_t *)(o->work + o->at.count);
    return p;
}

static unsigned blocks_for(int64_t items, int each)
{
    return (unsigned)((items + each - 1) / each);
}

/* Ranges, scales and schemes of all lines. */
static cudaError_t measure_lines(cudaStream_t stream, const operand *o, const split_panel *p)
{
    cudaError_t error = cudaMemsetAsync(p->largest, 0, o->at.bytes - o->at.largest, stream);
    if (error != cudaSuccess)
        return error;
    if (o->k_fastest)
        find_range_k<<<blocks_for(p->leaves * p->outer, SPLIT_THREADS / 32), SPLIT_THREADS, 0, stream>>>(*p);
    else
        find_range_outer<<<blocks_for(p->outer, SPLIT_THREADS) * blocks_for(p->k, LARGEST_K), SPLIT_THREADS, 0,
                           stream>>>(*p);
    choose_schemes<<<dim3((unsigned)p->groups, (unsigned)p->leaves), GM_SPLIT_GROUP, 0, stream>>>(*p);
    return cudaGetLastError();
}

template <class SPLIT>
static cudaError_t split(cudaStream_t stream, bool k_fastest, const split_panel *p, const units_of *units)
{
    unsigned blocks = blocks_for(p->outer, GM_SPLIT_GROUP) * (unsigned)(p->pitch / GM_SPLIT_K);
    if (k_fastest)
        split_elements<SPLIT, true><<<blocks, SPLIT_THREADS, 0, stream>>>(*p, *units);
    else
        split_elements<SPLIT, false><<<blocks, SPLIT_THREADS, 0, stream>>>(*p, *units);
    return cudaGetLastError();
}

/* The part of a panel that is leaf `index`, to the planes of three parts. */
static split_panel leaf_of(const split_panel *p, const operand *o, int64_t index)
{
    split_panel leaf = *p;
    int64_t k = index * p->leaf, line = index * p->outer;
    leaf.src += o->k_fastest ? k : k * p->ld;
    leaf.k = p->k - k < p->leaf ? p->k - k : p->leaf;
    leaf.planes = o->work + o->at.wide;
    leaf.pitch = (leaf.k + GM_SPLIT_K - 1) / GM_SPLIT_K * GM_SPLIT_K;
    for (int i = 0; i < 2; i++)
        leaf.scale[i] += line;
    return leaf;
}

/* --- Kernels --- */

/* Planes as the copies see them: boxes of 128 bytes of k and `rows` rows of a plane. */
static cudaError_t map_planes(const split_panel *p, int planes, int element, int rows, CUtensorMap *map)
{
    static PFN_cuTensorMapEncodeTiled_v12000 encode;
    const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                         CU_TENSOR_MAP_DATA_TYPE_UINT32};
    cuuint64_t sizes[] = {(cuuint64_t)p->pitch, (cuuint64_t)p->outer, (cuuint64_t)planes};
    cuuint64_t pitches[] = {sizes[0] * (cuuint64_t)element, sizes[0] * (cuuint64_t)element * sizes[1]};
    cuuint32_t box[] = {(cuuint32_t)(GM_WGMMA_ROW / element), (cuuint32_t)rows, 1}, steps[] = {1, 1, 1};

    if (encode == NULL) {
        cudaDriverEntryPointQueryResult found;
        void *entry = NULL;
        cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                                             &found);
        if (error != cudaSuccess)
            return error;
        if (found != cudaDriverEntryPointSuccess)
            return cudaErrorNotSupported;
        encode = (PFN_cuTensorMapEncodeTiled_v12000)entry;
    }
    return encode(map, types[element / 2], 3, p->planes, sizes, pitches, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

/* Clusters that the device holds at once. */
static cudaError_t clusters_of(int *clusters)
{
    int device, multiprocessors;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    *clusters = error == cudaSuccess && multiprocessors > HOPPER_BLOCKS ? multiprocessors / HOPPER_BLOCKS : 1;
    return error;
}

/* The leaf that begins at element k of the planes. */
template <class TYPE, class SPLIT>
static cudaError_t multiply(cudaStream_t stream, const split_panel *a, const split_panel *b, hopper_leaf *leaf,
                            int64_t k, int64_t depth)
{
    typedef hopper_shape<TYPE, SPLIT::PLANES> shape;
    enum { ELEMENT = (int)sizeof(typename TYPE::element), K = GM_WGMMA_ROW / ELEMENT };
    CUtensorMap map_a, map_b;
    int clusters;
    int64_t tiles = (int64_t)blocks_for(leaf->m, HOPPER_CLUSTER_M) * blocks_for(leaf->n, shape::TILE_N);
    cudaError_t error = tiles > INT32_MAX ? cudaErrorInvalidConfiguration : clusters_of(&clusters);

    if (error == cudaSuccess)
        error = map_planes(a, SPLIT::PLANES, ELEMENT, HOPPER_TILE_M, &map_a);
    if (error == cudaSuccess)
        error = map_planes(b, SPLIT::PLANES, ELEMENT, shape::TILE_N / HOPPER_BLOCKS, &map_b);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(multiply_leaf<TYPE, SPLIT::PLANES>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     shape::SHARED);
    if (error != cudaSuccess)
        return error;
    leaf->k = k;
    leaf->steps = (int)((depth + K - 1) / K);
    multiply_leaf<TYPE, SPLIT::PLANES>
        <<<HOPPER_BLOCKS *(unsigned)(tiles < clusters ? tiles : clusters), HOPPER_THREADS, shape::SHARED, stream>>>(
            map_a, map_b, *leaf);
    return cudaGetLastError();
}

static hopper_leaf leaf_for(const gm_product_call *call, int64_t index)
{
    hopper_leaf leaf = {};
    leaf.m = call->m;
    leaf.n = call->n;
    leaf.acc = call->acc;
    leaf.ld = call->ldacc;
    leaf.accumulate = call->accumulate || index > 0;
    return leaf;
}

static int64_t depth_of(const gm_product_call *call, int64_t index)
{
    int64_t left = call->k - index * call->leaf;
    return left < call->leaf ? left : call->leaf;
}

/* Nothing to multiply; or no k, so that sums are 0. */
static bool is_empty(const gm_product_call *call)
{
    return call->m == 0 || call->n == 0 || call->k == 0;
}

/* Operands that are rounded to one plane. */
template <class TYPE, class SPLIT>
static int multiply_rounded(cudaStream_t stream, const gm_product_call *call)
{
    const gm_split_kind kind = {(int32_t)sizeof(typename TYPE::element), SPLIT::PLANES, 0};
    const units_of all = {};
    split_panel panels[2];
    cudaError_t error = cudaSuccess;

    if (is_empty(call))
        return gm_cuda_matmul_fp32(stream, call);
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
        operand o = operand_of(call, i, &kind);
        panels[i] = panel_of(call, &o);
        if (!o.ready)
            error = split<SPLIT>(stream, o.k_fastest, &panels[i], &all);
    }
    for (int64_t i = 0; i * call->leaf < call->k && error == cudaSuccess; i++) {
        hopper_leaf leaf = leaf_for(call, i);
        error = multiply<TYPE, SPLIT>(stream, &panels[0], &panels[1], &leaf, i * call->leaf, depth_of(call, i));
    }
    return error;
}

extern "C" int gm_cuda_matmul_hopper_bf16(gm_cuda_stream stream, const gm_product_call *call)
{
    return multiply_rounded<wgmma_bf16, split_bf16>(stream, call);
}

extern "C" int gm_cuda_matmul_hopper_fp16(gm_cuda_stream stream, const gm_product_call *call)
{
    return multiply_rounded<wgmma_f16, split_f16>(stream, call);
}

extern "C" int gm_cuda_matmul_hopper_tf32(gm_cuda_stream stream, const gm_product_call *call)
{
    return multiply_rounded<wgmma_tf32, split_tf32>(stream, call);
}

/* --- float32 --- */

/* Adds the share of each scheme in a leaf: units times k. */
static __global__ void count_schemes(units_of units, double depth, double *schemes)
{
    if (threadIdx.x < GM_SCHEMES)
        schemes[threadIdx.x] += (double)count_units(units, (int)threadIdx.x) * depth;
}

static units_of units_for(const split_panel *panels, int64_t leaf, gm_scheme scheme)
{
    units_of u = {panels[0].scheme + leaf * panels[0].groups,
                  panels[1].scheme + leaf * panels[1].groups,
                  panels[0].count + leaf * GM_SCHEMES,
                  panels[1].count + leaf * GM_SCHEMES,
                  panels[0].groups,
                  panels[1].groups,
                  scheme};
    return u;
}

static void set_scheme(const split_panel *panels, int64_t index, gm_scheme scheme, hopper_leaf *leaf)
{
    leaf->units = units_for(panels, index, scheme);
    leaf->scale_a = panels[0].scale[scheme] + index * panels[0].outer;
    leaf->scale_b = panels[1].scale[scheme] + index * panels[1].outer;
}

static cudaError_t multiply_f16(cudaStream_t stream, const gm_product_call *call, const split_panel *panels,
                                int64_t index)
{
    hopper_leaf leaf = leaf_for(call, index);
    set_scheme(panels, index, GM_SCHEME_F16, &leaf);
    return multiply<wgmma_f16, split_f16x2>(stream, &panels[0], &panels[1], &leaf, index * call->leaf,
                                            depth_of(call, index));
}

static cudaError_t multiply_bf16(cudaStream_t stream, const gm_product_call *call, const operand *operands,
                                 const split_panel *panels, int64_t index)
{
    split_panel wide[2];
    hopper_leaf leaf = leaf_for(call, index);
    cudaError_t error = cudaSuccess;
    set_scheme(panels, index, GM_SCHEME_BF16, &leaf);
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
        wide[i] = leaf_of(&panels[i], &operands[i], index);
        error = split<split_bf16x3>(stream, operands[i].k_fastest, &wide[i], &leaf.units);
    }
    return error != cudaSuccess
               ? error
               : multiply<wgmma_bf16, split_bf16x3>(stream, &wide[0], &wide[1], &leaf, 0, depth_of(call, index));
}

static cudaError_t multiply_f32(cudaStream_t stream, const gm_product_call *call, const operand *operands,
                                const split_panel *panels, int64_t index)
{
    gm_product_call part = *call;
    units_of units = units_for(panels, index, GM_SCHEME_F32);
    int64_t k = index * call->leaf;
    part.a = (const float *)call->a + (operands[0].k_fastest ? k : k * call->lda);
    part.b = (const float *)call->b + (operands[1].k_fastest ? k : k * call->ldb);
    part.k = depth_of(call, index);
    part.accumulate = call->accumulate || index > 0;
    return (cudaError_t)multiply_units_fp32(stream, &part, &units);
}

extern "C" int gm_cuda_matmul_hopper_fp32(gm_cuda_stream stream, const gm_product_call *call)
{
    const gm_split_kind kind = {sizeof(__half), split_f16x2::PLANES, 1};
    const units_of all = {};
    operand operands[2];
    split_panel panels[2];
    cudaError_t error = cudaSuccess;

    if (is_empty(call))
        return gm_cuda_matmul_fp32(stream, call);
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
        operands[i] = operand_of(call, i, &kind);
        panels[i] = panel_of(call, &operands[i]);
        if (operands[i].ready)
            continue;
        error = measure_lines(stream, &operands[i], &panels[i]);
        if (error == cudaSuccess)
            error = split<split_f16x2>(stream, operands[i].k_fastest, &panels[i], &all);
    }
    for (int64_t i = 0; i * call->leaf < call->k && error == cudaSuccess; i++) {
        error = multiply_f16(stream, call, panels, i);
        if (error == cudaSuccess)
            error = multiply_bf16(stream, call, operands, panels, i);
        if (error == cudaSuccess)
            error = multiply_f32(stream, call, operands, panels, i);
        if (error == cudaSuccess && call->schemes != NULL) {
            count_schemes<<<1, 32, 0, stream>>>(units_for(panels, i, GM_SCHEME_F16), (double)depth_of(call, i),
                                                call->schemes);
            error = cudaGetLastError();
        }
    }
    return error;
}

#else

#define NOT_BUILT(name)                                                                  \
    extern "C" int gm_cuda_matmul_hopper_##name(gm_cuda_stream, const gm_product_call *) \
    {                                                                                    \
        return cudaErrorNoKernelImageForDevice;                                          \
    }
NOT_BUILT(fp32)
NOT_BUILT(tf32)
NOT_BUILT(fp16)
NOT_BUILT(bf16)

#endif
