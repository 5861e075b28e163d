/* calls.h - the device operations of a product: what a call takes. base/device_ops.def lists those of the table.
 *
 *   matmul_cpu.c                            products, by BLAS, a leaf of a tile in each call
 *   product.c                               the product for a precision and a size
 *   matmul_cuda_fp32.cu, _fp64.cu, .cuh     products of lanes and of warps, and their common parts
 *   launch_cuda.cuh, parts_cuda.cuh         launches, and the fold of leaves side by side
 *   tensor/                                 products of short elements on tensor cores:
 *     split.h, split.c, split_cuda.cuh        their work space: planes of the panels,
 *     lines_cuda.cuh                          after the ranges of lines
 *     planes_cuda.cuh                         their launches: planes, then leaf after leaf
 *     hopper_cuda.cu, .cuh                    the kernel of warpgroups
 *     hopper_tile_cuda.cuh, wgmma_cuda.cuh    its tiles, and its instructions
 *     mma_cuda.cu, .cuh                       the kernel of warps
 *     leaf_cuda.cuh, units_cuda.cuh           for both: how sums get to C, and which parts of C a kernel makes
 *   unpack_cpu.c, unpack_cuda.cu            file bytes to panels
 *   finish_cpu.c, finish_cuda.cu            fold a leaf; finish: alpha, beta, the type of C
 *   probe_cpu.c, probe_cuda.cu, .cuh        products with vectors, for the check
 *   probe_both_cuda.cuh, probe_cut.c        those of rows and of columns by one pass; its parts and work space */
#ifndef GM_KERNELS_MATMUL_CALLS_H
#define GM_KERNELS_MATMUL_CALLS_H

#include "base/tiling.h"
#include "base/types/kernel.h"
#include "base/types/precision.h"
#include "kernels/kernels.h"
#include "kernels/matmul/tensor/split.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Products, or matrices of a probe, in a call: a grid of CUDA has no more blocks along y. */
enum { GM_BATCH_MOST = 65535 };

/* Numbers of elements of a result that are not finite. */
typedef struct gm_nonfinite {
    uint64_t nan, inf; /* NaN and infinity in the float64 value itself */
    uint64_t overflow; /* finite in float64, infinite in the type of C; I32: beyond its ends */
} gm_nonfinite;

/* acc = (accumulate ? acc : 0) folded with the partial products of op(A) op(B), leaf after leaf in the order of k:
 * acc += leaf_0; acc += leaf_1; ... Each leaf is summed for itself, in an order that depends on nothing but the leaf;
 * each fold is one rounded addition in the accumulator's type. So the bits of an element do not depend on how many
 * leaves one call covers, nor on the block of C that it covers as long as the block begins at a tile border. */
typedef struct gm_product_call {
    int64_t m, n, k;
    int transpose_a, transpose_b;
    const void *a; /* [m][lda], or [k][lda] when transposed; device memory, operand type */
    int64_t lda;   /* elements; a multiple of 16 bytes, as the start of a is */
    const void *b; /* [k][ldb], or [n][ldb] when transposed */
    int64_t ldb;
    void *acc; /* [m][ldacc], accumulator type */
    int64_t ldacc;
    int64_t leaf;       /* length of a leaf in k, a multiple of 64; the last one may be shorter */
    int64_t tile;       /* C is cut into tiles of tile x tile from the corner of acc; at most the product's tile */
    int accumulate;     /* 0: the first leaf is stored, acc is not read */
    int is_unsigned[2]; /* A, B: 8-bit integers are those of U8, not of I8 */
    void *tiles; /* [tile_count][tile][tile] accumulators of device memory as work space, if the product wants_tiles */
    int64_t tile_count; /* wants_tiles for each processor thread that it may use; at least those of one */
    /* Leaves that a product whose leaf.few is not 0 computes side by side, where there are few tiles; then it folds
     * them in their order. The bits are the same. */
    void *parts; /* [part_count][m][ldacc] accumulators of device memory as work space */
    int64_t part_count;
    /* Of A and of B: device memory, as gm_split_lay() lays out for product.work, m or n, k, leaf and part_count; in a
     * batch m or n of all its products, if they lie apart. */
    void *work[2];
    int ready[2];    /* work holds what the last call made of the same panel, of the same size */
    double *schemes; /* [GM_SCHEMES] in device memory: units times k by each scheme are added to it; NULL */
    /* A batch: products of one shape, whose operands and results lie apart by these elements (0: an operand is the same
     * for all of them). Each has the bits that it has alone. 0 products are 1; more only if the product `batches`. */
    int64_t batch;
    int64_t next_a, next_b; /* multiples of 16 bytes, as lda is */
    int64_t next_acc;
    /* Not NULL, only if the product `rounds`: acc has elements of float32, sums in float64 that are rounded once. Not
     * accumulated, and of one leaf, or of leaves that are all side by side. Device memory; a sum that float32 does not
     * hold adds 1 to overflow and takes 1 from inf, since gm_finish_call counts the infinity that it has become. */
    gm_nonfinite *rounded;
} gm_product_call;

/* The error of an element of a leaf, relative to (|A| |B|): of each operand, and of each addition to a sum of up to
 * `length` products; such sums are then added in the accumulator's type. */
typedef struct gm_sum_error {
    double operand, addition;
    int64_t length; /* 0: a leaf is one sum */
} gm_sum_error;

typedef struct gm_product {
    gm_precision precision;
    gm_kernel family;
    gm_dtype operand;     /* type of the panels of A and B on this kind of device */
    gm_dtype accumulator; /* type of acc */
    int64_t tile;         /* the largest tile: bits of C may depend on how it is cut into tiles */
    gm_leaf_kind leaf;
    int wants_tiles;    /* those of call.tiles that a thread needs; 0: run uses none */
    const char *kernel; /* its name, for the report */
    int (*run)(gm_queue *queue, const gm_product_call *call);
    gm_sum_error error;
    double largest;     /* operands above become infinite; 0: none does */
    double smallest;    /* spacing of rounded operands below their normal numbers; 0: none is rounded */
    gm_split_kind work; /* of call.work */
    double speed; /* flop/s, as a part of the device's limit for the accumulator's type; 0: as the first product */
    int64_t least_work;       /* m n k from which it is the faster one */
    int64_t least_k, least_c; /* and so are k, and m n */
    int64_t most_work;        /* m n k below which it is the faster one; 0: any */
    int doubles;              /* sums are float64: for devices that add these half as fast as float32, or faster */
    int batches;              /* run takes call.batch, */
    int rounds;               /* and call.rounded */
} gm_product;

/* The product that is asked for. Sizes of 0: of any. */
typedef struct gm_product_query {
    gm_precision precision;
    gm_kernel kernel;
    int64_t m, n, k;
    int capability; /* of the device, as gm_device_info has it; 0: unknown */
} gm_product_query;

/* The first product of the device that has the precision and is of the family, large enough a problem given; NULL: the
 * device supports none. Pure: all ranks with devices of one kind find the same. */
const gm_product *gm_product_find(const gm_device_ops *ops, gm_device *device, const gm_product_query *query);

/* The type of acc, for a result of some type that is the product of `leaves`, up to `parts` of them side by side: that
 * of the result if the product can round to it (gm_product_call.rounded), otherwise that of the accumulators. */
gm_dtype gm_product_acc_type(const gm_product *product, gm_dtype result, int64_t leaves, int64_t parts);

/* How many of the `leaves` of an m x n product are computed side by side to have work for all multiprocessors of the
 * device, by a product whose leaf.few is not 0. 0: one after the other, as on processors (0 multiprocessors). */
int64_t gm_product_parts(int64_t m, int64_t n, int64_t leaves, int64_t multiprocessors);

/* The type of a panel of some data: that of the product's operands, and of 8-bit integers that of the data. */
gm_dtype gm_panel_type(gm_dtype operand, gm_dtype data);

/* The largest error of an element of C before it is stored, relative to (|A| |B|). is_plain: some units were multiplied
 * in the accumulator's type (GM_SCHEME_F32). */
double gm_product_error(const gm_product *product, int64_t k, int64_t leaf, int64_t leaves, int is_plain);

/* dst[i][j] = src[i][j] converted to another type: file bytes to a panel. Integers and floats convert to the nearest
 * value. */
typedef struct gm_unpack_call {
    int64_t rows, cols;
    const void *src;  /* device memory, elements of src_type, swapped in byte order if swap */
    size_t src_pitch; /* bytes from row to row */
    gm_dtype src_type;
    int swap;
    void *dst; /* [rows][ld], F32, F64, or a type of 8 bits that src has too */
    int64_t ld;
    gm_dtype dst_type;
    uint64_t *underflow; /* device memory: set to 1 if an element of F64 is below the normal numbers of F32, and F32
                          * does not hold it; NULL: not looked for */
} gm_unpack_call;

/* acc[i][j] += part[i][j]: one more leaf. Both of the same type, F32, F64 or I32. A call without elements has the code
 * of the kernel loaded, for which its first launch would wait. */
typedef struct gm_fold_call {
    int64_t rows, cols;
    const void *part; /* [rows][part_ld] */
    int64_t part_ld;  /* 0: the same row for all */
    void *acc;        /* [rows][ld] */
    int64_t ld;
    gm_dtype type;
} gm_fold_call;

/* out[i][j] = alpha acc[i][j] + beta c0[i][j], evaluated in float64 with each operation rounded, then rounded once to
 * the type of C: to the nearest integer, or the next end of I32; NaN to 0. A call without elements as for fold. */
typedef struct gm_finish_call {
    int64_t rows, cols;
    const void *acc; /* [rows][ldacc], F32, F64 or I32; NULL: zeros (k = 0, or alpha = 0) */
    int64_t ldacc;
    gm_dtype acc_type;
    double alpha, beta;
    const void
        *c0; /* [rows][cols] contiguous, file bytes as for unpack; NULL when beta is 0: then nothing of it is read */
    gm_dtype c0_type;
    int c0_swap;
    void *out; /* [rows][cols], contiguous, a float or I32, in the order of bytes of this machine */
    gm_dtype out_type;
    gm_nonfinite *count; /* device memory; added to */
} gm_finish_call;

/* Products of a matrix with vectors, in float64: the O(n^2) work of checking a product.
 * With M [rows][cols] (file bytes, as for unpack), p [cols] and q [rows], each output that is not NULL is added to:
 *   r += M p      r_abs += |M| |p|      r_sq += row sums of M^2       (all [rows])
 *   s += q'M      s_abs += |q|'|M|      s_sq += column sums of M^2    (all [cols])
 * p may be NULL when r and r_abs are, q when s and s_abs are. Elements that are not finite go in as they are. A sum of
 * squares that float64 does not hold is infinite; with `wide` it may be -(the sum * 2^-1200) instead, as it is on the
 * processor, and what it is added to may be. A call without elements has the code of the kernels for the type loaded,
 * for which their first launch would wait. */
typedef struct gm_probe_call {
    int64_t rows, cols;
    const void *m;
    size_t pitch; /* bytes from row to row */
    gm_dtype type;
    int swap;
    const double *p, *q; /* device memory, as all of these */
    double *r, *r_abs, *r_sq;
    double *s, *s_abs, *s_sq;
    int wide;
    /* A batch of matrices of one shape, each with vectors of its own; 0 is 1. */
    int64_t batch;
    size_t next_m;                          /* bytes from one to the next */
    int64_t next_p, next_q, next_r, next_s; /* elements; the three outputs of r, and of s, lie apart by the same */
    /* With the device memory that gm_probe_cut() asks for, a GPU reads a matrix once for r and s, each with one of the
     * other two outputs at most. Not of a batch. */
    void *work;
    size_t work_bytes;
} gm_probe_call;

/* The parts of a matrix that have sums of their own in one pass for rows and columns: GM_PROBE_SUMS of each line. */
enum { GM_PROBE_SUMS = 2 };
typedef struct gm_probe_parts {
    int64_t rows, cols;   /* of a part */
    int64_t across, down; /* parts beside, below each other */
    size_t bytes;         /* of all sums; 0: the matrix is too small or too narrow for that */
} gm_probe_parts;

/* Of a matrix with elements of some bytes. Pure; more rows or columns never take less. */
gm_probe_parts gm_probe_cut(int64_t rows, int64_t cols, int64_t element);

/* The products are no entries of the table: gm_device_ops.product lists them. */
enum { GM_CPU_TILE = 512, GM_CPU_TILES = 1, GM_CPU_TILES_COPIES = 4 }; /* tiles: those of a thread */
int gm_cpu_matmul_fp32(int threads, const gm_product_call *call);      /* float32 operands and accumulators */
int gm_cpu_matmul_fp64(int threads, const gm_product_call *call);      /* float64 operands and accumulators; rounds */
int gm_cpu_matmul_tf32(int threads, const gm_product_call *call);      /* as fp32; operands are rounded when used */
int gm_cpu_matmul_fp16(int threads, const gm_product_call *call);
int gm_cpu_matmul_bf16(int threads, const gm_product_call *call);
int gm_cpu_matmul_int8(int threads, const gm_product_call *call); /* 8-bit operands, 32-bit accumulators */
enum { GM_CUDA_TILE = 256 };                                      /* a multiple of the tiles of all product kernels */
int gm_cuda_matmul_fp32(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_fp64(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_exact(gm_cuda_stream stream, const gm_product_call *call);      /* float32 operands, float64 acc */
int gm_cuda_matmul_fp32_exact(gm_cuda_stream stream, const gm_product_call *call); /* the same, for fp32 */
int gm_cuda_hopper_is_built(void);                                                 /* for sm_90a */
int gm_cuda_matmul_hopper_fp32(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_hopper_tf32(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_hopper_fp16(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_hopper_bf16(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_hopper_int8(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_mma_fp32(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_mma_tf32(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_mma_fp16(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_mma_bf16(gm_cuda_stream stream, const gm_product_call *call);
int gm_cuda_matmul_mma_int8(gm_cuda_stream stream, const gm_product_call *call);

#ifdef __cplusplus
}
#endif
#endif
