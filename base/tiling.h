/* tiling.h - how a product is divided: the length of its leaves, the side of its tiles, the rows of its panels. These
 * decide the bits of the result, so they depend on the shape and on the device's product alone. */
#ifndef GM_BASE_TILING_H
#define GM_BASE_TILING_H

#include <stdint.h>

enum { GM_TILING_ROW_ALIGN = 64 }; /* bytes: the rows of a panel begin at multiples of it */

/* The leaves of the device's product. */
typedef struct gm_leaf_kind {
    int64_t least;  /* length of the shortest one, in elements along k */
    int64_t few;    /* the same where C has few tiles and leaves are computed side by side; 0: as everywhere */
    int64_t blocks; /* tiles of 64 x 64 in all leaves side by side: enough for a device, few enough to add up */
} gm_leaf_kind;

/* The length of a leaf of an m x n product of inner size k. The accuracy rests on it (docs/accuracy.md). */
int64_t gm_tiling_leaf(const gm_leaf_kind *kind, int64_t m, int64_t n, int64_t k);

/* The side of the tiles of C, in elements. max_tile: the largest tile of the device's product. */
int64_t gm_tiling_tile(int64_t m, int64_t n, int64_t max_tile);

/* Elements from row to row of a panel whose rows have the given number of elements. */
int64_t gm_tiling_ld(int64_t elements, int64_t element_bytes);

#endif
