/* leaf_cuda.cuh - leaves of a product of planes (split.h), and how their sums get to C. */
#ifndef GM_KERNELS_MATMUL_TENSOR_LEAF_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_LEAF_CUDA_CUH

#include "kernels/matmul/tensor/units_cuda.cuh"

/* Leaves of a product, or products of a batch, that are computed side by side. */
struct plane_leaf {
    int64_t m, n;
    int64_t k;     /* where the first one begins in the planes, elements */
    int64_t depth; /* of each, but the last one: multiples of the bytes that a kernel takes at a time */
    int64_t last_depth;
    int parts;
    int64_t next_k;         /* from part to part: elements of k, */
    int64_t next_a, next_b; /* rows of the planes, */
    int64_t next_acc;       /* and elements of acc */
    int accumulate;
    void *acc; /* [m][ld] */
    int64_t ld;
    const int16_t *scale_a, *scale_b; /* [parts][m], [parts][n]: exponents of 2 that sums are multiplied by; NULL: 0 */
    units_of units;
};

/* Steps of a kernel that takes K elements at a time. */
template <int K>
static __device__ __forceinline__ int steps_of(const plane_leaf &p, int part)
{
    return (int)(((part == p.parts - 1 ? p.last_depth : p.depth) + K - 1) / K);
}

/* Element (row, col) of the sums of a part. */
template <class SUM>
static __device__ __forceinline__ SUM *sums_at(const plane_leaf &p, int part, int64_t row, int64_t col)
{
    return (SUM *)p.acc + part * p.next_acc + row * p.ld + col;
}

/* The exponents of the rows, or columns, from `first` on of `all` of a part. */
static __device__ __forceinline__ const int16_t *scales_at(const int16_t *scale, int part, int64_t all, int64_t first)
{
    return scale ? scale + part * all + first : NULL;
}

/* Operands of one plane have no schemes: all units, as the compiler sees. */
template <int PLANES>
static __device__ __forceinline__ units_of units_in(const plane_leaf &p)
{
    units_of all = {};
    return PLANES > 1 ? p.units : all;
}

/* x 2^exponent, rounded once. Sums are multiples of 2^-50 or so, below 2^70: nothing is lost in the first step. */
static __device__ __forceinline__ float scale_sum(float x, int exponent)
{
    const int most = 252;
    int e = exponent < -most ? -most : exponent > most ? most : exponent, half = e / 2;
    return x * __int_as_float((half + 127) << 23) * __int_as_float((e - half + 127) << 23);
}

static __device__ __forceinline__ int32_t scale_sum(int32_t x, int)
{
    return x;
}

template <class SUM>
struct __align__(2 * sizeof(SUM)) sum_pair
{
    SUM v[2];
};

/* Folds one of a thread's two rows: pairs of columns from c on, 8 apart, of which `left` columns exist. SCALED: sums
 * are multiplied by powers of 2, and only units whose bit in `wanted` is set are folded. All loads of a unit come
 * before its stores. */
template <int DOWN, bool SCALED, class SUM, int SUMS>
static __device__ __forceinline__ void fold_row(SUM *c, int left, bool add, unsigned wanted, const int16_t *scale_b,
                                                int scale_a, const SUM (&sums)[SUMS])
{
    enum { PAIRS = SUMS / 4, OF_UNIT = PAIRS < GM_SPLIT_GROUP / 8 ? PAIRS : GM_SPLIT_GROUP / 8 };
    typedef sum_pair<SUM> pair;

#pragma unroll
    for (int first = 0; first < PAIRS; first += OF_UNIT) {
        pair x[OF_UNIT], old[OF_UNIT];
        bool wide = left > 8 * (first + OF_UNIT - 1) + 1 && (uintptr_t)c % sizeof(pair) == 0;
        if (8 * first >= left || (SCALED && !(wanted >> first / OF_UNIT & 1)))
            continue;
#pragma unroll
        for (int i = 0; i < 2 * OF_UNIT; i++) {
            int at = 8 * (first + i / 2) + i % 2;
            SUM sum = sums[4 * (first + i / 2) + DOWN * 2 + i % 2];
            x[i / 2].v[i % 2] = SCALED ? scale_sum(sum, scale_a + (at < left ? scale_b[at] : 0)) : sum;
        }
        if (add && wide)
#pragma unroll
            for (int i = 0; i < OF_UNIT; i++)
                old[i] = *(const pair *)(c + 8 * (first + i));
        else if (add)
#pragma unroll
            for (int i = 0; i < 2 * OF_UNIT; i++)
                if (8 * (first + i / 2) + i % 2 < left)
                    old[i / 2].v[i % 2] = c[8 * (first + i / 2) + i % 2];
        if (add)
#pragma unroll
            for (int i = 0; i < 2 * OF_UNIT; i++)
                x[i / 2].v[i % 2] = old[i / 2].v[i % 2] + x[i / 2].v[i % 2];
        if (wide)
#pragma unroll
            for (int i = 0; i < OF_UNIT; i++)
                *(pair *)(c + 8 * (first + i)) = x[i];
        else
#pragma unroll
            for (int i = 0; i < 2 * OF_UNIT; i++)
                if (8 * (first + i / 2) + i % 2 < left)
                    c[8 * (first + i / 2) + i % 2] = x[i / 2].v[i % 2];
    }
}

#endif
