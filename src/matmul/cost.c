#include "src/matmul/cost.h"

#include "base/size.h"

#include <math.h>

/* Bytes of a run that takes a thread many times as long as the call. */
static const double long_run = 64 << 10;

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

/* Strips of rows of A or B that ranks of a host read, and of C that they write, at the same time. bytes: read of
 * A and of B. */
static void set_strips(const gm_matmul_plan *plan, const double *bytes, gm_work *w)
{
    int64_t host = gm_rates_host_ranks(&plan->problem.rates), strips[2];
    for (int matrix = 0; matrix < 2; matrix++) {
        strips[matrix] = gm_max(gm_min(plan->grid[matrix], host), 1); /* of a row */
        if (!plan->problem.by_rows[matrix] && !plan->same)
            w->read_strips += (1 - 1 / (double)strips[matrix]) * bytes[matrix];
    }
    w->write_strips = (double)(strips[1] - 1) * w->write;
}

/* Calls, each of which reads a run of A or of B, of some bytes in all. */
static double reads_of(const gm_matmul_plan *plan, const gm_matmul_part *part, int matrix, double bytes)
{
    const gm_matmul_problem *p = &plan->problem;
    int64_t outer = matrix ? part->cols : part->rows, all = matrix ? p->n : p->m,
            element = matrix ? p->file_bytes_b : p->file_bytes_a;
    int64_t step = gm_min(gm_mul_sat(plan->step_leaves, plan->leaf), p->k);
    int64_t run = p->by_rows[matrix] ? step : outer;
    int is_whole = plan->same || run == (p->by_rows[matrix] ? p->k : all);
    double run_bytes = (double)run * (double)element;
    return is_whole || run_bytes >= long_run ? 0 : bytes / fmax(run_bytes, 1);
}

/* The work of a part without the exchange. */
static void set_flow(const gm_matmul_plan *plan, const gm_matmul_part *part, gm_work *w)
{
    const gm_matmul_problem *p = &plan->problem;
    double area = (double)part->rows * (double)part->cols, piece = (double)plan->piece;
    double depth = (double)gm_matmul_plan_depth(plan, part->leaf0, part->leaf1);
    double bytes[GM_OPERANDS], read = 0;
    for (int operand = 0; operand < GM_OPERANDS; operand++) {
        bytes[operand] = (double)gm_matmul_plan_operand_read(plan, part, operand);
        read += bytes[operand];
    }
    *w = (gm_work){.read = read, .to_device = read, .first_read = fmin(piece, read), .times = 1};
    if (part->layer == 0) {
        w->write = w->from_device = area * (double)p->file_bytes_c;
        w->last_out = fmin((double)plan->band_rows / (double)part->rows, 1) * w->write;
    }
    set_strips(plan, bytes, w);
    w->reads = reads_of(plan, part, GM_A, bytes[GM_A]) + reads_of(plan, part, GM_B, bytes[GM_B]);
    if (part->cols < p->n && (double)part->cols * (double)p->file_bytes_c < long_run)
        w->writes = w->write / ((double)part->cols * (double)p->file_bytes_c);
    w->flop_s = 2 * area * depth / (p->rates.flop[p->precision] * busy(plan, part->rows, part->cols));
    if (p->verifies)
        w->verify = operands(plan, part) * (double)p->operand_bytes + 2 * area * (double)p->accumulator_bytes;
    w->pieces = (read + w->write) / piece;
}

/* Through the host, or by the network. */
static double exchange_rate(const gm_matmul_plan *plan)
{
    const gm_rates *rates = &plan->problem.rates;
    return workers(plan) <= gm_rates_host_ranks(rates) ? rates->exchange_near
                                                       : fmin(rates->exchange_near, rates->exchange_far);
}

/* Sets the rate of exchanges of some bytes: through the host, or from device to device where that takes less time with
 * its start, which is returned. */
static double set_exchange(const gm_matmul_plan *plan, double bytes, gm_work *w)
{
    const gm_rates *rates = &plan->problem.rates;
    double direct = rates->exchange_direct;
    w->exchange = exchange_rate(plan);
    if (direct <= 0 || rates->direct_s + bytes / direct > rates->exchange_s + bytes / w->exchange)
        return rates->exchange_s;
    w->exchange = direct;
    return rates->direct_s;
}

/* Chunks of panels that other ranks have read, and those that they get: while later ones are read. After the last step
 * nothing is left to be read. */
static void set_sharing(const gm_matmul_plan *plan, const gm_matmul_part *part, gm_work *w)
{
    for (int matrix = 0; matrix < 2; matrix++) {
        int64_t received, sent;
        gm_matmul_plan_exchanged(plan, part, matrix, &received, &sent);
        w->received += (double)received * (double)plan->problem.operand_bytes;
        w->sent += (double)sent * (double)plan->problem.operand_bytes;
    }
    w->overlaps = 1;
    double moved = fmax(w->received, w->sent), start = set_exchange(plan, moved, w);
    w->pieces += moved / (double)plan->piece; /* the ring's thread drives them on */
    w->wait_s = moved > 0 ? start + moved / w->exchange / (double)gm_min(plan->leaves, GM_MATMUL_STEPS) : 0;
}

/* The traffic along the chain of layers: a rank folds its leaves to the block that it receives, and sends it on. The
 * owner, the last of the chain, waits for the layer with the most leaves, and until the first band has come all the
 * way: each rank has a band of its own under way. */
static void set_chain(const gm_matmul_plan *plan, const gm_matmul_part *part, gm_work *w)
{
    const gm_matmul_problem *p = &plan->problem;
    const gm_rates *rates = &p->rates;
    double bytes = (double)part->rows * (double)part->cols * (double)p->accumulator_bytes;
    w->received = part->layer + 1 < plan->grid[2] ? bytes : 0;
    w->sent = part->layer > 0 ? bytes : 0;
    double start = set_exchange(plan, bytes, w);
    if (part->leaf0 > 0) /* a leaf and acc are read, acc is written */
        w->memory = 3 * bytes * (double)(part->leaf1 - part->leaf0);
    if (part->layer > 0)
        return;
    gm_contention contention = gm_rates_contention(rates, workers(plan));
    gm_matmul_part first;
    gm_work longest;
    gm_matmul_plan_part(plan, gm_matmul_plan_partner(plan, part, (int)plan->grid[2] - 1), &first);
    set_flow(plan, &first, &longest);
    if (plan->grid[2] > 2) /* layers between fold as well */
        longest.memory = 3 * bytes * (double)(first.leaf1 - first.leaf0);
    double later = gm_work_seconds(&longest, rates, contention, NULL) - gm_work_seconds(w, rates, contention, NULL) +
                   fmax(w->received, w->sent) / w->exchange;
    double band = (double)gm_min(plan->band_rows, part->rows) * (double)gm_min(plan->block_cols, part->cols) *
                  (double)p->accumulator_bytes;
    w->wait_s = start + fmax(later, 0) +
                (double)(plan->grid[2] - 2) * band / w->exchange * (double)gm_matmul_plan_blocks(plan, part);
}

double gm_matmul_cost_staged(const gm_matmul_plan *plan)
{
    gm_work work;
    int works = gm_matmul_cost_work(plan, 0, &work);
    return works ? fmax(work.received, work.sent) / exchange_rate(plan) : 0;
}

int gm_matmul_cost_work(const void *context, int rank, gm_work *w)
{
    const gm_matmul_plan *plan = context;
    gm_matmul_part part;
    gm_matmul_plan_part(plan, rank, &part);
    if (part.idle)
        return 0;
    set_flow(plan, &part, w);
    if (gm_matmul_plan_chains(plan))
        set_chain(plan, &part, w);
    if (plan->shares)
        set_sharing(plan, &part, w);
    return 1;
}

/* Blocks of about the size that the plan gives them: half of the device for the sums of C and the leaves that are kept
 * apart. */
static void estimate_blocks(gm_matmul_plan *plan)
{
    const gm_matmul_problem *p = &plan->problem;
    gm_matmul_part part;
    gm_matmul_plan_part(plan, 0, &part);
    int64_t half = gm_max(plan->budget.device / 2, 1);
    plan->block_rows = gm_max(part.rows, 1);
    plan->block_cols = gm_max(part.cols, 1);
    plan->same = p->shared && plan->grid[2] == 1 && p->panels != GM_PANELS_EXCHANGE && p->m <= part.rows + part.cols &&
                 gm_mul_sat(gm_mul_sat(p->m, p->k), p->operand_bytes) <= half;
    int64_t element = gm_mul_sat(p->accumulator_bytes, 1 + gm_matmul_plan_kept_leaves(plan));
    while (gm_mul_sat(gm_mul_sat(plan->block_rows, plan->block_cols), element) > half) {
        int64_t *longer = plan->block_rows >= plan->block_cols ? &plan->block_rows : &plan->block_cols;
        if (*longer <= plan->tile)
            break;
        *longer = gm_round_up(*longer / 2, plan->tile);
    }
    plan->band_rows = gm_matmul_plan_band(plan);
    double kept = (double)plan->block_rows * (double)plan->block_cols * (double)p->accumulator_bytes +
                  (double)p->k * (double)(part.rows + part.cols) * (double)p->operand_bytes;
    plan->keep = !plan->budget.unified && plan->grid[2] == 1 && plan->block_rows >= part.rows &&
                 plan->block_cols >= part.cols && kept <= (double)plan->budget.device;
    plan->step_leaves = gm_max(gm_ceil_div(plan->leaves, GM_MATMUL_STEPS), 1);
}

/* Those of the grid that panels come the one way or the other; INFINITY where they cannot, or are not to. */
static double seconds_of(const gm_matmul_plan *plan, int64_t R, int64_t C, int64_t K, int shares)
{
    const gm_rates *rates = &plan->problem.rates;
    gm_matmul_plan trial = *plan;
    gm_work work;
    if (plan->problem.panels == (shares ? GM_PANELS_READ : GM_PANELS_EXCHANGE))
        return INFINITY;
    trial.shares = 0;
    trial.grid[0] = R;
    trial.grid[1] = C;
    trial.grid[2] = K;
    estimate_blocks(&trial);
    if (shares && gm_matmul_plan_hindrance(&trial))
        return INFINITY;
    trial.shares = shares;
    double seconds = gm_work_start_seconds(rates, workers(&trial));
    if (gm_matmul_cost_work(&trial, 0, &work)) /* the owner of the largest part: it waits for all others */
        seconds += gm_work_seconds(&work, rates, gm_rates_contention(rates, workers(&trial)), NULL);
    return seconds;
}

int gm_matmul_cost_shares(const gm_matmul_plan *plan)
{
    const int64_t *g = plan->grid;
    return seconds_of(plan, g[0], g[1], g[2], 1) < seconds_of(plan, g[0], g[1], g[2], 0);
}

double gm_matmul_cost_seconds(const gm_matmul_plan *plan, int64_t R, int64_t C, int64_t K)
{
    return fmin(seconds_of(plan, R, C, K, 0), seconds_of(plan, R, C, K, 1));
}
