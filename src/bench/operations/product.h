/* product.h - a product of random matrices in device memory, as the operation matmul makes it: for the tests `matmul`
 * and `scaling`. */
#ifndef GM_SRC_BENCH_OPERATIONS_PRODUCT_H
#define GM_SRC_BENCH_OPERATIONS_PRODUCT_H

#include "kernels/matmul/calls.h"
#include "src/bench/bench.h"

enum { GM_PRODUCT_SHAPES = 16, GM_PRODUCT_PRECISIONS = 3 };

typedef struct gm_product_shape {
    int64_t m, n, k;
} gm_product_shape;

/* The precisions that are measured. */
extern const gm_precision gm_product_precisions[GM_PRODUCT_PRECISIONS];

/* Some rows of a product of a shape and a precision, C = A B: rows [first, first + rows) of A and C, all of B. */
typedef struct gm_bench_product {
    gm_bench *bench;
    gm_product_shape shape; /* of the whole product, which decides leaves and tiles */
    int64_t first, rows;
    gm_precision precision;
    const gm_product *product;
    gm_dtype type, result;   /* of the data, of C */
    int64_t room;            /* rows that there is memory for */
    void *a, *b;             /* data: [room][lda], [k][ldb] */
    void *tiles;             /* one per thread, for a product that needs them */
    void *work[2];           /* of A and B, for a product that has work space */
    void *panel_a, *panel_b; /* the data in the type of the operands; a, b if the types are the same */
    void *acc, *c;           /* [room][n]; the same if they have the same type */
    gm_nonfinite *nonfinite;
    gm_product_call product_call;
    gm_finish_call finish_call;
    uint64_t key_a, key_b;
    gm_bench_sample sample; /* of these rows of C */
} gm_bench_product;

/* The shapes of --shapes: a list, separated by commas, of "1024" or "512x256x4096" (m, n, k). GM_EUSAGE. */
int gm_product_parse(const gm_bench *bench, gm_product_shape shapes[GM_PRODUCT_SHAPES], int *count);

/* A product of all rows of a shape. Returns 0 if the device does not support the precision. */
int gm_product_make(gm_bench *bench, const gm_product_shape *shape, gm_precision precision, gm_bench_product *product);

/* Bytes that it needs on the device. */
int64_t gm_product_bytes(const gm_bench_product *product);

/* Allocates the memory for its rows. The caller frees it, also after a failure. */
int gm_product_alloc(gm_bench_product *product);
void gm_product_free(gm_bench_product *product);

/* Makes the data: B; and these rows of A, with the calls. */
int gm_product_fill_b(gm_bench_product *product);
int gm_product_fill_rows(gm_bench_product *product);

/* Computes the sample that the result is compared with: of a small product, if whole, of all its elements. */
int gm_product_sample(gm_bench_product *product, int whole);

/* Puts the product into a queue. */
int gm_product_run(const gm_bench_product *product, gm_queue *queue);

/* Errors of the C that run(context, queue) makes in this arithmetic from zeros, in rows of ldc elements. what: of the
 * message. GM_ECHECK if they exceed the bound of rounding. */
int gm_product_check(const gm_bench_product *product, int (*run)(void *context, gm_queue *queue), void *context,
                     int64_t ldc, gm_dtype arithmetic, const char *what, double *max_error, double *mean_error);

/* The side of a tile of C, in elements. */
int64_t gm_product_tile(const gm_bench_product *product);

/* Elements from row to row of C. */
int64_t gm_product_ldc(const gm_bench_product *product);

/* Of an arithmetic: the error of an addition; the computed limit of this rank's device, flop/s. */
double gm_product_roundoff(gm_dtype arithmetic);
double gm_product_limit(const gm_bench *bench, gm_dtype arithmetic);

#endif
