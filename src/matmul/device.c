/* The stages of a piece: panels, products, results. */
#include "src/matmul/matmul.h"

#include "base/size.h"

static const gm_device_ops *ops_of(const gm_matmul *p)
{
    return p->job->ops;
}

/* --- Who waits for whom between the queues --- */

static int await(void *context, const gm_piece *piece, unsigned stage, gm_queue *queue)
{
    gm_matmul *p = context;
    const gm_device_ops *ops = ops_of(p);
    if (piece->kind == GM_PIECE_LOAD && !p->plan.keep) /* until the product that used the panel last is done with it */
        return ops->event_wait(queue, gm_matmul_panel(p, piece->step, piece->matrix)->released);
    if (piece->kind == GM_PIECE_RESULT)
        return ops->event_wait(queue, p->finished);
    if (piece->kind == GM_PIECE_FINISH && stage == GM_STAGE_COMPUTE) /* until the band before has been copied out */
        return ops->event_wait(queue, p->drained);
    if (stage != GM_STAGE_COMPUTE)
        return GM_OK;
    int status = GM_OK;
    if (piece->kind == GM_PIECE_MULTIPLY || piece->kind == GM_PIECE_PROBE) { /* until the panels are filled */
        status = ops->event_record(p->loaded, gm_stream_in(p->stream));
        if (!status)
            status = ops->event_wait(queue, p->loaded);
    }
    if (piece->kind == GM_PIECE_BEGIN) /* until the sums of the block before have been copied out */
        status = ops->event_wait(queue, p->copied);
    return status;
}

/* --- To the device --- */

/* A strip of a file into its place in the panel, unless it was copied there. */
static int load(gm_matmul *p, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    const gm_dataset *operand = &p->c->operand[piece->matrix];
    if (piece->in_place)
        return GM_OK;
    gm_unpack_call call = {.rows = piece->rows,
                           .cols = piece->cols,
                           .src = slot->device,
                           .src_pitch = (size_t)piece->cols * gm_dtype_size(operand->type),
                           .src_type = operand->type,
                           .swap = operand->swap,
                           .dst = gm_matmul_strip_at(p, piece),
                           .ld = gm_matmul_panel(p, piece->step, piece->matrix)->ld,
                           .dst_type = gm_matmul_panel_type(p, piece->matrix)};
    int status = gm_matmul_underflow_at(p, piece->matrix, in, &call.underflow);
    return status ? status : ops_of(p)->unpack(in, &call);
}

/* Once, while the first strips are read: the first launch of a kernel loads its code, which waits for the products
 * before it. */
static int load_code(gm_matmul *p, gm_queue *queue)
{
    const gm_matmul_case *c = p->c;
    const gm_device_ops *ops = ops_of(p);
    const gm_fold_call folds = {.type = p->product->accumulator};
    const gm_finish_call finishes = {.c0 = c->has_c0 ? p->band : NULL, /* any memory: there is a C0 */
                                     .c0_type = c->operand[GM_C0].type,
                                     .out_type = c->result};
    if (p->has_code)
        return GM_OK;
    int status = gm_matmul_plan_chains(&p->plan) ? ops->fold(queue, &folds) : GM_OK;
    if (!status && p->part.layer == 0)
        status = ops->finish(queue, &finishes);
    if (!status && c->verify)
        status = gm_matmul_probe_load(p, queue);
    p->has_code = !status;
    return status;
}

static int to_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    gm_matmul *p = context;
    int status = piece->kind == GM_PIECE_LOAD    ? load(p, piece, slot, in)
                 : piece->kind == GM_PIECE_SHARE ? gm_matmul_share(p, piece, in)
                                                 : GM_OK;
    return status ? status : load_code(p, in);
}

/* --- On the device --- */

/* Where a row of the block begins in a leaf that is kept apart. */
static char *kept_at(const gm_matmul *p, int64_t leaf, int64_t row)
{
    int64_t rows = gm_min(p->plan.block_rows, p->part.rows);
    return p->kept + ((leaf - p->part.leaf0) * rows + row) * p->ldacc * p->plan.problem.accumulator_bytes;
}

/* The first of a chain, and a rank without one, folds its leaves as they are multiplied. */
static int keeps_leaves(const gm_matmul *p)
{
    return p->part.leaf0 > 0;
}

static int multiply(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    const gm_device_ops *ops = ops_of(p);
    int64_t depth = gm_matmul_k(p, piece->leaf + piece->leaves) - gm_matmul_k(p, piece->leaf);
    gm_piece block = gm_matmul_block_of(p, piece);
    gm_product_call call = {
        .m = piece->rows,
        .n = piece->cols,
        .k = depth,
        .transpose_a = p->c->transpose[GM_A],
        .transpose_b = p->c->transpose[GM_B],
        .a = gm_matmul_panel_of_piece(p, piece, GM_A),
        .lda = gm_matmul_panel(p, piece->step, GM_A)->ld,
        .b = gm_matmul_panel_of_piece(p, piece, GM_B),
        .ldb = gm_matmul_panel(p, piece->step, GM_B)->ld,
        .acc = keeps_leaves(p) ? kept_at(p, piece->leaf, 0) : gm_matmul_acc_at(p, piece->at_row * p->ldacc),
        .ldacc = p->ldacc,
        .leaf = p->plan.leaf,
        .tile = p->plan.tile,
        .tiles = p->tiles,
        .tile_count = p->plan.tile_count,
        .parts = p->parts,
        .part_count = p->part_count,
        .work = {p->work[GM_A], p->work[GM_B]},
        .ready = {0, piece->at_row > 0}, /* of a band: the panel of B is that of the band before */
        .schemes = gm_matmul_sum(p, &block, GM_SUM_SCHEMES),
        .accumulate = !keeps_leaves(p) && piece->leaf > 0,
        .rounded = gm_matmul_rounded(p, gm_matmul_sum(p, &block, GM_SUM_NONFINITE)),
        .is_unsigned = {gm_matmul_panel_type(p, GM_A) == GM_DTYPE_U8, gm_matmul_panel_type(p, GM_B) == GM_DTYPE_U8},
    };
    p->flop += 2.0 * (double)call.m * (double)call.n * (double)call.k;
    int status = p->product->run(queue, &call);
    if (!status)
        status = ops->event_record(p->multiplied[p->products++ % GM_AHEAD], queue);
    for (int matrix = GM_A; matrix <= GM_B && piece->last && !status; matrix++)
        status = ops->event_record(gm_matmul_panel(p, piece->step, matrix)->released, queue);
    return status;
}

static char *acc_at(const gm_matmul *p, const gm_piece *piece)
{
    return gm_matmul_acc_at(p, piece->at_row * p->ldacc + piece->at_col);
}

/* The leaves that are kept apart to a band of acc: all of it is there, and goes on to the next layer when this is done.
 */
static int fold(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    int status = GM_OK;
    for (int64_t leaf = p->part.leaf0; keeps_leaves(p) && leaf < p->part.leaf1 && !status; leaf++) {
        gm_fold_call call = {.rows = piece->rows,
                             .cols = piece->cols,
                             .part = kept_at(p, leaf, piece->at_row),
                             .part_ld = p->ldacc,
                             .acc = acc_at(p, piece),
                             .ld = p->ldacc,
                             .type = p->product->accumulator};
        status = ops_of(p)->fold(queue, &call);
    }
    return status;
}

static int fold_sums(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    int64_t length = gm_sum_offset(GM_SUM_LAYERS, piece->rows, piece->cols);
    gm_fold_call call = {.rows = 1,
                         .cols = length,
                         .part = p->sums_in,
                         .part_ld = length,
                         .acc = p->sums,
                         .ld = length,
                         .type = GM_DTYPE_F64};
    return p->chain.from >= 0 ? ops_of(p)->fold(queue, &call) : GM_OK;
}

/* Where a strip of C lies in the band. Strips are of whole rows of the block, or of a single row: without gaps either
 * way. */
static char *band_at(const gm_matmul *p, const gm_piece *piece)
{
    int64_t element = piece->at_row % p->plan.band_rows * gm_matmul_block_of(p, piece).cols + piece->at_col;
    return (char *)p->band + element * (int64_t)gm_dtype_size(p->c->result);
}

/* The band whose last strip is finished, as a whole: the strips are too small to fill a device. */
static int probe_band(gm_matmul *p, const gm_piece *last, gm_queue *queue)
{
    gm_piece block = gm_matmul_block_of(p, last), band = {.at_row = last->at_row - last->at_row % p->plan.band_rows};
    band.row = block.row + band.at_row;
    band.rows = last->at_row + last->rows - band.at_row;
    band.col = block.col;
    band.cols = block.cols;
    return gm_matmul_probe_result(p, &band, queue, p->band, p->c->result, 0, GM_SUM_CX);
}

static int finish(gm_matmul *p, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_matmul_case *c = p->c;
    const gm_dataset *c0 = &c->operand[GM_C0];
    gm_piece block = gm_matmul_block_of(p, piece);
    gm_finish_call call = {
        .rows = piece->rows,
        .cols = piece->cols,
        .acc = c->k > 0 ? acc_at(p, piece) : NULL,
        .ldacc = p->ldacc,
        .acc_type = gm_matmul_acc_type(p),
        .alpha = c->alpha,
        .beta = c->beta,
        .c0 = c->has_c0 ? slot->device : NULL,
        .c0_type = c0->type,
        .c0_swap = c0->swap,
        .out = band_at(p, piece),
        .out_type = c->result,
        .count = (gm_nonfinite *)(void *)gm_matmul_sum(p, &block, GM_SUM_NONFINITE),
    };
    int status = ops_of(p)->finish(queue, &call);
    if (!status && c->verify && c->has_c0)
        status = gm_matmul_probe_result(p, piece, queue, slot->device, c0->type, c0->swap, GM_SUM_DX);
    if (!status && c->verify && piece->last)
        status = probe_band(p, piece, queue);
    return status || !piece->last ? status : ops_of(p)->event_record(p->finished, queue);
}

static int compute_kind(gm_matmul *p, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    switch (piece->kind) {
    case GM_PIECE_BEGIN:
        return gm_matmul_probe_begin(p, piece, queue);
    case GM_PIECE_MULTIPLY:
        return multiply(p, piece, queue);
    case GM_PIECE_PROBE:
        return gm_matmul_probe(p, piece, queue);
    case GM_PIECE_FOLD:
        return fold(p, piece, queue);
    case GM_PIECE_FOLD_SUMS:
        return fold_sums(p, piece, queue);
    case GM_PIECE_FINISH:
        return finish(p, piece, slot, queue);
    default: /* a mark for the copy that follows */
        return GM_OK;
    }
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    gm_matmul *p = context;
    int status = compute_kind(p, piece, slot, queue);
    int marks = piece->kind == GM_PIECE_BEGIN || piece->kind == GM_PIECE_FOLD || piece->kind == GM_PIECE_FOLD_SUMS;
    return status || !marks || !p->chain.folded ? status : ops_of(p)->event_record(p->chain.folded, queue);
}

/* --- From the device --- */

static int from_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    gm_matmul *p = context;
    const gm_device_ops *ops = ops_of(p);
    int status;
    if (piece->kind == GM_PIECE_RESULT) {
        size_t bytes = (size_t)(piece->rows * piece->cols) * gm_dtype_size(p->c->result);
        status = ops->copy_out(out, slot->out, bytes, band_at(p, piece), bytes, bytes, 1);
        return status || !piece->last ? status : ops->event_record(p->drained, out);
    }
    size_t bytes = (size_t)gm_sum_offset(GM_SUMS, piece->rows, piece->cols) * sizeof(double);
    status = ops->copy_out(out, slot->out, bytes, p->sums, bytes, bytes, 1);
    return status ? status : ops->event_record(p->copied, out);
}

/* --- The end of a block --- */

/* The verdict on a block. Its lines and its numbers that are not finite count once. */
static int done(void *context, const gm_piece *piece, const void *out)
{
    gm_matmul *p = context;
    gm_verdict block;
    gm_check_block(p, piece->row, piece->rows, piece->col, piece->cols, out, &block);
    int fails = block.suspects > 0 && (p->is_repair || p->verdict.suspects + block.suspects > GM_SUSPECTS);
    if (p->is_repair && !fails)
        block = (gm_verdict){.passed = block.passed, .failed = gm_verdict_none.failed};
    gm_verdict_add(&p->verdict, &block);
    p->verdict.is_wrong |= fails;
    return fails ? gm_check_fail(p, &block) : GM_OK;
}

void gm_matmul_program(gm_matmul *p, gm_program *program)
{
    *program = (gm_program){.context = p,
                            .next = gm_matmul_next,
                            .read = gm_matmul_read,
                            .await = await,
                            .to_device = to_device,
                            .compute = compute,
                            .from_device = from_device,
                            .write = gm_matmul_write,
                            .done = done};
    if (gm_matmul_plan_chains(&p->plan)) {
        gm_matmul_chain_begin(p);
        program->await_turn = gm_matmul_chain_await;
        program->abandon = gm_matmul_chain_abandon;
    }
    if (p->plan.shares) {
        gm_matmul_share_begin(p);
        program->drive = gm_matmul_share_drive;
        program->abandon = gm_matmul_share_abandon;
    }
}
