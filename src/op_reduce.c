/* reduce - statistics of a dataset: of all its elements on standard output, along an axis as datasets. */
#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "io/describe.h"
#include "src/flat.h"
#include "src/reduce.h"
#include "src/result.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)GM_STATISTICS <= (int)GM_OUTPUT_DATASETS, "an output has a dataset for each statistic");

typedef struct reduce {
    gm_job *job;
    gm_dataset dataset;
    gm_reduction reduction;
    gm_statistic statistic[GM_STATISTICS];
    gm_dtype type[GM_STATISTICS]; /* of their datasets */
    int statistics;
    int propagate, all;           /* --nan propagate, --axis all */
    int rank;                     /* of the results */
    int64_t dims[GM_RANK_MAX], cols;
    gm_total total;               /* all: rank 0's */
    gm_output *output;
    atomic_llong written;         /* bytes */
} reduce;

/* "min,max": in the order given. */
static int read_statistics(reduce *p, const char *list)
{
    unsigned seen = 0;
    for (int i = 0; !list && i < GM_STAT_ARGMIN; i++)
        p->statistic[p->statistics++] = (gm_statistic)i;
    for (const char *at = list; at;) {
        size_t length = strcspn(at, ",");
        gm_statistic statistic = gm_statistic_find(at, length);
        if (statistic == GM_STATISTICS)
            return gm_fail(GM_EUSAGE, "--stat '%.*s': expected some of count,nan,min,max,sum,sumsq,mean,var,std,norm,argmin,argmax",
                           (int)gm_min((int64_t)length, 60), at);
        if (seen >> statistic & 1)
            return gm_fail(GM_EUSAGE, "--stat %s: %s is there twice", list, gm_statistic_name(statistic));
        seen |= 1u << statistic;
        p->statistic[p->statistics++] = statistic;
        at = at[length] ? at + length + 1 : NULL;
    }
    for (int i = 0; i < p->statistics; i++)
        p->reduction.want |= gm_statistic_want(p->statistic[i], p->dataset.type);
    return GM_OK;
}

/* What only datasets have. */
static int refuse_output(const gm_options *o)
{
    static const char *const names[] = {"output", "chunk", "deflate", "shuffle"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (gm_options_given(o, names[i]))
            return gm_fail(GM_EUSAGE, "--%s: the statistics of all elements are printed, expected --axis frame, pixel, vector or a number", names[i]);
    return GM_OK;
}

/* The case from the command line, on every rank alike. */
static int describe_case(reduce *p)
{
    const gm_options *o = p->job->options;
    gm_reduction *r = &p->reduction;
    char title[GM_PATH_MAX], shape[GM_SHAPE_TEXT];
    int64_t bytes;
    int status = gm_reduce_axis(&p->dataset, o->axis, r, &p->rank, p->dims);
    if (!status)
        status = read_statistics(p, o->stat);
    p->all = strcmp(o->axis, "all") == 0;
    p->propagate = strcmp(o->nan, "propagate") == 0;
    if (!status && p->all)
        status = refuse_output(o);
    if (status)
        return status;
    gm_dataset_title(&p->dataset, title);
    gm_flat_shape(p->dataset.view_rank, p->dataset.view, shape);
    if (gm_mul(gm_dataset_elements(&p->dataset), (int64_t)gm_dtype_size(p->dataset.type), &bytes) ||
        gm_mul(gm_mul_sat(r->outer, r->inner), (int64_t)sizeof(gm_total), &bytes))
        return gm_fail(GM_EINPUT, "%s: %s %s elements do not fit 64-bit sizes", title, shape, gm_dtype_name(p->dataset.type));
    p->cols = 1;
    for (int d = 1; d < p->rank; d++)
        p->cols *= p->dims[d];
    for (int i = 0; i < p->statistics && !p->all; i++) {
        int is_extreme = p->statistic[i] == GM_STAT_MIN || p->statistic[i] == GM_STAT_MAX;
        p->type[i] = gm_statistic_type(p->statistic[i], p->dataset.type, r->n);
        if (r->n == 0 && is_extreme && gm_dtype_get_kind(p->dataset.type) != GM_FLOAT)
            return gm_fail(GM_EINPUT, "%s is %s: no integers have no %s, expected --stat without it", title, shape, gm_statistic_name(p->statistic[i]));
    }
    return GM_OK;
}

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
static int tell(reduce *p)
{
    json_t *results = p->job->report.results = json_object();
    for (int i = 0; i < p->statistics; i++) {
        char text[GM_VALUE_TEXT];
        const char *name = gm_statistic_name(p->statistic[i]);
        gm_value value = gm_statistic_get(&p->total, p->dataset.type, p->statistic[i], p->propagate);
        printf("%s %s\n", name, gm_value_format(&value, text));
        json_object_set_new(results, name, value_to_json(&value));
    }
    return fflush(stdout) || ferror(stdout) ? gm_fail(GM_EOUTPUT, "standard output: %s", strerror(errno)) : GM_OK;
}

static int keep(void *context, int64_t first, int64_t count, const gm_total *totals)
{
    reduce *p = context;
    (void)first;
    (void)count;
    p->total = *totals;
    return GM_OK;
}

/* Results [first, first + count) to one dataset. */
static int write_range(reduce *p, int index, int64_t first, int64_t count, const char *values)
{
    int64_t size = (int64_t)gm_dtype_size(p->type[index]);
    int status = GM_OK;
    for (int64_t at = first; at < first + count && !status;) {
        gm_rectangle r = gm_flat_rectangle(p->cols, at, first + count);
        status = gm_output_write(p->output, index, r.row, r.rows, r.col, r.cols, values + (at - first) * size, (size_t)(r.cols * size));
        at += r.rows * r.cols;
    }
    atomic_fetch_add(&p->written, (long long)(count * size));
    return status;
}

static int write_totals(void *context, int64_t first, int64_t count, const gm_total *totals)
{
    reduce *p = context;
    char values[GM_REDUCE_BATCH * sizeof(double)];
    int status = GM_OK;
    for (int i = 0; i < p->statistics && !status; i++) {
        size_t size = gm_dtype_size(p->type[i]);
        for (int64_t k = 0; k < count; k++) {
            gm_value value = gm_statistic_get(&totals[k], p->dataset.type, p->statistic[i], p->propagate);
            gm_value_store(&value, p->type[i], values + (size_t)k * size);
        }
        status = write_range(p, i, first, count, values);
    }
    return status;
}

/* What the output is to be. Rank 0. */
static int describe_output(const reduce *p, gm_output_record *record)
{
    const gm_options *o = p->job->options;
    char group[GM_NAME_MAX] = "";
    *record = (gm_output_record){.force = o->force, .sync = !o->no_sync, .datasets = p->statistics};
    int status = gm_result_name(p->job, p->dataset.file, record->file, group);
    size_t length = strlen(group);
    while (length > 0 && group[length - 1] == '/')
        group[--length] = '\0';
    if (!status && p->rank == 0 && (o->chunk || o->deflate || o->shuffle))
        status = gm_fail(GM_EUSAGE, "--chunk, --deflate and --shuffle: a single number takes none of them");
    for (int i = 0; i < p->statistics && !status; i++) {
        gm_output_dataset *d = &record->dataset[i];
        *d = (gm_output_dataset){.type = p->type[i], .rank = p->rank};
        memcpy(d->dims, p->dims, sizeof d->dims);
        if (snprintf(d->name, sizeof d->name, "%s/%s", group, gm_statistic_name(p->statistic[i])) >= (int)sizeof d->name)
            status = gm_fail(GM_EUSAGE, "--output %s: the name of the group is too long", o->output);
        if (!status && p->rank > 0)
            status = gm_result_layout(p->job, d);
    }
    return status;
}

/* Integer sums that are stored as float64. */
static void note_types(const reduce *p)
{
    for (int i = 0; i < p->statistics; i++)
        if ((p->statistic[i] == GM_STAT_SUM || p->statistic[i] == GM_STAT_SUMSQ) && p->type[i] == GM_F64 &&
            gm_dtype_get_kind(p->dataset.type) != GM_FLOAT)
            gm_note("%s of %lld %s elements may need more than 64 bits: stored as f64, rounded once", gm_statistic_name(p->statistic[i]),
                    (long long)p->reduction.n, gm_dtype_name(p->dataset.type));
}

static json_t *plan_to_json(const gm_reduce_plan *plan)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "mode", gm_reduce_mode_name(plan->mode), "units", (json_int_t)plan->units,
                     "at_once", (json_int_t)plan->at_once, "rows", (json_int_t)plan->rows, "columns", (json_int_t)plan->cols, "piece",
                     (json_int_t)plan->slot, "depth", (json_int_t)plan->depth, "host_bytes", (json_int_t)plan->host_bytes, "device_bytes",
                     (json_int_t)plan->device_bytes);
}

/* --plan: one `name value` a line. */
static void print_plan(const reduce *p, const gm_reduce_plan *plan)
{
    const gm_reduction *r = &p->reduction;
    static const char *const shares[] = {[GM_REDUCE_SEGMENTS] = "segments", [GM_REDUCE_NODES] = "nodes", [GM_REDUCE_BATCHES] = "outer indices",
                                         [GM_REDUCE_COLUMNS] = "columns"};
    static const char *const things[] = {[GM_REDUCE_SEGMENTS] = "segments", [GM_REDUCE_NODES] = "leaves", [GM_REDUCE_BATCHES] = "outer indices"};
    const gm_dtype type = p->dataset.type;
    char text[GM_SIZE_TEXT];
    int64_t bytes = gm_dataset_elements(&p->dataset) * (int64_t)gm_dtype_size(type);
    printf("reduction       %lld x %lld of %lld %s elements each, on %s\n", (long long)r->outer, (long long)r->inner, (long long)r->n,
           gm_dtype_name(type), p->job->info.name);
    printf("reads           %s\n", gm_size_format(bytes, text));
    printf("mode            %s\n", gm_reduce_mode_name(plan->mode));
    if (plan->mode == GM_REDUCE_COLUMNS)
        printf("piece           %lld rows of %lld columns, blocks of %lld columns\n", (long long)plan->rows, (long long)plan->cols, (long long)plan->block);
    else
        printf("piece           %lld %s\n", (long long)plan->at_once, things[plan->mode]);
    printf("ring            %lld slots of %s\n", (long long)plan->depth, gm_size_format(plan->slot, text));
    printf("device_memory   %s a rank\n", gm_size_format(plan->device_bytes, text));
    printf("host_memory     %s a rank\n", gm_size_format(plan->host_bytes, text));
    for (int rank = 0; rank < p->job->ranks->size; rank++) {
        gm_ranks one = *p->job->ranks;
        int64_t begin, end;
        one.rank = rank;
        gm_reduce_share(plan, &one, &begin, &end);
        printf("rank %-10d %s [%lld:%lld]\n", rank, plan->by_rows ? "rows" : shares[plan->mode], (long long)begin, (long long)end);
    }
    printf("expected_time   %.3g s (10 GB/s read a rank)\n", (double)bytes / 10e9 / p->job->ranks->size);
}

/* Into datasets. Collective. */
static int run_axis_all(reduce *p, const gm_reduce_plan *plan)
{
    gm_job *job = p->job;
    gm_result result = {0};
    gm_output_record *record = NULL;
    int status = GM_OK;
    if (job->ranks->rank == 0) {
        record = calloc(1, sizeof *record);
        status = record ? describe_output(p, record) : gm_fail(GM_EINTERNAL, "no memory for the description of the output");
        if (!status)
            note_types(p);
    }
    status = gm_result_create_all(job, record, &p->dataset, 1, status, &result);
    free(record);
    if (status)
        return status;
    p->output = result.output;
    status = gm_reduce_run_all(job, &p->reduction, plan, "reduce");
    job->report.bytes_written = (int64_t)atomic_load(&p->written);
    gm_attribute extra[] = {{.name = "elements", .kind = GM_ATTRIBUTE_INTEGER, .integer = p->reduction.n}};
    return gm_result_finish_all(job, &result, extra, 1, status);
}

static int run_all(reduce *p)
{
    gm_job *job = p->job;
    gm_reduce_plan plan;
    char text[GM_SIZE_TEXT];
    p->reduction.dataset = &p->dataset;
    p->reduction.context = p;
    p->reduction.visit = p->all ? keep : write_totals;
    int status = gm_reduce_plan_all(job, &p->reduction, 0, 0, &plan);
    if (status)
        return status;
    if (job->ranks->rank == 0) {
        job->report.inputs = json_pack("[o]", gm_report_dataset(&p->dataset));
        job->report.plan = plan_to_json(&plan);
    }
    gm_detail("%s on %s, %lld slots of %s, %d threads on processors %s", gm_reduce_mode_name(plan.mode), job->info.name, (long long)plan.depth,
              gm_size_format(plan.slot, text), job->threads, job->binding.list);
    if (job->options->plan) {
        if (job->ranks->rank == 0)
            print_plan(p, &plan);
        return GM_OK;
    }
    if (!p->all)
        return run_axis_all(p, &plan);
    status = gm_reduce_run_all(job, &p->reduction, &plan, "reduce");
    if (!status && job->ranks->rank == 0)
        status = tell(p);
    return gm_job_agree_all(job, status);
}

int gm_op_reduce(gm_job *job)
{
    double from = gm_clock();
    reduce *p = calloc(1, sizeof *p);
    int status = p ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the description of the dataset");
    if (!status && job->ranks->rank == 0)
        status = gm_describe(job->options->operands[0], NULL, &p->dataset);
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(&p->dataset, sizeof p->dataset));
    if (!status) {
        p->job = job;
        gm_total_begin(&p->total);
        status = gm_job_agree_all(job, describe_case(p));
    }
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (!status)
        status = run_all(p);
    job->report.wall_s = gm_clock() - from - job->report.sync_s;
    free(p);
    return status;
}
