#include "src/matmul/plan.h"

#include "base/memory.h"
#include "base/range.h"
#include "base/size.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum {
    STEPS_WANTED = 12, /* of a block, so that reading and computing overlap */
    STEPS_ON_HOST = 1, /* on the processor, where each step brings all of acc through its caches once more */
    BANDS_WANTED = 12, /* of a block: one of them is written after the last product */
    WAVES_LEAST = 4,   /* of a band: the last wave of a kernel leaves most of the device idle */
    SLOT_UNIT = 256,   /* bytes */
    SUMS_PER_ROW = 6,  /* float64 values per row or column of a block that the check of the product holds */
    SUMS_ALONE = 8,    /* those that belong to neither */
    VECTORS_PER_K = 4, /* float64 values per k of a step, for the same */
    ALLOCATIONS = 8    /* of device memory */
};
static const int64_t default_piece = 16 << 20, staged_piece = 4 << 20;

int64_t gm_matmul_plan_sums_bytes(int64_t block_rows, int64_t block_cols)
{
    return gm_mul_sat(gm_add_sat(gm_mul_sat(SUMS_PER_ROW, gm_add_sat(block_rows, block_cols)), SUMS_ALONE),
                      sizeof(double));
}

/* Slots for each thread and for what is on its way meanwhile. */
static int64_t usual_depth(const gm_ring_budget *budget)
{
    return gm_max(3, budget->threads + (budget->unified ? 2 : gm_max(4, budget->threads / 2)));
}

static int64_t slot_bytes(const gm_matmul_plan *plan)
{
    return gm_round_up(gm_min(gm_max(plan->piece, gm_matmul_plan_sums_bytes(plan->block_rows, plan->block_cols)),
                              INT64_MAX - SLOT_UNIT),
                       SLOT_UNIT);
}

int64_t gm_matmul_plan_depth(const gm_matmul_plan *plan, int64_t leaf0, int64_t leaf1)
{
    return gm_min(gm_mul_sat(leaf1, plan->leaf), plan->problem.k) - gm_min(leaf0 * plan->leaf, plan->problem.k);
}

void gm_matmul_plan_part(const gm_matmul_plan *plan, int rank, gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t R = plan->grid[0], C = plan->grid[1], K = plan->grid[2];
    memset(part, 0, sizeof *part);
    if (rank >= R * C * K) {
        part->idle = 1;
        return;
    }
    int64_t in_layer = rank % (R * C);
    part->layer = (int)(rank / (R * C));
    part->owner = in_layer;
    gm_range rows = gm_range_split(p->m, plan->tile, R, in_layer / C);
    gm_range cols = gm_range_split(p->n, plan->tile, C, in_layer % C);
    gm_range leaves = gm_range_split(plan->leaves, 1, K, part->layer);
    part->row0 = rows.begin;
    part->rows = gm_range_length(rows);
    part->col0 = cols.begin;
    part->cols = gm_range_length(cols);
    part->leaf0 = leaves.begin;
    part->leaf1 = leaves.end;
    part->idle = part->rows == 0 || part->cols == 0;
}

int gm_matmul_plan_partner(const gm_matmul_plan *plan, const gm_matmul_part *part, int layer)
{
    return (int)(layer * plan->grid[0] * plan->grid[1] + part->owner);
}

int64_t gm_matmul_plan_step_end(const gm_matmul_plan *plan, const gm_matmul_part *part, int64_t leaf)
{
    int64_t leaves = !plan->budget.unified && leaf == part->leaf0 && !plan->same ? 1 : plan->step_leaves;
    return gm_min(leaf + leaves, part->leaf1);
}

int64_t gm_matmul_plan_panel_leaves(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    int64_t all = part->leaf1 - part->leaf0;
    return plan->keep ? all : gm_min(plan->step_leaves, all);
}

int64_t gm_matmul_plan_blocks(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    return part->idle ? 0 : gm_ceil_div(part->rows, plan->block_rows) * gm_ceil_div(part->cols, plan->block_cols);
}

int64_t gm_matmul_plan_bytes_read(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    if (part->idle)
        return 0;
    int64_t c0 = part->layer == 0 ? part->rows * part->cols * p->file_bytes_c0 : 0;
    if (plan->same)
        return p->m * p->k * p->file_bytes_a + c0;
    int64_t depth = gm_matmul_plan_depth(plan, part->leaf0, part->leaf1);
    return part->rows * depth * p->file_bytes_a * gm_ceil_div(part->cols, plan->block_cols) +
           part->cols * depth * p->file_bytes_b * gm_ceil_div(part->rows, plan->block_rows) + c0;
}

/* Seconds that the busiest rank of a grid would take, by the rates of the problem. */
static double grid_seconds(const gm_matmul_plan *plan, int64_t R, int64_t C, int64_t K)
{
    const gm_matmul_problem *p = &plan->problem;
    double rows = (double)gm_min(gm_ceil_div(gm_ceil_div(p->m, plan->tile), R) * plan->tile, p->m);
    double cols = (double)gm_min(gm_ceil_div(gm_ceil_div(p->n, plan->tile), C) * plan->tile, p->n);
    double depth = (double)gm_min(gm_ceil_div(plan->leaves, K) * plan->leaf, p->k);
    double flop = 2 * rows * cols * depth,
           bytes = depth * (rows * (double)p->file_bytes_a + cols * (double)p->file_bytes_b);
    /* The owner receives every leaf of the other layers. */
    double moved = K == 1 ? 0 : rows * cols * (double)p->accumulator_bytes * (double)(plan->leaves - plan->leaves / K);
    return flop / p->flop_rate + bytes / p->read_rate + moved / p->exchange_rate;
}

static int choose_grid(gm_matmul_plan *plan)
{
    const gm_matmul_problem *p = &plan->problem;
    double best = INFINITY;
    for (int64_t K = 1; K <= p->ranks; K++)
        for (int64_t R = 1; R * K <= p->ranks; R++) {
            int64_t C = p->ranks / (R * K);
            double seconds = grid_seconds(plan, R, C, K);
            if (seconds < best * (1 - 1e-9)) {
                best = seconds;
                plan->grid[0] = R;
                plan->grid[1] = C;
                plan->grid[2] = K;
            }
        }
    return GM_OK;
}

static int set_grid(gm_matmul_plan *plan)
{
    const int64_t *g = plan->problem.grid;
    if (g[0] == 0)
        return choose_grid(plan);
    int64_t needed = gm_mul_sat(gm_mul_sat(g[0], g[1]), g[2]);
    if (needed != plan->problem.ranks)
        return gm_fail(GM_EUSAGE, "--grid %lldx%lldx%lld is for %lld ranks, there are %d", (long long)g[0],
                       (long long)g[1], (long long)g[2], (long long)needed, plan->problem.ranks);
    memcpy(plan->grid, g, sizeof plan->grid);
    return GM_OK;
}

/* The largest part of any rank, which must fit: the first rank's, as the first shares of a range are the larger ones.
 */
static void largest_part(const gm_matmul_plan *plan, gm_matmul_part *largest)
{
    gm_matmul_plan_part(plan, 0, largest);
}

static int64_t area(int64_t rows, int64_t cols, int64_t element)
{
    return gm_mul_sat(gm_mul_sat(rows, gm_tiling_ld(cols, element)), element);
}

/* Bytes of device memory without the ring. */
static int64_t device_bytes(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t depth = gm_min(gm_mul_sat(gm_matmul_plan_panel_leaves(plan, part), plan->leaf),
                           gm_matmul_plan_depth(plan, part->leaf0, part->leaf1));
    int64_t r = plan->block_rows, c = plan->block_cols;
    int64_t acc = area(r, c, p->accumulator_bytes);
    /* Whichever way round a panel lies, its rows are padded by less than GM_TILING_ROW_ALIGN bytes. */
    int64_t a = gm_max(area(r, depth, p->operand_bytes), area(depth, r, p->operand_bytes));
    int64_t b = gm_max(area(c, depth, p->operand_bytes), area(depth, c, p->operand_bytes));
    int64_t panels = gm_mul_sat(plan->buffers, gm_add_sat(a, b));
    if (plan->same)
        panels = gm_max(area(p->m, p->k, p->operand_bytes), area(p->k, p->m, p->operand_bytes));
    int64_t vectors = gm_mul_sat(gm_add_sat(gm_add_sat(r, c), gm_mul_sat(depth, VECTORS_PER_K)), sizeof(double));
    vectors = gm_add_sat(vectors, gm_matmul_plan_sums_bytes(r, c));
    int64_t tiles = plan->tile_count * plan->tile * plan->tile * p->accumulator_bytes;
    int64_t band = gm_mul_sat(gm_mul_sat(plan->band_rows, c), p->file_bytes_c);
    int64_t sum = gm_add_sat(gm_add_sat(gm_add_sat(acc, band), panels), gm_add_sat(vectors, tiles));
    return gm_add_sat(sum, ALLOCATIONS * GM_ALLOC_OVERHEAD);
}

/* Elements of C that the device works on at one time, about: a tile for each thread, or two blocks of threads for each
 * multiprocessor. */
static int64_t wave_of(const gm_matmul_plan *plan)
{
    const int64_t each = 2 * 128 * 128;
    int64_t multiprocessors = plan->problem.multiprocessors;
    return multiprocessors ? multiprocessors * each : plan->budget.threads * plan->tile * plan->tile;
}

/* Rows of the bands of a block: whole tiles, some waves of them. */
static int64_t band_of(const gm_matmul_plan *plan)
{
    int64_t rows = gm_ceil_div(plan->block_rows, BANDS_WANTED), least = gm_mul_sat(WAVES_LEAST, wave_of(plan));
    rows = gm_max(rows, gm_ceil_div(least, gm_max(plan->block_cols, 1)));
    return gm_min(gm_round_up(gm_max(rows, 1), plan->tile), plan->block_rows);
}

/* The cost of the block and step that are set. */
static gm_ring_cost cost_of(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    int64_t check = gm_mul_sat(gm_add_sat(part->rows, part->cols), sizeof(double));
    plan->band_rows = band_of(plan);
    return (gm_ring_cost){.slot = slot_bytes(plan),
                          .host = check + 2 * GM_ALLOC_OVERHEAD,
                          .device = device_bytes(plan, part),
                          .pieces = INT64_MAX,
                          .slots = usual_depth(&plan->budget)};
}

static int fits(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    gm_ring_cost cost = cost_of(plan, part);
    return gm_ring_plan_recost(&plan->ring, &plan->budget, &cost);
}

/* All leaves of a part on the device: then reading runs ahead of computing, and what is left to compute when all is
 * read goes band by band. A = B is kept whole where that reads less. */
static int try_keep(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t leaves = part->leaf1 - part->leaf0;
    int buffers = plan->buffers;
    if (p->k == 0 || plan->grid[2] > 1)
        return 0;
    plan->keep = 1;
    plan->buffers = 1;
    plan->block_rows = part->rows;
    plan->block_cols = part->cols;
    plan->same = p->shared && p->m <= part->rows + part->cols;
    plan->step_leaves = gm_max(leaves, 1);
    if (plan->same && fits(plan, part))
        return 1;
    plan->same = 0;
    plan->step_leaves = gm_max(gm_ceil_div(leaves, STEPS_WANTED), 1);
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

/* The largest block, near a square, whose smallest step still fits: the fewest bytes are read then. */
static int choose_block(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    int64_t leaves = part->leaf1 - part->leaf0,
            wanted = gm_max(gm_ceil_div(leaves, plan->budget.unified ? STEPS_ON_HOST : STEPS_WANTED), 1);
    int64_t rows = gm_max(gm_ceil_div(part->rows, plan->tile), 1),
            cols = gm_max(gm_ceil_div(part->cols, plan->tile), 1);
    for (;;) {
        plan->block_rows = gm_min(rows * plan->tile, part->rows);
        plan->block_cols = gm_min(cols * plan->tile, part->cols);
        if (most_leaves(plan, part, wanted))
            return 1;
        if (rows == 1 && cols == 1)
            return 0;
        if (rows >= cols)
            rows = gm_min(gm_ceil_div(rows * 7, 8), rows - 1);
        else
            cols = gm_min(gm_ceil_div(cols * 7, 8), cols - 1);
    }
}

/* The ring is planned for the least block, with one panel of one leaf each. */
typedef struct least_block {
    gm_matmul_plan *plan;
    gm_matmul_part part;
} least_block;

static void cut(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    (void)budget;
    const least_block *least = context;
    gm_matmul_plan *plan = least->plan;
    plan->piece = gm_max(bytes, GM_RING_LEAST_PIECE);
    plan->block_rows = gm_min(plan->tile, least->part.rows);
    plan->block_cols = gm_min(plan->tile, least->part.cols);
    plan->step_leaves = plan->buffers = 1;
    *cost = cost_of(plan, &least->part);
}

/* The ring first, then the largest block that fits the rest: with two panels in flight, or one. */
static int choose_sizes(gm_matmul_plan *plan, const gm_matmul_part *part, const gm_ring_request *asked,
                        gm_ring_budget *need)
{
    const gm_ring_budget *budget = &plan->budget;
    int64_t depth = asked->depth ? asked->depth : usual_depth(budget);
    int64_t usual = gm_min(budget->unified ? default_piece : staged_piece,
                           gm_min(budget->host, budget->device) / (8 * depth));
    int64_t tiles = gm_min(budget->host, budget->device) / 8 /
                    (plan->tile * plan->tile * plan->problem.accumulator_bytes);
    least_block least = {plan, *part};
    gm_ring_request request = *asked;
    request.usual = gm_max(usual, GM_RING_LEAST_PIECE);
    request.least = GM_RING_LEAST_PIECE;
    request.cut = cut;
    request.context = &least;
    plan->tile_count = plan->problem.wants_tiles ? gm_max(1, gm_min(budget->threads, tiles)) : 0;
    int made = gm_ring_plan_make(&request, budget, &plan->ring, need);
    if (!made && plan->tile_count > 1) { /* fewer threads rather than no room for the block */
        plan->tile_count = 1;
        made = gm_ring_plan_make(&request, budget, &plan->ring, need);
    }
    if (!made)
        return GM_EDEVICE;
    for (plan->buffers = 2; plan->buffers >= 1; plan->buffers--) /* with one, the least block fits */
        if (try_keep(plan, part) || choose_block(plan, part))
            break;
    return GM_OK;
}

int gm_matmul_plan_make(const gm_matmul_problem *problem, const gm_ring_budget *budget, const gm_ring_request *request,
                        gm_matmul_plan *plan, gm_ring_budget *need)
{
    *plan = (gm_matmul_plan){.problem = *problem, .budget = *budget};
    plan->tile = gm_tiling_tile(problem->m, problem->n, problem->max_tile);
    plan->leaf = gm_tiling_leaf(problem->precision, problem->k);
    plan->leaves = gm_ceil_div(problem->k, plan->leaf);
    int status = set_grid(plan);
    if (status)
        return status;
    gm_matmul_part part;
    largest_part(plan, &part);
    if (part.rows == 0 || part.cols == 0)
        part.rows = part.cols = 0;
    return choose_sizes(plan, &part, request, need);
}
