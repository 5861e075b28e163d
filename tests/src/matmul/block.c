/* The memory of a block: blocks fit, read the fewest bytes, leave room for exchanges, and hold the leaves of layers. */
#include "src/exchange/staged.h"
#include "src/matmul/block.h"
#include "tests/src/matmul/plans.h"
#include "tests/tap.h"

#include "base/size.h"
#include "base/status.h"

/* Layers in blocks leave device memory for exchanges by NCCL, unless there is little. */
static void test_reserve(void)
{
    int good = 1, reserved = 0, plans = 0;
    for (int64_t budget = INT64_C(64) << 20; budget <= INT64_C(8) << 30; budget *= 2, plans++) {
        gm_matmul_plan plan;
        gm_matmul_problem p = problem(60000, 50000, 20000, 4);
        gm_ring_budget need;
        p.grid[0] = p.grid[1] = 1;
        p.grid[2] = 4;
        good &= make_within(&p, budget, 0, &plan, &need) == GM_OK && plan.ring.device_bytes <= budget &&
                plan.reserves == (budget >= INT64_C(1) << 30);
        reserved += plan.reserves;
    }
    tap_ok(good && reserved > 0 && reserved < plans, "%d of %d plans leave memory for exchanges", reserved, plans);
}

/* Bands are whole tiles of a block; a device of its own keeps A and B where it has the room, and then begins with one
 * leaf. */
static void test_bands(void)
{
    int good = 1, kept = 0, others = 0;
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int64_t budget = INT64_C(32) << 20; budget <= INT64_C(8) << 30; budget *= 2) {
            gm_matmul_plan plan;
            gm_matmul_part part;
            gm_matmul_problem p = problem(10000, 9000, 20000, ranks);
            gm_ring_budget need;
            p.multiprocessors = 30;
            good &= make_within(&p, budget, 0, &plan, &need) == GM_OK && plan.ring.device_bytes <= budget;
            gm_matmul_plan_part(&plan, 0, &part);
            good &= plan.band_rows > 0 && plan.band_rows <= plan.block_rows;
            good &= plan.band_rows == plan.block_rows ||
                    (plan.band_rows % plan.tile == 0 && plan.band_rows * plan.block_cols >= 4 * 30 * 2 * 128 * 128);
            good &= gm_matmul_plan_step_end(&plan, &part, part.leaf0) == part.leaf0 + 1;
            good &= !plan.keep ||
                    (gm_matmul_plan_blocks(&plan, &part) == 1 &&
                     gm_matmul_plan_panel_leaves(&plan, &part) == plan.leaves && plan.band_rows < plan.block_rows);
            int64_t all = part.rows * part.cols + plan.problem.k * (part.rows + part.cols);
            good &= plan.keep || budget < 2 * 4 * all || plan.grid[2] > 1;
            kept += plan.keep;
            others += !plan.keep;
        }
    tap_ok(good && kept && others,
           "bands are whole tiles and large enough; A and B are kept where there is room (%d of %d)", kept,
           kept + others);
    gm_matmul_plan plan;
    gm_matmul_problem p = problem(10000, 10000, 10000, 1);
    p.shared = 1;
    tap_ok(make(&p, INT64_C(8) << 30, &plan) == GM_OK && plan.same &&
               gm_matmul_plan_bytes_read(&plan, &(gm_matmul_part){.rows = 10000, .cols = 10000}) == INT64_C(400000000),
           "A = B is kept once and read once");
}

static double bytes_of_blocks(const gm_matmul_problem *p, int64_t down, int64_t across)
{
    return (double)p->k *
           ((double)(p->m * p->file_bytes_a) * (double)across + (double)(p->n * p->file_bytes_b) * (double)down);
}

/* Do even blocks fit, one leaf at a time? */
static int fits(gm_matmul_plan plan, const gm_matmul_part *part, int64_t down, int64_t across)
{
    plan.block_rows = gm_round_up(gm_ceil_div(part->rows, down), plan.tile);
    plan.block_cols = gm_round_up(gm_ceil_div(part->cols, across), plan.tile);
    plan.step_leaves = 1;
    gm_ring_cost cost = gm_matmul_block_cost(&plan, part);
    return gm_ring_plan_recost(&plan.ring, &plan.budget, &cost);
}

/* Where A and B do not fit, no blocks of up to 8 x 8 that fit read fewer bytes than those that are chosen. */
static void test_blocks(void)
{
    static const int64_t shapes[][3] = {
        {20000, 20000, 20000}, {4000, 60000, 9000}, {60000, 4000, 9000}, {30000, 7000, 20000}};
    int good = 1, plans = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int unified = 0; unified <= 1; unified++)
            for (int64_t budget = INT64_C(128) << 20; budget <= INT64_C(2) << 30; budget += budget / 2) {
                gm_matmul_plan plan;
                gm_matmul_part part;
                gm_ring_budget need;
                gm_matmul_problem p = problem(shapes[s][0], shapes[s][1], shapes[s][2], 1);
                good &= make_within(&p, budget, unified, &plan, &need) == GM_OK;
                gm_matmul_plan_part(&plan, 0, &part);
                double bytes = (double)gm_matmul_plan_bytes_read(&plan, &part);
                plans += !plan.keep && gm_matmul_plan_blocks(&plan, &part) > 1;
                for (int64_t down = 1; down <= 8 && !plan.keep; down++)
                    for (int64_t across = 1; across <= 8; across++)
                        good &= bytes_of_blocks(&p, down, across) >= bytes || !fits(plan, &part, down, across);
            }
    tap_ok(good && plans > 20, "blocks read the fewest bytes, in %d plans", plans);
}

/* Layers fold in the order of their leaves and end with the owner. Blocks fit with the leaves that each of them keeps
 * apart, and are smaller where they must be. */
static void test_chain(void)
{
    int good = 1, several = 0, whole = 0;
    for (int layers = 2; layers <= 5; layers++)
        for (int64_t budget = INT64_C(96) << 20; budget <= INT64_C(8) << 30; budget *= 3)
            for (int unified = 0; unified <= 1; unified++) {
                gm_matmul_problem p = problem(3000, 2500, 60000, 6);
                gm_matmul_plan plan;
                gm_ring_budget need;
                int64_t end = 0, kept = 0;
                p.grid[0] = p.grid[1] = 1;
                p.grid[2] = layers;
                good &= make_within(&p, budget, unified, &plan, &need) == GM_OK && gm_matmul_plan_chains(&plan);
                for (int layer = layers - 1; layer >= 0; layer--) {
                    gm_matmul_part part;
                    gm_matmul_plan_part(&plan, layer, &part);
                    good &= part.layer == layer && part.leaf0 == end;
                    end = part.leaf1;
                    for (int64_t leaf = part.leaf0; leaf < part.leaf1 && good;) {
                        int64_t next = gm_matmul_plan_step_end(&plan, &part, leaf);
                        good &= next > leaf && next <= part.leaf1 && next - leaf <= plan.step_leaves;
                        leaf = next;
                    }
                    kept = part.leaf0 > 0 ? gm_max(kept, part.leaf1 - part.leaf0) : kept;
                }
                good &= end == plan.leaves && kept == gm_matmul_plan_kept_leaves(&plan);
                good &= plan.ring.device_bytes <= budget && plan.ring.host_bytes <= budget &&
                        plan.ring.device_bytes > (kept + 1) * plan.block_rows * plan.block_cols * 4;
                good &= unified || plan.ring.host_bytes >= GM_STAGED_PINNED;
                several += plan.block_rows < 3000 || plan.block_cols < 2500;
                whole += plan.block_rows == 3000 && plan.block_cols == 2500;
            }
    tap_ok(good && several && whole, "layers are a chain, and fit: %d in blocks, %d whole", several, whole);
    gm_matmul_problem p = problem(3000, 2500, 0, 6);
    gm_matmul_plan plan;
    p.grid[0] = p.grid[1] = 1;
    p.grid[2] = 3;
    tap_ok(make(&p, INT64_C(1) << 30, &plan) == GM_OK && !gm_matmul_plan_chains(&plan) &&
               gm_matmul_plan_kept_leaves(&plan) == 0,
           "without a leaf there is no chain");
    gm_ring_budget need;
    p = problem(512, 512, 1 << 22, 4);
    int chosen = make_within(&p, INT64_C(1) << 30, 0, &plan, &need) == GM_OK && plan.grid[2] > 1;
    tap_ok(chosen && make_within(&p, INT64_C(28) << 20, 0, &plan, &need) == GM_OK && plan.grid[2] == 1,
           "layers that do not fit are not chosen");
}

static int64_t parts_of(const gm_matmul_plan *plan)
{
    gm_matmul_part part;
    gm_matmul_plan_part(plan, 0, &part);
    return gm_matmul_plan_parts(plan, &part);
}

/* Leaves side by side where a device has few tiles to make; never at the cost of the least memory. */
static void test_parts(void)
{
    gm_rates rates = rates_of(1);
    gm_matmul_problem few = float32_problem_of_h200(64, 64, 16384, &rates),
                      many = float32_problem_of_h200(4096, 4096, 4096, &rates);
    gm_matmul_plan with, without;
    gm_ring_budget need[2];
    few.leaf = many.leaf = (gm_leaf_kind){128, 128, 512};
    int status = make_within(&few, INT64_C(8) << 30, 0, &with, &need[0]);
    tap_ok(!status && parts_of(&with) > 1, "leaves side by side: %lld of %lld", (long long)parts_of(&with),
           (long long)with.leaves);
    status = make_within(&many, INT64_C(8) << 30, 0, &with, &need[0]);
    tap_ok(!status && parts_of(&with) == 0, "not with many tiles");
    make_within(&few, 1 << 10, 0, &with, &need[0]);
    few.multiprocessors = 0;
    make_within(&few, 1 << 10, 0, &without, &need[1]);
    tap_ok(need[0].device == need[1].device && parts_of(&without) == 0, "the least memory is the same: %lld bytes",
           (long long)need[0].device);
}

int main(void)
{
    test_parts();
    test_reserve();
    test_bands();
    test_blocks();
    test_chain();
    return tap_done();
}
