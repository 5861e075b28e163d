/* calls.h - the device operations that move elements: the arguments of a call. base/device_ops.def lists them.
 *
 *   flip_cpu.c, flip_cuda.cu               rows in the opposite order
 *   transpose_cpu.c, transpose_cuda.cu     two axes swapped; transpose_cuda.cuh: the elements of a tile
 *   index_rows_cpu.c, index_rows_cuda.cu   indices of any integer type as numbers of rows
 *   gather_cpu.c, gather_cuda.cu           rows by their numbers */
#ifndef GM_KERNELS_MOVE_CALLS_H
#define GM_KERNELS_MOVE_CALLS_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dst[o][r][i] = src[o][rows - 1 - r][i], for elements of the given bytes (1, 2, 4 or 8), which are not looked at. */
struct gm_flip_call {
    int64_t outer, rows, inner;
    int64_t bytes;
    const void *src; /* [outer][rows][inner], device memory, aligned to an element */
    void *dst;       /* the same, apart from src */
};

/* dst[o][b][m][a][i] = src[o][a][m][b][i], for elements of the given bytes (1, 2, 4 or 8), which are not looked at. */
struct gm_transpose_call {
    int64_t outer, first, middle, second, inner; /* extents of o, a, m, b, i */
    int64_t bytes;
    const void *src; /* [outer][first][middle][second][inner], device memory, aligned to an element */
    void *dst;       /* [outer][second][middle][first][inner], apart from src */
};

/* The same with extents that describe it best: rows that both sides keep together are inner, an axis of extent 1 is not
 * one that is swapped, inner elements are one where their bytes are 2, 4 or 8 and both sides are aligned to them. */
gm_transpose_call gm_transpose_simplified(const gm_transpose_call *call);

/* rows[i] = index[i], or rows[i] * extent + index[i] if rows has the numbers of a dimension before this one. An index
 * below 0, or not below extent, makes rows[i] -1 and lowers *bad to first + i if it is higher; a row that is -1 stays
 * so. */
struct gm_index_rows_call {
    int64_t count, extent, first;
    int adds;      /* rows has numbers */
    gm_dtype type; /* of index: integers, in the other order of bytes with swap */
    int swap;
    const void *index; /* [count], device memory, aligned to an element */
    int64_t *rows;     /* [count] */
    int64_t *bad;      /* one word, device memory */
};

/* to[place[k]] = from[index[k]], k < count, for rows of some bytes that are not looked at. Nothing is done where
 * index[k] is below 0 or not below `rows`. No two rows go to one place; from and to lie apart. */
struct gm_gather_call {
    int64_t count, rows, bytes;
    const int64_t *index;         /* [count], device memory */
    const int64_t *place;         /* the same; NULL: place[k] is k */
    const void *from;             /* [rows], from_pitch bytes apart, device memory */
    void *to;                     /* to_pitch bytes apart */
    int64_t from_pitch, to_pitch; /* bytes or more */
};

#ifdef __cplusplus
}
#endif
#endif
