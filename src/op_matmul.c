#include "src/matmul.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "src/progress.h"
#include "src/result.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "RxCxK" */
static int read_grid(const char *text, int64_t *grid)
{
    long long r, c, k;
    int end = 0;
    if (!text)
        return GM_OK;
    if (sscanf(text, "%lldx%lldx%lld%n", &r, &c, &k, &end) != 3 || text[end] || r < 1 || c < 1 || k < 1)
        return gm_fail(GM_EUSAGE, "--grid '%s': expected RxCxK, three whole numbers from 1 on", text);
    grid[0] = r;
    grid[1] = c;
    grid[2] = k;
    return GM_OK;
}

/* What the readers will take of the host's memory: as much as their threads can use, up to an eighth of what there is, at least what one thread
 * needs. */
static int64_t reader_bytes(const gm_job *job, const gm_matmul_case *c)
{
    int64_t least = 0, most = 0, room = (gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST)) / 8;
    for (int i = 0; i < (c->has_c0 ? GM_OPERANDS : GM_C0); i++) {
        least = gm_add_sat(least, gm_reader_bytes(&c->operand[i], 1));
        most = gm_add_sat(most, gm_reader_bytes(&c->operand[i], job->threads));
    }
    return gm_max(least, gm_min(most, room));
}

/* Elements of C that the device works on at one time: a tile for each thread, or what a GPU's multiprocessors hold, about. */
static int64_t wave_of(const gm_job *job, const gm_product *product)
{
    const int64_t multiprocessor = 2 * 128 * 128;
    return job->ops->unified ? job->threads * product->tile * product->tile : job->info.multiprocessors * multiprocessor;
}

static int make_problem(const gm_job *job, const gm_matmul_case *c, gm_problem *problem)
{
    const gm_options *o = job->options;
    const gm_product *product = job->ops->product(job->device, c->precision);
    *problem = (gm_problem){
        .m = c->m, .n = c->n, .k = c->k, .precision = c->precision,
        .operand_bytes = (int64_t)gm_dtype_size(product->operand), .accumulator_bytes = (int64_t)gm_dtype_size(product->accumulator),
        .file_bytes_a = (int64_t)gm_dtype_size(c->operand[GM_A].type), .file_bytes_b = (int64_t)gm_dtype_size(c->operand[GM_B].type),
        .file_bytes_c0 = c->has_c0 ? (int64_t)gm_dtype_size(c->operand[GM_C0].type) : 0,
        .file_bytes_c = (int64_t)gm_dtype_size(c->result),
        .stage = !job->ops->unified, .shared = c->shared, .max_tile = product->tile, .wants_tiles = product->wants_tiles,
        .ranks = job->ranks->size, .threads = job->threads, .wave = wave_of(job, product),
        .device_budget = gm_memory_cap(GM_DEVICE), .device_used = gm_memory_used(GM_DEVICE),
        .host_budget = gm_memory_cap(GM_HOST), .host_used = gm_add_sat(gm_memory_used(GM_HOST), reader_bytes(job, c)),
        .piece = o->piece, .depth = o->depth,
        .flop_rate = product->accumulator == GM_F64 ? job->info.fp64_limit : job->info.fp32_limit,
        .read_rate = 10e9, .exchange_rate = 2e9,
    };
    if (problem->flop_rate <= 0)
        problem->flop_rate = 5e10 * (double)job->threads;
    return read_grid(o->grid, problem->grid);
}

/* The same plan on every rank: rank 0's problem, within what the poorest rank may use. Collective. */
static int make_plan_all(const gm_job *job, const gm_matmul_case *c, gm_plan *plan)
{
    gm_problem problem;
    int status = gm_job_agree_all(job, make_problem(job, c, &problem));
    if (status)
        return status;
    int64_t device = problem.device_budget - problem.device_used, host = problem.host_budget - problem.host_used;
    int64_t threads = -problem.threads;
    if (gm_least_all(&device) || gm_least_all(&host) || gm_least_all(&threads) || gm_broadcast_all(&problem, sizeof problem))
        return gm_job_agree_all(job, GM_EMPI);
    problem.device_budget = device + problem.device_used;
    problem.host_budget = host + problem.host_used;
    problem.threads = -threads; /* the most: it decides on the depth of the ring */
    return gm_job_agree_all(job, gm_plan_make(&problem, plan));
}

static json_t *plan_to_json(const gm_plan *plan)
{
    return json_pack("{s:[III], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "grid", (json_int_t)plan->grid[0],
                     (json_int_t)plan->grid[1], (json_int_t)plan->grid[2], "tile", (json_int_t)plan->tile, "leaf", (json_int_t)plan->leaf,
                     "leaves", (json_int_t)plan->leaves, "block_rows", (json_int_t)plan->block_rows, "block_columns",
                     (json_int_t)plan->block_cols, "band_rows", (json_int_t)plan->band_rows, "step_leaves", (json_int_t)plan->step_leaves, "piece", (json_int_t)plan->piece,
                     "depth", (json_int_t)plan->depth, "device_bytes", (json_int_t)plan->device_bytes, "host_bytes",
                     (json_int_t)plan->host_bytes, "keep", plan->keep);
}

/* --plan: one `name value` a line. */
static void print_plan(const gm_job *job, const gm_matmul_case *c, const gm_plan *plan)
{
    char text[GM_SIZE_TEXT];
    printf("product         %lld x %lld x %lld (m, n, k), %s, C is %s\n", (long long)c->m, (long long)c->n, (long long)c->k,
           gm_precision_get(c->precision)->name, gm_dtype_name(c->result));
    printf("kernel          %s on %s\n", job->ops->product(job->device, c->precision)->kernel, job->info.name);
    printf("grid            %lldx%lldx%lld of %d ranks\n", (long long)plan->grid[0], (long long)plan->grid[1], (long long)plan->grid[2],
           job->ranks->size);
    printf("tile            %lld\nleaf            %lld (%lld of them)\n", (long long)plan->tile, (long long)plan->leaf, (long long)plan->leaves);
    printf("block           %lld x %lld in bands of %lld rows, %lld leaves a step%s\n", (long long)plan->block_rows, (long long)plan->block_cols,
           (long long)plan->band_rows, (long long)plan->step_leaves, plan->same ? ", A = B kept whole" : plan->keep ? ", A and B kept" : "");
    printf("ring            %lld slots of %s\n", (long long)plan->depth, gm_size_format(gm_plan_slot_bytes(plan), text));
    printf("device_memory   %s a rank\n", gm_size_format(plan->device_bytes, text));
    printf("host_memory     %s a rank\n", gm_size_format(plan->host_bytes, text));
    double slowest = 0;
    for (int r = 0; r < job->ranks->size; r++) {
        gm_part part;
        gm_plan_part(plan, r, &part);
        int64_t bytes = gm_plan_bytes_read(plan, &part);
        double flop = 2.0 * (double)part.rows * (double)part.cols * (double)gm_plan_depth(plan, part.leaf0, part.leaf1);
        slowest = fmax(slowest, fmax(flop / plan->problem.flop_rate, (double)bytes / plan->problem.read_rate));
        printf("rank %-10d rows [%lld:%lld], columns [%lld:%lld], leaves [%lld:%lld], %lld blocks, reads %s\n", r, (long long)part.row0,
               (long long)(part.row0 + part.rows), (long long)part.col0, (long long)(part.col0 + part.cols), (long long)part.leaf0,
               (long long)part.leaf1, (long long)gm_plan_blocks(plan, &part), gm_size_format(bytes, text));
    }
    printf("expected_time   %.3g s (%.3g flop/s, %.3g byte/s read a rank)\n", slowest, plan->problem.flop_rate, plan->problem.read_rate);
}

static void release(gm_matmul *p)
{
    gm_stream_close(p->stream);
    p->stream = NULL;
    gm_matmul_release(p);
    for (int i = 0; i < GM_OPERANDS; i++) {
        gm_reader_close(p->reader[i]);
        p->reader[i] = NULL;
    }
}

/* Readers, ring, device memory of this rank. */
static int prepare(gm_matmul *p, gm_progress *progress)
{
    const gm_job *job = p->job;
    int status = GM_OK;
    gm_plan_part(&p->plan, job->ranks->rank, &p->part);
    for (int i = 0; i < (p->problem->has_c0 ? GM_OPERANDS : GM_C0) && !status && !p->part.idle; i++)
        status = gm_reader_open(&p->problem->operand[i], &p->reader[i]);
    if (!status && !p->part.idle)
        status = gm_matmul_allocate(p);
    gm_stream_setup setup = {.ops = job->ops, .device = job->device, .ranks = job->ranks, .piece = gm_plan_slot_bytes(&p->plan),
                             .depth = p->plan.depth, .threads = job->threads, .progress = gm_progress_add, .progress_context = progress};
    return status ? status : gm_stream_open(&setup, &p->stream);
}

/* Others may have taken memory since the plan was made: then a smaller plan, unless the user has set the size. Collective. */
static int prepare_all(gm_matmul *p, gm_progress *progress, gm_result *result)
{
    enum { ATTEMPTS = 4 };
    const gm_job *job = p->job;
    for (int attempt = 1;; attempt++) {
        int status = gm_job_agree_all(job, prepare(p, progress));
        if (status != GM_EDEVICE || attempt == ATTEMPTS || job->options->device_memory)
            return status;
        if (gm_job_agree_all(job, gm_result_wait(result))) /* its message is not to be cleared */
            return status;
        gm_error error;
        gm_error_get(&error);
        gm_note("%s: trying a smaller plan", error.text);
        gm_error_clear();
        release(p);
        gm_memory_set_cap(GM_DEVICE, gm_memory_cap(GM_DEVICE) / 2);
        status = make_plan_all(job, p->problem, &p->plan);
        if (status)
            return status;
    }
}

/* What the output is to be. Rank 0. */
static int describe_output(const gm_job *job, const gm_matmul_case *c, gm_output_record *record)
{
    gm_output_dataset *d = &record->dataset[0];
    *record = (gm_output_record){.force = job->options->force, .sync = !job->options->no_sync, .datasets = 1};
    strcpy(d->name, "/C");
    d->type = c->result;
    d->rank = 2;
    d->dims[0] = c->m;
    d->dims[1] = c->n;
    int status = gm_result_name(job, c->operand[GM_A].file, record->file, d->name);
    return status ? status : gm_result_layout(job, d);
}

/* The worst of all verdicts and the sum of their counts. Rank 0 has it then. Collective. */
static int gather_verdict_all(const gm_job *job, gm_verdict *verdict)
{
    gm_verdict *all = calloc((size_t)job->ranks->size, sizeof *all);
    int status = gm_job_agree_all(job, all ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the verdicts"));
    if (!status)
        status = gm_gather_all(job->ranks, verdict, sizeof *verdict, all);
    for (int r = 1; r < job->ranks->size && !status && job->ranks->rank == 0; r++) {
        verdict->checked += all[r].checked;
        verdict->skipped += all[r].skipped;
        verdict->nonfinite.nan += all[r].nonfinite.nan;
        verdict->nonfinite.inf += all[r].nonfinite.inf;
        verdict->nonfinite.overflow += all[r].nonfinite.overflow;
        verdict->failed |= all[r].failed;
        verdict->bad_rows += all[r].bad_rows;
        verdict->bad_cols += all[r].bad_cols;
        if (all[r].ratio > verdict->ratio) {
            verdict->ratio = all[r].ratio;
            verdict->residual = all[r].residual;
            verdict->threshold = all[r].threshold;
        }
    }
    free(all);
    return status;
}

/* What the check came to, in a word or two. */
static const char *outcome(const gm_matmul_case *c, const gm_verdict *v)
{
    if (!c->verify)
        return "none";
    if (v->failed)
        return "failed: random vectors";
    if (v->checked == 0 && v->skipped > 0)
        return "not possible: no finite row or column";
    return v->skipped > 0 ? "passed in part: random vectors" : "passed: random vectors";
}

static void tell_verdict(gm_job *job, const gm_matmul_case *c, const gm_verdict *v)
{
    int passed = c->verify && !v->failed && (v->checked > 0 || v->skipped == 0);
    job->report.verification =
        json_pack("{s:s, s:s, s:f, s:f, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "method", c->verify ? "random vectors" : "none", "outcome",
                  outcome(c, v), "residual", fmin(v->residual, DBL_MAX), "threshold", v->threshold, "passed", passed, "lines_checked", (json_int_t)v->checked,
                  "lines_skipped", (json_int_t)v->skipped, "bad_rows", (json_int_t)v->bad_rows, "bad_columns", (json_int_t)v->bad_cols, "nan",
                  (json_int_t)v->nonfinite.nan, "inf", (json_int_t)v->nonfinite.inf, "overflow", (json_int_t)v->nonfinite.overflow);
    if (v->failed)
        return;
    if (v->nonfinite.nan + v->nonfinite.inf + v->nonfinite.overflow + (uint64_t)v->skipped > 0)
        gm_warn("C has %llu NaN, %llu infinite and %llu overflowed elements; %lld rows and columns of blocks could not be checked, %lld were",
                (unsigned long long)v->nonfinite.nan, (unsigned long long)v->nonfinite.inf, (unsigned long long)v->nonfinite.overflow,
                (long long)v->skipped, (long long)v->checked);
    if (c->verify && v->checked > 0)
        gm_note("the product passed its check: residual %.3g, detection threshold %.3g", v->residual, v->threshold);
}

/* Gathers the verdicts and tells them, of a product that failed its check too; its message is kept. Collective. */
static int judge_all(gm_job *job, const gm_matmul_case *c, gm_verdict *verdict, int status)
{
    if (status != GM_OK && status != GM_ECHECK)
        return status;
    gm_error cause;
    gm_error_get(&cause);
    gm_error_clear();
    int gathered = gather_verdict_all(job, verdict);
    if (gathered)
        return gathered;
    if (job->ranks->rank == 0)
        tell_verdict(job, c, verdict);
    return status ? gm_fail(cause.code, "%s", cause.text) : GM_OK;
}

/* What the finished file tells of the product beside where it comes from. */
static int finish_all(gm_job *job, const gm_matmul_case *c, const gm_verdict *v, gm_result *result, int status)
{
    gm_attribute extra[] = {
        {.name = "precision", .kind = GM_ATTRIBUTE_TEXT, .text = gm_precision_get(c->precision)->name},
        {.name = "verification", .kind = GM_ATTRIBUTE_TEXT, .text = outcome(c, v)},
        {.name = "verification_residual", .kind = GM_ATTRIBUTE_REAL, .real = v->residual},
        {.name = "verification_threshold", .kind = GM_ATTRIBUTE_REAL, .real = v->threshold},
    };
    return gm_result_finish_all(job, result, extra, c->verify ? 4 : 2, status);
}

static void tell_plan(const gm_matmul *p)
{
    char size[GM_SIZE_TEXT];
    gm_detail("%s on %s, grid %lldx%lldx%lld, blocks of %lldx%lld, %lld slots of %s, %d threads on processors %s", p->product->kernel,
              p->job->info.name, (long long)p->plan.grid[0], (long long)p->plan.grid[1], (long long)p->plan.grid[2], (long long)p->plan.block_rows,
              (long long)p->plan.block_cols, (long long)p->plan.depth, gm_size_format(gm_plan_slot_bytes(&p->plan), size), p->job->threads,
              p->job->binding.list);
}

/* Everything is ready: the product itself. Collective. */
static int compute_all(gm_job *job, gm_matmul *p, gm_progress *progress)
{
    gm_program program;
    job->report.bytes_read = gm_plan_bytes_read(&p->plan, &p->part);
    job->report.bytes_written = p->part.layer == 0 ? p->part.rows * p->part.cols * p->plan.problem.file_bytes_c : 0;
    gm_progress_start(progress, job, "matmul", job->report.bytes_read + job->report.bytes_written);
    gm_matmul_program(p, &program);
    int status = gm_job_agree_all(job, gm_stream_run(p->stream, &program, &job->report.times));
    gm_progress_end(progress);
    job->report.flop = p->flop;
    if (job->ranks->rank == 0)
        job->report.plan = plan_to_json(&p->plan);
    return judge_all(job, p->problem, &p->verdict, status);
}

/* from: when the operation began, for the wall time, which ends with the file's final name. */
static int run_all(gm_job *job, const gm_matmul_case *c, const gm_plan *plan, gm_output_record *record, double from)
{
    gm_matmul p = {.job = job, .problem = c, .plan = *plan, .product = job->ops->product(job->device, c->precision),
                   .verdict = {.ratio = -1, .tile_row = -1, .tile_col = -1}};
    gm_progress progress;
    gm_result result = {0};
    double opened = gm_clock();
    int status = gm_result_begin_all(job, record, c->operand, c->has_c0 ? GM_OPERANDS : GM_C0, GM_OK, &result);
    if (status)
        return status;
    status = prepare_all(&p, &progress, &result);
    double prepared = gm_clock();
    tell_plan(&p);
    status = gm_result_open_all(job, status, &result);
    double began = gm_clock();
    job->report.times.seconds[GM_PHASE_OPEN] += began - opened;
    if (!status) {
        p.output = result.output;
        status = compute_all(job, &p, &progress);
        double computed = gm_clock();
        if (result.record->raw[0])
            release(&p); /* the final form of a chunked output wants the memory */
        status = finish_all(job, c, &p.verdict, &result, status);
        job->report.wall_s = gm_clock() - from - job->report.sync_s;
        gm_detail("seconds: %.3f described and planned, %.3f memory, %.3f output, %.3f product, %.3f finish", opened - from, prepared - opened,
                  began - prepared, computed - began, gm_clock() - computed);
    }
    release(&p);
    return status;
}

int gm_op_matmul(gm_job *job)
{
    double from = gm_clock();
    gm_matmul_case *c = calloc(1, sizeof *c);
    gm_output_record *record = calloc(1, sizeof *record);
    int status = c && record ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the description of the operands");
    int first = job->ranks->rank == 0;
    if (!status && first)
        status = gm_matmul_describe(job, c);
    if (!status && first && !job->options->plan)
        status = describe_output(job, c, record);
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(c, sizeof *c));
    gm_plan plan;
    if (!status)
        status = make_plan_all(job, c, &plan);
    if (!status && first) {
        job->report.inputs = json_array();
        for (int i = 0; i < (c->has_c0 ? GM_OPERANDS : GM_C0); i++)
            json_array_append_new(job->report.inputs, gm_report_dataset(&c->operand[i]));
    }
    if (!status && job->options->plan && first)
        print_plan(job, c, &plan);
    else if (!status && !job->options->plan)
        status = run_all(job, c, &plan, record, from);
    if (job->report.wall_s == 0)
        job->report.wall_s = gm_clock() - from - job->report.sync_s;
    free(record);
    free(c);
    return status;
}
