/* planes_cuda.cuh - products of planes: makes them of the panels (split.h), then multiplies leaf after leaf.
 *
 * KERNEL::multiply<TYPE>(stream, panels, leaf) launches the product of a leaf, or of some parts side by side:
 * leaves, where C has few tiles, or the products of a batch; KERNEL::multiply_schemes(stream, panels, leaves) that of
 * both schemes of float32 on tensor cores. KERNEL::f16, bf16, tf32 and int8<A, B> are its types of operands. A launch
 * for units that there are not ends at once. */
#ifndef GM_KERNELS_MATMUL_TENSOR_PLANES_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_PLANES_CUDA_CUH

#include <algorithm>

#include "kernels/matmul/parts_cuda.cuh"
#include "kernels/matmul/tensor/leaf_cuda.cuh"
#include "kernels/matmul/tensor/split_cuda.cuh"

/* An operand of a call. */
struct operand {
    const void *src;
    int64_t ld;
    bool k_fastest, ready;
    int64_t frames, next;
    uint8_t *work;
    gm_split_layout at;
};

static operand operand_in(const gm_product_call *call, int which, const gm_split_kind *kind)
{
    int64_t next = which ? call->next_b : call->next_a, frames = call->batch > 1 && next ? call->batch : 1;
    operand o = {which ? call->b : call->a,
                 which ? call->ldb : call->lda,
                 (which ? call->transpose_b : !call->transpose_a) != 0,
                 call->ready[which] != 0,
                 frames,
                 next,
                 (uint8_t *)call->work[which],
                 gm_split_lay(kind, which ? call->n : call->m, call->k, call->leaf, call->part_count)};
    return o;
}

/* Does the panel have both kinds of planes from the beginning? A panel of few elements, whose leaves are all side by
 * side: the launch that would make the wide ones of some leaves takes longer than they do. */
static bool is_small(const gm_product_call *call, const gm_split_kind *kind, const operand *o)
{
    const int64_t few = 1 << 22;
    return kind->schemes && o->at.leaves <= std::max<int64_t>(call->part_count, 1) && o->at.outer * o->at.pitch <= few;
}

static split_panel panel_of(const gm_product_call *call, const gm_split_kind *kind, const operand *o)
{
    split_panel p;
    p.src = (const float *)o->src;
    p.outer = o->at.outer;
    p.k = call->k;
    p.ld = o->ld;
    p.leaf = call->leaf;
    p.leaves = o->at.leaves;
    p.groups = o->at.groups;
    p.frames = o->frames;
    p.next = o->next;
    p.planes = o->work + o->at.planes;
    p.wide = is_small(call, kind, o) ? o->work + o->at.wide : NULL;
    p.pitch = o->at.pitch;
    p.largest = (uint32_t *)(o->work + o->at.largest);
    p.least = (uint32_t *)(o->work + o->at.least);
    for (int i = 0; i < 2; i++)
        p.scale[i] = (int16_t *)(o->work + o->at.scale[i]);
    p.scheme = o->work + o->at.scheme;
    p.count = (uint32_t *)(o->work + o->at.count);
    p.all = (uint32_t *)(o->work + o->at.all);
    return p;
}

static unsigned blocks_for(int64_t items, int each)
{
    return (unsigned)divide_up(items, each);
}

static void add_panel(split_task *task, const split_panel *panel, bool k_fastest)
{
    task->panel[task->count] = *panel;
    task->k_fastest[task->count++] = k_fastest;
}

/* Both operands, their panels, and the task of those that are not ready. */
static split_task panels_of(const gm_product_call *call, const gm_split_kind *kind, operand operands[2],
                            split_panel panels[2])
{
    split_task task = {};
    for (int i = 0; i < 2; i++) {
        operands[i] = operand_in(call, i, kind);
        panels[i] = panel_of(call, kind, &operands[i]);
        if (!operands[i].ready)
            add_panel(&task, &panels[i], operands[i].k_fastest);
    }
    return task;
}

/* The ranges of the lines of some panels. */
static cudaError_t measure_lines(cudaStream_t stream, const split_task *task)
{
    dim3 blocks(0, 1, (unsigned)task->count);
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < task->count && error == cudaSuccess; i++) {
        const split_panel *p = &task->panel[i];
        int64_t pieces = range_pieces(*p);
        blocks.x = std::max(blocks.x, task->k_fastest[i] ? blocks_for(p->leaves * p->outer, RANGE_THREADS / 32)
                                                         : (unsigned)(p->groups * p->leaves * pieces));
        if (!task->k_fastest[i] && pieces > 1)
            error = cudaMemsetAsync(p->largest, 0, (size_t)((uint8_t *)p->scale[0] - (uint8_t *)p->largest), stream);
    }
    return error == cudaSuccess && task->count ? launch_early(find_ranges, blocks, RANGE_THREADS, 0, stream, *task)
                                               : error;
}

/* Blocks of 64 x 64 elements: of a panel, its frames, and the panels of a task. */
static dim3 split_grid(const split_task *task)
{
    dim3 blocks(0, 1, (unsigned)task->count);
    for (int i = 0; i < task->count; i++) {
        const split_panel *p = &task->panel[i];
        blocks.x = std::max(blocks.x, (unsigned)split_blocks(*p));
        blocks.y = std::max(blocks.y, (unsigned)p->frames);
    }
    return blocks;
}

/* most: blocks, where there may be nothing to split; 0: any number. */
template <class SPLIT>
static cudaError_t split(cudaStream_t stream, const split_task *task, const units_of *units, unsigned most)
{
    dim3 blocks = split_grid(task);
    if (most)
        blocks.x = std::min(blocks.x, most);
    return task->count ? launch_early(split_elements<SPLIT>, blocks, SPLIT_THREADS, 0, stream, *task, *units)
                       : cudaSuccess;
}

static cudaError_t lay_out(cudaStream_t stream, const split_task *task)
{
    return task->count ? launch_early(lay_out_bytes, split_grid(task), SPLIT_THREADS, 0, stream, *task) : cudaSuccess;
}

/* The part of a panel that is `count` leaves from leaf `first` on, to the planes of three parts. */
static split_panel wide_panel_of(const split_panel *p, const operand *o, int64_t first, int64_t count)
{
    split_panel part = *p;
    int64_t k = first * p->leaf, line = first * p->outer, depth = count * p->leaf;
    part.wide = NULL;
    part.src += o->k_fastest ? k : k * p->ld;
    part.k = p->k - k < depth ? p->k - k : depth;
    part.planes = o->work + o->at.wide;
    part.pitch = divide_up(part.k, GM_SPLIT_K) * GM_SPLIT_K;
    part.largest += line;
    return part;
}

/* --- Leaves and batches --- */

/* `count` leaves of `length` elements from leaf `first` on: one to acc, more side by side to the parts. A batch has one
 * leaf of each product side by side. */
static plane_leaf leaves_at(const gm_product_call *call, int64_t length, int64_t first, int64_t count)
{
    int64_t left = call->k - (first + count - 1) * length;
    plane_leaf leaf = {};
    leaf.m = call->m;
    leaf.n = call->n;
    leaf.k = first * length;
    leaf.last_depth = left < length ? left : length;
    leaf.depth = count == 1 ? leaf.last_depth : length;
    leaf.parts = (int)count;
    leaf.accumulate = count == 1 && (call->accumulate || first > 0);
    leaf.acc = count == 1 ? call->acc : call->parts;
    leaf.ld = call->ldacc;
    leaf.next_k = length;
    leaf.next_acc = call->m * call->ldacc;
    if (call->batch > 1) {
        leaf.parts = (int)call->batch;
        leaf.next_k = 0;
        leaf.next_a = call->next_a ? call->m : 0;
        leaf.next_b = call->next_b ? call->n : 0;
        leaf.next_acc = call->next_acc;
    }
    return leaf;
}

/* Leaves side by side at most; 0: the call is invalid. */
static int64_t most_beside(const gm_product_call *call)
{
    return call->part_count > GM_BATCH_MOST || call->batch > GM_BATCH_MOST ? 0
           : call->batch > 1 || call->part_count < 2                       ? 1
                                                                           : call->part_count;
}

/* All leaves of a call, of `length` elements each. */
template <class KERNEL, class TYPE>
static cudaError_t multiply_leaves(cudaStream_t stream, const gm_product_call *call, const split_panel *panels,
                                   int64_t length)
{
    int64_t leaves = divide_up(call->k, length), most = most_beside(call);
    cudaError_t error = most ? cudaSuccess : cudaErrorInvalidConfiguration;
    for (int64_t first = 0; first < leaves && error == cudaSuccess; first += most) {
        int64_t count = leaves - first < most ? leaves - first : most;
        plane_leaf leaf = leaves_at(call, length, first, count);
        error = KERNEL::template multiply<TYPE>(stream, panels, &leaf);
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

/* --- Operands that are rounded to one plane --- */

template <class KERNEL, class TYPE, class SPLIT>
static int multiply_rounded(cudaStream_t stream, const gm_product_call *call)
{
    const gm_split_kind kind = {(int32_t)sizeof(typename TYPE::element), SPLIT::PLANES, 0};
    const units_of all = {};
    operand operands[2];
    split_panel panels[2];

    if (is_empty(call))
        return gm_cuda_matmul_fp32(stream, call);
    split_task task = panels_of(call, &kind, operands, panels);
    cudaError_t error = split<SPLIT>(stream, &task, &all, 0);
    return error == cudaSuccess ? multiply_leaves<KERNEL, TYPE>(stream, call, panels, call->leaf) : error;
}

/* --- float32 --- */

/* Adds the shares of the schemes in leaves: units times k. */
static __global__ void count_schemes(units_of units, double depth, double last_depth, double *schemes)
{
    if (threadIdx.x < GM_SCHEMES)
        for (int leaf = 0; leaf < units.leaves; leaf++)
            schemes[threadIdx.x] += (double)count_units(units_at(units, leaf), (int)threadIdx.x) *
                                    (leaf == units.leaves - 1 ? last_depth : depth);
}

static units_of units_for(const split_panel *panels, int64_t first, int64_t count, gm_scheme scheme)
{
    units_of u = {panels[0].scheme + first * panels[0].groups,
                  panels[1].scheme + first * panels[1].groups,
                  panels[0].count + first * GM_SCHEMES,
                  panels[1].count + first * GM_SCHEMES,
                  panels[0].all,
                  panels[1].all,
                  panels[0].groups,
                  panels[1].groups,
                  (int)count,
                  scheme};
    return u;
}

/* The units of a scheme on tensor cores. */
static plane_leaf leaves_of_scheme(const gm_product_call *call, const split_panel *panels, int64_t first, int64_t count,
                                   gm_scheme scheme)
{
    plane_leaf leaf = leaves_at(call, call->leaf, first, count);
    leaf.units = units_for(panels, first, count, scheme);
    leaf.scale_a = panels[0].scale[scheme] + first * panels[0].outer;
    leaf.scale_b = panels[1].scale[scheme] + first * panels[1].outer;
    return leaf;
}

/* `count` leaves side by side, by all schemes. */
template <class KERNEL>
static cudaError_t multiply_by_schemes(cudaStream_t stream, const gm_product_call *call, const operand *operands,
                                       const split_panel *panels, int64_t first, int64_t count)
{
    const units_of plain = units_for(panels, first, count, GM_SCHEME_F32);
    plane_leaf leaves[] = {leaves_of_scheme(call, panels, first, count, GM_SCHEME_F16),
                           leaves_of_scheme(call, panels, first, count, GM_SCHEME_BF16)};
    split_panel of_schemes[2][2] = {{panels[0], panels[1]}};
    split_task task = {};
    int multiprocessors;

    leaves[1].k = 0; /* of the planes of these leaves alone */
    for (int i = 0; i < 2; i++) {
        of_schemes[1][i] = wide_panel_of(&panels[i], &operands[i], first, count);
        if (panels[i].wide == NULL)
            add_panel(&task, &of_schemes[1][i], operands[i].k_fastest);
    }
    cudaError_t error = multiprocessors_of(&multiprocessors);
    if (error == cudaSuccess)
        error = split<split_bf16x3>(stream, &task, &leaves[1].units, (unsigned)multiprocessors * SPLIT_RESIDENT);
    if (error == cudaSuccess)
        error = KERNEL::multiply_schemes(stream, of_schemes, leaves);
    if (error == cudaSuccess)
        error = (cudaError_t)multiply_units_fp32(stream, call, first, count, &plain);
    if (error == cudaSuccess && call->schemes != NULL) {
        count_schemes<<<1, 32, 0, stream>>>(plain, (double)leaves[0].depth, (double)leaves[0].last_depth,
                                            call->schemes);
        error = cudaGetLastError();
    }
    return error == cudaSuccess && count > 1 ? fold_parts<float>(stream, call, count, call->accumulate || first > 0)
                                             : error;
}

template <class KERNEL>
static int multiply_fp32(cudaStream_t stream, const gm_product_call *call)
{
    const gm_split_kind kind = {sizeof(__half), split_f16x2::PLANES, 1};
    const units_of all = {};
    operand operands[2];
    split_panel panels[2];
    int64_t leaves = divide_up(call->k, call->leaf), most = most_beside(call);
    cudaError_t error = most && call->batch < 2 ? cudaSuccess : cudaErrorInvalidConfiguration;

    if (is_empty(call))
        return gm_cuda_matmul_fp32(stream, call);
    split_task task = panels_of(call, &kind, operands, panels);
    if (error == cudaSuccess)
        error = measure_lines(stream, &task);
    if (error == cudaSuccess)
        error = split<split_f16x2>(stream, &task, &all, 0);
    for (int64_t first = 0; first < leaves && error == cudaSuccess; first += most)
        error = multiply_by_schemes<KERNEL>(stream, call, operands, panels, first,
                                            leaves - first < most ? leaves - first : most);
    return error;
}

/* --- Integers of 8 bits --- */

/* Sums are exact, so that leaves of any length do: one for all k, or some side by side. */
template <class KERNEL, class TYPE>
static cudaError_t multiply_bytes(cudaStream_t stream, const gm_product_call *call, const split_panel *panels)
{
    enum { STEP = 128 }; /* elements that a kernel takes at a time */
    int64_t length = call->part_count > 1 ? divide_up(call->leaf, STEP) * STEP : call->k;
    return multiply_leaves<KERNEL, TYPE>(stream, call, panels, length);
}

template <class KERNEL>
static int multiply_int8(cudaStream_t stream, const gm_product_call *call)
{
    const gm_split_kind kind = {1, 1, 0};
    operand operands[2];
    split_panel panels[2];

    if (is_empty(call))
        return gm_cuda_matmul_fp32(stream, call); /* the bits of 0 are the same */
    split_task task = panels_of(call, &kind, operands, panels);
    cudaError_t error = lay_out(stream, &task);
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
