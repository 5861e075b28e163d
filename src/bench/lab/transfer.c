/* bench transfer - the ways to copy between host and device: large copies in each direction and in both at once, pinned
 * and pageable; copies of 4 bytes; and the time to pin memory. By the program's table of device functions, beside a
 * bare loop. Bytes of a copy within the device count twice, as read and as written. The link itself, over the size of a
 * piece and with all devices at once, is measured by bench link (machine/link.c). */
#include "base/memory.h"
#include "base/size.h"
#include "src/bench/lab/copies.h"
#include "src/bench/lab/host.h"
#include "src/bench/lab/lab.h"

#include <stdlib.h>
#include <string.h>

enum { CASES = 20, WORD = 4, WORDS = 1000, WITHIN = 16 /* copies within the device */, PAGE = 4096 };
static const int64_t usual_size = INT64_C(256) << 20;

typedef struct transfers {
    gm_copies copies;
    char *pageable; /* the same random bits, also after a copy from the device */
    gm_copy_loop_call calls[CASES][2];
    gm_lab_case cases[CASES];
    int count;
} transfers;

static const gm_copies *copies_of(const gm_lab_case *self)
{
    return &((const transfers *)self->test)->copies;
}

static int run_bare(const gm_lab_case *self, gm_queue *queue)
{
    return gm_copies_put_bare(copies_of(self), queue, self->call);
}

static int run_program(const gm_lab_case *self, gm_queue *queue)
{
    return gm_copies_put_program(copies_of(self), queue, self->call);
}

static int run_both_bare(const gm_lab_case *self, gm_queue *queue)
{
    return gm_copies_put_both(copies_of(self), queue, self->call, gm_copies_put_bare);
}

static int run_both_program(const gm_lab_case *self, gm_queue *queue)
{
    return gm_copies_put_both(copies_of(self), queue, self->call, gm_copies_put_program);
}

/* The driver's pages are cleared when they are pinned. */
static int run_pin(const gm_lab_case *self, gm_queue *queue)
{
    const gm_copies *m = copies_of(self);
    void *memory = NULL;
    int status = m->bench->ops->host_alloc(m->bench->device, (size_t)m->size, &memory);
    (void)queue;
    m->bench->ops->host_free(m->bench->device, memory);
    return status;
}

/* All threads have the system clear the pages first. */
static int run_touch_and_pin(const gm_lab_case *self, gm_queue *queue)
{
    const gm_copies *m = copies_of(self);
    const gm_device_ops *ops = m->bench->ops;
    void *memory = NULL;
    int status = ops->host_alloc_pageable(m->bench->device, (size_t)m->size, &memory);
    (void)queue;
    if (!status) {
#pragma omp parallel for num_threads(m->bench->job->threads)
        for (int64_t at = 0; at < m->size; at += PAGE)
            ((volatile char *)memory)[at] = 1;
        ops->host_pin(m->bench->device, memory);
    }
    ops->host_free(m->bench->device, memory);
    return status;
}

static int run_once(const void *context, gm_queue *queue)
{
    const gm_lab_case *c = context;
    return c->run(c, queue);
}

static int check_calls(const gm_lab_case *self, int count)
{
    char what[2 * GM_BENCH_TEXT];
    snprintf(what, sizeof what, "%s %s", self->variant, self->shape);
    return gm_copies_check(copies_of(self), self->call, count, run_once, self, what);
}

static int check_one(const gm_lab_case *self, double *max_error, double *mean_error)
{
    (void)max_error, (void)mean_error;
    return check_calls(self, 1);
}

static int check_both(const gm_lab_case *self, double *max_error, double *mean_error)
{
    (void)max_error, (void)mean_error;
    return check_calls(self, 2);
}

/* Adds a case of a call, which is copied. limit: as in gm_lab_case. */
static gm_lab_case *add(transfers *t, const char *variant, int is_bare, int limit, const gm_copy_loop_call *call)
{
    double work = (double)call->bytes * (double)call->count;
    gm_lab_case *c = &t->cases[t->count];
    t->calls[t->count][0] = *call;
    *c = (gm_lab_case){.kernel = call->way == GM_COPY_IN    ? "host to device"
                                 : call->way == GM_COPY_OUT ? "device to host"
                                                            : "device to device",
                       .run = is_bare ? run_bare : run_program,
                       .check = check_one,
                       .test = t,
                       .call = t->calls[t->count],
                       .work = work,
                       .unit = &gm_bench_unit_bytes,
                       .clock = GM_LAB_HOST,
                       .cache = GM_CACHE_WARM,
                       .computed = t->copies.bench->job->info.host_limit,
                       .limit = limit,
                       .panel = "large copies"};
    snprintf(c->variant, sizeof c->variant, "%s%s", is_bare ? "bare loop, " : "", variant);
    gm_size_format(call->bytes, c->shape);
    t->count++;
    return c;
}

/* The bus carries both directions at once. */
static gm_lab_case *add_both(transfers *t, int is_bare, int limit)
{
    const gm_copies *m = &t->copies;
    gm_copy_loop_call in = gm_copies_in(m, m->random, m->size, 1), out = gm_copies_out(m, m->back, m->size, 1);
    t->calls[t->count][1] = out;
    gm_lab_case *c = add(t, "both ways", is_bare, limit, &in);
    c->kernel = "two queues";
    c->run = is_bare ? run_both_bare : run_both_program;
    c->check = check_both;
    c->work *= 2;
    c->computed *= 2;
    return c;
}

static gm_lab_case *add_within(transfers *t, int is_bare, int limit)
{
    const gm_copies *m = &t->copies;
    const gm_copy_loop_call call = {GM_COPY_WITHIN, m->dst, m->src, m->size, 0, WITHIN, 0};
    gm_lab_case *c = add(t, "on the device", is_bare, limit, &call);
    c->cache = gm_lab_cache(m->bench, 2 * m->size);
    c->work *= 2;
    c->computed = gm_lab_memory_limit(m->bench, 2 * m->size);
    c->panel = "within the device";
    return c;
}

enum { BARE_IN = 1, BARE_OUT, BARE_BOTH }; /* the first cases, as limits */

static void add_large(transfers *t)
{
    const gm_copies *m = &t->copies;
    gm_copy_loop_call in = gm_copies_in(m, m->random, m->size, 1), out = gm_copies_out(m, m->back, m->size, 1),
                      slow_in = gm_copies_in(m, t->pageable, m->size, 1),
                      slow_out = gm_copies_out(m, t->pageable, m->size, 1);
    add(t, "to device", 1, 0, &in);
    add(t, "from device", 1, 0, &out);
    add_both(t, 1, 0);
    add(t, "to device, pinned", 0, BARE_IN, &in)->published = 8e9;
    add(t, "to device, pageable", 0, BARE_IN, &slow_in)->published = 2.27e9;
    add(t, "from device, pinned", 0, BARE_OUT, &out)->published = 8e9;
    add(t, "from device, pageable", 0, BARE_OUT, &slow_out)->published = 2.10e9;
    add_both(t, 0, BARE_BOTH);
    add_within(t, 1, 0);
    add_within(t, 0, t->count)->published = 2 * 29.1e9;
}

/* The limit is one copy of the same bytes. */
static void add_pinning(transfers *t)
{
    static const struct {
        const char *name;
        int (*run)(const gm_lab_case *self, gm_queue *queue);
    } ways[] = {{"pin and free", run_pin}, {"touch, pin and free", run_touch_and_pin}};
    gm_copy_loop_call call = gm_copies_in(&t->copies, t->copies.random, t->copies.size, 1);
    for (int i = 0; i < 2; i++) {
        gm_lab_case *c = add(t, ways[i].name, 0, BARE_IN, &call);
        c->kernel = "host memory";
        c->run = ways[i].run;
        c->check = NULL;
        c->computed = 0;
        c->panel = "pinning";
    }
}

/* Copies of one word: what counts is their number. */
static void add_words(transfers *t)
{
    static const char *const names[] = {"asynchronous", "synchronous"};
    int bare = t->count;
    for (int program = 0; program < 2; program++)
        for (int waits = 0; waits < 2; waits++) {
            gm_copy_loop_call call = gm_copies_in(&t->copies, t->copies.random, WORD, WORDS);
            call.each_waits = waits;
            gm_lab_case *c = add(t, names[waits], !program, program ? bare + waits + 1 : 0, &call);
            c->work = WORDS;
            c->unit = &gm_bench_unit_calls;
            c->computed = 0;
            c->published = program && waits ? 22000 : 0;
            c->panel = "copies of 4 bytes";
        }
}

/* Of sizes that the user asks for only the large copies. */
static int measure_size(gm_bench *bench, int64_t size)
{
    transfers *t = calloc(1, sizeof *t);
    void *pageable = NULL;
    if (!t)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    int status = gm_copies_open(bench, size, NULL, NULL, &t->copies);
    if (!status)
        status = gm_host_alloc((size_t)size, &pageable);
    t->pageable = pageable;
    if (!status) {
        memcpy(t->pageable, t->copies.random, (size_t)size);
        add_large(t);
        if (!bench->job->options->shapes) {
            add_pinning(t);
            add_words(t);
        }
        status = gm_lab_measure(bench, t->cases, t->count);
    }
    gm_copies_close(&t->copies);
    gm_host_free(pageable);
    free(t);
    return status;
}

int gm_bench_transfer(gm_bench *bench)
{
    int64_t size = usual_size;
    if (bench->ops->unified)
        return gm_bench_skip(bench, "the processor addresses host memory itself");
    if (!bench->measure->copy_loop)
        return gm_bench_skip(bench, NULL);
    while (size > GM_BENCH_PAIR_UNIT && (5 * size > gm_lab_host_room(bench) || 3 * size > gm_bench_room(bench)))
        size /= 2;
    return gm_bench_each_size(bench, GM_BENCH_PAIR_UNIT, &size, 1, measure_size);
}
