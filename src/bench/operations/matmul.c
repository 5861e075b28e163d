/* bench matmul - products of the program, with the leaves and tiles of the operation matmul and C rounded to its type,
 * and those of a library, in turn on the same matrices: in every precision that the device has. Errors are measured for
 * each kind of data.
 *
 * At n = 1000, for which figures are published, the ladder of products comes first (matmul_ladder.c). A grid of shapes
 * (shapes.c) has shorter measurements, of warm data.
 *
 * A batch is one call of the library, and one of the program if its product takes batches. If not, its products are
 * timed one after the other, as the operation makes them: with their launches, and with the splitting of panels, which
 * is done before where the panels of all products stay split. */
#include "base/log.h"
#include "base/size.h"
#include "src/bench/lab/lab.h"
#include "src/bench/operations/rival.h"
#include "src/bench/ratios.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EXAMPLE = 1000, CANDIDATES = 1 + GM_RIVAL_CALLS };

typedef struct comparison comparison;

typedef struct candidate {
    const comparison *comparison;
    const gm_gemm_call *gemm; /* NULL: ours */
    char name[GM_BENCH_TEXT], kernel[GM_BENCH_TEXT];
    gm_precision precision;
    gm_bench_errors of_row; /* of uniform data, as the row has them */
    gm_bench_errors errors[GM_BENCH_KINDS];
} candidate;

/* Matrices of a shape and a precision, and the candidates that multiply them. */
struct comparison {
    gm_bench_product product;
    gm_bench_rival rival;
    candidate candidates[CANDIDATES]; /* ours first, then the calls of the rival */
    int count, is_grid;
};

static int run_candidate(void *context, gm_queue *queue)
{
    const candidate *c = context;
    const comparison *r = c->comparison;
    return c->gemm ? r->product.bench->measure->rival_product(queue, c->gemm, NULL)
                   : gm_product_run(&r->product, queue);
}

static candidate *add_candidate(comparison *r, const char *kernel, gm_precision precision)
{
    candidate *c = &r->candidates[r->count++];
    *c = (candidate){.comparison = r, .precision = precision};
    for (int i = 0; i < GM_BENCH_KINDS; i++)
        c->errors[i] = (gm_bench_errors){-1, -1};
    snprintf(c->kernel, sizeof c->kernel, "%s", kernel);
    return c;
}

static void add_candidates(comparison *r)
{
    const gm_bench_product *p = &r->product;
    candidate *ours = add_candidate(r, p->product->kernel, p->precision);
    snprintf(ours->name, sizeof ours->name, "%s", gm_precision_get(p->precision)->name);
    for (int i = 0; i < r->rival.count; i++) {
        gm_precision precision = r->rival.kind->precision;
        candidate *c = add_candidate(r, r->rival.name, precision);
        c->gemm = &r->rival.calls[i];
        snprintf(c->name, sizeof c->name, "%.26s %.6s%s", r->rival.name, gm_precision_get(precision)->name,
                 c->gemm->transpose_b ? ", B'" : "");
    }
}

/* --- Errors --- */

/* float16 holds no data that are scaled. A library may leave it to the tensor cores to cut float32 off to tf32. */
static double bound_of(const comparison *r, const candidate *c)
{
    return r->product.kind == GM_BENCH_SCALED && c->precision == GM_PRECISION_FP16
               ? INFINITY
               : gm_product_bound(&r->product, c->precision, c->gemm != NULL);
}

static int check_candidate(const comparison *r, candidate *c, gm_bench_errors *errors)
{
    const gm_bench_case call = {run_candidate, c};
    return gm_product_check(&r->product, &call, bound_of(r, c), c->name, errors);
}

static int measure_kind(comparison *r, gm_bench_kind kind)
{
    gm_bench_product *p = &r->product;
    int status = GM_OK, has_data = kind == p->kind;
    if (!gm_bench_kind_applies(kind, p->type))
        return GM_OK;
    p->kind = kind;
    if (!has_data)
        status = gm_product_fill_b(p);
    if (!status && !has_data)
        status = gm_product_fill_rows(p);
    if (!status && !has_data)
        status = gm_rival_fill(&r->rival);
    if (!status)
        status = gm_product_sample_rows(p);
    for (int i = 0; i < r->count && !status; i++) {
        candidate *c = &r->candidates[i];
        status = check_candidate(r, c, &c->errors[kind]);
    }
    return status;
}

/* Errors of uniform data, and of all kinds. In a grid those of whole rows: the reference of more elements takes longer
 * than the products. */
static int measure_errors(comparison *r)
{
    int status = GM_OK, are_all = r->is_grid || !r->product.bench->is_brief;
    for (int i = 0; i < r->count && !status && !r->is_grid; i++) {
        candidate *c = &r->candidates[i];
        status = check_candidate(r, c, &c->of_row);
    }
    for (gm_bench_kind kind = GM_BENCH_UNIFORM; kind < GM_BENCH_KINDS && !status && are_all; kind++)
        status = measure_kind(r, kind);
    for (int i = 0; i < r->count && r->is_grid; i++)
        r->candidates[i].of_row = r->candidates[i].errors[GM_BENCH_UNIFORM];
    return status;
}

/* --- Rows --- */

/* A grid is a map for each precision. */
static void place_row(const comparison *r, gm_bench_row *row)
{
    const gm_product_shape *s = &r->product.shape;
    row->panel = gm_precision_get(r->product.precision)->name;
    row->x = (double)s->n;
    row->y = (double)s->m;
    row->z = (double)s->k;
    row->x_name = "n";
    row->y_name = "m";
    row->z_name = "k";
}

static int add_rows(comparison *r, gm_cache_state cache, const gm_bench_timing *timings)
{
    const gm_bench_product *p = &r->product;
    const gm_product_shape *s = &p->shape;
    double work = 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch, rival = 0;
    int status = GM_OK;
    const char *name = NULL;
    for (int i = 1; i < r->count; i++)
        if (timings[i].median > 0 && work / timings[i].median > rival) {
            rival = work / timings[i].median;
            name = r->candidates[i].name;
        }
    for (int i = 0; i < r->count && !status; i++) {
        const candidate *c = &r->candidates[i];
        gm_bench_row row = gm_bench_row_make(p->bench, c->name, c->kernel, cache, &timings[i]);
        row.work = work;
        row.unit = gm_bench_unit_flops;
        row.computed = gm_product_limit(p->bench, c->precision, c->gemm ? NULL : p->product);
        row.max_error = c->of_row.max;
        row.mean_error = c->of_row.mean;
        row.has_errors = c->errors[GM_BENCH_UNIFORM].max >= 0;
        memcpy(row.errors, c->errors, sizeof row.errors);
        if (!c->gemm) {
            row.rival = rival;
            row.rival_name = name;
            row.leaf = p->product_call.leaf;
            row.tile = p->product_call.tile;
        }
        if (r->is_grid)
            place_row(r, &row);
        else if (s->batch > 1)
            row.panel = "batch"; /* apart from large products, which are much faster; so are the means of ratios */
        gm_product_format(s, row.shape);
        status = gm_bench_add(p->bench, &row);
    }
    return status;
}

/* --- Shapes --- */

/* The matrices, and uniform data. */
static int prepare(comparison *r)
{
    gm_bench_product *p = &r->product;
    int status = gm_product_alloc(p);
    if (!status)
        status = gm_rival_alloc(&r->rival);
    if (!status)
        status = gm_product_fill_b(p);
    if (!status)
        status = gm_product_fill_rows(p);
    if (!status)
        status = gm_rival_fill(&r->rival);
    return status ? status : gm_rival_find_calls(&r->rival);
}

static int is_example(const comparison *r)
{
    const gm_product_shape *s = &r->product.shape;
    return !r->is_grid && r->product.precision == GM_PRECISION_FP32 && s->m == EXAMPLE && s->n == EXAMPLE &&
           s->k == EXAMPLE && s->batch == 1;
}

static int run_comparison(comparison *r)
{
    gm_bench_case cases[GM_BENCH_CASES];
    gm_bench_timing timings[GM_CACHE_STATES][GM_BENCH_CASES];
    gm_bench_product *p = &r->product;
    gm_cache_state states = p->bench->measure->flush && !r->is_grid ? GM_CACHE_STATES : GM_CACHE_COLD;
    int status = prepare(r);
    if (!status && !r->is_grid)
        status = gm_product_sample(p, 1);
    if (!status && is_example(r))
        status = gm_lab_matmul_ladder(p->bench, &p->samples[0], p->key_a, p->key_b);
    if (status)
        return status;
    add_candidates(r);
    for (int i = 0; i < r->count; i++)
        cases[i] = (gm_bench_case){run_candidate, &r->candidates[i]};
    status = gm_product_prepare(p);
    p->bench->has_loops = gm_product_loops(p);
    for (gm_cache_state cache = GM_CACHE_WARM; cache < states && !status; cache++)
        status = gm_bench_time(p->bench, cases, r->count, cache == GM_CACHE_COLD, timings[cache]);
    p->bench->has_loops = 0;
    memset(p->product_call.ready, 0, sizeof p->product_call.ready); /* other data follow */
    if (!status)
        status = measure_errors(r);
    for (gm_cache_state cache = GM_CACHE_WARM; cache < states && !status; cache++)
        status = add_rows(r, cache, timings[cache]);
    return status;
}

/* A precision of a shape, if the device supports it. A shape that the user has not named is skipped if it does not fit.
 */
static int measure_precision(gm_bench *bench, const gm_product_shape *s, gm_precision precision, int asked, int is_grid)
{
    comparison r = {.is_grid = is_grid};
    char need[GM_SIZE_TEXT], room[GM_SIZE_TEXT], shape[GM_BENCH_TEXT];
    if (!gm_product_make(bench, s, precision, &r.product))
        return GM_OK;
    r.rival = gm_rival_make(&r.product);
    int64_t bytes = gm_add_sat(gm_product_bytes(&r.product), gm_rival_bytes(&r.rival));
    if (bytes > gm_bench_room(bench) && !asked) {
        gm_note("bench matmul: %s of %s skipped: it needs %s of device memory, %s is available",
                gm_precision_get(precision)->name, gm_product_format(s, shape), gm_size_format(bytes, need),
                gm_size_format(gm_bench_room(bench), room));
        return GM_OK;
    }
    int status = run_comparison(&r);
    gm_rival_free(&r.rival);
    gm_product_free(&r.product);
    return status;
}

static int measure_shapes(gm_bench *bench, const gm_product_shape *shapes, int count, int asked, int is_grid)
{
    const char *absence = NULL;
    int status = GM_OK;
    if (!(bench->measure->rival && bench->measure->rival(bench->device, &absence)))
        gm_note("bench matmul: no library to compare with: %s", absence ? absence : "the device has none");
    for (int i = 0; i < count && !status; i++)
        for (int j = 0; j < GM_PRECISIONS && !status; j++)
            status = measure_precision(bench, &shapes[i], (gm_precision)j, asked, is_grid);
    return status ? status : gm_ratios_print(bench);
}

/* Measurements as short as where all tests run: of that many shapes each one counts little. */
static int measure_grid(gm_bench *bench)
{
    static const int64_t large[] = {64, 127, 512, 1000, 4096, 8191, 16384},
                         small[] = {64, 127, 256, 512, 768, 1000, 1024};
    gm_product_shape shapes[GM_GRID_SHAPES];
    int count = 0, is_brief = bench->is_brief;
    int status = gm_grid_parse(bench->job->options->shapes, bench->ops->unified ? small : large, 7, shapes, &count);
    bench->is_brief = 1;
    if (!status)
        status = measure_shapes(bench, shapes, count, 0, 1);
    bench->is_brief = is_brief;
    return status;
}

int gm_bench_matmul(gm_bench *bench)
{
    static const int64_t large[] = {EXAMPLE, 1024, 4096, 8192, 16384}, small[] = {EXAMPLE, 512, 1024, 2048};
    enum { FRAME = 64, FRAMES = 10000, FEW_FRAMES = 1000 };
    const gm_job *job = bench->job;
    gm_product_shape shapes[GM_PRODUCT_SHAPES];
    int count = 0, status = GM_OK, asked = job->options->shapes != NULL;
    if (gm_grid_is_named(job->options->shapes))
        return measure_grid(bench);
    if (asked)
        status = gm_product_parse(bench, 1, shapes, &count);
    int defaults = job->ops->unified ? 4 : 5;
    if (bench->is_brief) /* the exact elements of the larger ones take long as well */
        defaults -= 2;
    for (int i = 0; !asked && i < defaults; i++) {
        int64_t n = job->ops->unified ? small[i] : large[i];
        shapes[count++] = (gm_product_shape){n, n, n, 1};
    }
    if (!asked && !job->ops->unified)
        shapes[count++] = (gm_product_shape){FRAME, FRAME, FRAME, bench->is_brief ? FEW_FRAMES : FRAMES};
    return status ? status : measure_shapes(bench, shapes, count, asked, 0);
}
