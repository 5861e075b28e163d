/* products.h - for tests: the products of a GPU, made of those of the processor. They have the leaves, types, work
 * spaces and batches of GPUs, and so the plans; what they find in their work spaces counts as it does there. */
#ifndef GM_TESTS_SRC_SLOW_PRODUCTS_H
#define GM_TESTS_SRC_SLOW_PRODUCTS_H

#include "kernels/matmul/calls.h"

/* The lines of products_cuda.def, whose `run` is NULL; NULL: there are no more. */
const gm_product *slow_product(int index);

/* Makes such a product, whose addresses are those of the bytes. Returns a gm_status. */
int slow_product_run(const gm_product *product, const gm_product_call *call);

#endif
