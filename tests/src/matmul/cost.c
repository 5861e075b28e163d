/* The time of a product by the rates, and the grid that is chosen by it. */
#include "src/matmul/cost.h"
#include "tests/src/matmul/float32.h"
#include "tests/tap.h"

#include "base/status.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const double nvlink = 396e9; /* a copy from GPU to GPU */

/* Ranks with an H200 each, on one host. */
static gm_rates h200(int ranks, int hosts)
{
    static const gm_device_info device = {.fp32_limit = 66.9e12, .fp64_limit = 66.9e12, .memory_limit = 4814e9};
    gm_rates_setting setting = {
        .device = &device, .threads = 15, .ranks = ranks, .hosts = hosts, .sharers = 1, .writes = 1, .parts = 1};
    gm_rates rates;
    gm_rates_default(&setting, &rates);
    return rates;
}

/* Messages that go from device to device. */
static gm_rates with_nvlink(gm_rates rates)
{
    rates.exchange_near = nvlink;
    return rates;
}

static gm_panels panels; /* that are asked for */

static gm_matmul_problem problem(int64_t m, int64_t n, int64_t k, const gm_rates *rates)
{
    gm_matmul_problem p = float32_problem_of_h200(m, n, k, rates);
    p.panels = panels;
    return p;
}

static void make(const gm_matmul_problem *p, gm_matmul_plan *plan)
{
    gm_ring_budget budget = {.host = INT64_C(64) << 30, .device = INT64_C(120) << 30, .threads = 15}, need;
    gm_ring_request request = {0};
    if (gm_matmul_plan_make(p, &budget, &request, plan, &need))
        tap_ok(0, "a plan is made");
}

/* "RxCxK" of the plan that is made. */
static const char *chosen(int64_t m, int64_t n, int64_t k, gm_rates rates)
{
    static char text[64];
    gm_matmul_problem p = problem(m, n, k, &rates);
    gm_matmul_plan plan;
    make(&p, &plan);
    snprintf(text, sizeof text, "%lldx%lldx%lld", (long long)plan.grid[0], (long long)plan.grid[1],
             (long long)plan.grid[2]);
    return text;
}

static gm_expectation expected(int64_t m, int64_t n, int64_t k, const int64_t *grid, gm_rates rates)
{
    gm_matmul_problem p = problem(m, n, k, &rates);
    gm_matmul_plan plan;
    gm_expectation e;
    if (grid)
        memcpy(p.grid, grid, sizeof p.grid);
    make(&p, &plan);
    gm_work_expect(&rates, gm_matmul_cost_work, &plan, &e);
    return e;
}

static void is(const char *found, const char *wanted, const char *title)
{
    tap_ok(strcmp(found, wanted) == 0, "%s: %s, expected %s", title, found, wanted);
}

static void test_choice(void)
{
    const int64_t m = 4096, k = 1 << 20;
    is(chosen(m, m, k, with_nvlink(h200(4, 1))), "1x1x4", "deep, ranks that exchange over NVLink");
    is(chosen(m, m, k, h200(4, 1)), "1x1x4", "deep, messages through the host");
    is(chosen(m, m, k, h200(2, 1)), "1x1x2", "the same on two ranks");
    is(chosen(m, m, k, h200(3, 1)), "1x1x3", "the same on three");
    is(chosen(65536, 65536, 65536, h200(4, 1)), "2x2x1", "large and square");
    is(chosen(65536, 65536, 65536, h200(8, 2)), "4x2x1", "the same on two hosts");
    is(chosen(32768, 32768, 32768, h200(2, 1)), "2x1x1", "rows rather than columns");
    is(chosen(16384, 16384, 2048, h200(4, 1)), "1x1x1", "a gain that is smaller than the start of a second rank");
    is(chosen(256, 256, 256, h200(4, 1)), "1x1x1", "small");
    is(chosen(2048, 2048, 2048, h200(4, 1)), "1x1x1", "a second's thousandth");
    is(chosen(1 << 20, 256, 4096, h200(4, 1)), "4x1x1", "tall: A is read once");
    is(chosen(256, 1 << 20, 4096, h200(4, 1)), "1x4x1", "wide: B is read once");
    is(chosen(0, 0, 0, h200(4, 1)), "1x1x1", "empty");
    gm_rates shared = h200(4, 1);
    shared.sharers = 4;
    is(chosen(16384, 16384, 16384, shared), "1x1x1", "ranks that share a device");
}

/* On four ranks the deep product reads no byte twice, at the speed of the host, and C comes along the chain. */
static void test_deep(void)
{
    static const int64_t whole[] = {1, 1, 1};
    const int64_t m = 4096, k = 1 << 20;
    double one = expected(m, m, k, whole, h200(1, 1)).seconds;
    double staged = expected(m, m, k, NULL, h200(4, 1)).seconds;
    double nvlink_s = expected(m, m, k, NULL, with_nvlink(h200(4, 1))).seconds;
    tap_ok(one / staged > 1.8 && one / nvlink_s > 1.9, "deep: %.2f s on one, %.2f s on four, %.2f s over NVLink", one,
           staged, nvlink_s);
}

/* Storage that gives all ranks of a host no more than one of them is read once. */
static void test_storage(void)
{
    gm_rates rates = with_nvlink(h200(4, 1));
    rates.read_rank = rates.read_host = 1e9;
    int64_t whole[] = {1, 1, 1}, square[] = {2, 2, 1}, layers[] = {1, 1, 4};
    double one = expected(8192, 8192, 65536, whole, rates).seconds;
    panels = GM_PANELS_READ;
    gm_expectation reading = expected(8192, 8192, 65536, square, rates);
    double four = reading.seconds;
    const double *phases = reading.times.phases.seconds;
    panels = GM_PANELS_AUTO;
    double deep = expected(8192, 8192, 65536, layers, rates).seconds;
    tap_ok(four > 1.9 * one, "2x2x1 reads all twice: %.2f s, one rank %.2f s", four, one);
    tap_ok(deep < 1.1 * one, "1x1x4 reads all once: %.2f s", deep);
    tap_ok(phases[GM_PHASE_EXCHANGE] == 0 && phases[GM_PHASE_OPEN] == rates.open_s + 4 * rates.rank_s + rates.several_s,
           "four ranks that exchange nothing take longer to start, %g s", phases[GM_PHASE_OPEN]);
}

static gm_matmul_plan plan_of(int64_t m, int64_t n, int64_t k, const int64_t *grid, gm_rates rates)
{
    gm_matmul_problem p = problem(m, n, k, &rates);
    gm_matmul_plan plan;
    memcpy(p.grid, grid, sizeof p.grid);
    make(&p, &plan);
    return plan;
}

/* Panels are exchanged where storage is slower than that. */
static void test_sharing(void)
{
    static const int64_t whole[] = {1, 1, 1};
    static const int64_t grids[][3] = {{2, 2, 1}, {4, 1, 1}, {1, 4, 1}, {2, 1, 1}, {1, 1, 4}, {1, 1, 1}};
    static const int64_t sizes[][3] = {{8192, 8192, 65536}, {65536, 65536, 65536}, {8192, 8192, 8192}};
    int cached = 0, cold = 0, faster = 1, runs = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int g = 0; g < 4; g++, runs++) {
            gm_rates rates = h200(4, 1);
            rates.exchange_near = 2.5e9; /* messages of MPI */
            rates.exchange_direct = 0;
            cached += plan_of(sizes[s][0], sizes[s][1], sizes[s][2], grids[g], rates).shares;
            rates.read_rank = rates.read_host = 1e9;
            cold += plan_of(sizes[s][0], sizes[s][1], sizes[s][2], grids[g], rates).shares;
            double shared = expected(sizes[s][0], sizes[s][1], sizes[s][2], grids[g], rates).seconds;
            panels = GM_PANELS_READ;
            faster &= shared < expected(sizes[s][0], sizes[s][1], sizes[s][2], grids[g], rates).seconds;
            panels = GM_PANELS_AUTO;
        }
    tap_ok(cached == 0, "what is in the page cache is read by each rank (%d of %d plans exchange it)", cached, runs);
    tap_ok(cold == runs && faster, "slow storage is read once: %d of %d plans", cold, runs);
    gm_rates slow = h200(4, 1), far = h200(4, 2);
    slow.read_rank = slow.read_host = 1e9;
    far.read_rank = far.read_host = 1.5e9;
    far.exchange_far = 1e8;
    tap_ok(!plan_of(8192, 8192, 65536, grids[4], slow).shares && !plan_of(8192, 8192, 65536, grids[5], slow).shares,
           "layers and a rank alone have nothing to exchange");
    tap_ok(!plan_of(8192, 8192, 65536, grids[0], far).shares, "nor have hosts with slow links");
    double one = expected(8192, 8192, 65536, whole, slow).seconds;
    double four = expected(8192, 8192, 65536, grids[0], with_nvlink(slow)).seconds;
    tap_ok(four < 1.1 * one, "2x2x1 reads all once: %.2f s, one rank %.2f s", four, one);
    gm_matmul_problem p = problem(8192, 8192, 65536, &slow);
    gm_matmul_plan plan;
    p.panels = GM_PANELS_EXCHANGE;
    p.rates = h200(4, 1);
    make(&p, &plan);
    tap_ok(plan.shares && plan.grid[2] == 1, "where it is to be exchanged, the grid is one that can: %lldx%lldx%lld",
           (long long)plan.grid[0], (long long)plan.grid[1], (long long)plan.grid[2]);
}

static void test_never_slower(void)
{
    static const int64_t sizes[] = {256, 2048, 16384, 131072};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static const int64_t whole[] = {1, 1, 1};
    int good = 1, shapes = 0, all_work = 0;
    for (int i = 0; i < SIZES * SIZES * SIZES; i++) {
        int64_t m = sizes[i % SIZES], n = sizes[i / SIZES % SIZES], k = sizes[i / SIZES / SIZES];
        for (int fast = 0; fast <= 1; fast++) {
            gm_rates rates = fast ? with_nvlink(h200(4, 1)) : h200(4, 1);
            gm_expectation four = expected(m, n, k, NULL, rates), one = expected(m, n, k, whole, rates);
            good &= four.seconds <= one.seconds * 1.000001;
            if (four.seconds > one.seconds * 1.000001)
                tap_diag("%lld x %lld x %lld: %g s on %d ranks, %g s on one", (long long)m, (long long)n, (long long)k,
                         four.seconds, four.working, one.seconds);
            all_work += four.working == 4;
            shapes++;
        }
    }
    tap_ok(good && all_work > 10, "%d shapes: never slower than one rank; all four work in %d", shapes, all_work);
}

/* A rate that grows makes no product slower. */
static void test_monotone(void)
{
    static const size_t fields[] = {offsetof(gm_rates, read_rank),
                                    offsetof(gm_rates, read_host),
                                    offsetof(gm_rates, write_rank),
                                    offsetof(gm_rates, write_host),
                                    offsetof(gm_rates, to_device),
                                    offsetof(gm_rates, from_device),
                                    offsetof(gm_rates, exchange_near),
                                    offsetof(gm_rates, exchange_far),
                                    offsetof(gm_rates, verify),
                                    offsetof(gm_rates, memory),
                                    offsetof(gm_rates, flop[GM_PRECISION_FP32])};
    static const int64_t shapes[][3] = {
        {4096, 4096, 1 << 20}, {16384, 16384, 16384}, {512, 512, 65536}, {300, 70000, 9}};
    int good = 1, better = 0;
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int fast = 0; fast <= 1; fast++) {
                double before = INFINITY;
                for (double factor = 1.0 / 64; factor <= 64; factor *= 2) {
                    gm_rates rates = fast ? with_nvlink(h200(4, 1)) : h200(4, 1);
                    gm_matmul_plan plan;
                    *(double *)(void *)((char *)&rates + fields[f]) *= factor;
                    gm_matmul_problem p = problem(shapes[s][0], shapes[s][1], shapes[s][2], &rates);
                    make(&p, &plan);
                    double seconds = gm_matmul_cost_seconds(&plan, plan.grid[0], plan.grid[1], plan.grid[2]);
                    good &= seconds <= before * (1 + 1e-6);
                    better += seconds < before * 0.9;
                    before = seconds;
                }
            }
    tap_ok(good && better > 20, "no product takes longer with a higher rate, some take less (%d steps)", better);
}

/* The measured times of docs/performance.md: within a third. */
static void test_measured(void)
{
    static const struct {
        int64_t m, n, k;
        int ranks;
        double seconds;
    } cases[] = {{32768, 32768, 32768, 1, 1.50}, {65536, 65536, 65536, 1, 11.6}, {65536, 65536, 65536, 4, 3.03},
                 {4096, 4096, 1 << 20, 1, 0.92}, {46336, 46336, 64, 1, 0.304},   {32768, 32768, 32768, 4, 0.50}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_expectation e = expected(cases[i].m, cases[i].n, cases[i].k, NULL, h200(cases[i].ranks, 1));
        double ratio = e.seconds / cases[i].seconds;
        tap_ok(ratio > 0.67 && ratio < 1.5, "%lld x %lld x %lld on %d: %.2f s, measured %.2f s", (long long)cases[i].m,
               (long long)cases[i].n, (long long)cases[i].k, cases[i].ranks, e.seconds, cases[i].seconds);
    }
}

/* Bytes of the links, counted by hand. */
static void test_bytes(void)
{
    int64_t layers[] = {1, 1, 2}, chain[] = {1, 1, 4}, columns[] = {1, 3, 1};
    gm_rates rates = h200(4, 1);
    gm_expectation e = expected(1024, 1024, 8192, layers, rates);
    double c = 4.0 * 1024 * 1024;
    tap_ok(e.working == 2 && e.busiest == 0 && e.all.read == 2 * 4.0 * 1024 * 8192 && e.all.write == c,
           "two layers read A and B once and write C once");
    tap_ok(e.all.received == e.all.sent && e.all.sent == c && e.rank.received == c && e.rank.sent == 0,
           "what one has folded goes to the other, once: %g of C", e.all.sent / c);
    e = expected(1024, 1024, 8192, chain, rates);
    tap_ok(e.all.received == e.all.sent && e.all.sent == 3 * c && e.rank.received == c, "four layers: three times");
    e = expected(1024, 3072, 8192, columns, rates);
    tap_ok(e.working == 3 && e.all.read == 4.0 * 8192 * (3 * 1024 + 3072) && e.rank.read == 4.0 * 8192 * 2048,
           "three ranks of columns read A three times, and the fourth nothing");
    panels = GM_PANELS_EXCHANGE;
    e = expected(1024, 3072, 8192, columns, rates);
    tap_ok(e.all.read == 4.0 * 8192 * (1024 + 3072) && e.all.received == e.all.sent &&
               e.all.received == 2 * 4.0 * 8192 * 1024,
           "or once, and each of them receives two thirds of it");
    panels = GM_PANELS_AUTO;
    int64_t rows[] = {3, 1, 1};
    e = expected(1024, 3072, 128, columns, rates);
    tap_ok(e.all.reads == 3 * 128 && e.all.writes == 3 * 1024, "columns: %g runs of B to read, %g of C to write",
           e.all.reads, e.all.writes);
    tap_ok(fabs(e.all.read_strips - 2.0 / 3 * 4.0 * 128 * 3072) < 1 && e.all.write_strips == 2 * 4.0 * 1024 * 3072,
           "each strip has two neighbours, which are two thirds of a row");
    e = expected(3072, 1024, 128, rows, rates);
    tap_ok(e.all.reads == 0 && e.all.writes == 0 && e.all.read_strips == 0 && e.all.write_strips == 0,
           "whole rows: neither");
}

int main(void)
{
    test_choice();
    test_deep();
    test_storage();
    test_sharing();
    test_never_slower();
    test_monotone();
    test_measured();
    test_bytes();
    return tap_done();
}
