/* mma_cuda.cuh - products of planes (split.h) on the tensor cores of compute capability 8.0 and later, once for all
 * types of operands and numbers of terms.
 *
 * A block makes 128 x TILE_N of C. The planes come through a ring of stages in shared memory by asynchronous copies of
 * 16 bytes; a stage is 64 bytes of k of all planes. The fragments of the instructions have the same bytes for all
 * types: 16 rows of A, or 8 columns of B, by 32 bytes of k. A row of a stage has four chunks of 16 bytes, exchanged so
 * that neither copies nor loads have bank conflicts.
 *
 * Terms and their sums are those of hopper_cuda.cuh. */
#ifndef GM_KERNELS_MATMUL_TENSOR_MMA_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_MMA_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/matmul/matmul_cuda.cuh"
#include "kernels/matmul/tensor/leaf_cuda.cuh"

enum {
    MMA_THREADS = 256,
    MMA_ROW = 64, /* bytes of k in a row of a stage */
    MMA_CHUNKS = MMA_ROW / 16,
    MMA_STEP = 32, /* bytes of k of one instruction */
    MMA_STAGES = 4,
    MMA_SUM_ROWS = 2 /* rows of a stage whose terms are summed in the tensor cores: 64 elements of 16 bits */
};

template <int PLANES_>
struct mma_shape {
    enum {
        PLANES = PLANES_,
        DOWN = PLANES == 1 ? 4 : 2, /* fragments of a warp: 16 rows of A each */
        ACROSS = 4,                 /* 8 columns of B each */
        WARPS_M = PLANES == 1 ? 2 : 4,
        WARPS_N = MMA_THREADS / 32 / WARPS_M,
        WARP_M = DOWN * 16,
        WARP_N = ACROSS * 8,
        TILE_M = WARPS_M * WARP_M,
        TILE_N = WARPS_N * WARP_N,
        PANEL_A = TILE_M * MMA_ROW, /* bytes of a plane in a stage */
        PANEL_B = TILE_N * MMA_ROW,
        STAGE = PLANES * (PANEL_A + PANEL_B),
        SHARED = MMA_STAGES * STAGE
    };
};

/* The planes of an operand. */
struct mma_planes {
    const uint8_t *first;      /* [plane][rows][pitch] */
    int64_t rows, pitch, next; /* of all products of a batch; bytes from row to row, and from plane to plane */
};

/* --- Instructions --- */

/* Four times 8 rows of 16 bytes, whose addresses are those of lanes 0 to 7, 8 to 15, ...: a thread gets 4 bytes of
 * each, 4 (lane % 4) of row lane / 4. */
static __device__ __forceinline__ void load_rows(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

/* d += a b for 16 rows, 8 columns and 32 bytes of k. Lane l has of rows l / 4 and 8 more the columns l % 4 * 2 and the
 * next one. */
#define GM_MMA(type, constraint, instruction)                                                                     \
    static __device__ __forceinline__ void multiply(type(&d)[4], const uint32_t(&a)[4], uint32_t b0, uint32_t b1) \
    {                                                                                                             \
        asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"               \
                     : constraint(d[0]), constraint(d[1]), constraint(d[2]), constraint(d[3])                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                             \
    }

struct mma_f16 {
    typedef __half element;
    typedef float sum;
    GM_MMA(float, "+f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
};

struct mma_bf16 {
    typedef __nv_bfloat16 element;
    typedef float sum;
    GM_MMA(float, "+f", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
};

struct mma_tf32 {
    typedef float element;
    typedef float sum;
    GM_MMA(float, "+f", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
};

/* Integers of 8 bits, int8_t or uint8_t. */
template <class A, class B>
struct mma_int8;

#define GM_MMA_INT8(ctype_a, ctype_b, a, b)                                            \
    template <>                                                                        \
    struct mma_int8<ctype_a, ctype_b> {                                                \
        typedef uint8_t element;                                                       \
        typedef int32_t sum;                                                           \
        GM_MMA(int32_t, "+r", "mma.sync.aligned.m16n8k32.row.col.s32." a "." b ".s32") \
    };
GM_MMA_INT8(int8_t, int8_t, "s8", "s8")
GM_MMA_INT8(int8_t, uint8_t, "s8", "u8")
GM_MMA_INT8(uint8_t, int8_t, "u8", "s8")
GM_MMA_INT8(uint8_t, uint8_t, "u8", "u8")

/* --- Stages --- */

/* Where a chunk of a row lies in a plane of a stage: 8 rows have their chunks with one number in all banks. */
static __device__ __forceinline__ int mma_place(int row, int chunk)
{
    return row * MMA_ROW + (chunk ^ (row >> 1 & (MMA_CHUNKS - 1))) * 16;
}

/* Starts the copies of ROWS rows from `row` on of all planes, 64 bytes of k from byte k on. Rows that there are not are
 * zeros. */
template <int PLANES, int ROWS>
static __device__ __forceinline__ void copy_rows(const mma_planes &p, int64_t row, int64_t k, uint32_t to)
{
    enum { ALL = ROWS * MMA_CHUNKS };
    static_assert(ALL % MMA_THREADS == 0, "each thread copies as many chunks");
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
#pragma unroll
        for (int i = 0; i < ALL / MMA_THREADS; i++) {
            int at = i * MMA_THREADS + (int)threadIdx.x, down = at / MMA_CHUNKS, chunk = at % MMA_CHUNKS;
            bool there = row + down < p.rows;
            const uint8_t *from = p.first + plane * p.next + (there ? row + down : 0) * p.pitch + k + chunk * 16;
            copy16(to + plane * ROWS * MMA_ROW + mma_place(down, chunk), from, there ? 16 : 0);
        }
}

/* --- Sums --- */

/* The fragments of a warp for 32 bytes of k. */
template <class SHAPE>
struct mma_fragments {
    uint32_t a[SHAPE::PLANES][SHAPE::DOWN][4], b[SHAPE::PLANES][SHAPE::ACROSS / 2][4];

    /* a, b: where a stage has the operands; row, col: those of the warp in the tile. */
    __device__ __forceinline__ void load(uint32_t panel_a, uint32_t panel_b, int row, int col, int step)
    {
        int lane = (int)threadIdx.x % 32, chunk = step * MMA_STEP / 16;
#pragma unroll
        for (int plane = 0; plane < SHAPE::PLANES; plane++) {
#pragma unroll
            for (int i = 0; i < SHAPE::DOWN; i++)
                load_rows(a[plane][i],
                          panel_a + plane * SHAPE::PANEL_A + mma_place(row + i * 16 + lane % 16, chunk + lane / 16));
#pragma unroll
            for (int i = 0; i < SHAPE::ACROSS / 2; i++)
                load_rows(b[plane][i], panel_b + plane * SHAPE::PANEL_B +
                                           mma_place(col + i * 16 + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2));
        }
    }
};

template <class SHAPE, class SUM>
struct mma_sums {
    SUM v[SHAPE::DOWN][SHAPE::ACROSS * 4];

    __device__ __forceinline__ void clear(void)
    {
#pragma unroll
        for (int i = 0; i < SHAPE::DOWN * SHAPE::ACROSS * 4; i++)
            v[i / (SHAPE::ACROSS * 4)][i % (SHAPE::ACROSS * 4)] = 0;
    }

    __device__ __forceinline__ void add(const mma_sums &part, SUM factor)
    {
#pragma unroll
        for (int i = 0; i < SHAPE::DOWN; i++)
#pragma unroll
            for (int e = 0; e < SHAPE::ACROSS * 4; e++)
                v[i][e] += part.v[i][e] * factor;
    }

    /* The products of plane p of A and q of B. */
    template <class TYPE>
    __device__ __forceinline__ void multiply(const mma_fragments<SHAPE> &f, int p, int q)
    {
#pragma unroll
        for (int i = 0; i < SHAPE::DOWN; i++)
#pragma unroll
            for (int j = 0; j < SHAPE::ACROSS; j++)
                TYPE::multiply(*(SUM(*)[4])(v[i] + 4 * j), f.a[p][i], f.b[q][j / 2][j % 2 * 2],
                               f.b[q][j / 2][j % 2 * 2 + 1]);
    }
};

/* The sums of a leaf, by number of planes. add(): a fragment; flush(): after MMA_SUM_ROWS rows; end(). */
template <class TYPE, int PLANES>
struct mma_leaf;

template <class TYPE>
struct mma_leaf<TYPE, 1> {
    typedef mma_shape<1> shape;
    mma_sums<shape, typename TYPE::sum> sums;

    __device__ __forceinline__ void begin(void)
    {
        sums.clear();
    }
    __device__ __forceinline__ void add(const mma_fragments<shape> &f)
    {
        sums.template multiply<TYPE>(f, 0, 0);
    }
    __device__ __forceinline__ void flush(void)
    {
    }
    __device__ __forceinline__ void end(void)
    {
    }
};

template <class TYPE>
struct mma_leaf<TYPE, 2> {
    typedef mma_shape<2> shape;
    mma_sums<shape, float> sums, large, small;

    __device__ __forceinline__ void begin(void)
    {
        sums.clear();
        large.clear();
        small.clear();
    }
    __device__ __forceinline__ void add(const mma_fragments<shape> &f)
    {
        large.template multiply<TYPE>(f, 0, 0);
        small.template multiply<TYPE>(f, 0, 1);
        small.template multiply<TYPE>(f, 1, 0);
    }
    __device__ __forceinline__ void flush(void)
    {
        sums.add(large, 1);
        large.clear();
    }
    __device__ __forceinline__ void end(void)
    {
        sums.add(small, 0x1p-11f);
    }
};

/* The smallest terms first. */
template <class TYPE>
struct mma_leaf<TYPE, 3> {
    typedef mma_shape<3> shape;
    mma_sums<shape, float> sums, part;

    __device__ __forceinline__ void begin(void)
    {
        sums.clear();
        part.clear();
    }
    __device__ __forceinline__ void add(const mma_fragments<shape> &f)
    {
        part.template multiply<TYPE>(f, 0, 2);
        part.template multiply<TYPE>(f, 2, 0);
        part.template multiply<TYPE>(f, 1, 1);
        part.template multiply<TYPE>(f, 0, 1);
        part.template multiply<TYPE>(f, 1, 0);
        part.template multiply<TYPE>(f, 0, 0);
    }
    __device__ __forceinline__ void flush(void)
    {
        sums.add(part, 1);
        part.clear();
    }
    __device__ __forceinline__ void end(void)
    {
    }
};

/* --- The kernel --- */

template <class TYPE, int PLANES>
static __device__ __forceinline__ void multiply_tile(const mma_planes &a, const mma_planes &b, const plane_leaf &p,
                                                     int64_t row, int64_t col, uint32_t stages,
                                                     mma_leaf<TYPE, PLANES> &leaf)
{
    typedef mma_shape<PLANES> shape;
    int warp = (int)threadIdx.x / 32;
    int down = warp / shape::WARPS_N * shape::WARP_M, across = warp % shape::WARPS_N * shape::WARP_N;
    enum { ELEMENT = (int)sizeof(typename TYPE::element) };
    int64_t begin = (p.k + blockIdx.y * p.next_k) * ELEMENT;
    int steps = steps_of<MMA_ROW / ELEMENT>(p, (int)blockIdx.y);
    auto copy = [&](int step) {
        uint32_t to = stages + step % MMA_STAGES * shape::STAGE;
        if (step < steps) {
            copy_rows<PLANES, shape::TILE_M>(a, blockIdx.y * p.next_a + row, begin + (int64_t)step * MMA_ROW, to);
            copy_rows<PLANES, shape::TILE_N>(b, blockIdx.y * p.next_b + col, begin + (int64_t)step * MMA_ROW,
                                             to + PLANES * shape::PANEL_A);
        }
        copy_commit();
    };

    leaf.begin();
#pragma unroll
    for (int step = 0; step < MMA_STAGES - 1; step++)
        copy(step);
    for (int step = 0; step < steps; step++) {
        uint32_t panel_a = stages + step % MMA_STAGES * shape::STAGE, panel_b = panel_a + PLANES * shape::PANEL_A;
        copy_wait<MMA_STAGES - 2>(); /* and all warps are done with the stage before */
        copy(step + MMA_STAGES - 1);
#pragma unroll
        for (int i = 0; i < MMA_ROW / MMA_STEP; i++) {
            mma_fragments<shape> f;
            f.load(panel_a, panel_b, down, across, i);
            leaf.add(f);
        }
        if (step % MMA_SUM_ROWS == MMA_SUM_ROWS - 1 || step == steps - 1)
            leaf.flush();
    }
    leaf.end();
}

template <class TYPE, int PLANES>
static __global__ void __launch_bounds__(MMA_THREADS)
    multiply_planes(const __grid_constant__ mma_planes a, const __grid_constant__ mma_planes b,
                    const __grid_constant__ plane_leaf p)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef mma_shape<PLANES> shape;
    typedef typename TYPE::sum sum;
    extern __shared__ __align__(16) uint8_t shared[];
    units_of units = units_in<PLANES>(p);
    int64_t row, col;

    find_tile(blockIdx.x, p.m, p.n, shape::TILE_M, shape::TILE_N, &row, &col);
    if (!may_be_there(&units))
        return;
    units = units_at(units, blockIdx.y);
    if (!has_units(units, row, shape::TILE_M, col, shape::TILE_N))
        return;

    mma_leaf<TYPE, PLANES> leaf;
    multiply_tile<TYPE, PLANES>(a, b, p, row, col, shared_address(shared), leaf);

    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    row += warp / shape::WARPS_N * shape::WARP_M + lane / 4;
    col += warp % shape::WARPS_N * shape::WARP_N + lane % 4 * 2;
    int left = p.n - col < shape::WARP_N ? (int)(p.n - col) : shape::WARP_N;
    const int16_t *scale_a = scales_at(p.scale_a, (int)blockIdx.y, p.m, 0);
    const int16_t *scale_b = scales_at(p.scale_b, (int)blockIdx.y, p.n, col);
#pragma unroll
    for (int i = 0; i < shape::DOWN; i++, row += 16) {
        unsigned wanted = units_wanted(units, row, col, GM_SPLIT_GROUP);
        sum *c = sums_at<sum>(p, (int)blockIdx.y, row, col);
        if (row < p.m)
            fold_row<0, (PLANES > 1)>(c, left, p.accumulate, wanted, scale_b, scale_b ? scale_a[row] : 0,
                                      leaf.sums.v[i]);
        if (row + 8 < p.m)
            fold_row<1, (PLANES > 1)>(c + 8 * p.ld, left, p.accumulate, wanted, scale_b, scale_b ? scale_a[row + 8] : 0,
                                      leaf.sums.v[i]);
    }
#endif
}

#endif
