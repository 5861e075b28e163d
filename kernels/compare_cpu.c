/* Differences of two arrays of any two types. Both are widened to a type that holds every value of theirs: float64, or long double
 * where a 64-bit integer is among them. */
#include <float.h>
#include <math.h>

#include "base/size.h"
#include "kernels/element.h"
#include "kernels/kernels.h"

_Static_assert(LDBL_MANT_DIG >= 64, "long double holds 64-bit integers");

enum {
    SEGMENT = 512, /* elements that are widened at a time */
    LANES = 8      /* partial sums beside each other */
};

#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    static void widen_##id(long double *dst, const char *src, int64_t n, int swap) \
    { \
        for (int64_t i = 0; i < n; i++) { \
            gm_raw##bytes raw; \
            memcpy(&raw, src + i * bytes, bytes); \
            dst[i] = GM_VALUE_##kind(long double, ctype, gm_order##bytes(raw, swap)); \
        } \
    }
#include "base/dtypes.def"
#undef GM_DTYPE

static void (*const widen[GM_DTYPES])(long double *dst, const char *src, int64_t n, int swap) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) widen_##id,
#include "base/dtypes.def"
#undef GM_DTYPE
};

static void row_long(long double *dst, const char *src, int64_t n, gm_dtype type, int swap)
{
    widen[type](dst, src, n, swap);
}

static void row_double(double *dst, const char *src, int64_t n, gm_dtype type, int swap)
{
    gm_cpu_row_f64(dst, src, n, type, swap);
}

/* One segment, without a branch. Lane l sums the errors of elements l, l + LANES, ...: an order that is the same for every compiler.
 * A finite difference may be too large for the type; its ratio to y is not. */
#define SEGMENT_OF(name, real, magnitude) \
    static void compare_##name(const real *x, const real *y, int64_t n, gm_difference *d) \
    { \
        real sum[LANES] = {0}, most = 0, far = 0; \
        int64_t differing = 0, nan = 0; \
        for (int64_t i = 0; i < n; i++) { \
            int both = (x[i] != x[i]) & (y[i] != y[i]); \
            int equal = (x[i] == y[i]) | both; \
            real size = magnitude(y[i]), difference = magnitude(x[i] - y[i]); \
            real halves = magnitude(x[i] / 2 - y[i] / 2), infinite = (real)INFINITY; \
            real ratio = size == 0 ? difference : difference < infinite ? difference / size : halves / (size / 2); \
            difference = equal ? 0 : difference != difference ? infinite : difference; \
            ratio = equal ? 0 : ratio != ratio ? infinite : ratio; \
            most = ratio > most ? ratio : most; \
            far = difference > far ? difference : far; \
            sum[i % LANES] += ratio; \
            differing += !equal; \
            nan += both; \
        } \
        d->sum_relative += (double)(((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]))); \
        d->max_relative = fmax(d->max_relative, (double)most); \
        d->max_absolute = fmax(d->max_absolute, (double)far); \
        for (int64_t i = 0; d->first < 0 && differing && i < n; i++) \
            if (!(x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]))) \
                d->first = d->count + i; \
        d->count += n; \
        d->differing += differing; \
        d->nan_pairs += nan; \
    }
SEGMENT_OF(double, double, fabs)
SEGMENT_OF(long, long double, fabsl)

static int is_long(gm_dtype type)
{
    return gm_dtype_get_kind(type) != GM_FLOAT && gm_dtype_size(type) == 8;
}

#define BLOCK_OF(name, real) \
    static void block_##name(const gm_compare_call *call, int64_t first, int64_t n, gm_difference *d) \
    { \
        real x[SEGMENT], y[SEGMENT]; \
        size_t x_size = gm_dtype_size(call->x_type), y_size = gm_dtype_size(call->y_type); \
        for (int64_t i = 0; i < n; i += SEGMENT) { \
            int64_t part = gm_min(SEGMENT, n - i); \
            row_##name(x, (const char *)call->x + (size_t)(first + i) * x_size, part, call->x_type, call->x_swap); \
            row_##name(y, (const char *)call->y + (size_t)(first + i) * y_size, part, call->y_type, call->y_swap); \
            compare_##name(x, y, part, d); \
        } \
    }
BLOCK_OF(double, double)
BLOCK_OF(long, long double)

int gm_cpu_compare(int threads, const gm_compare_call *call, gm_difference *blocks)
{
    int64_t count = gm_ceil_div(call->n, GM_COMPARE_BLOCK);
    int exactly = is_long(call->x_type) || is_long(call->y_type);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t b = 0; b < count; b++) {
        int64_t first = b * GM_COMPARE_BLOCK, n = gm_min(GM_COMPARE_BLOCK, call->n - first);
        blocks[b] = GM_NO_DIFFERENCE;
        if (exactly)
            block_long(call, first, n, &blocks[b]);
        else
            block_double(call, first, n, &blocks[b]);
    }
    return GM_OK;
}

void gm_difference_append(gm_difference *total, const gm_difference *next)
{
    if (total->first < 0 && next->first >= 0)
        total->first = total->count + next->first;
    total->count += next->count;
    total->differing += next->differing;
    total->nan_pairs += next->nan_pairs;
    total->sum_relative += next->sum_relative;
    total->max_relative = fmax(total->max_relative, next->max_relative);
    total->max_absolute = fmax(total->max_absolute, next->max_absolute);
}
