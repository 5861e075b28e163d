#include "src/matmul/block.h"

#include "base/memory.h"
#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "src/exchange/exchange.h"
#include "src/exchange/probe.h"
#include "src/exchange/staged.h"
#include "src/matmul/cost.h"
#include "src/stream/stream.h"

#include <math.h>

enum {
    STEPS_ON_HOST = 1, /* on the processor, where each step brings all of acc through its caches once more */
    VECTORS_PER_K = 4, /* float64 values per k of a step, for the check of the product */
    ALLOCATIONS = 8,   /* of device memory */
    OF_CHAIN = 2,      /* and of a rank whose layer is one of several */
    OF_WORK = 2        /* and for a product with work space */
};

/* Bytes of the sums that the check keeps of a block. */
static int64_t sums_bytes(int64_t block_rows, int64_t block_cols)
{
    return gm_mul_sat(gm_sum_offset(GM_SUMS, block_rows, block_cols), sizeof(double));
}

int64_t gm_matmul_plan_vectors(int64_t rows, int64_t cols)
{
    return gm_mul_sat(gm_add_sat(gm_add_sat(rows, cols), GM_MATMUL_NOTES), sizeof(double));
}

/* Of a slot that holds a piece of some bytes, or the sums. */
static int64_t slot_bytes(const gm_matmul_plan *plan, int64_t piece)
{
    int64_t bytes = gm_max(piece, sums_bytes(plan->block_rows, plan->block_cols));
    return gm_round_up(gm_min(bytes, INT64_MAX - GM_SLOT_ALIGN), GM_SLOT_ALIGN);
}

/* Of a piece of C in a ring with buffers. */
static int64_t buffered_result(const gm_matmul_plan *plan)
{
    return gm_min(plan->piece, GM_MATMUL_PIECE);
}

int64_t gm_matmul_plan_result(const gm_matmul_plan *plan)
{
    return plan->ring.buffer ? buffered_result(plan) : plan->piece;
}

static int64_t area(int64_t rows, int64_t cols, int64_t element)
{
    return gm_mul_sat(gm_mul_sat(rows, gm_tiling_ld(cols, element)), element);
}

/* Bytes of the work space of the device's product, for panels of some k, and some leaves side by side. */
static int64_t work_bytes(const gm_matmul_plan *plan, int64_t depth, int64_t parts)
{
    const gm_split_kind *kind = &plan->problem.work;
    size_t a = gm_split_lay(kind, plan->block_rows, depth, plan->leaf, parts).bytes;
    size_t b = gm_split_lay(kind, plan->block_cols, depth, plan->leaf, parts).bytes;
    return kind->planes ? gm_add_sat(gm_add_sat((int64_t)a, (int64_t)b), OF_WORK * GM_ALLOC_OVERHEAD) : 0;
}

int64_t gm_matmul_plan_probe(const gm_matmul_plan *plan, int64_t depth)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t rows = plan->block_rows;
    if (!p->verifies || plan->budget.unified)
        return 0;
    /* A lies one way round or the other. */
    size_t a = gm_probe_cut(rows, depth, p->operand_bytes).bytes,
           at = gm_probe_cut(depth, rows, p->operand_bytes).bytes;
    size_t c = gm_probe_cut(plan->band_rows, plan->block_cols, p->file_bytes_c).bytes;
    return gm_max(gm_max((int64_t)a, (int64_t)at), (int64_t)c);
}

int64_t gm_matmul_plan_parts(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t leaves = gm_matmul_plan_panel_leaves(plan, part);
    return p->leaf.few ? gm_product_parts(plan->block_rows, plan->block_cols, leaves, p->multiprocessors) : 0;
}

/* Bytes of device memory without the ring. */
static int64_t device_bytes(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t depth = gm_min(gm_mul_sat(gm_matmul_plan_panel_leaves(plan, part), plan->leaf),
                           gm_matmul_plan_depth(plan, part->leaf0, part->leaf1));
    int64_t r = plan->block_rows, c = plan->block_cols;
    int64_t parts = gm_matmul_plan_parts(plan, part), accs = gm_add_sat(1 + parts, gm_matmul_plan_kept_leaves(plan));
    int64_t acc = gm_mul_sat(area(r, c, p->accumulator_bytes), accs);
    /* Whichever way round a panel lies, its rows are padded by less than GM_TILING_ROW_ALIGN bytes. */
    int64_t a = gm_max(area(r, depth, p->operand_bytes), area(depth, r, p->operand_bytes));
    int64_t b = gm_max(area(c, depth, p->operand_bytes), area(depth, c, p->operand_bytes));
    int64_t panels = gm_mul_sat(plan->buffers, gm_add_sat(a, b));
    if (plan->same)
        panels = gm_max(area(p->m, p->k, p->operand_bytes), area(p->k, p->m, p->operand_bytes));
    int64_t vectors = gm_add_sat(gm_matmul_plan_vectors(r, c),
                                 gm_mul_sat(gm_mul_sat(depth, VECTORS_PER_K), sizeof(double)));
    vectors = gm_add_sat(vectors, gm_mul_sat(gm_matmul_plan_chains(plan) ? 2 : 1, sums_bytes(r, c)));
    int64_t tiles = plan->tile_count * plan->tile * plan->tile * p->accumulator_bytes;
    int64_t band = gm_mul_sat(gm_mul_sat(plan->band_rows, c), p->file_bytes_c);
    int64_t sum = gm_add_sat(gm_add_sat(gm_add_sat(acc, band), panels), gm_add_sat(vectors, tiles));
    int64_t probe = gm_matmul_plan_probe(plan, depth);
    sum = gm_add_sat(gm_add_sat(sum, work_bytes(plan, depth, parts)), probe);
    return gm_add_sat(sum, (ALLOCATIONS + (parts > 0) + (probe > 0) + (gm_matmul_plan_chains(plan) ? OF_CHAIN : 0)) *
                               GM_ALLOC_OVERHEAD);
}

gm_ring_cost gm_matmul_block_cost(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    int64_t probe = gm_matmul_plan_chains(plan) || plan->shares ? GM_PROBE_LEAST : 0;
    int64_t staged = probe && !plan->budget.unified ? GM_STAGED_PINNED : 0;
    int64_t nccl = staged && plan->reserves ? GM_EXCHANGE_DEVICE : 0;
    plan->band_rows = gm_matmul_plan_band(plan);
    return (gm_ring_cost){.slot = slot_bytes(plan, plan->piece),
                          .out = slot_bytes(plan, buffered_result(plan)),
                          .host = gm_matmul_plan_vectors(part->rows, part->cols) + staged + probe +
                                  2 * GM_ALLOC_OVERHEAD,
                          .device = device_bytes(plan, part) + 2 * probe + nccl,
                          .pieces = INT64_MAX,
                          .slots = plan->slots};
}

static int fits(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    gm_ring_cost cost = gm_matmul_block_cost(plan, part);
    return gm_ring_plan_recost(&plan->ring, &plan->budget, &cost);
}

/* All leaves of a part on the device: then reading runs ahead of computing, and, with one layer, what is left to
 * compute when all is read goes band by band. A = B is kept whole where that reads less. */
static int try_keep(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t leaves = part->leaf1 - part->leaf0;
    int buffers = plan->buffers;
    if (p->k == 0)
        return 0;
    plan->keep = 1;
    plan->buffers = 1;
    plan->block_rows = part->rows;
    plan->block_cols = part->cols;
    plan->same = p->shared && plan->grid[2] == 1 && p->m <= part->rows + part->cols && p->panels != GM_PANELS_EXCHANGE;
    plan->step_leaves = gm_max(leaves, 1);
    if (plan->same && fits(plan, part))
        return 1;
    plan->same = 0;
    plan->step_leaves = gm_max(gm_ceil_div(leaves, GM_MATMUL_STEPS), 1);
    plan->shares = gm_matmul_cost_shares(plan);
    if (plan->shares && fits(plan, part))
        return 1;
    plan->shares = 0; /* that takes some memory more */
    if (!plan->budget.unified && fits(plan, part))
        return 1;
    plan->keep = 0;
    plan->buffers = buffers;
    return 0;
}

/* Fewer leaves at a time, from `most` down to one: the most that fit. 0 when not even one does. */
static int64_t most_leaves(gm_matmul_plan *plan, const gm_matmul_part *part, int64_t most)
{
    int64_t low = 0, high = gm_max(most, 1);
    while (low < high) {
        plan->step_leaves = low + (high - low + 1) / 2;
        if (fits(plan, part))
            low = plan->step_leaves;
        else
            high = plan->step_leaves - 1;
    }
    plan->step_leaves = gm_max(low, 1);
    return fits(plan, part) ? plan->step_leaves : 0;
}

/* Even blocks: some rows and some columns of them. */
static void set_blocks(gm_matmul_plan *plan, const gm_matmul_part *part, int64_t down, int64_t across)
{
    plan->block_rows = gm_min(gm_round_up(gm_ceil_div(part->rows, down), plan->tile), part->rows);
    plan->block_cols = gm_min(gm_round_up(gm_ceil_div(part->cols, across), plan->tile), part->cols);
}

/* The fewest columns of blocks with which some rows of them fit, one leaf at a time; `most`: none below it. */
static int64_t fewest_columns(gm_matmul_plan *plan, const gm_matmul_part *part, int64_t down, int64_t most)
{
    int64_t low = 1, high = most;
    plan->step_leaves = 1;
    while (low < high) {
        int64_t across = low + (high - low) / 2;
        set_blocks(plan, part, down, across);
        if (fits(plan, part))
            high = across;
        else
            low = across + 1;
    }
    return low;
}

/* The blocks that read the fewest bytes, of those whose smallest step fits: A once for each column of blocks, B once
 * for each row of them. Of many rows not each number is tried. */
static int choose_block(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t leaves = part->leaf1 - part->leaf0,
            wanted = gm_max(gm_ceil_div(leaves, plan->budget.unified ? STEPS_ON_HOST : GM_MATMUL_STEPS), 1);
    int64_t rows = gm_max(gm_ceil_div(part->rows, plan->tile), 1),
            cols = gm_max(gm_ceil_div(part->cols, plan->tile), 1), best[2] = {0, 0};
    double a = (double)part->rows * (double)p->file_bytes_a, b = (double)part->cols * (double)p->file_bytes_b,
           least = INFINITY;
    for (int64_t down = 1, next; down <= rows && a + b * (double)down <= least; down = next) {
        int64_t across = fewest_columns(plan, part, down, cols + 1);
        double bytes = a * (double)across + b * (double)down;
        if (across <= cols && bytes <= least) {
            least = bytes;
            best[0] = down;
            best[1] = across;
        }
        next = down < rows ? gm_min(gm_max(down + 1, down * 9 / 8), rows) : rows + 1;
    }
    if (!best[0])
        return 0;
    set_blocks(plan, part, best[0], best[1]);
    return most_leaves(plan, part, wanted) > 0;
}

int gm_matmul_block_choose(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    return try_keep(plan, part) || choose_block(plan, part);
}
