/* Fold and finish. Intrinsics round each operation: nvcc must not fuse a product and a sum into one rounding. */
#include <math.h>

#include "kernels/dispatch.cuh"
#include "kernels/elementwise_cuda.cuh"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/launch_cuda.cuh"

static __device__ __forceinline__ float add_rounded(float a, float b)
{
    return __fadd_rn(a, b);
}

static __device__ __forceinline__ double add_rounded(double a, double b)
{
    return __dadd_rn(a, b);
}

static __device__ __forceinline__ int32_t add_rounded(int32_t a, int32_t b)
{
    return a + b;
}

template <typename REAL>
static __global__ void __launch_bounds__(LANES *WARPS) fold(gm_fold_call call)
{
    elementwise(call.rows, call.cols, [&](int64_t i, int64_t j, int n) {
        const REAL *part = (const REAL *)call.part + i * call.part_ld + j;
        REAL *acc = (REAL *)call.acc + i * call.ld + j;
        REAL x[EACH], y[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e < n) {
                x[e] = acc[e * LANES];
                y[e] = part[e * LANES];
            }
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e < n)
                acc[e * LANES] = add_rounded(x[e], y[e]);
        }
    });
}

template <typename REAL>
static int launch_fold(gm_cuda_stream stream, const gm_fold_call *call)
{
    if (call->rows == 0 || call->cols == 0)
        return load_code(fold<REAL>);
    fold<REAL><<<elementwise_grid(call->rows, call->cols), elementwise_block(), 0, stream>>>(*call);
    return cudaGetLastError();
}

extern "C" int gm_cuda_fold(gm_cuda_stream stream, const gm_fold_call *call)
{
    return call->type == GM_DTYPE_F32   ? launch_fold<float>(stream, call)
           : call->type == GM_DTYPE_F64 ? launch_fold<double>(stream, call)
           : call->type == GM_DTYPE_I32 ? launch_fold<int32_t>(stream, call)
                                        : cudaErrorInvalidValue;
}

/* Stands for an element type when there is no c0. */
struct no_element {
    typedef gm_raw1 raw;
    static __device__ __forceinline__ void read(raw, int, double *value)
    {
        *value = 0;
    }
};

static __device__ __forceinline__ double load_acc(const gm_finish_call &call, int64_t at)
{
    return call.acc == NULL                ? 0
           : call.acc_type == GM_DTYPE_F32 ? ((const float *)call.acc)[at]
           : call.acc_type == GM_DTYPE_I32 ? ((const int32_t *)call.acc)[at]
                                           : ((const double *)call.acc)[at];
}

/* The types of C are floats, and I32. */
#define STORE_UNSIGNED(id, ctype)
#define STORE_SIGNED(id, ctype)
#define STORE_FLOAT(id, ctype)                             \
    case GM_DTYPE_##id:                                    \
        ((ctype *)call.out)[at] = gm_round_##ctype(value); \
        break;

static __device__ __forceinline__ void store_out(const gm_finish_call &call, int64_t at, double value)
{
    value = value == value ? value : gm_bits_double(gm_format_nan(8, 53)); /* one NaN, as on the processor */
    switch (call.out_type) {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) STORE_##kind(id, ctype)
#include "base/types/dtypes.def"
#undef GM_DTYPE
    case GM_DTYPE_I32: /* what is beyond an end to that end */
        ((int32_t *)call.out)[at] = value == value ? __double2int_rn(value) : 0;
        break;
    default:
        break; /* gm_cuda_finish() takes no other */
    }
}

/* Blocks of a kernel on a multiprocessor, which limits the registers of a thread: with fewer blocks, the loads under
 * way do not reach the rate of the memory. */
enum { FINISH_BLOCKS = 5 };

/* low, high: the ends of the type of C (gm_dtype_ends). The types of acc and out are tested at run time, the same way
 * in all threads: the kernel is bound by memory. */
template <typename ELEMENT>
static __global__ void __launch_bounds__(LANES *WARPS, FINISH_BLOCKS)
    finish(gm_finish_call call, double low, double high)
{
    const bool add = call.c0 != NULL, is_integer = call.out_type == GM_DTYPE_I32;
    unsigned nan = 0, inf = 0, over = 0;
    elementwise(call.rows, call.cols, [&](int64_t i, int64_t j, int n) {
        double x[EACH];
        typename ELEMENT::raw raw[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e < n) {
                x[e] = load_acc(call, i * call.ldacc + j + e * LANES);
                raw[e] = add ? ((const typename ELEMENT::raw *)call.c0)[i * call.cols + j + e * LANES] : 0;
            }
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e < n) {
                double value = __dmul_rn(call.alpha, x[e]), more;
                if (add) {
                    ELEMENT::read(raw[e], call.c0_swap, &more);
                    value = __dadd_rn(value, __dmul_rn(call.beta, more));
                }
                value = is_integer ? rint(value) : value;
                nan += isnan(value);
                inf += isinf(value);
                over += isfinite(value) && (value <= low || value >= high);
                store_out(call, i * call.cols + j + e * LANES, value);
            }
        }
    });
    /* Usually there is nothing to count. */
    if (nan != 0)
        atomicAdd((unsigned long long *)&call.count->nan, nan);
    if (inf != 0)
        atomicAdd((unsigned long long *)&call.count->inf, inf);
    if (over != 0)
        atomicAdd((unsigned long long *)&call.count->overflow, over);
}

extern "C" int gm_cuda_finish(gm_cuda_stream stream, const gm_finish_call *call)
{
    if (call->rows == 0 || call->cols == 0)
        return call->c0 == NULL
                   ? load_code(finish<no_element>)
                   : dispatch(call->c0_type, [&](auto element) { return load_code(finish<decltype(element)>); });
    if (call->c0 != NULL && misaligned(call->c0, 0, call->c0_type))
        return cudaErrorMisalignedAddress;
    if (gm_dtype_get_kind(call->out_type) != GM_FLOAT && call->out_type != GM_DTYPE_I32)
        return cudaErrorInvalidValue;
    double low, high;
    gm_dtype_ends(call->out_type, &low, &high);
    dim3 grid = elementwise_grid(call->rows, call->cols), block = elementwise_block();
    if (call->c0 == NULL) {
        finish<no_element><<<grid, block, 0, stream>>>(*call, low, high);
        return cudaGetLastError();
    }
    return dispatch(call->c0_type, [&](auto element) {
        finish<decltype(element)><<<grid, block, 0, stream>>>(*call, low, high);
        return cudaGetLastError();
    });
}
