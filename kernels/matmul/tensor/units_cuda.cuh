/* units_cuda.cuh - which units of C a kernel makes: those of one scheme (split.h). */
#ifndef GM_KERNELS_MATMUL_TENSOR_UNITS_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_UNITS_CUDA_CUH

#include <cuda_runtime.h>

#include <stdint.h>

#include "kernels/matmul/calls.h"
#include "kernels/matmul/tensor/split.h"

/* The schemes of leaves, device memory. a == NULL: all units are wanted. */
struct units_of {
    const uint8_t *a, *b;              /* [leaves][groups] of each operand */
    const uint32_t *count_a, *count_b; /* [leaves][GM_SCHEMES]: groups of each scheme */
    const uint32_t *all_a, *all_b;     /* [GM_SCHEMES]: in all leaves of the panels, these among them */
    int64_t groups_a, groups_b;
    int leaves;
    int wanted; /* scheme */
};

/* Those of one of the leaves. */
static __device__ __forceinline__ units_of units_at(units_of u, int64_t leaf)
{
    if (u.a != NULL) {
        u.a += leaf * u.groups_a;
        u.b += leaf * u.groups_b;
        u.count_a += leaf * GM_SCHEMES;
        u.count_b += leaf * GM_SCHEMES;
    }
    return u;
}

/* Number of units of a scheme in the first leaf. */
static __device__ __forceinline__ uint64_t count_units(const units_of &u, int scheme)
{
    uint64_t up_to = 0, before = 0, a = 0, b = 0;
    for (int s = 0; s <= scheme; s++) {
        before = up_to;
        a += u.count_a[s];
        b += u.count_b[s];
        up_to = a * b;
    }
    return up_to - before;
}

/* May there be units to be made? If all are, the kernel need not look at each of them. Few loads, which are the same
 * for all threads: a branch that the compiler takes for a divergent one would cost the kernels their uniform registers.
 */
static __device__ __forceinline__ bool may_be_there(units_of *u)
{
    uint32_t wanted = 0, others = 0;
    if (u->a == NULL)
        return true;
#pragma unroll
    for (int s = 0; s < GM_SCHEMES; s++)
        (s == u->wanted ? wanted : others) |= u->all_a[s] | u->all_b[s];
    if (others == 0)
        u->a = NULL;
    return wanted != 0;
}

/* Bits of the units of the first leaf to the right of (row, col) in `cols` columns. */
static __device__ __forceinline__ unsigned units_wanted(const units_of &u, int64_t row, int64_t col, int cols)
{
    unsigned bits = 0;
    if (u.a == NULL)
        return ~0u;
    int64_t i = row / GM_SPLIT_GROUP, j = col / GM_SPLIT_GROUP;
    for (int at = 0; i < u.groups_a && at < cols / GM_SPLIT_GROUP && j + at < u.groups_b; at++)
        bits |= (unsigned)(max((int)u.a[i], (int)u.b[j + at]) == u.wanted) << at;
    return bits;
}

/* Has the first leaf units in a rectangle? */
static __device__ __forceinline__ bool has_units(const units_of &u, int64_t row, int rows, int64_t col, int cols)
{
    for (int down = 0; down < rows; down += GM_SPLIT_GROUP)
        if (units_wanted(u, row + down, col, cols))
            return true;
    return false;
}

/* A product in float32 of leaves from `first` on, side by side, of some units (matmul_cuda_fp32.cu): one leaf to acc,
 * more to the parts. */
int multiply_units_fp32(cudaStream_t stream, const gm_product_call *call, int64_t first, int64_t count,
                        const units_of *units);

#endif
