/* Tiles that failed their check, computed once more. A device that computed an element wrong once, by a flipped bit
 * say, computes it right then; one that is broken fails again. */
#include "src/matmul/matmul.h"

#include "base/size.h"

/* The tile as a rank's part of the product, with all leaves. */
static gm_matmul_part part_of(const gm_matmul *p, const gm_tile *tile)
{
    return (gm_matmul_part){.row0 = tile->row,
                            .rows = gm_min(p->plan.tile, p->part.row0 + p->part.rows - tile->row),
                            .col0 = tile->col,
                            .cols = gm_min(p->plan.tile, p->part.col0 + p->part.cols - tile->col),
                            .leaf1 = p->plan.leaves,
                            .owner = p->part.owner};
}

/* A run of that part in the memory of the rank's own: a block holds a tile, and its panels as many leaves as before. No
 * other rank takes part. */
static int compute_again(gm_matmul *p, const gm_tile *tile, gm_phase_times *times)
{
    const gm_matmul whole = *p;
    gm_program program;
    p->part = part_of(p, tile);
    p->host_x += p->part.col0 - whole.part.col0;
    p->host_u += p->part.row0 - whole.part.row0;
    p->plan.step_leaves = gm_min(p->plan.step_leaves, gm_matmul_plan_panel_leaves(&whole.plan, &whole.part));
    p->plan.keep &= p->plan.grid[2] == 1; /* the panels of a layer have its own leaves */
    p->plan.grid[2] = 1;
    p->plan.shares = 0;
    p->cursor = (gm_cursor){0};
    p->products = 0;
    p->is_repair = 1;
    gm_matmul_program(p, &program);
    int status = gm_stream_run(p->stream, &program, times);
    gm_verdict verdict = p->verdict;
    double flop = p->flop;
    *p = whole;
    p->verdict = verdict;
    p->flop = flop;
    return status;
}

int gm_matmul_repair(gm_matmul *p, gm_phase_times *times)
{
    int64_t suspects = p->verdict.suspects;
    int status = GM_OK;
    for (int64_t i = 0; i < suspects && !status; i++)
        status = compute_again(p, &p->verdict.suspect[i], times);
    if (!status)
        p->verdict.repaired = suspects;
    return status;
}
