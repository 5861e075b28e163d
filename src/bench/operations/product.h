/* product.h - a product of random matrices in device memory, as the operation matmul makes it: for the tests `matmul`
 * and `scaling`. */
#ifndef GM_SRC_BENCH_OPERATIONS_PRODUCT_H
#define GM_SRC_BENCH_OPERATIONS_PRODUCT_H

#include "kernels/matmul/calls.h"
#include "src/bench/bench.h"

enum { GM_PRODUCT_SHAPES = 16, GM_PRODUCT_SAMPLES = 4 };

typedef struct gm_product_shape {
    int64_t m, n, k;
    int64_t batch; /* products of that shape, one frame each; 1: no batch */
} gm_product_shape;

/* Some rows of a product of a shape and a precision, C = A B: rows [first, first + rows) of A and C, all of B. Or a
 * batch, of whole products: each matrix then has the frames of all of them below each other. */
typedef struct gm_bench_product {
    gm_bench *bench;
    gm_product_shape shape; /* of the whole product, which decides leaves and tiles */
    int64_t first, rows;
    gm_precision precision;
    const gm_product *product;
    gm_dtype type, result;   /* of the data, of C */
    gm_bench_kind kind;      /* of the data */
    int64_t room;            /* rows that there is memory for */
    void *a, *b;             /* data: [batch][room][lda], [batch][k][ldb] */
    void *tiles;             /* one per thread, for a product that needs them */
    void *parts;             /* of leaves side by side */
    void *work[2];           /* of A and B, for a product that has work space: of all frames, or of one of a loop */
    void *panel_a, *panel_b; /* the data in the type of the operands; a, b if the types are the same */
    void *acc, *c;           /* [batch][room][n]; the same if they have the same type */
    gm_nonfinite *nonfinite;
    gm_product_call product_call; /* of all frames, or of the first one of a loop */
    gm_finish_call finish_call;
    uint64_t key_a, key_b;
    gm_bench_sample samples[GM_PRODUCT_SAMPLES]; /* of these rows of C; of a batch: of some frames */
    int sample_count;
} gm_bench_product;

/* The shapes of --shapes: a list, separated by commas, of "1024", "512x256x4096" (m, n, k) or, if the test measures
 * batches, "100x64x32x16" (batch, m, n, k). GM_EUSAGE. */
int gm_product_parse(const gm_bench *bench, int batches, gm_product_shape shapes[GM_PRODUCT_SHAPES], int *count);

/* A shape as it is written there. Returns text. */
char *gm_product_format(const gm_product_shape *shape, char text[GM_BENCH_TEXT]);

/* The shapes of --shapes grid, of the sides that the text names ("grid:64:127:512") or else of these: all pairs of m
 * and n, each with one k. Each pair of m and k, and of n and k, comes once as well, and all cubes. GM_EUSAGE. */
enum { GM_GRID_SIDES = 11, GM_GRID_SHAPES = GM_GRID_SIDES * GM_GRID_SIDES };
int gm_grid_parse(const char *text, const int64_t *sides, int side_count, gm_product_shape shapes[GM_GRID_SHAPES],
                  int *count);

/* Does the text of --shapes name a grid? */
int gm_grid_is_named(const char *text);

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

/* Is the batch multiplied frame by frame, as the operation matmul does where a product takes no batch? */
int gm_product_loops(const gm_bench_product *product);

/* Computes the samples that the result is compared with: of a small product, if whole, of all its elements; of a batch,
 * of the first frame, the last one and some between. */
int gm_product_sample(gm_bench_product *product, int whole);

/* Likewise whole rows, from B on the device; of a batch, and of a product in float64, which is as accurate as these, a
 * sample of elements. */
int gm_product_sample_rows(gm_bench_product *product);

/* Puts the product into a queue. */
int gm_product_run(const gm_bench_product *product, gm_queue *queue);

/* Runs it once: its work space is ready then, and the runs that follow on the same data do not split the panels again.
 * But the frames of a loop share one work space, and each of them splits its panels: that is in the time of a loop. */
int gm_product_prepare(gm_bench_product *product);

/* Errors of the C that the call makes from zeros, in rows of gm_product_ldc() elements, beside the sample. what: of the
 * message. GM_ECHECK if they exceed the bound. */
int gm_product_check(const gm_bench_product *product, const gm_bench_case *call, double bound, const char *what,
                     gm_bench_errors *errors);

/* The bound of the errors of its C, computed in a precision: rounded operands, a sum of k rounded terms in any order,
 * C rounded to its type. Relative to |A| |B|. cuts: operands may be cut off in place of rounded to the nearest. */
double gm_product_bound(const gm_bench_product *product, gm_precision precision, int cuts);

/* Are the data rounded to shorter operands of this precision? */
int gm_product_rounds(gm_precision precision);

/* The side of a tile of C, in elements. */
int64_t gm_product_tile(const gm_bench_product *product);

/* Elements from row to row of C. */
int64_t gm_product_ldc(const gm_bench_product *product);

/* The computed limit of this rank's device for a precision, flop/s, or of one of its products (NULL: of any); 0:
 * unknown. */
double gm_product_limit(const gm_bench *bench, gm_precision precision, const gm_product *product);

#endif
