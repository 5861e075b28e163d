/* parts_cuda.cuh - leaves that were computed side by side, folded in their order. */
#ifndef GM_KERNELS_MATMUL_PARTS_CUDA_CUH
#define GM_KERNELS_MATMUL_PARTS_CUDA_CUH

#include <cuda_runtime.h>

#include "base/types/float.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/launch_cuda.cuh"

enum { PARTS_COLS = 64, PARTS_ROWS = 4 }; /* of C, of a block */
static const int64_t PARTS_GRID = 16384;  /* blocks below each other at most */

/* Adds COUNT parts, in their order, all of which are loaded first. */
template <int COUNT, typename ACC>
static __device__ __forceinline__ void add_ahead(ACC *sum, const ACC **part, int64_t next)
{
    ACC ahead[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++, *part += next)
        ahead[i] = **part;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        *sum += ahead[i];
}

/* Counts the sums that float32 does not hold, as gm_product_call.rounded says; usually there are none. */
static __device__ __forceinline__ void count_overflow(gm_nonfinite *count, unsigned over)
{
    if (over == 0)
        return;
    atomicAdd((unsigned long long *)&count->overflow, (unsigned long long)over);
    atomicAdd((unsigned long long *)&count->inf, 0 - (unsigned long long)over);
}

/* acc = (accumulate ? acc : 0) + part_0 + part_1 + ..., each addition rounded: as a kernel folds leaf after leaf. With
 * another type of acc, that sum is rounded once more, and acc is not read. */
template <typename ACC, typename OUT>
static __global__ void __launch_bounds__(PARTS_COLS *PARTS_ROWS)
    add_parts(int64_t m, int64_t n, OUT *c, const ACC *parts, int64_t ld, int count, int accumulate,
              gm_nonfinite *rounded)
{
    unsigned over = 0;
    int64_t col = (int64_t)blockIdx.x * PARTS_COLS + threadIdx.x, next = m * ld;
    wait_for_kernel_ahead();
    if (col >= n)
        return;
    for (int64_t row = (int64_t)blockIdx.y * PARTS_ROWS + threadIdx.y; row < m;
         row += (int64_t)gridDim.y * PARTS_ROWS) {
        OUT *acc = c + row * ld + col;
        const ACC *part = parts + row * ld + col;
        ACC sum = sizeof(OUT) == sizeof(ACC) && accumulate ? (ACC)*acc + *part : *part;
        part += next;
        for (int left = count - 1; left >= 16; left -= 16)
            add_ahead<16>(&sum, &part, next);
        if ((count - 1) & 8)
            add_ahead<8>(&sum, &part, next);
        if ((count - 1) & 4)
            add_ahead<4>(&sum, &part, next);
        if ((count - 1) & 2)
            add_ahead<2>(&sum, &part, next);
        if ((count - 1) & 1)
            add_ahead<1>(&sum, &part, next);
        if constexpr (sizeof(OUT) == sizeof(ACC))
            *acc = sum;
        else
            over += gm_round_overflows(sum, acc);
    }
    if constexpr (sizeof(OUT) != sizeof(ACC))
        count_overflow(rounded, over);
}

template <typename ACC, typename OUT>
static cudaError_t launch_parts(cudaStream_t stream, const gm_product_call *call, int64_t count, int accumulate)
{
    int64_t down = divide_up(call->m, PARTS_ROWS);
    dim3 blocks((unsigned)divide_up(call->n, PARTS_COLS), (unsigned)(down < PARTS_GRID ? down : PARTS_GRID));
    return launch_early(add_parts<ACC, OUT>, blocks, dim3(PARTS_COLS, PARTS_ROWS), 0, stream, call->m, call->n,
                        (OUT *)call->acc, (const ACC *)call->parts, call->ldacc, (int)count, accumulate, call->rounded);
}

/* Folds the first `count` parts of a call into its acc. */
template <typename ACC>
static cudaError_t fold_parts(cudaStream_t stream, const gm_product_call *call, int64_t count, int accumulate)
{
    if constexpr (sizeof(ACC) == sizeof(double))
        if (call->rounded)
            return launch_parts<ACC, float>(stream, call, count, 0);
    return launch_parts<ACC, ACC>(stream, call, count, accumulate);
}

#endif
