/* matmul_cuda_fp32.cu - products in plain float32: every multiplication and addition is one fused operation of an ordinary lane.
 *
 * A block makes a tile of C, a thread 16 x 8 of it in registers. Operands come through a ring of stages in shared memory, filled by
 * asynchronous copies, and lie there by rows of k: 16-byte copies where memory has that order too, else 4-byte copies, which
 * transpose on the way. Fragments of the next k are loaded while the last are multiplied.
 *
 * The sum over k of a leaf goes in order: all four transpositions give the same bits. */
#include "kernels/matmul_cuda.cuh"

#ifndef GM_CFG
#define GM_CFG 2, 2, 16, 8, 4, 16, 3, 2
#endif

/* Shape of the work: WM x WN warps, TM x TN elements a thread, LM threads of a warp along m, stages of DEPTH k. */
template <int WM, int WN, int TM_, int TN_, int LM_, int DEPTH_, int STAGES_, int BLOCKS_>
struct shape {
    enum {
        WARPS_N = WN, TM = TM_, TN = TN_, LM = LM_, LN = 32 / LM_, DEPTH = DEPTH_, STAGES = STAGES_, BLOCKS = BLOCKS_,
        THREADS = 32 * WM * WN, WARP_M = TM * LM, WARP_N = TN * LN, TILE_M = WM * WARP_M, TILE_N = WN * WARP_N,
        ROW_A = TILE_M + 4, ROW_B = TILE_N + 4, /* floats; the 4 keep transposing copies free of bank conflicts */
        STAGE_A = DEPTH * ROW_A, STAGE = STAGE_A + DEPTH * ROW_B
    };
};

/* One thread's share of copying a panel of ROWS rows or columns of C, the same in each stage. */
template <typename S, bool K_MAJOR, int ROWS>
struct writer {
    enum {
        ROW = ROWS + 4,
        SPAN = K_MAJOR ? S::THREADS / 8 : S::THREADS * 4 / ROWS, /* of a pass, across the panel's rows in memory */
        PASSES = K_MAJOR ? ROWS / SPAN : S::DEPTH / SPAN
    };

    const float *src;   /* of the first pass */
    int64_t pass, step; /* elements from pass to pass, from stage to stage */
    int left;           /* rows (k-major), or bytes of the row, that exist from this thread's on */
    int dst;            /* within the panel */

    __device__ __forceinline__ void start(const void *base, int64_t ld, int64_t row, int64_t rows)
    {
        int t = (int)threadIdx.x, k = K_MAJOR ? t % 8 : t / (ROWS / 4), r = K_MAJOR ? t / 8 : t % (ROWS / 4) * 4;

        left = K_MAJOR ? clamp(rows - row, ROWS) - r : clamp((clamp(rows - row, ROWS) - r) * 4, 16);
        src = (const float *)base + (K_MAJOR ? (row + r) * ld + k : k * ld + row + r);
        dst = (k * ROW + r) * (int)sizeof(float);
        pass = SPAN * ld;
        step = K_MAJOR ? S::DEPTH : S::DEPTH * ld;
    }

    /* Begins the copy of the next stage, of which depth rows or columns exist, to the panel at to. */
    template <bool WHOLE>
    __device__ __forceinline__ void copy(uint32_t to, int depth)
    {
        int t = (int)threadIdx.x;
        const float *from = src;

        to += dst;
#pragma unroll
        for (int p = 0; p < PASSES; p++, from += pass)
            if (K_MAJOR) {
#pragma unroll
                for (int k = 0; k < S::DEPTH; k += 8)
                    copy4(to + (k * ROW + p * SPAN) * 4, from + k,
                          WHOLE || (p * SPAN < left && k + t % 8 < depth) ? 4 : 0);
            } else {
                copy16(to + p * SPAN * ROW * 4, from, WHOLE ? 16 : p * SPAN + t / (ROWS / 4) < depth ? left : 0);
            }
        src += step;
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

/* Folds this thread's accumulators into C, at row and col of C. */
template <typename S>
static __device__ __forceinline__ void fold(const gm_product_call &call, int64_t row, int64_t col, bool add, float (&acc)[S::TM][S::TN])
{
    enum { STRIDE = 4 * S::LN };
    float *c = (float *)call.acc + row * call.ldacc + col;
    int64_t ld = call.ldacc;
    bool wide = row + S::WARP_M - 4 * S::LM + 4 <= call.m && col + S::WARP_N - STRIDE + 4 <= call.n && fold_aligned(call, sizeof(float));

    asm volatile("" : "+l"(ld)); /* or the compiler keeps many addresses in registers through the main loop */
#pragma unroll
    for (int i = 0; i < S::TM; i++) {
        float v[S::TN / 4][4];
        int at = i / 4 * 4 * S::LM + i % 4;
#pragma unroll
        for (int j = 0; j < S::TN; j++)
            v[j / 4][j % 4] = acc[i][j];
        if (wide)
            fold_wide<STRIDE>(c + at * ld, add, v);
        else if (row + at < call.m)
            fold_narrow<STRIDE>(c + at * ld, call.n - col, add, v);
    }
}

template <typename S, bool TRANSPOSE_A, bool TRANSPOSE_B>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS) multiply_tile(const gm_product_call call)
{
    extern __shared__ __align__(16) float stages[];
    enum { RING = S::STAGES * S::STAGE };
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int row = warp / S::WARPS_N * S::WARP_M + lane / 2 % S::LM * 4;
    int col = warp % S::WARPS_N * S::WARP_N + (lane / (2 * S::LM) * 2 + lane % 2) * 4;
    int whole = (int)(call.k / S::DEPTH), tail = (int)(call.k % S::DEPTH), steps = whole + (tail > 0), step = 0;
    int leaf = (int)(call.leaf / S::DEPTH), filled = 0, used = 0, copied = 0; /* places in the ring, in floats; steps begun */
    int64_t tile_row, tile_col;
    writer<S, !TRANSPOSE_A, S::TILE_M> a;
    writer<S, TRANSPOSE_B, S::TILE_N> b;
    float x[2][S::TM], y[2][S::TN];
    bool add = call.accumulate;

    find_tile(call, S::TILE_M, S::TILE_N, &tile_row, &tile_col);
    if (tile_row + S::TILE_M > call.m || tile_col + S::TILE_N > call.n)
        whole = 0; /* every stage takes the careful way */
    a.start(call.a, call.lda, tile_row, call.m);
    b.start(call.b, call.ldb, tile_col, call.n);
    auto copy_stage = [&]() {
        uint32_t to = shared_address(stages + filled);
        if (copied < whole) {
            a.template copy<true>(to, S::DEPTH);
            b.template copy<true>(to + S::STAGE_A * 4, S::DEPTH);
        } else if (copied < steps) {
            int depth = tail && copied == steps - 1 ? tail : S::DEPTH;
            a.template copy<false>(to, depth);
            b.template copy<false>(to + S::STAGE_A * 4, depth);
        }
        copy_commit();
        copied++;
        filled = filled == RING - S::STAGE ? 0 : filled + S::STAGE;
    };
    auto load_fragments = [&](int k) {
        load<S::TM, 4 * S::LM>(x[k % 2], stages + used + k * S::ROW_A + row);
        load<S::TN, 4 * S::LN>(y[k % 2], stages + used + S::STAGE_A + k * S::ROW_B + col);
    };
#pragma unroll 1
    for (int s = 0; s < S::STAGES - 1; s++)
        copy_stage();
    copy_wait<S::STAGES - 2>();
    __syncthreads();
    load_fragments(0);

    do {
        int end = steps - step < leaf ? steps : step + leaf;
        float acc[S::TM][S::TN] = {};

#pragma unroll 1
        for (; step < end; step++) {
            copy_stage();
#pragma unroll
            for (int k = 0; k < S::DEPTH; k++) {
                if (k < S::DEPTH - 1) {
                    load_fragments(k + 1);
                } else {
                    used = used == RING - S::STAGE ? 0 : used + S::STAGE;
                    copy_wait<S::STAGES - 2>();
                    __syncthreads();
                    load_fragments(0);
                }
#pragma unroll
                for (int i = 0; i < S::TM; i++)
#pragma unroll
                    for (int j = 0; j < S::TN; j++)
                        acc[i][j] = fmaf(x[k % 2][i], y[k % 2][j], acc[i][j]);
            }
        }
        fold<S>(call, tile_row + row, tile_col + col, add, acc);
        add = true;
    } while (step < steps);
}

extern "C" int gm_cuda_matmul_fp32(gm_cuda_stream stream, const gm_product_call *call)
{
    typedef shape<GM_CFG> S;
    static product_kernel *const kernels[2][2] = {
        {multiply_tile<S, false, false>, multiply_tile<S, false, true>},
        {multiply_tile<S, true, false>, multiply_tile<S, true, true>},
    };

    return launch_product(kernels, S::TILE_M, S::TILE_N, S::THREADS, S::STAGES * S::STAGE * sizeof(float), stream, call);
}
