/* reduce - statistics of a dataset: of all its elements on standard output, along an axis as datasets; with --output
 * always as datasets. */
#include "base/log.h"
#include "base/size.h"
#include "src/operation.h"
#include "src/reduce/reduce.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>

_Static_assert((int)GM_STATISTICS <= (int)GM_OUTPUT_DATASETS, "an output has a dataset for each statistic");

/* One rank's run. */
typedef struct own {
    gm_reduction reduction;
    gm_reduce_plan plan;
    gm_reduce *reduce;
    gm_total total;       /* all: rank 0's */
    atomic_llong written; /* bytes */
} own;

static int describe(gm_run *run)
{
    gm_reduce_case *c = run->c;
    int status = gm_run_describe_input(run, 0, run->job->options->operands[0], NULL);
    if (!status)
        status = gm_reduce_describe(run->job->options, c);
    for (int i = 0; i < c->statistics && !status && c->writes; i++) {
        char name[32];
        snprintf(name, sizeof name, "/%s", gm_statistic_name(c->statistic[i]));
        status = gm_run_describe_output(run, name, c->type[i], c->rank, c->dims);
    }
    return status;
}

/* --- Results --- */

static json_t *value_to_json(const gm_value *value)
{
    char text[GM_VALUE_TEXT];
    int fits = value->words[1] == 0 && value->words[2] == 0 && value->words[0] <= INT64_MAX;
    if (value->kind == GM_VALUE_REAL && isfinite(value->real))
        return json_real(value->real);
    if (value->kind == GM_VALUE_INTEGER && fits)
        return json_integer(value->negative ? -(json_int_t)value->words[0] : (json_int_t)value->words[0]);
    return json_string(gm_value_format(value, text)); /* JSON has no NaN, and this library no more than 64 bits */
}

/* One `name value` a line. Rank 0. */
static int print_results(gm_run *run)
{
    const gm_reduce_case *c = run->c;
    const own *o = run->own;
    json_t *results = run->job->report.results = json_object();
    for (int i = 0; i < c->statistics; i++) {
        char text[GM_VALUE_TEXT];
        const char *name = gm_statistic_name(c->statistic[i]);
        gm_value value = gm_statistic_get(&o->total, c->dataset.type, c->statistic[i], c->propagate);
        printf("%s %s\n", name, gm_value_format(&value, text));
        json_object_set_new(results, name, value_to_json(&value));
    }
    return gm_stdout_flush();
}

static int write_totals(void *context, int64_t first, int64_t count, const gm_total *totals)
{
    const gm_run *run = context;
    const gm_reduce_case *c = run->c;
    own *o = run->own;
    char values[GM_REDUCE_BATCH * sizeof(double)];
    int status = GM_OK;
    for (int i = 0; i < c->statistics && !status; i++) {
        size_t size = gm_dtype_size(c->type[i]);
        for (int64_t k = 0; k < count; k++) {
            gm_value value = gm_statistic_get(&totals[k], c->dataset.type, c->statistic[i], c->propagate);
            gm_value_store(&value, c->type[i], values + (size_t)k * size);
        }
        status = gm_output_write_range(run->output, i, first, count, values);
        atomic_fetch_add(&o->written, (long long)(count * (int64_t)size));
    }
    return status;
}

/* --axis all: the one total, on rank 0. */
static int keep_total(void *context, int64_t first, int64_t count, const gm_total *totals)
{
    const gm_run *run = context;
    const gm_reduce_case *c = run->c;
    own *o = run->own;
    o->total = *totals;
    return c->writes ? write_totals(context, first, count, totals) : GM_OK;
}

/* --- The plan --- */

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    const gm_reduce_case *c = run->c;
    const gm_options *options = run->job->options;
    own *o = run->own;
    const gm_ranks *ranks = run->job->ranks;
    o->reduction = (gm_reduction){.dataset = &c->dataset,
                                  .outer = c->outer,
                                  .n = c->n,
                                  .inner = c->inner,
                                  .want = c->want,
                                  .visit = c->all ? keep_total : write_totals,
                                  .context = run};
    gm_total_begin(&o->total);
    int status = gm_reduce_plan_make(&o->reduction, budget, ranks->size, options->piece, options->depth, &o->plan,
                                     need);
    if (status)
        return status;
    run->ring = o->plan.ring;
    run->bytes_read = gm_reduce_bytes(&o->reduction, &o->plan, gm_reduce_share(&o->plan, ranks->size, ranks->rank));
    return GM_OK;
}

static json_t *plan_json(const gm_run *run)
{
    const gm_reduce_plan *p = &((const own *)run->own)->plan;
    return json_pack("{s:s, s:I, s:I, s:I, s:I}", "mode", gm_reduce_mode_name(p->mode), "units", (json_int_t)p->units,
                     "at_once", (json_int_t)p->at_once, "rows", (json_int_t)p->rows, "columns", (json_int_t)p->cols);
}

static void print_plan(const gm_run *run)
{
    static const char *const things[] = {
        [GM_REDUCE_SEGMENTS] = "segments", [GM_REDUCE_NODES] = "leaves", [GM_REDUCE_BATCHES] = "outer indices"};
    const gm_reduce_case *c = run->c;
    const gm_reduce_plan *p = &((const own *)run->own)->plan;
    char text[GM_SIZE_TEXT];
    printf("reduction       %lld x %lld of %lld %s elements each, on %s\n", (long long)c->outer, (long long)c->inner,
           (long long)c->n, gm_dtype_name(c->dataset.type), run->job->info.name);
    printf("reads           %s\n",
           gm_size_format(gm_dataset_elements(&c->dataset) * (int64_t)gm_dtype_size(c->dataset.type), text));
    printf("mode            %s\n", gm_reduce_mode_name(p->mode));
    if (p->mode == GM_REDUCE_COLUMNS)
        printf("piece           %lld rows of %lld columns, blocks of %lld columns\n", (long long)p->rows,
               (long long)p->cols, (long long)p->block);
    else
        printf("piece           %lld %s\n", (long long)p->at_once, things[p->mode]);
}

static void print_share(const gm_run *run, int rank)
{
    static const char *const units[] = {[GM_REDUCE_SEGMENTS] = "segments",
                                        [GM_REDUCE_NODES] = "nodes",
                                        [GM_REDUCE_BATCHES] = "outer indices",
                                        [GM_REDUCE_COLUMNS] = "columns"};
    const own *o = run->own;
    gm_range share = gm_reduce_share(&o->plan, run->job->ranks->size, rank);
    printf("rank %-10d %s [%lld:%lld]\n", rank, o->plan.by_rows ? "rows" : units[o->plan.mode], (long long)share.begin,
           (long long)share.end);
}

/* The ranks write the results of their shares. */
static int work(const gm_run *run, int rank, gm_work *passes)
{
    const gm_reduce_case *c = run->c;
    const own *o = run->own;
    int ranks = run->job->ranks->size;
    gm_range share = gm_reduce_share(&o->plan, ranks, rank);
    double read = (double)gm_reduce_bytes(&o->reduction, &o->plan, share), written = 0;
    for (int i = 0; i < c->statistics && c->writes; i++)
        written += (double)(c->outer * c->inner) * (double)gm_dtype_size(c->type[i]) / ranks;
    passes[0] = gm_run_work(run, read, written);
    return 1;
}

/* --- The work --- */

static int prepare(gm_run *run)
{
    own *o = run->own;
    return gm_reduce_open(run->job, run->threads, &o->reduction, &o->plan, &run->progress, &o->reduce);
}

static int run_all(gm_run *run)
{
    const gm_reduce_case *c = run->c;
    own *o = run->own;
    gm_job *job = run->job;
    int status = gm_reduce_run_all(o->reduce);
    job->report.bytes_written = (int64_t)atomic_load(&o->written);
    gm_run_add_integer(run, "elements", c->n);
    if (!c->all)
        return status;
    if (!status)
        status = gm_run_check_inputs_all(run, status);
    if (!status && job->ranks->rank == 0)
        status = print_results(run);
    return gm_job_agree_all(job, status);
}

static void release(gm_run *run)
{
    own *o = run->own;
    gm_reduce_close(o->reduce);
    o->reduce = NULL;
}

const gm_operation gm_op_reduce = {.case_bytes = sizeof(gm_reduce_case),
                                   .own_bytes = sizeof(own),
                                   .inputs = offsetof(gm_reduce_case, dataset),
                                   .several_outputs = 1,
                                   .describe = describe,
                                   .plan = plan,
                                   .print_plan = print_plan,
                                   .print_share = print_share,
                                   .work = work,
                                   .plan_json = plan_json,
                                   .prepare = prepare,
                                   .run_all = run_all,
                                   .release = release};
