#include "tests/slow_device.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Work is kept as what to call with which record; waits and marks are work, too. */
typedef enum kind { COPY, ZERO, PRODUCT, UNPACK, FOLD, FINISH, PROBE, RECORD, WAIT } kind;

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
        gm_unpack_call unpack;
        gm_fold_call fold;
        gm_finish_call finish;
        gm_probe_call probe;
        struct {
            struct slow_event *event;
            int64_t number;
        } mark;
    } of;
    const gm_product *with;
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
    int64_t recorded, reached; /* marks put into queues, and passed */
    double time;
} slow_event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, at_work = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const gm_device_ops *real;
static gm_device_ops slow;
static gm_product product;
static const gm_product *real_product;
static unsigned queues_opened;
enum { UNSETTLED_MOST = 64 };
static struct {
    const char *_Atomic from; /* NULL: a free place */
    size_t bytes;
} unsettled[UNSETTLED_MOST]; /* memory that is not to be copied yet */

static slow_queue *slow_of(gm_queue *queue)
{
    return (slow_queue *)(void *)queue;
}

static void take_time(slow_queue *q)
{
    struct timespec moment = {0, (long)(rand_r(&q->seed) % 8 == 0 ? rand_r(&q->seed) % 3000000 : 0)};
    nanosleep(&moment, NULL);
}

static int do_work(slow_queue *q, work *w)
{
    switch (w->kind) {
    case COPY:
        return real->copy_in(q->real, w->of.copy.dst, w->of.copy.dst_pitch, w->of.copy.src, w->of.copy.src_pitch, w->of.copy.width, w->of.copy.rows);
    case ZERO:
        return real->zero(q->real, w->of.copy.dst, w->of.copy.width);
    case PRODUCT:
        return w->with->run(q->real, &w->of.product);
    case UNPACK:
        return real->unpack(q->real, &w->of.unpack);
    case FOLD:
        return real->fold(q->real, &w->of.fold);
    case FINISH:
        return real->finish(q->real, &w->of.finish);
    default:
        return real->probe(q->real, &w->of.probe);
    }
}

/* Marks and waits, under the lock. */
static void meet(work *w)
{
    slow_event *e = w->of.mark.event;
    if (w->kind == RECORD) {
        e->reached = w->of.mark.number;
        e->time = gm_clock();
        pthread_cond_broadcast(&changed);
    }
    while (w->kind == WAIT && e->reached < w->of.mark.number)
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
            meet(w);
        } else {
            pthread_mutex_unlock(&lock);
            take_time(q);
            pthread_mutex_lock(&at_work); /* the processor does one thing at a time */
            if (do_work(q, w))
                abort();
            pthread_mutex_unlock(&at_work);
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
        return gm_fail(GM_EDEVICE, "no memory");
    *w = *what;
    w->next = NULL;
    pthread_mutex_lock(&lock);
    if (w->kind == RECORD)
        w->of.mark.number = ++w->of.mark.event->recorded;
    else if (w->kind == WAIT)
        w->of.mark.number = w->of.mark.event->recorded;
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
        abort();
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
    return put(queue, &(work){.kind = RECORD, .of.mark.event = (slow_event *)(void *)event});
}

static int event_wait(gm_queue *queue, gm_event *event)
{
    return put(queue, &(work){.kind = WAIT, .of.mark.event = (slow_event *)(void *)event});
}

static int event_done(gm_event *event, int *done)
{
    slow_event *e = (slow_event *)(void *)event;
    pthread_mutex_lock(&lock);
    *done = e->reached == e->recorded;
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

static int pin_later(gm_device *device, size_t bytes, void **out)
{
    int status = real->pin_later(device, bytes, out);
    for (int i = 0; i < UNSETTLED_MOST && !status; i++)
        if (!unsettled[i].from) {
            unsettled[i].from = *out;
            unsettled[i].bytes = bytes;
            return GM_OK;
        }
    return status ? status : gm_fail(GM_EDEVICE, "more memory is to be pinned than the test has places for");
}

static void settle(gm_device *device, void *memory)
{
    for (int i = 0; i < UNSETTLED_MOST; i++)
        if (unsettled[i].from == memory)
            unsettled[i].from = NULL;
    real->settle(device, memory);
}

static void unpin(gm_device *device, void *memory)
{
    settle(device, memory);
    real->unpin(device, memory);
}

static int is_unsettled(const void *memory)
{
    const char *at = memory;
    for (int i = 0; i < UNSETTLED_MOST; i++)
        if (unsettled[i].from && at >= unsettled[i].from && at < unsettled[i].from + unsettled[i].bytes)
            return 1;
    return 0;
}

static int copy(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, int64_t rows)
{
    work w = {.kind = COPY};
    if (is_unsettled(dst) || is_unsettled(src))
        abort(); /* on a real device this would be slow, or wait */
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
    return put(queue, &(work){.kind = PRODUCT, .of.product = *call, .with = real_product});
}

static int unpack(gm_queue *queue, const gm_unpack_call *call)
{
    return put(queue, &(work){.kind = UNPACK, .of.unpack = *call});
}

static int fold(gm_queue *queue, const gm_fold_call *call)
{
    return put(queue, &(work){.kind = FOLD, .of.fold = *call});
}

static int finish(gm_queue *queue, const gm_finish_call *call)
{
    return put(queue, &(work){.kind = FINISH, .of.finish = *call});
}

static int probe(gm_queue *queue, const gm_probe_call *call)
{
    return put(queue, &(work){.kind = PROBE, .of.probe = *call});
}

static const gm_product *find_product(gm_device *device, gm_precision precision)
{
    real_product = real->product(device, precision);
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
    slow.event_seconds = event_seconds;
    slow.pin_later = pin_later;
    slow.settle = settle;
    slow.unpin = unpin;
    slow.copy_in = slow.copy_out = copy;
    slow.zero = zero;
    slow.product = find_product;
    slow.unpack = unpack;
    slow.fold = fold;
    slow.finish = finish;
    slow.probe = probe;
    return &slow;
}
