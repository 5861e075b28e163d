/* share.h - what one of several I/O threads reads of a piece that they read together. */
#ifndef GM_SRC_SHARE_H
#define GM_SRC_SHARE_H

#include <stdint.h>

/* The index-th of so many shares. */
typedef struct gm_share {
    int index, of;
} gm_share;

/* The share [*begin, *end) of [first, first + count): it begins and ends at multiples of unit, or where all of it does. May be empty. */
void gm_share_cut(gm_share share, int64_t first, int64_t count, int64_t unit, int64_t *begin, int64_t *end);

#endif
