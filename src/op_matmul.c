#include "src/matmul.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/describe.h"
#include "src/progress.h"
#include "src/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const letters[GM_OPERANDS] = {"A", "B", "C0"};

/* The operand as a matrix: two dimensions, or any number of them with --flatten. */
static int matrix_of(const gm_job *job, gm_matmul_case *c, int which)
{
    gm_dataset *d = &c->operand[which];
    char title[GM_PATH_MAX];
    if (d->view_rank != 2 && !(job->options->flatten && d->view_rank > 0))
        return gm_fail(GM_EINPUT, "%s: has %d dimensions, a matrix has 2%s", gm_dataset_title(d, title), d->view_rank,
                       d->view_rank > 2 ? " (--flatten: first dimension x the rest)" : "");
    gm_dataset_matrix(d, &c->stored_rows[which], &c->stored_cols[which]);
    if (which != GM_C0 && (d->type == GM_U64 || d->type == GM_I64))
        return gm_fail(GM_EINPUT, "%s: 64-bit integers (%s) do not fit float64, expected up to 32 bits", gm_dataset_title(d, title),
                       gm_dtype_name(d->type));
    return GM_OK;
}

static int same_elements(const gm_dataset *a, const gm_dataset *b)
{
    return a->device == b->device && a->inode == b->inode && strcmp(a->name, b->name) == 0 &&
           memcmp(&a->selection, &b->selection, sizeof a->selection) == 0;
}

static int describe_operands(const gm_job *job, gm_matmul_case *c)
{
    const gm_options *o = job->options;
    const char *text[GM_OPERANDS] = {o->operands[0], o->operand_count > 1 ? o->operands[1] : o->operands[0], o->add};
    static const char *const preferred[GM_OPERANDS] = {"/A", "/B", "/C"};
    if (o->operand_count == 1) {
        char *file = malloc(2 * GM_PATH_MAX + GM_NAME_MAX), *name = file ? file + GM_PATH_MAX : NULL;
        int status = file ? gm_name_split(text[GM_A], file, name, name + GM_NAME_MAX) : gm_fail(GM_EINTERNAL, "no memory for a name");
        if (!status && *name)
            status = gm_fail(GM_EUSAGE, "matmul needs two matrices: %s names one of them, a bare file means its /A and /B", text[GM_A]);
        free(file);
        if (status)
            return status;
    }
    for (int i = 0; i < (c->has_c0 ? GM_OPERANDS : GM_C0); i++) {
        int status = gm_describe(text[i], preferred[i], &c->operand[i]);
        if (!status)
            status = matrix_of(job, c, i);
        if (status)
            return status;
    }
    c->shared = same_elements(&c->operand[GM_A], &c->operand[GM_B]);
    return GM_OK;
}

static int set_shape(gm_matmul_case *c)
{
    char a[GM_PATH_MAX], b[GM_PATH_MAX];
    const int64_t *rows = c->stored_rows, *cols = c->stored_cols;
    c->m = c->transpose[GM_A] ? cols[GM_A] : rows[GM_A];
    c->k = c->transpose[GM_A] ? rows[GM_A] : cols[GM_A];
    c->n = c->transpose[GM_B] ? rows[GM_B] : cols[GM_B];
    int64_t inner = c->transpose[GM_B] ? cols[GM_B] : rows[GM_B];
    if (c->k != inner)
        return gm_fail(GM_EINPUT, "%s is %lldx%lld%s and %s is %lldx%lld%s: the inner sizes %lld and %lld differ",
                       gm_dataset_title(&c->operand[GM_A], a), (long long)rows[GM_A], (long long)cols[GM_A],
                       c->transpose[GM_A] ? " (transposed)" : "", gm_dataset_title(&c->operand[GM_B], b), (long long)rows[GM_B],
                       (long long)cols[GM_B], c->transpose[GM_B] ? " (transposed)" : "", (long long)c->k, (long long)inner);
    if (c->has_c0 && (rows[GM_C0] != c->m || cols[GM_C0] != c->n))
        return gm_fail(GM_EINPUT, "%s is %lldx%lld, expected the shape of the product, %lldx%lld", gm_dataset_title(&c->operand[GM_C0], a),
                       (long long)rows[GM_C0], (long long)cols[GM_C0], (long long)c->m, (long long)c->n);
    int64_t elements;
    if (gm_mul(c->m, c->n, &elements) || gm_mul(elements, 8, &elements))
        return gm_fail(GM_EUSAGE, "a product of %lldx%lld does not fit 64-bit sizes", (long long)c->m, (long long)c->n);
    if (c->alpha == 0) /* as in the BLAS, A and B are not read then */
        c->k = 0;
    return GM_OK;
}

/* Bits of significand that hold every value of a type; integers: their width without the sign. */
static int bits_of(gm_dtype type)
{
    if (gm_dtype_get_kind(type) == GM_FLOAT)
        return type == GM_F64 ? 53 : type == GM_F32 ? 24 : 11;
    return 8 * (int)gm_dtype_size(type) - (gm_dtype_get_kind(type) == GM_SIGNED);
}

/* The precision by the data: the wider of the two. */
static gm_precision natural_precision(const gm_matmul_case *c)
{
    for (int i = GM_A; i <= GM_B; i++)
        if (c->operand[i].type == GM_F64 || gm_dtype_get_kind(c->operand[i].type) != GM_FLOAT)
            return GM_FP64;
    return GM_FP32;
}

static int set_types(const gm_job *job, gm_matmul_case *c)
{
    const gm_options *o = job->options;
    char title[GM_PATH_MAX];
    c->precision = o->precision ? gm_precision_find(o->precision) : natural_precision(c);
    if (c->precision == GM_PRECISIONS)
        return gm_fail(GM_EUSAGE, "--precision '%s': expected fp64, fp32 or exact", o->precision);
    const gm_precision_info *how = gm_precision_get(c->precision);
    if (!job->ops->product(job->device, c->precision))
        return gm_fail(GM_EUSAGE, "--precision %s is not built yet for the device %s; fp64, fp32 and exact are", how->name, job->ops->kind);
    for (int i = GM_A; i <= GM_B; i++) {
        int fits = bits_of(c->operand[i].type) <= (how->operand == GM_F64 ? 53 : 24);
        if (!fits && c->precision == GM_EXACT)
            return gm_fail(GM_EUSAGE, "--precision exact is for data that float32 holds; %s is %s", gm_dataset_title(&c->operand[i], title),
                           gm_dtype_name(c->operand[i].type));
        if (!fits)
            gm_note("%s (%s) is rounded to float32 by --precision %s", letters[i], gm_dtype_name(c->operand[i].type), how->name);
    }
    c->result = o->type ? gm_dtype_find(o->type) : how->result;
    if (c->result == GM_DTYPES || gm_dtype_get_kind(c->result) != GM_FLOAT)
        return gm_fail(GM_EUSAGE, "--type '%s': C is f64, f32 or f16", o->type);
    return GM_OK;
}

static int set_case(const gm_job *job, gm_matmul_case *c)
{
    const gm_options *o = job->options;
    c->transpose[GM_A] = o->transpose && strchr(o->transpose, 'a');
    c->transpose[GM_B] = o->transpose && strchr(o->transpose, 'b');
    c->alpha = o->alpha;
    c->beta = o->add && !gm_options_given(o, "beta") ? 1 : o->beta;
    c->has_c0 = c->beta != 0;
    c->verify = !o->no_verify;
    if (c->has_c0 && !o->add)
        return gm_fail(GM_EUSAGE, "--beta %g needs C0: --add FILE:DATASET", o->beta);
    int status = describe_operands(job, c);
    if (!status)
        status = set_shape(c);
    return status ? status : set_types(job, c);
}

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
        .stage = !job->ops->unified, .shared = c->shared, .max_tile = product->tile,
        .ranks = job->ranks->size, .threads = job->threads,
        .device_budget = gm_memory_cap(GM_DEVICE), .device_used = gm_memory_used(GM_DEVICE),
        .host_budget = gm_memory_cap(GM_HOST), .host_used = gm_memory_used(GM_HOST),
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
    return json_pack("{s:[III], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "grid", (json_int_t)plan->grid[0],
                     (json_int_t)plan->grid[1], (json_int_t)plan->grid[2], "tile", (json_int_t)plan->tile, "leaf", (json_int_t)plan->leaf,
                     "leaves", (json_int_t)plan->leaves, "block_rows", (json_int_t)plan->block_rows, "block_columns",
                     (json_int_t)plan->block_cols, "step_leaves", (json_int_t)plan->step_leaves, "piece", (json_int_t)plan->piece,
                     "depth", (json_int_t)plan->depth, "device_bytes", (json_int_t)plan->device_bytes, "host_bytes",
                     (json_int_t)plan->host_bytes);
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
    printf("block           %lld x %lld, %lld leaves a step%s\n", (long long)plan->block_rows, (long long)plan->block_cols,
           (long long)plan->step_leaves, plan->keep ? ", A = B kept whole" : "");
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

/* Readers, ring, device memory of this rank. */
static int prepare(gm_matmul *p, gm_progress *progress)
{
    const gm_job *job = p->job;
    int status = GM_OK;
    for (int i = 0; i < (p->problem->has_c0 ? GM_OPERANDS : GM_C0) && !status && !p->part.idle; i++)
        status = gm_reader_open(&p->problem->operand[i], &p->reader[i]);
    if (!status && !p->part.idle)
        status = gm_matmul_allocate(p);
    gm_stream_setup setup = {.ops = job->ops, .device = job->device, .ranks = job->ranks, .piece = gm_plan_slot_bytes(&p->plan),
                             .depth = p->plan.depth, .threads = job->threads, .progress = gm_progress_add, .progress_context = progress};
    return status ? status : gm_stream_open(&setup, &p->stream);
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
        if (all[r].ratio > verdict->ratio) {
            verdict->ratio = all[r].ratio;
            verdict->residual = all[r].residual;
            verdict->threshold = all[r].threshold;
        }
    }
    free(all);
    return status;
}

static void tell_verdict(gm_job *job, const gm_matmul_case *c, const gm_verdict *v)
{
    const char *method = c->verify ? "random vectors" : "none";
    job->report.verification =
        json_pack("{s:s, s:f, s:f, s:b, s:I, s:I, s:I, s:I, s:I}", "method", method, "residual", v->residual, "threshold", v->threshold, "passed",
                  c->verify, "lines_checked", (json_int_t)v->checked, "lines_skipped", (json_int_t)v->skipped, "nan",
                  (json_int_t)v->nonfinite.nan, "inf", (json_int_t)v->nonfinite.inf, "overflow", (json_int_t)v->nonfinite.overflow);
    if (v->nonfinite.nan + v->nonfinite.inf + v->nonfinite.overflow > 0)
        gm_warn("C has %llu NaN, %llu infinite and %llu overflowed elements; %lld rows and columns of blocks could not be checked",
                (unsigned long long)v->nonfinite.nan, (unsigned long long)v->nonfinite.inf, (unsigned long long)v->nonfinite.overflow,
                (long long)v->skipped);
    if (c->verify && v->checked > 0)
        gm_note("the product passed its check: residual %.3g, detection threshold %.3g", v->residual, v->threshold);
}

static int run_all(gm_job *job, const gm_matmul_case *c, const gm_plan *plan, gm_output_record *record)
{
    gm_matmul p = {.job = job, .problem = c, .plan = *plan, .product = job->ops->product(job->device, c->precision),
                   .verdict = {.ratio = -1, .tile_row = -1, .tile_col = -1}};
    gm_progress progress;
    gm_plan_part(plan, job->ranks->rank, &p.part);
    gm_progress_start(&progress, job, "matmul",
                      gm_plan_bytes_read(plan, &p.part) +
                          (p.part.layer == 0 ? p.part.rows * p.part.cols * plan->problem.file_bytes_c : 0));
    double opened = gm_clock();
    int status = gm_job_agree_all(job, prepare(&p, &progress));
    gm_result result = {0};
    if (!status)
        status = gm_result_create_all(job, record, c->operand, c->has_c0 ? GM_OPERANDS : GM_C0, GM_OK, &result);
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - opened;
    if (!status) {
        gm_program program;
        gm_matmul_program(&p, &program);
        p.output = result.output;
        status = gm_job_agree_all(job, gm_stream_run(p.stream, &program, &job->report.times));
        gm_progress_end(&progress);
        job->report.flop = p.flop;
        job->report.bytes_read = gm_plan_bytes_read(plan, &p.part);
        job->report.bytes_written = p.part.layer == 0 ? p.part.rows * p.part.cols * plan->problem.file_bytes_c : 0;
        if (!status)
            status = gather_verdict_all(job, &p.verdict);
        gm_attribute extra[] = {
            {.name = "precision", .kind = GM_ATTRIBUTE_TEXT, .text = gm_precision_get(c->precision)->name},
            {.name = "verification", .kind = GM_ATTRIBUTE_TEXT, .text = c->verify ? "passed: random vectors" : "none"},
            {.name = "verification_residual", .kind = GM_ATTRIBUTE_REAL, .real = p.verdict.residual},
            {.name = "verification_threshold", .kind = GM_ATTRIBUTE_REAL, .real = p.verdict.threshold},
        };
        if (!status && job->ranks->rank == 0)
            tell_verdict(job, c, &p.verdict);
        release(&p); /* the final form of a chunked output wants the memory */
        status = gm_result_finish_all(job, &result, extra, c->verify ? 4 : 2, status);
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
        status = set_case(job, c);
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
        job->report.plan = plan_to_json(&plan);
        job->report.inputs = json_array();
        for (int i = 0; i < (c->has_c0 ? GM_OPERANDS : GM_C0); i++)
            json_array_append_new(job->report.inputs, gm_report_dataset(&c->operand[i]));
    }
    if (!status && job->options->plan && first)
        print_plan(job, c, &plan);
    else if (!status && !job->options->plan)
        status = run_all(job, c, &plan, record);
    job->report.wall_s = gm_clock() - from - job->report.sync_s;
    free(record);
    free(c);
    return status;
}
