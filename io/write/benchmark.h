/* benchmark.h - the rate of a write strategy, measured on new files. For the choice of a strategy and for bench; called
 * by one rank. */
#ifndef GM_IO_WRITE_BENCHMARK_H
#define GM_IO_WRITE_BENCHMARK_H

#include "io/write/output.h"

/* A strategy of writing new files, and how much to write. */
typedef struct gm_write_benchmark {
    gm_write_strategy strategy;
    int files, threads; /* files: parts, GM_WRITE_PLAIN only; threads: at most GM_WRITE_BENCHMARK_THREADS */
    int64_t blocks;     /* in all */
    size_t block_bytes; /* a multiple of 4096 */
    const char *data;   /* page-aligned; thread t writes the block at data + t * stride again and again */
    size_t stride;
    double limit; /* seconds after which no block is begun */
    int sync;     /* include the flush to the disk */
    int overlap;  /* space is allocated while it is written: the longer of the two times counts, not both */
} gm_write_benchmark;

enum { GM_WRITE_BENCHMARK_THREADS = 64 };

/* Writes new files in the folder of `file`, which are removed. Returns byte/s; 0, without a message, when the strategy
 * is not possible there or fails. */
double gm_write_benchmark_run(const char *file, const gm_write_benchmark *benchmark);

#endif
