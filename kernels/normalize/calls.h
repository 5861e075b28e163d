/* calls.h - the device operations of normalize: what a call takes.
 *
 *   normalize_cpu.c, normalize_cuda.cu          normalize; for CUDA the types that are used most
 *   normalize_any_cuda.cu                       all other pairs of types, and rows at any address
 *   normalize_words_cuda.cuh                    words of up to 16 bytes, from and to memory
 *   histogram_cpu.c, histogram_cuda.cu          histogram
 *   normalize.h                                 the rules of one element, for both compilers */
#ifndef GM_KERNELS_NORMALIZE_CALLS_H
#define GM_KERNELS_NORMALIZE_CALLS_H

#include "base/types/dtype.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rounding of values to integers. */
typedef enum gm_rounding {
    GM_ROUND_NEAREST_EVEN,
    GM_ROUND_HALF_UP, /* floor(v + 0.5), the addition rounded as any other */
    GM_ROUND_TRUNCATE
} gm_rounding;

typedef struct gm_normalize_counts {
    uint64_t clipped; /* values outside lo .. hi, and finite ones that are infinite in a narrower float type of out */
    uint64_t nan;     /* NaN; 0 in integers */
    uint64_t marked;  /* elements other than NaN whose factor is marked */
} gm_normalize_counts;

/* out[i][j] = (src[i][j] - sub) * factor + add, or minus the natural logarithm of that. All in float32, or in float64
 * if wide, each operation rounded; the addition is left out when add is 0. Where src - sub overflows in float64, it is
 * (src / 2 - sub / 2) * (factor * 2) + add. kernels/normalize/normalize.h has the rules
 * of an element, which in this order are: src NaN: NaN.    factor NaN, which marks a denominator of 0: `marked`.    NaN
 * in between: NaN (0 in integers). Integer out: v is rounded.    v <= lo: `below`.    v >= hi: `above`.    Else v,
 * converted. */
typedef struct gm_normalize_call {
    int64_t rows, cols;
    const void *src; /* [rows][cols] contiguous file bytes, at a multiple of the size of an element */
    gm_dtype src_type;
    int swap;
    void *out; /* [rows][cols] contiguous, in the order of bytes of this machine, at a multiple of 16 bytes; not src */
    gm_dtype out_type;
    int wide;                 /* float64; may be 0 when both types are of 8 or 16 bits or F32 */
    const void *sub, *factor; /* float, or double if wide: (i, j) takes entry i * row_step + j * col_step of both */
    int row_step, col_step;   /* 0, 0 for one value; 1, 0 for one a row; 0, 1 for one a column */
    double add;               /* rounded to float32 by the kernel, as lo and hi are, unless wide */
    int log;
    gm_rounding rounding;
    double lo, hi;                 /* -INFINITY, INFINITY: no limits, floats only */
    uint64_t below, above, marked; /* elements of out in its low bytes */
    gm_normalize_counts *counts;   /* device memory; added to */
} gm_normalize_call;

/* Counts of one digit of the elements' keys: unsigned numbers of the element's width in the order of the values (-0
 * before +0; the rule is in kernels/normalize/normalize.h). NaN have none and are left out. An element counts for
 * prefix p of its row when its key's bits above the digit equal it: counts[row * row_step][p][key >> shift & ((1 <<
 * bits) - 1)] += key >> shift >> bits == prefix[row * row_step][p] */
enum { GM_HISTOGRAM_PREFIXES = 4 };
typedef struct gm_histogram_call {
    int64_t rows, cols;
    const void *src; /* [rows][cols] contiguous file bytes, at a multiple of the size of an element */
    gm_dtype type;
    int swap;
    int shift, bits; /* bits: 8, or 16 for types of 16 bits and more; shift: a multiple of bits below the key's width */
    int row_step;    /* 1: every row has prefixes and counts of its own, 0: all rows share them */
    int prefixes; /* 1 to GM_HISTOGRAM_PREFIXES, all different in a row; 1 when there is nothing above the digit (then
                     prefix is 0) */
    const uint64_t *prefix; /* device memory: [rows or 1][prefixes] */
    uint64_t *counts;       /* device memory: [rows or 1][prefixes][1 << bits]; added to */
} gm_histogram_call;

#ifdef __cplusplus
}
#endif
#endif
