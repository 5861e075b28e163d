/* block.h - the memory of a block, and the blocks of a part that the device's memory holds. Pure. */
#ifndef GM_SRC_MATMUL_BLOCK_H
#define GM_SRC_MATMUL_BLOCK_H

#include "src/matmul/plan.h"

/* Bytes of the usual piece of a device of its own; in a ring with buffers, the most of a piece of C. */
enum { GM_MATMUL_PIECE = 4 << 20 };

/* The memory that the block and the step that are set take. Sets band_rows. */
gm_ring_cost gm_matmul_block_cost(gm_matmul_plan *plan, const gm_matmul_part *part);

/* Sets block, step, and whether all of A and B stay on the device, so that they fit beside the ring and read the fewest
 * bytes. Returns 0 if not even the least block fits. */
int gm_matmul_block_choose(gm_matmul_plan *plan, const gm_matmul_part *part);

#endif
