/* Extremes, means and deviations: of the stack, of each frame, of each pixel. Leaves and nodes are those of
 * base/statistics.h, so the numbers are those of `reduce`. The passes are of their own because the stack stays on the
 * device between them. */
#include "src/normalize/normalize.h"

#include "base/size.h"
#include "kernels/reduce/calls.h"

#include <math.h>
#include <string.h>

/* A pass over rows: of the stack as one segment, or of each frame. */
typedef struct moments {
    gm_normalize *p;
    gm_dtype_kind kind;
    unsigned want;
    gm_total node, total; /* of the segment that is folded */
    int64_t leaves;       /* of the node, so far */
    gm_total
        *nodes; /* [node_room] of the share of a stack whose sums depend on their order; NULL: they fold into total */
    int64_t node_count, node_room;
    int64_t constant;
    gm_moments *open; /* columns: [block_cols], device memory, as the next one */
    gm_total *columns;
    gm_total *staging; /* columns: [GM_NORMALIZE_STAGING] on the host, pinned */
    int64_t first;     /* of the block of columns */
    gm_pool pool;      /* memory of the pass */
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

/* Sets entry i from the total of its elements. Returns whether it is marked. */
static int set_entry(gm_normalize *p, int64_t i, const gm_total *t, gm_dtype_kind kind)
{
    gm_dtype type = p->c->src.type;
    if (t->count == 0)
        return gm_normalize_set(p, i, NAN, NAN, 1);
    if (p->c->method == GM_ZSCORE) {
        double mean = gm_statistic_get(t, type, GM_STAT_MEAN, 0).real,
               std = gm_statistic_get(t, type, GM_STAT_STD, 0).real;
        return gm_normalize_set(p, i, mean, isinf(std) ? NAN : std, 1); /* infinite: squares overflow */
    }
    double least = real_of(t->min, kind), most = real_of(t->max, kind);
    double span = kind == GM_FLOAT ? (most == least ? 0 : most - least)
                                   : (double)(t->max - t->min); /* of integers exactly, then rounded */
    return gm_normalize_set_ends(p, i, least, most, span);
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
    const gm_normalize_case *c = m->p->c;
    gm_reduce_rows_call call = {.src = gm_normalize_elements(m->p, piece, slot),
                                .type = c->src.type,
                                .swap = c->src.swap,
                                .leaves = gm_normalize_records(c, piece->rows, piece->cols),
                                .want = m->want,
                                .segment = c->per == GM_PER_FRAME ? piece->cols : piece->rows * piece->cols,
                                .out = (void *)((char *)slot->device + m->p->plan.in_bytes)};
    return m->p->job->ops->reduce_rows(queue, &call);
}

static int fetch_records(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    const moments *m = pass_of(context);
    size_t bytes = (size_t)gm_normalize_records(m->p->c, piece->rows, piece->cols) * sizeof(gm_moments);
    if (m->p->job->ops->unified)
        return GM_OK;
    return m->p->job->ops->copy_out(out, slot->out, bytes, (char *)slot->device + m->p->plan.in_bytes, bytes, bytes, 1);
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

/* Pieces come in order: those of a frame one after the other, and several frames only as a whole. */
static int fold_piece(void *context, const gm_piece *piece, const void *out)
{
    moments *m = pass_of(context);
    gm_normalize *p = m->p;
    const gm_moments *records = out;
    int64_t count = gm_normalize_records(p->c, piece->rows, piece->cols);
    int status = GM_OK;
    if (p->c->per == GM_PER_STACK)
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
    if (!status && m->p->c->per == GM_PER_STACK)
        status = close_node(m);
    return status;
}

/* --- The stack: the ranks' parts, in order --- */

/* Room for the nodes of the largest share, and for those of all ranks on the first. Collective. */
static int allocate_nodes_all(moments *m, gm_total **gathered)
{
    const gm_ranks *ranks = m->p->job->ranks;
    m->node_room = gm_normalize_nodes(m->p->c, m->p->plan.as_row, ranks->size);
    m->nodes = gm_pool_host(&m->pool, m->node_room, sizeof *m->nodes);
    for (int64_t i = 0; i < m->node_room && m->nodes; i++)
        gm_total_begin(&m->nodes[i]);
    if (ranks->rank == 0)
        *gathered = gm_pool_host(&m->pool, gm_mul_sat(m->node_room, ranks->size), sizeof *m->nodes);
    return gm_job_agree_all(m->p->job, m->pool.status);
}

static int stack_all(moments *m, int64_t *constant)
{
    const gm_job *job = m->p->job;
    gm_total *gathered = NULL;
    int status = allocate_nodes_all(m, &gathered);
    gm_total *room = m->nodes, total;
    if (!m->p->plan.as_row)
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
            gm_total_merge(&total, &gathered[i], m->kind);
    }
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(&total, sizeof total));
    if (!status)
        *constant = set_entry(m->p, 0, &total, m->kind);
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
    const gm_normalize_case *c = m->p->c;
    gm_reduce_columns_call call = {.rows = piece->rows,
                                   .cols = piece->cols,
                                   .row0 = piece->at_row,
                                   .src = gm_normalize_elements(m->p, piece, slot),
                                   .pitch = (size_t)piece->cols * gm_dtype_size(c->src.type),
                                   .type = c->src.type,
                                   .swap = c->src.swap,
                                   .want = m->want,
                                   .begin = piece->at_row == 0,
                                   .end = piece->at_row + piece->rows == m->p->plan.rows,
                                   .open = m->open + (piece->at_col - m->first),
                                   .total = m->columns + (piece->at_col - m->first)};
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

static void set_column(moments *m, int64_t i, const gm_total *total)
{
    m->constant += set_entry(m->p, i, total, m->kind);
}

/* Sets the entries of the block's columns from their totals. */
static int set_columns(moments *m, int64_t cols)
{
    const gm_device_ops *ops = m->p->job->ops;
    gm_queue *queue = gm_stream_in(m->p->stream);
    int status = GM_OK;
    for (int64_t at = 0; at < cols && !status; at += GM_NORMALIZE_STAGING) {
        int64_t count = gm_min(GM_NORMALIZE_STAGING, cols - at);
        size_t bytes = (size_t)count * sizeof(gm_total);
        status = ops->copy_out(queue, m->staging, bytes, m->columns + at, bytes, bytes, 1);
        if (!status)
            status = ops->queue_sync(queue);
        for (int64_t i = 0; i < count && !status; i++)
            set_column(m, m->first + at + i, &m->staging[i]);
    }
    return status;
}

/* Memory for the records and totals of columns. */
static int open_columns(moments *m, int64_t cols)
{
    m->open = gm_pool_device(&m->pool, cols, sizeof *m->open);
    m->columns = gm_pool_device(&m->pool, cols, sizeof *m->columns);
    m->staging = gm_pool_pinned(&m->pool, GM_NORMALIZE_STAGING, sizeof *m->staging);
    return m->pool.status;
}

/* Not collective. */
static int columns(moments *m)
{
    const gm_normalize_plan *plan = &m->p->plan;
    int64_t down = plan->rows == 0 ? 0 : gm_ceil_div(plan->rows, plan->piece_rows), begin = 0;
    int status = open_columns(m, plan->block_cols);
    for (; m->first < plan->cols && !status; m->first += plan->block_cols) {
        int64_t cols = gm_min(plan->block_cols, plan->cols - m->first),
                end = begin + down * gm_ceil_div(cols, plan->piece_cols);
        status = run_columns(m, begin, end);
        if (!status)
            status = set_columns(m, cols);
        begin = end;
    }
    return status;
}

/* Columns that all ranks have rows of: merges the totals of all ranks. Collective. */
static int exchange_columns_all(moments *m, gm_total *gathered)
{
    gm_total *mine = m->staging;
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
    const gm_ranks *ranks = m->p->job->ranks;
    gm_total *gathered = NULL;
    if (ranks->rank == 0)
        gathered = gm_pool_host(&m->pool, (int64_t)ranks->size * GM_NORMALIZE_STAGING, sizeof *gathered);
    int status = open_columns(m, m->p->plan.cols);
    if (!status)
        status = run_columns(m, 0, gm_normalize_pieces(&m->p->plan));
    status = gm_job_agree_all(m->p->job, status);
    return status ? status : exchange_columns_all(m, gathered);
}

int gm_normalize_moments_all(gm_normalize *p, int64_t *constant)
{
    moments m = {.p = p,
                 .kind = gm_dtype_get_kind(p->c->src.type),
                 .want = wanted(p->c),
                 .pool = {.ops = p->job->ops, .device = p->job->device}};
    int status;
    gm_total_begin(&m.node);
    gm_total_begin(&m.total);
    if (p->c->per == GM_PER_STACK)
        status = stack_all(&m, &m.constant);
    else if (p->c->per == GM_PER_PIXEL && p->plan.by_rows)
        status = columns_by_rows_all(&m);
    else
        status = gm_job_agree_all(p->job, p->c->per == GM_PER_FRAME ? run_rows(&m) : columns(&m));
    if (!status && p->c->per != GM_PER_STACK && !p->plan.by_rows)
        status = gm_job_agree_all(p->job, gm_sum_all(&m.constant));
    *constant = m.constant;
    gm_pool_release(&m.pool);
    return status;
}
