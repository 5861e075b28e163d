/* range.h - ranges of integers, their split into even shares, and into rectangles of a matrix. */
#ifndef GM_BASE_RANGE_H
#define GM_BASE_RANGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gm_range {
    int64_t begin, end; /* [begin, end) */
} gm_range;

/* Share number index (from 0) of [0, count) split into `shares` shares that begin at multiples of unit (1 or more). The
 * first shares are the larger ones, by one unit at most; the last ones may be empty. */
gm_range gm_range_split(int64_t count, int64_t unit, int64_t shares, int64_t index);

/* The common part of two ranges; empty, with end = begin, when there is none. */
gm_range gm_range_overlap(gm_range a, gm_range b);

/* The largest rectangle of a row-major matrix of `columns` columns whose elements are at, at + 1, ... in C order, and
 * none of them end or later. at < end. */
typedef struct gm_rectangle {
    int64_t row, rows, col, cols;
} gm_rectangle;
gm_rectangle gm_rectangle_next(int64_t columns, int64_t at, int64_t end);

static inline int64_t gm_range_length(gm_range range)
{
    return range.end - range.begin;
}

#ifdef __cplusplus
}
#endif
#endif
