/* launch.h - the launchers and CPU functions that fill the tables of kernels/bench/measure.h. They return as those of
 * kernels/kernels.h do.
 *
 *   measure_cpu.c, measure_cuda.c     the tables
 *   clock_cuda.cu                     hold and flush
 *   copy_cuda.cu                      copy and read
 *   reference_cpu.c                   the reference of products
 *   rival_cuda.c, rival_cub_cuda.cu   cuBLAS and CUB
 *   round_cuda.cu                     data rounded to the operands of cuBLAS */
#ifndef GM_KERNELS_BENCH_LAUNCH_H
#define GM_KERNELS_BENCH_LAUNCH_H

#include "kernels/bench/measure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A gate is pinned memory. The kernel of hold number `hold` ends when `released` reaches that number, or after the
 * given seconds; then it stores its number in `expired`. */
typedef struct gm_cuda_gate {
    unsigned released, expired;
} gm_cuda_gate;
int gm_cuda_hold(gm_cuda_stream stream, gm_cuda_gate *gate, unsigned hold, int seconds);
int gm_cuda_flush(gm_cuda_stream stream, const void *buffer, size_t bytes);
int gm_cuda_copy(gm_cuda_stream stream, void *dst, const void *src, size_t bytes);  /* both at multiples of 16 */
int gm_cuda_read(gm_cuda_stream stream, const void *src, size_t bytes, void *sink); /* likewise */
/* cudaErrorNotSupported for a type without an implementation */
int gm_cuda_rival_reduce(gm_cuda_stream stream, const gm_rival_reduce_call *call);
size_t gm_cuda_rival_reduce_room(gm_dtype type, int64_t n);
const char *gm_cuda_rival_reduce_name(void);
/* cudaErrorNotSupported for a precision whose operands are those of the data */
int gm_cuda_rival_round(gm_cuda_stream stream, const gm_rival_round_call *call);

#ifdef __cplusplus
}
#endif
#endif
