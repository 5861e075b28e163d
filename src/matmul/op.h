/* op.h - the stages that the operations of one product and of a batch (batch/) have in common. */
#ifndef GM_SRC_MATMUL_OP_H
#define GM_SRC_MATMUL_OP_H

#include "src/matmul/matmul.h"
#include "src/operation.h"

/* matmul --batch */
extern const gm_operation gm_op_matmul_batch;

/* gm_operation.describe and suit: run->c is a gm_matmul_case. */
int gm_matmul_op_describe(gm_run *run);
int gm_matmul_op_suit(gm_run *run);

/* Prints what is multiplied, and by which kernel: the first lines of --plan. */
void gm_matmul_op_print(const gm_run *run, const gm_matmul *product);

/* Gathers and reports the verdicts of all ranks, also of a product that failed its check: its message is kept. Returns
 * the status, or that of its own failure. Collective. */
int gm_matmul_op_judge_all(gm_job *job, gm_matmul *product, int status);

/* The attributes of C about precision and check. Rank 0. */
void gm_matmul_op_add_attributes(gm_run *run, const gm_verdict *verdict);

#endif
