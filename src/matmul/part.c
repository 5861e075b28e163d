/* The part of a rank in a plan: its rows and columns of C, its leaves, blocks, bands and bytes. */
#include "src/matmul/plan.h"

#include "base/range.h"
#include "base/size.h"

#include <string.h>

enum {
    BANDS_WANTED = 12, /* of a block: one of them is written after the last product */
    WAVES_LEAST = 4    /* of a band that is multiplied: the last wave of a kernel leaves most of the device idle */
};

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
    gm_range leaves = gm_range_split(plan->leaves, 1, K, K - 1 - part->layer);
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

int gm_matmul_plan_chains(const gm_matmul_plan *plan)
{
    return plan->grid[2] > 1 && plan->leaves > 0;
}

int64_t gm_matmul_plan_kept_leaves(const gm_matmul_plan *plan)
{
    return plan->grid[2] > 1 ? gm_range_length(gm_range_split(plan->leaves, 1, plan->grid[2], 1)) : 0;
}

gm_matmul_block gm_matmul_plan_block(const gm_matmul_plan *plan, const gm_matmul_part *part, int64_t index)
{
    int64_t across = gm_ceil_div(part->cols, plan->block_cols);
    int64_t down = index / across * plan->block_rows, right = index % across * plan->block_cols;
    return (gm_matmul_block){.row0 = part->row0 + down,
                             .rows = gm_min(plan->block_rows, part->rows - down),
                             .col0 = part->col0 + right,
                             .cols = gm_min(plan->block_cols, part->cols - right)};
}

int64_t gm_matmul_plan_step_end(const gm_matmul_plan *plan, const gm_matmul_part *part, int64_t leaf)
{
    int64_t before = leaf - part->leaf0, left = part->leaf1 - leaf, leaves = plan->step_leaves;
    if (!plan->budget.unified && !plan->same && (plan->keep || before == 0))
        leaves = gm_min(leaves, gm_max(before, 1));
    if (gm_matmul_plan_chains(plan) && !plan->budget.unified && left > 1)
        left--;
    return leaf + gm_min(leaves, left);
}

int64_t gm_matmul_plan_panel_leaves(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    int64_t all = gm_max(part->leaf1 - part->leaf0, plan->leaves > 0);
    return plan->keep ? all : gm_min(plan->step_leaves, all);
}

int64_t gm_matmul_plan_blocks(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    return part->idle ? 0 : gm_ceil_div(part->rows, plan->block_rows) * gm_ceil_div(part->cols, plan->block_cols);
}

const char *gm_matmul_plan_hindrance(const gm_matmul_plan *plan)
{
    gm_matmul_part last;
    int64_t in_layer = plan->grid[0] * plan->grid[1];
    gm_matmul_plan_part(plan, (int)(in_layer * plan->grid[2]) - 1, &last);
    if (plan->budget.unified)
        return "the processor reads a panel where it uses it";
    if (in_layer == 1)
        return "each layer of k has one rank, which reads all";
    if (plan->grid[2] > 1)
        return "layers of k exchange the sums of C instead";
    if (plan->leaves == 0)
        return "there is nothing to multiply";
    if (last.idle)
        return "some ranks of the grid have no tile of C";
    if (plan->same)
        return "A and B are the same data, of which each rank keeps the whole";
    return plan->keep ? NULL : "a rank has too little memory to keep its rows of A and its columns of B";
}

gm_matmul_circle gm_matmul_plan_circle(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix)
{
    int64_t R = plan->grid[0], C = plan->grid[1], row = part->owner / C, col = part->owner % C;
    if (!plan->shares)
        return (gm_matmul_circle){.size = 1, .first = part->owner};
    return matrix ? (gm_matmul_circle){.size = R, .index = row, .first = col, .stride = C}
                  : (gm_matmul_circle){.size = C, .index = col, .first = row * C, .stride = 1};
}

/* Share `index` of [begin, begin + count): even, and with borders at multiples of unit where each share has one. The
 * first ones are the larger ones. */
static gm_range share_of(int64_t begin, int64_t count, int64_t unit, int64_t shares, int64_t index)
{
    gm_range r = gm_range_split(count, 1, shares, index);
    if (unit <= 1 || count / shares < unit)
        return (gm_range){begin + r.begin, begin + r.end};
    return (gm_range){index ? gm_round_up(begin + r.begin, unit) : begin,
                      index + 1 < shares ? gm_round_up(begin + r.end, unit) : begin + count};
}

gm_matmul_span gm_matmul_plan_chunk(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix, int64_t index,
                                    int64_t leaf0, int64_t leaf1)
{
    const gm_matmul_problem *p = &plan->problem;
    gm_matmul_span s = {.outer0 = matrix ? part->col0 : part->row0,
                        .outer = matrix ? part->cols : part->rows,
                        .k0 = gm_matmul_plan_depth(plan, 0, leaf0),
                        .depth = gm_matmul_plan_depth(plan, leaf0, leaf1)};
    int64_t *begin = p->by_rows[matrix] ? &s.outer0 : &s.k0, *count = p->by_rows[matrix] ? &s.outer : &s.depth;
    int64_t size = gm_matmul_plan_circle(plan, part, matrix).size;
    gm_range own = share_of(*begin, *count, p->row_unit[matrix], size, index);
    *begin = own.begin;
    *count = gm_range_length(own);
    return s;
}

/* Elements that member `index` of a circle reads. */
static int64_t chunk_elements(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix, int64_t index)
{
    int64_t sum = 0;
    for (int64_t leaf = part->leaf0, end; leaf < part->leaf1; leaf = end) {
        end = gm_matmul_plan_step_end(plan, part, leaf);
        gm_matmul_span s = gm_matmul_plan_chunk(plan, part, matrix, index, leaf, end);
        sum += s.outer * s.depth;
    }
    return sum;
}

static int64_t own_elements(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix)
{
    return chunk_elements(plan, part, matrix, gm_matmul_plan_circle(plan, part, matrix).index);
}

void gm_matmul_plan_exchanged(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix, int64_t *received,
                              int64_t *sent)
{
    gm_matmul_circle c = gm_matmul_plan_circle(plan, part, matrix);
    int64_t all = (matrix ? part->cols : part->rows) * gm_matmul_plan_depth(plan, part->leaf0, part->leaf1);
    *received = all - chunk_elements(plan, part, matrix, c.index);
    *sent = all -
            chunk_elements(plan, part, matrix, (c.index + 1) % c.size); /* the next one has read that one itself */
}

int64_t gm_matmul_plan_operand_read(const gm_matmul_plan *plan, const gm_matmul_part *part, int operand)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t bytes = operand == GM_B ? p->file_bytes_b : p->file_bytes_a;
    if (part->idle)
        return 0;
    if (operand == GM_C0)
        return part->layer == 0 ? part->rows * part->cols * p->file_bytes_c0 : 0;
    if (plan->same)
        return operand == GM_B ? 0 : p->m * p->k * bytes;
    if (plan->shares)
        return own_elements(plan, part, operand) * bytes;
    int64_t outer = operand == GM_B ? part->cols : part->rows;
    int64_t times = operand == GM_B ? gm_ceil_div(part->rows, plan->block_rows)
                                    : gm_ceil_div(part->cols, plan->block_cols);
    return outer * gm_matmul_plan_depth(plan, part->leaf0, part->leaf1) * bytes * times;
}

int64_t gm_matmul_plan_bytes_read(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    int64_t sum = 0;
    for (int operand = 0; operand < GM_OPERANDS; operand++)
        sum += gm_matmul_plan_operand_read(plan, part, operand);
    return sum;
}

/* Elements of C that the device works on at one time, about: a tile for each thread, or two blocks of threads for each
 * multiprocessor. */
static int64_t wave_of(const gm_matmul_plan *plan)
{
    const int64_t each = 2 * GM_MATMUL_UNIT * GM_MATMUL_UNIT;
    int64_t multiprocessors = plan->problem.multiprocessors;
    return multiprocessors ? multiprocessors * each : plan->budget.threads * plan->tile * plan->tile;
}

int64_t gm_matmul_plan_band(const gm_matmul_plan *plan)
{
    int64_t rows = gm_ceil_div(plan->block_rows, BANDS_WANTED);
    int64_t least = gm_matmul_plan_chains(plan)
                        ? 0
                        : gm_mul_sat(WAVES_LEAST, wave_of(plan)); /* in a chain nothing is multiplied */
    rows = gm_max(rows, gm_ceil_div(least, gm_max(plan->block_cols, 1)));
    return gm_min(gm_round_up(gm_max(rows, 1), plan->tile), plan->block_rows);
}
