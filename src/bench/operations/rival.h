/* rival.h - the product of a library on the data of a product of the program (product.h): for the test `matmul`. */
#ifndef GM_SRC_BENCH_OPERATIONS_RIVAL_H
#define GM_SRC_BENCH_OPERATIONS_RIVAL_H

#include "src/bench/operations/product.h"

/* The calls of the library for a product, and its operands: the data, the data rounded, and B transposed as well. */
enum { GM_RIVAL_CALLS = 2 };
typedef struct gm_bench_rival {
    const gm_bench_product *product;
    const gm_rival_product *kind;
    const char *name; /* of the library and its version */
    void *a, *b;      /* [batch][rows][lda], [batch][k][ldb]; those of the product if they are not rounded */
    void *turned;     /* [batch][ldb][k in multiples of GM_RIVAL_ALIGN]: B transposed, or NULL */
    void *padded;     /* [batch][k in such multiples][ldb], where B is transposed from */
    gm_gemm_call calls[GM_RIVAL_CALLS];
    int count; /* of calls: 0: there is no library, or none of its calls supports the shape */
} gm_bench_rival;
enum { GM_RIVAL_ALIGN = 64 }; /* elements of k */

/* The library that is installed, if it multiplies in a precision that is near; else without a kind. */
gm_bench_rival gm_rival_make(const gm_bench_product *product);

/* Bytes that its operands need on the device. */
int64_t gm_rival_bytes(const gm_bench_rival *rival);

/* Allocates the operands of a product that is allocated. The caller frees them, also after a failure. */
int gm_rival_alloc(gm_bench_rival *rival);
void gm_rival_free(gm_bench_rival *rival);

/* Makes the operands of the data. */
int gm_rival_fill(gm_bench_rival *rival);

/* Finds the calls that the library supports, by making them. After gm_rival_fill(). */
int gm_rival_find_calls(gm_bench_rival *rival);

#endif
