/* The arithmetic of a product: parts cover C and k once, leaves and tiles depend on the problem alone, budgets hold. */
#include <math.h>

#include "src/exchange/staged.h"
#include "tests/src/matmul/plans.h"
#include "tests/tap.h"

#include "base/size.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Every element of C and every leaf belongs to exactly one part. Counts areas: parts are rectangles on one grid. */
static int covers(const gm_matmul_plan *plan)
{
    __int128 work = 0;
    for (int r = 0; r < plan->problem.ranks; r++) {
        gm_matmul_part part;
        gm_matmul_plan_part(plan, r, &part);
        if (part.idle)
            continue;
        if (part.row0 % plan->tile || part.col0 % plan->tile || part.row0 + part.rows > plan->problem.m ||
            part.col0 + part.cols > plan->problem.n || gm_matmul_plan_partner(plan, &part, part.layer) != r)
            return 0;
        work += (__int128)part.rows * part.cols * gm_matmul_plan_depth(plan, part.leaf0, part.leaf1);
    }
    return work == (__int128)plan->problem.m * plan->problem.n * plan->problem.k;
}

static void test_cover(void)
{
    static const int64_t sizes[] = {0, 1, 7, 127, 129, 1000, 4096, 100003};
    static const int ranks[] = {1, 2, 3, 5, 8, 64};
    enum { SIZES = sizeof sizes / sizeof *sizes, RANKS = sizeof ranks / sizeof *ranks };
    int good = 1, made = 1;
    for (int a = 0; a < SIZES; a++)
        for (int b = 0; b < SIZES; b++)
            for (int c = 0; c < SIZES; c++)
                for (int r = 0; r < RANKS; r++) {
                    gm_matmul_problem p = problem(sizes[a], sizes[b], sizes[c], ranks[r]);
                    gm_matmul_plan plan;
                    made &= make(&p, INT64_C(1) << 40, &plan) == GM_OK;
                    good &= covers(&plan);
                }
    tap_ok(made, "plans are made for all shapes and rank counts");
    tap_ok(good, "their parts cover C and k once");
}

/* A grid may be smaller than the run: the ranks beyond it are idle. */
static void test_idle(void)
{
    gm_matmul_problem p = problem(1000, 900, 3000, 7);
    int good = 1, grids = 0;
    for (p.grid[0] = 1; p.grid[0] <= 7; p.grid[0]++)
        for (p.grid[1] = 1; p.grid[0] * p.grid[1] <= 7; p.grid[1]++)
            for (p.grid[2] = 1; p.grid[0] * p.grid[1] * p.grid[2] <= 7; p.grid[2]++, grids++) {
                gm_matmul_plan plan;
                gm_matmul_part part;
                good &= make(&p, INT64_C(8) << 30, &plan) == GM_OK && covers(&plan);
                for (int r = (int)(p.grid[0] * p.grid[1] * p.grid[2]); r < 7; r++) {
                    gm_matmul_plan_part(&plan, r, &part);
                    good &= part.idle && gm_matmul_plan_blocks(&plan, &part) == 0;
                }
            }
    tap_ok(good, "%d grids of up to 7 ranks cover C and k once, and the other ranks are idle", grids);
}

static void test_same_cut(void)
{
    int same = 1;
    gm_matmul_plan first, plan;
    gm_matmul_problem p = problem(5000, 3000, 20000, 1);
    make(&p, INT64_C(8) << 30, &first);
    for (int ranks = 1; ranks <= 16; ranks++)
        for (int64_t budget = INT64_C(64) << 20; budget <= INT64_C(4) << 30; budget *= 4) {
            p = problem(5000, 3000, 20000, ranks);
            same &= make(&p, budget, &plan) == GM_OK && plan.tile == first.tile && plan.leaf == first.leaf &&
                    plan.leaves == first.leaves && plan.ring.device_bytes <= budget && plan.ring.host_bytes <= budget;
        }
    tap_ok(same, "tiles and leaves are the same for any number of ranks and any budget, and the budget holds");
}

/* Do the chunks of all members of all circles cover the panels of their parts once, at units of rows? */
static int chunks_cover(const gm_matmul_plan *plan)
{
    int good = 1, ranks = (int)(plan->grid[0] * plan->grid[1]);
    int64_t read = 0, received = 0, sent = 0, unit = plan->problem.row_unit[0];
    for (int rank = 0; rank < ranks; rank++) {
        gm_matmul_part part;
        gm_matmul_plan_part(plan, rank, &part);
        read += gm_matmul_plan_bytes_read(plan, &part);
        for (int matrix = 0; matrix < 2; matrix++) {
            gm_matmul_circle c = gm_matmul_plan_circle(plan, &part, matrix);
            int64_t in, out;
            good &= c.size == plan->grid[!matrix] && c.first + c.index * c.stride == rank;
            gm_matmul_plan_exchanged(plan, &part, matrix, &in, &out);
            received += in;
            sent += out;
            for (int64_t leaf = 0, end; leaf < plan->leaves; leaf = end) {
                int64_t outer0 = matrix ? part.col0 : part.row0, outer = matrix ? part.cols : part.rows;
                end = gm_matmul_plan_step_end(plan, &part, leaf);
                int64_t k0 = leaf * plan->leaf, depth = gm_matmul_plan_depth(plan, leaf, end);
                int64_t *next = plan->problem.by_rows[matrix] ? &outer0 : &k0;
                int64_t *left = plan->problem.by_rows[matrix] ? &outer : &depth;
                int fits_unit = unit <= 1 || *left / c.size < unit;
                for (int64_t i = 0; i < c.size; i++) {
                    gm_matmul_span s = gm_matmul_plan_chunk(plan, &part, matrix, i, leaf, end);
                    int64_t count = plan->problem.by_rows[matrix] ? s.outer : s.depth;
                    good &= s.outer0 == outer0 && s.k0 == k0 && count >= 0;
                    good &= fits_unit || i == 0 || *next % unit == 0;
                    *next += count;
                    *left -= count;
                }
                good &= *left == 0;
            }
        }
    }
    const gm_matmul_problem *p = &plan->problem;
    return good && read == 4 * p->k * (p->m + p->n) && received == sent &&
           received == p->k * (p->m * (plan->grid[1] - 1) + p->n * (plan->grid[0] - 1));
}

/* Panels that are exchanged: chunks, memory, refusals. */
static void test_sharing(void)
{
    int good = 1, plans = 0, alike = 1;
    gm_ring_budget need;
    gm_matmul_plan plan;
    for (int64_t R = 1; R <= 5; R++)
        for (int64_t C = 1; C <= 5 && R * C <= 12; C++)
            for (int turned = 0; turned < 4 && R * C > 1; turned++, plans++) {
                gm_matmul_problem p = problem(1900 + 100 * turned, 1500, 7001, 12);
                p.panels = GM_PANELS_EXCHANGE;
                p.by_rows[0] = turned & 1;
                p.by_rows[1] = turned >> 1;
                p.row_unit[0] = p.row_unit[1] = turned == 2 ? 100 : turned;
                memcpy(p.grid, (int64_t[]){R, C, 1}, sizeof p.grid);
                good &= make_within(&p, INT64_C(1) << 30, 0, &plan, &need) == GM_OK && plan.shares && plan.keep &&
                        chunks_cover(&plan);
                good &= plan.ring.host_bytes >= GM_STAGED_PINNED && plan.ring.host_bytes <= INT64_C(1) << 30;
                for (int rank = 0; rank < R * C; rank++) {
                    gm_matmul_part part;
                    gm_matmul_plan_part(&plan, rank, &part);
                    for (int64_t leaf = 0, end; leaf < plan.leaves; leaf = end) {
                        int64_t most = gm_min(plan.step_leaves, gm_max(leaf, 1));
                        end = gm_matmul_plan_step_end(&plan, &part, leaf);
                        alike &= end == gm_min(leaf + most, plan.leaves);
                    }
                }
            }
    tap_ok(good, "chunks cover each panel once, and all is read once (%d plans)", plans);
    tap_ok(alike, "all ranks have the same steps, which grow");
    gm_matmul_problem p = problem(3000, 2500, 7000, 4);
    memcpy(p.grid, (int64_t[]){2, 2, 1}, sizeof p.grid);
    p.rates.read_rank = p.rates.read_host = 1e8;
    p.rates.unified = 0;
    int shared = make_within(&p, INT64_C(1) << 30, 0, &plan, &need) == GM_OK && plan.shares;
    int little = make_within(&p, INT64_C(60) << 20, 0, &plan, &need) == GM_OK && !plan.shares;
    int on_host = make_within(&p, INT64_C(1) << 30, 1, &plan, &need) == GM_OK && !plan.shares;
    tap_ok(shared && little && on_host, "slow storage is shared, but not with little memory or on the processor");
    gm_ring_budget budget = {.host = INT64_C(15) << 20, .device = INT64_C(1) << 30, .threads = 2};
    gm_ring_request request = {0};
    int kept = gm_matmul_plan_make(&p, &budget, &request, &plan, &need) == GM_OK && plan.keep && !plan.shares;
    p.panels = GM_PANELS_EXCHANGE;
    tap_ok(kept && gm_matmul_plan_make(&p, &budget, &request, &plan, &need) == GM_EUSAGE,
           "nor without pinned memory; asked for, that is an error");
    gm_error_clear();
    p.shared = 1;
    p.m = p.n = 3000;
    tap_ok(make_within(&p, INT64_C(1) << 30, 0, &plan, &need) == GM_OK && plan.shares && !plan.same,
           "A = B is exchanged where that is asked for");
    p.panels = GM_PANELS_AUTO;
    tap_ok(make_within(&p, INT64_C(1) << 30, 0, &plan, &need) == GM_OK && plan.same && !plan.shares,
           "and otherwise kept whole");
}

/* Slots of a device for many threads: few for plain data without buffers, but where each holds many pieces; otherwise
 * more than threads. */
static void test_slots(void)
{
    static const struct {
        int64_t n;
        int threads, buffers;
        int64_t buffer, device, slots;
    } cases[] = {{8192, 63, 1, 0, 64 << 10, 24},  {8192, 63, 0, 0, 64 << 10, 94}, {8192, 63, 1, 1 << 20, 64 << 10, 94},
                 {8192, 63, 1, 1 << 20, 512, 24}, {8192, 4, 1, 0, 64 << 10, 8},   {16384, 63, 1, 0, 64 << 10, 32},
                 {32768, 63, 1, 0, 64 << 10, 94}};
    const int count = sizeof cases / sizeof cases[0];
    for (int i = 0; i < count; i++) {
        gm_matmul_problem p = problem(cases[i].n, cases[i].n, cases[i].n, 1);
        gm_matmul_plan plan;
        gm_ring_budget budget = {.host = INT64_C(64) << 30,
                                 .device = cases[i].device << 20,
                                 .threads = cases[i].threads,
                                 .buffer = cases[i].buffer},
                       need = budget;
        gm_ring_request request = {.buffers = cases[i].buffers};
        int status = gm_matmul_plan_make(&p, &budget, &request, &plan, &need);
        tap_ok(!status && plan.ring.depth == cases[i].slots,
               "n = %lld, %d threads, %s, %s, a device of %lld MiB: %lld slots", (long long)cases[i].n,
               cases[i].threads, cases[i].buffers ? "from any byte on" : "by chunks",
               cases[i].buffer ? "buffers" : "whole slots", (long long)cases[i].device, (long long)plan.ring.depth);
    }
}

/* Buffers of 2 MiB where each is filled many times, or where they are asked for. */
static void test_buffers(void)
{
    static const struct {
        int64_t n;
        int threads, is_given;
        int64_t buffer, chosen; /* MiB */
    } cases[] = {
        {8192, 15, 0, 2, 1}, {8192, 15, 1, 2, 2}, {32768, 15, 0, 2, 2}, {8192, 15, 0, 1, 1}, {8192, 1, 0, 2, 2}};
    const int count = sizeof cases / sizeof cases[0];
    for (int i = 0; i < count; i++) {
        gm_matmul_problem p = problem(cases[i].n, cases[i].n, cases[i].n, 2);
        gm_matmul_plan plan;
        gm_ring_budget budget = {.host = INT64_C(64) << 30,
                                 .device = INT64_C(64) << 30,
                                 .threads = cases[i].threads,
                                 .buffer = cases[i].buffer << 20,
                                 .buffer_is_given = cases[i].is_given},
                       need = budget;
        gm_ring_request request = {.buffers = 1};
        int status = gm_matmul_plan_make(&p, &budget, &request, &plan, &need);
        tap_ok(!status && plan.ring.buffer == cases[i].chosen << 20,
               "n = %lld, %d threads, buffers of %lld MiB%s: %lld bytes", (long long)cases[i].n, cases[i].threads,
               (long long)cases[i].buffer, cases[i].is_given ? " by an option" : "", (long long)plan.ring.buffer);
    }
}

static void test_refusal(void)
{
    static const int64_t sizes[][3] = {{5000, 3000, 20000}, {0, 3000, 20000}, {100, 100, 100}, {300000, 70000, 5}};
    int refused = 1, good = 1;
    gm_matmul_plan plan;
    gm_ring_budget need;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int unified = 0; unified <= 1; unified++) {
            gm_matmul_problem p = problem(sizes[i][0], sizes[i][1], sizes[i][2], 1);
            gm_ring_request request = {0};
            refused &= make_within(&p, 1 << 10, unified, &plan, &need) == GM_EDEVICE;
            good &= gm_matmul_plan_make(&p, &need, &request, &plan, &need) == GM_OK;
        }
    tap_ok(refused, "too little memory is refused, also for an empty product");
    tap_ok(good, "the budget that a refusal names is enough");
    gm_matmul_problem p = problem(500, 300, 200, 4);
    p.grid[0] = 5;
    p.grid[1] = p.grid[2] = 1;
    tap_ok(make(&p, INT64_C(8) << 30, &plan) == GM_EUSAGE, "a grid of 5 for 4 ranks is refused");
    gm_error_clear();
}

static void test_leaf(void)
{
    int good = 1;
    for (int64_t k = 0; k <= INT64_C(1) << 40; k = k * 2 + 1) {
        int64_t leaf = gm_tiling_leaf(&(gm_leaf_kind){128, 0, 0}, 1000, 1000, k), count = gm_ceil_div(k, leaf);
        good &= leaf % 64 == 0 && leaf >= 128;
        if (k > 128) /* the bound that docs/accuracy.md rests on */
            good &= (double)leaf * (double)leaf / (double)k + (double)count <
                    (k <= 8192 ? 180.0 : 2.5 * 64 + 2.5 * (double)count);
    }
    tap_ok(good, "leaves keep L^2/k + k/L small");
    const gm_leaf_kind kind = {2048, 128, 512};
    good = gm_tiling_leaf(&kind, 4096, 4096, 16384) == 2048 && gm_tiling_leaf(&kind, 64, 64, 16384) == 128 &&
           gm_tiling_leaf(&kind, 256, 256, 16384) == 512 && gm_tiling_leaf(&kind, 1, 1, 100) == 128;
    for (int64_t side = 1; side <= INT64_C(1) << 32; side *= 2)
        for (int64_t k = 1; k <= INT64_C(1) << 40; k = k * 2 + 1) {
            int64_t leaf = gm_tiling_leaf(&kind, side, side, k),
                    usual = gm_tiling_leaf(&(gm_leaf_kind){2048, 0, 0}, 1, 1, k);
            good &= leaf % 64 == 0 && leaf >= 128 && leaf <= usual &&
                    (double)leaf >= fmin(sqrt((double)k), (double)usual);
        }
    tap_ok(good, "leaves of few tiles are shorter, down to sqrt(k)");
}

int main(void)
{
    test_cover();
    test_idle();
    test_same_cut();
    test_sharing();
    test_slots();
    test_buffers();
    test_refusal();
    test_leaf();
    return tap_done();
}
