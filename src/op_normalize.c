#include "src/normalize.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "src/flat.h"
#include "src/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the output is to be. Rank 0. */
static int describe_output(const gm_job *job, const gm_normalize_case *c, gm_output_record *record)
{
    gm_output_dataset *d = &record->dataset[0];
    *record = (gm_output_record){.force = job->options->force, .sync = !job->options->no_sync, .datasets = 1};
    memcpy(d->name, c->src.name, sizeof d->name);
    d->type = c->type;
    d->rank = c->src.view_rank;
    memcpy(d->dims, c->src.view, sizeof d->dims);
    int status = gm_result_name(job, c->src.file, record->file, d->name);
    return status ? status : gm_result_layout(job, d);
}

static json_t *plan_to_json(const gm_normalize_plan *plan)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:b, s:I, s:I}", "rows", (json_int_t)plan->rows, "columns", (json_int_t)plan->cols, "piece_rows",
                     (json_int_t)plan->piece_rows, "piece_columns", (json_int_t)plan->piece_cols, "depth", (json_int_t)plan->depth, "passes", plan->passes,
                     "keep", plan->keep, "device_bytes", (json_int_t)plan->device_bytes, "host_bytes", (json_int_t)plan->host_bytes);
}

/* Bytes that a rank reads of the stack. */
static int64_t bytes_read(const gm_normalize_case *c, const gm_normalize_plan *plan)
{
    return plan->rows * plan->cols * (int64_t)gm_dtype_size(c->src.type) * (plan->keep ? 1 : plan->passes);
}

/* --plan: one `name value` a line. */
static int print_plan(const gm_job *job, const gm_normalize_case *c)
{
    char text[GM_SIZE_TEXT], shape[GM_SHAPE_TEXT];
    printf("stack           %s %s, %lld frames of %lld pixels\n", gm_flat_shape(c->src.view_rank, c->src.view, shape), gm_dtype_name(c->src.type),
           (long long)c->rows, (long long)c->cols);
    printf("method          %s per %s, to %s, arithmetic in %s\n", gm_method_name(c->method),
           c->method == GM_FLATFIELD ? "pixel" : c->method == GM_SCALE ? "stack" : gm_per_name(c->per), gm_dtype_name(c->type), c->wide ? "float64" : "float32");
    for (int r = 0; r < job->ranks->size; r++) {
        gm_ranks ranks = *job->ranks;
        gm_job other = *job;
        gm_normalize_plan plan;
        ranks.rank = r;
        other.ranks = &ranks;
        int status = gm_normalize_plan_make(&other, c, &plan);
        if (status)
            return status;
        if (r == 0) {
            printf("ring            %lld slots of %s, pieces of %lld x %lld\n", (long long)plan.depth, gm_size_format(plan.in_bytes + plan.out_bytes, text),
                   (long long)plan.piece_rows, (long long)plan.piece_cols);
            printf("passes          %d%s\n", plan.passes, plan.keep ? ", the stack is kept after the first" : "");
            printf("device_memory   %s a rank\n", gm_size_format(plan.device_bytes, text));
            printf("host_memory     %s a rank\n", gm_size_format(plan.host_bytes, text));
        }
        printf("rank %-10d %s [%lld:%lld], %s [%lld:%lld], reads %s\n", r, "frames", (long long)plan.row, (long long)(plan.row + plan.rows),
               plan.flat ? "elements" : "pixels", (long long)plan.col, (long long)(plan.col + plan.cols), gm_size_format(bytes_read(c, &plan), text));
    }
    return GM_OK;
}

static void release(gm_normalize *p)
{
    const gm_device_ops *ops = p->job->ops;
    gm_stream_close(p->stream);
    ops->free(p->job->device, p->kept);
    if (p->scale != p->host_scale)
        ops->free(p->job->device, p->scale);
    ops->unpin(p->job->device, p->host_scale);
    ops->free(p->job->device, p->counts);
    gm_reader_close(p->reader);
    p->stream = NULL;
    p->kept = p->scale = p->host_scale = NULL;
    p->counts = NULL;
    p->reader = NULL;
}

/* Readers and memory, but for the ring. */
static int prepare(gm_normalize *p)
{
    const gm_device_ops *ops = p->job->ops;
    gm_device *device = p->job->device;
    size_t bytes = (size_t)p->plan.entries * 2 * (p->problem->wide ? sizeof(double) : sizeof(float));
    void *counts = NULL;
    int status = gm_reader_open(&p->problem->src, &p->reader);
    if (!status)
        status = ops->pin(device, bytes, &p->host_scale);
    p->scale = p->host_scale;
    if (!status && !ops->unified)
        status = ops->alloc(device, bytes, &p->scale);
    if (!status)
        status = ops->alloc(device, sizeof *p->counts, &counts);
    p->counts = counts;
    return status;
}

/* The ring, and the memory where the stack is kept: if that is gone meanwhile, the stack is read again. */
static int open_ring(gm_normalize *p)
{
    const gm_job *job = p->job;
    gm_stream_setup setup = {.ops = job->ops, .device = job->device, .ranks = job->ranks, .piece = p->plan.in_bytes + p->plan.out_bytes,
                             .depth = p->plan.depth, .threads = job->threads, .progress = gm_progress_add, .progress_context = p->progress};
    int status = gm_stream_open(&setup, &p->stream);
    if (!status && p->plan.keep && job->ops->alloc(job->device, (size_t)(gm_normalize_pieces(&p->plan) * p->plan.in_bytes), &p->kept)) {
        gm_error_clear();
        p->kept = NULL;
        p->plan.keep = 0;
    }
    return status;
}

/* What is subtracted and multiplied by. Collective. */
static int find_scale_all(gm_normalize *p, int64_t *constant)
{
    const gm_normalize_case *c = p->problem;
    switch (c->method) {
    case GM_MINMAX:
    case GM_ZSCORE:
        return gm_normalize_moments_all(p, constant);
    case GM_PERCENTILE:
        return gm_normalize_percentiles_all(p, constant);
    case GM_SCALE:
        gm_normalize_set(p, 0, c->sub, 1, c->factor);
        return GM_OK;
    default:
        return GM_OK;
    }
}

static double scale_of(const gm_normalize *p, int which)
{
    return p->problem->wide ? ((const double *)p->host_scale)[which] : (double)((const float *)p->host_scale)[which];
}

/* Notes, the report and attributes of the output. Rank 0. Returns the number of attributes. */
static int tell(gm_normalize *p, const gm_normalize_counts *counts, int64_t constant, gm_attribute *extra)
{
    const gm_normalize_case *c = p->problem;
    gm_report *report = &p->job->report;
    int one = p->plan.entries == 1 && c->per == GM_PER_STACK && c->method != GM_FLATFIELD, n = 0;
    const char *marked = c->method == GM_FLATFIELD ? "zero_denominators" : "constant";
    const char *arithmetic = c->wide ? "float64" : "float32";
    report->results = json_pack("{s:s, s:I, s:I, s:I}", "arithmetic", arithmetic, "clipped", (json_int_t)counts->clipped, "nan", (json_int_t)counts->nan,
                                marked, (json_int_t)counts->marked);
    if (one && isfinite(scale_of(p, 0)) && isfinite(scale_of(p, 1))) { /* JSON has no NaN */
        json_object_set_new(report->results, "sub", json_real(scale_of(p, 0)));
        json_object_set_new(report->results, "factor", json_real(scale_of(p, 1)));
    }
    if (counts->clipped + counts->nan > 0)
        gm_note("%llu elements were clipped to the range, %llu are NaN%s", (unsigned long long)counts->clipped, (unsigned long long)counts->nan,
                gm_dtype_get_kind(c->type) == GM_FLOAT ? "" : " and became 0");
    if (counts->marked > 0 && c->method == GM_FLATFIELD)
        gm_note("%llu elements have a denominator of 0 and became 0", (unsigned long long)counts->marked);
    else if (constant > 0)
        gm_note("%lld %s%s constant", (long long)constant, one ? "stack" : c->per == GM_PER_FRAME ? "frame" : "pixel", constant == 1 ? " is" : "s are");
    extra[n++] = (gm_attribute){.name = "method", .kind = GM_ATTRIBUTE_TEXT, .text = gm_method_name(c->method)};
    extra[n++] = (gm_attribute){.name = "precision", .kind = GM_ATTRIBUTE_TEXT, .text = arithmetic};
    extra[n++] = (gm_attribute){.name = "clipped", .kind = GM_ATTRIBUTE_INTEGER, .integer = (int64_t)counts->clipped};
    extra[n++] = (gm_attribute){.name = "nan", .kind = GM_ATTRIBUTE_INTEGER, .integer = (int64_t)counts->nan};
    extra[n++] = (gm_attribute){.name = marked, .kind = GM_ATTRIBUTE_INTEGER, .integer = (int64_t)counts->marked};
    if (one) {
        extra[n++] = (gm_attribute){.name = "sub", .kind = GM_ATTRIBUTE_REAL, .real = scale_of(p, 0)};
        extra[n++] = (gm_attribute){.name = "factor", .kind = GM_ATTRIBUTE_REAL, .real = scale_of(p, 1)};
    }
    return n;
}

/* All passes, and the counts of all ranks. Collective. */
static int passes_all(gm_normalize *p, gm_normalize_counts *counts, int64_t *constant)
{
    gm_normalize_counts mine = {0};
    int status = find_scale_all(p, constant);
    if (!status)
        status = gm_job_agree_all(p->job, gm_normalize_apply(p, &mine));
    int64_t sum[3] = {(int64_t)mine.clipped, (int64_t)mine.nan, (int64_t)mine.marked};
    for (int i = 0; i < 3 && !status; i++)
        status = gm_job_agree_all(p->job, gm_sum_all(&sum[i]));
    if (!status)
        *counts = (gm_normalize_counts){(uint64_t)sum[0], (uint64_t)sum[1], (uint64_t)sum[2]};
    return status;
}

static int run_all(gm_job *job, const gm_normalize_case *c, const gm_normalize_plan *plan, const gm_output_record *record)
{
    gm_progress progress;
    gm_normalize p = {.job = job, .problem = c, .plan = *plan, .progress = &progress};
    gm_normalize_counts counts = {0};
    gm_attribute extra[8];
    int64_t constant = 0;
    gm_result result = {0};
    double from = gm_clock();
    int extras = 0, status = gm_job_agree_all(job, prepare(&p)), inputs = c->method != GM_FLATFIELD ? 1 : c->has_dark ? 3 : 2;
    if (!status)
        status = gm_result_create_all(job, record, c->input, inputs, GM_OK, &result);
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (!status) {
        result.attributes = &c->src;
        p.output = result.output;
        if (c->method == GM_FLATFIELD)
            status = gm_normalize_flatfield_all(&p);
        if (!status)
            status = gm_job_agree_all(job, open_ring(&p));
        if (!status) {
            gm_progress_start(&progress, job, "normalize", bytes_read(c, &p.plan) + p.plan.rows * p.plan.cols * (int64_t)gm_dtype_size(c->type));
            status = passes_all(&p, &counts, &constant);
            gm_progress_end(&progress);
        }
        if (!status && job->ranks->rank == 0) {
            job->report.plan = plan_to_json(&p.plan);
            extras = tell(&p, &counts, constant, extra);
        }
        release(&p); /* the final form of a chunked output wants the memory */
        status = gm_result_finish_all(job, &result, extra, extras, status);
    }
    release(&p);
    return status;
}

int gm_op_normalize(gm_job *job)
{
    double from = gm_clock();
    gm_normalize_case *c = calloc(1, sizeof *c);
    gm_output_record *record = calloc(1, sizeof *record);
    int status = c && record ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the description of the datasets");
    int first = job->ranks->rank == 0;
    if (!status && first)
        status = gm_normalize_describe(job, c);
    if (!status && first && !job->options->plan)
        status = describe_output(job, c, record);
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(c, sizeof *c));
    if (!status)
        status = gm_normalize_by_rows_all(job, c);
    gm_normalize_plan plan;
    if (!status)
        status = gm_job_agree_all(job, gm_normalize_plan_make(job, c, &plan));
    if (!status && first) {
        job->report.inputs = json_pack("[o]", gm_report_dataset(&c->src));
        if (c->method == GM_FLATFIELD)
            json_array_append_new(job->report.inputs, gm_report_dataset(&c->flat));
        if (c->has_dark)
            json_array_append_new(job->report.inputs, gm_report_dataset(&c->dark));
    }
    if (!status && job->options->plan)
        status = gm_job_agree_all(job, first ? print_plan(job, c) : GM_OK);
    else if (!status)
        status = run_all(job, c, &plan, record);
    job->report.wall_s = gm_clock() - from - job->report.sync_s;
    free(record);
    free(c);
    return status;
}
