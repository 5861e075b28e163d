/* bench matmul - products of the program, with the leaves and tiles of the operation matmul and C rounded to its type,
 * and those of a library, in turn on the same matrices.
 *
 * At n = 1000, for which figures are published, the ladder of products comes first (lab/matmul_ladder.c). */
#include "base/log.h"
#include "base/random.h"
#include "base/size.h"
#include "base/tiling.h"
#include "kernels/matmul/calls.h"
#include "src/bench/lab/lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SHAPES = 16, EXAMPLE = 1000 };

typedef struct shape {
    int64_t m, n, k;
} shape;

static const gm_precision precisions[] = {GM_PRECISION_FP32, GM_PRECISION_EXACT, GM_PRECISION_FP64};

typedef struct comparison comparison;

typedef struct candidate {
    const comparison *comparison;
    gm_gemm *gemm; /* NULL: ours */
    char name[GM_BENCH_TEXT], kernel[GM_BENCH_TEXT];
    double limit, roundoff; /* flop/s; of one addition */
} candidate;

/* Matrices of a shape and a precision, and the candidates that multiply them. */
struct comparison {
    gm_bench *bench;
    shape shape;
    gm_precision precision;
    const gm_product *product;
    gm_dtype type, result;   /* of the data, of C */
    void *a, *b;             /* data: [m][lda], [k][ldb] */
    void *tiles;             /* one per thread, for a product that needs them */
    void *panel_a, *panel_b; /* the data in the type of the operands; a, b if the types are the same */
    void *acc, *c;           /* [m][n]; the same if they have the same type */
    gm_nonfinite *nonfinite;
    gm_product_call product_call;
    gm_finish_call finish_call;
    gm_gemm_call gemm_call;
    uint64_t key_a, key_b;
    gm_bench_sample sample;
    candidate candidates[GM_BENCH_CASES]; /* ours first, then the rival if there is one */
    int count, has_rival;
};

static int run_candidate(void *context, gm_queue *queue)
{
    const candidate *c = context;
    const comparison *r = c->comparison;
    if (c->gemm)
        return c->gemm(queue, &r->gemm_call);
    int status = r->product->run(queue, &r->product_call);
    return status || r->c == r->acc ? status : r->bench->ops->finish(queue, &r->finish_call);
}

/* Bytes of a matrix on the device. */
static int64_t matrix_bytes(int64_t rows, int64_t cols, gm_dtype type)
{
    int64_t size = (int64_t)gm_dtype_size(type);
    return gm_mul_sat(gm_mul_sat(rows, gm_tiling_ld(cols, size)), size);
}

/* Bytes that the comparison needs on the device. */
static int64_t comparison_bytes(const comparison *r)
{
    const shape *s = &r->shape;
    int64_t bytes = gm_add_sat(matrix_bytes(s->m, s->k, r->type), matrix_bytes(s->k, s->n, r->type));
    if (r->product->operand != r->type)
        bytes = gm_add_sat(bytes, gm_add_sat(matrix_bytes(s->m, s->k, r->product->operand),
                                             matrix_bytes(s->k, s->n, r->product->operand)));
    if (r->product->accumulator != r->result)
        bytes = gm_add_sat(bytes, matrix_bytes(s->m, s->n, r->product->accumulator));
    return gm_add_sat(gm_add_sat(bytes, matrix_bytes(s->m, s->n, r->result)), 1 << 20);
}

static int alloc_matrix(comparison *r, int64_t rows, int64_t cols, gm_dtype type, void **out)
{
    return r->bench->ops->alloc(r->bench->device, (size_t)matrix_bytes(rows, cols, type), out);
}

static int64_t ld(int64_t cols, gm_dtype type)
{
    return gm_tiling_ld(cols, (int64_t)gm_dtype_size(type));
}

static void free_comparison(comparison *r)
{
    const gm_device_ops *ops = r->bench->ops;
    gm_device *device = r->bench->device;
    ops->free(device, r->nonfinite);
    if (r->c != r->acc)
        ops->free(device, r->c);
    ops->free(device, r->acc);
    ops->free(device, r->tiles);
    if (r->panel_b != r->b)
        ops->free(device, r->panel_b);
    if (r->panel_a != r->a)
        ops->free(device, r->panel_a);
    ops->free(device, r->b);
    ops->free(device, r->a);
    gm_bench_sample_free(&r->sample);
}

static int alloc_comparison(comparison *r)
{
    const shape *s = &r->shape;
    gm_dtype operand = r->product->operand, accumulator = r->product->accumulator;
    void *count = NULL;
    int status = alloc_matrix(r, s->m, s->k, r->type, &r->a);
    if (!status)
        status = alloc_matrix(r, s->k, s->n, r->type, &r->b);
    r->panel_a = r->a;
    r->panel_b = r->b;
    if (!status && operand != r->type)
        status = alloc_matrix(r, s->m, s->k, operand, &r->panel_a);
    if (!status && operand != r->type)
        status = alloc_matrix(r, s->k, s->n, operand, &r->panel_b);
    if (!status)
        status = alloc_matrix(r, s->m, s->n, accumulator, &r->acc);
    r->c = r->acc;
    if (!status && accumulator != r->result)
        status = alloc_matrix(r, s->m, s->n, r->result, &r->c);
    if (!status && r->product->wants_tiles)
        status = r->bench->ops->alloc(r->bench->device,
                                      (size_t)r->bench->job->threads * (size_t)(r->product->tile * r->product->tile) *
                                          gm_dtype_size(accumulator),
                                      &r->tiles);
    if (!status)
        status = r->bench->ops->alloc(r->bench->device, sizeof *r->nonfinite, &count);
    r->nonfinite = count;
    return status ? status : r->bench->ops->zero(r->bench->queue, count, sizeof *r->nonfinite);
}

/* Makes a panel from the data, unless the panel is the data. */
static int unpack(comparison *r, int64_t rows, int64_t cols, const void *data, void *panel)
{
    if (panel == data)
        return GM_OK;
    gm_unpack_call call = {.rows = rows,
                           .cols = cols,
                           .src = data,
                           .src_pitch = (size_t)ld(cols, r->type) * gm_dtype_size(r->type),
                           .src_type = r->type,
                           .dst = panel,
                           .ld = ld(cols, r->product->operand),
                           .dst_type = r->product->operand};
    return r->bench->ops->unpack(r->bench->queue, &call);
}

static int fill_comparison(comparison *r)
{
    const shape *s = &r->shape;
    uint64_t key_a = r->key_a, key_b = r->key_b;
    int status = gm_bench_fill(r->bench, r->a, r->type, s->m, s->k, ld(s->k, r->type), key_a);
    if (!status)
        status = gm_bench_fill(r->bench, r->b, r->type, s->k, s->n, ld(s->n, r->type), key_b);
    if (!status)
        status = unpack(r, s->m, s->k, r->a, r->panel_a);
    if (!status)
        status = unpack(r, s->k, s->n, r->b, r->panel_b);
    if (!status)
        status = gm_bench_sample_make(r->bench, r->type, s->m, s->n, s->k, key_a, key_b, &r->sample);
    return status ? status : r->bench->ops->queue_sync(r->bench->queue);
}

static void set_calls(comparison *r)
{
    const shape *s = &r->shape;
    gm_dtype operand = r->product->operand, accumulator = r->product->accumulator;
    r->product_call = (gm_product_call){.m = s->m,
                                        .n = s->n,
                                        .k = s->k,
                                        .a = r->panel_a,
                                        .lda = ld(s->k, operand),
                                        .b = r->panel_b,
                                        .ldb = ld(s->n, operand),
                                        .acc = r->acc,
                                        .ldacc = ld(s->n, accumulator),
                                        .leaf = gm_tiling_leaf(r->precision, s->k),
                                        .tile = gm_tiling_tile(s->m, s->n, r->product->tile),
                                        .tiles = r->tiles,
                                        .tile_count = r->bench->job->threads};
    r->finish_call = (gm_finish_call){.rows = s->m,
                                      .cols = s->n,
                                      .acc = r->acc,
                                      .ldacc = ld(s->n, accumulator),
                                      .acc_type = accumulator,
                                      .alpha = 1,
                                      .c0_type = r->result,
                                      .out = r->c,
                                      .out_type = r->result,
                                      .count = r->nonfinite};
    r->gemm_call = (gm_gemm_call){.type = r->type,
                                  .m = s->m,
                                  .n = s->n,
                                  .k = s->k,
                                  .a = r->a,
                                  .lda = ld(s->k, r->type),
                                  .b = r->b,
                                  .ldb = ld(s->n, r->type),
                                  .c = r->c,
                                  .ldc = r->c == r->acc ? ld(s->n, r->result) : s->n};
}

static candidate *add_candidate(comparison *r, gm_gemm *gemm, const char *name, const char *kernel, gm_dtype arithmetic)
{
    const gm_device_info *info = &r->bench->job->info;
    candidate *c = &r->candidates[r->count++];
    *c = (candidate){.comparison = r,
                     .gemm = gemm,
                     .limit = arithmetic == GM_DTYPE_F64 ? info->fp64_limit : info->fp32_limit,
                     .roundoff = arithmetic == GM_DTYPE_F64 ? 0x1p-53 : 0x1p-24};
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->kernel, sizeof c->kernel, "%s", kernel);
    return c;
}

static void add_candidates(comparison *r)
{
    const gm_measure_ops *measure = r->bench->measure;
    const char *absence, *rival = measure->rival ? measure->rival(r->bench->device, &absence) : NULL;
    add_candidate(r, NULL, gm_precision_get(r->precision)->name, r->product->kernel, r->product->accumulator);
    r->has_rival = rival != NULL;
    if (rival) {
        char name[GM_BENCH_TEXT];
        snprintf(name, sizeof name, "%.40s %s", rival, r->type == GM_DTYPE_F64 ? "fp64" : "fp32");
        add_candidate(r, measure->rival_product, name, rival, r->type);
    }
}

/* Errors of the C that this candidate makes, from zeros. */
static int check_candidate(const candidate *c, double *max_error, double *mean_error)
{
    const comparison *r = c->comparison;
    const gm_bench *bench = r->bench;
    int64_t ldc = r->gemm_call.ldc, size = (int64_t)gm_dtype_size(r->result);
    int status = bench->ops->zero(bench->queue, r->c, (size_t)(r->shape.m * ldc * size));
    if (!status)
        status = run_candidate((void *)c, bench->queue);
    if (!status)
        status = gm_bench_sample_compare(r->bench, &r->sample, r->c, r->result, ldc, max_error, mean_error);
    /* The bound for a sum of k rounded terms in any order, plus the rounding of C to its type. */
    double bound = ((double)r->shape.k + 1) * c->roundoff + (r->result == GM_DTYPE_F64 ? 0x1p-53 : 0x1p-24);
    if (!status && !(*max_error <= bound))
        status = gm_fail(GM_ECHECK,
                         "bench matmul: %s: %" PRId64 " x %" PRId64 " x %" PRId64
                         ": the relative error %.2e exceeds the rounding bound %.2e",
                         c->name, r->shape.m, r->shape.n, r->shape.k, *max_error, bound);
    return status;
}

static int add_rows(comparison *r, gm_cache_state cache, const gm_bench_timing *timings, const double *max_error,
                    const double *mean_error)
{
    const shape *s = &r->shape;
    double work = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    int status = GM_OK;
    for (int i = 0; i < r->count && !status; i++) {
        const candidate *c = &r->candidates[i];
        gm_bench_row row = gm_bench_row_make(r->bench, c->name, c->kernel, cache, &timings[i]);
        row.work = work;
        row.unit = gm_bench_unit_flops;
        row.computed = c->limit;
        row.max_error = max_error[i];
        row.mean_error = mean_error[i];
        if (r->has_rival && i != 1 && timings[1].median > 0)
            row.rival = work / timings[1].median;
        if (!c->gemm) {
            row.leaf = r->product_call.leaf;
            row.tile = r->product_call.tile;
        }
        snprintf(row.shape, sizeof row.shape, "%" PRId64 "x%" PRId64 "x%" PRId64, s->m, s->n, s->k);
        status = gm_bench_add(r->bench, &row);
    }
    return status;
}

static int run_comparison(comparison *r)
{
    gm_bench_case cases[GM_BENCH_CASES];
    gm_bench_timing timings[GM_CACHE_STATES][GM_BENCH_CASES];
    double max_error[GM_BENCH_CASES], mean_error[GM_BENCH_CASES];
    gm_cache_state states = r->bench->measure->flush ? GM_CACHE_STATES : GM_CACHE_COLD;
    const shape *s = &r->shape;
    int status = alloc_comparison(r);
    if (!status)
        status = fill_comparison(r);
    if (!status && r->precision == GM_PRECISION_FP32 && s->m == EXAMPLE && s->n == EXAMPLE && s->k == EXAMPLE)
        status = gm_lab_matmul_ladder(r->bench, &r->sample, r->key_a, r->key_b);
    if (status)
        return status;
    set_calls(r);
    add_candidates(r);
    for (int i = 0; i < r->count; i++)
        cases[i] = (gm_bench_case){run_candidate, &r->candidates[i]};
    for (gm_cache_state cache = GM_CACHE_WARM; cache < states && !status; cache++)
        status = gm_bench_time(r->bench, cases, r->count, cache == GM_CACHE_COLD, timings[cache]);
    for (int i = 0; i < r->count && !status; i++)
        status = check_candidate(&r->candidates[i], &max_error[i], &mean_error[i]);
    for (gm_cache_state cache = GM_CACHE_WARM; cache < states && !status; cache++)
        status = add_rows(r, cache, timings[cache], max_error, mean_error);
    return status;
}

/* All precisions of a shape. A default shape that does not fit is skipped. */
static int measure_shape(gm_bench *bench, const shape *s, int asked)
{
    int status = GM_OK;
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0] && !status; i++) {
        const gm_precision_info *info = gm_precision_get(precisions[i]);
        comparison r = {.bench = bench,
                        .shape = *s,
                        .precision = precisions[i],
                        .type = info->operand,
                        .result = info->result,
                        .key_a = gm_random_key(1, 0),
                        .key_b = gm_random_key(1, 1)};
        char need[GM_SIZE_TEXT], room[GM_SIZE_TEXT];
        r.product = bench->ops->product(bench->device, precisions[i]);
        if (!r.product) {
            gm_note("bench matmul: %s: not supported on a device of kind %s", info->name, bench->ops->kind);
            continue;
        }
        if (comparison_bytes(&r) > gm_bench_room(bench) && !asked) {
            gm_note("bench matmul: %s of n = %" PRId64 " skipped: it needs %s of device memory, %s is available",
                    info->name, s->n, gm_size_format(comparison_bytes(&r), need),
                    gm_size_format(gm_bench_room(bench), room));
            continue;
        }
        status = run_comparison(&r);
        free_comparison(&r);
    }
    return status;
}

/* A list, separated by commas, of "1024" or "512x256x4096" (m, n, k). */
static int parse_shapes(const char *text, shape *shapes, int *count)
{
    int good = 1;
    *count = 0;
    for (const char *at = text; at && good; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[80], *next = word;
        int64_t side[3];
        int sides = 0;
        good = strcspn(at, ",") < sizeof word && *count < MOST_SHAPES;
        snprintf(word, sizeof word, "%.*s", (int)gm_min((int64_t)strcspn(at, ","), sizeof word - 1), at);
        for (char *one; good && (one = strsep(&next, "x"));)
            good = sides < 3 && !gm_integer_parse(one, 1, INT32_MAX, &side[sides++]);
        if (good && sides == 1)
            side[1] = side[2] = side[0];
        good = good && sides != 2;
        if (good)
            shapes[(*count)++] = (shape){side[0], side[1], side[2]};
    }
    return good ? GM_OK
                : gm_fail(GM_EUSAGE,
                          "--shapes '%s': bench matmul expected up to %d shapes N or MxNxK, separated by commas", text,
                          MOST_SHAPES);
}

int gm_bench_matmul(gm_bench *bench)
{
    static const int64_t large[] = {EXAMPLE, 1024, 4096, 8192, 16384}, small[] = {EXAMPLE, 512, 1024, 2048};
    const gm_job *job = bench->job;
    shape shapes[MOST_SHAPES];
    const char *absence = NULL;
    int count = 0, status = GM_OK, asked = job->options->shapes != NULL;
    if (asked)
        status = parse_shapes(job->options->shapes, shapes, &count);
    int defaults = job->ops->unified ? 4 : 5;
    if (bench->is_brief) /* the exact elements of the larger ones take long as well */
        defaults -= 2;
    for (int i = 0; !asked && i < defaults; i++) {
        int64_t n = job->ops->unified ? small[i] : large[i];
        shapes[count++] = (shape){n, n, n};
    }
    if (!status && !(bench->measure->rival && bench->measure->rival(bench->device, &absence)))
        gm_note("bench matmul: no library to compare with: %s", absence ? absence : "the device has none");
    for (int i = 0; i < count && !status; i++)
        status = measure_shape(bench, &shapes[i], asked);
    return status;
}
