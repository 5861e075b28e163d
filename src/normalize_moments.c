/* normalize_moments.c - extremes, means and deviations: of the stack, of each frame, of each pixel. Leaves and nodes are those of base/statistics.h: the
 * numbers are those that `reduce` finds. */
#include "src/normalize.h"

#include "base/memory.h"
#include "base/size.h"
#include "src/flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pass over rows: of the stack as one segment, or of each frame. */
typedef struct moments {
    gm_normalize *p;
    gm_dtype_kind kind;
    unsigned want;
    gm_total node, total; /* of the segment that is folded */
    int64_t leaves;       /* of the node, so far */
    gm_total *nodes;      /* [node_room] of the share of a stack whose sums depend on their order; NULL: they fold into total */
    int64_t node_count, node_room;
    int64_t constant;
    gm_moments *open;     /* columns: [block_cols], device memory, as the next one */
    gm_total *columns;
    int64_t first;        /* of the block of columns */
} moments;

static unsigned wanted(const gm_normalize_case *c)
{
    if (c->method == GM_MINMAX)
        return GM_WANT_RANGE;
    return gm_dtype_get_kind(c->src.type) == GM_FLOAT ? GM_WANT_SUM | GM_WANT_SPREAD : GM_WANT_SUM | GM_WANT_SQUARES;
}

static double real_of(uint64_t value, gm_dtype_kind kind)
{
    double real;
    memcpy(&real, &value, sizeof real);
    return kind == GM_FLOAT ? real : kind == GM_SIGNED ? (double)(int64_t)value : (double)value;
}

/* Entry i from what is known of its elements. Returns whether it is marked. */
static int set_entry(gm_normalize *p, int64_t i, const gm_total *t, gm_dtype_kind kind)
{
    gm_dtype type = p->problem->src.type;
    if (t->count == 0)
        return gm_normalize_set(p, i, NAN, NAN, 1);
    if (p->problem->method == GM_ZSCORE)
        return gm_normalize_set(p, i, gm_statistic_get(t, type, GM_STAT_MEAN, 0).real, gm_statistic_get(t, type, GM_STAT_STD, 0).real, 1);
    double least = real_of(t->min, kind), most = real_of(t->max, kind);
    double span = kind == GM_FLOAT ? (most == least ? 0 : most - least) : (double)(t->max - t->min); /* of integers exactly, then rounded */
    return gm_normalize_set(p, i, least, span, p->problem->hi - p->problem->lo);
}

/* --- Rows --- */

static moments *pass_of(void *context)
{
    return ((gm_normalize *)context)->pass;
}

static int next_rows(void *context, gm_piece *piece, int *more)
{
    moments *m = pass_of(context);
    return gm_normalize_next(m->p, piece, more, GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_DONE, 0);
}

static int compute_rows(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const moments *m = pass_of(context);
    const gm_normalize_case *c = m->p->problem;
    gm_rows_call call = {.src = gm_normalize_elements(m->p, piece, slot), .type = c->src.type, .swap = c->src.swap,
                         .leaves = gm_normalize_records(c, piece->rows, piece->cols), .want = m->want,
                         .segment = c->per == GM_PER_FRAME ? piece->cols : piece->rows * piece->cols,
                         .out = (void *)((char *)slot->device + m->p->plan.in_bytes)};
    return m->p->job->ops->reduce_rows(queue, &call);
}

static int fetch_records(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    const moments *m = pass_of(context);
    size_t bytes = (size_t)gm_normalize_records(m->p->problem, piece->rows, piece->cols) * sizeof(gm_moments);
    if (m->p->job->ops->unified)
        return GM_OK;
    return m->p->job->ops->copy_out(out, (char *)slot->host + m->p->plan.in_bytes, bytes, (char *)slot->device + m->p->plan.in_bytes, bytes, bytes, 1);
}

static int close_node(moments *m)
{
    if (m->leaves == 0)
        return GM_OK;
    if (m->nodes && m->node_count == m->node_room)
        return gm_fail(GM_EINTERNAL, "normalize: more nodes than there is room for");
    if (m->nodes)
        m->nodes[m->node_count++] = m->node;
    else
        gm_total_merge(&m->total, &m->node, m->kind);
    gm_total_begin(&m->node);
    m->leaves = 0;
    return GM_OK;
}

/* Leaves of a segment, in order. */
static int fold_leaves(moments *m, const gm_moments *records, int64_t count)
{
    int status = GM_OK;
    for (int64_t i = 0; i < count && !status; i++) {
        gm_total_add(&m->node, &records[i], m->kind);
        if (++m->leaves == GM_NODE)
            status = close_node(m);
    }
    return status;
}

/* Pieces come in order: those of a frame one behind the other, and several frames only as a whole. */
static int fold_piece(void *context, const gm_piece *piece, const void *host)
{
    moments *m = pass_of(context);
    gm_normalize *p = m->p;
    const gm_moments *records = (const void *)((const char *)host + p->plan.in_bytes);
    int64_t count = gm_normalize_records(p->problem, piece->rows, piece->cols);
    int status = GM_OK;
    if (p->problem->per == GM_PER_STACK)
        return fold_leaves(m, records, count);
    count /= piece->rows;
    for (int64_t i = 0; i < piece->rows && !status; i++) {
        status = fold_leaves(m, records + i * count, count);
        if (status || piece->at_col + piece->cols < p->plan.cols)
            continue;
        status = close_node(m);
        m->constant += set_entry(p, piece->at_row + i, &m->total, m->kind);
        gm_total_begin(&m->total);
    }
    return status;
}

static int run_rows(moments *m)
{
    gm_program program;
    gm_normalize_begin(m->p, &program, 0, gm_normalize_pieces(&m->p->plan));
    program.next = next_rows;
    program.compute = compute_rows;
    program.from_device = fetch_records;
    program.done = fold_piece;
    int status = gm_normalize_run(m->p, &program, m);
    if (!status && m->p->problem->per == GM_PER_STACK)
        status = close_node(m);
    return status;
}

/* --- The stack: the ranks' parts, in order --- */

/* Room for the nodes of the largest share, and for those of all ranks on the first. */
static int allocate_nodes_all(moments *m, void **gathered)
{
    const gm_normalize_plan *plan = &m->p->plan;
    int64_t least = plan->flat ? -gm_ceil_div(plan->cols, GM_NODE * gm_leaf_length(m->p->problem->src.type)) : -1;
    const gm_ranks *ranks = m->p->job->ranks;
    void *memory = NULL;
    int status = gm_job_agree_all(m->p->job, gm_least_all(&least));
    if (status)
        return status;
    m->node_room = -least;
    status = gm_host_alloc((size_t)m->node_room * sizeof *m->nodes, &memory);
    m->nodes = memory;
    for (int64_t i = 0; i < m->node_room && !status; i++)
        gm_total_begin(&m->nodes[i]);
    if (!status && ranks->rank == 0)
        status = gm_host_alloc((size_t)gm_mul_sat(m->node_room, ranks->size) * sizeof *m->nodes, gathered);
    return gm_job_agree_all(m->p->job, status);
}

static int stack_all(moments *m, int64_t *constant)
{
    const gm_job *job = m->p->job;
    void *gathered = NULL;
    int status = allocate_nodes_all(m, &gathered);
    gm_total *room = m->nodes, total;
    if (!m->p->plan.flat)
        m->nodes = NULL; /* in any order */
    if (!status)
        status = gm_job_agree_all(job, run_rows(m));
    if (!status) {
        if (!m->nodes)
            *room = m->total;
        status = gm_job_agree_all(job, gm_gather_all(job->ranks, room, (size_t)m->node_room * sizeof *room, gathered));
    }
    if (!status && job->ranks->rank == 0) {
        gm_total_begin(&total);
        for (int64_t i = 0; i < m->node_room * job->ranks->size; i++)
            gm_total_merge(&total, (const gm_total *)gathered + i, m->kind);
    }
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(&total, sizeof total));
    if (!status)
        *constant = set_entry(m->p, 0, &total, m->kind);
    gm_host_free(gathered);
    gm_host_free(room);
    return status;
}

/* --- Columns --- */

static int next_columns(void *context, gm_piece *piece, int *more)
{
    moments *m = pass_of(context);
    return gm_normalize_next(m->p, piece, more, GM_STAGE_COMPUTE, 0);
}

static int compute_columns(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const moments *m = pass_of(context);
    const gm_normalize_case *c = m->p->problem;
    gm_columns_call call = {.rows = piece->rows, .cols = piece->cols, .row0 = piece->at_row, .src = gm_normalize_elements(m->p, piece, slot),
                            .pitch = (size_t)piece->cols * gm_dtype_size(c->src.type), .type = c->src.type, .swap = c->src.swap, .want = m->want,
                            .begin = piece->at_row == 0, .end = piece->at_row + piece->rows == m->p->plan.rows,
                            .open = m->open + (piece->at_col - m->first), .total = m->columns + (piece->at_col - m->first)};
    return m->p->job->ops->reduce_columns(queue, &call);
}

/* Pieces [begin, end): a block of columns. */
static int run_columns(moments *m, int64_t begin, int64_t end)
{
    gm_program program;
    gm_normalize_begin(m->p, &program, begin, end);
    program.next = next_columns;
    program.compute = compute_columns;
    return gm_normalize_run(m->p, &program, m);
}

/* Totals of the block's columns; calls visit for each in turn. */
static int each_column(moments *m, int64_t cols, gm_normalize_column *visit, void *context)
{
    const gm_device_ops *ops = m->p->job->ops;
    gm_queue *queue = gm_stream_in(m->p->stream);
    void *staging;
    int status = ops->pin(m->p->job->device, GM_NORMALIZE_STAGING * sizeof(gm_total), &staging);
    for (int64_t at = 0; at < cols && !status; at += GM_NORMALIZE_STAGING) {
        int64_t count = gm_min(GM_NORMALIZE_STAGING, cols - at);
        size_t bytes = (size_t)count * sizeof(gm_total);
        status = ops->copy_out(queue, staging, bytes, m->columns + at, bytes, bytes, 1);
        if (!status)
            status = ops->queue_sync(queue);
        for (int64_t i = 0; i < count && !status; i++)
            visit(context, m->first + at + i, (const gm_total *)staging + i);
    }
    ops->unpin(m->p->job->device, staging);
    return status;
}

int gm_normalize_columns(gm_normalize *p, unsigned want, gm_normalize_column *visit, void *context)
{
    const gm_device_ops *ops = p->job->ops;
    const gm_normalize_plan *plan = &p->plan;
    moments m = {.p = p, .kind = gm_dtype_get_kind(p->problem->src.type), .want = want};
    void *open = NULL, *columns = NULL;
    int64_t down = plan->rows == 0 ? 0 : gm_ceil_div(plan->rows, plan->piece_rows), begin = 0;
    int status = ops->alloc(p->job->device, (size_t)plan->block_cols * sizeof *m.open, &open);
    if (!status)
        status = ops->alloc(p->job->device, (size_t)plan->block_cols * sizeof *m.columns, &columns);
    m.open = open;
    m.columns = columns;
    for (; m.first < plan->cols && !status; m.first += plan->block_cols) {
        int64_t cols = gm_min(plan->block_cols, plan->cols - m.first), end = begin + down * gm_ceil_div(cols, plan->piece_cols);
        status = run_columns(&m, begin, end);
        if (!status)
            status = each_column(&m, cols, visit, context);
        begin = end;
    }
    ops->free(p->job->device, columns);
    ops->free(p->job->device, open);
    return status;
}

static void set_column(void *context, int64_t i, const gm_total *total)
{
    moments *m = context;
    m->constant += set_entry(m->p, i, total, m->kind);
}

/* Columns of whose rows each rank has some: what all know of them together. Collective. */
static int exchange_columns_all(moments *m, gm_total *mine, gm_total *gathered)
{
    const gm_job *job = m->p->job;
    const gm_device_ops *ops = job->ops;
    gm_queue *queue = gm_stream_in(m->p->stream);
    int status = GM_OK;
    for (int64_t at = 0; at < m->p->plan.cols && !status; at += GM_NORMALIZE_STAGING) {
        int64_t count = gm_min(GM_NORMALIZE_STAGING, m->p->plan.cols - at);
        size_t bytes = (size_t)count * sizeof *mine;
        status = ops->copy_out(queue, mine, bytes, m->columns + at, bytes, bytes, 1);
        status = gm_job_agree_all(job, status ? status : ops->queue_sync(queue));
        if (!status)
            status = gm_gather_all(job->ranks, mine, bytes, gathered);
        for (int64_t i = 0; i < count * (job->ranks->size - 1) && !status && gathered; i++)
            gm_total_merge(&gathered[i % count], &gathered[count + i], m->kind);
        if (!status && gathered)
            memcpy(mine, gathered, bytes);
        if (!status)
            status = gm_broadcast_all(mine, bytes);
        for (int64_t i = 0; i < count && !status; i++)
            set_column(m, at + i, &mine[i]);
    }
    return gm_job_agree_all(job, status);
}

static int columns_by_rows_all(moments *m)
{
    const gm_job *job = m->p->job;
    const gm_device_ops *ops = job->ops;
    void *open = NULL, *columns = NULL, *mine = NULL, *gathered = NULL;
    int status = ops->alloc(job->device, (size_t)m->p->plan.cols * sizeof *m->open, &open);
    if (!status)
        status = ops->alloc(job->device, (size_t)m->p->plan.cols * sizeof *m->columns, &columns);
    if (!status)
        status = ops->pin(job->device, GM_NORMALIZE_STAGING * sizeof(gm_total), &mine);
    if (!status && job->ranks->rank == 0)
        status = gm_host_alloc((size_t)job->ranks->size * GM_NORMALIZE_STAGING * sizeof(gm_total), &gathered);
    m->open = open;
    m->columns = columns;
    if (!status)
        status = run_columns(m, 0, gm_normalize_pieces(&m->p->plan));
    status = gm_job_agree_all(job, status);
    if (!status)
        status = exchange_columns_all(m, mine, gathered);
    gm_host_free(gathered);
    ops->unpin(job->device, mine);
    ops->free(job->device, columns);
    ops->free(job->device, open);
    return status;
}

int gm_normalize_moments_all(gm_normalize *p, int64_t *constant)
{
    moments m = {.p = p, .kind = gm_dtype_get_kind(p->problem->src.type), .want = wanted(p->problem)};
    gm_total_begin(&m.node);
    gm_total_begin(&m.total);
    if (p->problem->per == GM_PER_STACK)
        return stack_all(&m, constant);
    if (p->problem->per == GM_PER_PIXEL && p->problem->by_rows) {
        int status = columns_by_rows_all(&m);
        *constant = m.constant;
        return status;
    }
    int status = gm_job_agree_all(p->job, p->problem->per == GM_PER_FRAME ? run_rows(&m) : gm_normalize_columns(p, m.want, set_column, &m));
    *constant = m.constant;
    return status ? status : gm_job_agree_all(p->job, gm_sum_all(constant));
}
