#include "src/plan.h"

#include "base/size.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum {
    LEAF_UNIT = 64,         /* leaves are multiples of it */
    ROW_ALIGN = 64,         /* bytes: rows of panels begin at multiples of it */
    TILE_UNIT = 64,
    TILE_LEAST = 128,
    TILES_WANTED = 8,       /* along each side of C: enough for threads and ranks to share */
    STEPS_WANTED = 12,      /* of a block, so that reading and computing overlap */
    STEPS_ON_HOST = 1,      /* on the processor, where each step brings all of acc through its caches once more */
    BANDS_WANTED = 12,      /* of a block: what is written after the last product is one of them */
    WAVES_LEAST = 4,        /* of a band: the last wave of a kernel leaves most of the device idle */
    SLOT_UNIT = 256,        /* bytes */
    SUMS_PER_ROW = 6,       /* float64 values per row or column of a block that the check of the product holds */
    SUMS_ALONE = 8,         /* those that belong to neither */
    VECTORS_PER_K = 4,      /* float64 values per k of a step, for the same */
};
/* Bytes by which a handful of allocations may be rounded up. */
static const int64_t ROUNDING = 8 * 8192;
static const int64_t default_piece = 16 << 20, staged_piece = 4 << 20, least_piece = 4096;

int64_t gm_plan_leaf(gm_precision precision, int64_t k)
{
    /* The rounding errors of a sum in leaves of length L grow like sqrt(L^2/k + k/L). 8 sqrt(k) keeps the first term at 64, and k^(2/3) balances
     * both where k is large. */
    double length = fmax(8 * sqrt((double)k), cbrt((double)k) * cbrt((double)k));
    int64_t least = gm_precision_get(precision)->leaf;
    return gm_max(least, gm_round_up((int64_t)ceil(length), LEAF_UNIT));
}

int64_t gm_plan_ld(int64_t elements, int64_t element_bytes)
{
    return gm_round_up(elements, ROW_ALIGN / element_bytes);
}

int64_t gm_plan_sums_bytes(int64_t block_rows, int64_t block_cols)
{
    return gm_mul_sat(gm_add_sat(gm_mul_sat(SUMS_PER_ROW, gm_add_sat(block_rows, block_cols)), SUMS_ALONE), sizeof(double));
}

int64_t gm_plan_slot_bytes(const gm_plan *plan)
{
    return gm_round_up(gm_min(gm_max(plan->piece, gm_plan_sums_bytes(plan->block_rows, plan->block_cols)), INT64_MAX - SLOT_UNIT), SLOT_UNIT);
}

int64_t gm_plan_depth(const gm_plan *plan, int64_t leaf0, int64_t leaf1)
{
    return gm_min(gm_mul_sat(leaf1, plan->leaf), plan->problem.k) - gm_min(leaf0 * plan->leaf, plan->problem.k);
}

/* Small enough for threads and ranks to share a small C, large enough for the kernel. */
int64_t gm_plan_tile(int64_t m, int64_t n, int64_t max_tile)
{
    double side = sqrt((double)m * (double)n) / TILES_WANTED;
    int64_t tile = gm_round_up((int64_t)side, TILE_UNIT);
    return gm_min(gm_max(tile, TILE_LEAST), max_tile);
}

/* Units [from, to) of `units` for share index of `of`. */
static void split(int64_t units, int64_t index, int64_t of, int64_t *from, int64_t *to)
{
    int64_t base = units / of, more = units % of;
    *from = index * base + gm_min(index, more);
    *to = *from + base + (index < more);
}

void gm_plan_part(const gm_plan *plan, int rank, gm_part *part)
{
    const gm_problem *p = &plan->problem;
    int64_t R = plan->grid[0], C = plan->grid[1], K = plan->grid[2];
    memset(part, 0, sizeof *part);
    if (rank >= R * C * K) {
        part->idle = 1;
        return;
    }
    int64_t in_layer = rank % (R * C), from, to;
    part->layer = (int)(rank / (R * C));
    part->owner = in_layer;
    split(gm_ceil_div(p->m, plan->tile), in_layer / C, R, &from, &to);
    part->row0 = gm_min(from * plan->tile, p->m);
    part->rows = gm_min(to * plan->tile, p->m) - part->row0;
    split(gm_ceil_div(p->n, plan->tile), in_layer % C, C, &from, &to);
    part->col0 = gm_min(from * plan->tile, p->n);
    part->cols = gm_min(to * plan->tile, p->n) - part->col0;
    split(plan->leaves, part->layer, K, &part->leaf0, &part->leaf1);
    part->idle = part->rows == 0 || part->cols == 0;
}

int gm_plan_partner(const gm_plan *plan, const gm_part *part, int layer)
{
    return (int)(layer * plan->grid[0] * plan->grid[1] + part->owner);
}

int64_t gm_plan_step_end(const gm_plan *plan, const gm_part *part, int64_t leaf)
{
    int64_t leaves = plan->problem.stage && leaf == part->leaf0 && !plan->same ? 1 : plan->step_leaves;
    return gm_min(leaf + leaves, part->leaf1);
}

int64_t gm_plan_panel_leaves(const gm_plan *plan, const gm_part *part)
{
    int64_t all = part->leaf1 - part->leaf0;
    return plan->keep ? all : gm_min(plan->step_leaves, all);
}

int64_t gm_plan_blocks(const gm_plan *plan, const gm_part *part)
{
    return part->idle ? 0 : gm_ceil_div(part->rows, plan->block_rows) * gm_ceil_div(part->cols, plan->block_cols);
}

int64_t gm_plan_bytes_read(const gm_plan *plan, const gm_part *part)
{
    const gm_problem *p = &plan->problem;
    if (part->idle)
        return 0;
    int64_t c0 = part->layer == 0 ? part->rows * part->cols * p->file_bytes_c0 : 0;
    if (plan->same)
        return p->m * p->k * p->file_bytes_a + c0;
    int64_t depth = gm_plan_depth(plan, part->leaf0, part->leaf1);
    return part->rows * depth * p->file_bytes_a * gm_ceil_div(part->cols, plan->block_cols) +
           part->cols * depth * p->file_bytes_b * gm_ceil_div(part->rows, plan->block_rows) + c0;
}

/* Seconds that the busiest rank of a grid would take, by the rates of the problem. */
static double cost(const gm_plan *plan, int64_t R, int64_t C, int64_t K)
{
    const gm_problem *p = &plan->problem;
    double rows = (double)gm_min(gm_ceil_div(gm_ceil_div(p->m, plan->tile), R) * plan->tile, p->m);
    double cols = (double)gm_min(gm_ceil_div(gm_ceil_div(p->n, plan->tile), C) * plan->tile, p->n);
    double depth = (double)gm_min(gm_ceil_div(plan->leaves, K) * plan->leaf, p->k);
    double flop = 2 * rows * cols * depth, bytes = depth * (rows * (double)p->file_bytes_a + cols * (double)p->file_bytes_b);
    /* The owner takes in every leaf of the other layers. */
    double moved = K == 1 ? 0 : rows * cols * (double)p->accumulator_bytes * (double)(plan->leaves - plan->leaves / K);
    return flop / p->flop_rate + bytes / p->read_rate + moved / p->exchange_rate;
}

static int choose_grid(gm_plan *plan)
{
    const gm_problem *p = &plan->problem;
    double best = INFINITY;
    for (int64_t K = 1; K <= p->ranks; K++)
        for (int64_t R = 1; R * K <= p->ranks; R++) {
            int64_t C = p->ranks / (R * K);
            double seconds = cost(plan, R, C, K);
            if (seconds < best * (1 - 1e-9)) {
                best = seconds;
                plan->grid[0] = R;
                plan->grid[1] = C;
                plan->grid[2] = K;
            }
        }
    return GM_OK;
}

static int take_grid(gm_plan *plan)
{
    const int64_t *g = plan->problem.grid;
    if (g[0] == 0)
        return choose_grid(plan);
    int64_t needed = gm_mul_sat(gm_mul_sat(g[0], g[1]), g[2]);
    if (needed != plan->problem.ranks)
        return gm_fail(GM_EUSAGE, "--grid %lldx%lldx%lld is for %lld ranks, there are %d", (long long)g[0], (long long)g[1],
                       (long long)g[2], (long long)needed, plan->problem.ranks);
    memcpy(plan->grid, g, sizeof plan->grid);
    return GM_OK;
}

/* The largest part of any rank: what must fit. */
static void largest_part(const gm_plan *plan, gm_part *largest)
{
    gm_plan_part(plan, 0, largest); /* split() gives the first ranks the larger shares */
}

static int64_t area(int64_t rows, int64_t cols, int64_t element)
{
    return gm_mul_sat(gm_mul_sat(rows, gm_plan_ld(cols, element)), element);
}

/* Bytes of device memory that a plan takes. */
static int64_t device_bytes(const gm_plan *plan, const gm_part *part)
{
    const gm_problem *p = &plan->problem;
    int64_t depth = gm_min(gm_mul_sat(gm_plan_panel_leaves(plan, part), plan->leaf), gm_plan_depth(plan, part->leaf0, part->leaf1));
    int64_t r = plan->block_rows, c = plan->block_cols;
    int64_t acc = area(r, c, p->accumulator_bytes);
    /* Whichever way round a panel lies, its rows are padded by less than ROW_ALIGN bytes. */
    int64_t a = gm_max(area(r, depth, p->operand_bytes), area(depth, r, p->operand_bytes));
    int64_t b = gm_max(area(c, depth, p->operand_bytes), area(depth, c, p->operand_bytes));
    int64_t panels = gm_mul_sat(plan->buffers, gm_add_sat(a, b));
    if (plan->same)
        panels = gm_max(area(p->m, p->k, p->operand_bytes), area(p->k, p->m, p->operand_bytes));
    int64_t vectors = gm_mul_sat(gm_add_sat(gm_add_sat(r, c), gm_mul_sat(depth, VECTORS_PER_K)), sizeof(double));
    vectors = gm_add_sat(vectors, gm_plan_sums_bytes(r, c));
    int64_t slots = p->stage ? gm_mul_sat(plan->depth, gm_plan_slot_bytes(plan)) : 0;
    int64_t tiles = plan->tile_count * plan->tile * plan->tile * p->accumulator_bytes;
    int64_t band = gm_mul_sat(gm_mul_sat(plan->band_rows, c), p->file_bytes_c);
    int64_t sum = gm_add_sat(gm_add_sat(gm_add_sat(acc, band), panels), gm_add_sat(gm_add_sat(vectors, tiles), slots));
    return gm_add_sat(gm_add_sat(sum, p->device_used), ROUNDING); /* each allocation may be rounded up */
}

static int64_t host_bytes(const gm_plan *plan, const gm_part *part)
{
    int64_t ring = gm_mul_sat(plan->depth, gm_add_sat(gm_plan_slot_bytes(plan), 8192));
    int64_t check = gm_mul_sat(gm_add_sat(part->rows, part->cols), sizeof(double));
    return gm_add_sat(gm_add_sat(ring, check), plan->problem.host_used + 2 * 8192);
}

/* Rows of the bands of a block: whole tiles, some waves of them. */
static int64_t band_of(const gm_plan *plan)
{
    int64_t rows = gm_ceil_div(plan->block_rows, BANDS_WANTED), least = gm_mul_sat(WAVES_LEAST, plan->problem.wave);
    rows = gm_max(rows, gm_ceil_div(least, gm_max(plan->block_cols, 1)));
    return gm_min(gm_round_up(gm_max(rows, 1), plan->tile), plan->block_rows);
}

static int fits(gm_plan *plan, const gm_part *part)
{
    const gm_problem *p = &plan->problem;
    plan->band_rows = band_of(plan);
    plan->device_bytes = device_bytes(plan, part);
    plan->host_bytes = host_bytes(plan, part);
    if (!p->stage) /* the device's memory is the host's as well */
        plan->host_bytes = gm_add_sat(plan->host_bytes, plan->device_bytes);
    return plan->device_bytes <= p->device_budget && plan->host_bytes <= p->host_budget;
}

/* All leaves of a part on the device: then reading runs ahead of computing, and what is left to compute when all is read goes band by band. A = B is
 * kept whole where that reads less. */
static int try_keep(gm_plan *plan, const gm_part *part)
{
    const gm_problem *p = &plan->problem;
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
    if (p->stage && fits(plan, part))
        return 1;
    plan->keep = 0;
    plan->buffers = buffers;
    return 0;
}

/* Fewer leaves at a time, from `most` down to one: the most that fit. 0 when not even one does. */
static int64_t most_leaves(gm_plan *plan, const gm_part *part, int64_t most)
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
static int choose_block(gm_plan *plan, const gm_part *part)
{
    int64_t leaves = part->leaf1 - part->leaf0, wanted = gm_max(gm_ceil_div(leaves, plan->problem.stage ? STEPS_WANTED : STEPS_ON_HOST), 1);
    int64_t rows = gm_max(gm_ceil_div(part->rows, plan->tile), 1), cols = gm_max(gm_ceil_div(part->cols, plan->tile), 1);
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

/* From the comfortable to the least: two panels in flight, then one; a ring of the default size, then smaller ones. */
static int choose_sizes(gm_plan *plan, const gm_part *part)
{
    const gm_problem *p = &plan->problem;
    int64_t least_cap = gm_min(p->device_budget, p->host_budget);
    plan->depth = p->depth ? p->depth : gm_max(3, p->threads + (p->stage ? gm_max(4, p->threads / 2) : 2));
    if (p->wants_tiles) /* fewer threads rather than no room for the block */
        plan->tile_count = gm_max(1, gm_min(p->threads, least_cap / 8 / (plan->tile * plan->tile * p->accumulator_bytes)));
    int64_t piece = p->piece ? p->piece : gm_min(p->stage ? staged_piece : default_piece, least_cap / (8 * plan->depth));
    for (int attempt = 0;; attempt++) {
        plan->piece = gm_max(piece, least_piece);
        for (plan->buffers = 2; plan->buffers >= 1; plan->buffers--)
            if (try_keep(plan, part) || choose_block(plan, part))
                return GM_OK;
        plan->buffers = 1;
        if ((p->piece || plan->piece == least_piece) && (p->depth || plan->depth == 2) && plan->tile_count <= 1)
            break;
        plan->tile_count = gm_min(plan->tile_count, 1);
        if (!p->piece)
            piece /= 4;
        if (!p->depth)
            plan->depth = 2;
    }
    char device[GM_SIZE_TEXT], host[GM_SIZE_TEXT], device_cap[GM_SIZE_TEXT], host_cap[GM_SIZE_TEXT];
    return gm_fail(GM_EDEVICE,
                   "the product does not fit the memory that it may use: it needs at least %s of device memory and %s of host memory a rank, "
                   "allowed are %s and %s (--device-memory, --host-memory)",
                   gm_size_format(plan->device_bytes, device), gm_size_format(plan->host_bytes, host),
                   gm_size_format(p->device_budget, device_cap), gm_size_format(p->host_budget, host_cap));
}

int gm_plan_make(const gm_problem *problem, gm_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->problem = *problem;
    plan->tile = gm_plan_tile(problem->m, problem->n, problem->max_tile);
    plan->leaf = gm_plan_leaf(problem->precision, problem->k);
    plan->leaves = gm_ceil_div(problem->k, plan->leaf);
    int status = take_grid(plan);
    if (status)
        return status;
    gm_part part;
    largest_part(plan, &part);
    if (part.rows == 0 || part.cols == 0)
        part.rows = part.cols = 0;
    return choose_sizes(plan, &part);
}
