/* calls.h - the device operations that move elements: the arguments of a call. base/device_ops.def lists them.
 *
 *   flip_cpu.c, flip_cuda.cu   rows in the opposite order */
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

#ifdef __cplusplus
}
#endif
#endif
