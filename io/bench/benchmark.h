/* benchmark.h - times strategies of reading a file and of writing new ones. Not collective.
 *
 * A read benchmark reads a dataset in pieces, each into a buffer of the caller. H5Dread and the program's reader read
 * its elements; the raw strategies (pread, mmap and O_DIRECT) read the bytes of contiguous data, or all bytes of the
 * file of chunked data. */
#ifndef GM_IO_BENCH_BENCHMARK_H
#define GM_IO_BENCH_BENCHMARK_H

#include "io/dataset.h"
#include "io/write/benchmark.h"

typedef enum gm_read_strategy {
    GM_READ_MEMORY, /* memcpy from host memory, without a file: the limit of the others */
    GM_READ_PREAD,
    GM_READ_MMAP,
    GM_READ_DIRECT, /* O_DIRECT: bypasses the page cache */
    GM_READ_HDF5,   /* H5Dread by one thread */
    GM_READ_READER, /* the program's own (io/read/reader.h) */
    GM_READ_STRATEGIES
} gm_read_strategy;

const char *gm_read_strategy_name(gm_read_strategy strategy);

typedef struct gm_read_benchmark gm_read_benchmark;

/* Prepares to read up to `bytes` bytes in pieces of up to `piece` bytes; piece is a multiple of 4096 and holds at least
 * one element. *benchmark is NULL with GM_OK if the dataset or the file system does not allow the strategy.
 * GM_READ_MEMORY allocates its source, up to 256 MiB charged to GM_HOST. */
int gm_read_benchmark_open(const gm_dataset *dataset, gm_read_strategy strategy, int64_t bytes, int64_t piece,
                           gm_read_benchmark **benchmark);
void gm_read_benchmark_close(gm_read_benchmark *benchmark); /* takes NULL */

/* Keeps share number `index` of `of` shares of the pieces, which may be empty: several processes read a file together.
 */
void gm_read_benchmark_cut(gm_read_benchmark *benchmark, int index, int of);

/* Bytes of the pieces that are kept, their number, and bytes of one of them. */
int64_t gm_read_benchmark_bytes(const gm_read_benchmark *benchmark);
int64_t gm_read_benchmark_pieces(const gm_read_benchmark *benchmark);
int64_t gm_read_benchmark_piece_bytes(const gm_read_benchmark *benchmark, int64_t index);

/* Reads one piece to dst, which is page-aligned and holds a piece. Thread-safe. Not for GM_READ_MMAP. */
int gm_read_benchmark_read(gm_read_benchmark *benchmark, int64_t index, void *dst);

/* Reads these pieces by `threads` threads, thread t to slots + t * piece; no read begins later than `limit` seconds
 * after the start. *bytes: the bytes read in *seconds. */
int gm_read_benchmark_run(gm_read_benchmark *benchmark, int threads, char *slots, double limit, int64_t *bytes,
                          double *seconds);

/* Evicts a dataset's file from the page cache, as far as the system allows. Returns 1 if most of the file is evicted,
 * else 0. */
int gm_read_benchmark_evict(const gm_dataset *dataset);

#endif
