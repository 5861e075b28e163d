#include "src/matmul.h"

#include "base/size.h"

#include <string.h>

/* The walk of one rank. For each block of its part of C:
 *
 *   BEGIN, then for each step LOAD A, LOAD B, PROBE, MULTIPLY
 *     on the owner: TAKE the other layers' leaves and sums, in the order of leaves; RESULT; VERDICT
 *     elsewhere:    for each leaf MULTIPLY and SEND; SEND_SUMS at the end of the block
 *
 * Each stage function either fills in a piece and returns 1, or moves the cursor on and returns 0. */
enum { AT_BEGIN, AT_STEP, AT_LOAD, AT_PROBE, AT_MULTIPLY, AT_SEND, AT_SEND_SUMS, AT_TAKE, AT_TAKE_SUMS, AT_RESULT, AT_VERDICT, AT_END };

enum { PART_ALIGN = 256 }; /* of what lies behind one another in a slot */

static void strips_set(gm_strips *s, int64_t row0, int64_t rows, int64_t col0, int64_t cols, int64_t element, int64_t capacity)
{
    int64_t fit = gm_max(capacity / element, 1);
    *s = (gm_strips){.row0 = row0, .row1 = row0 + rows, .col0 = col0, .col1 = col0 + cols, .row = row0, .col = col0,
                     .row_unit = 1, .col_unit = 1};
    s->cols = gm_min(gm_max(cols, 1), fit);
    s->rows = s->cols == cols ? gm_max(fit / s->cols, 1) : 1;
    if (rows == 0 || cols == 0)
        s->row = s->row1;
}

/* Strips of whole chunks where one fits: otherwise each chunk would be decoded for every strip that cuts it. */
static void strips_align(gm_strips *s, const gm_dataset *d, int64_t element, int64_t capacity)
{
    int64_t row_unit = gm_dataset_row_unit(d), col_unit = gm_dataset_col_unit(d), fit = gm_max(capacity / element, 1);
    if (row_unit == 1 || fit / row_unit == 0)
        return;
    int64_t cols = fit / row_unit;
    if (cols >= s->col1 - s->col0) {
        s->rows = fit / s->cols / row_unit * row_unit;
    } else if (cols >= col_unit) {
        s->rows = row_unit;
        s->cols = cols / col_unit * col_unit;
        s->col_unit = col_unit;
    } else {
        return;
    }
    s->row_unit = row_unit;
}

/* The next strip as the rectangle of a piece; 0 when there is none. */
static int strips_next(gm_strips *s, gm_piece *piece)
{
    if (s->row >= s->row1)
        return 0;
    piece->row = s->row;
    piece->rows = gm_min(s->rows - s->row % s->row_unit, s->row1 - s->row);
    piece->col = s->col;
    piece->cols = gm_min(s->cols - s->col % s->col_unit, s->col1 - s->col);
    piece->at_row = s->row - s->row0;
    piece->at_col = s->col - s->col0;
    s->col += piece->cols;
    if (s->col == s->col1) {
        s->col = s->col0;
        s->row += piece->rows;
    }
    piece->last = s->row >= s->row1;
    return 1;
}

int64_t gm_matmul_k(const gm_matmul *p, int64_t leaf)
{
    return gm_min(leaf * p->plan.leaf, p->problem->k);
}

/* The strips of operand matrix, as it lies in its file, for the step of the cursor. */
static void set_load(gm_matmul *p, int matrix)
{
    const gm_matmul_case *problem = p->problem;
    gm_cursor *c = &p->cursor;
    int64_t k0 = gm_matmul_k(p, c->leaf0), depth = gm_matmul_k(p, c->leaf1) - k0;
    int64_t outer0 = matrix == GM_A ? c->row0 : c->col0, outer = matrix == GM_A ? c->rows : c->cols;
    int64_t element = (int64_t)gm_dtype_size(problem->operand[matrix].type);
    int outer_is_row = (matrix == GM_A) != problem->transpose[matrix];
    c->matrix = matrix;
    if (p->plan.keep)
        strips_set(&c->strips, 0, problem->stored_rows[GM_A], 0, problem->stored_cols[GM_A], element, p->plan.piece);
    else if (outer_is_row)
        strips_set(&c->strips, outer0, outer, k0, depth, element, p->plan.piece);
    else
        strips_set(&c->strips, k0, depth, outer0, outer, element, p->plan.piece);
    strips_align(&c->strips, &problem->operand[matrix], element, p->plan.piece);
}

/* A piece about the whole block. */
static int of_block(const gm_cursor *c, gm_piece *piece, gm_piece_kind kind, unsigned stages)
{
    piece->kind = kind;
    piece->row = c->row0;
    piece->rows = c->rows;
    piece->col = c->col0;
    piece->cols = c->cols;
    piece->step = c->step;
    piece->stages = stages;
    return 1;
}

static int at_begin(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (c->block == gm_plan_blocks(&p->plan, &p->part)) {
        c->stage = AT_END;
        return 0;
    }
    int64_t across = gm_ceil_div(p->part.cols, p->plan.block_cols);
    int64_t down = c->block / across * p->plan.block_rows, right = c->block % across * p->plan.block_cols;
    c->row0 = p->part.row0 + down;
    c->rows = gm_min(p->plan.block_rows, p->part.rows - down);
    c->col0 = p->part.col0 + right;
    c->cols = gm_min(p->plan.block_cols, p->part.cols - right);
    c->leaf1 = p->part.leaf0;
    c->block++;
    c->stage = AT_STEP;
    piece->verifies = 1;
    return of_block(c, piece, GM_PIECE_BEGIN, GM_STAGE_COMPUTE);
}

static void enter_take(gm_matmul *p, int layer)
{
    gm_cursor *c = &p->cursor;
    c->layer = layer;
    c->stage = AT_TAKE;
    if (layer == p->plan.grid[2]) {
        int64_t element = (int64_t)gm_dtype_size(p->problem->result);
        if (p->problem->has_c0)
            element += (int64_t)gm_dtype_size(p->problem->operand[GM_C0].type);
        strips_set(&c->strips, c->row0, c->rows, c->col0, c->cols, element, p->plan.piece - PART_ALIGN);
        c->stage = AT_RESULT;
        return;
    }
    gm_part other;
    gm_plan_part(&p->plan, gm_plan_partner(&p->plan, &p->part, layer), &other);
    c->leaf = other.leaf0;
    c->leaf1 = other.leaf1;
    strips_set(&c->strips, 0, c->rows, 0, c->cols, p->plan.problem.accumulator_bytes, p->plan.piece);
}

static int at_step(gm_matmul *p, gm_piece *piece)
{
    (void)piece;
    gm_cursor *c = &p->cursor;
    c->leaf0 = c->leaf1;
    if (c->leaf0 < p->part.leaf1) {
        c->leaf1 = gm_min(c->leaf0 + p->plan.step_leaves, p->part.leaf1);
        c->step++;
        set_load(p, GM_A);
        c->stage = AT_LOAD;
    } else if (p->part.layer > 0) {
        c->stage = AT_SEND_SUMS;
    } else {
        enter_take(p, 1);
    }
    return 0;
}

static int at_load(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (strips_next(&c->strips, piece)) {
        piece->kind = GM_PIECE_LOAD;
        piece->matrix = c->matrix;
        piece->step = c->step;
        piece->stages = GM_STAGE_READ | GM_STAGE_TO_DEVICE;
        piece->bytes = piece->rows * piece->cols * (int64_t)gm_dtype_size(p->problem->operand[c->matrix].type);
        return 1;
    }
    if (c->matrix == GM_A && !p->plan.keep) {
        set_load(p, GM_B);
    } else {
        c->leaf = c->leaf0;
        c->stage = AT_PROBE;
    }
    return 0;
}

/* A piece about leaves [leaf, leaf1) of the panels of the step; at_col: where they begin in the panels, in k. */
static int of_leaves(gm_matmul *p, gm_piece *piece, gm_piece_kind kind, int64_t leaf, int64_t leaf1)
{
    const gm_cursor *c = &p->cursor;
    piece->leaf = leaf;
    piece->leaves = leaf1 - leaf;
    piece->at_col = gm_matmul_k(p, leaf) - gm_matmul_k(p, c->leaf0);
    piece->last = leaf1 == c->leaf1;
    return of_block(c, piece, kind, GM_STAGE_COMPUTE);
}

static int at_probe(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    c->stage = AT_MULTIPLY;
    piece->verifies = 1;
    return p->problem->verify && of_leaves(p, piece, GM_PIECE_PROBE, c->leaf0, c->leaf1);
}

static int at_multiply(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (p->part.layer == 0) {
        c->stage = AT_STEP;
        return of_leaves(p, piece, GM_PIECE_MULTIPLY, c->leaf0, c->leaf1);
    }
    strips_set(&c->strips, 0, c->rows, 0, c->cols, p->plan.problem.accumulator_bytes, p->plan.piece);
    c->stage = AT_SEND;
    return of_leaves(p, piece, GM_PIECE_MULTIPLY, c->leaf, c->leaf + 1);
}

static int at_send(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (strips_next(&c->strips, piece)) {
        piece->kind = GM_PIECE_SEND;
        piece->peer = gm_plan_partner(&p->plan, &p->part, 0);
        piece->stages = GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_SEND;
        return 1;
    }
    c->leaf++;
    c->stage = c->leaf < c->leaf1 ? AT_MULTIPLY : AT_STEP;
    return 0;
}

static int at_send_sums(gm_matmul *p, gm_piece *piece)
{
    p->cursor.stage = AT_BEGIN;
    piece->peer = gm_plan_partner(&p->plan, &p->part, 0);
    return p->problem->verify &&
           of_block(&p->cursor, piece, GM_PIECE_SEND_SUMS, GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_SEND);
}

static int at_take(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (c->leaf < c->leaf1 && strips_next(&c->strips, piece)) {
        piece->kind = GM_PIECE_TAKE;
        piece->peer = gm_plan_partner(&p->plan, &p->part, c->layer);
        piece->stages = GM_STAGE_RECEIVE | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE;
        return 1;
    }
    if (c->leaf < c->leaf1)
        c->leaf++;
    if (c->leaf < c->leaf1)
        strips_set(&c->strips, 0, c->rows, 0, c->cols, p->plan.problem.accumulator_bytes, p->plan.piece);
    else
        c->stage = AT_TAKE_SUMS;
    return 0;
}

static int at_take_sums(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    piece->peer = gm_plan_partner(&p->plan, &p->part, c->layer);
    enter_take(p, c->layer + 1);
    return p->problem->verify &&
           of_block(c, piece, GM_PIECE_TAKE_SUMS, GM_STAGE_RECEIVE | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE);
}

static int at_result(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (!strips_next(&c->strips, piece)) {
        c->stage = AT_VERDICT;
        return 0;
    }
    piece->kind = GM_PIECE_RESULT;
    piece->stages = GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE;
    if (p->problem->has_c0)
        piece->stages |= GM_STAGE_READ | GM_STAGE_TO_DEVICE;
    piece->verifies = p->problem->verify;
    piece->bytes = piece->rows * piece->cols * ((int64_t)gm_dtype_size(p->problem->result) + p->plan.problem.file_bytes_c0);
    return 1;
}

static int at_verdict(gm_matmul *p, gm_piece *piece)
{
    p->cursor.stage = AT_BEGIN;
    return of_block(&p->cursor, piece, GM_PIECE_VERDICT, GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_DONE);
}

int64_t gm_matmul_result_offset(const gm_matmul *p, const gm_piece *piece)
{
    return p->problem->has_c0
               ? gm_round_up(piece->rows * piece->cols * (int64_t)gm_dtype_size(p->problem->operand[GM_C0].type), PART_ALIGN)
               : 0;
}

int gm_matmul_next(void *context, gm_piece *piece, int *more)
{
    static int (*const stages[])(gm_matmul *, gm_piece *) = {
        [AT_BEGIN] = at_begin, [AT_STEP] = at_step,     [AT_LOAD] = at_load,           [AT_PROBE] = at_probe,
        [AT_MULTIPLY] = at_multiply, [AT_SEND] = at_send, [AT_SEND_SUMS] = at_send_sums, [AT_TAKE] = at_take,
        [AT_TAKE_SUMS] = at_take_sums, [AT_RESULT] = at_result, [AT_VERDICT] = at_verdict,
    };
    gm_matmul *p = context;
    *more = 1;
    while (p->cursor.stage != AT_END) {
        memset(piece, 0, sizeof *piece);
        if (stages[p->cursor.stage](p, piece))
            return GM_OK;
    }
    *more = 0;
    return GM_OK;
}
