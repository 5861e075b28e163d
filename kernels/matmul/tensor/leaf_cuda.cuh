/* leaf_cuda.cuh - a leaf of a product of planes (split.h), and how its sums get to C. */
#ifndef GM_KERNELS_MATMUL_TENSOR_LEAF_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_LEAF_CUDA_CUH

#include "kernels/matmul/tensor/units_cuda.cuh"

/* A leaf of a product. */
struct plane_leaf {
    int64_t m, n;
    int64_t k; /* where it begins in the planes, elements */
    int steps; /* of k, as many bytes each as the kernel takes at a time */
    void *acc; /* [m][ld] */
    int64_t ld;
    int accumulate;
    const int16_t *scale_a, *scale_b; /* [m], [n]: exponents of 2 that sums are multiplied by; NULL: 0 */
    units_of units;
};

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

/* Folds one of a thread's two rows: pairs of columns from c on, 8 apart, of which `left` columns exist; of units whose
 * bit in `wanted` is set. */
template <int DOWN, class SUM, int SUMS>
static __device__ __forceinline__ void fold_row(SUM *c, int left, bool add, unsigned wanted, const int16_t *scale_b,
                                                int scale_a, const SUM (&sums)[SUMS])
{
    enum { PAIRS = SUMS / 4, OF_UNIT = PAIRS < GM_SPLIT_GROUP / 8 ? PAIRS : GM_SPLIT_GROUP / 8 };
    typedef sum_pair<SUM> pair;
    bool wide = left > 8 * (PAIRS - 1) + 1 && (uintptr_t)c % sizeof(pair) == 0;

#pragma unroll
    for (int first = 0; first < PAIRS; first += OF_UNIT) {
        pair old[OF_UNIT];
        if (!(wanted >> first / OF_UNIT & 1))
            continue;
        if (add && wide)
#pragma unroll
            for (int i = 0; i < OF_UNIT; i++)
                old[i] = *(const pair *)(c + 8 * (first + i));
#pragma unroll
        for (int i = 0; i < OF_UNIT; i++) {
            pair x;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int at = 8 * (first + i) + e;
                x.v[e] = sums[4 * (first + i) + DOWN * 2 + e];
                if (scale_b)
                    x.v[e] = scale_sum(x.v[e], scale_a + (at < left ? scale_b[at] : 0));
                if (add && wide)
                    x.v[e] = old[i].v[e] + x.v[e];
                if (!wide && at < left)
                    c[at] = add ? c[at] + x.v[e] : x.v[e];
            }
            if (wide)
                *(pair *)(c + 8 * (first + i)) = x;
        }
    }
}

#endif
