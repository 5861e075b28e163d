/* device.h - the table of device functions: what a kind of device must be able to do. Nothing here is of any device.
 *
 * A kind of device (the CPU, CUDA) fills one gm_device_ops. Memory that a table hands out is the device's own and is named
 * "device memory" below; "host memory" is what the processor addresses. Work is put into queues: in order within one queue, and
 * free to overlap between queues, unless an event says otherwise. A queue of the CPU does the work at once.
 *
 * All functions return a gm_status and leave a message behind when they fail. A slot of the table that is NULL is "not
 * supported by this kind of device". No function is collective. One thread at a time may use a device. */
#ifndef GM_BASE_DEVICE_H
#define GM_BASE_DEVICE_H

#include "base/dtype.h"
#include "base/precision.h"
#include "base/statistics.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gm_device gm_device; /* one open device */
typedef struct gm_queue gm_queue;   /* an ordered queue of work on a device */
typedef struct gm_event gm_event;   /* a mark in a queue */

typedef struct gm_device_info {
    char kind[8];   /* "cpu", "cuda" */
    char name[96];  /* as the vendor calls it */
    char uuid[48];  /* "GPU-...", the same in every process; empty for the CPU */
    char pci[24];   /* "0000:1b:00.0"; empty for the CPU */
    int64_t memory_total, memory_free; /* bytes */
    int numa_node;                     /* of the host memory nearest to it; -1: unknown */
    int capability;                    /* CUDA: 10 * major + minor */
    int multiprocessors;
    int64_t clock_hz, memory_clock_hz; /* 0: unknown */
    int memory_bus_bits;
    int64_t l2_bytes;
    double memory_limit;               /* bytes/s computed from clock and width; 0: unknown */
    double fp32_limit, fp64_limit;     /* flop/s computed from clocks and units; 0: unknown */
} gm_device_info;

/* acc = (accumulate ? acc : 0) folded with the partial products of op(A) op(B), leaf after leaf in the order of k:
 * acc += leaf_0; acc += leaf_1; ... Each leaf is summed for itself, in an order that depends on nothing but the leaf;
 * each fold is one rounded addition in the accumulator's type. So the bits of an element do not depend on how many leaves one call
 * covers, nor on the block of C that it covers as long as the block begins at a tile border. */
typedef struct gm_product_call {
    int64_t m, n, k;
    int transpose_a, transpose_b;
    const void *a; /* [m][lda], or [k][lda] when transposed; device memory, operand type */
    int64_t lda;   /* elements; a multiple of 16 bytes, as the start of a is */
    const void *b; /* [k][ldb], or [n][ldb] when transposed */
    int64_t ldb;
    void *acc;      /* [m][ldacc], accumulator type */
    int64_t ldacc;
    int64_t leaf;   /* length of a leaf in k, a multiple of 64; the last one may be shorter */
    int64_t tile;   /* C is cut into tiles of tile x tile from the corner of acc; at most the product's tile */
    int accumulate; /* 0: the first leaf is stored, acc is not read */
    void *tiles;    /* for a product that wants_tiles: tile_count x [tile][tile] accumulators of device memory for its own use, one for each */
    int64_t tile_count; /* processor thread that it may use; at least 1 */
} gm_product_call;

typedef struct gm_product {
    gm_dtype operand;     /* type of the panels of A and B on this kind of device */
    gm_dtype accumulator; /* type of acc */
    int64_t tile;         /* the largest tile: bits of C may depend on how it is cut into tiles */
    int wants_tiles;      /* see gm_product_call */
    const char *family;   /* of --kernel: "simt", "mma"; "blas" on the processor */
    const char *kernel;   /* its name, for the report */
    int (*run)(gm_queue *queue, const gm_product_call *call);
} gm_product;

/* dst[i][j] = src[i][j] converted to another type: file bytes to a panel. Integers and floats convert to the nearest value. */
typedef struct gm_unpack_call {
    int64_t rows, cols;
    const void *src; /* device memory, elements of src_type, swapped in byte order if swap */
    size_t src_pitch; /* bytes from row to row */
    gm_dtype src_type;
    int swap;
    void *dst; /* [rows][ld], F32 or F64 */
    int64_t ld;
    gm_dtype dst_type;
} gm_unpack_call;

/* acc[i][j] += part[i][j]: one more leaf, brought by another rank. Both of the same type, F32 or F64. */
typedef struct gm_fold_call {
    int64_t rows, cols;
    const void *part; /* [rows][cols], contiguous */
    void *acc;        /* [rows][ld] */
    int64_t ld;
    gm_dtype type;
} gm_fold_call;

/* Elements of a result that are not finite numbers. */
typedef struct gm_nonfinite {
    uint64_t nan, inf;  /* NaN and infinity in the float64 value itself */
    uint64_t overflow;  /* finite in float64, infinite in the type of C */
} gm_nonfinite;

/* out[i][j] = alpha acc[i][j] + beta c0[i][j], evaluated in float64 with each operation rounded, then rounded once to the type of C. */
typedef struct gm_finish_call {
    int64_t rows, cols;
    const void *acc; /* [rows][ldacc], F32 or F64; NULL: zeros (k = 0, or alpha = 0) */
    int64_t ldacc;
    gm_dtype acc_type;
    double alpha, beta;
    const void *c0; /* [rows][cols] contiguous, file bytes as for unpack; NULL when beta is 0: then nothing of it is read */
    gm_dtype c0_type;
    int c0_swap;
    void *out; /* [rows][cols], contiguous, F16, F32 or F64, in the order of bytes of this machine */
    gm_dtype out_type;
    gm_nonfinite *count; /* device memory; added to */
} gm_finish_call;

/* Products of a matrix with vectors, in float64: the O(n^2) work of checking a product.
 * With M [rows][cols] (file bytes, as for unpack), p [cols] and q [rows], each output that is not NULL is added to:
 *   r += M p      r_abs += |M| |p|      r_sq += row sums of M^2       (all [rows])
 *   s += q'M      s_abs += |q|'|M|      s_sq += column sums of M^2    (all [cols])
 * p may be NULL when r and r_abs are, q when s and s_abs are. Elements that are not finite go in as they are. */
typedef struct gm_probe_call {
    int64_t rows, cols;
    const void *m;
    size_t pitch; /* bytes from row to row */
    gm_dtype type;
    int swap;
    const double *p, *q; /* device memory, as all of these */
    double *r, *r_abs, *r_sq;
    double *s, *s_abs, *s_sq;
} gm_probe_call;

/* What a reduction is to find out; count and nan always. What is not wanted is left 0. */
enum {
    GM_WANT_SUM = 1,
    GM_WANT_SQUARES = 2,
    GM_WANT_SPREAD = 4, /* floats: shift, dsum, dsumsq. Integers have their variance from sum and sumsq and take no notice. */
    GM_WANT_RANGE = 8,  /* min, max */
    GM_WANT_ARG = 16    /* argmin, argmax, argnan; only with GM_WANT_RANGE */
};

/* Leaves of contiguous segments (base/statistics.h), one record each. Leaf i of the call is leaf `first + i` of the whole: with
 * per = ceil(segment / gm_leaf_length(type)), leaf (first + i) % per of segment (first + i) / per. */
typedef struct gm_rows_call {
    const void *src; /* device memory: the elements of these leaves, one behind the other, in file bytes; aligned as an element only */
    gm_dtype type;
    int swap;
    int64_t first, leaves;
    int64_t segment; /* elements of a segment; the last leaf of each is the shorter one */
    unsigned want;
    gm_moments *out; /* [leaves], device memory */
} gm_rows_call;

/* Rows [row0, row0 + rows) of n, of cols columns: each column is walked on from its open record, in the order of the rows. A leaf (GM_LEAF_COLUMN rows,
 * by row number) that ends here folds into the column's total, and its record is cleared: the bits are the same however the rows are cut into calls. */
typedef struct gm_columns_call {
    int64_t rows, cols, row0;
    const void *src; /* [rows][cols] file bytes, aligned as an element only */
    size_t pitch;    /* bytes from row to row; a multiple of an element */
    gm_dtype type;
    int swap;
    unsigned want;
    int begin;         /* the first call of these columns: open and total are begun, what they hold is not read */
    int end;           /* the last one: the open leaf is closed as well */
    gm_moments *open;  /* [cols], device memory, as the next two */
    gm_total *total;   /* [cols] */
    gm_moments *scratch; /* [scratch_count] for partial leaves, where few columns of many rows leave the device idle; may be NULL */
    int64_t scratch_count;
} gm_columns_call;

/* How values become integers. */
typedef enum gm_rounding {
    GM_ROUND_NEAREST_EVEN,
    GM_ROUND_HALF_UP, /* floor(v + 0.5), the addition rounded as any other */
    GM_ROUND_TRUNCATE
} gm_rounding;

typedef struct gm_normalize_counts {
    uint64_t clipped; /* values outside lo .. hi, and finite ones that are infinite in a narrower float type of out */
    uint64_t nan;     /* NaN; 0 in integers */
    uint64_t marked;  /* elements other than NaN whose factor is marked */
} gm_normalize_counts;

/* out[i][j] = (src[i][j] - sub) * factor + add, or minus the natural logarithm of that. All in float32, or in float64 if wide, each operation rounded; the
 * addition is left out when add is 0. kernels/normalize.h has the rules of an element, which in this order are:
 *   src NaN: NaN.    factor NaN, which marks a denominator of 0: `marked`.    NaN in between: NaN (0 in integers).
 *   Integer out: v is rounded.    v <= lo: `below`.    v >= hi: `above`.    Else v, converted. */
typedef struct gm_normalize_call {
    int64_t rows, cols;
    const void *src; /* [rows][cols] contiguous file bytes, at a multiple of the size of an element */
    gm_dtype src_type;
    int swap;
    void *out; /* [rows][cols] contiguous, in the order of bytes of this machine, at a multiple of 16 bytes; not src */
    gm_dtype out_type;
    int wide; /* float64; may be 0 when both types are of 8 or 16 bits or F32 */
    const void *sub, *factor; /* float, or double if wide: (i, j) takes entry i * row_step + j * col_step of both */
    int row_step, col_step;   /* 0, 0 for one value; 1, 0 for one a row; 0, 1 for one a column */
    double add;               /* rounded to float32 by the kernel, as lo and hi are, unless wide */
    int log;
    gm_rounding rounding;
    double lo, hi;                 /* -INFINITY, INFINITY: no limits, floats only */
    uint64_t below, above, marked; /* elements of out in its low bytes */
    gm_normalize_counts *counts;   /* device memory; added to */
} gm_normalize_call;

/* Counts of one digit of the elements' keys: unsigned numbers of the element's width in the order of the values (-0 before +0; the rule is in
 * kernels/normalize.h). NaN have none and are left out. An element counts for prefix p of its row when its key's bits above the digit equal it:
 *   counts[row * row_step][p][key >> shift & ((1 << bits) - 1)] += key >> shift >> bits == prefix[row * row_step][p] */
enum { GM_HISTOGRAM_PREFIXES = 4 };
typedef struct gm_histogram_call {
    int64_t rows, cols;
    const void *src; /* [rows][cols] contiguous file bytes, at a multiple of the size of an element */
    gm_dtype type;
    int swap;
    int shift, bits; /* bits: 8, or 16 for types of 16 bits and more; shift: a multiple of bits below the key's width */
    int row_step;    /* 1: every row has prefixes and counts of its own, 0: all rows share them */
    int prefixes;    /* 1 to GM_HISTOGRAM_PREFIXES, all different in a row; 1 when there is nothing above the digit (then prefix is 0) */
    const uint64_t *prefix; /* device memory: [rows or 1][prefixes] */
    uint64_t *counts;       /* device memory: [rows or 1][prefixes][1 << bits]; added to */
} gm_histogram_call;

typedef struct gm_device_ops {
    const char *kind; /* "cpu", "cuda" */
    int unified;      /* device memory is host memory: the program may pass host pointers and skip copies */

    /* Number of devices of this kind in this process's sight; 0 without driver or device (no error, no message). */
    int (*count)(int *count);
    /* Why count is 0, or NULL: for the message when somebody asked for this kind. */
    const char *(*absence)(void);
    /* Opens device index for this process; threads: processor threads it may use. The caller closes it. */
    int (*open)(int index, int threads, gm_device **device);
    void (*close)(gm_device *device);
    int (*describe)(gm_device *device, gm_device_info *info);

    /* Device memory, charged to GM_DEVICE (the CPU's to GM_HOST too), aligned to 256 bytes, not cleared; free takes NULL. */
    int (*alloc)(gm_device *device, size_t bytes, void **out);
    void (*free)(gm_device *device, void *memory);
    /* Host memory fit for asynchronous copies, charged to GM_HOST; unpin takes NULL. */
    int (*pin)(gm_device *device, size_t bytes, void **out);
    /* The same, but pinned only when it is settled, which must come before the first copy: whoever fills it first, on any thread, has the system
     * clear its pages, which takes longer than pinning them. Copies to and from memory that cannot be pinned then are slower, nothing else. settle may be
     * called on any thread. */
    int (*pin_later)(gm_device *device, size_t bytes, void **out);
    void (*settle)(gm_device *device, void *memory);
    void (*unpin)(gm_device *device, void *memory);

    int (*queue_open)(gm_device *device, gm_queue **queue);
    void (*queue_close)(gm_queue *queue);
    int (*queue_sync)(gm_queue *queue); /* waits until the queue is empty; errors of the work in it surface here */

    int (*event_open)(gm_device *device, gm_event **event);
    void (*event_close)(gm_event *event);
    int (*event_record)(gm_event *event, gm_queue *queue);
    int (*event_wait)(gm_queue *queue, gm_event *event); /* later work of queue starts after event; no wait on the host */
    int (*event_done)(gm_event *event, int *done);       /* asks, does not wait; an event never recorded is done */
    /* Seconds from one event to another, both done. */
    int (*event_seconds)(gm_event *from, gm_event *to, double *seconds);

    /* rows x width bytes from host to device, or back; the host side should be pinned and must stay until the copy is done. */
    int (*copy_in)(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, int64_t rows);
    int (*copy_out)(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, int64_t rows);
    int (*zero)(gm_queue *queue, void *dst, size_t bytes);

    /* Products by precision; NULL: not supported by this kind of device. */
    const gm_product *(*product)(gm_device *device, gm_precision precision);
    int (*unpack)(gm_queue *queue, const gm_unpack_call *call);
    int (*fold)(gm_queue *queue, const gm_fold_call *call);
    int (*finish)(gm_queue *queue, const gm_finish_call *call);
    int (*probe)(gm_queue *queue, const gm_probe_call *call);
    int (*reduce_rows)(gm_queue *queue, const gm_rows_call *call);
    int (*reduce_columns)(gm_queue *queue, const gm_columns_call *call);
    int (*normalize)(gm_queue *queue, const gm_normalize_call *call);
    int (*histogram)(gm_queue *queue, const gm_histogram_call *call);

    const struct gm_measure_ops *measure; /* what only measuring needs (base/measure.h); NULL: nothing of it */
} gm_device_ops;

#ifdef __cplusplus
}
#endif
#endif
