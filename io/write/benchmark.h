/* benchmark.h - the rate of a write strategy, measured on new files. For the choice of a strategy and for bench. */
#ifndef GM_IO_WRITE_BENCHMARK_H
#define GM_IO_WRITE_BENCHMARK_H

#include "io/write/output.h"

/* A strategy of writing new files, and how much to write. */
typedef struct gm_write_benchmark {
    gm_write_strategy strategy;
    int files, threads;  /* files: parts, GM_WRITE_PLAIN only */
    int64_t blocks;      /* in all, of this process */
    int64_t before, all; /* of a file that several processes write: blocks before those of this one, and of all; else 0
                          */
    size_t block_bytes;  /* a multiple of 4096 */
    const char *data;    /* page-aligned; thread t writes the block at data + t * stride again and again */
    size_t stride;
    double limit; /* seconds after which no block but the first is begun */
    int sync;     /* include the flush to the disk */
    int overlap;  /* space is allocated while it is written: the longer of the two times counts, not both */
} gm_write_benchmark;

/* Writes new files in the folder of `file`, which are removed. Returns byte/s; 0, without a message, when the strategy
 * is not possible there or fails. */
double gm_write_benchmark_run(const char *file, const gm_write_benchmark *benchmark);

/* The same in steps, for processes that write at the same time. `shared`: the name of another process's file, which
 * this one writes too; NULL: new files, whose space is allocated. nameless: as of gm_new_file_create(). NULL, without a
 * message, when the strategy is not possible there or fails. */
typedef struct gm_write_run gm_write_run;
gm_write_run *gm_write_run_open(const char *file, const gm_write_benchmark *benchmark, const char *shared,
                                int nameless);
void gm_write_run_close(gm_write_run *run); /* takes NULL */

/* The name of the first file, by which other processes open it, until hide() takes all names away, if there are any. */
const char *gm_write_run_name(const gm_write_run *run);
void gm_write_run_hide(gm_write_run *run);

/* Writes the blocks. Returns the bytes written; 0 after a failure, without a message. *allocated: seconds that the
 * allocation of that space took when the files were made. */
int64_t gm_write_run_write(gm_write_run *run, double *allocated);

/* Reads what it has written for the first time, thread t to room + t * stride, until the limit. Returns the bytes read;
 * 0 after a failure, without a message. */
int64_t gm_write_run_read(gm_write_run *run, char *room);

#endif
