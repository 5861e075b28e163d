/* Flat and dark fields: the mean of their frames in float64, pixel by pixel, NaN left out (no other element: NaN), and
 * the denominators. Ranks share the
 * pixels of a field, whatever part of the stack they have, and then exchange the means. */
#include "src/normalize/normalize.h"

#include "base/memory.h"
#include "base/size.h"

#include <string.h>

/* The means of the pixels that this rank has reduced; 0 elsewhere. */
typedef struct field {
    gm_dtype type;
    double *mean; /* [pixels] */
} field;

static int set_means(void *context, int64_t first, int64_t count, const gm_total *totals)
{
    const field *f = context;
    for (int64_t i = 0; i < count; i++)
        f->mean[first + i] = gm_statistic_get(&totals[i], f->type, GM_STAT_MEAN, 0).real;
    return GM_OK;
}

/* Means of all pixels from the ranks that have them; wanted gets those of range. A mean has bits other than 0 on one
 * rank only, so the OR of all ranks' bits is the mean. Collective. */
static int exchange_all(const gm_normalize *p, double *mean, gm_range range, double *wanted)
{
    const gm_job *job = p->job;
    int size = job->ranks->size, first = job->ranks->rank == 0;
    gm_pool pool = {0};
    uint64_t *all = first ? gm_pool_host(&pool, (int64_t)size * GM_NORMALIZE_EXCHANGE, sizeof *all) : NULL;
    int status = gm_job_agree_all(job, pool.status);
    for (int64_t at = 0, n; at < p->c->cols && !status; at += n) {
        n = gm_min(GM_NORMALIZE_EXCHANGE, p->c->cols - at);
        size_t bytes = (size_t)n * sizeof *mean;
        status = gm_gather_all(job->ranks, mean + at, bytes, all);
        for (int64_t i = n; i < size * n && first && !status; i++)
            all[i % n] |= all[i];
        if (first && !status)
            memcpy(mean + at, all, bytes);
        if (!status)
            status = gm_broadcast_all(mean + at, bytes);
    }
    if (!status)
        memcpy(wanted, mean + range.begin, (size_t)gm_range_length(range) * sizeof *mean);
    gm_pool_release(&pool);
    return gm_job_agree_all(job, status);
}

/* Means of a field at the pixels of this rank's share of the stack. Collective. */
static int average_all(gm_normalize *p, int index, double *wanted)
{
    int64_t pixels = p->c->cols;
    gm_pool pool = {0};
    gm_reduction reduction = gm_normalize_field(p->c, index);
    gm_reduce *reduce = NULL;
    field f = {.type = reduction.dataset->type, .mean = gm_pool_host(&pool, pixels, sizeof *f.mean)};
    int status = pool.status;
    reduction.visit = set_means;
    reduction.context = &f;
    gm_memory_set_optional(p->plan.field_spare[index]);
    if (!status) {
        memset(f.mean, 0, (size_t)pixels * sizeof *f.mean);
        status = gm_reduce_open(p->job, p->threads, &reduction, &p->plan.field[index], NULL, &reduce);
    }
    status = gm_job_agree_all(p->job, status);
    if (!status)
        status = gm_reduce_run_all(reduce);
    gm_reduce_close(reduce);
    gm_memory_set_optional(gm_ring_plan_spare(&p->plan.ring));
    if (!status)
        status = exchange_all(p, f.mean, (gm_range){p->plan.col, p->plan.col + p->plan.cols}, wanted);
    gm_pool_release(&pool);
    return status;
}

int gm_normalize_fields_all(gm_normalize *p)
{
    const gm_normalize_case *c = p->c;
    int64_t cols = p->plan.cols;
    gm_pool pool = {0};
    if (c->cols == 0)
        return GM_OK;
    double *flat = gm_pool_host(&pool, 2 * cols, sizeof *flat), *dark = flat ? flat + cols : NULL;
    int status = gm_job_agree_all(p->job, pool.status);
    for (int64_t i = 0; i < cols && !status; i++)
        dark[i] = 0;
    if (!status)
        status = average_all(p, 0, flat);
    if (!status && c->has_dark)
        status = average_all(p, 1, dark);
    for (int64_t i = 0; i < cols && !status; i++)
        gm_normalize_set(p, i, dark[i], flat[i] - dark[i], 1);
    gm_pool_release(&pool);
    return status;
}
