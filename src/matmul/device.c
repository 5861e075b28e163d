/* The stages of a piece: panels, products, results. */
#include "src/matmul/matmul.h"

#include "mpi/exchange.h"
#include "base/size.h"

static const gm_device_ops *ops_of(const gm_matmul *p)
{
    return p->job->ops;
}

/* --- I/O threads --- */

static int read_piece(void *context, const gm_piece *piece, gm_range part, void *to)
{
    gm_matmul *p = context;
    int matrix = piece->kind == GM_PIECE_FINISH ? GM_C0 : piece->matrix;
    int64_t size = (int64_t)gm_dtype_size(p->c->operand[matrix].type);
    return gm_reader_read_part(p->reader[matrix], piece->row, piece->col, piece->cols, part.begin / size,
                               gm_range_length(part) / size, to);
}

static int write_piece(void *context, const gm_piece *piece, const void *out)
{
    gm_matmul *p = context;
    return gm_output_write(p->output, 0, piece->row, piece->rows, piece->col, piece->cols, out,
                           (size_t)piece->cols * gm_dtype_size(p->c->result));
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
    int reuses = piece->kind == GM_PIECE_BEGIN || (piece->kind == GM_PIECE_MULTIPLY && p->part.layer > 0);
    if (!status && reuses) /* until the sums of the block before, or acc of the leaf before, have been copied out */
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
                           .dst_type = p->product->operand};
    return ops_of(p)->unpack(in, &call);
}

static int to_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    gm_matmul *p = context;
    size_t bytes;
    if (piece->kind == GM_PIECE_LOAD)
        return load(p, piece, slot, in);
    if (piece->kind == GM_PIECE_FINISH)
        return GM_OK;
    if (piece->kind == GM_PIECE_RECEIVE)
        bytes = (size_t)(piece->rows * piece->cols * p->plan.problem.accumulator_bytes);
    else /* GM_PIECE_RECEIVE_SUMS */
        bytes = (size_t)gm_sum_offset(GM_SUM_LAYERS, piece->rows, piece->cols) * sizeof(double);
    return ops_of(p)->unified ? GM_OK : ops_of(p)->copy_in(in, slot->device, bytes, slot->out, bytes, bytes, 1);
}

/* --- On the device --- */

static int multiply(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    const gm_device_ops *ops = ops_of(p);
    int64_t depth = gm_matmul_k(p, piece->leaf + piece->leaves) - gm_matmul_k(p, piece->leaf);
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
        .acc = (char *)p->acc + piece->at_row * p->ldacc * p->plan.problem.accumulator_bytes,
        .ldacc = p->ldacc,
        .leaf = p->plan.leaf,
        .tile = p->plan.tile,
        .tiles = p->tiles,
        .tile_count = p->plan.tile_count,
        .accumulate = p->part.layer == 0 && piece->leaf > p->part.leaf0,
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
    return (char *)p->acc + (piece->at_row * p->ldacc + piece->at_col) * p->plan.problem.accumulator_bytes;
}

/* Where a strip of C lies in the band. Strips are of whole rows of the block, or of a single row: without gaps either
 * way. */
static char *band_at(const gm_matmul *p, const gm_piece *piece)
{
    int64_t element = piece->at_row % p->plan.band_rows * gm_matmul_block_of(p, piece).cols + piece->at_col;
    return (char *)p->band + element * (int64_t)gm_dtype_size(p->c->result);
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
        .acc_type = p->product->accumulator,
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
    if (!status && c->verify)
        status = gm_matmul_probe_result(p, piece, queue, call.out, c->result, 0, GM_SUM_CX);
    if (!status && c->verify && c->has_c0)
        status = gm_matmul_probe_result(p, piece, queue, slot->device, c0->type, c0->swap, GM_SUM_DX);
    return status || !piece->last ? status : ops_of(p)->event_record(p->finished, queue);
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    gm_matmul *p = context;
    switch (piece->kind) {
    case GM_PIECE_BEGIN:
        return gm_matmul_probe_begin(p, piece, queue);
    case GM_PIECE_MULTIPLY:
        return multiply(p, piece, queue);
    case GM_PIECE_PROBE:
        return gm_matmul_probe(p, piece, queue);
    case GM_PIECE_RECEIVE: {
        gm_fold_call call = {.rows = piece->rows,
                             .cols = piece->cols,
                             .part = slot->device,
                             .acc = acc_at(p, piece),
                             .ld = p->ldacc,
                             .type = p->product->accumulator};
        return ops_of(p)->fold(queue, &call);
    }
    case GM_PIECE_RECEIVE_SUMS: {
        int64_t length = gm_sum_offset(GM_SUM_LAYERS, piece->rows, piece->cols);
        gm_fold_call call = {
            .rows = 1, .cols = length, .part = slot->device, .acc = p->sums, .ld = length, .type = GM_DTYPE_F64};
        return ops_of(p)->fold(queue, &call);
    }
    case GM_PIECE_FINISH:
        return finish(p, piece, slot, queue);
    default: /* a mark for the copy that follows */
        return GM_OK;
    }
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
    if (piece->kind == GM_PIECE_SEND) {
        size_t size = (size_t)p->plan.problem.accumulator_bytes, width = (size_t)piece->cols * size;
        status = ops->copy_out(out, slot->out, width, acc_at(p, piece), (size_t)p->ldacc * size, width, piece->rows);
        return status || !piece->last ? status : ops->event_record(p->copied, out);
    }
    gm_sum end = piece->kind == GM_PIECE_SEND_SUMS ? GM_SUM_LAYERS : GM_SUMS;
    size_t bytes = (size_t)gm_sum_offset(end, piece->rows, piece->cols) * sizeof(double);
    status = ops->copy_out(out, slot->out, bytes, p->sums, bytes, bytes, 1);
    return status ? status : ops->event_record(p->copied, out);
}

/* --- Between ranks, and the end of a block --- */

static size_t exchange_bytes(const gm_matmul *p, const gm_piece *piece)
{
    if (piece->kind == GM_PIECE_SEND || piece->kind == GM_PIECE_RECEIVE)
        return (size_t)(piece->rows * piece->cols * p->plan.problem.accumulator_bytes);
    return (size_t)gm_sum_offset(GM_SUM_LAYERS, piece->rows, piece->cols) * sizeof(double);
}

static int receive_piece(void *context, const gm_piece *piece, void *out)
{
    return gm_receive(piece->peer, out, exchange_bytes(context, piece));
}

static int send_piece(void *context, const gm_piece *piece, const void *out)
{
    return gm_send(piece->peer, out, exchange_bytes(context, piece));
}

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
                            .read = read_piece,
                            .await = await,
                            .to_device = to_device,
                            .compute = compute,
                            .from_device = from_device,
                            .write = write_piece,
                            .done = done};
    if (p->plan.grid[2] > 1) {
        program->receive = receive_piece;
        program->send = send_piece;
    }
}
