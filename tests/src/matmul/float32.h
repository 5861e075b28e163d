/* float32.h - a product of float32 for tests of plans. */
#ifndef GM_TESTS_SRC_MATMUL_FLOAT32_H
#define GM_TESTS_SRC_MATMUL_FLOAT32_H

#include "src/matmul/plan.h"

/* C = A B, m x n by k, all of float32, by the ranks of the rates. The caller sets what is its own. */
static inline gm_matmul_problem float32_problem(int64_t m, int64_t n, int64_t k, const gm_rates *rates)
{
    return (gm_matmul_problem){.m = m,
                               .n = n,
                               .k = k,
                               .precision = GM_PRECISION_FP32,
                               .leaf = {128, 0, 0},
                               .operand_bytes = 4,
                               .accumulator_bytes = 4,
                               .file_bytes_a = 4,
                               .file_bytes_b = 4,
                               .file_bytes_c = 4,
                               .ranks = rates->ranks,
                               .rates = *rates};
}

/* The same by H200s, with a check, where one output file is written by rows. */
static inline gm_matmul_problem float32_problem_of_h200(int64_t m, int64_t n, int64_t k, const gm_rates *rates)
{
    gm_matmul_problem p = float32_problem(m, n, k, rates);
    p.max_tile = 256;
    p.multiprocessors = 132;
    p.verifies = 1;
    p.by_rows[0] = 1;
    return p;
}

#endif
