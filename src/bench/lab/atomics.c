/* bench atomics - the sum of random elements by many threads: they change the same cell or several cells, by atomic
 * adds; they agree on a sum first, so that fewer of them change the cell; or each has a cell of its own. A plain read
 * is the limit. Sums of integers must be right bit for bit, and those of floats that are added in a fixed order. */
#include "base/size.h"
#include "src/bench/lab/lab.h"

#include <math.h>
#include <stdlib.h>

enum {
    CASES = 16,
    PIECE = 4 * GM_ATOMICS_BLOCK,      /* elements that a block takes at once */
    UNIT = 4 * GM_ATOMICS_PRIVATE * 4, /* bytes that all blocks take at once */
    MOST_CELLS = 1 << 20,              /* as many bytes as a unit */
    PARTIALS = 64 << 10,               /* where they begin, bytes */
    MOST_PART = 1 << 24                /* more floats in [0, 1) would not change their float sum */
};
static const int64_t wanted = INT64_C(256) << 20; /* bytes */

typedef struct sums {
    gm_bench_pair pair;
    int64_t count, part;          /* elements; those that are added to shared cells, which takes longer */
    uint32_t whole_sum, part_sum; /* modulo 2^32 */
    float whole_float;            /* in the fixed order */
    double part_float;            /* exact */
    gm_atomics_call calls[CASES];
    gm_lab_case cases[CASES];
    int cases_made;
} sums;

/* Adds the elements of block b of the fixed order, and returns their sum as floats. */
static float add_block(const sums *s, int64_t b, uint32_t *whole, uint32_t *part, uint64_t *part_float)
{
    float own[GM_ATOMICS_BLOCK] = {0};
    for (int64_t at = PIECE * b; at < s->count; at += UNIT / 4) {
        uint32_t x[PIECE];
        gm_bench_pair_source(&s->pair, 4 * at, sizeof x, x);
        for (int i = 0; i < PIECE; i++) {
            own[i / 4] += gm_atomics_float(x[i]);
            *whole += x[i];
            *part += at < s->part ? x[i] : 0;
            *part_float += at < s->part ? x[i] >> 8 : 0;
        }
    }
    for (int half = GM_ATOMICS_BLOCK / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            own[i] += own[i + half];
    return own[0];
}

/* The right sums. */
static void add_all(sums *s)
{
    float own[GM_ATOMICS_BLOCKS];
    uint32_t whole = 0, part = 0;
    uint64_t part_float = 0;
#pragma omp parallel for num_threads(s->pair.bench->job->threads) reduction(+ : whole, part, part_float)
    for (int b = 0; b < GM_ATOMICS_BLOCKS; b++)
        own[b] = add_block(s, b, &whole, &part, &part_float);
    for (int half = GM_ATOMICS_BLOCKS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            own[i] += own[i + half];
    s->whole_sum = whole;
    s->part_sum = part;
    s->whole_float = own[0];
    s->part_float = ldexp((double)part_float, -24);
}

static int run_read(const gm_lab_case *self, gm_queue *queue)
{
    const gm_bench_pair *pair = &((const sums *)self->test)->pair;
    return pair->bench->measure->read(queue, pair->src, (size_t)pair->size, pair->dst);
}

static int run_sum(const gm_lab_case *self, gm_queue *queue)
{
    const sums *s = self->test;
    return s->pair.bench->measure->atomics(queue, self->call);
}

static int sum_cleared(const gm_lab_case *self)
{
    const gm_atomics_call *c = self->call;
    gm_bench *bench = ((const sums *)self->test)->pair.bench;
    int status = bench->ops->zero(bench->queue, c->sums, (size_t)c->cells * 4);
    return status ? status : run_sum(self, bench->queue);
}

/* One cell, bit for bit. */
static int check_cell(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const sums *s = self->test;
    const gm_atomics_call *c = self->call;
    int status = sum_cleared(self);
    (void)max_error, (void)mean_error;
    return status ? status
                  : gm_lab_expect(s->pair.bench, self, c->sums,
                                  c->method == GM_ATOMICS_FLOAT_OWN ? (const void *)&s->whole_float
                                                                    : (const void *)&s->whole_sum,
                                  4, "the sum");
}

/* The sum of all cells, bit for bit. */
static int check_cells(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const sums *s = self->test;
    const gm_atomics_call *c = self->call;
    uint32_t *cells = malloc((size_t)c->cells * sizeof *cells), sum = 0;
    int status = cells ? sum_cleared(self) : gm_fail(GM_EDEVICE, "no memory for the cells");
    (void)max_error, (void)mean_error;
    if (!status)
        status = gm_bench_download(s->pair.bench, cells, c->sums, (size_t)c->cells * sizeof *cells);
    for (int64_t i = 0; i < c->cells && !status; i++)
        sum += cells[i];
    free(cells);
    return status || sum == s->part_sum ? status
                                        : gm_fail(GM_ECHECK, "bench atomics: %s %s: the sum is %u, expected %u",
                                                  self->variant, self->shape, (unsigned)sum, (unsigned)s->part_sum);
}

/* Floats that are added in any order. The rounding errors of n adds are random: a few times sqrt(n) of them remain. */
static int check_float(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const sums *s = self->test;
    const gm_atomics_call *c = self->call;
    const double bound = 8 * sqrt((double)c->count) * 0x1p-24;
    float got = 0;
    int status = sum_cleared(self);
    if (!status)
        status = gm_bench_download(s->pair.bench, &got, c->sums, sizeof got);
    *max_error = *mean_error = fabs(got - s->part_float) / s->part_float;
    return status || *max_error <= bound
               ? status
               : gm_fail(GM_ECHECK, "bench atomics: %s %s: the error of the sum is %.2e, expected at most %.2e",
                         self->variant, self->shape, *max_error, bound);
}

static const struct {
    const char *name;
    gm_atomics_method method;
    int64_t cells;
    int of_warps; /* not on a processor */
    int (*check)(const gm_lab_case *self, double *max_error, double *mean_error);
} variants[] = {{"one cell", GM_ATOMICS_EACH, 1, 0, check_cells},
                {"32 cells", GM_ATOMICS_EACH, 32, 0, check_cells},
                {"1024 cells", GM_ATOMICS_EACH, 1024, 0, check_cells},
                {"2^20 cells", GM_ATOMICS_EACH, MOST_CELLS, 0, check_cells},
                {"sums of warps", GM_ATOMICS_WARPS, 1, 1, check_cell},
                {"sums of blocks", GM_ATOMICS_BLOCKWISE, 1, 1, check_cell},
                {"private sums", GM_ATOMICS_OWN, 1, 0, check_cell},
                {"float, one cell", GM_ATOMICS_FLOAT_EACH, 1, 0, check_float},
                {"float, private sums", GM_ATOMICS_FLOAT_OWN, 1, 0, check_cell}};

static gm_lab_case *add(sums *s, const char *name, int64_t count)
{
    char part[GM_SIZE_TEXT], whole[GM_SIZE_TEXT];
    gm_bench *bench = s->pair.bench;
    gm_lab_case *c = &s->cases[s->cases_made];
    gm_cache_state cache = gm_lab_cache(bench, 4 * count);
    *c = (gm_lab_case){.kernel = "atomics",
                       .run = run_sum,
                       .test = s,
                       .call = &s->calls[s->cases_made++],
                       .work = (double)count,
                       .unit = &gm_bench_unit_ops,
                       .cache = cache,
                       .computed = gm_lab_memory_limit(bench, 4 * count) / 4,
                       .limit = 1,
                       .panel = "sum"};
    snprintf(c->variant, sizeof c->variant, "%s", name);
    gm_size_format(s->pair.size, whole);
    snprintf(c->shape, sizeof c->shape, count < s->count ? "%s of %s" : "%s", gm_size_format(4 * count, part), whole);
    return c;
}

static void add_cases(sums *s)
{
    gm_lab_case *read = add(s, "plain read", s->count);
    read->kernel = "read";
    read->run = run_read;
    read->limit = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        if (variants[i].of_warps && s->pair.bench->ops->unified)
            continue;
        int64_t count = variants[i].check == check_cell ? s->count : s->part;
        gm_lab_case *c = add(s, variants[i].name, count);
        c->check = variants[i].check;
        s->calls[c - s->cases] = (gm_atomics_call){.method = variants[i].method,
                                                   .count = count,
                                                   .cells = variants[i].cells,
                                                   .src = s->pair.src,
                                                   .sums = s->pair.dst,
                                                   .partials = (char *)s->pair.dst + PARTIALS};
    }
}

static int measure_size(gm_bench *bench, int64_t size)
{
    sums s = {.count = size / 4, .part = gm_min(size / 4 / (bench->ops->unified ? 16 : 4), MOST_PART)};
    int status = gm_bench_pair_open(bench, size, &s.pair);
    if (!status) {
        add_all(&s);
        add_cases(&s);
        status = gm_lab_measure(bench, s.cases, s.cases_made);
    }
    gm_bench_pair_close(&s.pair);
    return status;
}

int gm_bench_atomics(gm_bench *bench)
{
    int64_t size = gm_max(gm_min(gm_lab_size(bench), wanted), UNIT);
    if (3 * (int64_t)UNIT > gm_bench_room(bench))
        return gm_bench_skip(bench, "too little of its memory is free");
    return bench->measure->atomics && bench->measure->read ? gm_bench_each_size(bench, UNIT, &size, 1, measure_size)
                                                           : gm_bench_skip(bench, NULL);
}
