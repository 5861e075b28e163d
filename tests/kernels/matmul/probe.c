/* Products of a matrix with vectors: every type, both orders of bytes, against long double. */
#include <math.h>

#include "kernels/matmul/calls.h"
#include "tests/kernels/each.h"

enum { OUTPUTS = 6, GUARD = 2, PART = 64 };

/* The six outputs, in the order r, r_abs, r_sq, s, s_abs, s_sq; one bit each says which are asked for. */
static const unsigned requests[] = {077, 011, 001, 003, 004, 007, 010, 030, 040, 070, 044, 035, 055, 053};

typedef struct probe {
    int64_t rows, cols;
    gm_dtype type;
    int swap;
    size_t pitch;
    unsigned char *m; /* as in a file */
    double *value;    /* [rows][cols] */
    double *p, *q;
    int wide;
} probe;

static probe probe_make(int64_t rows, int64_t cols, gm_dtype type, int swap)
{
    size_t size = gm_dtype_size(type);
    probe t = {rows, cols, type, swap, (size_t)(cols + GUARD) * size, NULL, NULL, NULL, NULL, 0};
    uint64_t state = 17;
    t.m = host_memory((size_t)rows * t.pitch);
    memset(t.m, 0xff, (size_t)rows * t.pitch);
    t.value = host_memory((size_t)(rows * cols) * sizeof(double));
    t.p = host_memory((size_t)cols * sizeof(double));
    t.q = host_memory((size_t)rows * sizeof(double));
    for (int64_t i = 0; i < rows * cols; i++)
        t.value[i] = random_element(&state, type, swap, t.m + (size_t)(i / cols) * t.pitch + (size_t)(i % cols) * size);
    for (int64_t j = 0; j < cols; j++)
        t.p[j] = random_real(&state);
    for (int64_t i = 0; i < rows; i++)
        t.q[i] = random_real(&state);
    return t;
}

static void probe_free(probe *t)
{
    free(t->m);
    free(t->value);
    free(t->p);
    free(t->q);
}

static int64_t length(const probe *t, int output)
{
    return output < 3 ? t->rows : t->cols;
}

/* Fills the outputs [OUTPUTS][length] that are asked for, each of them beginning with 1 in all places. */
static void run(bench *b, const probe *t, unsigned request, double *out[OUTPUTS])
{
    size_t bytes[OUTPUTS];
    void *on[OUTPUTS] = {NULL};
    void *m = lend(b, t->m, (size_t)t->rows * t->pitch);
    void *p = request & 003 ? lend(b, t->p, (size_t)t->cols * sizeof(double)) : NULL;
    void *q = request & 030 ? lend(b, t->q, (size_t)t->rows * sizeof(double)) : NULL;
    size_t work_bytes = gm_probe_cut(t->rows, t->cols, (int64_t)gm_dtype_size(t->type)).bytes;
    void *work = work_bytes ? lend(b, NULL, work_bytes) : NULL;
    for (int o = 0; o < OUTPUTS; o++) {
        bytes[o] = (size_t)length(t, o) * sizeof(double);
        for (int64_t i = 0; i < length(t, o); i++)
            out[o][i] = 1;
        on[o] = request >> o & 1 ? lend(b, out[o], bytes[o]) : NULL;
    }
    gm_probe_call call = {.rows = t->rows,
                          .cols = t->cols,
                          .m = m,
                          .pitch = t->pitch,
                          .type = t->type,
                          .swap = t->swap,
                          .wide = t->wide,
                          .p = p,
                          .q = q,
                          .r = on[0],
                          .r_abs = on[1],
                          .r_sq = on[2],
                          .s = on[3],
                          .s_abs = on[4],
                          .s_sq = on[5],
                          .work = work,
                          .work_bytes = work_bytes};
    must(b->ops->probe(b->queue, &call));
    for (int o = 0; o < OUTPUTS; o++)
        reclaim(b, on[o], on[o] != NULL ? out[o] : NULL, bytes[o]);
    reclaim(b, m, NULL, 0);
    reclaim(b, p, NULL, 0);
    reclaim(b, q, NULL, 0);
    reclaim(b, work, NULL, 0);
}

/* The expected outputs, and the size of the terms that they are sums of. A row is summed in parts: valgrind has long
 * double with the precision of double. */
static void refer(const probe *t, long double *sum[OUTPUTS], long double *size[OUTPUTS])
{
    for (int o = 0; o < OUTPUTS; o++) {
        for (int64_t i = 0; i < length(t, o); i++)
            sum[o][i] = size[o][i] = 1;
    }
    for (int64_t i = 0; i < t->rows; i++) {
        long double part[3] = {0};
        for (int64_t j = 0; j < t->cols; j++) {
            long double x = t->value[i * t->cols + j], terms[OUTPUTS] = {x * t->p[j], fabsl(x * t->p[j]), x * x,
                                                                         t->q[i] * x, fabsl(t->q[i] * x), x * x};
            for (int o = 0; o < OUTPUTS; o++) {
                int64_t at = o < 3 ? i : j;
                *(o < 3 ? &part[o] : &sum[o][at]) += terms[o];
                size[o][at] += fabsl(terms[o]);
            }
            for (int o = 0; o < 3 && (j % PART == PART - 1 || j == t->cols - 1); o++) {
                sum[o][i] += part[o];
                part[o] = 0;
            }
        }
    }
}

static void test_shape(bench *b, int64_t rows, int64_t cols, gm_dtype type, int swap)
{
    enum { REQUESTS = sizeof requests / sizeof requests[0] };
    probe t = probe_make(rows, cols, type, swap);
    double *out[OUTPUTS], *again[OUTPUTS], worst = 0;
    long double *sum[OUTPUTS], *size[OUTPUTS];
    int same = 1;
    for (int o = 0; o < OUTPUTS; o++) {
        out[o] = host_memory((size_t)length(&t, o) * sizeof *out[o]);
        again[o] = host_memory((size_t)length(&t, o) * sizeof *again[o]);
        sum[o] = host_memory((size_t)length(&t, o) * sizeof *sum[o]);
        size[o] = host_memory((size_t)length(&t, o) * sizeof *size[o]);
    }
    refer(&t, sum, size);
    for (int k = 0; k < REQUESTS; k++) {
        run(b, &t, requests[k], out);
        run(b, &t, requests[k], again);
        for (int o = 0; o < OUTPUTS; o++) {
            for (int64_t i = 0; i < length(&t, o); i++) {
                long double expected = requests[k] >> o & 1 ? sum[o][i] : 1;
                worst = worse(worst, (double)(fabsl(out[o][i] - expected) / size[o][i]));
            }
            same = same && memcmp(out[o], again[o], (size_t)length(&t, o) * sizeof *out[o]) == 0;
        }
    }
    tap_ok(worst <= 1e-14, "%s probe %lld x %lld %s%s: error %.2g of at most 1e-14", b->ops->kind, (long long)rows,
           (long long)cols, gm_dtype_name(type), swap ? " swapped" : "", worst);
    tap_ok(same, "%s probe %lld x %lld %s%s: twice the same bits", b->ops->kind, (long long)rows, (long long)cols,
           gm_dtype_name(type), swap ? " swapped" : "");
    for (int o = 0; o < OUTPUTS; o++) {
        free(out[o]);
        free(again[o]);
        free(sum[o]);
        free(size[o]);
    }
    probe_free(&t);
}

/* Elements that are not finite go in as they are, and reach no other row or column. */
static void test_nonfinite(bench *b, int side, unsigned request)
{
    probe t = probe_make(side, side, GM_DTYPE_F64, 0);
    double *out[OUTPUTS];
    const double nan = NAN, inf = INFINITY;
    int good = 1;
    for (int o = 0; o < OUTPUTS; o++)
        out[o] = host_memory((size_t)side * sizeof *out[o]);
    memcpy(t.m + 7 * t.pitch + 9 * sizeof nan, &nan, sizeof nan);
    memcpy(t.m + 70 * t.pitch + 90 * sizeof inf, &inf, sizeof inf);
    run(b, &t, request, out);
    for (int o = 0; o < OUTPUTS; o++) {
        for (int i = 0; i < side && request >> o & 1; i++) {
            int at_nan = i == (o < 3 ? 7 : 9), at_inf = i == (o < 3 ? 70 : 90);
            good = good && (at_nan ? isnan(out[o][i]) : at_inf ? isinf(out[o][i]) : isfinite(out[o][i]));
        }
        free(out[o]);
    }
    tap_ok(good, "%s probe %d x %d with a NaN and an infinity, outputs %o", b->ops->kind, side, side, request);
    probe_free(&t);
}

/* Elements of all sizes, which change from one to the next, and from column to column: their squares are more than
 * float64 holds, or single ones are, or none. */
static void test_wide(bench *b)
{
    enum { ROWS = 700, COLS = 1030, CALLS = 2 };
    probe t = probe_make(ROWS, COLS, GM_DTYPE_F64, 0);
    double *sum[CALLS][OUTPUTS];
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        int64_t row = i / COLS, col = i % COLS;
        int large = row % 5 == 1 || col % 7 == 2, exponent = large ? (int)(37 * row + 11 * col) % 1000 : 511;
        t.value[i] = ldexp(1 + (double)(i % 1000) / 1000, row % 5 == 3 || col % 7 == 4 ? 3 : exponent);
        memcpy(t.m + (size_t)row * t.pitch + (size_t)col * sizeof(double), &t.value[i], sizeof(double));
    }
    for (int call = 0; call < CALLS; call++) {
        t.wide = call;
        for (int o = 0; o < OUTPUTS; o++)
            sum[call][o] = host_memory((size_t)length(&t, o) * sizeof(double));
        run(b, &t, 077, sum[call]);
    }
    double worst = 0;
    int64_t wide = 0, infinite = 0;
    int same = 1;
    for (int o = 2; o < OUTPUTS; o += 3) {
        for (int64_t i = 0; i < length(&t, o); i++) {
            double plain = sum[0][o][i], found = sum[1][o][i];
            long double expected = found < 0 ? 0 : 1; /* in the form of the sum (kernels/matmul/calls.h) */
            for (int64_t j = 0; j < length(&t, 5 - o); j++) {
                long double x = t.value[o == 2 ? i * COLS + j : j * COLS + i];
                x = found < 0 ? ldexpl(x, -600) : x; /* valgrind has long double in the range of double */
                expected += x * x;
            }
            wide += found < 0;
            infinite += isinf(plain);
            same = same && (found < 0 || isinf(plain) || found == plain);
            if (!isinf(found))
                worst = worse(worst, (double)(fabsl(fabsl((long double)found) - expected) / expected));
        }
    }
    tap_ok(infinite > 500 && worst <= 1e-13, "%s probe: sums of squares beyond float64, error %.2g of at most 1e-13",
           b->ops->kind, worst);
    tap_ok(same && (wide == infinite || !b->ops->unified), "%s probe: the others as they are, %lld are wide",
           b->ops->kind, (long long)wide);
    for (int o = 0; o < OUTPUTS; o++)
        for (int call = 0; call < CALLS; call++)
            free(sum[call][o]);
    probe_free(&t);
}

static void test_empty(bench *b)
{
    int status = GM_OK;
    for (int type = 0; type < GM_DTYPES && !status; type++)
        status = b->ops->probe(b->queue, &(gm_probe_call){.type = (gm_dtype)type});
    tap_ok(status == GM_OK, "%s probe of no elements of each type", b->ops->kind);
}

static void test_probe(bench *b)
{
    static const int64_t shapes[][2] = {{1, 1}, {3, 2100}, {1300, 3}, {257, 641}};
    for (int type = 0; type < GM_DTYPES; type++) {
        test_shape(b, 65, 131, (gm_dtype)type, 0);
        test_shape(b, 65, 131, (gm_dtype)type, 1);
    }
    for (int i = 0; i < 4; i++) {
        test_shape(b, shapes[i][0], shapes[i][1], GM_DTYPE_F32, 0);
        test_shape(b, shapes[i][0], shapes[i][1], GM_DTYPE_F64, 0);
        test_shape(b, shapes[i][0], shapes[i][1], GM_DTYPE_U16, 1);
    }
    test_empty(b);
    test_shape(b, 261, 7301, GM_DTYPE_F32, 0); /* large enough for one pass (gm_probe_cut) */
    test_shape(b, 258, 3702, GM_DTYPE_F64, 1);
    test_shape(b, 263, 14599, GM_DTYPE_I8, 0);
    test_nonfinite(b, 200, 077);
    test_nonfinite(b, 1000, 055);
    test_wide(b);
}

int main(void)
{
    each_device(test_probe);
    return tap_done();
}
