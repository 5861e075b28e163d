/* share.h - the part of a piece that one of several I/O threads reads. */
#ifndef GM_SRC_STREAM_SHARE_H
#define GM_SRC_STREAM_SHARE_H

#include "base/range.h"

/* Share number `index` of `of` shares. */
typedef struct gm_share {
    int index, of;
} gm_share;

/* The share of `count` bytes that begin at byte `from` of something: a part of [0, count). Shares follow each other and
 * are as even as possible; their borders, counted from the beginning of that something, are multiples of unit (1 or
 * more), or the borders of the whole. A share may be empty. */
gm_range gm_share_cut(gm_share share, int64_t from, int64_t count, int64_t unit);

#endif
