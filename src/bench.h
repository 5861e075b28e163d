/* bench.h - the harness of the tests of bench: a clock, data, and a table of results. One rank measures; nothing here is collective.
 *
 *   op_bench.c      which tests, on which rank
 *   bench_clock.c   start and end of a laboratory; times, repeated until they are steady
 *   bench_data.c    random matrices, and how far a product is from the right one
 *   bench_sizes.c   sizes in bytes
 *   bench_table.c   rows of results: as a table, as JSON, as CSV
 *   bench_NAME.c    a test
 */
#ifndef GM_SRC_BENCH_H
#define GM_SRC_BENCH_H

#include "base/measure.h"
#include "src/job.h"

enum { GM_BENCH_SUBJECTS = 8, GM_BENCH_TEXT = 48, GM_BENCH_STAGING = 64 << 20, GM_BENCH_SIZES = 16 };

/* What the caches hold when a repetition starts: the same data as before, or nothing. */
typedef enum gm_heat { GM_WARM, GM_COLD } gm_heat;

/* What is timed. run puts one call of it into the queue and waits for nothing. */
typedef struct gm_subject {
    int (*run)(void *context, gm_queue *queue);
    void *context;
} gm_subject;

typedef struct gm_timing {
    double median;   /* seconds of one call */
    double spread;   /* distance of the quartiles over the median */
    int repetitions; /* made; median and spread are of the later half of them, five at least */
    int calls;       /* in one repetition */
    int held;        /* 1: launched before they started, 0: the cost of launching is in the figure */
} gm_timing;

/* How a rate is written. */
typedef struct gm_unit {
    const char *name;
    double scale;
} gm_unit;
extern const gm_unit gm_unit_flops, gm_unit_bytes; /* Tflop/s, GB/s */

/* What the texts say that the program began with; 0: nothing. In base units. */
typedef struct gm_old_figure {
    double rate, max_error, mean_error;
} gm_old_figure;

typedef struct gm_bench_row {
    const char *test;
    char variant[GM_BENCH_TEXT]; /* "fp32", "cuBLAS 13.0.2 fp32" */
    char kernel[GM_BENCH_TEXT];
    char shape[GM_BENCH_TEXT];
    gm_heat heat;
    gm_timing timing;
    double work;        /* flop or bytes of one call */
    gm_unit unit;
    double limit;       /* work per second: computed from clock and width, or of a read in the same run (reduce); 0: unknown, or none that holds for it */
    double rival;       /* work per second of what a user would call, in the same run; 0: this row is that, or there is none */
    double max_error, mean_error; /* relative; -1: not a number of this test */
    int64_t leaf, tile; /* of a product of ours; 0: none */
    int threads;        /* of the processor, that moved the bytes; 0: not a number of this test */
    gm_old_figure old;
} gm_bench_row;

typedef struct gm_bench {
    gm_job *job;
    const char *file;    /* of `bench file FILE`: the word behind the test's name */
    const gm_device_ops *ops;
    const gm_measure_ops *measure;
    gm_device *device;
    gm_queue *queue;
    gm_event **events;   /* pairs of start and end */
    double *seconds;     /* [GM_BENCH_SUBJECTS][repetitions] */
    int64_t cache_bytes; /* what may be cached of the device's memory */
    void *flush;         /* device memory, zeros */
    size_t flush_bytes;
    void *staging;       /* [GM_BENCH_STAGING] pinned; NULL on a device that addresses host memory */
    gm_bench_row *rows;
    int row_count, row_room;
} gm_bench;

/* A test. GM_ECHECK when a result was wrong. */
typedef int gm_bench_test(gm_bench *bench);
#define GM_BENCH(name, function, experiments, help) gm_bench_test function;
#include "src/benches.def"
#undef GM_BENCH

/* Opens the laboratory on the device of the job; the caller closes it, also after a failure. */
int gm_bench_open(gm_job *job, gm_bench *bench);
void gm_bench_close(gm_bench *bench);

/* Times up to GM_BENCH_SUBJECTS subjects, in turn, after one call of each that is not timed. GM_ESTOPPED after a signal. */
int gm_bench_time(gm_bench *bench, const gm_subject *subjects, int count, gm_heat heat, gm_timing *timings);

/* --shapes as up to GM_BENCH_SIZES sizes in bytes, multiples of unit and at least that. GM_EUSAGE. */
int gm_bench_parse_sizes(const gm_bench *bench, const char *test, int64_t unit, int64_t *sizes, int *count);

/* A size at which the memory shows: 4 GiB on a GPU, 64 MiB on a processor, or less where two of it would not fit; unit times a power of two. */
int64_t gm_bench_large(const gm_bench *bench, int64_t unit);

/* Bytes that may still be allocated on the device. */
int64_t gm_bench_room(const gm_bench *bench);

/* --- Data --- */

/* dst: [rows][ld] on the device = uniform random numbers in [0, 1), or random bits in integers: element i of the dataset `key` in row-major order. */
int gm_bench_fill(gm_bench *bench, void *dst, gm_dtype type, int64_t rows, int64_t cols, int64_t ld, uint64_t key);

/* bytes from host memory of any kind to the device, and back; both wait until they are there. */
int gm_bench_upload(gm_bench *bench, void *dst, const void *src, size_t bytes);
int gm_bench_download(gm_bench *bench, void *dst, const void *src, size_t bytes);

/* Which elements of C = A B are looked at, and their right values. A and B are random matrices (gm_bench_fill) of these keys. */
typedef struct gm_sample {
    int64_t m, n, k, rows, cols;
    int64_t *row, *col; /* [rows], [cols]: ascending */
    double *exact;      /* [rows][cols] */
} gm_sample;

/* All elements up to 1024 x 1024; of a larger C every element that lies in a sampled row and a sampled column, one row and one column of each
 * of 64 equal parts. The caller frees it, also after a failure. */
int gm_sample_make(gm_bench *bench, gm_dtype type, int64_t m, int64_t n, int64_t k, uint64_t key_a, uint64_t key_b, gm_sample *sample);
void gm_sample_free(gm_sample *sample);

/* c: [m][ld] on the device, F32 or F64. Errors relative to |A| |B|, which is C itself: no element is negative. */
int gm_sample_compare(gm_bench *bench, const gm_sample *sample, const void *c, gm_dtype type, int64_t ld, double *max_error, double *mean_error);

/* --- Results --- */

/* Adds a row and prints it on standard output. */
int gm_bench_add(gm_bench *bench, const gm_bench_row *row);

/* --json and --csv. GM_EOUTPUT. */
int gm_bench_write(const gm_bench *bench);

#endif
