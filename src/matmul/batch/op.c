/* matmul --batch - C[f] = alpha op(A[f]) op(B[f]) + beta C0[f], frame by frame. */
#include "src/matmul/batch/batch.h"

#include "base/log.h"
#include "base/size.h"
#include "src/matmul/cost.h"
#include "src/matmul/op.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* --- The plan --- */

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    gm_batch *b = run->own;
    gm_matmul *p = &b->product;
    const gm_matmul_case *c = run->c;
    gm_ring_request request = gm_matmul_op_request(run, budget);
    *b = (gm_batch){
        .product = {.job = run->job, .c = c, .product = gm_matmul_product(run->job, c), .verdict = gm_verdict_none}};
    int status = gm_matmul_check_device(run->job, c);
    if (status)
        return status;
    gm_matmul_problem problem = c->problem;
    problem.rates = run->job->rates;
    status = gm_batch_plan_make(c, p->product->operand, &problem, budget, &request, &b->plan, need);
    if (status)
        return status;
    p->plan = b->plan.product;
    gm_matmul_plan_part(&p->plan, 0, &p->part);
    if (c->m > 0 && c->n > 0)
        b->share = gm_batch_plan_share(&b->plan, run->job->ranks->size, run->job->ranks->rank);
    run->ring = b->plan.ring;
    run->out_at = b->plan.group ? b->plan.out_at : 0;
    gm_batch_plan_bytes(c, &b->plan, gm_range_length(b->share), &run->bytes_read, &run->bytes_written);
    return GM_OK;
}

static const char *way_of(const gm_batch_plan *p)
{
    return p->group ? "groups" : "products";
}

static json_t *plan_json(const gm_run *run)
{
    const gm_batch_plan *p = &((const gm_batch *)run->own)->plan;
    return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I}", "frames", (json_int_t)p->frames, "way", way_of(p), "group",
                     (json_int_t)gm_max(p->group, 1), "tile", (json_int_t)p->product.tile, "leaf",
                     (json_int_t)p->product.leaf, "leaves", (json_int_t)p->product.leaves);
}

static void print_plan(const gm_run *run)
{
    const gm_batch *b = run->own;
    const gm_batch_plan *p = &b->plan;
    gm_matmul_op_print(run, &b->product);
    if (p->group)
        printf("frames          %lld in groups of %lld\n", (long long)p->frames, (long long)p->group);
    else
        printf("frames          %lld, each a product of its own in blocks of %lld x %lld\n", (long long)p->frames,
               (long long)p->product.block_rows, (long long)p->product.block_cols);
    printf("tile            %lld\nleaf            %lld (%lld of them)\n", (long long)p->product.tile,
           (long long)p->product.leaf, (long long)p->product.leaves);
}

/* The frames of a rank, as all ranks know them. */
static gm_range share_of(const gm_run *run, int rank)
{
    const gm_matmul_case *c = run->c;
    return c->m > 0 && c->n > 0 ? gm_batch_plan_share(&((const gm_batch *)run->own)->plan, run->job->ranks->size, rank)
                                : (gm_range){0, 0};
}

static void print_share(const gm_run *run, int rank)
{
    char text[GM_SIZE_TEXT];
    gm_range share = share_of(run, rank);
    int64_t read, written;
    gm_batch_plan_bytes(run->c, &((const gm_batch *)run->own)->plan, gm_range_length(share), &read, &written);
    if (gm_range_length(share) == 0)
        printf("rank %-10d idle\n", rank);
    else
        printf("rank %-10d frames [%lld:%lld], reads %s\n", rank, (long long)share.begin, (long long)share.end,
               gm_size_format(read, text));
}

/* Part of the device's tiles that a frame fills. */
static double fill_of(const gm_run *run)
{
    const gm_matmul_case *c = run->c;
    double tile = run->job->ops->unified ? 1 : GM_MATMUL_UNIT;
    return (double)c->m / (ceil((double)c->m / tile) * tile) * ((double)c->n / (ceil((double)c->n / tile) * tile));
}

static int work(const gm_run *run, int rank, gm_work *w)
{
    const gm_batch *b = run->own;
    const gm_matmul_case *c = run->c;
    const gm_matmul_problem *p = &b->plan.product.problem;
    double frames = (double)gm_range_length(share_of(run, rank));
    int64_t read, written;
    if (frames == 0)
        return 0;
    if (!b->plan.group) {
        int passes = gm_matmul_cost_work(&b->plan.product, 0, w);
        w->times = frames;
        return passes;
    }
    gm_batch_plan_bytes(c, &b->plan, (int64_t)frames, &read, &written);
    double operands = (double)c->k * (double)(c->m + c->n) * (double)p->operand_bytes,
           area = (double)c->m * (double)c->n;
    *w = gm_run_work(run, (double)read, (double)written);
    w->memory = frames * (operands + 2 * area * (double)p->accumulator_bytes);
    w->flop_s = frames * 2 * area * (double)c->k / (p->rates.flop[p->precision] * fill_of(run));
    w->verify = c->verify ? w->memory : 0;
    return 1;
}

/* --- The work --- */

static int prepare(gm_run *run)
{
    gm_batch *b = run->own;
    gm_matmul *p = &b->product;
    if (gm_range_length(b->share) == 0)
        return GM_OK;
    int status = gm_run_open_readers(run);
    if (!status)
        status = b->plan.group ? gm_batch_allocate(b, &run->pool) : gm_matmul_allocate(p, &run->pool);
    return gm_matmul_op_open(run, p, status);
}

static int run_all(gm_run *run)
{
    gm_batch *b = run->own;
    gm_matmul *p = &b->product;
    gm_report *report = &run->job->report;
    p->output = run->output;
    report->bytes_read = run->bytes_read;
    report->bytes_written = run->bytes_written;
    gm_detail("%s, %lld frames as %s of %lld", p->product->kernel, (long long)b->plan.frames, way_of(&b->plan),
              (long long)gm_max(b->plan.group, 1));
    return gm_matmul_op_judge_all(run, p, gm_job_agree_all(run->job, gm_batch_run(b, &report->times)));
}

const gm_operation gm_op_matmul_batch = {.case_bytes = sizeof(gm_matmul_case),
                                         .own_bytes = sizeof(gm_batch),
                                         .inputs = offsetof(gm_matmul_case, operand),
                                         .describe = gm_matmul_op_describe,
                                         .suit = gm_matmul_op_suit,
                                         .plan = plan,
                                         .print_plan = print_plan,
                                         .print_share = print_share,
                                         .work = work,
                                         .plan_json = plan_json,
                                         .prepare = prepare,
                                         .run_all = run_all};
