/* Differences of two arrays of any two types. Both are widened to a type that holds all their values: float64, or long
 * double if one of them is of 64-bit integers. */
#include <float.h>
#include <math.h>

#include "base/size.h"
#include "kernels/element.h"
#include "kernels/host.h"

_Static_assert(LDBL_MANT_DIG >= 64, "long double holds 64-bit integers");

enum {
    SEGMENT = 512, /* elements that are widened at a time */
    LANES = 8      /* parallel partial sums */
};

#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                                \
    static void widen_##id(long double *dst, const char *src, int64_t n, int swap)    \
    {                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                             \
            gm_raw##bytes raw;                                                        \
            memcpy(&raw, src + i * bytes, bytes);                                     \
            dst[i] = GM_VALUE_##kind(long double, ctype, gm_order##bytes(raw, swap)); \
        }                                                                             \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

static void (*const widen[GM_DTYPES])(long double *dst, const char *src, int64_t n, int swap) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) widen_##id,
#include "base/types/dtypes.def"
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

#define REAL double
#define MAGNITUDE(x) fabs(x)
#define OF(name) name##_double
#include "kernels/compare_loops.h"
#undef REAL
#undef MAGNITUDE
#undef OF

#define REAL long double
#define MAGNITUDE(x) fabsl(x)
#define OF(name) name##_long
#include "kernels/compare_loops.h"
#undef REAL
#undef MAGNITUDE
#undef OF

/* float64 does not hold every value of the type. */
static int is_long(gm_dtype type)
{
    return gm_dtype_digits(type) > gm_dtype_digits(GM_DTYPE_F64);
}

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
