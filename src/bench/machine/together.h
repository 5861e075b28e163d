/* together.h - work that all ranks do together, for the tests of messages between ranks, by the clock of rank 0. All
 * ranks make each repetition, and agree on what comes next after a few of them: rank 0 decides. A rank that has failed,
 * as `status` says, makes them all the same, without data, until then. */
#ifndef GM_SRC_BENCH_MACHINE_TOGETHER_H
#define GM_SRC_BENCH_MACHINE_TOGETHER_H

#include "src/bench/bench.h"

/* One repetition. Returns the status with what has failed here. */
typedef int gm_together(const void *context, int status);

/* Repeats until rank 0's times are steady. Collective. */
int gm_together_time_all(gm_bench *bench, gm_together *run, const void *context, gm_bench_timing *timing);

/* Are bytes [at, at + bytes) of a rank's random data (gm_bench_fill() of U64 words by this key) in `memory`? */
uint64_t gm_together_key(int rank);
int gm_together_is_right(const gm_bench *bench, int rank, int64_t at, int64_t bytes, const char *memory);

/* Is there only one rank? Then a note says so. */
int gm_together_is_lonely(const gm_bench *bench);

#endif
