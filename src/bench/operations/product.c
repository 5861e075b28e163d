/* A product of random matrices in device memory: its memory, its data, its calls, and the errors of its result. */
#include "src/bench/operations/product.h"

#include "base/random.h"
#include "base/size.h"
#include "base/tiling.h"

#include <math.h>

/* --- Memory --- */

/* Bytes of a matrix on the device. */
static int64_t matrix_bytes(int64_t rows, int64_t cols, gm_dtype type)
{
    int64_t size = (int64_t)gm_dtype_size(type);
    return gm_mul_sat(gm_mul_sat(rows, gm_tiling_ld(cols, size)), size);
}

static int64_t leaf_of(const gm_bench_product *p)
{
    return gm_tiling_leaf(&p->product->leaf, p->shape.m, p->shape.n, p->shape.k);
}

/* Rows of a matrix with `rows` of them in each frame. */
static int64_t in_batch(const gm_bench_product *p, int64_t rows)
{
    return gm_mul_sat(p->shape.batch, rows);
}

int gm_product_loops(const gm_bench_product *p)
{
    return p->shape.batch > 1 && !p->product->batches;
}

/* Leaves that are computed side by side, as in src/matmul/plan.c; in a batch none are. */
static int64_t parts_of(const gm_bench_product *p)
{
    const gm_bench *bench = p->bench;
    int64_t multiprocessors = bench->ops->unified ? 0 : bench->job->info.multiprocessors;
    int64_t leaves = gm_ceil_div(p->shape.k, leaf_of(p));
    return p->product->leaf.few && p->shape.batch == 1 ? gm_product_parts(p->room, p->shape.n, leaves, multiprocessors)
                                                       : 0;
}

static gm_dtype acc_type(const gm_bench_product *p)
{
    return gm_product_acc_type(p->product, p->result, gm_ceil_div(p->shape.k, leaf_of(p)), parts_of(p));
}

static int64_t ld(int64_t cols, gm_dtype type)
{
    return gm_tiling_ld(cols, (int64_t)gm_dtype_size(type));
}

static int64_t ldacc(const gm_bench_product *p)
{
    return ld(p->shape.n, acc_type(p));
}

/* Bytes of the work space of A (0) or B (1). */
static size_t work_bytes(const gm_bench_product *p, int which)
{
    const gm_product_shape *s = &p->shape;
    int64_t lines = which ? s->n : p->room;
    if (!gm_product_loops(p))
        lines = in_batch(p, lines);
    return gm_split_lay(&p->product->work, lines, s->k, leaf_of(p), parts_of(p)).bytes;
}

int64_t gm_product_bytes(const gm_bench_product *p)
{
    const gm_product_shape *s = &p->shape;
    int64_t rows = in_batch(p, p->room), rows_b = in_batch(p, s->k);
    int64_t bytes = gm_add_sat(matrix_bytes(rows, s->k, p->type), matrix_bytes(rows_b, s->n, p->type));
    if (p->product->operand != p->type)
        bytes = gm_add_sat(bytes, gm_add_sat(matrix_bytes(rows, s->k, p->product->operand),
                                             matrix_bytes(rows_b, s->n, p->product->operand)));
    if (acc_type(p) != p->result)
        bytes = gm_add_sat(bytes, matrix_bytes(rows, s->n, acc_type(p)));
    bytes = gm_add_sat(bytes, gm_add_sat((int64_t)work_bytes(p, 0), (int64_t)work_bytes(p, 1)));
    bytes = gm_add_sat(bytes, gm_mul_sat(parts_of(p), matrix_bytes(rows, ldacc(p), p->product->accumulator)));
    return gm_add_sat(gm_add_sat(bytes, matrix_bytes(rows, s->n, p->result)), 1 << 20);
}

static int alloc_matrix(gm_bench_product *p, int64_t rows, int64_t cols, gm_dtype type, void **out)
{
    return p->bench->ops->alloc(p->bench->device, (size_t)matrix_bytes(rows, cols, type), out);
}

static void free_samples(gm_bench_product *p)
{
    for (int i = 0; i < GM_PRODUCT_SAMPLES; i++)
        gm_bench_sample_free(&p->samples[i]);
}

void gm_product_free(gm_bench_product *p)
{
    const gm_device_ops *ops = p->bench->ops;
    gm_device *device = p->bench->device;
    ops->free(device, p->nonfinite);
    if (p->c != p->acc)
        ops->free(device, p->c);
    ops->free(device, p->acc);
    ops->free(device, p->tiles);
    ops->free(device, p->parts);
    if (p->panel_b != p->b)
        ops->free(device, p->panel_b);
    if (p->panel_a != p->a)
        ops->free(device, p->panel_a);
    ops->free(device, p->b);
    for (int i = 0; i < 2; i++)
        ops->free(device, p->work[i]);
    ops->free(device, p->a);
    free_samples(p);
}

int gm_product_alloc(gm_bench_product *p)
{
    const gm_product_shape *s = &p->shape;
    gm_dtype operand = p->product->operand, accumulator = p->product->accumulator;
    int64_t rows = in_batch(p, p->room), rows_b = in_batch(p, s->k);
    void *count = NULL;
    int status = alloc_matrix(p, rows, s->k, p->type, &p->a);
    if (!status)
        status = alloc_matrix(p, rows_b, s->n, p->type, &p->b);
    p->panel_a = p->a;
    p->panel_b = p->b;
    if (!status && operand != p->type)
        status = alloc_matrix(p, rows, s->k, operand, &p->panel_a);
    if (!status && operand != p->type)
        status = alloc_matrix(p, rows_b, s->n, operand, &p->panel_b);
    if (!status)
        status = alloc_matrix(p, rows, s->n, acc_type(p), &p->acc);
    p->c = p->acc;
    if (!status && acc_type(p) != p->result)
        status = alloc_matrix(p, rows, s->n, p->result, &p->c);
    if (!status && p->product->wants_tiles)
        status = p->bench->ops->alloc(p->bench->device,
                                      (size_t)p->bench->job->threads * (size_t)p->product->wants_tiles *
                                          (size_t)(p->product->tile * p->product->tile) * gm_dtype_size(accumulator),
                                      &p->tiles);
    if (!status && parts_of(p))
        status = alloc_matrix(p, parts_of(p) * rows, ldacc(p), accumulator, &p->parts);
    for (int i = 0; i < 2 && !status && p->product->work.planes; i++)
        status = p->bench->ops->alloc(p->bench->device, work_bytes(p, i), &p->work[i]);
    if (!status)
        status = p->bench->ops->alloc(p->bench->device, sizeof *p->nonfinite, &count);
    p->nonfinite = count;
    return status ? status : p->bench->ops->zero(p->bench->queue, count, sizeof *p->nonfinite);
}

/* Makes a panel from the data, unless the panel is the data. */
static int unpack(gm_bench_product *p, int64_t rows, int64_t cols, const void *data, void *panel)
{
    if (panel == data)
        return GM_OK;
    gm_unpack_call call = {.rows = rows,
                           .cols = cols,
                           .src = data,
                           .src_pitch = (size_t)ld(cols, p->type) * gm_dtype_size(p->type),
                           .src_type = p->type,
                           .dst = panel,
                           .ld = ld(cols, p->product->operand),
                           .dst_type = p->product->operand};
    return p->bench->ops->unpack(p->bench->queue, &call);
}

int64_t gm_product_tile(const gm_bench_product *p)
{
    return gm_tiling_tile(p->shape.m, p->shape.n, p->product->tile);
}

static void set_calls(gm_bench_product *p)
{
    const gm_product_shape *s = &p->shape;
    gm_dtype operand = p->product->operand, accumulator = p->product->accumulator;
    p->product_call = (gm_product_call){.m = p->rows,
                                        .n = s->n,
                                        .k = s->k,
                                        .a = p->panel_a,
                                        .lda = ld(s->k, operand),
                                        .b = p->panel_b,
                                        .ldb = ld(s->n, operand),
                                        .acc = p->acc,
                                        .ldacc = ldacc(p),
                                        .leaf = leaf_of(p),
                                        .tile = gm_product_tile(p),
                                        .tiles = p->tiles,
                                        .tile_count = (int64_t)p->bench->job->threads * p->product->wants_tiles,
                                        .parts = p->parts,
                                        .part_count = parts_of(p),
                                        .work = {p->work[0], p->work[1]},
                                        .batch = gm_product_loops(p) ? 1 : s->batch,
                                        .next_a = p->rows * ld(s->k, operand),
                                        .next_b = s->k * ld(s->n, operand),
                                        .next_acc = p->rows * ldacc(p),
                                        .rounded = acc_type(p) != accumulator ? p->nonfinite : NULL};
    p->finish_call = (gm_finish_call){.rows = in_batch(p, p->rows),
                                      .cols = s->n,
                                      .acc = p->acc,
                                      .ldacc = ldacc(p),
                                      .acc_type = acc_type(p),
                                      .alpha = 1,
                                      .c0_type = p->result,
                                      .out = p->c,
                                      .out_type = p->result,
                                      .count = p->nonfinite};
}

/* Those of a frame. */
static gm_bench_factors factors_of(const gm_bench_product *p, int64_t frame)
{
    return (gm_bench_factors){.type = p->type,
                              .kind = p->kind,
                              .first = p->first + frame * p->rows,
                              .first_b = frame * p->shape.k,
                              .m = p->rows,
                              .n = p->shape.n,
                              .k = p->shape.k,
                              .key_a = p->key_a,
                              .key_b = p->key_b};
}

int gm_product_fill_b(gm_bench_product *p)
{
    const gm_product_shape *s = &p->shape;
    const gm_bench_factors factors = factors_of(p, 0);
    const gm_bench_matrix b = gm_bench_factor_b(&factors);
    int status = gm_bench_fill_rows(p->bench, p->b, &b, 0, in_batch(p, s->k), ld(s->n, p->type));
    if (!status)
        status = unpack(p, in_batch(p, s->k), s->n, p->b, p->panel_b);
    return status ? status : p->bench->ops->queue_sync(p->bench->queue);
}

int gm_product_fill_rows(gm_bench_product *p)
{
    const gm_product_shape *s = &p->shape;
    set_calls(p);
    const gm_bench_factors factors = factors_of(p, 0);
    const gm_bench_matrix a = gm_bench_factor_a(&factors);
    int status = gm_bench_fill_rows(p->bench, p->a, &a, p->first, in_batch(p, p->rows), ld(s->k, p->type));
    if (!status)
        status = unpack(p, in_batch(p, p->rows), s->k, p->a, p->panel_a);
    return status ? status : p->bench->ops->queue_sync(p->bench->queue);
}

/* The frame of a sample: the samples are as far apart as they can be. */
static int64_t frame_of(const gm_bench_product *p, int sample)
{
    return p->sample_count > 1 ? sample * (p->shape.batch - 1) / (p->sample_count - 1) : 0;
}

int gm_product_sample(gm_bench_product *p, int whole)
{
    int status = GM_OK;
    free_samples(p);
    p->sample_count = (int)gm_min(p->shape.batch, GM_PRODUCT_SAMPLES);
    for (int i = 0; i < p->sample_count && !status; i++) {
        const gm_bench_factors factors = factors_of(p, frame_of(p, i));
        status = gm_bench_sample_make(p->bench, &factors, whole, &p->samples[i]);
    }
    return status;
}

int gm_product_sample_rows(gm_bench_product *p)
{
    const gm_bench_factors factors = factors_of(p, 0);
    if (p->result == GM_DTYPE_F64 || p->shape.batch > 1)
        return gm_product_sample(p, 0);
    free_samples(p);
    p->sample_count = 1;
    return gm_bench_sample_rows(p->bench, &factors, p->b, ld(p->shape.n, p->type), &p->samples[0]);
}

/* --- Results --- */

int gm_product_run(const gm_bench_product *p, gm_queue *queue)
{
    const gm_product_call *first = &p->product_call;
    int64_t operand = (int64_t)gm_dtype_size(p->product->operand);
    int64_t acc = (int64_t)gm_dtype_size(acc_type(p));
    int status = GM_OK;
    for (int64_t f = 0; f < p->shape.batch && !status; f += first->batch) {
        gm_product_call call = *first;
        call.a = (const char *)first->a + f * first->next_a * operand;
        call.b = (const char *)first->b + f * first->next_b * operand;
        call.acc = (char *)first->acc + f * first->next_acc * acc;
        status = p->product->run(queue, &call);
    }
    return status || p->c == p->acc ? status : p->bench->ops->finish(queue, &p->finish_call);
}

int64_t gm_product_ldc(const gm_bench_product *p)
{
    return p->c == p->acc ? ldacc(p) : p->shape.n;
}

int gm_product_prepare(gm_bench_product *p)
{
    int status = gm_product_run(p, p->bench->queue);
    p->product_call.ready[0] = p->product_call.ready[1] = !status && !gm_product_loops(p);
    return status;
}

int gm_product_rounds(gm_precision precision)
{
    const gm_precision_info *info = gm_precision_get(precision);
    return gm_dtype_get_kind(info->operand) == GM_FLOAT && info->bits < gm_dtype_digits(info->operand);
}

/* Units of tensor cores that round the operands cut the sum off rather than round it to the nearest. */
double gm_product_bound(const gm_bench_product *p, gm_precision precision, int cuts)
{
    const gm_precision_info *info = gm_precision_get(precision);
    double operand = gm_product_rounds(precision) ? (cuts ? 2 : 1) * ldexp(1, -info->bits) : 0,
           sum = gm_dtype_roundoff(info->accumulator);
    double terms = (double)p->shape.k + 1;
    return (operand > 0 ? (2 + operand) * operand + 2 * terms * sum : terms * sum) + gm_dtype_roundoff(p->result);
}

/* The rates of tensor cores for shorter operands and for integers are not in what a device tells. */
double gm_product_limit(const gm_bench *bench, gm_precision precision, const gm_product *product)
{
    const gm_device_info *info = &bench->job->info;
    gm_dtype accumulator = gm_precision_get(precision)->accumulator;
    return gm_product_rounds(precision) || (product && product->work.planes) ? 0
           : accumulator == GM_DTYPE_F64                                     ? info->fp64_limit
           : accumulator == GM_DTYPE_F32                                     ? info->fp32_limit
                                                                             : 0;
}

int gm_product_check(const gm_bench_product *p, const gm_bench_case *call, double bound, const char *what,
                     gm_bench_errors *errors)
{
    const gm_bench *bench = p->bench;
    int64_t ldc = gm_product_ldc(p), frame = p->rows * ldc * (int64_t)gm_dtype_size(p->result);
    char shape[GM_BENCH_TEXT];
    int status = bench->ops->zero(bench->queue, p->c, (size_t)in_batch(p, frame));
    if (!status)
        status = call->run(call->context, bench->queue);
    *errors = (gm_bench_errors){0, 0};
    for (int i = 0; i < p->sample_count && !status; i++) {
        double most = 0, mean = 0;
        status = gm_bench_sample_compare(p->bench, &p->samples[i], (const char *)p->c + frame_of(p, i) * frame,
                                         p->result, ldc, &most, &mean);
        errors->max = fmax(errors->max, most);
        errors->mean += mean / p->sample_count;
    }
    if (!status && !(errors->max <= bound))
        status = gm_fail(
            GM_ECHECK, "bench %s: %s: %s: %s data: the relative error %.2e exceeds the rounding bound %.2e",
            bench->test, what, gm_product_format(&p->shape, shape), gm_bench_kind_name(p->kind), errors->max, bound);
    return status;
}

int gm_product_make(gm_bench *bench, const gm_product_shape *shape, gm_precision precision, gm_bench_product *p)
{
    const gm_precision_info *info = gm_precision_get(precision);
    const gm_product_query query = {.precision = precision,
                                    .kernel = gm_kernel_find(bench->job->options->kernel),
                                    .m = shape->m,
                                    .n = shape->n,
                                    .k = shape->k,
                                    .capability = bench->job->info.capability};
    *p = (gm_bench_product){.bench = bench,
                            .shape = *shape,
                            .rows = shape->m,
                            .room = shape->m,
                            .precision = precision,
                            .product = gm_product_find(bench->ops, bench->device, &query),
                            .type = info->operand,
                            .result = info->result,
                            .key_a = gm_random_key(1, 0),
                            .key_b = gm_random_key(1, 1)};
    return p->product != NULL;
}
