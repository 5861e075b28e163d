/* matmul - C = alpha op(A) op(B) + beta C0, checked as it is made. */
#include "src/matmul/matmul.h"

#include "base/log.h"
#include "base/size.h"
#include "base/text/words.h"
#include "src/exchange/exchange.h"
#include "src/matmul/cost.h"
#include "src/matmul/op.h"
#include "src/operation.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* "RxCxK" */
static int read_grid(const char *text, int64_t *grid)
{
    if (!text || !gm_integers_parse(text, 'x', 3, grid))
        return GM_OK;
    return gm_fail(GM_EUSAGE, "--grid '%s': expected RxCxK, three integers from 1 to %" PRId64, text, INT64_MAX);
}

static gm_panels panels_of(const char *text)
{
    static const char *const words[] = {
        [GM_PANELS_AUTO] = "auto", [GM_PANELS_READ] = "read", [GM_PANELS_EXCHANGE] = "exchange"};
    return (gm_panels)gm_word_index(words, GM_PANELS_EXCHANGE + 1, text);
}

/* The problem of the plan: that of the first rank, for all ranks. */
static int set_problem(const gm_job *job, gm_matmul_case *c)
{
    gm_matmul_problem *problem = &c->problem;
    const gm_product *product = gm_matmul_product(job, c);
    c->kernel = product->family; /* of all ranks: bits differ between kernels */
    snprintf(c->product, sizeof c->product, "%s", product->kernel);
    *problem = (gm_matmul_problem){
        .m = c->m,
        .n = c->n,
        .k = c->k,
        .precision = c->precision,
        .operand_bytes = (int64_t)gm_dtype_size(product->operand),
        .accumulator_bytes = (int64_t)gm_dtype_size(product->accumulator),
        .file_bytes_a = (int64_t)gm_dtype_size(c->operand[GM_A].type),
        .file_bytes_b = (int64_t)gm_dtype_size(c->operand[GM_B].type),
        .file_bytes_c0 = c->has_c0 ? (int64_t)gm_dtype_size(c->operand[GM_C0].type) : 0,
        .file_bytes_c = (int64_t)gm_dtype_size(c->result),
        .shared = c->shared,
        .max_tile = product->tile,
        .leaf = product->leaf,
        .wants_tiles = product->wants_tiles,
        .work = product->work,
        .batches = product->batches,
        .multiprocessors = job->ops->unified ? 0 : job->info.multiprocessors,
        .verifies = c->verify,
        .is_batch = c->is_batch,
        .by_rows = {!c->transpose[GM_A], c->transpose[GM_B]},
        .row_unit = {gm_matmul_row_unit(c, GM_A), gm_matmul_row_unit(c, GM_B)},
        .panels = panels_of(job->options->panels),
        .ranks = job->ranks->size,
    };
    return read_grid(job->options->grid, problem->grid);
}

int gm_matmul_op_describe(gm_run *run)
{
    gm_matmul_case *c = run->c;
    int64_t dims[3];
    int status = gm_matmul_describe(run->job, c);
    run->shape.inputs = c->has_c0 ? GM_OPERANDS : GM_C0;
    run->shape.swapped = c->is_column;
    return status ? status : gm_run_describe_output(run, "/C", c->result, gm_matmul_shape(c, dims), dims);
}

int gm_matmul_op_suit(gm_run *run)
{
    gm_matmul_case *c = run->c;
    int status = gm_matmul_check_device(run->job, c);
    return status ? status : set_problem(run->job, c);
}

/* --- The plan --- */

gm_ring_request gm_matmul_op_request(const gm_run *run, const gm_ring_budget *budget)
{
    gm_ring_request request = gm_run_ring_request(run, budget);
    request.buffers = gm_run_takes_any(run);
    return request;
}

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    gm_matmul *p = run->own;
    gm_ring_request request = gm_matmul_op_request(run, budget);
    const gm_matmul_case *c = run->c;
    *p = (gm_matmul){.job = run->job, .c = c, .product = gm_matmul_product(run->job, c), .verdict = gm_verdict_none};
    int status = gm_matmul_check_device(run->job, c);
    if (status)
        return status;
    gm_matmul_problem problem = c->problem;
    problem.rates = run->job->rates;
    status = gm_matmul_plan_make(&problem, budget, &request, &p->plan, need);
    if (status)
        return status;
    gm_matmul_plan_part(&p->plan, run->job->ranks->rank, &p->part);
    run->ring = p->plan.ring;
    run->bytes_read = gm_matmul_plan_bytes_read(&p->plan, &p->part);
    run->bytes_written = p->part.layer == 0 ? p->part.rows * p->part.cols * p->plan.problem.file_bytes_c : 0;
    return GM_OK;
}

static json_t *plan_json(const gm_run *run)
{
    const gm_matmul_plan *p = &((const gm_matmul *)run->own)->plan;
    return json_pack("{s:[III], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "grid", (json_int_t)p->grid[0],
                     (json_int_t)p->grid[1], (json_int_t)p->grid[2], "tile", (json_int_t)p->tile, "leaf",
                     (json_int_t)p->leaf, "leaves", (json_int_t)p->leaves, "block_rows", (json_int_t)p->block_rows,
                     "block_columns", (json_int_t)p->block_cols, "band_rows", (json_int_t)p->band_rows, "step_leaves",
                     (json_int_t)p->step_leaves, "keep", p->keep, "panels", p->shares ? "exchange" : "read");
}

void gm_matmul_op_print(const gm_run *run, const gm_matmul *own)
{
    const gm_matmul_case *c = run->c;
    printf("product         %lld x %lld x %lld (m, n, k), %s, C is %s\n", (long long)(c->is_column ? c->n : c->m),
           (long long)(c->is_column ? c->m : c->n), (long long)c->k, gm_precision_get(c->precision)->name,
           gm_dtype_name(c->result));
    if (c->is_column)
        printf("order           column: the transpose of C in the file, %lld x %lld\n", (long long)c->m,
               (long long)c->n);
    printf("kernel          %s on %s\n", own->product->kernel, run->job->info.name);
}

static void print_plan(const gm_run *run)
{
    const gm_matmul *own = run->own;
    const gm_matmul_plan *p = &own->plan;
    gm_matmul_op_print(run, own);
    printf("grid            %lldx%lldx%lld of %d ranks\n", (long long)p->grid[0], (long long)p->grid[1],
           (long long)p->grid[2], run->job->ranks->size);
    printf("tile            %lld\nleaf            %lld (%lld of them)\n", (long long)p->tile, (long long)p->leaf,
           (long long)p->leaves);
    printf("block           %lld x %lld in bands of %lld rows, %lld leaves a step%s\n", (long long)p->block_rows,
           (long long)p->block_cols, (long long)p->band_rows, (long long)p->step_leaves,
           p->same   ? ", A = B kept whole"
           : p->keep ? ", A and B kept"
                     : "");
    if (p->grid[0] * p->grid[1] > 1)
        printf("panels          %s\n", p->shares ? "shared: read once, and exchanged" : "read by each rank");
}

static void print_share(const gm_run *run, int rank)
{
    const gm_matmul_plan *p = &((const gm_matmul *)run->own)->plan;
    gm_matmul_part part;
    char text[GM_SIZE_TEXT];
    gm_matmul_plan_part(p, rank, &part);
    if (part.idle) {
        printf("rank %-10d idle\n", rank);
        return;
    }
    int64_t bytes = gm_matmul_plan_bytes_read(p, &part);
    printf("rank %-10d rows [%lld:%lld], columns [%lld:%lld], leaves [%lld:%lld], %lld blocks, reads %s\n", rank,
           (long long)part.row0, (long long)(part.row0 + part.rows), (long long)part.col0,
           (long long)(part.col0 + part.cols), (long long)part.leaf0, (long long)part.leaf1,
           (long long)gm_matmul_plan_blocks(p, &part), gm_size_format(bytes, text));
}

static int work(const gm_run *run, int rank, gm_work *passes)
{
    return gm_matmul_cost_work(&((const gm_matmul *)run->own)->plan, rank, passes);
}

/* --- Memory --- */

int gm_matmul_op_open(gm_run *run, gm_matmul *product, int status)
{
    if (!status)
        status = gm_run_open_ring(run);
    product->reader = run->reader;
    product->stream = run->stream;
    return status;
}

static int prepare(gm_run *run)
{
    gm_matmul *p = run->own;
    if (p->part.idle)
        return GM_OK;
    int status = gm_run_open_readers(run);
    if (!status)
        status = gm_matmul_allocate(p, &run->pool);
    return gm_matmul_op_open(run, p, status);
}

/* --- The work --- */

/* With other layers, or with the ranks that share panels. An idle rank takes part. Collective. */
static int open_exchange_all(gm_run *run)
{
    gm_matmul *p = run->own;
    if (!gm_matmul_plan_chains(&p->plan) && !p->plan.shares)
        return GM_OK;
    gm_exchange_way ways[GM_MATMUL_WAYS];
    const gm_exchange_setup purpose = {.wanted = "auto",
                                       .seconds = gm_matmul_cost_staged(&p->plan),
                                       .ways = ways,
                                       .way_count = p->plan.shares ? gm_matmul_share_ways(p, ways) : 0};
    return gm_job_open_exchange_all(run->job, &purpose, &p->exchange);
}

static int multiply(gm_run *run)
{
    gm_matmul *p = run->own;
    gm_phase_times *times = &run->job->report.times;
    gm_program program;
    gm_matmul_program(p, &program);
    int status = gm_stream_run(run->stream, &program, times);
    if (p->exchange)
        times->seconds[GM_PHASE_EXCHANGE] += gm_exchange_seconds(p->exchange);
    return status ? status : gm_matmul_repair(p, times);
}

static int run_all(gm_run *run)
{
    gm_matmul *p = run->own;
    gm_report *report = &run->job->report;
    p->output = run->output;
    report->bytes_read = run->bytes_read;
    report->bytes_written = run->bytes_written;
    gm_detail("%s, grid %lldx%lldx%lld, blocks of %lldx%lld", p->product->kernel, (long long)p->plan.grid[0],
              (long long)p->plan.grid[1], (long long)p->plan.grid[2], (long long)p->plan.block_rows,
              (long long)p->plan.block_cols);
    int status = open_exchange_all(run);
    if (!status) {
        status = p->part.idle ? GM_OK : multiply(run);
        status = gm_matmul_op_judge_all(run, p, gm_job_agree_all(run->job, status));
    }
    gm_exchange_close_all(p->exchange);
    p->exchange = NULL;
    return status;
}

static const gm_operation *variant(const gm_options *options)
{
    return options->batch ? &gm_op_matmul_batch : NULL;
}

const gm_operation gm_op_matmul = {.variant = variant,
                                   .case_bytes = sizeof(gm_matmul_case),
                                   .own_bytes = sizeof(gm_matmul),
                                   .inputs = offsetof(gm_matmul_case, operand),
                                   .describe = gm_matmul_op_describe,
                                   .suit = gm_matmul_op_suit,
                                   .plan = plan,
                                   .print_plan = print_plan,
                                   .print_share = print_share,
                                   .work = work,
                                   .by_rates = 1,
                                   .plan_json = plan_json,
                                   .prepare = prepare,
                                   .run_all = run_all};
