/* One rank's reduction: memory, ring, and the results that ranks share. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/size.h"
#include "src/reduce/device.h"

#include <stdlib.h>

static int open_ring(gm_reduce *p)
{
    const gm_job *job = p->job;
    gm_stream_setup setup = {.ops = job->ops,
                             .device = job->device,
                             .piece = p->plan->ring.slot,
                             .depth = p->plan->ring.depth,
                             .buffer = p->plan->ring.buffer,
                             .out_at = p->plan->out_at,
                             .out = p->plan->out,
                             .threads = p->threads,
                             .progress = p->progress ? gm_progress_add : NULL,
                             .progress_context = p->progress};
    return gm_stream_open(&setup, &p->stream);
}

/* Reader, memory of columns, room for the nodes of shared segments. */
static int allocate(gm_reduce *p)
{
    const gm_device_ops *ops = p->job->ops;
    const gm_reduce_plan *plan = p->plan;
    const gm_ranks *ranks = p->job->ranks;
    int is_rows = plan->mode == GM_REDUCE_SEGMENTS || plan->mode == GM_REDUCE_NODES, status = GM_OK;
    if (is_rows ? !ops->reduce_rows : !ops->reduce_columns)
        return gm_job_fail_unsupported(p->job, "reduce");
    if (p->begin < p->end)
        status = gm_reader_open(p->r->dataset, &p->reader);
    if (status)
        return status;
    if (plan->mode == GM_REDUCE_NODES && ranks->size > 1) {
        p->cut_most = gm_min(gm_ceil_div(plan->units, ranks->size), 2 * p->nodes);
        p->cut = gm_pool_host(&p->pool, p->cut_most, sizeof *p->cut);
        for (int64_t i = 0; i < p->cut_most && p->cut; i++)
            p->cut[i].index = -1;
    }
    if (plan->mode != GM_REDUCE_COLUMNS || p->begin == p->end)
        return p->pool.status;
    if (plan->by_rows && ranks->rank == 0)
        p->merged = gm_pool_host(&p->pool, plan->out, 1);
    p->open = gm_pool_device(&p->pool, plan->block, sizeof *p->open);
    p->total = gm_pool_device(&p->pool, plan->block, sizeof *p->total);
    if (plan->scratch > 0)
        p->scratch = gm_pool_device(&p->pool, plan->scratch, sizeof *p->scratch);
    p->released = gm_pool_event(&p->pool);
    return p->pool.status;
}

int gm_reduce_open(gm_job *job, int threads, const gm_reduction *r, const gm_reduce_plan *plan, gm_progress *progress,
                   gm_reduce **out)
{
    gm_reduce *p = *out = calloc(1, sizeof *p);
    if (!p)
        return gm_fail(GM_EDEVICE, "no memory for a reduction");
    gm_range share = gm_reduce_share(plan, job->ranks->size, job->ranks->rank);
    *p = (gm_reduce){.job = job,
                     .threads = threads,
                     .pool = {.ops = job->ops, .device = job->device},
                     .r = r,
                     .plan = plan,
                     .progress = progress,
                     .type = r->dataset->type,
                     .kind = gm_dtype_get_kind(r->dataset->type),
                     .size = (int64_t)gm_dtype_size(r->dataset->type),
                     .leaf = gm_leaf_length(r->dataset->type),
                     .begin = share.begin,
                     .end = share.end};
    p->leaves = gm_max(gm_ceil_div(r->n, p->leaf), 1);
    p->nodes = gm_ceil_div(p->leaves, GM_NODE);
    if (r->n == 0)
        return GM_OK;
    int status = allocate(p);
    if (!status && p->begin < p->end)
        status = open_ring(p);
    if (status) {
        gm_reduce_close(p);
        *out = NULL;
    }
    return status;
}

void gm_reduce_close(gm_reduce *p)
{
    if (!p)
        return;
    gm_stream_close(p->stream);
    gm_pool_release(&p->pool);
    gm_reader_close(p->reader);
    free(p);
}

/* This rank's share. Not collective. */
static int run(gm_reduce *p)
{
    gm_report *report = &p->job->report;
    gm_program program;
    int by_rows = p->plan->by_rows;
    if (p->begin == p->end)
        return GM_OK;
    p->at = by_rows ? 0 : p->begin;
    p->col1 = by_rows ? p->r->inner : p->end;
    p->row = p->row0 = by_rows ? p->begin : 0;
    p->row1 = by_rows ? p->end : p->r->n;
    p->sharers = by_rows ? (int)gm_min(gm_ceil_div(p->plan->units, p->plan->unit), p->job->ranks->size) : 1;
    if (p->plan->mode == GM_REDUCE_NODES)
        p->at = p->begin / p->nodes * p->leaves + p->begin % p->nodes * GM_NODE;
    report->bytes_read += gm_reduce_bytes(p->r, p->plan, (gm_range){p->begin, p->end});
    gm_reduce_program(p, &program);
    gm_total_begin(&p->node);
    gm_total_begin(&p->segment);
    return gm_stream_run(p->stream, &program, &report->times);
}

/* The segments that several ranks have nodes of. Rank 0. */
static int fold_nodes(const gm_reduce *p, const gm_reduce_node *node, int64_t count)
{
    int64_t segment = -1;
    int status = GM_OK;
    gm_total total;
    gm_total_begin(&total);
    for (int64_t i = 0; i < count && !status; i++) {
        if (node[i].index < 0)
            continue;
        if (segment >= 0 && node[i].index / p->nodes != segment) {
            status = p->r->visit(p->r->context, segment, 1, &total);
            gm_total_begin(&total);
        }
        segment = node[i].index / p->nodes;
        gm_total_merge(&total, &node[i].total, p->kind);
    }
    return status || segment < 0 ? status : p->r->visit(p->r->context, segment, 1, &total);
}

/* Nodes of shared segments to rank 0. Collective. */
static int gather_all(gm_reduce *p)
{
    gm_job *job = p->job;
    int64_t most = -p->cut_count;
    double from = gm_clock();
    void *all = NULL;
    int status = gm_job_agree_all(job, gm_min_all(&most));
    most = -most;
    if (status || most == 0)
        return status;
    if (job->ranks->rank == 0)
        status = gm_host_alloc((size_t)gm_mul_sat(most, job->ranks->size) * sizeof *p->cut, &all);
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_gather_all(job->ranks, p->cut, (size_t)most * sizeof *p->cut, all));
    job->report.times.seconds[GM_PHASE_EXCHANGE] += gm_clock() - from;
    if (!status && job->ranks->rank == 0)
        status = fold_nodes(p, all, most * job->ranks->size);
    gm_host_free(all);
    return gm_job_agree_all(job, status);
}

/* Results of no elements. */
static int visit_empty(const gm_reduce *p)
{
    enum { BATCH = 64 };
    gm_total totals[BATCH];
    int status = GM_OK;
    for (int i = 0; i < BATCH; i++)
        gm_total_begin(&totals[i]);
    for (int64_t at = p->begin; at < p->end && !status; at += BATCH)
        status = p->r->visit(p->r->context, at, gm_min(BATCH, p->end - at), totals);
    return status;
}

int gm_reduce_run_all(gm_reduce *p)
{
    const gm_job *job = p->job;
    if (p->r->n == 0)
        return gm_job_agree_all(job, visit_empty(p));
    int status = gm_job_agree_all(job, run(p));
    if (!status && p->plan->mode == GM_REDUCE_NODES && job->ranks->size > 1)
        status = gather_all(p);
    return status;
}
