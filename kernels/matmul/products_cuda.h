/* products_cuda.h - a line of products_cuda.def as an initializer of gm_product. RUN(name): its launcher. */
#ifndef GM_KERNELS_MATMUL_PRODUCTS_CUDA_H
#define GM_KERNELS_MATMUL_PRODUCTS_CUDA_H

#include "kernels/matmul/calls.h"

#define GM_CUDA_PRODUCT_ROW(id, kind, a, c, title, name, ...) \
    {.precision = GM_PRECISION_##id,                          \
     .family = GM_KERNEL_##kind,                              \
     .operand = GM_DTYPE_##a,                                 \
     .accumulator = GM_DTYPE_##c,                             \
     .tile = GM_CUDA_TILE,                                    \
     .kernel = title,                                         \
     .run = RUN(name),                                        \
     __VA_ARGS__},

#endif
