#include "src/matmul/plan.h"

#include "base/size.h"
#include "base/status.h"
#include "src/exchange/exchange.h"
#include "src/matmul/block.h"
#include "src/matmul/cost.h"
#include "src/stream/stream.h"

#include <math.h>
#include <string.h>

enum {
    FEW_SLOTS = 24, /* of any product of plain data, without buffers of threads */
    USES = 16,      /* more such slots where each of them holds so many pieces, one after the other */
    SMALL = 1 << 20 /* bytes of a thread's buffer that is not filled as often */
};
static const int64_t default_piece = 16 << 20, long_piece = 8 << 20;

/* Bytes that a rank reads, if all of them work. */
static int64_t bytes_of_rank(const gm_matmul_problem *p)
{
    int64_t a = gm_mul_sat(p->m, p->file_bytes_a), b = gm_mul_sat(p->n, p->file_bytes_b);
    return gm_mul_sat(p->k, gm_add_sat(a, b)) / p->ranks;
}

/* Bytes of a thread's buffer: pinned before its first use, as slots are. */
static int64_t usual_buffer(const gm_matmul_problem *p, const gm_ring_budget *budget)
{
    int64_t often = gm_mul_sat(budget->buffer, (int64_t)USES * GM_RING_BUFFERS * budget->threads);
    if (budget->buffer_is_given || bytes_of_rank(p) >= often)
        return budget->buffer;
    return gm_min(budget->buffer, SMALL);
}

/* Slots for each thread and for what is on its way meanwhile. Slots are pinned one after the other, each in about the
 * time in which a thread fills it with plain data from memory: more than a few must be used often. */
static int64_t usual_depth(const gm_matmul_plan *plan, const gm_ring_request *request)
{
    const gm_ring_budget *budget = &plan->budget;
    if (budget->unified)
        return budget->threads + 2;
    int64_t depth = budget->threads + gm_max(4, budget->threads / 2);
    if (!request->buffers || budget->buffer)
        return depth;
    return gm_min(depth, gm_max(FEW_SLOTS, bytes_of_rank(&plan->problem) / GM_MATMUL_PIECE / USES));
}

/* Where I/O threads copy from buffers of their own, a piece is the work of one of them, and costs the ring's thread
 * some calls of the driver: pieces are larger where there are many for each slot. */
static void set_usual(gm_matmul_plan *plan, const gm_ring_request *request)
{
    const int many = 8;
    const gm_ring_budget *budget = &plan->budget;
    plan->slots = request->depth ? request->depth : usual_depth(plan, request);
    int64_t room = gm_min(budget->host, budget->device) / (8 * plan->slots);
    int is_long = request->buffers && budget->buffer &&
                  bytes_of_rank(&plan->problem) / (many * plan->slots) >= long_piece;
    int64_t usual = budget->unified ? default_piece : is_long ? long_piece : GM_MATMUL_PIECE;
    plan->piece = gm_max(gm_min(usual, room), GM_RING_LEAST_PIECE);
}

/* The grid that is expected to be the fastest, of the smallest of those that take as long. Ranks may stay idle: a small
 * product ends before another rank has begun. */
static void choose_grid(gm_matmul_plan *plan, int64_t most_layers)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t down = gm_max(gm_ceil_div(p->m, plan->tile), 1), across = gm_max(gm_ceil_div(p->n, plan->tile), 1);
    double best = INFINITY;
    for (int64_t K = 1; K <= gm_min(gm_min(p->ranks, most_layers), gm_max(plan->leaves, 1)); K++)
        for (int64_t R = 1; R <= gm_min(p->ranks / K, down); R++)
            for (int64_t C = 1; C <= gm_min(p->ranks / (R * K), across); C++) {
                double seconds = gm_matmul_cost_seconds(plan, R, C, K);
                int fewer = R * C * K < plan->grid[0] * plan->grid[1] * plan->grid[2];
                if (seconds > best * (1 + (fewer ? 1e-9 : -1e-9)))
                    continue;
                best = seconds;
                plan->grid[0] = R;
                plan->grid[1] = C;
                plan->grid[2] = K;
            }
}

static int set_grid(gm_matmul_plan *plan, int64_t most_layers)
{
    const int64_t *g = plan->problem.grid;
    if (g[0] == 0) {
        choose_grid(plan, most_layers);
        return GM_OK;
    }
    int64_t needed = gm_mul_sat(gm_mul_sat(g[0], g[1]), g[2]);
    if (needed > plan->problem.ranks)
        return gm_fail(GM_EUSAGE, "--grid %lldx%lldx%lld: needs %lld ranks, the run has %d", (long long)g[0],
                       (long long)g[1], (long long)g[2], (long long)needed, plan->problem.ranks);
    memcpy(plan->grid, g, sizeof plan->grid);
    return GM_OK;
}

/* The largest part of any rank, which must fit: that of the first rank in the layer with the first leaves, as the first
 * shares of a range are the larger ones. */
static void largest_part(const gm_matmul_plan *plan, gm_matmul_part *largest)
{
    gm_matmul_plan_part(plan, (int)(plan->grid[0] * plan->grid[1] * (plan->grid[2] - 1)), largest);
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
    *cost = gm_matmul_block_cost(plan, &least->part);
}

int64_t gm_matmul_tile_count(const gm_matmul_problem *problem, int threads, int64_t most)
{
    int64_t each = problem->wants_tiles;
    return each ? each * gm_max(1, gm_min(threads, most / each)) : 0;
}

/* The ring first, then the blocks that fit the rest: with two panels in flight, or one. */
static int choose_with(gm_matmul_plan *plan, const gm_matmul_part *part, const gm_ring_request *asked,
                       gm_ring_budget *need)
{
    const gm_ring_budget *budget = &plan->budget;
    const int exchange_part = 16; /* of device memory, at most: where there is less, NCCL is not taken */
    int64_t tiles = gm_min(budget->host, budget->device) / 8 /
                    (plan->tile * plan->tile * plan->problem.accumulator_bytes);
    least_block least = {plan, *part};
    gm_ring_request request = *asked;
    set_usual(plan, asked);
    request.usual = plan->piece;
    request.least = GM_RING_LEAST_PIECE;
    request.cut = cut;
    request.context = &least;
    plan->reserves = 0;
    plan->tile_count = gm_matmul_tile_count(&plan->problem, budget->threads, tiles);
    int status = gm_ring_plan_make(&request, budget, &plan->ring, need);
    if (status && plan->tile_count > plan->problem.wants_tiles) { /* fewer threads rather than no room for the block */
        plan->tile_count = plan->problem.wants_tiles;
        status = gm_ring_plan_make(&request, budget, &plan->ring, need);
    }
    if (status)
        return status;
    for (plan->reserves = budget->device / exchange_part >= GM_EXCHANGE_DEVICE; plan->reserves >= 0; plan->reserves--)
        for (plan->buffers = 2; plan->buffers >= 1; plan->buffers--) /* with one and no reserve the least block fits */
            if (gm_matmul_block_choose(plan, part))
                return GM_OK;
    return GM_OK;
}

/* I/O threads copy from their buffers out of turn: only panels that are filled once may take the copies. */
static int choose_sizes(gm_matmul_plan *plan, const gm_matmul_part *part, const gm_ring_request *asked,
                        gm_ring_budget *need)
{
    int status = choose_with(plan, part, asked, need);
    if (status || !plan->ring.buffer || plan->keep)
        return status;
    plan->budget.buffer = 0;
    return choose_with(plan, part, asked, need);
}

static int fail_unshared(const gm_matmul_plan *plan)
{
    const char *reason = gm_matmul_plan_hindrance(plan);
    return gm_fail(GM_EUSAGE, "--panels exchange: impossible with the grid %lldx%lldx%lld: %s",
                   (long long)plan->grid[0], (long long)plan->grid[1], (long long)plan->grid[2],
                   reason ? reason : "a rank has too little memory for the exchange");
}

static int make(const gm_matmul_problem *problem, const gm_ring_budget *budget, const gm_ring_request *request,
                int64_t most_layers, gm_matmul_plan *plan, gm_ring_budget *need)
{
    *plan = (gm_matmul_plan){.problem = *problem, .budget = *budget};
    plan->budget.buffer = usual_buffer(problem, budget);
    plan->tile = gm_tiling_tile(problem->m, problem->n, problem->max_tile);
    plan->leaf = gm_tiling_leaf(&problem->leaf, problem->m, problem->n, problem->k);
    plan->leaves = gm_ceil_div(problem->k, plan->leaf);
    set_usual(plan, request);
    int status = set_grid(plan, most_layers);
    if (status)
        return status;
    gm_matmul_part part;
    largest_part(plan, &part);
    if (part.rows == 0 || part.cols == 0)
        part.rows = part.cols = 0;
    status = choose_sizes(plan, &part, request, need);
    if (!status && problem->panels == GM_PANELS_EXCHANGE && !plan->shares)
        return fail_unshared(plan);
    return status;
}

/* Layers take memory that one of them does without. */
int gm_matmul_plan_make(const gm_matmul_problem *problem, const gm_ring_budget *budget, const gm_ring_request *request,
                        gm_matmul_plan *plan, gm_ring_budget *need)
{
    int status = make(problem, budget, request, INT64_MAX, plan, need);
    if (status == GM_EDEVICE && problem->grid[0] == 0 && plan->grid[2] > 1)
        status = make(problem, budget, request, 1, plan, need);
    return status;
}
