/* Products of a matrix with vectors on the processor. A row's sums and a column's sums are made in an order that
 * depends on the matrix alone: the same bits with any number of threads. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "kernels/host.h"
#include "kernels/matmul/calls.h"

enum {
    SEGMENT =
        512,  /* columns that are worked on at a time: with the sums of their columns they stay in the first cache */
    LANES = 8 /* parallel partial sums of a row */
};

/* n elements of row i from column j on, as float64: in place, or converted into buffer [SEGMENT]. */
static const double *segment(const gm_probe_call *call, int64_t i, int64_t j, int64_t n, double *buffer)
{
    const char *from = (const char *)call->m + (size_t)i * call->pitch + (size_t)j * gm_dtype_size(call->type);
    if (call->type == GM_DTYPE_F64 && !call->swap && (uintptr_t)from % sizeof(double) == 0)
        return (const double *)(const void *)from;
    gm_cpu_row_f64(buffer, from, n, call->type, call->swap);
    return buffer;
}

/* The sum over j of an expression in x[j] and p[j]. Lane l takes j = l, l + LANES, ...: a fixed order that still
 * vectorizes. */
#define SUM(name, expression)                                                                             \
    static double name(const double *x, const double *p, int64_t n)                                       \
    {                                                                                                     \
        double lane[LANES] = {0};                                                                         \
        int64_t j0 = 0;                                                                                   \
        (void)p;                                                                                          \
        for (; j0 + LANES <= n; j0 += LANES) {                                                            \
            for (int l = 0; l < LANES; l++) {                                                             \
                int64_t j = j0 + l;                                                                       \
                lane[l] += (expression);                                                                  \
            }                                                                                             \
        }                                                                                                 \
        for (int64_t j = j0; j < n; j++) {                                                                \
            lane[j - j0] += (expression);                                                                 \
        }                                                                                                 \
        return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])); \
    }
SUM(sum_products, x[j] * p[j])
SUM(sum_magnitudes, fabs(x[j]) * fabs(p[j]))
SUM(sum_squares, x[j] * x[j])

/* Adds a square to a sum that float64 may not hold (calls.h). */
static void add_square(double *sum, double x)
{
    double more = *sum + x * x, small = x * 0x1p-600;
    if (*sum >= 0 && (isfinite(more) || !isfinite(x)))
        *sum = more;
    else
        *sum = (*sum < 0 ? *sum : -(*sum * 0x1p-600) * 0x1p-600) - small * small;
}

/* Is this, plus other squares, what a sum of squares is now? Only elements above 1e150 make it another form. */
static int is_plain(double before, double now)
{
    return before >= 0 && isfinite(now);
}

static int is_wide(const gm_probe_call *call)
{
    return call->wide && call->type == GM_DTYPE_F64; /* squares of other elements are not so large */
}

static double squares_of_row(const gm_probe_call *call, int64_t i)
{
    double buffer[SEGMENT], sum = call->r_sq[i];
    for (int64_t j = 0; j < call->cols; j += SEGMENT) {
        int64_t n = gm_min(SEGMENT, call->cols - j);
        const double *x = segment(call, i, j, n, buffer);
        for (int64_t l = 0; l < n; l++)
            add_square(&sum, x[l]);
    }
    return sum;
}

/* The squares of columns j .. j + n - 1 once more, of those whose sums are not plain. before: their sums without. */
static void add_squares(const gm_probe_call *call, int64_t i0, int64_t i1, int64_t j, int64_t n, const double *before)
{
    double buffer[SEGMENT], *sum = call->s_sq + j;
    int place[SEGMENT], places = 0;
    for (int l = 0; l < n; l++)
        if (!is_plain(before[l], sum[l])) {
            place[places++] = l;
            sum[l] = before[l];
        }
    for (int64_t i = i0; i < i1 && places > 0; i++) {
        const double *x = segment(call, i, j, n, buffer);
        for (int l = 0; l < places; l++)
            add_square(&sum[place[l]], x[place[l]]);
    }
}

GM_WIDE static void add_row(const gm_probe_call *call, int64_t i)
{
    double buffer[SEGMENT], r = 0, r_abs = 0, r_sq = 0;
    for (int64_t j = 0; j < call->cols; j += SEGMENT) {
        int64_t n = gm_min(SEGMENT, call->cols - j);
        const double *x = segment(call, i, j, n, buffer);
        r += call->r != NULL ? sum_products(x, call->p + j, n) : 0;
        r_abs += call->r_abs != NULL ? sum_magnitudes(x, call->p + j, n) : 0;
        r_sq += call->r_sq != NULL ? sum_squares(x, NULL, n) : 0;
    }
    if (call->r != NULL)
        call->r[i] += r;
    if (call->r_abs != NULL)
        call->r_abs[i] += r_abs;
    if (call->r_sq != NULL)
        call->r_sq[i] = !is_wide(call) || is_plain(call->r_sq[i], call->r_sq[i] + r_sq) ? call->r_sq[i] + r_sq
                                                                                        : squares_of_row(call, i);
}

/* Columns j .. j + n - 1 of rows i0 .. i1 - 1. */
GM_WIDE static void add_columns(const gm_probe_call *call, int64_t i0, int64_t i1, int64_t j, int64_t n)
{
    double buffer[SEGMENT], before[SEGMENT];
    double *s = call->s ? call->s + j : NULL, *s_abs = call->s_abs ? call->s_abs + j : NULL,
           *s_sq = call->s_sq ? call->s_sq + j : NULL;
    int wide = s_sq != NULL && is_wide(call);
    if (wide)
        memcpy(before, s_sq, (size_t)n * sizeof *before);
    for (int64_t i = i0; i < i1; i++) {
        const double *x = segment(call, i, j, n, buffer);
        double q = call->q ? call->q[i] : 0, q_abs = fabs(q);
        if (s != NULL) {
#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                s[l] += q * x[l];
        }
        if (s_abs != NULL) {
#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                s_abs[l] += q_abs * fabs(x[l]);
        }
        if (s_sq != NULL) {
#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                s_sq[l] += x[l] * x[l];
        }
    }
    if (wide)
        add_squares(call, i0, i1, j, n, before);
}

static int wants_rows(const gm_probe_call *call)
{
    return call->r != NULL || call->r_abs != NULL || call->r_sq != NULL;
}

static int wants_columns(const gm_probe_call *call)
{
    return call->s != NULL || call->s_abs != NULL || call->s_sq != NULL;
}

static double *moved(double *out, int64_t elements)
{
    return out ? out + elements : NULL;
}

/* A matrix of a batch, on one thread. */
static void probe_alone(const gm_probe_call *call, int64_t index)
{
    gm_probe_call one = *call;
    one.m = (const char *)call->m + (size_t)index * call->next_m;
    one.p = call->p ? call->p + index * call->next_p : NULL;
    one.q = call->q ? call->q + index * call->next_q : NULL;
    one.r = moved(call->r, index * call->next_r);
    one.r_abs = moved(call->r_abs, index * call->next_r);
    one.r_sq = moved(call->r_sq, index * call->next_r);
    one.s = moved(call->s, index * call->next_s);
    one.s_abs = moved(call->s_abs, index * call->next_s);
    one.s_sq = moved(call->s_sq, index * call->next_s);
    for (int64_t i = 0; wants_rows(&one) && i < one.rows; i++)
        add_row(&one, i);
    for (int64_t j = 0; wants_columns(&one) && j < one.cols; j += SEGMENT)
        add_columns(&one, 0, one.rows, j, gm_min(SEGMENT, one.cols - j));
}

int gm_cpu_probe(int threads, const gm_probe_call *call)
{
    int rows_wanted = wants_rows(call), columns_wanted = wants_columns(call);
    int64_t strips = gm_ceil_div(call->cols, SEGMENT);
    /* Rows are shared out by row and columns by strip; where both are asked for, a batch of rows is taken both ways
     * while the caches still hold it. No thread waits for another: rows belong to one batch, and a strip to one thread
     * (a static schedule of equal loops is the same each time). */
    int64_t batch = call->rows;
    if (call->batch > 1) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t index = 0; index < call->batch; index++)
            probe_alone(call, index);
        return GM_OK;
    }
    if (rows_wanted && columns_wanted)
        batch = gm_max((1 << 20) / gm_max((int64_t)call->pitch, 1), 1) * threads;
#pragma omp parallel num_threads(threads)
    for (int64_t i0 = 0; i0 < call->rows; i0 += batch) {
        int64_t i1 = gm_min(i0 + batch, call->rows);
        if (rows_wanted) {
#pragma omp for schedule(static) nowait
            for (int64_t i = i0; i < i1; i++)
                add_row(call, i);
        }
        if (columns_wanted) {
#pragma omp for schedule(static) nowait
            for (int64_t strip = 0; strip < strips; strip++) {
                int64_t j = strip * SEGMENT;
                add_columns(call, i0, i1, j, gm_min(SEGMENT, call->cols - j));
            }
        }
    }
    return GM_OK;
}
