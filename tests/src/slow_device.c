#include "tests/src/slow_device.h"

#include "base/clock.h"
#include "kernels/move/calls.h"
#include "kernels/normalize/calls.h"
#include "kernels/reduce/calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An entry of a queue: the function to call and its argument, or an event to record or to wait for. */
typedef enum kind {
    COPY,
    ZERO,
    PRODUCT,
    CALL,
    RECORD,
    WAIT,
#define GM_DEVICE_OP(name, cpu, cuda) DO_##name,
#include "base/device_ops.def"
#undef GM_DEVICE_OP
} kind;

typedef struct work {
    struct work *next;
    kind kind;
    union {
        struct {
            void *dst;
            const void *src;
            size_t dst_pitch, src_pitch, width;
            int64_t rows;
        } copy;
        gm_product_call product;
#define GM_DEVICE_OP(name, cpu, cuda) gm_##name##_call name;
#include "base/device_ops.def"
#undef GM_DEVICE_OP
        struct {
            void (*function)(void *);
            void *argument;
        } call;
        struct {
            struct slow_event *event;
            int64_t number;
        } record;
    } of;
    const gm_product *product;
} work;

/* gm_queue and gm_event are these. */
typedef struct slow_queue {
    pthread_t thread;
    work *first, **last;
    int busy, closing;
    gm_queue *real;
    unsigned seed;
} slow_queue;

typedef struct slow_event {
    int64_t recorded, completed; /* numbers of the last record enqueued and of the last one completed */
    double time;
} slow_event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, device_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const gm_device_ops *real;
static gm_device_ops slow;
static gm_product product;
static const gm_product *real_product;
static unsigned queues_opened;
enum { MAX_PAGEABLE = 64 };
static struct {
    const char *from; /* NULL: a free place */
    size_t bytes;
} pageable[MAX_PAGEABLE]; /* memory that is not pinned yet; under the lock: threads allocate, pin and copy at once */

static void die(const char *why)
{
    gm_error error;
    gm_error_get(&error);
    fprintf(stderr, "the slow device: %s %s\n", why, error.text);
    abort();
}

static slow_queue *slow_of(gm_queue *queue)
{
    return (slow_queue *)(void *)queue;
}

static void delay(slow_queue *q)
{
    struct timespec delay_time = {0, (long)(rand_r(&q->seed) % 8 == 0 ? rand_r(&q->seed) % 3000000 : 0)};
    nanosleep(&delay_time, NULL);
}

static int do_work(slow_queue *q, work *w)
{
    switch (w->kind) {
    case COPY:
        return real->copy_in(q->real, w->of.copy.dst, w->of.copy.dst_pitch, w->of.copy.src, w->of.copy.src_pitch,
                             w->of.copy.width, w->of.copy.rows);
    case ZERO:
        return real->zero(q->real, w->of.copy.dst, w->of.copy.width);
    case PRODUCT:
        if (w->of.product.schemes) /* as the kernels of GPUs do: elsewhere it changes a sum of the check */
            w->of.product.schemes[GM_SCHEME_F16] += (double)w->of.product.m * (double)w->of.product.n *
                                                    (double)w->of.product.k;
        return w->product->run(q->real, &w->of.product);
#define GM_DEVICE_OP(name, cpu, cuda) \
    case DO_##name:                   \
        return real->name(q->real, &w->of.name);
#include "base/device_ops.def"
#undef GM_DEVICE_OP
    default:
        return GM_EINTERNAL;
    }
}

/* Records an event or waits for it, under the lock. */
static void do_event(work *w)
{
    slow_event *e = w->of.record.event;
    if (w->kind == RECORD) {
        e->completed = w->of.record.number;
        e->time = gm_clock();
        pthread_cond_broadcast(&changed);
    }
    while (w->kind == WAIT && e->completed < w->of.record.number)
        pthread_cond_wait(&changed, &lock);
}

static void *run(void *argument)
{
    slow_queue *q = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!q->first && !q->closing)
            pthread_cond_wait(&changed, &lock);
        work *w = q->first;
        if (!w)
            break;
        q->first = w->next;
        if (!q->first)
            q->last = &q->first;
        q->busy = 1;
        if (w->kind == RECORD || w->kind == WAIT) {
            do_event(w);
        } else if (w->kind == CALL) {
            pthread_mutex_unlock(&lock);
            delay(q);
            w->of.call.function(w->of.call.argument);
            pthread_mutex_lock(&lock);
        } else {
            pthread_mutex_unlock(&lock);
            delay(q);
            pthread_mutex_lock(&device_lock); /* one piece of work at a time, as the CPU device expects */
            int status = do_work(q, w);
            /* the processor leaves out the rest of a product after a signal or a failure */
            if (status && status != GM_ESTOPPED && status != GM_EPEER)
                die("work of a queue fails:");
            pthread_mutex_unlock(&device_lock);
            pthread_mutex_lock(&lock);
        }
        q->busy = 0;
        free(w);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int put(gm_queue *queue, const work *what)
{
    slow_queue *q = slow_of(queue);
    work *w = malloc(sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "out of host memory");
    *w = *what;
    w->next = NULL;
    pthread_mutex_lock(&lock);
    if (w->kind == RECORD)
        w->of.record.number = ++w->of.record.event->recorded;
    else if (w->kind == WAIT)
        w->of.record.number = w->of.record.event->recorded;
    *q->last = w;
    q->last = &w->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

static int queue_open(gm_device *device, gm_queue **queue)
{
    slow_queue *q = calloc(1, sizeof *q);
    q->last = &q->first;
    q->seed = ++queues_opened * 7919;
    int status = real->queue_open(device, &q->real);
    if (!status && pthread_create(&q->thread, NULL, run, q))
        die("no thread for a queue");
    *queue = (gm_queue *)(void *)q;
    return status;
}

static int queue_sync(gm_queue *queue)
{
    slow_queue *q = slow_of(queue);
    pthread_mutex_lock(&lock);
    while (q->first || q->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

static void queue_close(gm_queue *queue)
{
    slow_queue *q = slow_of(queue);
    pthread_mutex_lock(&lock);
    q->closing = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(q->thread, NULL);
    real->queue_close(q->real);
    free(q);
}

static int event_open(gm_device *device, gm_event **event)
{
    (void)device;
    *event = calloc(1, sizeof(slow_event));
    return GM_OK;
}

static void event_close(gm_event *event)
{
    free(event);
}

static int event_record(gm_event *event, gm_queue *queue)
{
    return put(queue, &(work){.kind = RECORD, .of.record.event = (slow_event *)(void *)event});
}

static int event_wait(gm_queue *queue, gm_event *event)
{
    return put(queue, &(work){.kind = WAIT, .of.record.event = (slow_event *)(void *)event});
}

static int event_done(gm_event *event, int *done)
{
    slow_event *e = (slow_event *)(void *)event;
    pthread_mutex_lock(&lock);
    *done = e->completed == e->recorded;
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

static int event_sync(gm_event *event)
{
    slow_event *e = (slow_event *)(void *)event;
    pthread_mutex_lock(&lock);
    for (int64_t number = e->recorded; e->completed < number;)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

static int event_seconds(gm_event *from, gm_event *to, double *seconds)
{
    pthread_mutex_lock(&lock);
    *seconds = ((slow_event *)(void *)to)->time - ((slow_event *)(void *)from)->time;
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

/* New memory holds nothing that a program may rely on: numbers of any type that are no zeros. */
static int poison(int status, void *const *memory, size_t bytes)
{
    if (!status && *memory)
        memset(*memory, 0xa7, bytes);
    return status;
}

static int alloc(gm_device *device, size_t bytes, void **out)
{
    return poison(real->alloc(device, bytes, out), out, bytes);
}

static int host_alloc(gm_device *device, size_t bytes, void **out)
{
    return poison(real->host_alloc(device, bytes, out), out, bytes);
}

static int host_alloc_pageable(gm_device *device, size_t bytes, void **out)
{
    int i = 0, status = poison(real->host_alloc_pageable(device, bytes, out), out, bytes);
    if (status)
        return status;
    pthread_mutex_lock(&lock);
    while (i < MAX_PAGEABLE && pageable[i].from)
        i++;
    if (i < MAX_PAGEABLE) {
        pageable[i].from = *out;
        pageable[i].bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
    return i < MAX_PAGEABLE
               ? GM_OK
               : gm_fail(GM_EDEVICE, "the test device is limited to %d blocks of pageable memory", MAX_PAGEABLE);
}

static void host_pin(gm_device *device, void *memory)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_PAGEABLE; i++)
        if (pageable[i].from == memory)
            pageable[i].from = NULL;
    pthread_mutex_unlock(&lock);
    real->host_pin(device, memory);
}

static void host_free(gm_device *device, void *memory)
{
    host_pin(device, memory);
    real->host_free(device, memory);
}

static int is_pageable(const void *memory)
{
    const char *at = memory;
    int is = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_PAGEABLE; i++)
        is |= pageable[i].from && at >= pageable[i].from && at < pageable[i].from + pageable[i].bytes;
    pthread_mutex_unlock(&lock);
    return is;
}

static int copy(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                int64_t rows)
{
    work w = {.kind = COPY};
    if (is_pageable(dst) || is_pageable(src))
        die("a copy of memory that is not pinned is slow or synchronous on a real device");
    w.of.copy.dst = dst;
    w.of.copy.src = src;
    w.of.copy.dst_pitch = dst_pitch;
    w.of.copy.src_pitch = src_pitch;
    w.of.copy.width = width;
    w.of.copy.rows = rows;
    return put(queue, &w);
}

static int zero(gm_queue *queue, void *dst, size_t bytes)
{
    work w = {.kind = ZERO};
    w.of.copy.dst = dst;
    w.of.copy.width = bytes;
    return put(queue, &w);
}

static int run_product(gm_queue *queue, const gm_product_call *call)
{
    return put(queue, &(work){.kind = PRODUCT, .of.product = *call, .product = real_product});
}

#define GM_DEVICE_OP(op, cpu, cuda)                                  \
    static int run_##op(gm_queue *queue, const gm_##op##_call *call) \
    {                                                                \
        return put(queue, &(work){.kind = DO_##op, .of.op = *call}); \
    }
#include "base/device_ops.def"
#undef GM_DEVICE_OP

void slow_queue_call(void *queue, void (*function)(void *), void *argument)
{
    if (put(queue, &(work){.kind = CALL, .of.call = {function, argument}}))
        die("a function is not queued:");
}

static const gm_product *find_product(gm_device *device, int index)
{
    real_product = real->product(device, index);
    if (!real_product)
        return NULL;
    product = *real_product;
    product.run = run_product;
    return &product;
}

const gm_device_ops *slow_device_ops(const gm_device_ops *of)
{
    real = of;
    slow = *of;
    slow.unified = 0;
    slow.queue_open = queue_open;
    slow.queue_close = queue_close;
    slow.queue_sync = queue_sync;
    slow.event_open = event_open;
    slow.event_close = event_close;
    slow.event_record = event_record;
    slow.event_wait = event_wait;
    slow.event_done = event_done;
    slow.event_sync = event_sync;
    slow.event_seconds = event_seconds;
    slow.alloc = alloc;
    slow.host_alloc = host_alloc;
    slow.host_alloc_pageable = host_alloc_pageable;
    slow.host_pin = host_pin;
    slow.host_free = host_free;
    slow.copy_in = slow.copy_out = slow.copy_within = copy;
    slow.zero = zero;
    slow.product = find_product;
#define GM_DEVICE_OP(name, cpu, cuda) slow.name = run_##name;
#include "base/device_ops.def"
#undef GM_DEVICE_OP
    return &slow;
}
