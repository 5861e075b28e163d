/* The ladder of bench reduce: a sum of the squares of integers 0 to 9 by nine steps from one thread to a tree of
 * shuffles, then by the program's own kernel. A step leaves sums of threads or of blocks, which the processor adds up:
 * that is not timed, as it was not in the published figures. */
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/host.h"
#include "kernels/reduce/calls.h"
#include "kernels/lab/ladder/ladders.h"
#include "src/bench/lab/lab.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    SMALL = 1 << 20, /* elements: of the published figures */
    PART = 1 << 22,  /* elements that are made together */
    LINE = 4096,     /* elements that a thread makes together */
    THREADS = GM_REDUCE_LADDER_THREADS,
    BLOCKS = 32,
    FULL = 0,        /* blocks: as many as fill the device */
    CPU_SUMS = 4096, /* parts of which the processor's threads take turns */
    CASES = 32
};

/* The published rates follow from the published cycles, as 640 M cycles are 9.3 MB/s. */
#define OF_CYCLES(cycles) (9.3e6 * 640e6 / (cycles))

typedef struct step {
    const char *name;
    gm_reduce_ladder_stage stage;
    int blocks, threads;
    int is_large; /* of the large size too */
    double published;
} step;

static const step gpu_steps[] = {
    {"1 thread", GM_REDUCE_LADDER_ONE, 1, 1, 0, OF_CYCLES(640e6)},
    {"256 threads", GM_REDUCE_LADDER_PARTS, 1, THREADS, 0, OF_CYCLES(8.3e6)},
    {"256 threads, coalesced", GM_REDUCE_LADDER_GRID, 1, THREADS, 0, OF_CYCLES(2.6e6)},
    {"512 threads", GM_REDUCE_LADDER_GRID, 1, 2 * THREADS, 0, OF_CYCLES(1.95e6)},
    {"32 x 256", GM_REDUCE_LADDER_GRID, BLOCKS, THREADS, 1, OF_CYCLES(150e3)},
    {"sum by thread 0", GM_REDUCE_LADDER_THREAD_0, BLOCKS, THREADS, 1, OF_CYCLES(164e3)},
    {"tree, bank conflicts", GM_REDUCE_LADDER_CONFLICTS, BLOCKS, THREADS, 1, OF_CYCLES(140e3)},
    {"tree", GM_REDUCE_LADDER_TREE, BLOCKS, THREADS, 1, OF_CYCLES(137e3)},
    {"unrolled", GM_REDUCE_LADDER_UNROLLED, BLOCKS, THREADS, 1, OF_CYCLES(136e3)},
    {"unrolled, full grid", GM_REDUCE_LADDER_UNROLLED, FULL, THREADS, 1, 0},
};
static const step cpu_steps[] = {
    {"1 thread", GM_REDUCE_LADDER_ONE, 1, 1, 0, 0},
    {"all threads", GM_REDUCE_LADDER_GRID, 1, CPU_SUMS, 1, 0},
};

typedef struct ladder {
    gm_bench *bench;
    int32_t *src; /* [large], device memory, as the next two */
    void *out;    /* sums of a step, of the read */
    gm_moments *records;
    int64_t large;                     /* elements */
    uint64_t right_small, right_large; /* their squares */
    int full;                          /* blocks that fill the device */
    gm_reduce_ladder_call calls[CASES];
    gm_reduce_rows_call shipped[2];
    gm_lab_case cases[CASES];
    int count;
} ladder;

static int run_read(const gm_lab_case *self, gm_queue *queue)
{
    const ladder *l = self->test;
    return l->bench->measure->read(queue, l->src, (size_t)self->work, l->out);
}

static int run_step(const gm_lab_case *self, gm_queue *queue)
{
    const ladder *l = self->test;
    return l->bench->measure->reduce_ladder(queue, self->call);
}

static int run_shipped(const gm_lab_case *self, gm_queue *queue)
{
    const ladder *l = self->test;
    return l->bench->ops->reduce_rows(queue, self->call);
}

static int expect(const gm_lab_case *self, uint64_t got, int64_t count)
{
    const ladder *l = self->test;
    uint64_t right = count == SMALL ? l->right_small : l->right_large;
    return got == right ? GM_OK
                        : gm_fail(GM_ECHECK, "bench %s: %s %s: the sum of squares is %" PRIu64 ", expected %" PRIu64,
                                  l->bench->test, self->variant, self->shape, got, right);
}

/* Makes a result of some bytes once more, from zeros, and fetches it. */
static int remake(const gm_lab_case *self, void *device, size_t bytes, void **host)
{
    const ladder *l = self->test;
    int status = gm_host_alloc(bytes, host);
    if (!status)
        status = l->bench->ops->zero(l->bench->queue, device, bytes);
    if (!status)
        status = self->run(self, l->bench->queue);
    return status ? status : gm_bench_download(l->bench, *host, device, bytes);
}

static int check_step(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const ladder *l = self->test;
    const gm_reduce_ladder_call *call = self->call;
    int sums = gm_reduce_ladder_sums(call);
    uint64_t sum = 0;
    void *got = NULL;
    int status = remake(self, l->out, (size_t)sums * sizeof(uint32_t), &got);
    (void)max_error, (void)mean_error;
    for (int i = 0; i < sums && !status; i++)
        sum += ((const uint32_t *)got)[i];
    gm_host_free(got);
    return status ? status : expect(self, sum, call->count);
}

static int check_shipped(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const ladder *l = self->test;
    const gm_reduce_rows_call *call = self->call;
    uint64_t sum = 0;
    void *got = NULL;
    int status = remake(self, l->records, (size_t)call->leaves * sizeof(gm_moments), &got);
    (void)max_error, (void)mean_error;
    for (int64_t i = 0; i < call->leaves && !status; i++)
        sum += ((const gm_moments *)got)[i].sum.whole[GM_WHOLE_SQUARES];
    gm_host_free(got);
    return status ? status : expect(self, sum, call->segment);
}

static gm_lab_case *add(ladder *l, const char *name, int64_t count, const char *kernel)
{
    gm_lab_case *c = &l->cases[l->count++];
    *c = (gm_lab_case){.kernel = kernel,
                       .test = l,
                       .work = (double)count * sizeof(int32_t),
                       .unit = &gm_bench_unit_bytes,
                       .cache = gm_lab_cache(l->bench, count * (int64_t)sizeof(int32_t)),
                       .panel = "ladder"};
    c->computed = gm_lab_memory_limit(l->bench, count * (int64_t)sizeof(int32_t));
    snprintf(c->variant, sizeof c->variant, "%s", name);
    snprintf(c->shape, sizeof c->shape, "%" PRId64 " integers 0-9", count);
    return c;
}

static void add_step(ladder *l, const step *s, int64_t count, int limit)
{
    gm_reduce_ladder_call *call = &l->calls[l->count];
    gm_lab_case *c = add(l, s->name, count, "ladder");
    *call = (gm_reduce_ladder_call){.stage = s->stage,
                                    .blocks = s->blocks == FULL ? l->full : s->blocks,
                                    .threads = s->threads,
                                    .count = count,
                                    .src = l->src,
                                    .out = l->out};
    c->run = run_step;
    c->check = check_step;
    c->call = call;
    c->limit = limit;
    c->published = count == SMALL ? s->published : 0;
}

/* The cases of a size: a read, which is the limit of the others, the steps, the program's own kernel. */
static void add_size(ladder *l, int64_t count)
{
    int is_cpu = l->bench->ops->unified, limit = l->count + 1;
    const step *steps = is_cpu ? cpu_steps : gpu_steps;
    size_t step_count = is_cpu ? sizeof cpu_steps / sizeof *steps : sizeof gpu_steps / sizeof *steps;
    gm_reduce_rows_call *shipped = &l->shipped[count == SMALL ? 0 : 1];
    add(l, "plain read", count, "read")->run = run_read;
    for (size_t i = 0; i < step_count; i++)
        if (count == SMALL || steps[i].is_large)
            add_step(l, &steps[i], count, limit);
    gm_lab_case *c = add(l, "shipped", count, "reduce-rows");
    *shipped = (gm_reduce_rows_call){.src = l->src,
                                     .type = GM_DTYPE_I32,
                                     .leaves = gm_ceil_div(count, gm_leaf_length(GM_DTYPE_I32)),
                                     .segment = count,
                                     .want = GM_WANT_SQUARES,
                                     .out = l->records};
    c->run = run_shipped;
    c->check = check_shipped;
    c->call = shipped;
    c->limit = limit;
}

/* Random integers 0 to 9, and the sums of their squares. A multiple of PART, the first of which has the small ones. */
static int fill(ladder *l)
{
    uint64_t key = gm_random_key(1, 2), sum = 0, small = 0;
    void *made = NULL;
    int status = gm_host_alloc(PART * sizeof(int32_t), &made);
    int32_t *part = made;
    for (int64_t at = 0; at < l->large && !status; at += PART) {
#pragma omp parallel for num_threads(l->bench->job->threads) reduction(+ : sum, small)
        for (int64_t line = 0; line < PART; line += LINE) {
            uint64_t squares = 0;
            gm_cpu_random(part + line, GM_DTYPE_I32, 0, GM_DISTRIBUTION_INTEGERS, key, at + line, LINE);
            for (int64_t i = 0; i < LINE; i++)
                squares += (uint64_t)(part[line + i] * part[line + i]);
            sum += squares;
            small += at + line < SMALL ? squares : 0;
        }
        status = gm_bench_upload(l->bench, l->src + at, part, PART * sizeof *part);
    }
    l->right_small = small;
    l->right_large = sum;
    gm_host_free(made);
    return status;
}

static int measure(ladder *l)
{
    const gm_device_ops *ops = l->bench->ops;
    size_t sums = (size_t)gm_max(gm_max(BLOCKS * THREADS, CPU_SUMS), l->full) * sizeof(uint32_t),
           records = (size_t)gm_ceil_div(l->large, gm_leaf_length(GM_DTYPE_I32)) * sizeof *l->records;
    int status = ops->alloc(l->bench->device, (size_t)l->large * sizeof *l->src, (void **)&l->src);
    if (!status)
        status = ops->alloc(l->bench->device, sums, &l->out);
    if (!status)
        status = ops->alloc(l->bench->device, records, (void **)&l->records);
    if (!status)
        status = fill(l);
    add_size(l, SMALL);
    add_size(l, l->large);
    if (!status)
        status = gm_lab_measure(l->bench, l->cases, l->count);
    ops->free(l->bench->device, l->records);
    ops->free(l->bench->device, l->out);
    ops->free(l->bench->device, l->src);
    return status;
}

int gm_lab_reduce_ladder(gm_bench *bench)
{
    const int blocks = 2048 / THREADS; /* threads of a multiprocessor */
    int64_t large = gm_lab_size(bench) / (int64_t)sizeof(int32_t);
    if (!bench->measure->reduce_ladder)
        return GM_OK;
    if (large < PART) {
        gm_note("bench %s: the ladder is left out: there is too little memory", bench->test);
        return GM_OK;
    }
    ladder *l = calloc(1, sizeof *l);
    if (!l)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    l->bench = bench;
    l->large = large;
    l->full = (int)gm_max(bench->job->info.multiprocessors, 1) * blocks;
    int status = measure(l);
    free(l);
    return status;
}
