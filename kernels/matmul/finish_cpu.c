/* Fold and finish on the processor. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "kernels/element.h"
#include "kernels/host.h"
#include "kernels/matmul/calls.h"

enum { SEGMENT = 512 }; /* elements processed at a time, in buffers that the first-level cache holds */

#define ADD(type)                                                 \
    static void add_##type(type *to, const type *more, int64_t n) \
    {                                                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)       \
        {                                                         \
            to[i] += more[i];                                     \
        }                                                         \
    }
ADD(float)
ADD(double)
ADD(int32_t)

int gm_cpu_fold(int threads, const gm_fold_call *call)
{
#define FOLD(id, type)                                                                                              \
    case GM_DTYPE_##id:                                                                                             \
        _Pragma("omp parallel for num_threads(threads) schedule(static)") for (int64_t i = 0; i < call->rows; i++)  \
            add_##type((type *)call->acc + i * call->ld, (const type *)call->part + i * call->part_ld, call->cols); \
        return GM_OK;
    switch (call->type) {
        FOLD(F32, float)
        FOLD(F64, double)
        FOLD(I32, int32_t)
    default:
        return gm_fail(GM_EINTERNAL, "fold of %s", gm_dtype_name(call->type));
    }
}

static void scale(double *x, int64_t n, double factor)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* Of I32: integers to the next one that it holds, NaN to 0. */
static void round_I32(void *out, const double *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double limited = x[i] > INT32_MAX ? INT32_MAX : x[i] < INT32_MIN ? INT32_MIN : x[i];
        ((int32_t *)out)[i] = limited == limited ? (int32_t)limited : 0;
    }
}

/* Rounding of a row to a type of C: NULL for other integers. */
#define ROUND_UNSIGNED(id, ctype)
#define ROUND_SIGNED(id, ctype)
#define ROUND_FLOAT(id, ctype)                                    \
    static void round_##id(void *out, const double *x, int64_t n) \
    {                                                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)       \
        {                                                         \
            ((ctype *)out)[i] = gm_round_##ctype(x[i]);           \
        }                                                         \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) ROUND_##kind(id, ctype)
#include "base/types/dtypes.def"
#undef GM_DTYPE

#define ROUNDER_UNSIGNED(id) NULL
#define ROUNDER_SIGNED(id) NULL
#define ROUNDER_FLOAT(id) round_##id
static void (*rounder_of(gm_dtype type))(void *out, const double *x, int64_t n)
{
    static void (*const floats[GM_DTYPES])(void *out, const double *x, int64_t n) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) ROUNDER_##kind(id),
#include "base/types/dtypes.def"
#undef GM_DTYPE
    };
    return type == GM_DTYPE_I32 ? round_I32 : floats[type];
}

static void round_to_integers(double *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] = rint(x[i]);
}

static gm_nonfinite count_nonfinite(const double *x, int64_t n, double low, double high)
{
    uint64_t nan = 0, inf = 0, overflow = 0;
#pragma omp simd reduction(+ : nan, inf, overflow)
    for (int64_t i = 0; i < n; i++) {
        double magnitude = fabs(x[i]);
        nan += magnitude != magnitude;
        inf += magnitude > DBL_MAX;
        overflow += ((x[i] >= high) | (x[i] <= low)) & (magnitude <= DBL_MAX);
    }
    return (gm_nonfinite){nan, inf, overflow};
}

/* x = alpha acc + beta c0 for n elements from (i, j) on. The products are stored before they are added, in loops of
 * their own: no compiler makes a fused multiply-add of that, which would skip a rounding. */
static void evaluate(const gm_finish_call *call, int64_t i, int64_t j, int64_t n, double *x)
{
    double y[SEGMENT];
    if (call->acc != NULL) {
        const char *acc = (const char *)call->acc + (size_t)(i * call->ldacc + j) * gm_dtype_size(call->acc_type);
        gm_cpu_row_f64(x, acc, n, call->acc_type, 0);
    } else {
        memset(x, 0, (size_t)n * sizeof *x);
    }
    scale(x, n, call->alpha);
    if (call->c0 != NULL) {
        const char *c0 = (const char *)call->c0 + (size_t)(i * call->cols + j) * gm_dtype_size(call->c0_type);
        gm_cpu_row_f64(y, c0, n, call->c0_type, call->c0_swap);
        scale(y, n, call->beta);
        add_double(x, y, n);
    }
#pragma omp simd
    for (int64_t e = 0; e < n; e++) /* one NaN: its sign and payload depend on the order of the operands */
        x[e] = x[e] == x[e] ? x[e] : gm_bits_double(gm_format_nan(8, 53));
}

int gm_cpu_finish(int threads, const gm_finish_call *call)
{
    size_t size = gm_dtype_size(call->out_type);
    int64_t segments = gm_ceil_div(call->cols, SEGMENT);
    uint64_t nan = 0, inf = 0, overflow = 0;
    void (*round)(void *out, const double *x, int64_t n) = rounder_of(call->out_type);
    double low, high;
    if (call->rows == 0 || call->cols == 0)
        return GM_OK;
    if (round == NULL)
        return gm_fail(GM_EINTERNAL, "finish to %s", gm_dtype_name(call->out_type));
    gm_dtype_ends(call->out_type, &low, &high);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static) reduction(+ : nan, inf, overflow)
    for (int64_t i = 0; i < call->rows; i++) {
        for (int64_t s = 0; s < segments; s++) {
            double x[SEGMENT];
            int64_t j = s * SEGMENT, n = gm_min(SEGMENT, call->cols - j);
            evaluate(call, i, j, n, x);
            if (gm_dtype_get_kind(call->out_type) != GM_FLOAT)
                round_to_integers(x, n);
            round((char *)call->out + (size_t)(i * call->cols + j) * size, x, n);
            gm_nonfinite count = count_nonfinite(x, n, low, high);
            nan += count.nan;
            inf += count.inf;
            overflow += count.overflow;
        }
    }
    call->count->nan += nan;
    call->count->inf += inf;
    call->count->overflow += overflow;
    return GM_OK;
}
