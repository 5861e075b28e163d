/* range.h - ranges of integers, and their split into even shares. */
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

static inline int64_t gm_range_length(gm_range range)
{
    return range.end - range.begin;
}

#ifdef __cplusplus
}
#endif
#endif
