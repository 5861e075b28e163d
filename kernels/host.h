/* host.h - work on host memory that is no operation of a device.
 *
 *   matmul/unpack_cpu.c     rows of file elements as floats
 *   random_cpu.c            random elements, for gen and bench
 *   compare_cpu.c           differences, for compare
 *   element_text.c          elements as text */
#ifndef GM_KERNELS_HOST_H
#define GM_KERNELS_HOST_H

#include <stdint.h>

#include "base/types/dtype.h"
#include "base/random.h"
#include "base/status.h"

/* A function that is compiled for wider vectors too; the program takes the widest that the processor has. Operations do
 * not fuse, and the function fixes the order of its sums: the bits are the same in all versions. */
#if defined __x86_64__ && defined __GNUC__ && !defined __SANITIZE_THREAD__
#define GM_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GM_WIDE
#endif

/* dst[i] = src[i], n file elements of a type converted to float32 or float64: one row of unpack, on the calling thread.
 * src needs no alignment. */
void gm_cpu_row_f32(float *dst, const void *src, int64_t n, gm_dtype type, int swap);
void gm_cpu_row_f64(double *dst, const void *src, int64_t n, gm_dtype type, int swap);

/* dst[i] = element first + i of the random dataset of this key (base/random.h), i < n, on the calling thread; swap: in
 * the other order of bytes. */
void gm_cpu_random(void *dst, gm_dtype type, int swap, gm_distribution distribution, uint64_t key, int64_t first,
                   int64_t n);

/* An element of a type in digits that read back to the same bits; swap: in the other order of bytes. text has room for
 * GM_ELEMENT_TEXT bytes. Returns text. */
enum { GM_ELEMENT_TEXT = 32 };
char *gm_element_format(gm_dtype type, int swap, const void *element, char *text);

/* Differences of elements x from reference elements y. The relative error of an element is |x - y| / |y|, or |x - y|
 * where y is 0. NaN equals NaN, an infinity equals itself; other pairs without a finite difference have an infinite
 * error. */
typedef struct gm_difference {
    int64_t count, differing, nan_pairs; /* elements; those that are not equal; those that are both NaN */
    int64_t first; /* of the elements that are not equal, counted from this part's own first; -1: none */
    double max_relative, sum_relative, max_absolute;
} gm_difference;
#define GM_NO_DIFFERENCE ((gm_difference){.first = -1})

typedef struct gm_compare_call {
    int64_t n;
    const void *x, *y; /* [n], no alignment needed */
    gm_dtype x_type, y_type;
    int x_swap, y_swap;
} gm_compare_call;

/* Writes one gm_difference for each GM_COMPARE_BLOCK elements (the last may be shorter); the bits depend on the block's
 * elements alone. 64-bit integers are compared exactly. */
enum { GM_COMPARE_BLOCK = 16384 };
int gm_cpu_compare(int threads, const gm_compare_call *call, gm_difference *blocks);

/* Appends the elements of next to those of total. */
void gm_difference_append(gm_difference *total, const gm_difference *next);

#endif
