#include "base/clock.h"
#include "base/memory.h"
#include "base/size.h"
#include "src/flat.h"
#include "src/reduce_run.h"

#include <string.h>

/* Reader, memory of columns, room for the nodes of shared segments. */
static int prepare(gm_reduce *p)
{
    const gm_device_ops *ops = p->job->ops;
    const gm_reduce_plan *plan = p->plan;
    gm_device *device = p->job->device;
    void *memory = NULL;
    int is_rows = plan->mode == GM_REDUCE_SEGMENTS || plan->mode == GM_REDUCE_NODES, status = GM_OK;
    if (is_rows ? !ops->reduce_rows : !ops->reduce_columns)
        return gm_fail(GM_EDEVICE, "%s devices cannot reduce yet, expected --device cpu", ops->kind);
    if (p->begin < p->end)
        status = gm_reader_open(p->r->dataset, &p->reader);
    if (!status && plan->mode == GM_REDUCE_NODES && p->job->ranks->size > 1) {
        p->cut_most = gm_min(gm_ceil_div(plan->units, p->job->ranks->size), 2 * p->nodes);
        status = gm_host_alloc((size_t)p->cut_most * sizeof *p->cut, &memory);
        p->cut = memory;
        for (int64_t i = 0; i < p->cut_most && !status; i++)
            p->cut[i].index = -1;
    }
    if (status || plan->mode != GM_REDUCE_COLUMNS || p->begin == p->end)
        return status;
    if (plan->by_rows && p->job->ranks->rank == 0)
        status = gm_host_alloc((size_t)plan->slot, &memory);
    p->merged = memory;
    memory = NULL;
    if (!status)
        status = ops->alloc(device, (size_t)plan->block * sizeof *p->open, &memory);
    p->open = memory;
    memory = NULL;
    if (!status)
        status = ops->alloc(device, (size_t)plan->block * sizeof *p->total, &memory);
    p->total = memory;
    memory = NULL;
    if (!status && plan->scratch > 0)
        status = ops->alloc(device, (size_t)plan->scratch * sizeof *p->scratch, &memory);
    p->scratch = memory;
    return status ? status : ops->event_open(device, &p->released);
}

static void release(gm_reduce *p)
{
    const gm_device_ops *ops = p->job->ops;
    gm_device *device = p->job->device;
    if (p->released)
        ops->event_close(p->released);
    ops->free(device, p->scratch);
    ops->free(device, p->total);
    ops->free(device, p->open);
    gm_host_free(p->merged);
    gm_host_free(p->cut);
    gm_reader_close(p->reader);
}

/* Elements of this rank's share. */
static int64_t share_elements(const gm_reduce *p)
{
    int64_t n = p->r->n, inner = p->r->inner;
    if (p->plan->mode == GM_REDUCE_NODES) {
        int64_t from = p->begin / p->nodes * p->leaves + p->begin % p->nodes * GM_NODE;
        int64_t to = p->end / p->nodes * p->leaves + p->end % p->nodes * GM_NODE;
        return gm_reduce_leaf_start(p, to) - gm_reduce_leaf_start(p, from);
    }
    if (p->plan->mode == GM_REDUCE_COLUMNS)
        return (p->row1 - p->row0) * (p->col1 - p->at);
    return (p->end - p->begin) * n * inner;
}

static int run(gm_job *job, gm_reduce *p, const char *what)
{
    gm_program program;
    int by_rows = p->plan->by_rows;
    if (p->begin == p->end)
        return GM_OK;
    p->at = by_rows ? 0 : p->begin;
    p->col1 = by_rows ? p->r->inner : p->end;
    p->row = p->row0 = by_rows ? p->begin : 0;
    p->row1 = by_rows ? p->end : p->r->n;
    p->sharers = by_rows ? (int)gm_min(gm_ceil_div(p->plan->units, p->plan->unit), job->ranks->size) : 1;
    int64_t bytes = share_elements(p) * p->size;
    job->report.bytes_read += bytes;
    gm_reduce_program(p, &program);
    gm_total_begin(&p->node);
    gm_total_begin(&p->segment);
    if (p->plan->mode == GM_REDUCE_NODES)
        p->at = p->begin / p->nodes * p->leaves + p->begin % p->nodes * GM_NODE;
    return gm_flat_run(job, what, bytes, p->plan->slot, p->plan->depth, &program, &job->report.times);
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
static int gather_all(gm_job *job, gm_reduce *p)
{
    int64_t most = -p->cut_count;
    double from = gm_clock();
    void *all = NULL;
    int status = gm_job_agree_all(job, gm_least_all(&most));
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

int gm_reduce_run_all(gm_job *job, const gm_reduction *r, const gm_reduce_plan *plan, const char *what)
{
    gm_reduce p = {.job = job, .r = r, .plan = plan, .type = r->dataset->type, .kind = gm_dtype_get_kind(r->dataset->type),
                   .size = (int64_t)gm_dtype_size(r->dataset->type), .leaf = gm_leaf_length(r->dataset->type)};
    p.leaves = gm_max(gm_ceil_div(r->n, p.leaf), 1);
    p.nodes = gm_ceil_div(p.leaves, GM_NODE);
    gm_reduce_share(plan, job->ranks, &p.begin, &p.end);
    if (r->n == 0)
        return gm_job_agree_all(job, visit_empty(&p));
    double from = gm_clock();
    int status = gm_job_agree_all(job, prepare(&p));
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (!status)
        status = gm_job_agree_all(job, run(job, &p, what));
    if (!status && plan->mode == GM_REDUCE_NODES && job->ranks->size > 1)
        status = gather_all(job, &p);
    release(&p);
    return status;
}
