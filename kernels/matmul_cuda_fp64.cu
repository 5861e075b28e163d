/* matmul_cuda_fp64.cu - products with float64 accumulators on the tensor cores, for float64 and ("exact") float32 operands.
 *
 * A block of 8 warps makes a tile of 128 x 128 of C, a warp 64 x 32 of it, in registers. Both operands come through a ring of
 * stages in shared memory, filled by asynchronous copies of 16 bytes; float32 turns into float64 on the way from shared memory
 * to registers. A stage is 128 bytes of k: 16 float64 or 32 float32.
 *
 * A panel lies in a stage as it lies in memory: by rows of 128 bytes of k ("k-major": A, and B when transposed), or by rows of
 * 128 elements along m or n. The order of rows, columns and k within the instruction's fragments is free as long as A, B and C
 * agree, so it is chosen for wide loads: a thread's k are neighbours (one chunk of 16 bytes of a k-major row), and so are its two
 * rows of an m16 fragment and its columns of two n8 fragments. Chunks are swizzled so that no load or store has bank conflicts.
 *
 * The order of the sum over k depends on nothing but the leaf: all four transpositions give the same bits. */
#include "kernels/matmul_cuda.cuh"

enum {
    WARPS_M = 2, WARPS_N = 4, THREADS = 32 * WARPS_M * WARPS_N,
    WARP_M = 64, WARP_N = 32, FRAGS_M = WARP_M / 16, FRAGS_N = WARP_N / 8,
    TILE = 128,            /* of C, in both directions */
    PANEL = TILE * 128,    /* bytes of one operand in a stage */
    STAGES = 3
};

/* One thread's share of copying a panel, the same in each stage: passes of THREADS chunks. */
template <typename T, bool K_MAJOR>
struct writer {
    enum { PACK = 16 / sizeof(T), DEPTH = 128 / sizeof(T), ROW = TILE / PACK, PASSES = PANEL / 16 / THREADS };

    const char *src;    /* of the first pass */
    int64_t pass, step; /* bytes from pass to pass, from stage to stage */
    int left;           /* rows (k-major), or bytes of the row, that exist from this thread's on */
    int dst;            /* within the panel */

    __device__ __forceinline__ void start(const void *base, int64_t ld, int64_t row, int64_t rows)
    {
        int t = (int)threadIdx.x;

        ld *= (int64_t)sizeof(T);
        if (K_MAJOR) {
            left = clamp(rows - row, TILE) - t / 8;
            src = (const char *)base + (row + t / 8) * ld + t % 8 * 16;
            dst = t / 8 * 128 + (t % 8 ^ t / 16 % 2 * 4) * 16;
            pass = THREADS / 8 * ld;
            step = 128;
        } else {
            left = clamp((clamp(rows - row, TILE) - t % ROW * PACK) * (int)sizeof(T), 16);
            src = (const char *)base + t / ROW * ld + row * (int64_t)sizeof(T) + t % ROW * 16;
            dst = t / ROW * (TILE * (int)sizeof(T)) + (t % ROW ^ t / ROW / PACK % 4 * 2) * 16;
            pass = THREADS / ROW * ld;
            step = DEPTH * ld;
        }
    }

    /* Begins the copy of the next stage, of which depth rows or columns exist, to the panel at to. */
    __device__ __forceinline__ void copy(uint32_t to, int depth)
    {
        int t = (int)threadIdx.x, bytes = K_MAJOR ? clamp((depth - t % 8 * PACK) * (int)sizeof(T), 16) : left;
        const char *from = src;

#pragma unroll
        for (int p = 0; p < PASSES; p++, from += pass)
            if (K_MAJOR)
                copy16(to + dst + p * THREADS * 16, from, p * (THREADS / 8) < left ? bytes : 0);
            else /* two passes go on by 2 PACK of k: the swizzle changes by half its range */
                copy16(to + (dst ^ p % 2 * 64) + p * THREADS * 16, from, p * (THREADS / ROW) < depth - t / ROW ? bytes : 0);
        src += step;
    }
};

/* Reads fragments of a panel. */
template <typename T, bool K_MAJOR>
struct reader {
    enum { PACK = 16 / sizeof(T) };
    struct __align__(16) chunk {
        T v[PACK];
    };
    struct __align__(2 * sizeof(T)) pair {
        T v[2];
    };

    int at[2]; /* within the panel: for chunk 0 and 1 (k-major), for even and odd fragments of 16 rows */

    /* row: the first row of this warp. */
    __device__ __forceinline__ void start(int row)
    {
        int lane = (int)threadIdx.x % 32, q = lane % 4;

        row += lane / 4 * 2;
        at[0] = K_MAJOR ? row * 128 + (q ^ lane / 4 % 2 * 4) * 16 : PACK * q * TILE * (int)sizeof(T) + (row * (int)sizeof(T) ^ q * 32);
        at[1] = K_MAJOR || sizeof(T) == 4 ? at[0] ^ 64 : at[0];
    }

    /* This thread's two rows of fragment f, at the PACK values of k of its chunk h. */
    __device__ __forceinline__ void load(const char *panel, int f, int h, T (*out)[PACK]) const
    {
        if (K_MAJOR) {
#pragma unroll
            for (int i = 0; i < 2; i++)
                *(chunk *)out[i] = *(const chunk *)(panel + at[h] + (16 * f + i) * 128);
        } else {
            const char *first = panel + at[f % 2] + (f - (sizeof(T) == 4 ? f % 2 : 0)) * 16 * (int)sizeof(T);
#pragma unroll
            for (int e = 0; e < PACK; e++) {
                pair p = *(const pair *)(first + (4 * PACK * h + e) * TILE * (int)sizeof(T));
                out[0][e] = p.v[0];
                out[1][e] = p.v[1];
            }
        }
    }
};

/* c (16 x 8) += a (16 x 4 P) b (4 P x 8), in the layout of mma.m16n8k*: a[row half][k / 4], b[k / 4]. */
template <int P>
static __device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[2][P], const double (&b)[P])
{
#if __CUDA_ARCH__ >= 900
    if (P == 4)
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
            "{%0,%1,%2,%3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0][0]), "d"(a[1][0]), "d"(a[0][1]), "d"(a[1][1]), "d"(a[0][P - 2]), "d"(a[1][P - 2]), "d"(a[0][P - 1]),
              "d"(a[1][P - 1]), "d"(b[0]), "d"(b[1]), "d"(b[P - 2]), "d"(b[P - 1]));
    else
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0][0]), "d"(a[1][0]), "d"(a[0][1]), "d"(a[1][1]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int e = 0; e < P; e++) {
#pragma unroll
        for (int h = 0; h < 2; h++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[2 * h]), "+d"(c[2 * h + 1])
                : "d"(a[h][e]), "d"(b[e]));
    }
#endif
}

/* Multiplies one stage into the accumulators. */
template <typename T, bool A_K, bool B_K>
static __device__ __forceinline__ void multiply_stage(double (&acc)[FRAGS_M][FRAGS_N][4], const char *stage, const reader<T, A_K> &a,
                                                      const reader<T, B_K> &b)
{
    enum { PACK = 16 / sizeof(T) };

#pragma unroll
    for (int h = 0; h < 2; h++) {
        T raw[2][PACK];
        double left[2][PACK], right[FRAGS_N][PACK];

#pragma unroll
        for (int j = 0; j < FRAGS_N; j += 2) {
            b.load(stage + PANEL, j / 2, h, raw);
#pragma unroll
            for (int e = 0; e < 2 * PACK; e++)
                right[j + e / PACK][e % PACK] = raw[e / PACK][e % PACK];
        }
#pragma unroll
        for (int i = 0; i < FRAGS_M; i++) {
            a.load(stage, i, h, raw);
#pragma unroll
            for (int e = 0; e < 2 * PACK; e++)
                left[e / PACK][e % PACK] = raw[e / PACK][e % PACK];
#pragma unroll
            for (int j = 0; j < FRAGS_N; j++)
                multiply<PACK>(acc[i][j], left, right[j]);
        }
    }
}

/* Folds this thread's accumulators into C: two rows of each m16 fragment, four columns of each pair of n8 fragments. */
static __device__ __forceinline__ void fold(const gm_product_call &call, int64_t row, int64_t col, bool add,
                                            const double (&acc)[FRAGS_M][FRAGS_N][4])
{
    double *c = (double *)call.acc + row * call.ldacc + col;
    int64_t ld = call.ldacc;
    bool wide = row + WARP_M - 14 <= call.m && col + WARP_N - 12 <= call.n && fold_aligned(call, sizeof(double));

    asm volatile("" : "+l"(ld)); /* or the compiler keeps sixteen addresses in registers through the main loop */
#pragma unroll
    for (int i = 0; i < FRAGS_M; i++, c += 14 * ld)
#pragma unroll
        for (int h = 0; h < 2; h++, c += ld) {
            double v[FRAGS_N / 2][4];
#pragma unroll
            for (int j = 0; j < 2 * FRAGS_N; j++)
                v[j / 4][j % 4] = acc[i][j / 4 * 2 + j % 2][2 * h + j % 4 / 2];
            if (wide)
                fold_wide<16>(c, add, v);
            else if (row + 16 * i + h < call.m)
                fold_narrow<16>(c, call.n - col, add, v);
        }
}

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B>
static __global__ void __launch_bounds__(THREADS, 1) multiply_tile(const gm_product_call call)
{
    extern __shared__ __align__(128) char stages[];
    enum { DEPTH = 128 / sizeof(T) };
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 / WARPS_N * WARP_M, col = (int)threadIdx.x / 32 % WARPS_N * WARP_N;
    int whole = (int)(call.k / DEPTH), tail = (int)(call.k % DEPTH), leaf = (int)(call.leaf / DEPTH), steps = whole + (tail > 0);
    int64_t tile_row, tile_col;
    writer<T, !TRANSPOSE_A> write_a;
    writer<T, TRANSPOSE_B> write_b;
    reader<T, !TRANSPOSE_A> read_a;
    reader<T, TRANSPOSE_B> read_b;
    int filled = 0, used = 0, copied = 0, step = 0; /* the ring's next places, in bytes; steps begun and done */
    bool add = call.accumulate;

    find_tile(call, TILE, TILE, &tile_row, &tile_col);
    write_a.start(call.a, call.lda, tile_row, call.m);
    write_b.start(call.b, call.ldb, tile_col, call.n);
    read_a.start(row);
    read_b.start(col);
    auto copy_stage = [&]() {
        if (copied < steps) {
            write_a.copy(shared_address(stages) + filled, copied < whole ? DEPTH : tail);
            write_b.copy(shared_address(stages) + filled + PANEL, copied < whole ? DEPTH : tail);
        }
        copy_commit();
        copied++;
        filled = filled == (STAGES - 1) * 2 * PANEL ? 0 : filled + 2 * PANEL;
    };
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++)
        copy_stage();

    do {
        int end = steps - step < leaf ? steps : step + leaf;
        double acc[FRAGS_M][FRAGS_N][4] = {};

#pragma unroll 1
        for (; step < end; step++) {
            copy_wait<STAGES - 2>();
            __syncthreads();
            copy_stage();
            multiply_stage(acc, stages + used, read_a, read_b);
            used = used == (STAGES - 1) * 2 * PANEL ? 0 : used + 2 * PANEL;
        }
        fold(call, tile_row + row + lane / 4 * 2, tile_col + col + lane % 4 * 4, add, acc);
        add = true;
    } while (step < steps);
}

template <typename T>
static int launch(gm_cuda_stream stream, const gm_product_call *call)
{
    static product_kernel *const kernels[2][2] = {
        {multiply_tile<T, false, false>, multiply_tile<T, false, true>},
        {multiply_tile<T, true, false>, multiply_tile<T, true, true>},
    };

    return launch_product(kernels, TILE, TILE, THREADS, STAGES * 2 * PANEL, stream, call);
}

extern "C" int gm_cuda_matmul_fp64(gm_cuda_stream stream, const gm_product_call *call)
{
    return launch<double>(stream, call);
}

extern "C" int gm_cuda_matmul_exact(gm_cuda_stream stream, const gm_product_call *call)
{
    return launch<float>(stream, call);
}
