/* The stages of a group of frames. All device work is on the queue of the compute stage, each step in one call. */
#include "src/matmul/batch/batch.h"

static const gm_device_ops *ops_of(const gm_batch *b)
{
    return b->product.job->ops;
}

static int64_t size_of(const gm_batch *b, int which)
{
    return (int64_t)gm_dtype_size(b->product.c->operand[which].type);
}

/* --- I/O threads --- */

/* The part of a group's bytes: of each operand those that are in it. Nothing is between them that counts. */
static int read_group(gm_batch *b, const gm_piece *piece, gm_range part, char *to)
{
    const gm_batch_plan *plan = &b->plan;
    gm_batch_layout l = gm_batch_lay_out(plan, piece->rows);
    int status = GM_OK;
    for (int i = 0; i < GM_OPERANDS && !status; i++) {
        gm_range own = gm_range_overlap(part, (gm_range){l.at[i], l.at[i] + piece->rows * plan->bytes[i]});
        if (plan->bytes[i] == 0 || gm_range_length(own) == 0)
            continue;
        int64_t size = size_of(b, i), first = piece->row * (plan->bytes[i] / size) + (own.begin - l.at[i]) / size;
        status = gm_matmul_read_range(b->product.c, b->product.reader[i], i, first, gm_range_length(own) / size,
                                      to + (own.begin - part.begin));
    }
    return status;
}

static int read_piece(void *context, const gm_piece *piece, gm_range part, void *to)
{
    gm_batch *b = context;
    return piece->kind == GM_PIECE_LOAD ? gm_matmul_read(&b->product, piece, part, to) : read_group(b, piece, part, to);
}

static int write_piece(void *context, const gm_piece *piece, gm_range all, const void *from)
{
    (void)all;
    const gm_batch *b = context;
    int64_t elements = b->product.c->m * b->product.c->n;
    return gm_output_write_range(b->product.output, 0, piece->row * elements, piece->rows * elements, from);
}

/* --- On the device --- */

static char *at(const gm_slot_memory *slot, int64_t offset)
{
    return (char *)slot->device + offset;
}

/* Rows of an operand, from the slot to its panel. */
static int unpack(gm_batch *b, int which, int64_t rows, int64_t cols, const char *from, char *to, gm_queue *queue)
{
    const gm_dataset *d = &b->product.c->operand[which];
    gm_unpack_call call = {.rows = rows,
                           .cols = cols,
                           .src = from,
                           .src_pitch = (size_t)(cols * size_of(b, which)),
                           .src_type = d->type,
                           .swap = d->swap,
                           .dst = to,
                           .ld = b->plan.ld[which],
                           .dst_type = gm_matmul_panel_type(&b->product, which)};
    int status = gm_matmul_underflow_at(&b->product, which, queue, &call.underflow);
    return status ? status : ops_of(b)->unpack(queue, &call);
}

/* A strip of an operand that is the same for all frames. */
static int load(gm_batch *b, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    int64_t element = piece->row * b->plan.ld[piece->matrix] + piece->col;
    return unpack(b, piece->matrix, piece->rows, piece->cols, at(slot, 0),
                  (char *)b->panel[piece->matrix] + element * gm_matmul_operand_bytes(&b->product), queue);
}

static int prepare(gm_batch *b, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue,
                   gm_batch_operands *o)
{
    const gm_matmul_case *c = b->product.c;
    const gm_batch_plan *plan = &b->plan;
    gm_batch_layout l = gm_batch_lay_out(plan, piece->rows);
    const char *place[2];
    int status = GM_OK;
    for (int i = GM_A; i <= GM_B && !status; i++) {
        int source = i == GM_B && c->shared ? GM_A : i;
        place[i] = b->panel[source] ? b->panel[source] : at(slot, l.at[source]);
        if (plan->panels_of[i] && c->is_stack[i])
            status = unpack(b, i, piece->rows * c->stored_rows[i], c->stored_cols[i], at(slot, l.at[i]), b->panel[i],
                            queue);
    }
    *o = (gm_batch_operands){.a = place[GM_A],
                             .b = place[GM_B],
                             .next_a = c->is_stack[GM_A] ? plan->panel[GM_A] : 0,
                             .next_b = c->is_stack[GM_B] ? plan->panel[GM_B] : 0};
    return status;
}

/* Products of a device that takes no batch go one by one, and so do those that count schemes. sums: of the first frame.
 */
static int multiply(gm_batch *b, const gm_piece *piece, const gm_batch_operands *o, gm_nonfinite *counts, double *sums,
                    gm_queue *queue)
{
    gm_matmul *p = &b->product;
    const gm_matmul_case *c = p->c;
    const gm_batch_plan *plan = &b->plan;
    int64_t element = gm_matmul_operand_bytes(p), all = piece->rows, each = p->product->batches ? all : 1;
    int64_t schemes = gm_sum_offset(GM_SUM_SCHEMES, c->m, c->n), next = plan->sums / (int64_t)sizeof(double);
    int status = GM_OK;
    for (int64_t f = 0; f < all && !status; f += each) {
        gm_product_call call = {
            .m = c->m,
            .n = c->n,
            .k = c->k,
            .transpose_a = c->transpose[GM_A],
            .transpose_b = c->transpose[GM_B],
            .a = o->a + f * o->next_a * element,
            .lda = plan->ld[GM_A],
            .b = o->b + f * o->next_b * element,
            .ldb = plan->ld[GM_B],
            .acc = gm_matmul_acc_at(p, f * plan->acc),
            .ldacc = plan->ldacc,
            .leaf = p->plan.leaf,
            .tile = p->plan.tile,
            .tiles = p->tiles,
            .tile_count = p->plan.tile_count,
            .work = {p->work[GM_A], p->work[GM_B]},
            .ready = {f > 0 && o->next_a == 0, f > 0 && o->next_b == 0},
            .schemes = c->verify ? sums + f * next + schemes : NULL,
            .batch = each,
            .next_a = o->next_a,
            .next_b = o->next_b,
            .next_acc = plan->acc,
            .is_unsigned = {gm_matmul_panel_type(p, GM_A) == GM_DTYPE_U8, gm_matmul_panel_type(p, GM_B) == GM_DTYPE_U8},
            .rounded = gm_matmul_rounded(p, counts)};
        status = p->product->run(queue, &call);
    }
    p->flop += 2.0 * (double)c->m * (double)c->n * (double)c->k * (double)all;
    return status;
}

/* --- The check's vectors, and C --- */

static int send_vectors(gm_batch *b, gm_queue *queue)
{
    size_t bytes = (size_t)(b->product.c->m + b->product.c->n) * sizeof(double);
    int status = b->has_vectors ? GM_OK
                                : ops_of(b)->copy_in(queue, b->product.x, bytes, b->product.host_x, bytes, bytes, 1);
    b->has_vectors = 1;
    return status;
}

/* alpha, beta, the type of C; then the check of what is there. */
static int finish(gm_batch *b, const gm_piece *piece, const gm_slot_memory *slot, gm_nonfinite *counts, double *sums,
                  gm_queue *queue)
{
    const gm_matmul *p = &b->product;
    const gm_matmul_case *c = p->c;
    const gm_dataset *c0 = &c->operand[GM_C0];
    gm_batch_layout l = gm_batch_lay_out(&b->plan, piece->rows);
    gm_finish_call call = {.rows = piece->rows * c->m,
                           .cols = c->n,
                           .acc = c->k > 0 ? p->acc : NULL,
                           .ldacc = b->plan.ldacc,
                           .acc_type = gm_matmul_acc_type(p),
                           .alpha = c->alpha,
                           .beta = c->beta,
                           .c0 = c->has_c0 ? at(slot, l.at[GM_C0]) : NULL,
                           .c0_type = c0->type,
                           .c0_swap = c0->swap,
                           .out = at(slot, b->plan.out_at),
                           .out_type = c->result,
                           .count = counts};
    int status = ops_of(b)->finish(queue, &call);
    if (!status && c->verify)
        status = gm_batch_probe_result(b, piece, call.out, c->result, 0, sums, GM_SUM_CX, queue);
    if (!status && c->verify && c->has_c0)
        status = gm_batch_probe_result(b, piece, call.c0, c0->type, c0->swap, sums, GM_SUM_DX, queue);
    return status;
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    gm_batch *b = context;
    const gm_matmul_case *c = b->product.c;
    gm_batch_layout l = gm_batch_lay_out(&b->plan, piece->rows);
    gm_batch_operands o = {0};
    gm_nonfinite *counts = (gm_nonfinite *)(void *)at(slot, b->plan.out_at + l.nonfinite);
    double *sums = (double *)(void *)at(slot, b->plan.out_at + l.sums);
    if (piece->kind == GM_PIECE_LOAD)
        return load(b, piece, slot, queue);
    int status = ops_of(b)->zero(queue, counts, (size_t)(l.out - l.nonfinite));
    if (!status && c->verify)
        status = send_vectors(b, queue);
    if (!status && c->k > 0)
        status = prepare(b, piece, slot, queue, &o);
    if (!status && c->k > 0 && c->verify)
        status = gm_batch_probe(b, piece, &o, sums, queue);
    if (!status && c->k > 0)
        status = multiply(b, piece, &o, counts, sums, queue);
    return status ? status : finish(b, piece, slot, counts, sums, queue);
}

/* --- The end of a group --- */

/* The verdict on each frame. Its lines, and the group's numbers that are not finite, count once. */
static int done(void *context, const gm_piece *piece, const void *out)
{
    gm_batch *b = context;
    gm_matmul *p = &b->product;
    const gm_matmul_case *c = p->c;
    gm_batch_layout l = gm_batch_lay_out(&b->plan, piece->rows);
    gm_verdict counts = gm_verdict_none;
    if (!p->is_repair)
        counts.nonfinite = *(const gm_nonfinite *)(const void *)((const char *)out + l.nonfinite);
    gm_verdict_add(&p->verdict, &counts);
    for (int64_t f = 0; f < piece->rows && c->verify; f++) {
        const char *sums = (const char *)out + l.sums + f * b->plan.sums;
        gm_verdict frame;
        p->frame = piece->row + f;
        gm_check_block(p, 0, c->m, 0, c->n, (const double *)(const void *)sums, &frame);
        int fails = frame.suspects > 0 && (p->is_repair || p->verdict.suspects + frame.suspects > GM_SUSPECTS);
        if (p->is_repair && !fails)
            frame = (gm_verdict){.passed = frame.passed, .failed = gm_verdict_none.failed};
        gm_verdict_add(&p->verdict, &frame);
        p->verdict.is_wrong |= fails;
        if (fails)
            return gm_check_fail(p, &frame);
    }
    return GM_OK;
}

void gm_batch_program(gm_batch *b, gm_program *program)
{
    *program = (gm_program){.context = b,
                            .next = gm_batch_next,
                            .read = read_piece,
                            .compute = compute,
                            .write = write_piece,
                            .done = done};
}
