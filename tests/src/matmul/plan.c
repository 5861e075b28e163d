/* The arithmetic of a product: parts cover C and k once, leaves and tiles depend on the problem alone, budgets hold. */
#include <math.h>

#include "src/exchange/staged.h"
#include "src/matmul/block.h"
#include "tests/src/matmul/float32.h"
#include "tests/tap.h"

#include "base/size.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Rates that make parts for all ranks worth while. */
static gm_rates rates_of(int ranks)
{
    gm_rates rates;
    static const gm_device_info device;
    gm_rates_setting setting = {
        .device = &device, .unified = 1, .threads = 2, .ranks = ranks, .hosts = 1, .sharers = 1};
    gm_rates_default(&setting, &rates);
    rates.rank_s = 0;
    rates.read_host *= ranks;
    return rates;
}

static gm_matmul_problem problem(int64_t m, int64_t n, int64_t k, int ranks)
{
    gm_rates rates = rates_of(ranks);
    gm_matmul_problem p = float32_problem(m, n, k, &rates);
    p.max_tile = 512;
    return p;
}

/* The plan within as much host as device memory; *need: what it wants of it. */
static int make_within(const gm_matmul_problem *p, int64_t bytes, int unified, gm_matmul_plan *plan,
                       gm_ring_budget *need)
{
    gm_ring_budget budget = {.host = bytes, .device = bytes, .unified = unified, .threads = 2};
    gm_ring_request request = {0};
    *need = budget;
    return gm_matmul_plan_make(p, &budget, &request, plan, need);
}

static int make(const gm_matmul_problem *p, int64_t bytes, gm_matmul_plan *plan)
{
    gm_ring_budget need;
    return make_within(p, bytes, 1, plan, &need);
}

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
    test_cover();
    test_idle();
    test_same_cut();
    test_reserve();
    test_bands();
    test_blocks();
    test_chain();
    test_sharing();
    test_slots();
    test_buffers();
    test_refusal();
    test_leaf();
    return tap_done();
}
