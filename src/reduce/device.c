/* The stages of a piece of a reduction. A slot holds elements and, from plan->data bytes on, the records that the
 * device computes:
 *
 *   segments, nodes   a gm_moments for each leaf; segments: then room for the totals that an I/O thread folds them into
 *   batches           open records of all columns, then their totals
 *
 * A piece of results of columns holds only totals. */
#include "base/size.h"
#include "kernels/reduce/calls.h"
#include "mpi/exchange.h"
#include "src/reduce/device.h"

#include <string.h>

/* Elements [at, end) of the rows of a piece of columns, whose col counts over all outer indices. */
static int read_columns(const gm_reduce *p, const gm_piece *piece, int64_t at, int64_t end, char *to)
{
    int64_t n = p->r->n, inner = p->r->inner, outer = piece->col / inner, col = piece->col % inner, matrix_rows,
            matrix_cols;
    int64_t first = (outer * n + piece->row) * inner + col;
    int status = GM_OK;
    gm_dataset_matrix(p->r->dataset, &matrix_rows, &matrix_cols);
    if (matrix_rows == n && matrix_cols == inner)
        return gm_reader_read_part(p->reader, piece->row, col, piece->cols, at, end - at, to);
    if (piece->cols == inner)
        return gm_reader_read_range(p->reader, first + at, end - at, to);
    for (int64_t count; at < end && !status; at += count, to += count * p->size) {
        int64_t row = at / piece->cols, skipped = at % piece->cols;
        count = gm_min(piece->cols - skipped, end - at);
        status = gm_reader_read_range(p->reader, first + row * inner + skipped, count, to);
    }
    return status;
}

static int read_piece(void *context, const gm_piece *piece, gm_range part, void *to)
{
    const gm_reduce *p = context;
    int64_t begin = part.begin / p->size, end = part.end / p->size;
    return p->plan->mode == GM_REDUCE_COLUMNS ? read_columns(p, piece, begin, end, to)
                                              : gm_reader_read_range(p->reader, piece->col + begin, end - begin, to);
}

/* A block of columns is begun when the totals of the one before are out of the device. */
static int await(void *context, const gm_piece *piece, unsigned stage, gm_queue *queue)
{
    const gm_reduce *p = context;
    int begins = p->plan->mode == GM_REDUCE_COLUMNS && piece->kind == GM_REDUCE_ELEMENTS && piece->row == p->row0 &&
                 stage == GM_STAGE_COMPUTE;
    return begins && p->block_used ? p->job->ops->event_wait(queue, p->released) : GM_OK;
}

/* The totals of a batch, in what comes back in a slot. */
static int64_t batch_totals(const gm_reduce *p)
{
    return p->plan->at_once * p->r->inner * (int64_t)sizeof(gm_moments);
}

static int compute_rows(const gm_reduce *p, const gm_piece *piece, char *device, gm_queue *queue)
{
    gm_reduce_rows_call call = {.src = device,
                                .type = p->type,
                                .swap = p->r->dataset->swap,
                                .first = piece->leaf,
                                .leaves = piece->leaves,
                                .segment = p->r->n,
                                .want = p->r->want,
                                .out = (gm_moments *)(void *)(device + p->plan->data)};
    return p->job->ops->reduce_rows(queue, &call);
}

static int compute_batch(const gm_reduce *p, const gm_piece *piece, char *device, gm_queue *queue)
{
    int64_t n = p->r->n, inner = p->r->inner;
    int status = GM_OK;
    for (int64_t k = 0; k < piece->rows && !status; k++) {
        gm_reduce_columns_call call = {.rows = n,
                                       .cols = inner,
                                       .src = device + k * n * inner * p->size,
                                       .pitch = (size_t)(inner * p->size),
                                       .type = p->type,
                                       .swap = p->r->dataset->swap,
                                       .want = p->r->want,
                                       .begin = 1,
                                       .end = 1,
                                       .open = (gm_moments *)(void *)(device + p->plan->data) + k * inner,
                                       .total = (gm_total *)(void *)(device + p->plan->data + batch_totals(p)) +
                                                k * inner};
        status = p->job->ops->reduce_columns(queue, &call);
    }
    return status;
}

static int compute_columns(const gm_reduce *p, const gm_piece *piece, char *device, gm_queue *queue)
{
    gm_reduce_columns_call call = {.rows = piece->rows,
                                   .cols = piece->cols,
                                   .row0 = piece->row,
                                   .src = device,
                                   .pitch = (size_t)(piece->cols * p->size),
                                   .type = p->type,
                                   .swap = p->r->dataset->swap,
                                   .want = p->r->want,
                                   .begin = piece->row == p->row0,
                                   .end = piece->row + piece->rows == p->row1,
                                   .open = p->open + piece->at_col,
                                   .total = p->total + piece->at_col,
                                   .scratch = p->scratch,
                                   .scratch_count = p->plan->scratch};
    return p->job->ops->reduce_columns(queue, &call);
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_reduce *p = context;
    if (piece->kind == GM_REDUCE_RESULTS)
        return GM_OK;
    if (p->plan->mode == GM_REDUCE_COLUMNS)
        return compute_columns(p, piece, slot->device, queue);
    return p->plan->mode == GM_REDUCE_BATCHES ? compute_batch(p, piece, slot->device, queue)
                                              : compute_rows(p, piece, slot->device, queue);
}

static int from_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    gm_reduce *p = context;
    const gm_device_ops *ops = p->job->ops;
    if (piece->kind == GM_REDUCE_RESULTS) {
        size_t bytes = (size_t)piece->cols * sizeof *p->total;
        int status = ops->copy_out(out, slot->out, bytes, p->total + piece->at_col, bytes, bytes, 1);
        p->block_used = 1;
        return status ? status : ops->event_record(p->released, out);
    }
    int64_t at = p->plan->mode == GM_REDUCE_BATCHES ? batch_totals(p) : 0;
    size_t bytes = p->plan->mode == GM_REDUCE_BATCHES ? (size_t)(piece->rows * p->r->inner) * sizeof(gm_total)
                                                      : (size_t)piece->leaves * sizeof(gm_moments);
    return ops->copy_out(out, (char *)slot->out + at, bytes, (char *)slot->device + p->plan->data + at, bytes, bytes,
                         1);
}

/* The leaves of a segment, from its first one on. */
static void fold_segment(const gm_reduce *p, const gm_moments *leaf, gm_total *total)
{
    if (p->leaves == 1) {
        gm_total_of(total, leaf, p->kind);
        return;
    }
    gm_total_begin(total);
    for (int64_t first = 0; first < p->leaves; first += GM_NODE) {
        gm_total node;
        gm_total_begin(&node);
        for (int64_t i = first; i < gm_min(first + GM_NODE, p->leaves); i++)
            gm_total_add(&node, &leaf[i], p->kind);
        gm_total_merge(total, &node, p->kind);
    }
}

static int visit_in_batches(const gm_reduce *p, int64_t first, int64_t count, const gm_total *totals)
{
    int status = GM_OK;
    for (int64_t at = 0; at < count && !status; at += GM_REDUCE_BATCH)
        status = p->r->visit(p->r->context, first + at, gm_min(GM_REDUCE_BATCH, count - at), totals + at);
    return status;
}

/* On an I/O thread: passes the results of a piece to the operation. */
static int write_piece(void *context, const gm_piece *piece, gm_range all, const void *out)
{
    (void)all;
    const gm_reduce *p = context;
    const char *back = out;
    if (piece->kind != GM_REDUCE_ELEMENTS)
        return visit_in_batches(p, piece->col, piece->cols, out);
    if (p->plan->mode == GM_REDUCE_BATCHES)
        return visit_in_batches(p, piece->row * p->r->inner, piece->rows * p->r->inner,
                                (const gm_total *)(const void *)(back + batch_totals(p)));
    const gm_moments *leaf = out;
    int64_t room = gm_round_up(p->plan->at_once * p->leaves * (int64_t)sizeof *leaf, GM_SLOT_ALIGN);
    gm_total *total = (gm_total *)(void *)((char *)(uintptr_t)back + room); /* the slot is this thread's */
    int status = GM_OK;
    for (int64_t at = 0, count; at < piece->rows && !status; at += count) {
        count = gm_min(GM_REDUCE_BATCH, piece->rows - at);
        for (int64_t i = 0; i < count; i++)
            fold_segment(p, leaf + (at + i) * p->leaves, &total[i]);
        status = p->r->visit(p->r->context, piece->row + at, count, total);
    }
    return status;
}

/* A node is complete; and perhaps its segment. */
static int end_node(gm_reduce *p, int64_t segment, int64_t node)
{
    int status = GM_OK;
    if (!gm_reduce_is_own(p, segment)) {
        p->cut[p->cut_count++] = (gm_reduce_node){segment * p->nodes + node, p->node};
    } else {
        gm_total_merge(&p->segment, &p->node, p->kind);
        if (node == p->nodes - 1) {
            status = p->r->visit(p->r->context, segment, 1, &p->segment);
            gm_total_begin(&p->segment);
        }
    }
    gm_total_begin(&p->node);
    return status;
}

/* Totals of the same columns come one rank after the other, in the order of their rows; the last one's slot then has
 * them all. */
static void merge_results(gm_reduce *p, const gm_piece *piece, gm_total *totals)
{
    for (int64_t i = 0; i < piece->cols; i++) {
        if (piece->kind == GM_REDUCE_RESULTS)
            p->merged[i] = totals[i];
        else
            gm_total_merge(&p->merged[i], &totals[i], p->kind);
    }
    if (piece->last)
        memcpy(totals, p->merged, (size_t)piece->cols * sizeof *totals);
}

/* Leaves, in order, on the main thread; or results. */
static int end_piece(void *context, const gm_piece *piece, const void *out)
{
    gm_reduce *p = context;
    if (piece->kind != GM_REDUCE_ELEMENTS) {
        merge_results(p, piece, (gm_total *)(uintptr_t)out);
        return GM_OK;
    }
    const gm_moments *leaf = out;
    int status = GM_OK;
    for (int64_t i = 0; i < piece->leaves && !status; i++) {
        int64_t segment = (piece->leaf + i) / p->leaves, index = (piece->leaf + i) % p->leaves;
        gm_total_add(&p->node, &leaf[i], p->kind);
        if (index % GM_NODE == GM_NODE - 1 || index == p->leaves - 1)
            status = end_node(p, segment, index / GM_NODE);
    }
    return status;
}

static int send_results(void *context, const gm_piece *piece, const void *out)
{
    (void)context;
    return gm_send(0, out, (size_t)piece->cols * sizeof(gm_total));
}

static int receive_results(void *context, const gm_piece *piece, void *out)
{
    (void)context;
    return gm_receive(piece->peer, out, (size_t)piece->cols * sizeof(gm_total));
}

void gm_reduce_program(gm_reduce *p, gm_program *program)
{
    *program = (gm_program){.context = p,
                            .next = gm_reduce_next,
                            .read = read_piece,
                            .await = await,
                            .compute = compute,
                            .from_device = from_device,
                            .write = write_piece,
                            .done = end_piece};
    if (p->plan->by_rows) {
        program->send = send_results;
        program->receive = receive_results;
    }
}
