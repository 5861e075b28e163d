/* bench transfer - copies between host and device: large ones in each direction and in both at once, pinned and
 * pageable; over the bytes of a copy; of 4 bytes; and the time to pin memory. By the program's table of device
 * functions, beside a bare loop. Bytes of a copy within the device count twice, as read and as written. */
#include "base/memory.h"
#include "base/size.h"
#include "src/bench/lab/host.h"
#include "src/bench/lab/lab.h"

#include <stdlib.h>
#include <string.h>

enum { CASES = 40, WORD = 4, WORDS = 1000, WITHIN = 16 /* copies within the device */, PAGE = 4096, PIECES = 256 };
static const int64_t usual_size = INT64_C(256) << 20;

typedef struct transfers {
    gm_bench *bench;
    int64_t size;        /* bytes of each buffer */
    char *random, *back; /* pinned: random bits; what is copied from the device */
    char *pageable;      /* the same random bits, also after a copy from the device */
    char *src, *dst;     /* device memory: the same random bits; what is copied to the device */
    gm_queue *other;     /* of the second direction */
    gm_event *other_is_done;
    gm_copy_loop_call calls[CASES][2];
    gm_lab_case cases[CASES];
    int count;
} transfers;

typedef int put_copies(const transfers *t, gm_queue *queue, const gm_copy_loop_call *call);

static int put_bare(const transfers *t, gm_queue *queue, const gm_copy_loop_call *call)
{
    return t->bench->measure->copy_loop(queue, call);
}

static int put_program(const transfers *t, gm_queue *queue, const gm_copy_loop_call *call)
{
    const gm_device_ops *ops = t->bench->ops;
    size_t n = (size_t)call->bytes;
    int status = GM_OK;
    for (int64_t i = 0; i < call->count && !status; i++) {
        char *dst = (char *)call->dst + i * call->step;
        const char *src = (const char *)call->src + i * call->step;
        status = call->way == GM_COPY_IN    ? ops->copy_in(queue, dst, n, src, n, n, 1)
                 : call->way == GM_COPY_OUT ? ops->copy_out(queue, dst, n, src, n, n, 1)
                                            : t->bench->measure->copy(queue, dst, src, n);
        if (!status && call->each_waits)
            status = ops->queue_sync(queue);
    }
    return status;
}

static int run_bare(const gm_lab_case *self, gm_queue *queue)
{
    return put_bare(self->test, queue, self->call);
}

static int run_program(const gm_lab_case *self, gm_queue *queue)
{
    return put_program(self->test, queue, self->call);
}

/* Both transfers at once; the queue ends with both. */
static int run_both(const gm_lab_case *self, gm_queue *queue, put_copies *put)
{
    const transfers *t = self->test;
    const gm_copy_loop_call *calls = self->call;
    int status = put(t, queue, &calls[0]);
    if (!status)
        status = put(t, t->other, &calls[1]);
    if (!status)
        status = t->bench->ops->event_record(t->other_is_done, t->other);
    return status ? status : t->bench->ops->event_wait(queue, t->other_is_done);
}

static int run_both_bare(const gm_lab_case *self, gm_queue *queue)
{
    return run_both(self, queue, put_bare);
}

static int run_both_program(const gm_lab_case *self, gm_queue *queue)
{
    return run_both(self, queue, put_program);
}

/* The driver's pages are cleared when they are pinned. */
static int run_pin(const gm_lab_case *self, gm_queue *queue)
{
    const transfers *t = self->test;
    void *memory = NULL;
    int status = t->bench->ops->host_alloc(t->bench->device, (size_t)t->size, &memory);
    (void)queue;
    t->bench->ops->host_free(t->bench->device, memory);
    return status;
}

/* All threads have the system clear the pages first. */
static int run_touch_and_pin(const gm_lab_case *self, gm_queue *queue)
{
    const transfers *t = self->test;
    const gm_device_ops *ops = t->bench->ops;
    void *memory = NULL;
    int status = ops->host_alloc_pageable(t->bench->device, (size_t)t->size, &memory);
    (void)queue;
    if (!status) {
#pragma omp parallel for num_threads(t->bench->job->threads)
        for (int64_t at = 0; at < t->size; at += PAGE)
            ((volatile char *)memory)[at] = 1;
        ops->host_pin(t->bench->device, memory);
    }
    ops->host_free(t->bench->device, memory);
    return status;
}

/* The bytes that a call writes, from dst on. */
static int64_t reach(const gm_copy_loop_call *call)
{
    return call->step * (call->count - 1) + call->bytes;
}

static int clear(const transfers *t, const gm_copy_loop_call *call)
{
    if (call->way != GM_COPY_OUT)
        return t->bench->ops->zero(t->bench->queue, call->dst, (size_t)reach(call));
    memset(call->dst, 0, (size_t)reach(call));
    return GM_OK;
}

/* Compares the data that were copied. Those on the device come back through the buffer of copies from the device: it is
 * compared last. */
static int compare(const gm_lab_case *self, const gm_copy_loop_call *call)
{
    const transfers *t = self->test;
    const gm_device_ops *ops = t->bench->ops;
    size_t n = (size_t)reach(call);
    int status = GM_OK, is_out = call->way == GM_COPY_OUT;
    if (!is_out) {
        memset(t->back, 0, n);
        status = ops->copy_out(t->bench->queue, t->back, n, call->dst, n, n, 1);
        if (!status)
            status = ops->queue_sync(t->bench->queue);
    }
    if (!status && !gm_lab_is_equal(t->bench, is_out ? call->dst : t->back, t->random, (int64_t)n))
        status = gm_fail(GM_ECHECK, "bench transfer: %s %s: wrong bytes arrived", self->variant, self->shape);
    return status;
}

static int check_calls(const gm_lab_case *self, int count)
{
    const transfers *t = self->test;
    const gm_copy_loop_call *calls = self->call;
    int status = GM_OK;
    for (int i = 0; i < count && !status; i++)
        status = clear(t, &calls[i]);
    if (!status)
        status = t->bench->ops->queue_sync(t->bench->queue);
    if (!status)
        status = self->run(self, t->bench->queue);
    if (!status)
        status = t->bench->ops->queue_sync(t->bench->queue);
    for (int i = count - 1; i >= 0 && !status; i--)
        status = compare(self, &calls[i]);
    return status;
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
                       .computed = t->bench->job->info.host_limit,
                       .limit = limit,
                       .panel = "large copies"};
    snprintf(c->variant, sizeof c->variant, "%s%s", is_bare ? "bare loop, " : "", variant);
    gm_size_format(call->bytes, c->shape);
    t->count++;
    return c;
}

static gm_copy_loop_call in_of(const transfers *t, const char *src, int64_t bytes, int64_t count)
{
    return (gm_copy_loop_call){GM_COPY_IN, t->dst, src, bytes, bytes, count, 0};
}

static gm_copy_loop_call out_of(const transfers *t, char *dst, int64_t bytes, int64_t count)
{
    return (gm_copy_loop_call){GM_COPY_OUT, dst, t->src, bytes, bytes, count, 0};
}

/* The bus carries both directions at once. */
static gm_lab_case *add_both(transfers *t, int is_bare, int limit)
{
    gm_copy_loop_call in = in_of(t, t->random, t->size, 1), out = out_of(t, t->back, t->size, 1);
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
    const gm_copy_loop_call call = {GM_COPY_WITHIN, t->dst, t->src, t->size, 0, WITHIN, 0};
    gm_lab_case *c = add(t, "on the device", is_bare, limit, &call);
    c->cache = gm_lab_cache(t->bench, 2 * t->size);
    c->work *= 2;
    c->computed = gm_lab_memory_limit(t->bench, 2 * t->size);
    c->panel = "within the device";
    return c;
}

enum { BARE_IN = 1, BARE_OUT, BARE_BOTH }; /* the first cases, as limits */

static void add_large(transfers *t)
{
    gm_copy_loop_call in = in_of(t, t->random, t->size, 1), out = out_of(t, t->back, t->size, 1);
    gm_copy_loop_call slow_in = in_of(t, t->pageable, t->size, 1), slow_out = out_of(t, t->pageable, t->size, 1);
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

/* Pieces of each size, one after the other. */
static void add_pieces(transfers *t)
{
    static const int64_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20};
    for (int is_out = 0; is_out < 2; is_out++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            int64_t n = sizes[i], count = gm_min(gm_min(sizes[6], t->size) / n, PIECES);
            if (count == 0)
                continue;
            gm_copy_loop_call call = is_out ? out_of(t, t->back, n, count) : in_of(t, t->random, n, count);
            gm_lab_case *c = add(t, is_out ? "pieces from device" : "pieces to device", 0, is_out ? BARE_OUT : BARE_IN,
                                 &call);
            c->panel = "pieces, pinned";
            c->x = (double)n;
            c->x_name = "bytes of a copy";
        }
}

/* The limit is one copy of the same bytes. */
static void add_pinning(transfers *t)
{
    static const struct {
        const char *name;
        int (*run)(const gm_lab_case *self, gm_queue *queue);
    } ways[] = {{"pin and free", run_pin}, {"touch, pin and free", run_touch_and_pin}};
    gm_copy_loop_call call = in_of(t, t->random, t->size, 1);
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
            gm_copy_loop_call call = in_of(t, t->random, WORD, WORDS);
            call.each_waits = waits;
            gm_lab_case *c = add(t, names[waits], !program, program ? bare + waits + 1 : 0, &call);
            c->work = WORDS;
            c->unit = &gm_bench_unit_calls;
            c->computed = 0;
            c->published = program && waits ? 22000 : 0;
            c->panel = "copies of 4 bytes";
        }
}

static int allocate(transfers *t)
{
    const gm_device_ops *ops = t->bench->ops;
    void *memory[5] = {0};
    size_t n = (size_t)t->size;
    int status = ops->host_alloc(t->bench->device, n, &memory[0]);
    if (!status)
        status = ops->host_alloc(t->bench->device, n, &memory[1]);
    if (!status)
        status = gm_host_alloc(n, &memory[2]);
    if (!status)
        status = ops->alloc(t->bench->device, n, &memory[3]);
    if (!status)
        status = ops->alloc(t->bench->device, n, &memory[4]);
    if (!status)
        status = ops->queue_open(t->bench->device, &t->other);
    if (!status)
        status = ops->event_open(t->bench->device, &t->other_is_done);
    t->random = memory[0];
    t->back = memory[1];
    t->pageable = memory[2];
    t->src = memory[3];
    t->dst = memory[4];
    return status;
}

/* Freeing device memory waits for work that a failure has left, before the host memory goes. */
static void release(transfers *t)
{
    const gm_device_ops *ops = t->bench->ops;
    if (t->other_is_done)
        ops->event_close(t->other_is_done);
    if (t->other)
        ops->queue_close(t->other);
    ops->free(t->bench->device, t->dst);
    ops->free(t->bench->device, t->src);
    gm_host_free(t->pageable);
    ops->host_free(t->bench->device, t->back);
    ops->host_free(t->bench->device, t->random);
    free(t);
}

/* Of sizes that the user asks for only the large copies. */
static int measure_size(gm_bench *bench, int64_t size)
{
    transfers *t = calloc(1, sizeof *t);
    if (!t)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    t->bench = bench;
    t->size = size;
    int status = allocate(t);
    if (!status) {
        gm_lab_randomize(bench, t->random, size);
        memcpy(t->pageable, t->random, (size_t)size);
        status = gm_bench_upload(bench, t->src, t->random, (size_t)size);
    }
    add_large(t);
    if (!bench->job->options->shapes) {
        add_pieces(t);
        add_pinning(t);
        add_words(t);
    }
    if (!status)
        status = gm_lab_measure(bench, t->cases, t->count);
    release(t);
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
