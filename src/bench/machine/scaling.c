/* bench scaling - an operation on 1, 2, 4, ... all ranks at once, each with its device, beside as many times the rate
 * of one rank. Strong: one product, whose rows are split among the ranks at borders of tiles; weak: each rank has as
 * many rows as one rank had. B is on every rank before. In memory: what files and the exchange cost is no part of it.
 */
#include "base/range.h"
#include "base/size.h"
#include "src/bench/operations/product.h"
#include "src/bench/team.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST = 64 };
static const int64_t usual_n[2] = {16384, 1024 /* on a processor, whose calls must end within a second */};

typedef enum way { STRONG, WEAK, WAYS } way;

/* A rank's part of a product. */
typedef struct outcome {
    double rows, limit;
    gm_bench_errors errors;
} outcome;

typedef struct scaling {
    gm_bench_product product;
    gm_product_shape shape; /* of one rank's product */
    double one;             /* rate of one rank; on rank 0 */
    outcome *outcomes;      /* [ranks]; on rank 0 */
} scaling;

static int run_product(void *context, gm_queue *queue)
{
    return gm_product_run(context, queue);
}

static int run(void *context, gm_team_share *share)
{
    const gm_bench_product *p = context;
    if (p->rows == 0)
        return GM_OK;
    share->work = 2.0 * (double)p->rows * (double)p->shape.n * (double)p->shape.k;
    int status = gm_product_run(p, p->bench->queue);
    return status ? status : p->bench->ops->queue_sync(p->bench->queue);
}

/* The part of this rank, and its data. */
static int prepare(scaling *s, way way, const gm_team *team)
{
    gm_bench_product *p = &s->product;
    int rank = p->bench->job->ranks->rank;
    p->shape = s->shape;
    p->shape.m = way == WEAK ? s->shape.m * team->count : s->shape.m;
    p->rows = 0;
    if (!gm_team_has(team, rank))
        return GM_OK;
    gm_range rows = gm_range_split(p->shape.m, way == WEAK ? s->shape.m : gm_product_tile(p), team->count, rank);
    p->first = rows.begin;
    p->rows = gm_range_length(rows);
    return p->rows > 0 ? gm_product_fill_rows(p) : GM_OK;
}

/* The errors of this rank's part. */
static int check(scaling *s, const char *what, outcome *o)
{
    gm_bench_product *p = &s->product;
    *o = (outcome){.rows = (double)p->rows, .limit = gm_product_limit(p->bench, p->precision, p->product)};
    if (p->rows == 0)
        return GM_OK;
    const gm_bench_case call = {run_product, p};
    int status = gm_product_sample(p, 0);
    return status ? status : gm_product_check(p, &call, gm_product_bound(p, p->precision, 0), what, &o->errors);
}

/* The errors of all parts, and the limits of the devices. Rank 0. */
static void collect(const scaling *s, const gm_team *team, gm_bench_row *row)
{
    double rows = 0, sum = 0, limit = 0, known = 1;
    row->max_error = 0;
    for (int r = 0; r < team->count; r++) {
        const outcome *o = &s->outcomes[r];
        rows += o->rows;
        sum += o->rows * o->errors.mean;
        row->max_error = fmax(row->max_error, o->errors.max);
        limit += o->limit;
        known = o->limit > 0 ? known : 0;
    }
    row->mean_error = sum / rows;
    row->computed = known * limit;
}

static int measure_team_all(scaling *s, way way, const gm_team *team)
{
    gm_bench *bench = s->product.bench;
    const gm_job *job = bench->job;
    const gm_team_work work = {.run = run, .context = &s->product};
    const char *precision = gm_precision_get(s->product.precision)->name;
    gm_bench_row row = gm_bench_row_make(bench, precision, s->product.product->kernel, GM_CACHE_WARM,
                                         &(gm_bench_timing){0});
    outcome own;
    char times[GM_BENCH_TEXT];
    if (team->count > 1)
        snprintf(row.variant, sizeof row.variant, "%s %s, %d ranks", precision, way == WEAK ? "weak" : "strong",
                 team->count);
    else
        snprintf(row.variant, sizeof row.variant, "%s, 1 rank", precision);
    int status = gm_job_agree_all(job, prepare(s, way, team));
    if (!status)
        status = gm_team_time_all(bench, team, &work, &row);
    if (!status)
        status = gm_job_agree_all(job, check(s, row.variant, &own));
    if (!status)
        status = gm_gather_all(job->ranks, &own, sizeof own, s->outcomes);
    if (status)
        return status;
    if (job->ranks->rank == 0)
        collect(s, team, &row);
    if (team->count == 1)
        s->one = gm_bench_rate(&row);
    else
        row.measured = team->count * s->one;
    snprintf(times, sizeof times, "%d x 1 rank", team->count);
    row.measured_of = times;
    row.unit = gm_bench_unit_flops;
    row.leaf = s->product.product_call.leaf;
    row.tile = s->product.product_call.tile;
    row.panel = precision;
    row.x = team->count;
    row.x_name = "ranks";
    gm_product_format(&s->product.shape, row.shape);
    return gm_job_agree_all(job, gm_bench_add(bench, &row));
}

/* One rank; then each way on 2, 4, ... and all ranks. */
static int measure_teams_all(scaling *s)
{
    const int ranks = s->product.bench->job->ranks->size;
    int status = measure_team_all(s, STRONG, &(gm_team){0, 1});
    for (way way = 0; way < WAYS; way++)
        for (int count = 1; count < ranks && !status;) {
            count = (int)gm_min(2 * count, ranks);
            status = measure_team_all(s, way, &(gm_team){0, count});
        }
    return status;
}

static int measure_precision_all(gm_bench *bench, const gm_product_shape *shape, gm_precision precision)
{
    const gm_job *job = bench->job;
    scaling s = {.shape = *shape};
    int is_first = job->ranks->rank == 0, status = GM_OK;
    if (!gm_product_make(bench, shape, precision, &s.product)) /* all ranks have devices of one kind */
        return GM_OK;
    if (is_first && !(s.outcomes = calloc((size_t)job->ranks->size, sizeof *s.outcomes)))
        status = gm_fail(GM_EDEVICE, "no memory for %d ranks", job->ranks->size);
    if (!status)
        status = gm_product_alloc(&s.product);
    if (!status)
        status = gm_product_fill_b(&s.product);
    status = gm_job_agree_all(job, status);
    if (!status)
        status = measure_teams_all(&s);
    gm_product_free(&s.product);
    free(s.outcomes);
    return status;
}

/* The largest usual n for which every rank has room in every precision. Collective. */
static int find_n_all(gm_bench *bench, int64_t *n)
{
    *n = usual_n[bench->ops->unified];
    for (int i = 0; i < GM_PRECISIONS; i++) {
        gm_bench_product p;
        while (*n > LEAST && gm_product_make(bench, &(gm_product_shape){*n, *n, *n, 1}, (gm_precision)i, &p) &&
               gm_product_bytes(&p) > gm_bench_room(bench))
            *n /= 2;
    }
    return gm_min_all(n);
}

int gm_bench_scaling(gm_bench *bench)
{
    gm_product_shape shapes[GM_PRODUCT_SHAPES];
    int64_t n = 0;
    int count = 1, status = GM_OK;
    if (bench->job->options->shapes)
        status = gm_product_parse(bench, 0, shapes, &count);
    else
        status = find_n_all(bench, &n);
    if (n > 0)
        shapes[0] = (gm_product_shape){n, n, n, 1};
    for (int i = 0; i < count && !status; i++)
        for (int j = 0; j < GM_PRECISIONS && !status; j++)
            status = measure_precision_all(bench, &shapes[i], (gm_precision)j);
    return status;
}
