/* calls.h - the device operations that move elements: the arguments of a call. base/device_ops.def lists them.
 *
 *   flip_cpu.c, flip_cuda.cu             rows in the opposite order
 *   transpose_cpu.c, transpose_cuda.cu   two axes swapped */
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

#ifdef __cplusplus
}
#endif
#endif
