#include "src/matmul/matmul.h"

#include "base/size.h"

int64_t gm_matmul_k(const gm_matmul *p, int64_t leaf)
{
    return gm_min(leaf * p->plan.leaf, p->c->k);
}

int64_t gm_matmul_operand_bytes(const gm_matmul *p)
{
    return (int64_t)gm_dtype_size(p->product->operand);
}

gm_dtype gm_matmul_panel_type(const gm_matmul *p, int matrix)
{
    return gm_panel_type(p->product->operand, p->c->operand[matrix].type);
}

gm_dtype gm_matmul_acc_type(const gm_matmul *p)
{
    const gm_matmul_case *c = p->c;
    int is_sum = c->alpha == 1 && !c->has_c0 && !gm_matmul_plan_chains(&p->plan);
    int64_t leaves = gm_ceil_div(c->k, p->plan.leaf);
    return is_sum ? gm_product_acc_type(p->product, c->result, leaves, 0) : p->product->accumulator;
}

char *gm_matmul_acc_at(const gm_matmul *p, int64_t element)
{
    return (char *)p->acc + element * (int64_t)gm_dtype_size(gm_matmul_acc_type(p));
}

gm_nonfinite *gm_matmul_rounded(const gm_matmul *p, void *counts)
{
    return gm_matmul_acc_type(p) != p->product->accumulator ? counts : NULL;
}

gm_panel *gm_matmul_panel(gm_matmul *p, int64_t step, int matrix)
{
    return &p->panels[step % p->plan.buffers][p->plan.same ? GM_A : matrix];
}

/* Element (outer, k) of a panel: outer counts rows of op(A) or columns of op(B). */
char *gm_matmul_panel_at(gm_matmul *p, int64_t step, int matrix, int64_t outer, int64_t k)
{
    const gm_panel *panel = gm_matmul_panel(p, step, matrix);
    int outer_is_row = (matrix == GM_A) != p->c->transpose[matrix];
    int64_t element = outer_is_row ? outer * panel->ld + k : k * panel->ld + outer;
    return (char *)panel->data + element * gm_matmul_operand_bytes(p);
}

/* Where a piece's rows or columns and its leaves begin in the panel. A = B kept whole is addressed from its own corner.
 */
char *gm_matmul_panel_of_piece(gm_matmul *p, const gm_piece *piece, int matrix)
{
    if (!p->plan.same)
        return gm_matmul_panel_at(p, piece->step, matrix, matrix == GM_A ? piece->at_row : 0, piece->at_k);
    return gm_matmul_panel_at(p, piece->step, matrix, matrix == GM_A ? piece->row : piece->col,
                              gm_matmul_plan_depth(&p->plan, 0, piece->leaf));
}

char *gm_matmul_strip_at(gm_matmul *p, const gm_piece *piece)
{
    const gm_panel *panel = gm_matmul_panel(p, piece->step, piece->matrix);
    return (char *)panel->data + (piece->at_row * panel->ld + piece->at_col) * gm_matmul_operand_bytes(p);
}

void gm_matmul_place_strip(gm_matmul *p, gm_piece *piece)
{
    const gm_dataset *operand = &p->c->operand[piece->matrix];
    int is_in_turn = !p->plan.ring.buffer, is_filled_once = p->plan.keep;
    if (p->plan.budget.unified || operand->type != gm_matmul_panel_type(p, piece->matrix) || operand->swap ||
        !(is_in_turn || is_filled_once))
        return;
    piece->in_place = gm_matmul_strip_at(p, piece);
    piece->in_width = piece->in / piece->rows;
    piece->in_pitch = gm_matmul_panel(p, piece->step, piece->matrix)->ld * gm_matmul_operand_bytes(p);
}

/* The most k that a panel holds. */
static int64_t panel_depth(const gm_matmul *p)
{
    return gm_matmul_plan_depth(&p->plan, 0, gm_matmul_plan_panel_leaves(&p->plan, &p->part));
}

static void allocate_panel(gm_matmul *p, gm_pool *pool, gm_panel *panel, int matrix)
{
    const gm_matmul_case *c = p->c;
    int64_t rows, cols;
    if (p->plan.same) {
        rows = c->stored_rows[GM_A];
        cols = c->stored_cols[GM_A];
    } else {
        int64_t outer = matrix == GM_A ? gm_min(p->plan.block_rows, p->part.rows)
                                       : gm_min(p->plan.block_cols, p->part.cols);
        int64_t depth = panel_depth(p);
        int outer_is_row = (matrix == GM_A) != c->transpose[matrix];
        rows = outer_is_row ? outer : depth;
        cols = outer_is_row ? depth : outer;
    }
    panel->ld = gm_tiling_ld(cols, p->plan.problem.operand_bytes);
    panel->bytes = rows * panel->ld * p->plan.problem.operand_bytes;
    panel->data = gm_pool_device(pool, rows * panel->ld, (size_t)p->plan.problem.operand_bytes);
    panel->released = gm_pool_event(pool);
}

int gm_matmul_allocate_pinned(gm_matmul *p, gm_pool *pool, int64_t rows, int64_t cols)
{
    p->host_x = gm_pool_pinned(pool, gm_matmul_plan_vectors(rows, cols), 1);
    if (pool->status)
        return pool->status;
    p->host_u = p->host_x + cols;
    p->host_underflow = (uint64_t *)(void *)(p->host_u + rows);
    for (int64_t j = 0; j < cols; j++)
        p->host_x[j] = gm_check_vector(0, p->part.col0 + j);
    for (int64_t i = 0; i < rows; i++)
        p->host_u[i] = gm_check_vector(1, p->part.row0 + i);
    return GM_OK;
}

/* Slices of one allocation: the sums, x, u and the vectors of a step; and their host side. */
static void allocate_check(gm_matmul *p, gm_pool *pool)
{
    int64_t rows = gm_min(p->plan.block_rows, p->part.rows), cols = gm_min(p->plan.block_cols, p->part.cols);
    int64_t depth = panel_depth(p), sums = gm_sum_offset(GM_SUMS, rows, cols);
    p->sums = gm_pool_device(pool, sums + rows + cols + 4 * depth + GM_MATMUL_NOTES, sizeof *p->sums);
    if (gm_matmul_plan_chains(&p->plan))
        p->sums_in = gm_pool_device(pool, gm_sum_offset(GM_SUM_LAYERS, rows, cols), sizeof *p->sums_in);
    p->probe_bytes = (size_t)gm_matmul_plan_probe(&p->plan, depth);
    if (p->probe_bytes)
        p->probe_work = gm_pool_device(pool, (int64_t)p->probe_bytes, 1);
    if (gm_matmul_allocate_pinned(p, pool, p->part.rows, p->part.cols))
        return;
    p->x = p->sums + sums;
    p->u = p->x + cols;
    p->y = p->u + rows;
    p->y_abs = p->y + depth;
    p->v = p->y_abs + depth;
    p->v_abs = p->v + depth;
    p->underflow = (uint64_t *)(void *)(p->v_abs + depth);
}

int gm_matmul_allocate(gm_matmul *p, gm_pool *pool)
{
    const gm_matmul_plan *plan = &p->plan;
    int64_t rows = gm_min(plan->block_rows, p->part.rows), cols = gm_min(plan->block_cols, p->part.cols);
    size_t accumulator = (size_t)plan->problem.accumulator_bytes;
    gm_event **events[] = {&p->loaded, &p->finished, &p->drained, &p->copied};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        *events[i] = gm_pool_event(pool);
    for (int i = 0; i < GM_AHEAD; i++)
        p->multiplied[i] = gm_pool_event(pool);
    for (int buffer = 0; buffer < plan->buffers; buffer++)
        for (int matrix = GM_A; matrix <= (plan->same ? GM_A : GM_B); matrix++)
            allocate_panel(p, pool, &p->panels[buffer][matrix], matrix);
    p->ldacc = gm_tiling_ld(cols, plan->problem.accumulator_bytes);
    p->acc = gm_pool_device(pool, rows * p->ldacc, accumulator);
    p->part_count = gm_matmul_plan_parts(plan, &p->part);
    if (p->part_count)
        p->parts = gm_pool_device(pool, p->part_count * rows * p->ldacc, accumulator);
    if (p->part.leaf0 > 0)
        p->kept = gm_pool_device(pool, gm_mul_sat(p->part.leaf1 - p->part.leaf0, rows * p->ldacc), accumulator);
    if (gm_matmul_plan_chains(plan))
        p->chain.folded = gm_pool_event(pool);
    if (plan->shares)
        p->sharing.loaded = gm_pool_event(pool);
    if (p->part.layer == 0)
        p->band = gm_pool_device(pool, gm_min(plan->band_rows, p->part.rows) * cols,
                                 (size_t)plan->problem.file_bytes_c);
    if (plan->tile_count)
        p->tiles = gm_pool_device(pool, plan->tile_count * plan->tile * plan->tile, accumulator);
    if (plan->problem.work.planes)
        for (int matrix = GM_A; matrix <= GM_B; matrix++)
            p->work[matrix] = gm_pool_device(pool,
                                             (int64_t)gm_split_lay(&plan->problem.work, matrix == GM_A ? rows : cols,
                                                                   panel_depth(p), plan->leaf, p->part_count)
                                                 .bytes,
                                             1);
    allocate_check(p, pool);
    return pool->status;
}
