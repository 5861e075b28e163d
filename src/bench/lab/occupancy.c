/* bench occupancy - copies by blocks of any size; by few and by many threads on each multiprocessor; and by blocks that
 * are few because each takes much shared memory. The plain copy is the limit. */
#include "base/size.h"
#include "src/bench/lab/lab.h"

#include <stdlib.h>

enum { SAMPLES = 16, SAMPLE = 1024 /* bytes */, CASES = 64 };
static const int64_t wanted = INT64_C(256) << 20; /* bytes of a buffer */

typedef struct copies {
    gm_bench_pair pair;
    gm_occupancy_call calls[CASES];
    gm_lab_case cases[CASES];
    int count, status;
} copies;

static int run_plain(const gm_lab_case *self, gm_queue *queue)
{
    const gm_bench_pair *pair = &((const copies *)self->test)->pair;
    return pair->bench->measure->copy(queue, pair->dst, pair->src, (size_t)pair->size);
}

static int run_copy(const gm_lab_case *self, gm_queue *queue)
{
    const copies *t = self->test;
    return t->pair.bench->measure->occupancy(queue, self->call);
}

/* Bytes from all over, the first and the last among them. */
static int check_copy(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const gm_bench_pair *pair = &((const copies *)self->test)->pair;
    int status = pair->bench->ops->zero(pair->bench->queue, pair->dst, (size_t)pair->size);
    if (!status)
        status = self->run(self, pair->bench->queue);
    (void)max_error, (void)mean_error;
    for (int64_t i = 0; i < SAMPLES && !status; i++) {
        char right[SAMPLE];
        int64_t at = (pair->size - SAMPLE) / (SAMPLES - 1) * i;
        if (i == SAMPLES - 1)
            at = pair->size - SAMPLE;
        gm_bench_pair_source(pair, at, SAMPLE, right);
        status = gm_lab_expect(pair->bench, self, (const char *)pair->dst + at, right, SAMPLE, "an element");
    }
    return status;
}

static gm_lab_case *add(copies *t, const char *panel, const char *variant)
{
    const gm_bench_pair *pair = &t->pair;
    gm_lab_case *c = &t->cases[t->count];
    gm_cache_state cache = gm_lab_cache(pair->bench, 2 * pair->size);
    *c = (gm_lab_case){.kernel = "occupancy",
                       .run = run_copy,
                       .check = check_copy,
                       .test = t,
                       .call = &t->calls[t->count++],
                       .work = 2.0 * (double)pair->size,
                       .unit = &gm_bench_unit_bytes,
                       .cache = cache,
                       .computed = gm_lab_memory_limit(pair->bench, 2 * pair->size),
                       .limit = 1,
                       .panel = panel};
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    gm_size_format(pair->size, c->shape);
    return c;
}

/* A case of blocks of `threads` threads, `resident` of which are on each multiprocessor at once; 0: as many as it can
 * hold, which the shape names. */
static gm_lab_case *add_copy(copies *t, const char *panel, const char *variant, int bytes, int threads, int resident)
{
    const gm_bench_pair *pair = &t->pair;
    gm_lab_case *c = add(t, panel, variant);
    gm_occupancy_call *call = &t->calls[c - t->cases], ask;
    char size[GM_SIZE_TEXT];
    int fit = 0;
    *call = (gm_occupancy_call){.bytes = bytes,
                                .threads = threads,
                                .blocks = resident * (int)gm_max(pair->bench->job->info.multiprocessors, 1),
                                .resident = resident,
                                .count = pair->size / bytes,
                                .src = pair->src,
                                .dst = pair->dst};
    ask = *call;
    ask.fit = &fit;
    if (!t->status)
        t->status = pair->bench->measure->occupancy(pair->bench->queue, &ask);
    snprintf(c->shape, sizeof c->shape, "%s, %d x %d an SM", gm_size_format(pair->size, size), fit, threads);
    return c;
}

static void add_blocks(copies *t, const char *variant, int bytes)
{
    static const int threads[] = {32, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        gm_lab_case *c = add_copy(t, "size of blocks", variant, bytes, threads[i], 0);
        c->x = threads[i];
        c->x_name = "threads of a block";
    }
}

/* One block on each multiprocessor, or two where a block cannot be as large. */
static void add_threads(copies *t, const char *variant, int bytes)
{
    static const int threads[] = {32, 64, 128, 256, 512, 1024, 1536, 2048};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        int resident = threads[i] > 1024 ? 2 : 1;
        gm_lab_case *c = add_copy(t, "threads of a multiprocessor", variant, bytes, threads[i] / resident, resident);
        c->x = threads[i];
        c->x_name = "threads of a multiprocessor";
    }
}

static void add_residents(copies *t)
{
    for (int resident = 1; resident <= 32; resident *= 2) {
        gm_lab_case *c = add_copy(t, "blocks of a multiprocessor", "shared memory limits", 16, 64, resident);
        c->x = resident;
        c->x_name = "blocks of a multiprocessor, 64 threads each";
    }
}

static int measure_cases(copies *t)
{
    gm_lab_case *plain = add(t, "size of blocks", "copy");
    plain->kernel = "copy";
    plain->run = run_plain;
    plain->limit = 0;
    plain->x = 256;
    plain->x_name = "threads of a block";
    add_blocks(t, "blocks, 4 bytes", 4);
    add_blocks(t, "blocks, 16 bytes", 16);
    add_threads(t, "loop, 4 bytes", 4);
    add_threads(t, "loop, 16 bytes", 16);
    add_residents(t);
    return t->status ? t->status : gm_lab_measure(t->pair.bench, t->cases, t->count);
}

static int measure_size(gm_bench *bench, int64_t size)
{
    copies *t = calloc(1, sizeof *t);
    if (!t)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    int status = gm_bench_pair_open(bench, size, &t->pair);
    if (!status)
        status = measure_cases(t);
    gm_bench_pair_close(&t->pair);
    free(t);
    return status;
}

int gm_bench_occupancy(gm_bench *bench)
{
    int64_t size = gm_min(gm_lab_size(bench), wanted);
    return bench->measure->occupancy && bench->measure->copy
               ? gm_bench_each_size(bench, GM_BENCH_PAIR_UNIT, &size, 1, measure_size)
               : gm_bench_skip(bench, "it has no multiprocessors");
}
