/* planes_cuda.cuh - products of planes: makes them of the panels (split.h), then multiplies leaf after leaf.
 *
 * KERNEL::multiply<TYPE, PLANES>(stream, a, b, leaf) launches the product of a leaf, or of some side by side, where C
 * has few tiles; KERNEL::f16, bf16, tf32 and int8<A, B> are its types of operands. float32 takes three launches for
 * each leaf, one for each scheme; those that have no units end at once. */
#ifndef GM_KERNELS_MATMUL_TENSOR_PLANES_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_PLANES_CUDA_CUH

#include "kernels/matmul/parts_cuda.cuh"
#include "kernels/matmul/tensor/leaf_cuda.cuh"
#include "kernels/matmul/tensor/split_cuda.cuh"

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

static cudaError_t lay_out_bytes(cudaStream_t stream, bool k_fastest, const split_panel *p)
{
    unsigned blocks = blocks_for(p->outer, GM_SPLIT_GROUP) * (unsigned)(p->pitch / GM_SPLIT_K);
    if (k_fastest)
        lay_out<true><<<blocks, SPLIT_THREADS, 0, stream>>>(*p);
    else
        lay_out<false><<<blocks, SPLIT_THREADS, 0, stream>>>(*p);
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

/* --- Operands that are rounded --- */

/* `count` leaves of so many elements from leaf `first` on: to acc, or some of them side by side to the parts. */
static plane_leaf leaves_for(const gm_product_call *call, int64_t length, int64_t first, int64_t count)
{
    int64_t left = call->k - (first + count - 1) * length;
    plane_leaf leaf = {};
    leaf.m = call->m;
    leaf.n = call->n;
    leaf.k = first * length;
    leaf.depth = length;
    leaf.last_depth = left < length ? left : length;
    leaf.parts = (int)count;
    leaf.accumulate = count == 1 && (call->accumulate || first > 0);
    leaf.acc = count == 1 ? call->acc : call->parts;
    leaf.ld = call->ldacc;
    return leaf;
}

/* All leaves of a call, of so many elements. */
template <class KERNEL, class TYPE, int PLANES>
static cudaError_t multiply_leaves(cudaStream_t stream, const gm_product_call *call, const split_panel *panels,
                                   int64_t length)
{
    int64_t leaves = divide_up(call->k, length), most = call->part_count > 1 ? call->part_count : 1;
    cudaError_t error = most > GM_BATCH_MOST ? cudaErrorInvalidConfiguration : cudaSuccess;
    for (int64_t first = 0; first < leaves && error == cudaSuccess; first += most) {
        int64_t count = leaves - first < most ? leaves - first : most;
        plane_leaf leaf = leaves_for(call, length, first, count);
        error = KERNEL::template multiply<TYPE, PLANES>(stream, &panels[0], &panels[1], &leaf);
        if (error == cudaSuccess && count > 1)
            error = fold_parts<typename TYPE::sum>(stream, call, count, call->accumulate || first > 0);
    }
    return error;
}

/* Nothing to multiply; or no k, so that sums are 0. */
static bool is_empty(const gm_product_call *call)
{
    return call->m == 0 || call->n == 0 || call->k == 0;
}

/* Operands that are rounded to one plane. */
template <class KERNEL, class TYPE, class SPLIT>
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
    return error == cudaSuccess ? multiply_leaves<KERNEL, TYPE, SPLIT::PLANES>(stream, call, panels, call->leaf)
                                : error;
}

/* --- float32 --- */

static plane_leaf leaf_for(const gm_product_call *call, int64_t index)
{
    return leaves_for(call, call->leaf, index, 1);
}

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

static void set_scheme(const split_panel *panels, int64_t index, gm_scheme scheme, plane_leaf *leaf)
{
    leaf->units = units_for(panels, index, scheme);
    leaf->scale_a = panels[0].scale[scheme] + index * panels[0].outer;
    leaf->scale_b = panels[1].scale[scheme] + index * panels[1].outer;
}

template <class KERNEL>
static cudaError_t multiply_f16(cudaStream_t stream, const gm_product_call *call, const split_panel *panels,
                                int64_t index)
{
    plane_leaf leaf = leaf_for(call, index);
    set_scheme(panels, index, GM_SCHEME_F16, &leaf);
    return KERNEL::template multiply<typename KERNEL::f16, split_f16x2::PLANES>(stream, &panels[0], &panels[1], &leaf);
}

template <class KERNEL>
static cudaError_t multiply_bf16(cudaStream_t stream, const gm_product_call *call, const operand *operands,
                                 const split_panel *panels, int64_t index)
{
    split_panel wide[2];
    plane_leaf leaf = leaf_for(call, index);
    cudaError_t error = cudaSuccess;
    set_scheme(panels, index, GM_SCHEME_BF16, &leaf);
    leaf.k = 0; /* of the planes of this leaf alone */
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
        wide[i] = leaf_of(&panels[i], &operands[i], index);
        error = split<split_bf16x3>(stream, operands[i].k_fastest, &wide[i], &leaf.units);
    }
    return error != cudaSuccess ? error
                                : KERNEL::template multiply<typename KERNEL::bf16, split_bf16x3::PLANES>(
                                      stream, &wide[0], &wide[1], &leaf);
}

static cudaError_t multiply_f32(cudaStream_t stream, const gm_product_call *call, const operand *operands,
                                const split_panel *panels, int64_t index)
{
    gm_product_call part = *call;
    units_of units = units_for(panels, index, GM_SCHEME_F32);
    int64_t k = index * call->leaf;
    part.a = (const float *)call->a + (operands[0].k_fastest ? k : k * call->lda);
    part.b = (const float *)call->b + (operands[1].k_fastest ? k : k * call->ldb);
    part.k = leaf_for(call, index).last_depth;
    part.accumulate = call->accumulate || index > 0;
    return (cudaError_t)multiply_units_fp32(stream, &part, &units);
}

template <class KERNEL>
static int multiply_fp32(cudaStream_t stream, const gm_product_call *call)
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
        error = multiply_f16<KERNEL>(stream, call, panels, i);
        if (error == cudaSuccess)
            error = multiply_bf16<KERNEL>(stream, call, operands, panels, i);
        if (error == cudaSuccess)
            error = multiply_f32(stream, call, operands, panels, i);
        if (error == cudaSuccess && call->schemes != NULL) {
            count_schemes<<<1, 32, 0, stream>>>(units_for(panels, i, GM_SCHEME_F16),
                                                (double)leaf_for(call, i).last_depth, call->schemes);
            error = cudaGetLastError();
        }
    }
    return error;
}

/* --- Integers of 8 bits --- */

/* Sums are exact, so that leaves of any length do: one for all k, or some side by side. */
template <class KERNEL, class TYPE>
static cudaError_t multiply_bytes(cudaStream_t stream, const gm_product_call *call, const split_panel *panels)
{
    enum { STEP = 128 }; /* elements that a kernel takes at a time */
    int64_t length = call->part_count > 1 ? divide_up(call->leaf, STEP) * STEP : call->k;
    return multiply_leaves<KERNEL, TYPE, 1>(stream, call, panels, length);
}

template <class KERNEL>
static int multiply_int8(cudaStream_t stream, const gm_product_call *call)
{
    const gm_split_kind kind = {1, 1, 0};
    split_panel panels[2];
    cudaError_t error = cudaSuccess;

    if (is_empty(call))
        return gm_cuda_matmul_fp32(stream, call); /* the bits of 0 are the same */
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
        operand o = operand_of(call, i, &kind);
        panels[i] = panel_of(call, &o);
        if (!o.ready)
            error = lay_out_bytes(stream, o.k_fastest, &panels[i]);
    }
    if (error != cudaSuccess)
        return error;
    if (call->is_unsigned[0])
        return call->is_unsigned[1]
                   ? multiply_bytes<KERNEL, typename KERNEL::template int8<uint8_t, uint8_t>>(stream, call, panels)
                   : multiply_bytes<KERNEL, typename KERNEL::template int8<uint8_t, int8_t>>(stream, call, panels);
    return call->is_unsigned[1]
               ? multiply_bytes<KERNEL, typename KERNEL::template int8<int8_t, uint8_t>>(stream, call, panels)
               : multiply_bytes<KERNEL, typename KERNEL::template int8<int8_t, int8_t>>(stream, call, panels);
}

/* --- Device operations --- */

#define GM_PRODUCT_OF_PLANES(kernel, precision, ...)                                                         \
    extern "C" int gm_cuda_matmul_##kernel##_##precision(gm_cuda_stream stream, const gm_product_call *call) \
    {                                                                                                        \
        return __VA_ARGS__(stream, call);                                                                    \
    }
#define GM_PRODUCTS_OF_PLANES(kernel, KERNEL)                                              \
    GM_PRODUCT_OF_PLANES(kernel, fp32, multiply_fp32<KERNEL>)                              \
    GM_PRODUCT_OF_PLANES(kernel, tf32, multiply_rounded<KERNEL, KERNEL::tf32, split_tf32>) \
    GM_PRODUCT_OF_PLANES(kernel, fp16, multiply_rounded<KERNEL, KERNEL::f16, split_f16>)   \
    GM_PRODUCT_OF_PLANES(kernel, bf16, multiply_rounded<KERNEL, KERNEL::bf16, split_bf16>) \
    GM_PRODUCT_OF_PLANES(kernel, int8, multiply_int8<KERNEL>)

#endif
