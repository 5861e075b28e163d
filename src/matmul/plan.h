/* plan.h - the plan of a product: leaves, tiles, the grid of ranks, blocks and steps, bytes. Pure: no device, no file,
 * no message passing. All ranks get the same plan from the same problem.
 *
 *   C (m x n) is cut into tiles; whole tiles go to the R x C x K grid of ranks. k is cut into leaves, whose length
 * depends on m, n, k and the kernel alone; whole leaves go to the K layers of the grid. A rank walks over blocks of its
 * part of C that fit the device, and for each block in steps over its leaves: step = the panels of A and B for some
 * leaves. The last leaves of a block are walked through band by band, a band being some rows of tiles, so that the
 * result of one leaves while the next is computed.
 *   Ranks in a row of the grid need the same rows of A, those in a column the same columns of B: each reads them, or
 * each reads a chunk of them and the chunks go from device to device.
 *   With several layers each of them multiplies its leaves at once. The layers are a chain in the order of their
 * leaves: band by band, a layer folds its own leaves to what the layer before it has folded, and passes that on.
 */
#ifndef GM_SRC_MATMUL_PLAN_H
#define GM_SRC_MATMUL_PLAN_H

#include "base/types/precision.h"
#include "kernels/matmul/tensor/split.h"
#include "src/matmul/sums.h"
#include "src/rates/rates.h"
#include "src/stream/ring_plan.h"
#include "base/tiling.h"

#include <stdint.h>

/* Side of the part of C that a block of threads computes (TILE in kernels/matmul/matmul_cuda_fp32.cu). */
enum { GM_MATMUL_UNIT = 128 };

/* Operands; a panel's `matrix` is GM_A or GM_B. */
enum { GM_A, GM_B, GM_C0, GM_OPERANDS };

/* Steps of a block, so that reading and computing overlap. */
enum { GM_MATMUL_STEPS = 12 };

/* The way in which panels that several ranks need come to them. */
typedef enum gm_panels {
    GM_PANELS_AUTO,    /* the faster way */
    GM_PANELS_READ,    /* each rank reads them */
    GM_PANELS_EXCHANGE /* each part is read by one rank, and exchanged */
} gm_panels;

/* The problem to be planned. */
typedef struct gm_matmul_problem {
    int64_t m, n, k;
    gm_precision precision;
    int64_t operand_bytes, accumulator_bytes;                        /* of an element, on the device */
    int64_t file_bytes_a, file_bytes_b, file_bytes_c0, file_bytes_c; /* of an element in the files; c0: 0 without one */
    int shared;              /* A and B are the same data: may be kept whole and read once */
    int64_t max_tile;        /* of the device's product */
    gm_leaf_kind leaf;       /* as the device's product has it */
    int wants_tiles;         /* as the device's product does: tiles of accumulators for each thread */
    gm_split_kind work;      /* of its work space */
    int batches;             /* it takes several frames in a call */
    int64_t multiprocessors; /* of the device; 0: it works on one tile for each thread at a time */
    int verifies;            /* C is checked */
    int is_batch;            /* the product is a frame of several */
    int by_rows[2];          /* of A, B: rows in the file are rows of op(A) or columns of op(B); otherwise they are k */
    int64_t row_unit[2];     /* the same: gm_dataset_row_unit(); 0: as 1 */
    gm_panels panels;        /* asked for */
    int ranks;
    int64_t grid[3]; /* asked for; 0: to be chosen, by the rates */
    gm_rates rates;
} gm_matmul_problem;

typedef struct gm_matmul_plan {
    gm_matmul_problem problem;
    gm_ring_budget budget;
    gm_ring_plan ring;
    int64_t tile, leaf, leaves;
    int64_t grid[3]; /* R, C, K */
    int64_t block_rows, block_cols, step_leaves;
    int64_t band_rows;  /* of a block; the last band may have fewer */
    int buffers;        /* panels of A and B in flight: 1 or 2 */
    int reserves;       /* device memory is left for exchanges by NCCL, if there are any */
    int keep;           /* one panel of A and one of B hold all leaves of the part, which is one block */
    int same;           /* kept, and A = B: one panel holds the whole of it */
    int shares;         /* kept; ranks of a row or a column of the grid read a chunk each, and exchange them */
    int64_t tile_count; /* for a product that wants them */
    int64_t piece;      /* bytes */
    int64_t slots;      /* that keep threads and device at work */
} gm_matmul_plan;

/* The part of one rank: rows and columns of C, leaves of k. Empty for ranks beyond the grid or without a tile. Layer K
 * - 1 has the first leaves and layer 0 the last ones: what the layers make is folded from layer to layer and ends with
 * the owner. */
typedef struct gm_matmul_part {
    int64_t row0, rows, col0, cols;
    int64_t leaf0, leaf1;
    int layer;     /* which of the K; the ranks of layer 0 own C */
    int64_t owner; /* rank of layer 0 with the same rows and columns */
    int idle;
} gm_matmul_part;

/* A block, in C. */
typedef struct gm_matmul_block {
    int64_t row0, rows, col0, cols;
} gm_matmul_block;

/* Makes the plan. request: --piece, --depth and the readers. Pure. Returns GM_EUSAGE for a grid of more ranks than
 * there are, and where panels cannot be exchanged as asked; GM_EDEVICE, without a message, and the budget that it
 * needs, when this one does not do. */
int gm_matmul_plan_make(const gm_matmul_problem *problem, const gm_ring_budget *budget, const gm_ring_request *request,
                        gm_matmul_plan *plan, gm_ring_budget *need);

void gm_matmul_plan_part(const gm_matmul_plan *plan, int rank, gm_matmul_part *part);

/* Tiles of accumulators for up to `threads` threads, `most` of them if the memory is to have room, but those of one
 * thread at least. */
int64_t gm_matmul_tile_count(const gm_matmul_problem *problem, int threads, int64_t most);

/* Leaves of a panel that the device computes side by side, with room for the sums of each; 0: one after the other. */
int64_t gm_matmul_plan_parts(const gm_matmul_plan *plan, const gm_matmul_part *part);

/* Bytes of a piece of C. Where I/O threads have buffers, a slot has host memory for these, or for the sums. */
int64_t gm_matmul_plan_result(const gm_matmul_plan *plan);

/* Bytes of the work space of the check, for panels of some k (gm_probe_call.work). */
int64_t gm_matmul_plan_probe(const gm_matmul_plan *plan, int64_t depth);

/* The rank of a layer that works on the same rows and columns as part. */
int gm_matmul_plan_partner(const gm_matmul_plan *plan, const gm_matmul_part *part, int layer);

/* Do layers fold their leaves one after the other? */
int gm_matmul_plan_chains(const gm_matmul_plan *plan);

/* Leaves of a block that a rank keeps apart, at most, as those before them are folded by other layers. */
int64_t gm_matmul_plan_kept_leaves(const gm_matmul_plan *plan);

/* Block number `index` of a part. */
gm_matmul_block gm_matmul_plan_block(const gm_matmul_plan *plan, const gm_matmul_part *part, int64_t index);

/* Columns of k in [leaf0, leaf1). */
int64_t gm_matmul_plan_depth(const gm_matmul_plan *plan, int64_t leaf0, int64_t leaf1);

/* End of the step that begins at a leaf of a part. Where reading and computing overlap the first one is short, to begin
 * early, and where all leaves are kept each of the next ones is as long as all before it, up to step_leaves: it is read
 * while these are multiplied. The last one of a layer is short, as other layers wait for it. */
int64_t gm_matmul_plan_step_end(const gm_matmul_plan *plan, const gm_matmul_part *part, int64_t leaf);

/* The most leaves that a panel of a part holds: one at least, also of a part without leaves, which may have to repair
 * tiles of C. */
int64_t gm_matmul_plan_panel_leaves(const gm_matmul_plan *plan, const gm_matmul_part *part);

/* Rows of the bands of a block: whole tiles, some waves of the device where bands are multiplied. */
int64_t gm_matmul_plan_band(const gm_matmul_plan *plan);

/* Why ranks cannot exchange panels by this plan, whose grid and sizes are set; NULL if they can. */
const char *gm_matmul_plan_hindrance(const gm_matmul_plan *plan);

/* The ranks that need the same panels of A (matrix 0: a row of the grid) or of B (1: a column), in their order; the
 * rank alone where the plan does not share. */
typedef struct gm_matmul_circle {
    int64_t size, index;   /* of ranks; of the part's own */
    int64_t first, stride; /* rank of the first; from one to the next */
} gm_matmul_circle;
gm_matmul_circle gm_matmul_plan_circle(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix);

/* A rectangle of op(A) or op(B): outer counts rows of op(A), columns of op(B). */
typedef struct gm_matmul_span {
    int64_t outer0, outer, k0, depth;
} gm_matmul_span;

/* The part of the panels of leaves [leaf0, leaf1), a step, that member `index` of that circle reads: some rows of
 * the file, so that runs in the file stay as long as they are. May be empty. All members together: the part's panel,
 * once. */
gm_matmul_span gm_matmul_plan_chunk(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix, int64_t index,
                                    int64_t leaf0, int64_t leaf1);

/* Elements that a part of a plan that shares receives from the other members of a circle, and sends to them. */
void gm_matmul_plan_exchanged(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix, int64_t *received,
                              int64_t *sent);

/* Bytes that a part reads from GM_A, GM_B or GM_C0, again for each of its blocks that needs them. */
int64_t gm_matmul_plan_operand_read(const gm_matmul_plan *plan, const gm_matmul_part *part, int operand);

/* From all operands. */
int64_t gm_matmul_plan_bytes_read(const gm_matmul_plan *plan, const gm_matmul_part *part);

/* The number of its blocks. */
int64_t gm_matmul_plan_blocks(const gm_matmul_plan *plan, const gm_matmul_part *part);

enum { GM_MATMUL_NOTES = 2 }; /* words after x and u: what unpacking notes of A and of B */

/* Bytes of x, u and the notes, for a part or a block of this shape. */
int64_t gm_matmul_plan_vectors(int64_t rows, int64_t cols);

#endif
