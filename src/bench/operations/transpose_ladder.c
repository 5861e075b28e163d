/* The ladder of bench transpose: a square matrix of 4-byte elements, by steps and by the program's own kernel. */
#include "kernels/move/calls.h"
#include "kernels/lab/ladder/ladders.h"
#include "src/bench/lab/lab.h"

#include <inttypes.h>

enum { BLOCKS = 32, BLOCK = 64 /* elements of a row that are checked together */, CASES = 5 };

typedef struct ladder {
    gm_bench_pair pair;
    int64_t n;
    gm_transpose_ladder_call calls[CASES];
    gm_transpose_call shipped;
    gm_lab_case cases[CASES];
    int count;
} ladder;

static int run_copy(const gm_lab_case *self, gm_queue *queue)
{
    const gm_bench_pair *pair = &((const ladder *)self->test)->pair;
    return pair->bench->measure->copy(queue, pair->dst, pair->src, (size_t)pair->size);
}

static int run_step(const gm_lab_case *self, gm_queue *queue)
{
    const ladder *l = self->test;
    return l->pair.bench->measure->transpose_ladder(queue, self->call);
}

static int run_shipped(const gm_lab_case *self, gm_queue *queue)
{
    const ladder *l = self->test;
    return l->pair.bench->ops->transpose(queue, self->call);
}

/* Blocks of elements from all over, the first and the last ones among them. */
static int check(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const ladder *l = self->test;
    gm_bench *bench = l->pair.bench;
    int64_t last = l->n * l->n - BLOCK, size = sizeof(uint32_t);
    int status = bench->ops->zero(bench->queue, l->pair.dst, (size_t)l->pair.size);
    if (!status)
        status = self->run(self, bench->queue);
    (void)max_error, (void)mean_error;
    for (int b = 0; b < BLOCKS && !status; b++) {
        uint32_t right[BLOCK];
        int64_t from = b + 1 == BLOCKS ? last : last / (BLOCKS - 1) * b;
        for (int64_t i = 0; i < BLOCK; i++)
            gm_bench_pair_source(&l->pair, ((from + i) % l->n * l->n + (from + i) / l->n) * size, size, &right[i]);
        status = gm_lab_expect(bench, self, (const char *)l->pair.dst + from * size, right, sizeof right,
                               "a block of elements");
    }
    return status;
}

static gm_lab_case *add(ladder *l, const char *name, const char *kernel,
                        int (*run)(const gm_lab_case *self, gm_queue *queue))
{
    gm_lab_case *c = &l->cases[l->count++];
    gm_cache_state cache = gm_lab_cache(l->pair.bench, 2 * l->pair.size);
    *c = (gm_lab_case){.kernel = kernel,
                       .run = run,
                       .test = l,
                       .work = 2.0 * (double)l->pair.size,
                       .unit = &gm_bench_unit_bytes,
                       .cache = cache,
                       .computed = gm_lab_memory_limit(l->pair.bench, 2 * l->pair.size),
                       .panel = "ladder"};
    snprintf(c->variant, sizeof c->variant, "%s", name);
    snprintf(c->shape, sizeof c->shape, "%" PRId64 "x%" PRId64, l->n, l->n);
    return c;
}

static void add_step(ladder *l, const char *name, gm_transpose_ladder_stage stage)
{
    gm_transpose_ladder_call *call = &l->calls[l->count];
    gm_lab_case *c = add(l, name, "ladder", run_step);
    *call = (gm_transpose_ladder_call){.stage = stage, .n = l->n, .src = l->pair.src, .dst = l->pair.dst};
    c->check = check;
    c->call = call;
    c->limit = 1;
}

static void add_cases(ladder *l)
{
    add(l, "copy", "copy", run_copy);
    add_step(l, "naive", GM_TRANSPOSE_LADDER_NAIVE);
    if (!l->pair.bench->ops->unified) {
        add_step(l, "tile [32][32]", GM_TRANSPOSE_LADDER_TILE);
        add_step(l, "tile [32][33]", GM_TRANSPOSE_LADDER_PADDED);
    }
    gm_lab_case *c = add(l, "shipped", "transpose", run_shipped);
    l->shipped = (gm_transpose_call){.outer = 1,
                                     .first = l->n,
                                     .middle = 1,
                                     .second = l->n,
                                     .inner = 1,
                                     .bytes = sizeof(uint32_t),
                                     .src = l->pair.src,
                                     .dst = l->pair.dst};
    c->check = check;
    c->call = &l->shipped;
    c->limit = 1;
}

int gm_lab_transpose_ladder(gm_bench *bench)
{
    int64_t size = gm_lab_size(bench) / (int64_t)sizeof(uint32_t);
    ladder l = {.n = GM_TRANSPOSE_LADDER_SIDE};
    if (!bench->measure->transpose_ladder)
        return GM_OK;
    while (4 * l.n * l.n <= size)
        l.n *= 2;
    int status = gm_bench_pair_open(bench, l.n * l.n * (int64_t)sizeof(uint32_t), &l.pair);
    add_cases(&l);
    if (!status)
        status = gm_lab_measure(bench, l.cases, l.count);
    gm_bench_pair_close(&l.pair);
    return status;
}
