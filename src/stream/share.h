/* share.h - the part of a piece that one of several I/O threads reads. */
#ifndef GM_SRC_SHARE_H
#define GM_SRC_SHARE_H

#include <stdint.h>

/* Share number `index` of `of` shares. */
typedef struct gm_share {
    int index, of;
} gm_share;

/* The share [*begin, *end) of [first, first + count). Shares follow each other and are as even as possible; their
 * borders are multiples of unit, or the borders of the whole. A share may be empty. */
void gm_share_cut(gm_share share, int64_t first, int64_t count, int64_t unit, int64_t *begin, int64_t *end);

#endif
