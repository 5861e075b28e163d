/* The arithmetic of a product: parts cover C and k once, leaves and tiles depend on the problem alone, budgets hold. */
#include "src/plan.h"
#include "tests/tap.h"

#include "base/size.h"
#include "base/status.h"

#include <stdlib.h>

static gm_problem problem(int64_t m, int64_t n, int64_t k, int ranks)
{
    return (gm_problem){.m = m, .n = n, .k = k, .precision = GM_FP32, .operand_bytes = 4, .accumulator_bytes = 4, .file_bytes_a = 4,
                        .file_bytes_b = 4, .file_bytes_c = 4, .max_tile = 512, .ranks = ranks, .threads = 2,
                        .device_budget = INT64_C(8) << 30, .host_budget = INT64_C(8) << 30,
                        .flop_rate = 1e11, .read_rate = 1e10, .exchange_rate = 2e9};
}

/* Every element of C and every leaf belongs to exactly one part. Counts areas: parts are rectangles on one grid. */
static int covers(const gm_plan *plan)
{
    __int128 work = 0;
    for (int r = 0; r < plan->problem.ranks; r++) {
        gm_part part;
        gm_plan_part(plan, r, &part);
        if (part.idle)
            continue;
        if (part.row0 % plan->tile || part.col0 % plan->tile || part.row0 + part.rows > plan->problem.m ||
            part.col0 + part.cols > plan->problem.n || gm_plan_partner(plan, &part, part.layer) != r)
            return 0;
        work += (__int128)part.rows * part.cols * gm_plan_depth(plan, part.leaf0, part.leaf1);
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
                    gm_problem p = problem(sizes[a], sizes[b], sizes[c], ranks[r]);
                    gm_plan plan;
                    p.device_budget = p.host_budget = INT64_C(1) << 40;
                    made &= gm_plan_make(&p, &plan) == GM_OK;
                    good &= covers(&plan);
                }
    tap_ok(made, "plans are made for all shapes and rank counts");
    tap_ok(good, "their parts cover C and k once");
}

static void test_same_cut(void)
{
    int same = 1;
    gm_plan first, plan;
    gm_problem p = problem(5000, 3000, 20000, 1);
    gm_plan_make(&p, &first);
    for (int ranks = 1; ranks <= 16; ranks++)
        for (int64_t budget = INT64_C(64) << 20; budget <= INT64_C(4) << 30; budget *= 4) {
            p = problem(5000, 3000, 20000, ranks);
            p.device_budget = p.host_budget = budget;
            same &= gm_plan_make(&p, &plan) == GM_OK && plan.tile == first.tile && plan.leaf == first.leaf && plan.leaves == first.leaves &&
                    plan.device_bytes <= budget && plan.host_bytes <= budget;
        }
    tap_ok(same, "tiles and leaves are the same for any number of ranks and any budget, and the budget holds");
}

/* Bands are whole tiles of a block; a device of its own keeps A and B where it has the room, and then begins with one leaf. */
static void test_bands(void)
{
    int good = 1, kept = 0, others = 0;
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int64_t budget = INT64_C(32) << 20; budget <= INT64_C(8) << 30; budget *= 2) {
            gm_plan plan;
            gm_part part;
            gm_problem p = problem(10000, 9000, 20000, ranks);
            p.stage = 1;
            p.wave = 1000000;
            p.device_budget = budget;
            good &= gm_plan_make(&p, &plan) == GM_OK && plan.device_bytes <= budget;
            gm_plan_part(&plan, 0, &part);
            good &= plan.band_rows > 0 && plan.band_rows <= plan.block_rows;
            good &= plan.band_rows == plan.block_rows || (plan.band_rows % plan.tile == 0 && plan.band_rows * plan.block_cols >= 4 * p.wave);
            good &= gm_plan_step_end(&plan, &part, part.leaf0) == part.leaf0 + 1;
            good &= !plan.keep || (gm_plan_blocks(&plan, &part) == 1 && gm_plan_panel_leaves(&plan, &part) == plan.leaves &&
                                   plan.band_rows < plan.block_rows);
            int64_t all = part.rows * part.cols + plan.problem.k * (part.rows + part.cols);
            good &= plan.keep || budget < 2 * 4 * all || plan.grid[2] > 1;
            kept += plan.keep;
            others += !plan.keep;
        }
    tap_ok(good && kept && others, "bands are whole tiles and large enough; A and B are kept where there is room (%d of %d)", kept, kept + others);
    gm_plan plan;
    gm_problem p = problem(10000, 10000, 10000, 1);
    p.shared = 1;
    tap_ok(gm_plan_make(&p, &plan) == GM_OK && plan.same && gm_plan_bytes_read(&plan, &(gm_part){.rows = 10000, .cols = 10000}) == INT64_C(400000000),
           "A = B is kept once and read once");
}

static void test_refusal(void)
{
    gm_plan plan;
    gm_error error;
    gm_problem p = problem(5000, 3000, 20000, 1);
    p.host_budget = 1 << 20;
    tap_ok(gm_plan_make(&p, &plan) == GM_EDEVICE, "too little memory is refused");
    gm_error_get(&error);
    tap_diag("%s", error.text);
    gm_error_clear();
    p = problem(5000, 3000, 20000, 1);
    p.host_budget = p.device_budget = gm_max(plan.host_bytes, plan.device_bytes);
    tap_ok(gm_plan_make(&p, &plan) == GM_OK, "and the number that the message names does");
    gm_error_clear();
    p = problem(0, 3000, 20000, 1);
    p.host_budget = 1 << 10;
    tap_ok(gm_plan_make(&p, &plan) == GM_EDEVICE, "also for an empty product");
    gm_error_clear();
    p = problem(500, 300, 200, 4);
    p.grid[0] = 3;
    p.grid[1] = p.grid[2] = 1;
    tap_ok(gm_plan_make(&p, &plan) == GM_EUSAGE, "a grid of 3 for 4 ranks is refused");
    gm_error_clear();
}

static void test_leaf(void)
{
    int good = 1;
    for (int64_t k = 0; k <= INT64_C(1) << 40; k = k * 2 + 1) {
        int64_t leaf = gm_plan_leaf(GM_FP32, k), count = gm_ceil_div(k, leaf);
        good &= leaf % 64 == 0 && leaf >= 128;
        if (k > 128) /* the bound that docs/accuracy.md rests on */
            good &= (double)leaf * (double)leaf / (double)k + (double)count < (k <= 8192 ? 180.0 : 2.5 * 64 + 2.5 * (double)count);
    }
    tap_ok(good, "leaves keep L^2/k + k/L small");
}

int main(void)
{
    test_cover();
    test_same_cut();
    test_bands();
    test_refusal();
    test_leaf();
    return tap_done();
}
