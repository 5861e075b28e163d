/* ladders.h - the ladders of the laboratory: the steps to a fast kernel. Pointers are to device memory.
 *
 *   reduce_ladder_cuda.cu           sums of squares
 *   transpose_ladder_cuda.cu        transpositions
 *   ladders_cpu.c                   both, by the processor
 *   matmul_ladder_cpu.c, _cuda.cu   products */
#ifndef GM_KERNELS_LAB_LADDER_LADDERS_H
#define GM_KERNELS_LAB_LADDER_LADDERS_H

#include "kernels/bench/measure.h"
#include "kernels/lab/lab_ops.h"

/* The steps to a fast sum of squares. A processor has the first and GM_REDUCE_LADDER_GRID, which is all its threads. */
typedef enum gm_reduce_ladder_stage {
    GM_REDUCE_LADDER_ONE,       /* one thread; the next ones: one sum of each thread */
    GM_REDUCE_LADDER_PARTS,     /* each thread a part of its own; the others take turns, element by element */
    GM_REDUCE_LADDER_GRID,      /* the next ones: one sum of each block, of */
    GM_REDUCE_LADDER_THREAD_0,  /* thread 0, out of shared memory */
    GM_REDUCE_LADDER_CONFLICTS, /* a tree whose threads hit the same banks */
    GM_REDUCE_LADDER_TREE,      /* a tree of neighbours */
    GM_REDUCE_LADDER_UNROLLED   /* a tree of shuffles without loops */
} gm_reduce_ladder_stage;

enum { GM_REDUCE_LADDER_THREADS = 256 };

/* out: the sums of squares of parts of src, together those of all. None exceeds 32 bits: the caller sees to that. */
struct gm_reduce_ladder_call {
    gm_reduce_ladder_stage stage;
    int blocks, threads; /* of a block: GM_REDUCE_LADDER_THREADS if the sums are those of blocks */
    int64_t count;
    const int32_t *src;
    uint32_t *out; /* [gm_reduce_ladder_sums()] */
};

/* The number of sums. */
static inline int gm_reduce_ladder_sums(const gm_reduce_ladder_call *call)
{
    return call->stage <= GM_REDUCE_LADDER_GRID ? call->blocks * call->threads : call->blocks;
}

/* The steps to a fast product. A processor has the first two. */
typedef enum gm_matmul_ladder_stage {
    GM_MATMUL_LADDER_PLAIN,       /* plain sums, out of global memory */
    GM_MATMUL_LADDER_COMPENSATED, /* compensated sums, as the next ones */
    GM_MATMUL_LADDER_ROW_SHARED,  /* a row of A in shared memory: k is GM_MATMUL_LADDER_ROW at most */
    GM_MATMUL_LADDER_TILES,       /* tiles of A and B in shared memory */
    GM_MATMUL_LADDER_WHOLE_TILES, /* no tests of bounds: m, n, k are multiples of GM_MATMUL_LADDER_SIDE */
    GM_MATMUL_LADDER_STAGES
} gm_matmul_ladder_stage;

enum { GM_MATMUL_LADDER_SIDE = 16, GM_MATMUL_LADDER_ROW = 8192 };

struct gm_matmul_ladder_call {
    gm_matmul_ladder_stage stage;
    gm_gemm_call gemm; /* F32 */
};

/* The steps to a fast transposition. A processor has the first. */
typedef enum gm_transpose_ladder_stage {
    GM_TRANSPOSE_LADDER_NAIVE, /* rows are read, columns written */
    GM_TRANSPOSE_LADDER_TILE,  /* through a tile [32][32] of shared memory: its columns are in one bank */
    GM_TRANSPOSE_LADDER_PADDED /* [32][33] */
} gm_transpose_ladder_stage;

enum { GM_TRANSPOSE_LADDER_SIDE = 32 };

struct gm_transpose_ladder_call {
    gm_transpose_ladder_stage stage;
    int64_t n; /* a multiple of GM_TRANSPOSE_LADDER_SIDE */
    const uint32_t *src;
    uint32_t *dst; /* [n][n], apart from src */
};

#endif
