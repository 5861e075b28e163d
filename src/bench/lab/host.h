/* host.h - large buffers of host memory, for the tests of transfers: filled and compared by all threads. */
#ifndef GM_SRC_BENCH_LAB_HOST_H
#define GM_SRC_BENCH_LAB_HOST_H

#include "src/bench/bench.h"

/* dst: [bytes], a multiple of 8 = random bits, the same in every call. */
void gm_lab_randomize(const gm_bench *bench, void *dst, int64_t bytes);

/* Are [bytes] of a and b equal? */
int gm_lab_is_equal(const gm_bench *bench, const void *a, const void *b, int64_t bytes);

/* Bytes of host memory that may still be allocated. */
int64_t gm_lab_host_room(const gm_bench *bench);

#endif
