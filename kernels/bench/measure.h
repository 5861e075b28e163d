/* measure.h - device functions for benchmarks only: an optional part of the table (gm_device_ops.measure). As there,
 * functions return a gm_status, and an entry that is NULL is not supported. Calls put work into a queue; pointers are
 * to device memory. launch.h lists the files. */
#ifndef GM_KERNELS_BENCH_MEASURE_H
#define GM_KERNELS_BENCH_MEASURE_H

#include "base/types/dtype.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* C = A B in one call as a user would write it: no leaves, no tiles. All of one type, F32 or F64; of a library's
 * product the types are those of its precision. */
typedef struct gm_gemm_call {
    gm_dtype type;
    int64_t m, n, k;
    const void *a; /* [m][lda] */
    int64_t lda;   /* elements, as ldb and ldc */
    const void *b; /* [k][ldb], or [n][ldb] with transpose_b */
    int64_t ldb;
    void *c; /* [m][ldc] */
    int64_t ldc;
    /* Of a library's product only: */
    gm_precision precision;
    int transpose_b;
    int64_t batch; /* products, whose matrices lie apart by these elements; 0 are 1 */
    int64_t next_a, next_b, next_c;
} gm_gemm_call;

/* How a library multiplies data of a precision. */
typedef struct gm_rival_product {
    gm_precision precision; /* its own: the nearest that it has */
    size_t operand_bytes; /* of an element of its operands; fewer than those of the data: they must be rounded before */
    gm_dtype result;      /* type of C */
    int may_transpose;    /* it may be faster with transpose_b, or need it */
    int k_multiple;       /* of other k it reads beyond: it wants zeros there, and a k of this multiple; 0: of none */
} gm_rival_product;

/* dst = the data, rounded to the operands of a precision, to the nearest. Both [rows][ld]. */
typedef struct gm_rival_round_call {
    gm_precision precision;
    int64_t rows, cols, ld;
    const float *src;
    void *dst;
} gm_rival_round_call;

/* dst = src. Both are multiples of 16, and do not overlap. */
typedef int gm_copy(gm_queue *queue, void *dst, const void *src, size_t bytes);

/* Reads all of src, a multiple of 16. Writes sink, [16], only for one value of the data, so that the reads stay. */
typedef int gm_read(gm_queue *queue, const void *src, size_t bytes, void *sink);

/* One statistic of n elements, in native order of bytes, in one call as a user would write it. */
typedef struct gm_rival_reduce_call {
    gm_dtype type;
    int is_max; /* 0: the sum; of integers in 64 bits, of floats in their own type */
    int64_t n;
    const void *src;
    void *out; /* one element, or 64-bit sum */
    void *room;
    size_t room_bytes;
} gm_rival_reduce_call;

#define GM_LAB_OP(name, cpu, cuda) struct gm_##name##_call;
#include "kernels/lab/lab_ops.def"
#undef GM_LAB_OP

typedef struct gm_measure_ops {
    /* Holds the queue: work put into it from now on starts at the release, so that the time between two events in it
     * does not include the cost of launching. A queue is held once at a time. After GM_HOLD_SECONDS it continues
     * without a release; *held is then 0. */
    int (*hold)(gm_queue *queue);
    int (*release)(gm_queue *queue, int *held);

    /* Reads buffer, which holds zeros and should be several times the size of the cache. Then nothing else is cached,
     * and no line waits to be written back. */
    int (*flush)(gm_queue *queue, const void *buffer, size_t bytes);

    gm_copy *copy;       /* ours, from device memory to device memory */
    gm_copy *copy_rival; /* as a user would write it */
    const char *copy_rival_name;

    gm_read *read; /* ours, as fast as device memory can be read */

    /* The library that a user would call for sums and extremes: its name and version, the bytes of device memory that
     * it needs for n elements (0: type not supported), and the call. All three or none. */
    const char *(*rival_reduce_name)(void);
    size_t (*rival_reduce_room)(gm_dtype type, int64_t n);
    int (*rival_reduce)(gm_queue *queue, const gm_rival_reduce_call *call);

    /* The library that a user would call for a product: its name and version; NULL with *absence set where it is not
     * installed. Opens it once; its own memory is not charged. The other entries may be called when it is open. How it
     * multiplies data of a precision; NULL: not at all. rival_round may be NULL, where no operands are rounded. refused
     * is set where it does not support the call; with refused NULL that is an error. */
    const char *(*rival)(gm_device *device, const char **absence);
    const gm_rival_product *(*rival_of)(gm_precision precision);
    int (*rival_round)(gm_queue *queue, const gm_rival_round_call *call);
    int (*rival_product)(gm_queue *queue, const gm_gemm_call *call, int *refused);

    /* The laboratory: pointers in a call are to device memory, or as its declaration in kernels/lab says. */
#define GM_LAB_OP(name, cpu, cuda) int (*name)(gm_queue * queue, const struct gm_##name##_call *call);
#include "kernels/lab/lab_ops.def"
#undef GM_LAB_OP
} gm_measure_ops;

enum { GM_HOLD_SECONDS = 2 };

/* c: [rows][cols] = a: [rows][k] times b: [k][cols], host memory, summed in long double: the reference of
 * products. */
void gm_cpu_reference(int threads, int64_t rows, int64_t cols, int64_t k, const double *a, const double *b, double *c);

#ifdef __cplusplus
}
#endif
#endif
