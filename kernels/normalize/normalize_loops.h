/* normalize_loops.h - the steps of normalize_cpu.c, included once for each type of the arithmetic: REAL is float or
 * double, OF(name) the name of a function there, OF_TYPE(name, id) its name for an element type. p: elements, v:
 * values, n of them. */

GM_WIDE static void OF(scale)(REAL *v, const REAL *p, int64_t n, REAL sub, REAL factor, REAL add)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        v[i] = OF(gm_scaled)(p[i], sub, factor, add);
}

GM_WIDE static void OF(scale_each)(REAL *v, const REAL *p, int64_t n, const REAL *sub, const REAL *factor, REAL add)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        v[i] = OF(gm_scaled)(p[i], sub[i], factor[i], add);
}

static void OF(minus_log)(REAL *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = (REAL)gm_minus_log((double)v[i]);
}

/* A loop for each rounding: it is a constant there, or the loop does not vectorize. */
GM_WIDE static void OF(whole)(REAL *v, int64_t n, gm_rounding rounding)
{
    if (rounding == GM_ROUND_NEAREST_EVEN) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            v[i] = OF(gm_whole)(v[i], GM_ROUND_NEAREST_EVEN);
    } else if (rounding == GM_ROUND_HALF_UP) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            v[i] = OF(gm_whole)(v[i], GM_ROUND_HALF_UP);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            v[i] = OF(gm_whole)(v[i], GM_ROUND_TRUNCATE);
    }
}

GM_WIDE static int64_t OF(count_nan)(const REAL *v, int64_t n)
{
    int64_t count = 0;
#pragma omp simd reduction(+ : count)
    for (int64_t i = 0; i < n; i++)
        count += v[i] != v[i];
    return count;
}

/* sub and factor of elements [at, at + n) of the call, one for each element. */
static void OF(spread)(const gm_normalize_call *call, int64_t at, int64_t n, REAL *sub, REAL *factor)
{
    const REAL *from_sub = call->sub, *from_factor = call->factor;
    for (int64_t done = 0, m; done < n; done += m) {
        int64_t row = (at + done) / call->cols, col = (at + done) % call->cols;
        int64_t first = row * call->row_step + col * call->col_step;
        m = gm_min(n - done, call->cols - col);
        for (int64_t i = 0; i < m; i++) {
            sub[done + i] = from_sub[first + i * call->col_step];
            factor[done + i] = from_factor[first + i * call->col_step];
        }
    }
}

/* Values to elements of a type; returns the number of those that are clipped. */
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                                                           \
    GM_WIDE static int64_t OF_TYPE(store, id)(const gm_normalize_call *call, void *to, const REAL *v, int64_t n) \
    {                                                                                                            \
        gm_raw##bytes *out = to, below = (gm_raw##bytes)call->below, above = (gm_raw##bytes)call->above;         \
        REAL lo = (REAL)call->lo, hi = (REAL)call->hi;                                                           \
        int64_t clipped = 0;                                                                                     \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                      \
        {                                                                                                        \
            out[i] = OF_TYPE(gm_store, id)(v[i], lo, hi, below, above);                                          \
        }                                                                                                        \
        _Pragma("omp simd reduction(+ : clipped)") for (int64_t i = 0; i < n; i++)                               \
        {                                                                                                        \
            clipped += OF_TYPE(gm_clips, id)(v[i], lo, hi);                                                      \
        }                                                                                                        \
        return clipped;                                                                                          \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

static int64_t (*const OF(stores)[GM_DTYPES])(const gm_normalize_call *call, void *out, const REAL *v, int64_t n) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) OF_TYPE(store, id),
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

/* Elements whose factor is NaN, which are NaN in v, become `marked`, unless they are NaN themselves. factor: one for
 * each element, or one for all. */
static void OF(mark)(const gm_normalize_call *call, void *out, const REAL *p, int64_t n, const REAL *factor, int each,
                     gm_normalize_counts *counts)
{
    for (int64_t i = 0; i < n; i++) {
        REAL f = factor[each ? i : 0];
        if (f != f && !(p[i] != p[i])) {
            markers[call->out_type](out, i, call->marked);
            counts->marked++;
            counts->nan--;
        }
    }
}

/* Elements [at, at + n) of the call. */
static gm_normalize_counts OF(run)(const gm_normalize_call *call, int64_t at, int64_t n)
{
    REAL p[SEGMENT], v[SEGMENT], sub[SEGMENT], factor[SEGMENT], add = (REAL)call->add;
    int each = call->row_step || call->col_step;
    void *out = (char *)call->out + (size_t)at * gm_dtype_size(call->out_type);
    gm_normalize_counts counts = {0};
    OF(read)(p, (const char *)call->src + (size_t)at * gm_dtype_size(call->src_type), n, call->src_type, call->swap);
    if (each) {
        OF(spread)(call, at, n, sub, factor);
        OF(scale_each)(v, p, n, sub, factor, add);
    } else {
        *factor = *(const REAL *)call->factor;
        OF(scale)(v, p, n, *(const REAL *)call->sub, *factor, add);
    }
    if (call->log)
        OF(minus_log)(v, n);
    if (gm_dtype_get_kind(call->out_type) != GM_FLOAT)
        OF(whole)(v, n, call->rounding);
    counts.clipped = (uint64_t)OF(stores)[call->out_type](call, out, v, n);
    counts.nan = (uint64_t)OF(count_nan)(v, n);
    if (OF(count_nan)(factor, each ? n : 1) > 0)
        OF(mark)(call, out, p, n, factor, each, &counts);
    return counts;
}
