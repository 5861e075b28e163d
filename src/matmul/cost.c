#include "src/matmul/cost.h"

#include "base/size.h"

#include <math.h>

/* Part of the device that a product of rows x cols keeps busy, as its last wave is seldom full. */
static double busy(const gm_matmul_plan *plan, int64_t rows, int64_t cols)
{
    int64_t places = plan->problem.multiprocessors, side = GM_MATMUL_UNIT;
    if (places == 0) { /* a tile for each thread */
        places = gm_max(plan->budget.threads, 1);
        side = plan->tile;
    }
    int64_t parts = gm_mul_sat(gm_ceil_div(rows, side), gm_ceil_div(cols, side));
    return (double)parts / ((double)gm_ceil_div(parts, places) * (double)places);
}

static int workers(const gm_matmul_plan *plan)
{
    return (int)(plan->grid[0] * plan->grid[1] * plan->grid[2]);
}

/* Elements of A and B that a part takes to the device, again for each block. */
static double operands(const gm_matmul_plan *plan, const gm_matmul_part *part)
{
    double depth = (double)gm_matmul_plan_depth(plan, part->leaf0, part->leaf1);
    double across = (double)gm_ceil_div(part->cols, plan->block_cols),
           down = (double)gm_ceil_div(part->rows, plan->block_rows);
    return depth * ((double)part->rows * across + (double)part->cols * down);
}

/* The work of a part without the exchange. */
static void set_flow(const gm_matmul_plan *plan, const gm_matmul_part *part, gm_work *w)
{
    const gm_matmul_problem *p = &plan->problem;
    double area = (double)part->rows * (double)part->cols, piece = (double)plan->piece;
    double depth = (double)gm_matmul_plan_depth(plan, part->leaf0, part->leaf1);
    double read = (double)gm_matmul_plan_bytes_read(plan, part);
    *w = (gm_work){.read = read, .to_device = read, .first_read = fmin(piece, read), .times = 1};
    if (part->layer == 0) {
        w->write = w->from_device = area * (double)p->file_bytes_c;
        w->last_out = fmin((double)plan->band_rows / (double)part->rows, 1) * w->write;
    }
    w->flop_s = 2 * area * depth / (p->rates.flop[p->precision] * busy(plan, part->rows, part->cols));
    if (p->verifies)
        w->verify = operands(plan, part) * (double)p->operand_bytes + 2 * area * (double)p->accumulator_bytes;
    w->pieces = (read + w->write) / piece;
}

/* Bytes of the leaves of some number, of the rows and columns of a part. */
static double leaf_bytes(const gm_matmul_plan *plan, const gm_matmul_part *part, int64_t leaves)
{
    return (double)leaves * (double)part->rows * (double)part->cols * (double)plan->problem.accumulator_bytes;
}

/* The owner takes the leaves of the layers in turn, the first of which is the largest. */
static void set_owner(const gm_matmul_plan *plan, const gm_matmul_part *part, gm_work *w)
{
    const gm_rates *rates = &plan->problem.rates;
    int64_t layers = plan->grid[2] - 1;
    gm_matmul_part first;
    gm_work other;
    w->received = leaf_bytes(plan, part, plan->leaves - (part->leaf1 - part->leaf0));
    gm_matmul_plan_part(plan, gm_matmul_plan_partner(plan, part, 1), &first);
    set_flow(plan, &first, &other);
    double flow = gm_work_seconds(&other, rates, gm_rates_crew(rates, workers(plan)), NULL);
    if (rates->exchange_waits)
        w->wait_s = fmax((double)layers * flow - w->received / w->exchange, 0);
}

int gm_matmul_cost_work(const void *context, int rank, gm_work *w)
{
    const gm_matmul_plan *plan = context;
    const gm_rates *rates = &plan->problem.rates;
    gm_matmul_part part;
    gm_matmul_plan_part(plan, rank, &part);
    if (part.idle)
        return 0;
    set_flow(plan, &part, w);
    if (plan->grid[2] == 1)
        return 1;
    w->exchange = workers(plan) <= gm_rates_host_ranks(rates) ? rates->exchange_near
                                                              : fmin(rates->exchange_near, rates->exchange_far);
    if (part.layer == 0) {
        set_owner(plan, &part, w);
        w->to_device += w->received;
    } else {
        w->sent = leaf_bytes(plan, &part, part.leaf1 - part.leaf0);
        w->from_device += w->sent;
    }
    return 1;
}

/* Blocks of about the size that the plan gives them: half of the device for the sums of C. */
static void estimate_blocks(gm_matmul_plan *plan)
{
    const gm_matmul_problem *p = &plan->problem;
    gm_matmul_part part;
    gm_matmul_plan_part(plan, 0, &part);
    int64_t half = gm_max(plan->budget.device / 2, 1);
    plan->block_rows = gm_max(part.rows, 1);
    plan->block_cols = gm_max(part.cols, 1);
    plan->same = p->shared && plan->grid[2] == 1 && p->m <= part.rows + part.cols &&
                 gm_mul_sat(gm_mul_sat(p->m, p->k), p->operand_bytes) <= half;
    while (gm_mul_sat(gm_mul_sat(plan->block_rows, plan->block_cols), p->accumulator_bytes) > half) {
        int64_t *longer = plan->block_rows >= plan->block_cols ? &plan->block_rows : &plan->block_cols;
        if (*longer <= plan->tile)
            break;
        *longer = gm_round_up(*longer / 2, plan->tile);
    }
    plan->band_rows = gm_matmul_plan_band(plan);
}

double gm_matmul_cost_seconds(const gm_matmul_plan *plan, int64_t R, int64_t C, int64_t K)
{
    const gm_rates *rates = &plan->problem.rates;
    gm_matmul_plan trial = *plan;
    gm_work work;
    trial.grid[0] = R;
    trial.grid[1] = C;
    trial.grid[2] = K;
    estimate_blocks(&trial);
    double seconds = gm_work_start_seconds(rates, workers(&trial));
    if (gm_matmul_cost_work(&trial, 0, &work)) /* the owner of the largest part: it waits for all others */
        seconds += gm_work_seconds(&work, rates, gm_rates_crew(rates, workers(&trial)), NULL);
    return seconds;
}
