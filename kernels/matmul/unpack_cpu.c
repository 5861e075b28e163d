#include <string.h>

#include "base/size.h"
#include "kernels/element.h"
#include "kernels/host.h"
#include "kernels/matmul/calls.h"

/* A row of each type, to float32 and to float64; swap is a constant in each loop, or the loop is no vector loop. */
#define LOOP(id, to, bytes, swap)                       \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
    {                                                   \
        gm_raw##bytes raw;                              \
        memcpy(&raw, from + i * bytes, bytes);          \
        dst[i] = gm_##to##_##id(raw, swap);             \
    }
#define ROW(id, ctype, to, bytes)                                                 \
    static void row_##to##_##id(ctype *dst, const void *src, int64_t n, int swap) \
    {                                                                             \
        const char *from = src;                                                   \
        if (swap) {                                                               \
            LOOP(id, to, bytes, 1)                                                \
        } else {                                                                  \
            LOOP(id, to, bytes, 0)                                                \
        }                                                                         \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) ROW(id, float, f32, bytes) ROW(id, double, f64, bytes)
#include "base/types/dtypes.def"
#undef GM_DTYPE

static const struct {
    void (*f32)(float *dst, const void *src, int64_t n, int swap);
    void (*f64)(double *dst, const void *src, int64_t n, int swap);
} rows[GM_DTYPES] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) {row_f32_##id, row_f64_##id},
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

void gm_cpu_row_f32(float *dst, const void *src, int64_t n, gm_dtype type, int swap)
{
    rows[type].f32(dst, src, n, swap);
}

void gm_cpu_row_f64(double *dst, const void *src, int64_t n, gm_dtype type, int swap)
{
    rows[type].f64(dst, src, n, swap);
}

/* 8-bit integers go to their panel as they are. */
static int is_copy(const gm_unpack_call *call)
{
    return call->src_type == call->dst_type && (!call->swap || gm_dtype_size(call->src_type) == 1);
}

static void convert(const gm_unpack_call *call, void *dst, const void *src, int64_t n)
{
    if (is_copy(call)) {
        memcpy(dst, src, (size_t)n * gm_dtype_size(call->dst_type));
    } else if (call->dst_type == GM_DTYPE_F32) {
        gm_cpu_row_f32(dst, src, n, call->src_type, call->swap);
    } else {
        gm_cpu_row_f64(dst, src, n, call->src_type, call->swap);
    }
}

static int underflows(const void *src, int64_t n, int swap)
{
    const char *from = src;
    int any = 0;
    _Pragma("omp simd reduction(| : any)") for (int64_t i = 0; i < n; i++)
    {
        gm_raw8 raw;
        memcpy(&raw, from + i * (int64_t)sizeof raw, sizeof raw);
        any |= gm_float_underflows(gm_f64_F64(raw, swap));
    }
    return any;
}

int gm_cpu_unpack(int threads, const gm_unpack_call *call)
{
    enum { SEGMENT = 16384 }; /* a long row is work for several threads */
    size_t from = gm_dtype_size(call->src_type), to = gm_dtype_size(call->dst_type);
    int64_t segments = gm_ceil_div(call->cols, SEGMENT);
    int narrows = call->underflow && call->src_type == GM_DTYPE_F64 && call->dst_type == GM_DTYPE_F32, any = 0;
    if (call->dst_type != GM_DTYPE_F32 && call->dst_type != GM_DTYPE_F64 && !is_copy(call))
        return gm_fail(GM_EINTERNAL, "unpack of %s to %s", gm_dtype_name(call->src_type),
                       gm_dtype_name(call->dst_type));
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static) reduction(| : any)
    for (int64_t i = 0; i < call->rows; i++) {
        for (int64_t s = 0; s < segments; s++) {
            int64_t j = s * SEGMENT, n = gm_min(SEGMENT, call->cols - j);
            const char *src = (const char *)call->src + (size_t)i * call->src_pitch + (size_t)j * from;
            convert(call, (char *)call->dst + (size_t)(i * call->ld + j) * to, src, n);
            if (narrows)
                any |= underflows(src, n, call->swap);
        }
    }
    if (any)
        *call->underflow = 1;
    return GM_OK;
}
