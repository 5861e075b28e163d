#include "src/matmul.h"

#include "mpi/exchange.h"
#include "base/size.h"


static const gm_device_ops *ops_of(const gm_matmul *p)
{
    return p->job->ops;
}

static int64_t operand_size(const gm_matmul *p)
{
    return (int64_t)gm_dtype_size(p->product->operand);
}

static gm_panel *panel_of(gm_matmul *p, int64_t step, int matrix)
{
    return &p->panels[step % p->plan.buffers][p->plan.same ? GM_A : matrix];
}

/* Element (outer, k) of a panel: outer counts rows of op(A) or columns of op(B). */
static char *panel_at(gm_matmul *p, int64_t step, int matrix, int64_t outer, int64_t k)
{
    const gm_panel *panel = panel_of(p, step, matrix);
    int outer_is_row = (matrix == GM_A) != p->problem->transpose[matrix];
    int64_t element = outer_is_row ? outer * panel->ld + k : k * panel->ld + outer;
    return (char *)panel->data + element * operand_size(p);
}

/* Where a piece's rows or columns and its leaves begin in the panel. A = B kept whole is addressed from its own corner. */
static char *panel_of_piece(gm_matmul *p, const gm_piece *piece, int matrix)
{
    if (!p->plan.same)
        return panel_at(p, piece->step, matrix, matrix == GM_A ? piece->at_row : 0, piece->at_col);
    return panel_at(p, piece->step, matrix, matrix == GM_A ? piece->row : piece->col, gm_matmul_k(p, piece->leaf));
}

static double *sum_of(const gm_matmul *p, const gm_piece *block, gm_sum sum)
{
    return p->sums + gm_sum_offset(sum, block->rows, block->cols);
}

/* --- I/O threads --- */

static int read_piece(void *context, const gm_piece *piece, gm_share share, void *host)
{
    (void)share;
    gm_matmul *p = context;
    int matrix = piece->kind == GM_PIECE_FINISH ? GM_C0 : piece->matrix;
    size_t pitch = (size_t)piece->cols * gm_dtype_size(p->problem->operand[matrix].type);
    return gm_reader_read(p->reader[matrix], piece->row, piece->rows, piece->col, piece->cols, host, pitch);
}

static int write_piece(void *context, const gm_piece *piece, const void *host)
{
    gm_matmul *p = context;
    return gm_output_write(p->output, 0, piece->row, piece->rows, piece->col, piece->cols, host,
                           (size_t)piece->cols * gm_dtype_size(p->problem->result));
}

/* --- Who waits for whom between the queues --- */

static int await(void *context, const gm_piece *piece, unsigned stage, gm_queue *queue)
{
    gm_matmul *p = context;
    const gm_device_ops *ops = ops_of(p);
    if (piece->kind == GM_PIECE_LOAD && !p->plan.keep) /* until the product that used the panel last is done with it */
        return ops->event_wait(queue, panel_of(p, piece->step, piece->matrix)->released);
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

/* A strip of a file into its place in the panel: copied straight there when nothing has to be converted. */
static int load(gm_matmul *p, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    const gm_device_ops *ops = ops_of(p);
    const gm_dataset *operand = &p->problem->operand[piece->matrix];
    gm_panel *panel = panel_of(p, piece->step, piece->matrix);
    size_t size = gm_dtype_size(operand->type), width = (size_t)piece->cols * size;
    char *to = (char *)panel->data + (piece->at_row * panel->ld + piece->at_col) * operand_size(p);
    int status = GM_OK;
    if (!ops->unified && operand->type == p->product->operand && !operand->swap)
        return ops->copy_in(in, to, (size_t)(panel->ld * operand_size(p)), slot->host, width, width, piece->rows);
    if (!ops->unified)
        status = ops->copy_in(in, slot->device, width * (size_t)piece->rows, slot->host, width * (size_t)piece->rows,
                              width * (size_t)piece->rows, 1);
    gm_unpack_call call = {.rows = piece->rows, .cols = piece->cols, .src = slot->device, .src_pitch = width, .src_type = operand->type,
                           .swap = operand->swap, .dst = to, .ld = panel->ld, .dst_type = p->product->operand};
    return status ? status : ops->unpack(in, &call);
}

static int to_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    gm_matmul *p = context;
    size_t bytes;
    if (piece->kind == GM_PIECE_LOAD)
        return load(p, piece, slot, in);
    if (piece->kind == GM_PIECE_FINISH)
        bytes = (size_t)(piece->rows * piece->cols) * gm_dtype_size(p->problem->operand[GM_C0].type);
    else if (piece->kind == GM_PIECE_TAKE)
        bytes = (size_t)(piece->rows * piece->cols * p->plan.problem.accumulator_bytes);
    else /* GM_PIECE_TAKE_SUMS */
        bytes = (size_t)gm_sum_offset(GM_SUM_LAYERS, piece->rows, piece->cols) * sizeof(double);
    return ops_of(p)->unified ? GM_OK : ops_of(p)->copy_in(in, slot->device, bytes, slot->host, bytes, bytes, 1);
}

/* --- On the device --- */

static int begin(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    const gm_device_ops *ops = ops_of(p);
    size_t x = (size_t)piece->cols * sizeof(double), u = (size_t)piece->rows * sizeof(double);
    int status = ops->zero(queue, p->sums, (size_t)gm_sum_offset(GM_SUMS, piece->rows, piece->cols) * sizeof(double));
    if (!status)
        status = ops->copy_in(queue, p->x, x, p->host_x + (piece->col - p->part.col0), x, x, 1);
    return status ? status : ops->copy_in(queue, p->u, u, p->host_u + (piece->row - p->part.row0), u, u, 1);
}

static int multiply(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    const gm_device_ops *ops = ops_of(p);
    int64_t depth = gm_matmul_k(p, piece->leaf + piece->leaves) - gm_matmul_k(p, piece->leaf);
    gm_product_call call = {
        .m = piece->rows, .n = piece->cols, .k = depth,
        .transpose_a = p->problem->transpose[GM_A], .transpose_b = p->problem->transpose[GM_B],
        .a = panel_of_piece(p, piece, GM_A), .lda = panel_of(p, piece->step, GM_A)->ld,
        .b = panel_of_piece(p, piece, GM_B), .ldb = panel_of(p, piece->step, GM_B)->ld,
        .acc = (char *)p->acc + piece->at_row * p->ldacc * p->plan.problem.accumulator_bytes, .ldacc = p->ldacc, .leaf = p->plan.leaf, .tile = p->plan.tile, .tiles = p->tiles, .tile_count = p->plan.tile_count,
        .accumulate = p->part.layer == 0 && piece->leaf > p->part.leaf0,
    };
    p->flop += 2.0 * (double)call.m * (double)call.n * (double)call.k;
    int status = p->product->run(queue, &call);
    if (!status)
        status = ops->event_record(p->multiplied[p->products++ % GM_AHEAD], queue);
    for (int matrix = GM_A; matrix <= GM_B && piece->last && !status; matrix++)
        status = ops->event_record(panel_of(p, piece->step, matrix)->released, queue);
    return status;
}

/* A probe of op(M), given as if M were not transposed. */
static int probe_op(gm_matmul *p, gm_queue *queue, int transposed, gm_probe_call call)
{
    if (transposed)
        call = (gm_probe_call){.rows = call.cols, .cols = call.rows, .m = call.m, .pitch = call.pitch, .type = call.type, .swap = call.swap,
                               .p = call.q, .q = call.p, .r = call.s, .r_abs = call.s_abs, .r_sq = call.s_sq,
                               .s = call.r, .s_abs = call.r_abs, .s_sq = call.r_sq};
    return ops_of(p)->probe(queue, &call);
}

/* |v|^2 of a vector into one of the lone sums. */
static int add_square(gm_matmul *p, gm_queue *queue, const double *v, int64_t length, double *sum)
{
    gm_probe_call call = {.rows = 1, .cols = length, .m = v, .pitch = (size_t)length * sizeof *v, .type = GM_F64, .r_sq = sum};
    return ops_of(p)->probe(queue, &call);
}

/* The step's share of A (B x), (u'A) B and what bounds their errors. */
static int probe(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    const gm_device_ops *ops = ops_of(p);
    int64_t depth = gm_matmul_k(p, piece->leaf + piece->leaves) - gm_matmul_k(p, piece->leaf);
    double *const vectors[] = {p->y, p->y_abs, p->v, p->v_abs};
    int status = GM_OK;
    for (int i = 0; i < 4 && !status; i++)
        status = ops->zero(queue, vectors[i], (size_t)depth * sizeof(double));

    gm_probe_call a = {.rows = piece->rows, .cols = depth, .m = panel_of_piece(p, piece, GM_A),
                       .pitch = (size_t)(panel_of(p, piece->step, GM_A)->ld * operand_size(p)), .type = p->product->operand};
    gm_probe_call b = {.rows = depth, .cols = piece->cols, .m = panel_of_piece(p, piece, GM_B),
                       .pitch = (size_t)(panel_of(p, piece->step, GM_B)->ld * operand_size(p)), .type = p->product->operand};
    gm_probe_call bx = b, au = a, vb = b;
    bx.p = p->x;
    bx.r = p->y;
    bx.r_abs = p->y_abs;
    bx.s_sq = sum_of(p, piece, GM_SUM_BB);
    au.p = p->y;
    au.r = sum_of(p, piece, GM_SUM_AY);
    au.r_sq = sum_of(p, piece, GM_SUM_AA);
    au.q = p->u;
    au.s = p->v;
    au.s_abs = p->v_abs;
    vb.q = p->v;
    vb.s = sum_of(p, piece, GM_SUM_VB);
    if (!status)
        status = probe_op(p, queue, p->problem->transpose[GM_B], bx);
    if (!status)
        status = probe_op(p, queue, p->problem->transpose[GM_A], au);
    if (!status)
        status = probe_op(p, queue, p->problem->transpose[GM_B], vb);
    if (!status)
        status = add_square(p, queue, p->y_abs, depth, sum_of(p, piece, GM_SUM_YY));
    return status ? status : add_square(p, queue, p->v_abs, depth, sum_of(p, piece, GM_SUM_VV));
}

static char *acc_at(const gm_matmul *p, const gm_piece *piece)
{
    return (char *)p->acc + (piece->at_row * p->ldacc + piece->at_col) * p->plan.problem.accumulator_bytes;
}

/* The block of C that a strip at (at_row, at_col) belongs to, as the sums know it. */
static gm_piece block_of(const gm_matmul *p, const gm_piece *piece)
{
    gm_piece block = {.row = piece->row - piece->at_row, .col = piece->col - piece->at_col};
    block.rows = gm_min(p->plan.block_rows, p->part.row0 + p->part.rows - block.row);
    block.cols = gm_min(p->plan.block_cols, p->part.col0 + p->part.cols - block.col);
    return block;
}

/* A strip of C or C0 against x and u: the sums `cx` and the three behind it. */
static int probe_result(gm_matmul *p, const gm_piece *piece, gm_queue *queue, const void *m, gm_dtype type, int swap, gm_sum cx)
{
    gm_piece block = block_of(p, piece);
    gm_probe_call call = {
        .rows = piece->rows, .cols = piece->cols, .m = m, .pitch = (size_t)piece->cols * gm_dtype_size(type), .type = type, .swap = swap,
        .p = p->x + piece->at_col, .q = p->u + piece->at_row,
        .r = sum_of(p, &block, cx) + piece->at_row, .r_sq = sum_of(p, &block, cx + 1) + piece->at_row,
        .s = sum_of(p, &block, cx + 2) + piece->at_col, .s_sq = sum_of(p, &block, cx + 3) + piece->at_col,
    };
    return ops_of(p)->probe(queue, &call);
}

/* Where a strip of C lies in the band. Strips are of whole rows of the block, or of a single row: without gaps either way. */
static char *band_at(const gm_matmul *p, const gm_piece *piece)
{
    int64_t element = piece->at_row % p->plan.band_rows * block_of(p, piece).cols + piece->at_col;
    return (char *)p->band + element * (int64_t)gm_dtype_size(p->problem->result);
}

static int finish(gm_matmul *p, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_matmul_case *problem = p->problem;
    const gm_dataset *c0 = &problem->operand[GM_C0];
    gm_piece block = block_of(p, piece);
    gm_finish_call call = {
        .rows = piece->rows, .cols = piece->cols,
        .acc = problem->k > 0 ? acc_at(p, piece) : NULL, .ldacc = p->ldacc, .acc_type = p->product->accumulator,
        .alpha = problem->alpha, .beta = problem->beta,
        .c0 = problem->has_c0 ? slot->device : NULL, .c0_type = c0->type, .c0_swap = c0->swap,
        .out = band_at(p, piece), .out_type = problem->result,
        .count = (gm_nonfinite *)(void *)sum_of(p, &block, GM_SUM_NONFINITE),
    };
    int status = ops_of(p)->finish(queue, &call);
    if (!status && problem->verify)
        status = probe_result(p, piece, queue, call.out, problem->result, 0, GM_SUM_CX);
    if (!status && problem->verify && problem->has_c0)
        status = probe_result(p, piece, queue, slot->device, c0->type, c0->swap, GM_SUM_DX);
    return status || !piece->last ? status : ops_of(p)->event_record(p->finished, queue);
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    gm_matmul *p = context;
    switch (piece->kind) {
    case GM_PIECE_BEGIN:
        return begin(p, piece, queue);
    case GM_PIECE_MULTIPLY:
        return multiply(p, piece, queue);
    case GM_PIECE_PROBE:
        return probe(p, piece, queue);
    case GM_PIECE_TAKE: {
        gm_fold_call call = {.rows = piece->rows, .cols = piece->cols, .part = slot->device, .acc = acc_at(p, piece), .ld = p->ldacc,
                             .type = p->product->accumulator};
        return ops_of(p)->fold(queue, &call);
    }
    case GM_PIECE_TAKE_SUMS: {
        int64_t length = gm_sum_offset(GM_SUM_LAYERS, piece->rows, piece->cols);
        gm_fold_call call = {.rows = 1, .cols = length, .part = slot->device, .acc = p->sums, .ld = length, .type = GM_F64};
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
        size_t bytes = (size_t)(piece->rows * piece->cols) * gm_dtype_size(p->problem->result);
        status = ops->copy_out(out, slot->host, bytes, band_at(p, piece), bytes, bytes, 1);
        return status || !piece->last ? status : ops->event_record(p->drained, out);
    }
    if (piece->kind == GM_PIECE_SEND) {
        size_t size = (size_t)p->plan.problem.accumulator_bytes, width = (size_t)piece->cols * size;
        status = ops->copy_out(out, slot->host, width, acc_at(p, piece), (size_t)p->ldacc * size, width, piece->rows);
        return status || !piece->last ? status : ops->event_record(p->copied, out);
    }
    gm_sum end = piece->kind == GM_PIECE_SEND_SUMS ? GM_SUM_LAYERS : GM_SUMS;
    size_t bytes = (size_t)gm_sum_offset(end, piece->rows, piece->cols) * sizeof(double);
    status = ops->copy_out(out, slot->host, bytes, p->sums, bytes, bytes, 1);
    return status ? status : ops->event_record(p->copied, out);
}

/* --- Between ranks, and the end of a block --- */

static size_t exchange_bytes(const gm_matmul *p, const gm_piece *piece)
{
    if (piece->kind == GM_PIECE_SEND || piece->kind == GM_PIECE_TAKE)
        return (size_t)(piece->rows * piece->cols * p->plan.problem.accumulator_bytes);
    return (size_t)gm_sum_offset(GM_SUM_LAYERS, piece->rows, piece->cols) * sizeof(double);
}

static int receive_piece(void *context, const gm_piece *piece, void *host)
{
    return gm_receive(piece->peer, host, exchange_bytes(context, piece));
}

static int send_piece(void *context, const gm_piece *piece, const void *host)
{
    return gm_send(piece->peer, host, exchange_bytes(context, piece));
}

static int done(void *context, const gm_piece *piece, const void *host)
{
    gm_matmul *p = context;
    gm_check_block(p, piece->row, piece->rows, piece->col, piece->cols, host, &p->verdict);
    return p->verdict.failed ? gm_check_fail(p) : GM_OK;
}

void gm_matmul_program(gm_matmul *p, gm_program *program)
{
    *program = (gm_program){.context = p, .next = gm_matmul_next, .read = read_piece, .await = await, .to_device = to_device, .compute = compute,
                            .from_device = from_device, .write = write_piece, .done = done};
    if (p->plan.grid[2] > 1) {
        program->receive = receive_piece;
        program->send = send_piece;
    }
}
