/* normalize - converts an image stack to another range, unit or type. */
#include "src/normalize/normalize.h"

#include "base/log.h"
#include "base/size.h"
#include "src/operation.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

static int describe(gm_run *run)
{
    gm_normalize_case *c = run->c;
    int status = gm_normalize_describe(run->job, c);
    run->shape.inputs = c->method != GM_FLATFIELD ? 1 : c->has_dark ? 3 : 2;
    return status ? status : gm_run_describe_output(run, c->src.name, c->type, c->src.view_rank, c->src.view);
}

static int suit(gm_run *run)
{
    return gm_normalize_check_device(run->job, run->c);
}

/* --- The plan --- */

static int plan_of(const gm_run *run, const gm_ring_budget *budget, int rank, gm_normalize_plan *plan,
                   gm_ring_budget *need)
{
    const gm_options *o = run->job->options;
    return gm_normalize_plan_make(run->c, budget, run->job->ranks->size, rank, o->piece, o->depth, plan, need);
}

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    const gm_normalize_case *c = run->c;
    gm_normalize *p = run->own;
    p->job = run->job;
    p->c = c;
    int status = plan_of(run, budget, run->job->ranks->rank, &p->plan, need);
    if (status)
        return status;
    run->ring = p->plan.ring;
    run->bytes_read = gm_normalize_bytes_read(c, &p->plan);
    run->bytes_written = p->plan.rows * p->plan.cols * (int64_t)gm_dtype_size(c->type);
    return GM_OK;
}

static json_t *plan_json(const gm_run *run)
{
    const gm_normalize_plan *p = &((const gm_normalize *)run->own)->plan;
    return json_pack("{s:I, s:I, s:I, s:I, s:i, s:b}", "rows", (json_int_t)p->rows, "columns", (json_int_t)p->cols,
                     "piece_rows", (json_int_t)p->piece_rows, "piece_columns", (json_int_t)p->piece_cols, "passes",
                     p->passes, "keep", p->keep);
}

static void print_plan(const gm_run *run)
{
    const gm_normalize_case *c = run->c;
    const gm_normalize_plan *p = &((const gm_normalize *)run->own)->plan;
    gm_per per = c->method == GM_FLATFIELD ? GM_PER_PIXEL : c->method == GM_SCALE ? GM_PER_STACK : c->per;
    char shape[GM_SHAPE_TEXT];
    printf("stack           %s %s, %lld frames of %lld pixels\n", gm_shape_format(c->src.view_rank, c->src.view, shape),
           gm_dtype_name(c->src.type), (long long)c->rows, (long long)c->cols);
    printf("method          %s per %s, to %s, arithmetic in %s\n", gm_method_name(c->method), gm_per_name(per),
           gm_dtype_name(c->type), c->wide ? "float64" : "float32");
    printf("piece           %lld x %lld\n", (long long)p->piece_rows, (long long)p->piece_cols);
    printf("passes          %d%s\n", p->passes, p->keep ? ", the stack is kept after the first" : "");
}

static void print_share(const gm_run *run, int rank)
{
    gm_normalize_plan p;
    gm_ring_budget need;
    char text[GM_SIZE_TEXT];
    if (plan_of(run, &run->budget, rank, &p, &need))
        return; /* as large as the first rank's share at most, which fits */
    int64_t bytes = gm_normalize_bytes_read(run->c, &p);
    printf("rank %-10d frames [%lld:%lld], %s [%lld:%lld], reads %s\n", rank, (long long)p.row,
           (long long)(p.row + p.rows), p.as_row ? "elements" : "pixels", (long long)p.col, (long long)(p.col + p.cols),
           gm_size_format(bytes, text));
}

/* The fields; the passes for statistics, of which those after the first find the stack on the device if it is kept;
 * and the last one. */
static int work(const gm_run *run, int rank, gm_work *passes)
{
    const gm_normalize_case *c = run->c;
    gm_normalize_plan p;
    gm_ring_budget need;
    if (plan_of(run, &run->budget, rank, &p, &need))
        return 0;
    double elements = (double)p.rows * (double)p.cols, in = elements * (double)gm_dtype_size(c->src.type), fields = 0;
    for (int i = 0; i <= c->has_dark && c->method == GM_FLATFIELD && c->cols > 0; i++) {
        gm_reduction field = gm_normalize_field(c, i);
        fields += (double)gm_reduce_bytes(&field, &p.field[i],
                                          gm_reduce_share(&p.field[i], run->job->ranks->size, rank));
    }
    passes[0] = gm_run_work(run, fields, 0);
    passes[1] = gm_run_work(run, in, 0);
    passes[1].times = p.keep ? 1 : p.passes - 1;
    passes[2] = (gm_work){.memory = in, .times = p.keep ? p.passes - 2 : 0};
    passes[3] = gm_run_work(run, p.keep ? 0 : in, elements * (double)gm_dtype_size(c->type));
    return 4;
}

/* --- Memory --- */

static int prepare(gm_run *run)
{
    gm_normalize *p = run->own;
    int unified = p->job->ops->unified, status = gm_reader_open(&p->c->src, &run->reader[0]);
    size_t real = (size_t)gm_normalize_scale_bytes(p->c);
    if (status)
        return status;
    p->reader = run->reader[0];
    p->threads = run->threads;
    p->host_scale = gm_pool_pinned(&run->pool, 2 * p->plan.entries, real);
    p->scale = unified ? p->host_scale : gm_pool_device(&run->pool, 2 * p->plan.entries, real);
    p->counts = gm_pool_device(&run->pool, 1, sizeof *p->counts);
    return run->pool.status;
}

/* The ring, and the memory where the stack is kept: without that memory the stack is read again. */
static int open_ring(gm_run *run)
{
    gm_normalize *p = run->own;
    run->out_at = p->plan.in_bytes;
    int status = gm_run_open_ring(run);
    p->stream = run->stream;
    if (status || !p->plan.keep)
        return status;
    int before = gm_error_hush(1);
    p->kept = gm_pool_device(&run->pool, gm_normalize_pieces(&p->plan), (size_t)p->plan.in_bytes);
    gm_error_hush(before);
    if (!p->kept) {
        run->pool.status = GM_OK;
        p->plan.keep = 0;
    }
    return GM_OK;
}

/* --- The work --- */

/* Finds the numbers to subtract and multiply by. Collective. */
static int find_scale_all(gm_normalize *p, int64_t *constant)
{
    const gm_normalize_case *c = p->c;
    static int (*const statistics_all[GM_METHODS])(gm_normalize *,
                                                   int64_t *) = {[GM_MINMAX] = gm_normalize_moments_all,
                                                                 [GM_ZSCORE] = gm_normalize_moments_all,
                                                                 [GM_PERCENTILE] = gm_normalize_percentiles_all};
    if (c->method == GM_SCALE)
        gm_normalize_set(p, 0, c->sub, 1, c->factor);
    return statistics_all[c->method] ? statistics_all[c->method](p, constant) : GM_OK;
}

static double scale_of(const gm_normalize *p, int which)
{
    return p->wide ? ((const double *)p->host_scale)[which] : (double)((const float *)p->host_scale)[which];
}

/* Notes, the results of the report and the attributes of the output. Rank 0. */
static void report_results(gm_run *run, const gm_normalize_counts *counts, int64_t constant)
{
    const gm_normalize *p = run->own;
    const gm_normalize_case *c = p->c;
    gm_report *report = &p->job->report;
    int one = p->plan.entries == 1 && c->per == GM_PER_STACK && c->method != GM_FLATFIELD;
    const char *marked = c->method == GM_FLATFIELD ? "zero_denominators" : "constant";
    const char *arithmetic = p->wide ? "float64" : "float32";
    report->results = json_pack("{s:s, s:I, s:I, s:I}", "arithmetic", arithmetic, "clipped",
                                (json_int_t)counts->clipped, "nan", (json_int_t)counts->nan, marked,
                                (json_int_t)counts->marked);
    if (one && isfinite(scale_of(p, 0)) && isfinite(scale_of(p, 1))) { /* JSON has no NaN */
        json_object_set_new(report->results, "sub", json_real(scale_of(p, 0)));
        json_object_set_new(report->results, "factor", json_real(scale_of(p, 1)));
    }
    if (counts->clipped + counts->nan > 0)
        gm_note("%llu elements were clipped to the range, %llu are NaN%s", (unsigned long long)counts->clipped,
                (unsigned long long)counts->nan, gm_dtype_get_kind(c->type) == GM_FLOAT ? "" : " and became 0");
    if (counts->marked > 0 && c->method == GM_FLATFIELD)
        gm_note("%llu elements have a denominator of 0 and became 0", (unsigned long long)counts->marked);
    else if (constant > 0)
        gm_note("%lld %s%s constant", (long long)constant,
                one                      ? "stack"
                : c->per == GM_PER_FRAME ? "frame"
                                         : "pixel",
                constant == 1 ? " is" : "s are");
    gm_run_add_text(run, "method", gm_method_name(c->method));
    gm_run_add_text(run, "precision", arithmetic);
    gm_run_add_integer(run, "clipped", (int64_t)counts->clipped);
    gm_run_add_integer(run, "nan", (int64_t)counts->nan);
    gm_run_add_integer(run, marked, (int64_t)counts->marked);
    if (one) {
        gm_run_add_real(run, "sub", scale_of(p, 0));
        gm_run_add_real(run, "factor", scale_of(p, 1));
    }
}

/* All passes, and the counts of all ranks. Collective. */
static int passes_all(gm_normalize *p, gm_normalize_counts *counts, int64_t *constant)
{
    gm_normalize_counts mine = {0};
    int status = find_scale_all(p, constant);
    if (!status)
        status = gm_normalize_settle_all(p);
    if (!status)
        status = gm_job_agree_all(p->job, gm_normalize_apply(p, &mine));
    int64_t sum[3] = {(int64_t)mine.clipped, (int64_t)mine.nan, (int64_t)mine.marked};
    for (int i = 0; i < 3 && !status; i++)
        status = gm_job_agree_all(p->job, gm_sum_all(&sum[i]));
    if (!status)
        *counts = (gm_normalize_counts){(uint64_t)sum[0], (uint64_t)sum[1], (uint64_t)sum[2]};
    return status;
}

static int run_all(gm_run *run)
{
    gm_normalize *p = run->own;
    gm_normalize_counts counts = {0};
    int64_t constant = 0;
    int status = p->c->method == GM_FLATFIELD ? gm_normalize_fields_all(p) : GM_OK;
    p->output = run->output;
    if (!status)
        status = gm_job_agree_all(run->job, open_ring(run));
    if (!status)
        status = passes_all(p, &counts, &constant);
    if (!status && run->job->ranks->rank == 0)
        report_results(run, &counts, constant);
    return status;
}

const gm_operation gm_op_normalize = {.case_bytes = sizeof(gm_normalize_case),
                                      .own_bytes = sizeof(gm_normalize),
                                      .inputs = offsetof(gm_normalize_case, input),
                                      .keeps_attributes = 1,
                                      .describe = describe,
                                      .suit = suit,
                                      .plan = plan,
                                      .print_plan = print_plan,
                                      .print_share = print_share,
                                      .work = work,
                                      .plan_json = plan_json,
                                      .prepare = prepare,
                                      .run_all = run_all};
