/* products_cuda.h - a line of products_cuda.def as an initializer of gm_product. RUN(name): its launcher. */
#ifndef GM_KERNELS_MATMUL_PRODUCTS_CUDA_H
#define GM_KERNELS_MATMUL_PRODUCTS_CUDA_H

#include "kernels/matmul/calls.h"

#define GM_CUDA_PRODUCT_ROW(id, kind, a, c, shortest, title, name, operands, additions, sums, top, bytes, count, \
                            lines, part, size, depth, many)                                                      \
    {.precision = GM_PRECISION_##id,                                                                             \
     .family = GM_KERNEL_##kind,                                                                                 \
     .operand = GM_DTYPE_##a,                                                                                    \
     .accumulator = GM_DTYPE_##c,                                                                                \
     .tile = GM_CUDA_TILE,                                                                                       \
     .leaf = shortest,                                                                                           \
     .kernel = title,                                                                                            \
     .run = RUN(name),                                                                                           \
     .error = {operands, additions, sums},                                                                       \
     .largest = top,                                                                                             \
     .work = {bytes, count, lines},                                                                              \
     .speed = part,                                                                                              \
     .least_work = size,                                                                                         \
     .least_k = depth,                                                                                           \
     .batches = many},

#endif
