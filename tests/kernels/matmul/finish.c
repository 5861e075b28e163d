/* Folding of leaves, and the finish of a result: bit for bit, and its counts of what is not finite. */
#include <float.h>
#include <math.h>

#include "kernels/matmul/calls.h"
#include "tests/kernels/each.h"

enum { ROWS = 61, COLS = 1111, N = ROWS * COLS, GUARD = 3 };

static const gm_dtype result_types[] = {GM_DTYPE_F16, GM_DTYPE_BF16, GM_DTYPE_F32, GM_DTYPE_F64, GM_DTYPE_I32};
static const gm_dtype acc_types[] = {GM_DTYPE_F32, GM_DTYPE_F64, GM_DTYPE_I32};
enum { RESULTS = sizeof result_types / sizeof result_types[0], ACCS = sizeof acc_types / sizeof acc_types[0] };

/* A number whose sum with another one is of the type. */
static double random_summand(uint64_t *state, gm_dtype type, unsigned char *out)
{
    double value = random_element(state, type, 0, out);
    if (type == GM_DTYPE_I32) {
        int32_t half = (int32_t)value / 2;
        memcpy(out, &half, sizeof half);
        value = half;
    }
    return value;
}

static double element_of(gm_dtype type, const void *array, int64_t i)
{
    return type == GM_DTYPE_F32   ? (double)((const float *)array)[i]
           : type == GM_DTYPE_I32 ? (double)((const int32_t *)array)[i]
                                  : ((const double *)array)[i];
}

/* part_ld 0: one row to all rows of acc. */
static void test_fold(bench *b, gm_dtype type, int64_t part_ld)
{
    size_t size = gm_dtype_size(type);
    int64_t ld = COLS + GUARD, parts = part_ld ? ROWS * part_ld : COLS;
    size_t part_bytes = (size_t)parts * size;
    unsigned char *part = host_memory(part_bytes), *acc = host_memory((size_t)(ROWS * ld) * size);
    double *expected = host_memory((size_t)(ROWS * ld) * sizeof *expected),
           *value = host_memory((size_t)parts * sizeof *value);
    uint64_t state = 7;
    int good = 1;
    for (int64_t i = 0; i < ROWS * ld; i++) {
        volatile double sum = random_summand(&state, type, acc + (size_t)i * size);
        int64_t at = i / ld * part_ld + i % ld;
        if (i % ld < COLS && (part_ld || i < ld))
            value[at] = random_summand(&state, type, part + (size_t)at * size);
        if (i % ld < COLS)
            sum += value[at];
        expected[i] = type == GM_DTYPE_F32 ? (float)sum : sum;
    }
    void *on_part = lend(b, part, part_bytes), *on_acc = lend(b, acc, (size_t)(ROWS * ld) * size);
    must(b->ops->fold(b->queue, &(gm_fold_call){ROWS, COLS, on_part, part_ld, on_acc, ld, type}));
    reclaim(b, on_acc, acc, (size_t)(ROWS * ld) * size);
    reclaim(b, on_part, NULL, 0);
    for (int64_t i = 0; i < ROWS * ld; i++)
        good = good && expected[i] == element_of(type, acc, i);
    tap_ok(good, "%s fold %s%s", b->ops->kind, gm_dtype_name(type), part_ld ? "" : ", one row to all");
    free(value);
    free(part);
    free(acc);
    free(expected);
}

/* One finish over n elements in a row of rows; acc and c0 on the host, NULL for none; out: [n] of the type, on the
 * host. */
typedef struct finish {
    int64_t rows, cols;
    const void *acc, *c0;
    gm_dtype acc_type, c0_type, out_type;
    int c0_swap;
    double alpha, beta;
    gm_nonfinite count; /* before, then after */
} finish;

static void run(bench *b, finish *f, void *out)
{
    int64_t ld = f->cols, n = f->rows * f->cols;
    size_t acc_bytes = (size_t)n * gm_dtype_size(f->acc_type), c0_bytes = (size_t)n * gm_dtype_size(f->c0_type);
    size_t out_bytes = (size_t)n * gm_dtype_size(f->out_type);
    void *acc = f->acc != NULL ? lend(b, f->acc, acc_bytes) : NULL,
         *c0 = f->c0 != NULL ? lend(b, f->c0, c0_bytes) : NULL;
    void *on_out = lend(b, NULL, out_bytes), *count = lend(b, &f->count, sizeof f->count);
    gm_finish_call call = {
        .rows = f->rows,
        .cols = f->cols,
        .acc = acc,
        .ldacc = ld,
        .acc_type = f->acc_type,
        .alpha = f->alpha,
        .beta = f->beta,
        .c0 = c0,
        .c0_type = f->c0_type,
        .c0_swap = f->c0_swap,
        .out = on_out,
        .out_type = f->out_type,
        .count = count,
    };
    must(b->ops->finish(b->queue, &call));
    reclaim(b, on_out, out, out_bytes);
    reclaim(b, count, &f->count, sizeof f->count);
    reclaim(b, acc, NULL, 0);
    reclaim(b, c0, NULL, 0);
}

static int same_bits(gm_dtype type, const void *out, int64_t i, double value)
{
    gm_f16 half = gm_round_gm_f16(value);
    gm_bf16 brain = gm_round_gm_bf16(value);
    float single = (float)value;
    double whole = rint(value);
    int32_t integer = isnan(value) ? 0 : whole > INT32_MAX ? INT32_MAX : whole < INT32_MIN ? INT32_MIN : (int32_t)whole;
    switch (type) {
    case GM_DTYPE_F16:
        return memcmp((const gm_f16 *)out + i, &half, sizeof half) == 0;
    case GM_DTYPE_BF16:
        return memcmp((const gm_bf16 *)out + i, &brain, sizeof brain) == 0;
    case GM_DTYPE_F32:
        return memcmp((const float *)out + i, &single, sizeof single) == 0;
    case GM_DTYPE_I32:
        return memcmp((const int32_t *)out + i, &integer, sizeof integer) == 0;
    default:
        return memcmp((const double *)out + i, &value, sizeof value) == 0;
    }
}

static void test_values(bench *b, gm_dtype c0_type, int swap)
{
    static const double alpha = 1.1, beta = -0.7;
    size_t size = gm_dtype_size(c0_type);
    double *y = host_memory(N * sizeof *y);
    unsigned char *acc = host_memory(N * sizeof(double)), *c0 = host_memory(N * size);
    void *out = host_memory(N * sizeof(double));
    uint64_t state = 11;
    for (int64_t i = 0; i < N; i++)
        y[i] = random_element(&state, c0_type, swap, c0 + (size_t)i * size);
    for (int i = 0; i < ACCS * RESULTS; i++) {
        gm_dtype type = acc_types[i % ACCS];
        finish f = {ROWS, COLS, acc, c0, type, c0_type, result_types[i / ACCS], swap, alpha, beta, {5, 6, 7}};
        int good = 1;
        for (int64_t j = 0; j < N; j++)
            random_element(&state, type, 0, acc + (size_t)j * gm_dtype_size(type));
        run(b, &f, out);
        for (int64_t j = 0; j < N; j++) {
            volatile double p = alpha * element_of(type, acc, j), q = beta * y[j], sum = p + q;
            good = good && same_bits(f.out_type, out, j, sum);
        }
        tap_ok(good, "%s finish %s and %s%s to %s", b->ops->kind, gm_dtype_name(f.acc_type), gm_dtype_name(c0_type),
               swap ? " swapped" : "", gm_dtype_name(f.out_type));
    }
    free(y);
    free(acc);
    free(c0);
    free(out);
}

/* Without c0, without acc, without both. */
static void test_absent(bench *b)
{
    double *data = host_memory(N * sizeof *data), *out = host_memory(N * sizeof *out);
    uint64_t state = 13;
    for (int64_t i = 0; i < N; i++)
        data[i] = random_real(&state);
    for (int i = 0; i < 3; i++) {
        finish f = {ROWS,
                    COLS,
                    i == 0 ? data : NULL,
                    i == 1 ? data : NULL,
                    GM_DTYPE_F64,
                    GM_DTYPE_F64,
                    GM_DTYPE_F64,
                    0,
                    3.3,
                    i == 1 ? -0.3 : 0,
                    {0, 0, 0}};
        int good = 1;
        run(b, &f, out);
        for (int64_t j = 0; j < N; j++)
            good = good && out[j] == (i == 0 ? 3.3 * data[j] : i == 1 ? -0.3 * data[j] : 0.0);
        tap_ok(good, "%s finish without %s", b->ops->kind, i == 0 ? "c0" : i == 1 ? "acc" : "both");
    }
    free(data);
    free(out);
}

/* Both sides of every midpoint between two neighbouring numbers of 16 bits, and the midpoint itself: both of its
 * neighbours are known. The last neighbour is infinity. */
static void test_short_rounding(bench *b, gm_dtype type)
{
    const int infinity = (int)infinity_bits(type), count = 6 * infinity;
    double *acc = host_memory((size_t)count * sizeof *acc);
    uint16_t *expected = host_memory((size_t)count * sizeof *expected), *out = host_memory((size_t)count * sizeof *out);
    int64_t bad = 0;
    for (int i = 0; i < count; i++) {
        int below = i / 6, side = i / 2 % 3, negative = i % 2;
        double low = bits_value(type, (uint64_t)below), before = bits_value(type, (uint64_t)(below ? below - 1 : 1));
        double high = below + 1 < infinity ? bits_value(type, (uint64_t)below + 1) : 2 * low - before;
        double middle = (low + high) / 2;
        double value = side == 0 ? nextafter(middle, 0) : side == 1 ? middle : nextafter(middle, INFINITY);
        int rounded = side == 0 ? below : side == 2 ? below + 1 : below + below % 2;
        acc[i] = negative ? -value : value;
        expected[i] = (uint16_t)(rounded | (negative ? 0x8000 : 0));
    }
    finish f = {1, count, acc, NULL, GM_DTYPE_F64, GM_DTYPE_F64, type, 0, 1, 0, {0, 0, 0}};
    run(b, &f, out);
    for (int i = 0; i < count; i++)
        bad += out[i] != expected[i];
    tap_ok(bad == 0, "%s finish rounds to %s once, to nearest even: %lld wrong", b->ops->kind, gm_dtype_name(type),
           (long long)bad);
    tap_ok(f.count.overflow == 4 && f.count.inf == 0 && f.count.nan == 0, "%s finish counts what overflows %s",
           b->ops->kind, gm_dtype_name(type));
    free(acc);
    free(expected);
    free(out);
}

static void test_counts(bench *b)
{
    static const double values[] = {
        NAN,           INFINITY,     -INFINITY, DBL_MAX, -DBL_MAX, 1e39,   0x1.ffffffp127, 0x1.fffffefffffffp127,
        65520.0,       -65519.99,    0.0,       -0.0,    DBL_MIN,  5e-324, 2147483647.4,   2147483647.5,
        -2147483648.5, -2147483648.6};
    enum { VALUES = sizeof values / sizeof values[0], TIMES = 1000, COUNT = VALUES * TIMES };
    static const uint64_t overflows[RESULTS] = {10, 5, 4, 0, 7};
    double *acc = host_memory(COUNT * sizeof *acc), *out = host_memory(COUNT * sizeof *out);
    for (int i = 0; i < COUNT; i++)
        acc[i] = values[i % VALUES];
    for (int i = 0; i < RESULTS; i++) {
        finish f = {TIMES / 4,       VALUES * 4, acc, NULL, GM_DTYPE_F64, GM_DTYPE_F64,
                    result_types[i], 0,          1,   0,    {10, 20, 30}};
        run(b, &f, out);
        tap_ok(f.count.nan == 10 + TIMES && f.count.inf == 20 + 2 * TIMES &&
                   f.count.overflow == 30 + overflows[i] * TIMES,
               "%s finish to %s adds to the counts of NaN, infinity and overflow", b->ops->kind,
               gm_dtype_name(result_types[i]));
        int good = 1;
        for (int j = 0; j < COUNT; j++)
            good = good &&
                   ((isnan(acc[j]) && result_types[i] != GM_DTYPE_I32) || same_bits(result_types[i], out, j, acc[j]));
        tap_ok(good, "%s finish to %s of values at the limits", b->ops->kind, gm_dtype_name(result_types[i]));
    }
    free(acc);
    free(out);
}

/* A call without elements reads and writes nothing. */
static void test_empty(bench *b)
{
    for (int i = 0; i < 2; i++) {
        const gm_finish_call none = {.c0 = i ? b : NULL, .c0_type = GM_DTYPE_U16, .out_type = GM_DTYPE_F32};
        tap_ok(b->ops->finish(b->queue, &none) == GM_OK && b->ops->queue_sync(b->queue) == GM_OK,
               "%s finish of no elements%s", b->ops->kind, i ? " with c0" : "");
    }
}

static void test_finish(bench *b)
{
    test_empty(b);
    for (int64_t part_ld = COLS + 2; part_ld >= 0; part_ld -= COLS + 2) {
        test_fold(b, GM_DTYPE_F32, part_ld);
        test_fold(b, GM_DTYPE_F64, part_ld);
        test_fold(b, GM_DTYPE_I32, part_ld);
    }
    for (int type = 0; type < GM_DTYPES; type++) {
        test_values(b, (gm_dtype)type, 0);
        test_values(b, (gm_dtype)type, 1);
    }
    test_absent(b);
    test_short_rounding(b, GM_DTYPE_F16);
    test_short_rounding(b, GM_DTYPE_BF16);
    test_counts(b);
}

int main(void)
{
    each_device(test_finish);
    return tap_done();
}
