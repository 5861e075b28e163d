/* normalize_field.c - flat and dark fields: the mean of their frames in float64, pixel by pixel, and what is divided by. Ranks share the pixels of a
 * field, whatever part of the stack they have, and then exchange what they found. */
#include "src/normalize.h"

#include "base/memory.h"
#include "base/size.h"
#include "io/dataset.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 1 << 13 /* pixels that are exchanged at a time */ };

typedef struct field {
    gm_normalize_case problem; /* that of the frames of the field, as one of statistics of pixels */
    gm_normalize part;         /* and this rank's share of that */
    double *mean;              /* [part.plan.cols] */
} field;

static void take_mean(void *context, int64_t column, const gm_total *total)
{
    field *f = context;
    f->mean[column] = gm_statistic_get(total, f->problem.src.type, GM_STAT_MEAN, 1).real;
}

/* The pixels of this rank's share. */
static int average(field *f)
{
    gm_normalize *part = &f->part;
    const gm_job *job = part->job;
    void *memory = NULL;
    int status = gm_normalize_plan_make(job, &f->problem, &part->plan);
    if (!status)
        status = gm_host_alloc((size_t)part->plan.cols * sizeof *f->mean, &memory);
    f->mean = memory;
    if (!status)
        status = gm_reader_open(&f->problem.src, &part->reader);
    gm_stream_setup setup = {.ops = job->ops, .device = job->device, .ranks = job->ranks, .piece = part->plan.in_bytes + part->plan.out_bytes,
                             .depth = part->plan.depth, .threads = job->threads};
    if (!status)
        status = gm_stream_open(&setup, &part->stream);
    if (!status)
        status = gm_normalize_columns(part, gm_statistic_want(GM_STAT_MEAN, f->problem.src.type), take_mean, f);
    gm_stream_close(part->stream);
    gm_reader_close(part->reader);
    return status;
}

/* The part of [first, first + count) that lies in [at, at + n). */
static int64_t overlap(int64_t first, int64_t count, int64_t at, int64_t n, int64_t *begin)
{
    *begin = gm_max(first, at);
    return gm_max(0, gm_min(first + count, at + n) - *begin);
}

/* Every pixel from the rank that has it to those that want it: wanted [want_cols], from pixel want_col on. Bits that nobody has are 0, so that joining
 * all ranks' bits gives each number as it is. Collective. */
static int exchange_all(const field *f, int64_t want_col, int64_t want_cols, double *wanted)
{
    const gm_job *job = f->part.job;
    const gm_normalize_plan *plan = &f->part.plan;
    int size = job->ranks->size;
    void *memory = NULL;
    int status = gm_job_agree_all(job, gm_host_alloc((size_t)(job->ranks->rank == 0 ? size + 1 : 1) * AT_ONCE * sizeof(uint64_t), &memory));
    uint64_t *words = memory, *all = job->ranks->rank == 0 && words ? words + AT_ONCE : NULL;
    for (int64_t at = 0, n, begin; at < f->problem.cols && !status; at += n) {
        n = gm_min(AT_ONCE, f->problem.cols - at);
        memset(words, 0, AT_ONCE * sizeof *words);
        int64_t count = overlap(plan->col, plan->cols, at, n, &begin);
        if (count > 0)
            memcpy(words + (begin - at), f->mean + (begin - plan->col), (size_t)count * sizeof *words);
        status = gm_gather_all(job->ranks, words, (size_t)n * sizeof *words, all);
        for (int r = 1; r < size && all && !status; r++)
            for (int64_t i = 0; i < n; i++)
                all[i] |= all[r * n + i];
        if (all && !status)
            memcpy(words, all, (size_t)n * sizeof *words);
        if (!status)
            status = gm_broadcast_all(words, (size_t)n * sizeof *words);
        count = overlap(want_col, want_cols, at, n, &begin);
        if (count > 0)
            memcpy(wanted + (begin - want_col), words + (begin - at), (size_t)count * sizeof *words);
    }
    gm_host_free(memory);
    return gm_job_agree_all(job, status);
}

/* Means of a field at the pixels of this rank's share of the stack. Collective. */
static int find_all(gm_normalize *p, const gm_dataset *dataset, double *mean)
{
    field *f = calloc(1, sizeof *f);
    int status = gm_job_agree_all(p->job, f ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the description of a field"));
    if (!status) {
        f->problem = (gm_normalize_case){.method = GM_ZSCORE, .per = GM_PER_PIXEL, .type = GM_U8, .rows = gm_dataset_elements(dataset) / p->problem->cols,
                                         .cols = p->problem->cols, .src = *dataset};
        f->part = (gm_normalize){.job = p->job, .problem = &f->problem};
        status = gm_job_agree_all(p->job, average(f));
    }
    if (!status)
        status = exchange_all(f, p->plan.col, p->plan.cols, mean);
    if (f)
        gm_host_free(f->mean);
    free(f);
    return status;
}

int gm_normalize_flatfield_all(gm_normalize *p)
{
    const gm_normalize_case *c = p->problem;
    int64_t cols = p->plan.cols;
    void *memory = NULL;
    int status = gm_job_agree_all(p->job, c->cols > 0 ? gm_host_alloc((size_t)cols * 2 * sizeof(double), &memory) : GM_OK);
    double *flat = memory, *dark = flat ? flat + cols : NULL;
    for (int64_t i = 0; i < cols && dark; i++)
        dark[i] = 0;
    if (!status && c->cols > 0)
        status = find_all(p, &c->flat, flat);
    if (!status && c->cols > 0 && c->has_dark)
        status = find_all(p, &c->dark, dark);
    for (int64_t i = 0; i < cols && !status; i++)
        gm_normalize_set(p, i, dark[i], flat[i] - dark[i], 1);
    gm_host_free(memory);
    return status;
}
