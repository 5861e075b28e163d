/* lab.h - the laboratory: tests of one property of the hardware each, by cases that are held against each other.
 *
 *   lab.c           times the cases of a test, checks their results, adds their rows
 *   NAME.c          the test NAME: its cases, and how the results of each are checked
 *   NAME_ladder.c   in ../operations/: the steps to a fast kernel, which tests of operations run beside their own */
#ifndef GM_SRC_BENCH_LAB_LAB_H
#define GM_SRC_BENCH_LAB_LAB_H

#include "kernels/lab/calls.h"
#include "kernels/lab/kinds.h"
#include "src/bench/bench.h"

enum { GM_LAB_CASES = 512 }; /* of a call of gm_lab_measure() */

typedef enum gm_lab_clock { GM_LAB_EVENTS, GM_LAB_HOST } gm_lab_clock;

typedef struct gm_lab_case {
    char variant[GM_BENCH_TEXT], shape[GM_BENCH_TEXT];
    const char *kernel;
    int (*run)(const struct gm_lab_case *self, gm_queue *queue); /* puts one call into the queue */

    /* Makes the result once more and compares it with the processor's: GM_ECHECK. May set the errors, which are -1
     * before. NULL: there is no result. */
    int (*check)(const struct gm_lab_case *self, double *max_error, double *mean_error);

    void *test;       /* what the cases of the test share */
    const void *call; /* of this case */
    double work;      /* of one call, in base units */
    const gm_bench_unit *unit;
    gm_lab_clock clock; /* GM_LAB_EVENTS unless set; the same for all cases of a call of gm_lab_measure() */
    gm_cache_state cache;
    double computed;  /* limit, work per second; 0: none */
    int limit;        /* the case whose rate is the limit: 1 + its index among those before this one; 0: none */
    double published; /* rate, work per second; 0: none */
    double published_max, published_mean; /* errors; 0: none */
    const char *panel;
    double x, y;
    const char *x_name, *y_name;
} gm_lab_case;

/* Times the cases in groups, beside the case that is their limit, checks each result, adds the rows. Collective. */
int gm_lab_measure(gm_bench *bench, const gm_lab_case *cases, int count);

/* A size of one of two buffers at which the speed of memory shows, and for which there is room: 1 GiB on a GPU, 64 MiB
 * on a processor (16 MiB if all tests run), or less; a power of two. */
int64_t gm_lab_size(const gm_bench *bench);

/* Calls measure for the size of --shapes, else for gm_lab_size(): for tests whose rows are not all of that size, so
 * that those of several sizes would be named alike. GM_EUSAGE. */
int gm_lab_one_size(gm_bench *bench, int64_t unit, int (*measure)(gm_bench *bench, int64_t bytes));

/* The cache state of a case that touches these bytes again and again. */
gm_cache_state gm_lab_cache(const gm_bench *bench, int64_t bytes);

/* The computed limit of memory, bytes per second, for a case that touches these bytes again and again: none if a part
 * of them may come from the caches. */
double gm_lab_memory_limit(const gm_bench *bench, int64_t bytes);

/* The computed limit of the L1 caches, which the banks of shared memory have as well, bytes per second: 128 bytes a
 * clock of each multiprocessor. 0: unknown. */
double gm_lab_l1_limit(const gm_bench *bench);

/* The largest power of two that is not above `most`, 1 or more. */
int64_t gm_lab_power_of_two(int64_t most);

/* Compares a result: [bytes] at src, device memory, must be equal to right. what: names it in the error message.
 * GM_ECHECK.
 */
int gm_lab_expect(gm_bench *bench, const gm_lab_case *self, const void *src, const void *right, int64_t bytes,
                  const char *what);

/* The ladders: each adds the rows of the panel "ladder" of the test that runs. Without the device functions: no rows.
 * Collective. */
int gm_lab_reduce_ladder(gm_bench *bench);
int gm_lab_transpose_ladder(gm_bench *bench);
int gm_lab_matmul_ladder(gm_bench *bench, const gm_bench_sample *sample, uint64_t key_a,
                         uint64_t key_b); /* m = n = k */

/* memory_images.c, a part of the test `memory`: steps of an image by textures and by loads. Collective. */
int gm_lab_measure_images(const gm_bench_pair *pair);

#endif
