#include "src/matmul/plan.h"

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "kernels/matmul/calls.h"
#include "src/exchange/exchange.h"
#include "src/exchange/probe.h"
#include "src/exchange/staged.h"
#include "src/matmul/cost.h"
#include "src/stream/stream.h"

#include <math.h>
#include <string.h>

enum {
    STEPS_ON_HOST = 1, /* on the processor, where each step brings all of acc through its caches once more */
    VECTORS_PER_K = 4, /* float64 values per k of a step, for the check of the product */
    ALLOCATIONS = 8,   /* of device memory */
    OF_CHAIN = 2,      /* and of a rank whose layer is one of several */
    OF_WORK = 2,       /* and for a product with work space */
    FEW_SLOTS = 24,    /* of any product of plain data, without buffers of threads */
    USES = 16,         /* more such slots where each of them holds so many pieces, one after the other */
    SMALL = 1 << 20    /* bytes of a thread's buffer that is not filled as often */
};
static const int64_t default_piece = 16 << 20, staged_piece = 4 << 20, long_piece = 8 << 20;

/* Bytes of the sums that the check keeps of a block. */
static int64_t sums_bytes(int64_t block_rows, int64_t block_cols)
{
    return gm_mul_sat(gm_sum_offset(GM_SUMS, block_rows, block_cols), sizeof(double));
}

int64_t gm_matmul_plan_vectors(int64_t rows, int64_t cols)
{
    return gm_mul_sat(gm_add_sat(gm_add_sat(rows, cols), GM_MATMUL_NOTES), sizeof(double));
}

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
    return gm_min(depth, gm_max(FEW_SLOTS, bytes_of_rank(&plan->problem) / staged_piece / USES));
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
    int64_t usual = budget->unified ? default_piece : is_long ? long_piece : staged_piece;
    plan->piece = gm_max(gm_min(usual, room), GM_RING_LEAST_PIECE);
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
    return gm_min(plan->piece, staged_piece);
}

int64_t gm_matmul_plan_result(const gm_matmul_plan *plan)
{
    return plan->ring.buffer ? buffered_result(plan) : plan->piece;
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

/* The cost of the block and step that are set. */
static gm_ring_cost cost_of(gm_matmul_plan *plan, const gm_matmul_part *part)
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
    gm_ring_cost cost = cost_of(plan, part);
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

/* The largest block, near a square, whose smallest step still fits: the fewest bytes are read then. */
static int choose_block(gm_matmul_plan *plan, const gm_matmul_part *part)
{
    int64_t leaves = part->leaf1 - part->leaf0,
            wanted = gm_max(gm_ceil_div(leaves, plan->budget.unified ? STEPS_ON_HOST : GM_MATMUL_STEPS), 1);
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

int64_t gm_matmul_tile_count(const gm_matmul_problem *problem, int threads, int64_t most)
{
    int64_t each = problem->wants_tiles;
    return each ? each * gm_max(1, gm_min(threads, most / each)) : 0;
}

/* The ring first, then the largest block that fits the rest: with two panels in flight, or one. */
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
            if (try_keep(plan, part) || choose_block(plan, part))
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
