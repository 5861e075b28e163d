/* matmul_cuda_fp32.cu - products in plain float32: a multiplication and its addition are one fused operation of an
 * ordinary lane.
 *
 * A warp makes 64 x 64 of C, a thread 8 x 16 in registers. A block of 4 warps makes a tile of 128 x 128; two blocks on
 * a multiprocessor fill each other's gaps. Where such tiles would lie outside C for a good part, as in thin products, a
 * block is one warp; where even these are few, it is four warps of 32 x 32: the bits are the same. The panels come
 * through a ring of stages of 8 k in shared memory by asynchronous copies, and lie there by rows of k: 16-byte copies
 * where memory has that order too, else 4-byte copies that transpose on the way. The fragments of the next k are loaded
 * while the last ones are multiplied.
 *
 * The sum over k of a leaf goes in order, so all four transpositions give the same bits.
 *
 * The speed hangs on the compiler's choice of registers: an FFMA whose three sources are in one bank (all odd or all
 * even) takes longer. This order of the operations, of the loads and of the copies leaves 1 to 2 % of those; others had
 * 10 %, and ran 10 % slower. After a change, count them in `cuobjdump -sass`. */
#include <algorithm>

#include "kernels/matmul/matmul_cuda.cuh"
#include "kernels/matmul/tensor/units_cuda.cuh"

enum {
    LANES_M = 8,
    LANES_N = 4, /* of a warp */
    DEPTH = 8,
    STAGES = 5
};

/* A block of WARPS x WARPS warps, each of which makes SIDE x SIDE of C. */
template <int WARPS_, int SIDE_>
struct block_shape {
    enum {
        WARPS = WARPS_,
        SIDE = SIDE_,
        TM = SIDE / LANES_M,
        TN = SIDE / LANES_N, /* elements of a thread, by groups of 4 that lie 4 LANES apart */
        THREADS = 32 * WARPS * WARPS,
        BLOCKS = 8 / (WARPS * WARPS), /* on a multiprocessor */
        TILE = SIDE * WARPS,
        ROW = TILE + 4, /* floats; the 4 keep transposing copies free of bank conflicts */
        PANEL = DEPTH * ROW,
        STAGE = 2 * PANEL,
        RING = STAGES * STAGE
    };
};

/* A thread's part of the copy of a panel, TILE rows of A or columns of B. "k-major": k runs fastest in memory. */
template <class SHAPE, bool K_MAJOR>
struct writer {
    enum {
        THREADS = SHAPE::THREADS,
        TILE = SHAPE::TILE,
        ROW = SHAPE::ROW,
        SPAN = K_MAJOR ? THREADS / DEPTH : THREADS / (TILE / 4), /* of a pass, across the rows of memory */
        PASSES = K_MAJOR ? TILE / SPAN : DEPTH / SPAN
    };

    const float *src;   /* of the first pass */
    int64_t pass, step; /* elements from pass to pass, from stage to stage */
    int left;           /* rows (k-major), or bytes of the row up to 16, that exist from this thread's on */
    int dst;            /* bytes, within the panel */

    __device__ __forceinline__ void start(const void *base, int64_t ld, int64_t row, int64_t rows)
    {
        int t = (int)threadIdx.x, k = K_MAJOR ? t % DEPTH : t / (TILE / 4),
            r = K_MAJOR ? t / DEPTH : t % (TILE / 4) * 4;

        left = clamp(rows - row, TILE) - r;
        if (!K_MAJOR)
            left = clamp(left * (int)sizeof(float), 16);
        src = (const float *)base + (K_MAJOR ? (row + r) * ld + k : k * ld + row + r);
        dst = (k * ROW + r) * (int)sizeof(float);
        pass = SPAN * ld;
        step = K_MAJOR ? DEPTH : DEPTH * ld;
    }

    /* Starts the copy of the next stage to the panel at `to`. With EDGE, only `depth` of its k exist, and some rows may
     * not. */
    template <bool EDGE>
    __device__ __forceinline__ void copy(uint32_t to, int depth)
    {
        int t = (int)threadIdx.x;
        const float *from = src;

        to += dst;
#pragma unroll
        for (int p = 0; p < PASSES; p++, from += pass)
            if (K_MAJOR)
                copy4(to + p * SPAN * 4, from, !EDGE || (p * SPAN < left && t % DEPTH < depth) ? 4 : 0);
            else
                copy16(to + p * SPAN * ROW * 4, from, !EDGE ? 16 : p * SPAN + t / (TILE / 4) < depth ? left : 0);
    }
};

/* Loads COUNT floats, in groups of 4 that lie STRIDE apart. */
template <int COUNT, int STRIDE>
static __device__ __forceinline__ void load(float (&out)[COUNT], const float *from)
{
#pragma unroll
    for (int i = 0; i < COUNT; i += 4)
        *(float4 *)&out[i] = *(const float4 *)(from + i / 4 * STRIDE);
}

/* The outer product of one k. */
template <int TM, int TN>
static __device__ __forceinline__ void multiply(float (&acc)[TM][TN], const float (&x)[TM], const float (&y)[TN])
{
#pragma unroll
    for (int i = 0; i < TM; i += 2)
#pragma unroll
        for (int j = 0; j < TN; j += 2)
#pragma unroll
            for (int e = 0; e < 4; e++)
                acc[i + e / 2][j + e % 2] = fmaf(x[i + e / 2], y[j + e % 2], acc[i + e / 2][j + e % 2]);
}

/* Folds this thread's elements into C, from row and col on. */
template <bool BATCH, int TM, int TN>
static __device__ __forceinline__ void fold(const kernel_call &call, int64_t row, int64_t col, bool add,
                                            const float (&acc)[TM][TN])
{
    enum { WARP_M = TM * LANES_M, WARP_N = TN * LANES_N };
    enum { STRIDE = 4 * LANES_N, FOLD_ROWS = 2 }; /* rows at a time */
    float *c = acc_of<BATCH, float>(call) + row * call.ldacc + col;
    int64_t ld = call.ldacc;
    bool wide = row + WARP_M - 4 * LANES_M + 4 <= call.m && col + WARP_N - STRIDE + 4 <= call.n &&
                fold_aligned<BATCH>(call, sizeof(float));

    asm volatile("" : "+l"(ld)); /* otherwise the compiler keeps many addresses in registers through the main loop */
#pragma unroll
    for (int i = 0; i < TM; i += FOLD_ROWS) {
        float v[FOLD_ROWS][TN / 4][4], *rows[FOLD_ROWS];
#pragma unroll
        for (int e = 0; e < FOLD_ROWS; e++) {
            rows[e] = c + (i / 4 * 4 * LANES_M + i % 4 + e) * ld;
#pragma unroll
            for (int j = 0; j < TN; j++)
                v[e][j / 4][j % 4] = acc[i + e][j];
        }
        if (wide)
            fold_wide<STRIDE>(rows, add, v);
        else
#pragma unroll
            for (int e = 0; e < FOLD_ROWS; e++)
                if (row + i / 4 * 4 * LANES_M + i % 4 + e < call.m)
                    fold_narrow<STRIDE>(rows[e], call.n - col, add, v[e]);
    }
}

/* Computes the tile at tile_row, tile_col; a warp folds its part if `folds`. Without EDGE it lies within C, and k is a
 * positive multiple of DEPTH. */
template <class SHAPE, bool BATCH, bool A_K, bool B_K, bool EDGE>
static __device__ __forceinline__ void make_tile(const kernel_call &call, float *stages, int64_t tile_row,
                                                 int64_t tile_col, bool folds)
{
    enum {
        WARPS = SHAPE::WARPS,
        TM = SHAPE::TM,
        TN = SHAPE::TN,
        ROW = SHAPE::ROW,
        PANEL = SHAPE::PANEL,
        STAGE = SHAPE::STAGE,
        RING = SHAPE::RING
    };
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int row = warp / WARPS * SHAPE::SIDE + lane / 2 % LANES_M * 4;
    int col = warp % WARPS * SHAPE::SIDE + (lane / (2 * LANES_M) * 2 + lane % 2) * 4;
    int64_t length = k_of<BATCH>(call);
    int whole = (int)(length / DEPTH), tail = (int)(length % DEPTH), steps = whole + (tail > 0);
    int leaf = (int)(call.leaf / DEPTH);
    int step = 0, copied = 0, filled = 0,
        used = 0; /* stages multiplied and started; positions in the ring, in floats */
    writer<SHAPE, A_K> a;
    writer<SHAPE, B_K> b;
    float x[2][TM], y[2][TN];
    bool add = call.accumulate;

    a.start(operand_of<BATCH, float>(call.a, call.next_a), call.lda, tile_row, call.m);
    b.start(operand_of<BATCH, float>(call.b, call.next_b), call.ldb, tile_col, call.n);
    auto copy_stage = [&]() {
        int depth = copied < whole ? DEPTH : copied < steps ? tail : 0;
        a.template copy<EDGE>(shared_address(stages + filled), depth);
        b.template copy<EDGE>(shared_address(stages + filled + PANEL), depth);
        copy_commit();
        if (EDGE || copied + 1 < steps) { /* otherwise the last stage is copied again, to a position that is not read */
            a.src += a.step;
            b.src += b.step;
        }
        copied++;
        filled = filled == RING - STAGE ? 0 : filled + STAGE;
    };
    auto load_fragments = [&](int k) {
        load<TN, 4 * LANES_N>(y[k % 2], stages + used + PANEL + k * ROW + col);
        load<TM, 4 * LANES_M>(x[k % 2], stages + used + k * ROW + row);
    };
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++)
        copy_stage();
    copy_wait<STAGES - 2>();
    load_fragments(0);

    do {
        int end = steps - step < leaf ? steps : step + leaf;
        float acc[TM][TN] = {};

#pragma unroll 1
        for (; step < end; step++) {
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                if (k == DEPTH - 1) {
                    used = used == RING - STAGE ? 0 : used + STAGE;
                    copy_wait<STAGES - 2>();
                }
                load_fragments((k + 1) % DEPTH);
                if (k == 1)
                    copy_stage(); /* to the position of the previous stage, which all warps have left */
                multiply(acc, x[k % 2], y[k % 2]);
            }
        }
        if (folds)
            fold<BATCH>(call, tile_row + row, tile_col + col, add, acc);
        add = true;
    } while (step < steps);
}

template <class SHAPE, bool BATCH, bool TRANSPOSE_A, bool TRANSPOSE_B>
static __device__ __forceinline__ void make_any_tile(const kernel_call &call, float *stages, int64_t row, int64_t col,
                                                     bool folds)
{
    enum { TILE = SHAPE::TILE };
    if (row + TILE <= call.m && col + TILE <= call.n && k_of<BATCH>(call) > 0 && k_of<BATCH>(call) % DEPTH == 0)
        make_tile<SHAPE, BATCH, !TRANSPOSE_A, TRANSPOSE_B, false>(call, stages, row, col, folds);
    else
        make_tile<SHAPE, BATCH, !TRANSPOSE_A, TRANSPOSE_B, true>(call, stages, row, col, folds);
}

template <int WARPS, int SIDE, bool BATCH, bool TRANSPOSE_A, bool TRANSPOSE_B>
static __global__ void __launch_bounds__(block_shape<WARPS, SIDE>::THREADS, block_shape<WARPS, SIDE>::BLOCKS)
    multiply_matrices(const kernel_call call)
{
    typedef block_shape<WARPS, SIDE> shape;
    extern __shared__ __align__(16) float stages[];
    int64_t row, col;

    wait_for_kernel_ahead();
    find_tile(blockIdx.x, call.m, call.n, shape::TILE, shape::TILE, &row, &col);
    make_any_tile<shape, BATCH, TRANSPOSE_A, TRANSPOSE_B>(call, stages, row, col, true);
}

/* The units of C that are wanted: the part of a warp is a unit. Most launches have none, so the grid has no more blocks
 * than fit the device. BATCH: leaves side by side. */
typedef block_shape<2, GM_SPLIT_GROUP> units_shape;
template <bool BATCH, bool TRANSPOSE_A, bool TRANSPOSE_B>
static __global__ void __launch_bounds__(units_shape::THREADS, units_shape::BLOCKS)
    multiply_units(const kernel_call call, units_of units)
{
    extern __shared__ __align__(16) float stages[];
    enum { TILE = units_shape::TILE, SIDE = units_shape::SIDE };
    int down = (int)threadIdx.x / 32 / units_shape::WARPS * SIDE,
        right = (int)threadIdx.x / 32 % units_shape::WARPS * SIDE;
    uint32_t tiles = (uint32_t)(divide_up(call.m, TILE) * divide_up(call.n, TILE));

    /* The kernel ahead has waited for those that wrote the counts. */
    bool any = may_be_there(&units);
    wait_for_kernel_ahead();
    if (!any)
        return;
    units = units_at(units, blockIdx.y);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t row, col;
        find_tile(tile, call.m, call.n, TILE, TILE, &row, &col);
        if (!has_units(units, row, TILE, col, TILE))
            continue;
        make_any_tile<units_shape, BATCH, TRANSPOSE_A, TRANSPOSE_B>(
            call, stages, row, col, units_wanted(units, row + down, col + right, SIDE) & 1);
        copy_wait<0>(); /* the next tile has the same ring */
        __syncthreads();
    }
}

template <int WARPS, int SIDE>
static int launch(gm_cuda_stream stream, const gm_product_call *call)
{
    typedef block_shape<WARPS, SIDE> shape;
    static const product_launch<float, float> product = {
        {{{multiply_matrices<WARPS, SIDE, false, false, false>, multiply_matrices<WARPS, SIDE, false, false, true>},
          {multiply_matrices<WARPS, SIDE, false, true, false>, multiply_matrices<WARPS, SIDE, false, true, true>}},
         {{multiply_matrices<WARPS, SIDE, true, false, false>, multiply_matrices<WARPS, SIDE, true, false, true>},
          {multiply_matrices<WARPS, SIDE, true, true, false>, multiply_matrices<WARPS, SIDE, true, true, true>}}},
        shape::TILE,
        shape::TILE,
        shape::THREADS,
        shape::RING * (int)sizeof(float),
        SIDE == 32};

    return product.run(stream, call);
}

/* Warps of 64 x 64 in a launch with blocks of `warps` x `warps` of them. */
static int64_t count_warps(const gm_product_call *call, int64_t warps)
{
    const int64_t side = 64 * warps;
    return divide_up(call->m, side) * divide_up(call->n, side) * warps * warps * products_beside(call);
}

extern "C" int gm_cuda_matmul_fp32(gm_cuda_stream stream, const gm_product_call *call)
{
    const int64_t few = 528; /* one for each scheduler of a large device */
    int64_t large = count_warps(call, 2), small = count_warps(call, 1);

    return small <= few                ? launch<2, 32>(stream, call)
           : large > small + small / 4 ? launch<1, 64>(stream, call)
                                       : launch<2, 64>(stream, call);
}

int multiply_units_fp32(cudaStream_t stream, const gm_product_call *call, int64_t first, int64_t count,
                        const units_of *units)
{
    typedef void units_kernel(const kernel_call call, units_of units);
    static units_kernel *const kernels[2][2][2] = {
        {{multiply_units<false, false, false>, multiply_units<false, false, true>},
         {multiply_units<false, true, false>, multiply_units<false, true, true>}},
        {{multiply_units<true, false, false>, multiply_units<true, false, true>},
         {multiply_units<true, true, false>, multiply_units<true, true, true>}},
    };
    units_kernel *kernel = kernels[count > 1][call->transpose_a != 0][call->transpose_b != 0];
    kernel_call leaves = kernel_call_of_leaves<float>(call, first, count);
    int64_t tiles = divide_up(call->m, units_shape::TILE) * divide_up(call->n, units_shape::TILE);
    int shared = units_shape::RING * (int)sizeof(float);
    int multiprocessors;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);

    if (error == cudaSuccess)
        error = multiprocessors_of(&multiprocessors);
    if (error != cudaSuccess)
        return error;
    if (tiles > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    tiles = std::min<int64_t>(tiles, std::max<int64_t>(units_shape::BLOCKS * multiprocessors / count, 1));
    if (count == 1) {
        leaves.acc = call->acc;
        leaves.accumulate = call->accumulate || first > 0;
    }
    return launch_early(kernel, dim3((unsigned)tiles, (unsigned)count), units_shape::THREADS, shared, stream, leaves,
                        *units);
}
