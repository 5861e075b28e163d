/* file.h - the parts of the test file of bench: transfers (file.c), reading (file_read.c), writing (file_write.c). All
 * ranks read and write at once, each its share; the rates are of all together, and known to rank 0. */
#ifndef GM_SRC_BENCH_FILE_FILE_H
#define GM_SRC_BENCH_FILE_FILE_H

#include "io/describe/describe.h"
#include "src/bench/team.h"

enum { GM_FILE_TEST_COUNTS = 12, GM_FILE_TEST_PAGE = 4096, GM_FILE_TEST_MORE_SLOTS = 3 };

typedef struct gm_file_test {
    gm_bench *bench;
    gm_dataset dataset;
    char output[GM_PATH_MAX];                /* new files are made beside this name */
    int named;                               /* do files that ranks share need names? */
    int64_t read_bytes, write_bytes;         /* to be read and to be written in one repetition, by all ranks */
    int64_t piece;                           /* bytes of a read or write call, a multiple of the page size */
    double limit_s;                          /* no call begins later in a repetition */
    int counts, count[GM_FILE_TEST_COUNTS];  /* numbers of threads of a rank: 1, 2, 4, ... all */
    char *slots;                             /* [all][piece] pinned, random bits */
    void *staging;                           /* [piece] device memory; NULL on a device that addresses host memory */
    double memory_rate[GM_FILE_TEST_COUNTS]; /* byte/s of memcpy by count[i] threads of each; 0: not measured */
    double to_device_rate;                   /* byte/s of copies of a piece to the device; 0: not measured */
    double read_rival[GM_CACHE_STATES];      /* byte/s of H5Dread */
    double write_rival[GM_CACHE_STATES];     /* byte/s of pwrite by one thread */
} gm_file_test;

typedef struct gm_file_row {
    const char *kind, *strategy;
    int threads;
    gm_cache_state cache;
    int64_t bytes;        /* of all ranks */
    double limit, rival;  /* byte/s; 0: none */
    const char *limit_of; /* name of what reached the limit */
} gm_file_row;

/* Repeats a measurement by all ranks and adds its row. A repetition that ends early counts with its rate. *rate:
 * byte/s, on rank 0; unchanged, without a row, if the measurement is not possible. Collective, as all that follow. */
int gm_file_test_add(const gm_file_test *test, const gm_file_row *row, const gm_team_work *work, double *rate);

/* memcpy by each number of threads: the limit of the reads and writes that follow. */
int gm_file_test_memory(gm_file_test *test);

/* Brings the bytes to be read into the page cache; reduces them if that takes too long. */
int gm_file_test_warm_up(gm_file_test *test);

/* H5Dread, then each strategy by one thread and by all, and pread by each number of threads. */
int gm_file_test_reads(gm_file_test *test, gm_cache_state cache);

/* Each strategy by one thread and by all: one file of all ranks, then a file for each rank, and for each thread. Cold:
 * includes the flush to the disk. */
int gm_file_test_writes(gm_file_test *test, gm_cache_state cache);

/* pread of a new file that all ranks have just written, by one thread and by all: the first reading of its pages. */
int gm_file_test_first_reads(gm_file_test *test);

#endif
