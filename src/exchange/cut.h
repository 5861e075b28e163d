/* cut.h - a region as pieces that are messages: pure arithmetic. Both ends of a message cut alike, as rows, width and
 * the largest piece are the same there. */
#ifndef GM_SRC_EXCHANGE_CUT_H
#define GM_SRC_EXCHANGE_CUT_H

#include "src/exchange/path.h"

/* `across` pieces in a row, of `width` bytes each, or, with one across, some rows each. The last ones are smaller. */
typedef struct gm_cut {
    int64_t rows, width, across, pieces;
} gm_cut;

/* Pieces of at most `most` bytes; none for NULL and for a region without bytes. */
gm_cut gm_cut_region(const gm_exchange_region *region, int64_t most);

/* Piece i: the part of the region that it is, of the same peer and pitch. */
gm_exchange_region gm_cut_piece(const gm_exchange_region *region, const gm_cut *cut, int64_t i);

/* The bytes of a region; 0 for NULL. */
int64_t gm_exchange_region_bytes(const gm_exchange_region *region);

#endif
