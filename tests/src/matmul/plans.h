/* plans.h - plans of products of float32 for tests: within some memory, on a machine whose storage grows with its
 * ranks.
 */
#ifndef GM_TESTS_SRC_MATMUL_PLANS_H
#define GM_TESTS_SRC_MATMUL_PLANS_H

#include "tests/src/matmul/float32.h"

/* Rates that make parts for all ranks worth while. */
static inline gm_rates rates_of(int ranks)
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

static inline gm_matmul_problem problem(int64_t m, int64_t n, int64_t k, int ranks)
{
    gm_rates rates = rates_of(ranks);
    gm_matmul_problem p = float32_problem(m, n, k, &rates);
    p.max_tile = 512;
    return p;
}

/* The plan within as much host as device memory; *need: what it wants of it. */
static inline int make_within(const gm_matmul_problem *p, int64_t bytes, int unified, gm_matmul_plan *plan,
                              gm_ring_budget *need)
{
    gm_ring_budget budget = {.host = bytes, .device = bytes, .unified = unified, .threads = 2};
    gm_ring_request request = {0};
    *need = budget;
    return gm_matmul_plan_make(p, &budget, &request, plan, need);
}

static inline int make(const gm_matmul_problem *p, int64_t bytes, gm_matmul_plan *plan)
{
    gm_ring_budget need;
    return make_within(p, bytes, 1, plan, &need);
}

#endif
