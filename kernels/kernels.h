/* kernels.h - the devices of the program, and what their parts share. The only header that both compilers read (with element.h). */
#ifndef GM_KERNELS_KERNELS_H
#define GM_KERNELS_KERNELS_H

#include "base/device.h"
#include "base/measure.h"
#include "base/random.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of device this build knows, best first; the last one is NULL. The CPU is always there. */
extern const gm_device_ops *const gm_device_kinds[];

extern const gm_device_ops gm_device_cpu;
extern const gm_device_ops gm_device_cuda; /* counts 0 devices in a build without CUDA */

/* Launchers of the CUDA kernels: asynchronous on stream (a cudaStream_t), nothing allocated, nothing waited for. Each returns the
 * cudaError_t of its launch as an int, 0 for success. Arguments as the tables of base/device.h say. */
typedef struct CUstream_st *gm_cuda_stream;

int gm_cuda_code_check(void); /* is there code for the current device in this program? cudaErrorNoKernelImageForDevice if not */
int gm_cuda_matmul_fp32(gm_cuda_stream stream, const gm_product_call *call);  /* float32 operands and accumulators */
int gm_cuda_matmul_fp64(gm_cuda_stream stream, const gm_product_call *call);  /* float64 operands and accumulators */
int gm_cuda_matmul_exact(gm_cuda_stream stream, const gm_product_call *call); /* float32 operands, float64 accumulators */
int gm_cuda_unpack(gm_cuda_stream stream, const gm_unpack_call *call);
int gm_cuda_fold(gm_cuda_stream stream, const gm_fold_call *call);
int gm_cuda_finish(gm_cuda_stream stream, const gm_finish_call *call);
int gm_cuda_probe(gm_cuda_stream stream, const gm_probe_call *call);
int gm_cuda_reduce_rows(gm_cuda_stream stream, const gm_rows_call *call);
int gm_cuda_reduce_columns(gm_cuda_stream stream, const gm_columns_call *call);
int gm_cuda_normalize(gm_cuda_stream stream, const gm_normalize_call *call);
int gm_cuda_histogram(gm_cuda_stream stream, const gm_histogram_call *call);

/* What measuring needs (base/measure.h). A gate is pinned memory: the kernel of hold number `hold` ends when released reaches that number, or after
 * so many seconds, and then says so in expired. */
typedef struct gm_cuda_gate {
    unsigned released, expired;
} gm_cuda_gate;
int gm_cuda_hold(gm_cuda_stream stream, gm_cuda_gate *gate, unsigned hold, int seconds);
int gm_cuda_flush(gm_cuda_stream stream, const void *buffer, size_t bytes);
int gm_cuda_copy(gm_cuda_stream stream, void *dst, const void *src, size_t bytes); /* both at multiples of 16 */
int gm_cuda_read(gm_cuda_stream stream, const void *src, size_t bytes, void *sink);  /* likewise */
int gm_cuda_rival_reduce(gm_cuda_stream stream, const gm_rival_reduce_call *call);   /* cudaErrorNotSupported for a type that it has not */
size_t gm_cuda_rival_reduce_room(gm_dtype type, int64_t n);
const char *gm_cuda_rival_reduce_name(void);
int gm_cuda_matmul_1_naive(gm_cuda_stream stream, const gm_gemm_call *call);       /* kernels/ladder/ */
int gm_cuda_matmul_2_compensated(gm_cuda_stream stream, const gm_gemm_call *call);

/* The CPU's twins, on threads processor threads; GM_OK or a message. */
enum { GM_CPU_TILE = 512 }; /* of the CPU's products */

int gm_cpu_matmul_fp32(int threads, const gm_product_call *call);
int gm_cpu_matmul_fp64(int threads, const gm_product_call *call);
int gm_cpu_unpack(int threads, const gm_unpack_call *call);
int gm_cpu_fold(int threads, const gm_fold_call *call);
int gm_cpu_finish(int threads, const gm_finish_call *call);
int gm_cpu_probe(int threads, const gm_probe_call *call);
int gm_cpu_reduce_rows(int threads, const gm_rows_call *call);
int gm_cpu_reduce_columns(int threads, const gm_columns_call *call);
int gm_cpu_normalize(int threads, const gm_normalize_call *call);
int gm_cpu_histogram(int threads, const gm_histogram_call *call); /* takes 4 bytes a count and thread from GM_HOST while it runs, if there are any */
int gm_cpu_matmul_1_naive(int threads, const gm_gemm_call *call); /* kernels/ladder/ */
int gm_cpu_matmul_2_compensated(int threads, const gm_gemm_call *call);

/* c: [rows][cols] = a: [rows][k] times b: [k][cols], host memory, summed in long double: what other products are held against. */
void gm_cpu_reference(int threads, int64_t rows, int64_t cols, int64_t k, const double *a, const double *b, double *c);

/* dst[i] = src[i], n file elements of a type converted to float32 or float64: one row of unpack, on the calling thread.
 * src needs no alignment. */
void gm_cpu_row_f32(float *dst, const void *src, int64_t n, gm_dtype type, int swap);
void gm_cpu_row_f64(double *dst, const void *src, int64_t n, gm_dtype type, int swap);

/* dst[i] = element first + i of the random dataset of this key (base/random.h), i < n, on the calling thread; swap: in the other order of bytes. */
void gm_cpu_random(void *dst, gm_dtype type, int swap, gm_distribution distribution, uint64_t key, int64_t first, int64_t n);

/* How elements x differ from reference elements y. The relative error of an element is |x - y| / |y|, or |x - y| where y is 0. NaN equals
 * NaN, an infinity itself; all that is left without a finite difference has an infinite error. */
typedef struct gm_difference {
    int64_t count, differing, nan_pairs; /* elements; those that are not equal; those that are both NaN */
    int64_t first;                       /* of the elements that are not equal, counted from this part's own first; -1: none */
    double max_relative, sum_relative, max_absolute;
} gm_difference;
#define GM_NO_DIFFERENCE ((gm_difference){.first = -1})

typedef struct gm_compare_call {
    int64_t n;
    const void *x, *y; /* [n], no alignment needed */
    gm_dtype x_type, y_type;
    int x_swap, y_swap;
} gm_compare_call;

/* Writes one gm_difference for each GM_COMPARE_BLOCK elements (the last may be shorter); the bits depend on the block's elements alone. 64-bit
 * integers are compared exactly. */
enum { GM_COMPARE_BLOCK = 16384 };
int gm_cpu_compare(int threads, const gm_compare_call *call, gm_difference *blocks);

/* total becomes what is known of its elements with those of next behind them. */
void gm_difference_append(gm_difference *total, const gm_difference *next);

/* "OpenBLAS 0.3.21 ...", "13.0, driver for up to 13.0": for a person. text has room for GM_VERSION_TEXT bytes. Return text. */
enum { GM_VERSION_TEXT = 256 };
char *gm_blas_version(char *text);
char *gm_cuda_version(char *text);

#ifdef __cplusplus
}
#endif
#endif
