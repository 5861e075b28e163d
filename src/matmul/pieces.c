#include "src/matmul/matmul.h"

#include "base/size.h"

#include <string.h>

/* The walk of one rank. For each block of its part of C, BEGIN, then
 *
 *   steps: LOAD A and LOAD B of a step, of shared panels the rank's own chunks, and SHARE; PROBE and MULTIPLY of a step
 *   as soon as its panels are whole
 *   bands of the owner, for the leaves that are left: PROBE; then M0 F0 M1 R0 F1 M2 R1 F2 ..., M being MULTIPLY of a
 *   band, F its FINISH and R its RESULT, so that the device multiplies the next band while one is copied out and
 *   written; VERDICT
 *
 * Where the device keeps all leaves, steps are loaded as fast as they can be read, the device multiplies steps of the
 * whole block meanwhile, and the leaves that are left then go by bands. Otherwise the leaves of the last step go by
 * bands, on the processor none.
 *
 * With several layers all steps are multiplied, by leaves after the first of the chain, and FOLD takes the place of M:
 * it waits until the layer before has passed the band on. FOLD_SUMS comes after the bands. On other ranks than the
 * owner bands have no F and R, and the block ends with PASS.
 *
 * Each stage function fills in a piece, or moves the cursor on, or finds that panels are not whole yet. */
enum { MOVED, FILLED, WAITS };

enum {
    AT_BEGIN,
    AT_FLOW,
    AT_LOAD,
    AT_SHARE,
    AT_PROBE,
    AT_MULTIPLY,
    AT_PROBE_REST,
    AT_BAND,
    AT_RESULT,
    AT_FINISH,
    AT_FOLD_SUMS,
    AT_VERDICT,
    AT_PASS,
    AT_END
};

/* The strips of an operand, as it lies in its file, for the step of the cursor. */
static void set_load(gm_matmul *p, int matrix)
{
    const gm_matmul_case *product = p->c;
    gm_cursor *c = &p->cursor;
    int64_t outer0 = matrix == GM_A ? c->block.row0 : c->block.col0;
    gm_matmul_span s = {.outer0 = outer0,
                        .outer = matrix == GM_A ? c->block.rows : c->block.cols,
                        .k0 = gm_matmul_k(p, c->leaf0),
                        .depth = gm_matmul_k(p, c->leaf1) - gm_matmul_k(p, c->leaf0)};
    if (p->plan.shares)
        s = gm_matmul_plan_chunk(&p->plan, &p->part, matrix, gm_matmul_plan_circle(&p->plan, &p->part, matrix).index,
                                 c->leaf0, c->leaf1);
    int64_t element = (int64_t)gm_dtype_size(product->operand[matrix].type);
    int outer_is_row = (matrix == GM_A) != product->transpose[matrix];
    c->matrix = matrix;
    if (p->plan.same)
        gm_strips_set(&c->strips, 0, product->stored_rows[GM_A], 0, product->stored_cols[GM_A], element, p->plan.piece);
    else if (outer_is_row)
        gm_strips_set(&c->strips, s.outer0, s.outer, s.k0, s.depth, element, p->plan.piece);
    else
        gm_strips_set(&c->strips, s.k0, s.depth, s.outer0, s.outer, element, p->plan.piece);
    if (p->plan.keep && !p->plan.same) {
        *(outer_is_row ? &c->strips.at_row : &c->strips.at_col) = s.outer0 - outer0;
        *(outer_is_row ? &c->strips.at_col : &c->strips.at_row) = s.k0 - gm_matmul_k(p, p->part.leaf0);
    }
    gm_strips_align(&c->strips, gm_matmul_row_unit(product, matrix), gm_matmul_col_unit(product, matrix), element,
                    p->plan.piece);
}

/* A piece about the whole block. */
static int of_block(const gm_cursor *c, gm_piece *piece, gm_piece_kind kind, unsigned stages)
{
    piece->kind = kind;
    piece->row = c->block.row0;
    piece->rows = c->block.rows;
    piece->col = c->block.col0;
    piece->cols = c->block.cols;
    piece->stages = stages;
    return FILLED;
}

static int at_begin(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (c->blocks == gm_matmul_plan_blocks(&p->plan, &p->part)) {
        c->stage = AT_END;
        return MOVED;
    }
    c->block = gm_matmul_plan_block(&p->plan, &p->part, c->blocks++);
    c->leaf0 = c->leaf1 = c->own = c->done = p->part.leaf0;
    c->stage = AT_FLOW;
    piece->verifies = 1;
    return of_block(c, piece, GM_PIECE_BEGIN, GM_STAGE_COMPUTE);
}

/* Only where no other layer's leaves come between, and where the device works in parallel to the host: on the processor
 * nothing would be hidden, and every band would bring all of the right panel through its caches once more. */
static int bands_multiply(const gm_matmul *p)
{
    return p->plan.grid[2] == 1 && !p->plan.budget.unified;
}

static void enter_bands(gm_matmul *p)
{
    p->cursor.band = 0;
    p->cursor.stage = bands_multiply(p) && p->cursor.done < p->part.leaf1 ? AT_PROBE_REST : AT_BAND;
}

/* Has the device fewer products before it than it should? When there is little left to be read one is enough: what
 * waits before the bands delays the first result. */
static int wants_product(const gm_matmul *p)
{
    const gm_cursor *c = &p->cursor;
    int64_t left = p->part.leaf1 - c->leaf1, last = c->products - (left > p->plan.step_leaves ? GM_AHEAD : 1);
    int done = last < p->products;
    return last < 0 || (done && (p->job->ops->event_done(p->multiplied[last % GM_AHEAD], &done) || done));
}

/* The leaf up to which the panels are whole: what other ranks read arrives meanwhile. */
static int64_t whole(const gm_matmul *p)
{
    return p->plan.shares ? p->sharing.whole : p->cursor.own;
}

/* Is the next step whose panels are whole to be multiplied as a whole, and now? */
static int is_due(const gm_matmul *p)
{
    const gm_cursor *c = &p->cursor;
    if (c->done == whole(p))
        return 0;
    if (!bands_multiply(p))
        return 1;
    if (p->plan.keep)
        return whole(p) < p->part.leaf1 && wants_product(p);
    int needs_panel = c->loads == c->step + p->plan.buffers; /* for the next step to be loaded */
    return gm_matmul_plan_step_end(&p->plan, &p->part, c->done) < p->part.leaf1 &&
           (needs_panel || c->leaf1 == p->part.leaf1 || wants_product(p));
}

static int at_flow(gm_matmul *p, gm_piece *piece)
{
    (void)piece;
    gm_cursor *c = &p->cursor;
    if (is_due(p)) {
        c->back = AT_FLOW;
        c->stage = AT_PROBE;
    } else if (c->leaf1 < p->part.leaf1) {
        c->leaf0 = c->leaf1;
        c->leaf1 = gm_matmul_plan_step_end(&p->plan, &p->part, c->leaf0);
        c->loads++;
        set_load(p, GM_A);
        c->stage = AT_LOAD;
    } else if (whole(p) < c->leaf1) {
        return WAITS;
    } else {
        enter_bands(p);
    }
    return MOVED;
}

static int at_load(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (p->plan.keep && is_due(p)) { /* a product is done, or the panels of a step have become whole */
        c->back = AT_LOAD;
        c->stage = AT_PROBE;
        return MOVED;
    }
    if (gm_strips_next(&c->strips, piece)) {
        piece->kind = GM_PIECE_LOAD;
        piece->matrix = c->matrix;
        piece->step = c->loads - 1;
        piece->stages = GM_STAGE_READ | GM_STAGE_TO_DEVICE;
        piece->bytes = piece->in = piece->rows * piece->cols * (int64_t)gm_dtype_size(p->c->operand[c->matrix].type);
        gm_matmul_place_strip(p, piece);
        return FILLED;
    }
    if (c->matrix == GM_A && !p->plan.same)
        set_load(p, GM_B);
    else
        c->stage = AT_SHARE;
    return MOVED;
}

static int at_share(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    c->stage = AT_FLOW;
    c->own = piece->leaf = c->leaf1;
    return p->plan.shares && of_block(c, piece, GM_PIECE_SHARE, GM_STAGE_TO_DEVICE);
}

/* A piece about leaves [leaf, leaf1) of the panels of the next step to be multiplied. */
static int of_leaves(gm_matmul *p, gm_piece *piece, gm_piece_kind kind, int64_t leaf, int64_t leaf1)
{
    const gm_cursor *c = &p->cursor;
    of_block(c, piece, kind, GM_STAGE_COMPUTE);
    piece->leaf = leaf;
    piece->leaves = leaf1 - leaf;
    piece->at_k = gm_matmul_k(p, leaf) - gm_matmul_k(p, p->plan.keep ? p->part.leaf0 : c->done);
    piece->step = c->step;
    return FILLED;
}

static int at_probe(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    c->leaf = c->done;
    c->stage = AT_MULTIPLY;
    piece->verifies = 1;
    return p->c->verify &&
           of_leaves(p, piece, GM_PIECE_PROBE, c->done, gm_matmul_plan_step_end(&p->plan, &p->part, c->done));
}

/* A step, or the next leaf of it. */
static int at_multiply(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    int64_t end = gm_matmul_plan_step_end(&p->plan, &p->part, c->done), leaf = c->leaf,
            leaf1 = p->part.leaf0 > 0 ? leaf + 1 : end;
    piece->last = leaf1 == end;
    of_leaves(p, piece, GM_PIECE_MULTIPLY, leaf, leaf1);
    c->products++;
    c->leaf = leaf1;
    if (piece->last) {
        c->done = end;
        c->step++;
    }
    c->stage = piece->last ? c->back : AT_MULTIPLY;
    return FILLED;
}

static int at_probe_rest(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    c->stage = AT_BAND;
    piece->verifies = 1;
    return p->c->verify && of_leaves(p, piece, GM_PIECE_PROBE, c->done, p->part.leaf1);
}

/* The strips of band `index` of the block, for elements of some bytes in slots of some bytes. */
static void set_band(gm_matmul *p, int64_t index, int64_t element, int64_t capacity)
{
    gm_cursor *c = &p->cursor;
    int64_t down = index * p->plan.band_rows;
    gm_strips_set(&c->strips, c->block.row0 + down, gm_min(p->plan.band_rows, c->block.rows - down), c->block.col0,
                  c->block.cols, element, capacity);
    c->strips.at_row = down;
}

/* A piece about exchange `step` of the block (chain.c). */
static int of_chain(const gm_cursor *c, gm_piece *piece, gm_piece_kind kind, int64_t step)
{
    of_block(c, piece, kind, GM_STAGE_COMPUTE);
    piece->block = c->blocks - 1;
    piece->step = step;
    return FILLED;
}

/* The work that is left before a band can be finished: its products, or its leaves to be folded. */
static int complete_band(gm_matmul *p, gm_piece *piece, int64_t bands)
{
    gm_cursor *c = &p->cursor;
    int64_t down = c->band * p->plan.band_rows;
    int multiplies = c->done < p->part.leaf1 && bands_multiply(p);
    if (c->band == bands || (!multiplies && !gm_matmul_plan_chains(&p->plan)))
        return MOVED;
    if (multiplies)
        of_leaves(p, piece, GM_PIECE_MULTIPLY, c->done, p->part.leaf1);
    else
        of_chain(c, piece, GM_PIECE_FOLD, c->band);
    piece->at_row = down;
    piece->row += down;
    piece->rows = gm_min(p->plan.band_rows, c->block.rows - down);
    piece->last = c->band + 1 == bands;
    c->products += multiplies;
    if (multiplies && piece->last)
        c->step++;
    return FILLED;
}

/* The next band; then the results of the band before. */
static int at_band(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    int64_t bands = gm_ceil_div(c->block.rows, p->plan.band_rows);
    int is_left = complete_band(p, piece, bands);
    if (p->part.layer > 0) {
        c->stage = c->band++ < bands ? AT_BAND : AT_FOLD_SUMS;
        return is_left;
    }
    if (c->band > 0) {
        int64_t element = (int64_t)gm_dtype_size(p->c->result);
        set_band(p, c->band - 1, element, gm_matmul_plan_result(&p->plan));
        gm_strips_align(&c->strips, gm_matmul_result_unit(p->c, p->output), c->block.cols, element,
                        gm_matmul_plan_result(&p->plan)); /* rows stay whole */
    } else {
        c->strips.row = c->strips.row1;
    }
    c->stage = AT_RESULT;
    return is_left;
}

static int at_result(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (gm_strips_next(&c->strips, piece)) {
        piece->kind = GM_PIECE_RESULT;
        piece->stages = GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE;
        piece->bytes = piece->rows * piece->cols * (int64_t)gm_dtype_size(p->c->result);
        return FILLED;
    }
    if (c->band == gm_ceil_div(c->block.rows, p->plan.band_rows)) {
        c->stage = AT_FOLD_SUMS;
        return MOVED;
    }
    int64_t c0 = p->plan.problem.file_bytes_c0;
    set_band(p, c->band, gm_max(c0, 1), c0 ? p->plan.piece : INT64_MAX); /* without C0 the slot stays empty */
    c->stage = AT_FINISH;
    return MOVED;
}

static int at_finish(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    if (!gm_strips_next(&c->strips, piece)) {
        c->band++;
        c->stage = AT_BAND;
        return MOVED;
    }
    piece->kind = GM_PIECE_FINISH;
    piece->stages = GM_STAGE_COMPUTE;
    if (p->c->has_c0)
        piece->stages |= GM_STAGE_READ | GM_STAGE_TO_DEVICE;
    piece->verifies = p->c->verify;
    piece->bytes = piece->in = piece->rows * piece->cols * p->plan.problem.file_bytes_c0;
    return FILLED;
}

static int at_fold_sums(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    c->stage = p->part.layer > 0 ? AT_PASS : AT_VERDICT;
    return gm_matmul_plan_chains(&p->plan) &&
           of_chain(c, piece, GM_PIECE_FOLD_SUMS, gm_ceil_div(c->block.rows, p->plan.band_rows));
}

static int at_pass(gm_matmul *p, gm_piece *piece)
{
    gm_cursor *c = &p->cursor;
    c->stage = AT_BEGIN;
    return gm_matmul_plan_chains(&p->plan) && of_chain(c, piece, GM_PIECE_PASS, INT64_MAX);
}

static int at_verdict(gm_matmul *p, gm_piece *piece)
{
    p->cursor.stage = AT_BEGIN;
    return of_block(&p->cursor, piece, GM_PIECE_VERDICT, GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_DONE);
}

int gm_matmul_next(void *context, gm_piece *piece, int *more)
{
    static int (*const stages[])(gm_matmul *, gm_piece *) = {
        [AT_BEGIN] = at_begin,
        [AT_FLOW] = at_flow,
        [AT_LOAD] = at_load,
        [AT_SHARE] = at_share,
        [AT_PROBE] = at_probe,
        [AT_MULTIPLY] = at_multiply,
        [AT_PROBE_REST] = at_probe_rest,
        [AT_BAND] = at_band,
        [AT_RESULT] = at_result,
        [AT_FINISH] = at_finish,
        [AT_FOLD_SUMS] = at_fold_sums,
        [AT_VERDICT] = at_verdict,
        [AT_PASS] = at_pass,
    };
    gm_matmul *p = context;
    while (p->cursor.stage != AT_END) {
        memset(piece, 0, sizeof *piece);
        int found = stages[p->cursor.stage](p, piece);
        if (found == MOVED)
            continue;
        if (p->is_repair) /* not of the work that the progress display knows */
            piece->bytes = 0;
        *more = found == WAITS ? GM_MORE_LATER : GM_MORE_NOW;
        return GM_OK;
    }
    *more = GM_MORE_NONE;
    return GM_OK;
}
