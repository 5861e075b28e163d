/* wide.h - unsigned integers of more than 128 bits, and their ratios rounded once to float64. */
#ifndef GM_BASE_TYPES_WIDE_H
#define GM_BASE_TYPES_WIDE_H

#include <stdint.h>

enum { GM_WIDE_WORDS = 6 };
typedef struct gm_wide {
    uint64_t word[GM_WIDE_WORDS]; /* lowest first */
} gm_wide;

/* From count words, lowest first. */
gm_wide gm_wide_of(const uint64_t *words, int count);

/* a b, which must fit. */
gm_wide gm_wide_times(const gm_wide *a, const gm_wide *b);

/* a -= b, with b <= a. */
void gm_wide_subtract(gm_wide *a, const gm_wide *b);

/* a / b, and the square root of a / b, to the nearest float64, ties to even. b is not 0 and has fewer than 320 bits. */
double gm_wide_ratio(const gm_wide *a, const gm_wide *b);
double gm_wide_root(const gm_wide *a, const gm_wide *b);

#endif
