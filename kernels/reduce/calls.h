/* calls.h - the device operations of a reduction: what a call takes. The order of sums is that of base/statistics.h.
 *
 *   reduce_cpu.c, reduce_loops.h                        leaves of contiguous segments
 *   reduce_cuda.cuh, _float.cu, _whole.cu               and reduce_float_cuda.cuh, reduce_whole_cuda.cuh
 *   reduce_columns_cpu.c, reduce_columns_loops.h        columns
 *   reduce_columns_cuda.cuh, _float.cu, _whole.cu */
#ifndef GM_KERNELS_REDUCE_CALLS_H
#define GM_KERNELS_REDUCE_CALLS_H

#include "base/types/dtype.h"
#include "base/statistics.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Leaves of contiguous segments (base/statistics.h), one record each. Leaf i of the call is leaf `first + i` of the
 * whole: with per = ceil(segment / gm_leaf_length(type)), leaf (first + i) % per of segment (first + i) / per. */
typedef struct gm_reduce_rows_call {
    const void *src; /* device memory: the elements of these leaves, one after the other, in file bytes; aligned as an
                        element only */
    gm_dtype type;
    int swap;
    int64_t first, leaves;
    int64_t segment; /* elements of a segment; the last leaf of each is the shorter one */
    unsigned want;
    gm_moments *out; /* [leaves], device memory */
} gm_reduce_rows_call;

/* Rows [row0, row0 + rows) of n, of cols columns: each column is walked on from its open record, in the order of the
 * rows. A leaf (GM_LEAF_COLUMN rows, by row number) that ends here folds into the column's total, and its record is
 * cleared: the bits are the same however the rows are cut into calls. */
typedef struct gm_reduce_columns_call {
    int64_t rows, cols, row0;
    const void *src; /* [rows][cols] file bytes, aligned as an element only */
    size_t pitch;    /* bytes from row to row; a multiple of an element */
    gm_dtype type;
    int swap;
    unsigned want;
    int begin;           /* the first call of these columns: open and total are initialized, not read */
    int end;             /* the last call: the open leaf is closed as well */
    gm_moments *open;    /* [cols], device memory, as the next two */
    gm_total *total;     /* [cols] */
    gm_moments *scratch; /* [scratch_count] for partial leaves, where few columns of many rows leave the device idle;
                            may be NULL */
    int64_t scratch_count;
} gm_reduce_columns_call;

#ifdef __cplusplus
}
#endif
#endif
