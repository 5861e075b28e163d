/* bench matmul on a device with copies, whose products have shorter operands: precisions that the device has appear by
 * themselves, the library's operands are rounded and transposed as it wants them, and errors are those of the kind of
 * data. Batches, and means of ratios. */
#include "base/log.h"
#include "kernels/host.h"
#include "kernels/matmul/calls.h"
#include "src/bench/operations/product.h"
#include "src/bench/ratios.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS_OF_BF16 = 16 };

/* --- Bounds --- */

static void test_bound(void)
{
    const gm_bench_product p = {.shape = {100, 100, 1000, 1}, .result = GM_DTYPE_F32};
    const double u = 0x1p-24, tf32 = gm_product_bound(&p, GM_PRECISION_TF32, 0);
    tap_ok(gm_product_bound(&p, GM_PRECISION_FP32, 1) == 1002 * u &&
               gm_product_bound(&p, GM_PRECISION_EXACT, 0) == 1001 * 0x1p-53 + u,
           "the bound of a sum in float32, and of one in float64 that is rounded");
    tap_ok(tf32 > 0x1p-10 && tf32 < 0x1p-10 + 0x1p-12 && gm_product_bound(&p, GM_PRECISION_TF32, 1) > 0x1p-9,
           "the bound of operands that are rounded, and cut off: %.2e", tf32);
    tap_ok(gm_product_rounds(GM_PRECISION_BF16) && !gm_product_rounds(GM_PRECISION_EXACT) &&
               !gm_product_rounds(GM_PRECISION_INT8),
           "precisions that round the data");
}

/* --- Ratios --- */

static void test_ratios(void)
{
    static const double rates[] = {2, 8, 1, 5, 0};
    gm_bench_row rows[6];
    gm_bench_ratio ratios[6];
    for (int i = 0; i < 6; i++) {
        rows[i] = (gm_bench_row){.test = "made",
                                 .panel = i < 5 ? "one" : NULL,
                                 .timing = {.median = 1},
                                 .work = i < 5 ? rates[i] : 1,
                                 .rival = i == 3 ? 0 : 2};
        snprintf(rows[i].variant, sizeof rows[i].variant, i == 3 ? "other" : "ours");
        snprintf(rows[i].shape, sizeof rows[i].shape, "%d", i);
        rows[i].has_errors = i < 3;
        for (int kind = 0; kind < GM_BENCH_KINDS; kind++)
            rows[i].errors[kind] = kind == GM_BENCH_HUGE     ? (gm_bench_errors){-1, -1}
                                   : kind == GM_BENCH_SCALED ? (gm_bench_errors){INFINITY, INFINITY}
                                                             : (gm_bench_errors){i + 1, 0.5 * i};
    }
    int count = gm_ratios_make(rows, 6, ratios);
    tap_ok(count == 1 && ratios[0].shapes == 3 && fabs(ratios[0].mean - cbrt(2)) < 1e-12,
           "the geometric mean of 1, 4 and 1/2: %g; a row of its own and one without a rate have none", ratios[0].mean);
    tap_ok(ratios[0].worst == 0.5 && ratios[0].worst_row == &rows[2] && ratios[0].best == 4 &&
               ratios[0].best_row == &rows[1],
           "the worst and the best, and their shapes");
    tap_ok(ratios[0].errors[0].max == 3 && ratios[0].errors[0].mean == 0.5 && ratios[0].errors[GM_BENCH_HUGE].max == -1,
           "the largest error, the mean of the means; none of a kind that does not apply");
    json_t *errors = gm_errors_json(ratios[0].errors);
    tap_ok(json_object_size(errors) == GM_BENCH_KINDS - 1 &&
               json_is_null(json_object_get(json_object_get(errors, "scaled"), "max")),
           "JSON: an infinite error is null");
    json_decref(errors);
}

/* --- Products --- */

/* A float with the leading 16 bits, rounded to nearest, ties to even. */
static uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += 0x7fff + (bits >> BITS_OF_BF16 & 1);
    return (uint16_t)(bits >> BITS_OF_BF16);
}

static float float_of(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << BITS_OF_BF16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int is_wrong; /* the library's products: a row, of the last frame */
static int turned, calls, batches;
static int ready_bf16, unready_bf16, ready_int8; /* calls of ours */

/* Splits the panels, as far as they are not. */
static void split(const gm_product_call *c)
{
    const gm_split_kind kind = {.element = 2, .planes = 1};
    for (int i = 0; i < 2; i++)
        if (!c->ready[i])
            memset(c->work[i], 1, gm_split_lay(&kind, c->batch * (i == 0 ? c->m : c->n), c->k, c->leaf, 0).bytes);
}

/* Takes no batch. */
static int product_bf16(gm_queue *queue, const gm_product_call *c)
{
    (void)queue;
    if (c->batch != 1)
        return gm_fail(GM_EINTERNAL, "a batch of %lld", (long long)c->batch);
    unready_bf16 += !c->ready[0] && !c->ready[1];
    ready_bf16 += c->ready[0] || c->ready[1];
    split(c);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < c->k; l++)
                sum += float_of(bf16_of(((const float *)c->a)[i * c->lda + l])) *
                       float_of(bf16_of(((const float *)c->b)[l * c->ldb + j]));
            ((float *)c->acc)[i * c->ldacc + j] = sum;
        }
    return GM_OK;
}

static int product_int8(gm_queue *queue, const gm_product_call *c)
{
    (void)queue;
    ready_int8 += c->ready[0] && c->ready[1];
    split(c);
    for (int64_t at = 0; at < c->batch * c->m * c->n; at++) {
        int64_t f = at / (c->m * c->n), i = at / c->n % c->m, j = at % c->n;
        const int8_t *a = (const int8_t *)c->a + f * c->next_a, *b = (const int8_t *)c->b + f * c->next_b;
        int32_t sum = 0;
        for (int64_t l = 0; l < c->k; l++)
            sum += a[i * c->lda + l] * b[l * c->ldb + j];
        ((int32_t *)c->acc)[f * c->next_acc + i * c->ldacc + j] = sum;
    }
    return GM_OK;
}

static const gm_product *list_products(gm_device *device, int index)
{
    static const gm_product made[] = {{.precision = GM_PRECISION_BF16,
                                       .operand = GM_DTYPE_F32,
                                       .accumulator = GM_DTYPE_F32,
                                       .tile = 64,
                                       .leaf.least = 128,
                                       .work = {.element = 2, .planes = 1},
                                       .kernel = "made-bf16",
                                       .run = product_bf16},
                                      {.precision = GM_PRECISION_INT8,
                                       .operand = GM_DTYPE_I8,
                                       .accumulator = GM_DTYPE_I32,
                                       .tile = 64,
                                       .leaf.least = 128,
                                       .work = {.element = 2, .planes = 1},
                                       .batches = 1,
                                       .kernel = "made-int8",
                                       .run = product_int8}};
    enum { MADE = sizeof made / sizeof made[0] };
    return index < MADE ? &made[index] : gm_device_cpu.product(device, index - MADE);
}

static const gm_rival_product *rival_of(gm_precision precision)
{
    static const gm_rival_product bf16 = {GM_PRECISION_BF16, 2, GM_DTYPE_F32, 0, 0},
                                  int8 = {GM_PRECISION_INT8, 1, GM_DTYPE_I32, 1, 4};
    return precision == GM_PRECISION_BF16   ? &bf16
           : precision == GM_PRECISION_INT8 ? &int8
                                            : gm_device_cpu.measure->rival_of(precision);
}

static int rival_round(gm_queue *queue, const gm_rival_round_call *c)
{
    (void)queue;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->cols; j++)
            ((uint16_t *)c->dst)[i * c->ld + j] = bf16_of(c->src[i * c->ld + j]);
    return c->precision == GM_PRECISION_BF16 ? GM_OK : gm_fail(GM_EINTERNAL, "operands that are not rounded");
}

static double operand(const gm_gemm_call *c, const void *from, int64_t at)
{
    return c->precision == GM_PRECISION_INT8 ? ((const int8_t *)from)[at]
                                             : (double)float_of(((const uint16_t *)from)[at]);
}

/* Integers only with B transposed, and rows in whole words. */
static int rival_product(gm_queue *queue, const gm_gemm_call *c, int *refused)
{
    if (c->precision != GM_PRECISION_BF16 && c->precision != GM_PRECISION_INT8)
        return gm_device_cpu.measure->rival_product(queue, c, refused);
    if (c->precision == GM_PRECISION_INT8 && !c->transpose_b) {
        if (!refused)
            return gm_fail(GM_EINTERNAL, "a call that was refused");
        *refused = 1;
        return GM_OK;
    }
    if (c->precision == GM_PRECISION_INT8 && c->k % 4 != 0)
        return gm_fail(GM_EINTERNAL, "a k of %lld", (long long)c->k);
    calls++;
    batches += c->batch > 1;
    turned += c->transpose_b && c->lda % 4 == 0 && c->ldb % 4 == 0;
    for (int64_t at = 0; at < c->batch * c->m * c->n; at++) {
        int64_t f = at / (c->m * c->n), i = at / c->n % c->m, j = at % c->n;
        int64_t a = f * c->next_a + i * c->lda, b = f * c->next_b, to = f * c->next_c + i * c->ldc + j;
        double sum = is_wrong && i == 0 && f == c->batch - 1;
        for (int64_t l = 0; l < c->k; l++)
            sum += operand(c, c->a, a + l) * operand(c, c->b, b + (c->transpose_b ? j * c->ldb + l : l * c->ldb + j));
        if (c->precision == GM_PRECISION_INT8)
            ((int32_t *)c->c)[to] = (int32_t)sum;
        else
            ((float *)c->c)[to] = (float)sum;
    }
    return GM_OK;
}

/* Its memory is not that of the host. */
static void plant(gm_job *job)
{
    static gm_device_ops ops;
    static gm_measure_ops measure;
    measure = *job->ops->measure;
    measure.rival_of = rival_of;
    measure.rival_round = rival_round;
    measure.rival_product = rival_product;
    ops = *job->ops;
    ops.unified = 0;
    ops.product = list_products;
    ops.measure = &measure;
    job->ops = &ops;
}

static int hold(gm_queue *queue)
{
    (void)queue;
    return GM_OK;
}

static int release(gm_queue *queue, int *held)
{
    (void)queue;
    *held = 1;
    return GM_OK;
}

/* Likewise with queues that can be held, and warm data only. */
static void plant_holding(gm_job *job)
{
    static gm_device_ops ops;
    static gm_measure_ops measure;
    plant(job);
    measure = *job->ops->measure;
    measure.hold = hold;
    measure.release = release;
    measure.flush = NULL;
    ops = *job->ops;
    ops.unified = 1;
    ops.measure = &measure;
    job->ops = &ops;
}

/* A wrong row of the library ends the command with an error that says of which product. */
static void test_wrong_row(const gm_ranks *ranks, command_setup *setup, const char *line, const char *product,
                           const char *what)
{
    gm_error error;
    is_wrong = 1;
    int status = command_run_all(ranks, setup, "%s", line);
    gm_error_get(&error);
    tap_ok(status == GM_ECHECK && strstr(error.text, product) && strstr(error.text, "relative error"), "%s: %s", what,
           error.text);
    is_wrong = 0;
}

static double error_of(const json_t *row, const char *kind)
{
    const json_t *errors = json_object_get(json_object_get(row, "errors"), kind);
    return errors ? json_number_value(json_object_get(errors, "max")) : -1;
}

/* Rows of ours and of the library: they have the errors of each kind that applies, below a bound. */
static void check_rows(const json_t *rows, const char *precision, const char *rival, double bound, int kinds)
{
    int ours = 0, rivals = 0, good = 1;
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row) {
        const char *variant = json_string_value(json_object_get(row, "variant"));
        int is_ours = strcmp(variant, precision) == 0, is_rival = !is_ours && strstr(variant, rival);
        if (strcmp(json_string_value(json_object_get(row, "panel")), precision) != 0)
            continue;
        ours += is_ours;
        rivals += is_rival;
        good &= (is_ours || is_rival) && (int)json_object_size(json_object_get(row, "errors")) == kinds;
        for (int kind = 0; kind < GM_BENCH_KINDS; kind++)
            good &= error_of(row, gm_bench_kind_name((gm_bench_kind)kind)) <= bound;
        good &= json_number_value(json_object_get(row, "max_error")) == error_of(row, "uniform");
        good &= (json_number_value(json_object_get(row, "ratio_rival")) > 0) == is_ours;
    }
    tap_ok(good && ours == 9 && rivals == 9, "%s: nine shapes of ours and of the library, %d kinds of data: %d, %d",
           precision, kinds, ours, rivals);
}

static void test_products(const gm_ranks *ranks)
{
    const char *const line = "bench matmul --shapes grid:5:19:33 --device cpu --threads 1 -q --json r.json --force";
    gm_error error;
    int status = command_run_all(ranks, plant, line);
    gm_error_get(&error);
    json_t *root = json_load_file("r.json", 0, NULL), *rows = json_object_get(root, "rows"), *one;
    tap_ok(status == GM_OK && json_array_size(rows) == 2 * 7 * 9, "seven precisions in nine shapes: %s", error.text);
    check_rows(rows, "fp64", " fp64", 1e-14, 5);
    check_rows(rows, "fp32", " fp32", 4e-6, 5);
    check_rows(rows, "exact", " fp32", 4e-6, 5);
    check_rows(rows, "tf32", " fp32", 0x1p-9, 5);
    check_rows(rows, "fp16", " fp32", 0x1p-9, 5);
    check_rows(rows, "bf16", " bf16", 0x1p-6, 5);
    check_rows(rows, "int8", " int8, B'", 0, 2);
    tap_ok(turned > 0 && turned < calls, "integers are multiplied with B transposed: %d of %d calls", turned, calls);
    int means = 0;
    size_t i;
    json_array_foreach (json_object_get(root, "ratios"), i, one)
        means += json_integer_value(json_object_get(one, "shapes")) == 9 &&
                 json_number_value(json_object_get(one, "geometric_mean")) > 0 &&
                 json_number_value(json_object_get(one, "worst")) <= json_number_value(json_object_get(one, "best"));
    tap_ok(means == 7, "a mean for each precision: %d", means);
    json_decref(root);
    test_wrong_row(ranks, plant, line, "bf16", "a wrong row of the library is found");
}

/* Rows of ours and of the library for each precision. bf16 goes frame by frame, which no held queue could take. */
static void test_batch(const gm_ranks *ranks)
{
    const char *const line = "bench matmul --shapes 6x19x33x5 --device cpu --threads 1 -q --json r.json --force";
    gm_error error;
    int good = 1, ours = 0;
    size_t i;
    json_t *row;
    ready_bf16 = unready_bf16 = ready_int8 = batches = calls = 0;
    int status = command_run_all(ranks, plant_holding, line);
    gm_error_get(&error);
    json_t *root = json_load_file("r.json", 0, NULL), *rows = json_object_get(root, "rows");
    tap_ok(status == GM_OK && json_array_size(rows) == 2 * 7, "a batch in seven precisions: %s", error.text);
    json_array_foreach (rows, i, row) {
        const char *variant = json_string_value(json_object_get(row, "variant"));
        double work = json_number_value(json_object_get(row, "rate")) * 1e12 *
                      json_number_value(json_object_get(row, "median_s"));
        int is_ours = gm_precision_find(variant) < GM_PRECISIONS, is_loop = strstr(variant, "bf16") != NULL;
        ours += is_ours;
        good &= fabs(work / (2.0 * 6 * 19 * 33 * 5) - 1) < 1e-9;
        good &= strcmp(json_string_value(json_object_get(row, "shape")), "6x19x33x5") == 0;
        good &= strcmp(json_string_value(json_object_get(row, "panel")), "batch") == 0;
        good &= json_is_true(json_object_get(row, "held")) == !is_loop;
        good &= (json_number_value(json_object_get(row, "ratio_rival")) > 0) == is_ours;
        good &= json_object_size(json_object_get(row, "errors")) >= 2;
        good &= json_number_value(json_object_get(row, "max_error")) <= (strstr(variant, "fp64") ? 1e-15 : 0x1p-6);
    }
    tap_ok(good && ours == 7, "their rates, errors and ratios; loops are not held: %d", ours);
    tap_ok(ready_bf16 == 0 && unready_bf16 % 6 == 0 && ready_int8 > 0,
           "panels are split before the times of a batch, and in those of a loop: %d, %d, %d", ready_bf16, unready_bf16,
           ready_int8);
    tap_ok(batches == calls && calls > 0, "the library has one call for a batch: %d of %d", batches, calls);
    json_decref(root);
    test_wrong_row(ranks, plant_holding, line, "bf16: 6x19x33x5", "a wrong row of the last frame is found");
}

int main(void)
{
    gm_ranks ranks;
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    gm_log_setup(1, GM_QUIET);
    test_bound();
    test_ratios();
    test_products(&ranks);
    test_batch(&ranks);
    tap_ok(folder_leave_all(&ranks, "r.json"), "no other files are left");
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
