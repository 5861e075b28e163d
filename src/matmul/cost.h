/* cost.h - the seconds that a product takes by the rates of its problem: what the choice of the grid and --plan rest
 * on. Pure.
 *
 * A rank reads its rows of A and columns of B for its leaves, once for each block, and multiplies them meanwhile, or it
 * reads a chunk of them and gets the others from other ranks; the owners write C. With several layers each block then
 * goes along the chain of layers once, band by band, and each rank folds its leaves to it. */
#ifndef GM_SRC_MATMUL_COST_H
#define GM_SRC_MATMUL_COST_H

#include "src/matmul/plan.h"
#include "src/rates/work.h"

/* The work of a rank of a plan whose grid and blocks are set; the frame's gm_work_of, context: the plan. */
int gm_matmul_cost_work(const void *plan, int rank, gm_work *passes);

/* Seconds of the exchanges of rank 0, which has the largest part, through the host or by the network. */
double gm_matmul_cost_staged(const gm_matmul_plan *plan);

/* Are panels exchanged in the plan, whose grid is set? If they are asked to be, or if they can be and that takes less
 * time. */
int gm_matmul_cost_shares(const gm_matmul_plan *plan);

/* Seconds of the busiest rank if the plan, which has its tile and leaves, had this grid, and panels came the faster
 * way, or as they are asked to. Blocks are estimated: a plan for each grid would take too long. */
double gm_matmul_cost_seconds(const gm_matmul_plan *plan, int64_t R, int64_t C, int64_t K);

#endif
