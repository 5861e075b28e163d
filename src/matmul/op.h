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

/* The request for the ring: threads may have buffers if all operands may be read from any byte on. */
gm_ring_request gm_matmul_op_request(const gm_run *run, const gm_ring_budget *budget);

/* The end of gm_operation.prepare, after what had this status: opens the ring, and lends it and the readers to the
 * product. Returns the status, or GM_EDEVICE. Not collective. */
int gm_matmul_op_open(gm_run *run, gm_matmul *product, int status);

/* Prints what is multiplied, and by which kernel: the first lines of --plan. */
void gm_matmul_op_print(const gm_run *run, const gm_matmul *product);

/* The end of gm_operation.run_all, with the agreed status: reports the flop, gathers and reports the verdicts of all
 * ranks, also of a product that failed its check, whose message is kept, and adds the attributes of C about precision
 * and check. Returns the status, or that of its own failure. Collective. */
int gm_matmul_op_judge_all(gm_run *run, gm_matmul *product, int status);

#endif
