/* bench matmul - products of the program, with the leaves and tiles of the operation matmul and C rounded to its type,
 * and those of a library, in turn on the same matrices.
 *
 * At n = 1000, for which figures are published, the ladder of products comes first (lab/matmul_ladder.c). */
#include "base/log.h"
#include "base/size.h"
#include "base/tiling.h"
#include "src/bench/lab/lab.h"
#include "src/bench/operations/product.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EXAMPLE = 1000 };

typedef struct comparison comparison;

typedef struct candidate {
    const comparison *comparison;
    gm_gemm *gemm; /* NULL: ours */
    char name[GM_BENCH_TEXT], kernel[GM_BENCH_TEXT];
    gm_dtype arithmetic;
} candidate;

/* Matrices of a shape and a precision, and the candidates that multiply them. */
struct comparison {
    gm_bench_product product;
    gm_gemm_call gemm_call;
    candidate candidates[GM_BENCH_CASES]; /* ours first, then the rival if there is one */
    int count, has_rival;
};

static int run_candidate(void *context, gm_queue *queue)
{
    const candidate *c = context;
    const comparison *r = c->comparison;
    return c->gemm ? c->gemm(queue, &r->gemm_call) : gm_product_run(&r->product, queue);
}

static void set_gemm_call(comparison *r)
{
    const gm_bench_product *p = &r->product;
    int64_t size = (int64_t)gm_dtype_size(p->type);
    r->gemm_call = (gm_gemm_call){.type = p->type,
                                  .m = p->shape.m,
                                  .n = p->shape.n,
                                  .k = p->shape.k,
                                  .a = p->a,
                                  .lda = gm_tiling_ld(p->shape.k, size),
                                  .b = p->b,
                                  .ldb = gm_tiling_ld(p->shape.n, size),
                                  .c = p->c,
                                  .ldc = gm_product_ldc(p)};
}

static void add_candidate(comparison *r, gm_gemm *gemm, const char *name, const char *kernel, gm_dtype arithmetic)
{
    candidate *c = &r->candidates[r->count++];
    *c = (candidate){.comparison = r, .gemm = gemm, .arithmetic = arithmetic};
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->kernel, sizeof c->kernel, "%s", kernel);
}

static void add_candidates(comparison *r)
{
    const gm_bench_product *p = &r->product;
    const gm_measure_ops *measure = p->bench->measure;
    const char *absence, *rival = measure->rival ? measure->rival(p->bench->device, &absence) : NULL;
    add_candidate(r, NULL, gm_precision_get(p->precision)->name, p->product->kernel, p->product->accumulator);
    r->has_rival = rival != NULL;
    if (rival) {
        char name[GM_BENCH_TEXT];
        snprintf(name, sizeof name, "%.40s %s", rival, p->type == GM_DTYPE_F64 ? "fp64" : "fp32");
        add_candidate(r, measure->rival_product, name, rival, p->type);
    }
}

static int add_rows(comparison *r, gm_cache_state cache, const gm_bench_timing *timings, const double *max_error,
                    const double *mean_error)
{
    const gm_bench_product *p = &r->product;
    const gm_product_shape *s = &p->shape;
    double work = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    int status = GM_OK;
    for (int i = 0; i < r->count && !status; i++) {
        const candidate *c = &r->candidates[i];
        gm_bench_row row = gm_bench_row_make(p->bench, c->name, c->kernel, cache, &timings[i]);
        row.work = work;
        row.unit = gm_bench_unit_flops;
        row.computed = gm_product_limit(p->bench, c->arithmetic);
        row.max_error = max_error[i];
        row.mean_error = mean_error[i];
        if (r->has_rival && i != 1 && timings[1].median > 0)
            row.rival = work / timings[1].median;
        if (!c->gemm) {
            row.leaf = p->product_call.leaf;
            row.tile = p->product_call.tile;
        }
        snprintf(row.shape, sizeof row.shape, "%" PRId64 "x%" PRId64 "x%" PRId64, s->m, s->n, s->k);
        status = gm_bench_add(p->bench, &row);
    }
    return status;
}

static int run_comparison(comparison *r)
{
    gm_bench_case cases[GM_BENCH_CASES];
    gm_bench_timing timings[GM_CACHE_STATES][GM_BENCH_CASES];
    double max_error[GM_BENCH_CASES], mean_error[GM_BENCH_CASES];
    gm_bench_product *p = &r->product;
    gm_cache_state states = p->bench->measure->flush ? GM_CACHE_STATES : GM_CACHE_COLD;
    const gm_product_shape *s = &p->shape;
    int status = gm_product_alloc(p);
    if (!status)
        status = gm_product_fill_b(p);
    if (!status)
        status = gm_product_fill_rows(p);
    if (!status)
        status = gm_product_sample(p, 1);
    if (!status && p->precision == GM_PRECISION_FP32 && s->m == EXAMPLE && s->n == EXAMPLE && s->k == EXAMPLE)
        status = gm_lab_matmul_ladder(p->bench, &p->sample, p->key_a, p->key_b);
    if (status)
        return status;
    set_gemm_call(r);
    add_candidates(r);
    for (int i = 0; i < r->count; i++)
        cases[i] = (gm_bench_case){run_candidate, &r->candidates[i]};
    for (gm_cache_state cache = GM_CACHE_WARM; cache < states && !status; cache++)
        status = gm_bench_time(p->bench, cases, r->count, cache == GM_CACHE_COLD, timings[cache]);
    for (int i = 0; i < r->count && !status; i++)
        status = gm_product_check(p, run_candidate, &r->candidates[i], r->gemm_call.ldc, r->candidates[i].arithmetic,
                                  r->candidates[i].name, &max_error[i], &mean_error[i]);
    for (gm_cache_state cache = GM_CACHE_WARM; cache < states && !status; cache++)
        status = add_rows(r, cache, timings[cache], max_error, mean_error);
    return status;
}

/* All precisions of a shape. A default shape that does not fit is skipped. */
static int measure_shape(gm_bench *bench, const gm_product_shape *s, int asked)
{
    int status = GM_OK;
    for (int i = 0; i < GM_PRODUCT_PRECISIONS && !status; i++) {
        const char *name = gm_precision_get(gm_product_precisions[i])->name;
        comparison r = {.count = 0};
        char need[GM_SIZE_TEXT], room[GM_SIZE_TEXT];
        if (!gm_product_make(bench, s, gm_product_precisions[i], &r.product)) {
            gm_note("bench matmul: %s: not supported on a device of kind %s", name, bench->ops->kind);
            continue;
        }
        int64_t bytes = gm_product_bytes(&r.product);
        if (bytes > gm_bench_room(bench) && !asked) {
            gm_note("bench matmul: %s of n = %" PRId64 " skipped: it needs %s of device memory, %s is available", name,
                    s->n, gm_size_format(bytes, need), gm_size_format(gm_bench_room(bench), room));
            continue;
        }
        status = run_comparison(&r);
        gm_product_free(&r.product);
    }
    return status;
}

int gm_bench_matmul(gm_bench *bench)
{
    static const int64_t large[] = {EXAMPLE, 1024, 4096, 8192, 16384}, small[] = {EXAMPLE, 512, 1024, 2048};
    const gm_job *job = bench->job;
    gm_product_shape shapes[GM_PRODUCT_SHAPES];
    const char *absence = NULL;
    int count = 0, status = GM_OK, asked = job->options->shapes != NULL;
    if (asked)
        status = gm_product_parse(bench, shapes, &count);
    int defaults = job->ops->unified ? 4 : 5;
    if (bench->is_brief) /* the exact elements of the larger ones take long as well */
        defaults -= 2;
    for (int i = 0; !asked && i < defaults; i++) {
        int64_t n = job->ops->unified ? small[i] : large[i];
        shapes[count++] = (gm_product_shape){n, n, n};
    }
    if (!status && !(bench->measure->rival && bench->measure->rival(bench->device, &absence)))
        gm_note("bench matmul: no library to compare with: %s", absence ? absence : "the device has none");
    for (int i = 0; i < count && !status; i++)
        status = measure_shape(bench, &shapes[i], asked);
    return status;
}
