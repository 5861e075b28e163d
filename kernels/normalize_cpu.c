/* normalize on the processor: a segment at a time, each rule of kernels/normalize.h as a loop of its own that makes vector operations. */
#include <string.h>

#include "base/size.h"
#include "kernels/kernels.h"
#include "kernels/normalize.h"

/* Compiled for wider vectors too; the program takes the best its processor has. Nothing fuses: the bits are the same in all of them. */
#if defined __x86_64__ && defined __GNUC__ && !defined __SANITIZE_THREAD__
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

enum {
    SEGMENT = 512,         /* elements that are worked on at a time, in buffers that the first cache holds */
    BATCH = 32 * SEGMENT   /* that a thread takes at a time */
};

/* For float and double: a segment's steps. p: elements, v: values. */
#define STEPS(real) \
    WIDE static void scale_##real(real *v, const real *p, int64_t n, real sub, real factor, real add) \
    { \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
        { \
            v[i] = gm_scaled_##real(p[i], sub, factor, add); \
        } \
    } \
    WIDE static void scale_each_##real(real *v, const real *p, int64_t n, const real *sub, const real *factor, real add) \
    { \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
        { \
            v[i] = gm_scaled_##real(p[i], sub[i], factor[i], add); \
        } \
    } \
    static void minus_log_##real(real *v, int64_t n) \
    { \
        for (int64_t i = 0; i < n; i++) \
            v[i] = (real)gm_minus_log((double)v[i]); \
    } \
    WIDE static void whole_##real(real *v, int64_t n, gm_rounding rounding) \
    { \
        if (rounding == GM_ROUND_NEAREST_EVEN) { \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
            { \
                v[i] = gm_whole_##real(v[i], GM_ROUND_NEAREST_EVEN); \
            } \
        } else if (rounding == GM_ROUND_HALF_UP) { \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
            { \
                v[i] = gm_whole_##real(v[i], GM_ROUND_HALF_UP); \
            } \
        } else { \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
            { \
                v[i] = gm_whole_##real(v[i], GM_ROUND_TRUNCATE); \
            } \
        } \
    } \
    WIDE static int64_t count_nan_##real(const real *v, int64_t n) \
    { \
        int64_t count = 0; \
        _Pragma("omp simd reduction(+ : count)") for (int64_t i = 0; i < n; i++) \
        { \
            count += v[i] != v[i]; \
        } \
        return count; \
    } \
    /* sub and factor of n elements from number `at` of the call on, in arrays. */ \
    static void spread_##real(const gm_normalize_call *call, int64_t at, int64_t n, real *sub, real *factor) \
    { \
        const real *from_sub = call->sub, *from_factor = call->factor; \
        for (int64_t done = 0, m; done < n; done += m) { \
            int64_t row = (at + done) / call->cols, col = (at + done) % call->cols; \
            int64_t first = row * call->row_step + col * call->col_step; \
            m = gm_min(n - done, call->cols - col); \
            for (int64_t i = 0; i < m; i++) { \
                sub[done + i] = from_sub[first + i * call->col_step]; \
                factor[done + i] = from_factor[first + i * call->col_step]; \
            } \
        } \
    }
STEPS(float)
STEPS(double)

/* A segment to elements of a type; returns how many were clipped. */
#define STORE(id, real, bytes) \
    WIDE static int64_t store_##real##_##id(const gm_normalize_call *call, void *to, const real *v, int64_t n) \
    { \
        gm_raw##bytes *out = to, below = (gm_raw##bytes)call->below, above = (gm_raw##bytes)call->above; \
        real lo = (real)call->lo, hi = (real)call->hi; \
        int64_t clipped = 0; \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
        { \
            out[i] = gm_store_##real##_##id(v[i], lo, hi, below, above); \
        } \
        _Pragma("omp simd reduction(+ : clipped)") for (int64_t i = 0; i < n; i++) \
        { \
            clipped += gm_clips_##real##_##id(v[i], lo, hi); \
        } \
        return clipped; \
    }
#define MARK(id, bytes) \
    static void mark_##id(void *to, int64_t i, uint64_t value) \
    { \
        ((gm_raw##bytes *)to)[i] = (gm_raw##bytes)value; \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) STORE(id, float, bytes) STORE(id, double, bytes) MARK(id, bytes)
#include "base/dtypes.def"
#undef GM_DTYPE

static const struct {
    int64_t (*store_float)(const gm_normalize_call *call, void *out, const float *v, int64_t n);
    int64_t (*store_double)(const gm_normalize_call *call, void *out, const double *v, int64_t n);
    void (*mark)(void *out, int64_t i, uint64_t value);
} types[GM_DTYPES] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) {store_float_##id, store_double_##id, mark_##id},
#include "base/dtypes.def"
#undef GM_DTYPE
};

static void read_float(float *p, const void *src, int64_t n, gm_dtype type, int swap)
{
    gm_cpu_row_f32(p, src, n, type, swap);
}

static void read_double(double *p, const void *src, int64_t n, gm_dtype type, int swap)
{
    gm_cpu_row_f64(p, src, n, type, swap);
}

/* Elements at .. at + n - 1 of the call. Marked ones come out as NaN: they are mended where there are any. */
#define RUN(real) \
    static gm_normalize_counts run_##real(const gm_normalize_call *call, int64_t at, int64_t n) \
    { \
        real p[SEGMENT], v[SEGMENT], sub[SEGMENT], factor[SEGMENT], add = (real)call->add; \
        int each = call->row_step || call->col_step; \
        void *out = (char *)call->out + (size_t)at * gm_dtype_size(call->out_type); \
        gm_normalize_counts counts = {0}; \
        read_##real(p, (const char *)call->src + (size_t)at * gm_dtype_size(call->src_type), n, call->src_type, call->swap); \
        if (each) { \
            spread_##real(call, at, n, sub, factor); \
            scale_each_##real(v, p, n, sub, factor, add); \
        } else { \
            *factor = *(const real *)call->factor; \
            scale_##real(v, p, n, *(const real *)call->sub, *factor, add); \
        } \
        if (call->log) \
            minus_log_##real(v, n); \
        if (gm_dtype_get_kind(call->out_type) != GM_FLOAT) \
            whole_##real(v, n, call->rounding); \
        counts.clipped = (uint64_t)types[call->out_type].store_##real(call, out, v, n); \
        counts.nan = (uint64_t)count_nan_##real(v, n); \
        if (count_nan_##real(factor, each ? n : 1) > 0) { \
            for (int64_t i = 0; i < n; i++) { \
                real f = factor[each ? i : 0]; \
                if (f != f && !(p[i] != p[i])) { \
                    types[call->out_type].mark(out, i, call->marked); \
                    counts.marked++; \
                    counts.nan--; \
                } \
            } \
        } \
        return counts; \
    }
RUN(float)
RUN(double)

int gm_cpu_normalize(int threads, const gm_normalize_call *call)
{
    int64_t total = call->rows * call->cols, batches = gm_ceil_div(total, BATCH);
    uint64_t clipped = 0, nan = 0, marked = 0;
    threads = batches > 1 ? threads : 1; /* threads that wait for each other cost more than a short piece */
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : clipped, nan, marked)
    for (int64_t b = 0; b < batches; b++) {
        int64_t end = gm_min(total, (b + 1) * BATCH);
        for (int64_t at = b * BATCH; at < end; at += SEGMENT) {
            int64_t n = gm_min(SEGMENT, end - at);
            gm_normalize_counts counts = call->wide ? run_double(call, at, n) : run_float(call, at, n);
            clipped += counts.clipped;
            nan += counts.nan;
            marked += counts.marked;
        }
    }
    call->counts->clipped += clipped;
    call->counts->nan += nan;
    call->counts->marked += marked;
    return GM_OK;
}
