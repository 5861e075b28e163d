/* units_cuda.cuh - which units of C a kernel makes: those of one scheme (split.h). */
#ifndef GM_KERNELS_MATMUL_TENSOR_UNITS_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_UNITS_CUDA_CUH

#include <cuda_runtime.h>

#include <stdint.h>

#include "kernels/matmul/calls.h"
#include "kernels/matmul/tensor/split.h"

/* The schemes of a leaf, device memory. a == NULL: all units are wanted. */
struct units_of {
    const uint8_t *a, *b;              /* [groups] of each operand */
    const uint32_t *count_a, *count_b; /* [GM_SCHEMES]: groups of each scheme */
    int64_t groups_a, groups_b;
    int wanted; /* scheme */
};

/* Number of units of a scheme. */
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

/* Are there units to be made? If all are, the kernel need not look at each of them. */
static __device__ __forceinline__ bool are_there(units_of *u)
{
    if (u->a == NULL)
        return true;
    uint64_t count = count_units(*u, u->wanted);
    if (count == (uint64_t)u->groups_a * (uint64_t)u->groups_b)
        u->a = NULL;
    return count > 0;
}

/* Bits of the units to the right of (row, col) in `cols` columns. */
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

/* Are there units in a rectangle? */
static __device__ __forceinline__ bool has_units(const units_of &u, int64_t row, int rows, int64_t col, int cols)
{
    for (int down = 0; down < rows; down += GM_SPLIT_GROUP)
        if (units_wanted(u, row + down, col, cols))
            return true;
    return false;
}

/* A product in float32 of a leaf, of some units (matmul_cuda_fp32.cu). */
int multiply_units_fp32(cudaStream_t stream, const gm_product_call *call, const units_of *units);

#endif
