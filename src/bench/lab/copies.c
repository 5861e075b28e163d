/* Copies between host and device, for the tests of them. */
#include "src/bench/lab/copies.h"

#include "src/bench/lab/host.h"

#include <string.h>

/* Pages get their place when they are touched first; pinning them would be that. */
static int alloc_placed(gm_copies *c, gm_copies_place *place, const void *where, void **out)
{
    const gm_device_ops *ops = c->bench->ops;
    size_t n = (size_t)c->size;
    if (!place)
        return ops->host_alloc(c->bench->device, n, out);
    int status = ops->host_alloc_pageable(c->bench->device, n, out);
    if (status)
        return status;
    place(where, *out, n);
    memset(*out, 0, n);
    ops->host_pin(c->bench->device, *out);
    return GM_OK;
}

int gm_copies_open(gm_bench *bench, int64_t size, gm_copies_place *place, const void *where, gm_copies *c)
{
    const gm_device_ops *ops = bench->ops;
    void *memory[4] = {0};
    size_t n = (size_t)size;
    *c = (gm_copies){.bench = bench, .size = size};
    int status = alloc_placed(c, place, where, &memory[0]);
    if (!status)
        status = alloc_placed(c, place, where, &memory[1]);
    if (!status)
        status = ops->alloc(bench->device, n, &memory[2]);
    if (!status)
        status = ops->alloc(bench->device, n, &memory[3]);
    if (!status)
        status = ops->queue_open(bench->device, &c->other);
    if (!status)
        status = ops->event_open(bench->device, 0, &c->other_is_done);
    c->random = memory[0];
    c->back = memory[1];
    c->src = memory[2];
    c->dst = memory[3];
    if (status)
        return status;
    gm_lab_randomize(bench, c->random, size);
    return gm_bench_upload(bench, c->src, c->random, n);
}

/* Work that a failure has left ends before its memory goes. */
void gm_copies_close(gm_copies *c)
{
    const gm_device_ops *ops = c->bench->ops;
    ops->queue_sync(c->bench->queue);
    if (c->other)
        ops->queue_sync(c->other);
    if (c->other_is_done)
        ops->event_close(c->other_is_done);
    if (c->other)
        ops->queue_close(c->other);
    ops->free(c->bench->device, c->dst);
    ops->free(c->bench->device, c->src);
    ops->host_free(c->bench->device, c->back);
    ops->host_free(c->bench->device, c->random);
}

gm_copy_loop_call gm_copies_in(const gm_copies *c, const char *src, int64_t bytes, int64_t count)
{
    return (gm_copy_loop_call){GM_COPY_IN, c->dst, src, bytes, bytes, count, 0};
}

gm_copy_loop_call gm_copies_out(const gm_copies *c, char *dst, int64_t bytes, int64_t count)
{
    return (gm_copy_loop_call){GM_COPY_OUT, dst, c->src, bytes, bytes, count, 0};
}

int gm_copies_put_bare(const gm_copies *c, gm_queue *queue, const gm_copy_loop_call *call)
{
    return c->bench->measure->copy_loop(queue, call);
}

int gm_copies_put_program(const gm_copies *c, gm_queue *queue, const gm_copy_loop_call *call)
{
    const gm_device_ops *ops = c->bench->ops;
    size_t n = (size_t)call->bytes;
    int status = GM_OK;
    for (int64_t i = 0; i < call->count && !status; i++) {
        char *dst = (char *)call->dst + i * call->step;
        const char *src = (const char *)call->src + i * call->step;
        status = call->way == GM_COPY_IN    ? ops->copy_in(queue, dst, n, src, n, n, 1)
                 : call->way == GM_COPY_OUT ? ops->copy_out(queue, dst, n, src, n, n, 1)
                                            : c->bench->measure->copy(queue, dst, src, n);
        if (!status && call->each_waits)
            status = ops->queue_sync(queue);
    }
    return status;
}

int gm_copies_put_both(const gm_copies *c, gm_queue *queue, const gm_copy_loop_call calls[2], gm_copies_put *put)
{
    gm_copy_loop_call one[2] = {calls[0], calls[1]};
    int status = GM_OK;
    for (int64_t i = 0; i < calls[0].count && !status; i++)
        for (int k = 0; k < 2 && !status; k++) {
            one[k].dst = (char *)calls[k].dst + i * calls[k].step;
            one[k].src = (const char *)calls[k].src + i * calls[k].step;
            one[k].count = 1;
            status = put(c, k == 0 ? queue : c->other, &one[k]);
        }
    if (!status)
        status = c->bench->ops->event_record(c->other_is_done, c->other);
    return status ? status : c->bench->ops->event_wait(queue, c->other_is_done);
}

/* The bytes that a call writes, from dst on. */
static int64_t reach(const gm_copy_loop_call *call)
{
    return call->step * (call->count - 1) + call->bytes;
}

static int clear(const gm_copies *c, const gm_copy_loop_call *call)
{
    if (call->way != GM_COPY_OUT)
        return c->bench->ops->zero(c->bench->queue, call->dst, (size_t)reach(call));
    memset(call->dst, 0, (size_t)reach(call));
    return GM_OK;
}

/* Compares the data that were copied. Those on the device come back through the buffer of copies from the device: it is
 * compared last. */
static int compare(const gm_copies *c, const gm_copy_loop_call *call, const char *what)
{
    const gm_device_ops *ops = c->bench->ops;
    size_t n = (size_t)reach(call);
    int status = GM_OK, is_out = call->way == GM_COPY_OUT;
    if (!is_out) {
        memset(c->back, 0, n);
        status = ops->copy_out(c->bench->queue, c->back, n, call->dst, n, n, 1);
        if (!status)
            status = ops->queue_sync(c->bench->queue);
    }
    if (!status && !gm_lab_is_equal(c->bench, is_out ? call->dst : c->back, c->random, (int64_t)n))
        status = gm_fail(GM_ECHECK, "bench %s: %s: wrong bytes arrived", c->bench->test, what);
    return status;
}

int gm_copies_check(const gm_copies *c, const gm_copy_loop_call *calls, int count,
                    int (*run)(const void *context, gm_queue *queue), const void *context, const char *what)
{
    int status = GM_OK;
    for (int i = 0; i < count && !status; i++)
        status = clear(c, &calls[i]);
    if (!status)
        status = c->bench->ops->queue_sync(c->bench->queue);
    if (!status)
        status = run(context, c->bench->queue);
    if (!status)
        status = c->bench->ops->queue_sync(c->bench->queue);
    for (int i = count - 1; i >= 0 && !status; i--)
        status = compare(c, &calls[i], what);
    return status;
}
