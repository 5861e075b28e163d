/* late_device.c - an asynchronous device made of threads. Each queue and each event has a lock of its own: one lock for
 * all would add an order that the user of the device must establish. */
#include "tests/src/stream/late_device.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    void (*call)(void *argument);
    void *argument;
    struct work *next;
} work;

struct gm_device {
    int unused;
};

struct gm_queue {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    work *first, **last;
    int working, closing;
};

/* The number of times it was recorded and completed; the time of the last completion. */
struct gm_event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t recorded, completed;
    double at;
};

static atomic_int until_failure; /* counted down below 0 */
static int early;

void gm_late_fail_at(int calls)
{
    until_failure = calls;
}

void gm_late_complete_early(int on)
{
    early = on;
}

static int count_call(const char *what)
{
    return atomic_fetch_sub(&until_failure, 1) == 1 ? gm_fail(GM_EDEVICE, "planted failure: %s", what) : GM_OK;
}

void gm_late_pause(void)
{
    static atomic_uint seed = 1;
    static _Thread_local uint64_t state;
    if (!state)
        state = 0x9e3779b97f4a7c15u * (atomic_fetch_add(&seed, 1) + 1);
    state = state * 6364136223846793005u + 1442695040888963407u;
    unsigned chance = (unsigned)(state >> 33);
    if (chance % 8 == 0)
        nanosleep(&(struct timespec){0, (long)(chance / 8 % 200000)}, NULL);
    else if (chance % 8 == 1)
        sched_yield();
}

static void *run_queue(void *argument)
{
    gm_queue *q = argument;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->closing)
            pthread_cond_wait(&q->changed, &q->lock);
        work *w = q->first;
        if (!w)
            break;
        q->first = w->next;
        if (!q->first)
            q->last = &q->first;
        q->working = 1;
        pthread_mutex_unlock(&q->lock);
        gm_late_pause();
        w->call(w->argument);
        free(w->argument);
        free(w);
        pthread_mutex_lock(&q->lock);
        q->working = 0;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

int gm_late_enqueue(gm_queue *q, void (*call)(void *argument), const void *argument, size_t bytes)
{
    work *w = malloc(sizeof *w);
    void *copy = malloc(bytes);
    if (!w || !copy)
        abort();
    memcpy(copy, argument, bytes);
    *w = (work){call, copy, NULL};
    pthread_mutex_lock(&q->lock);
    *q->last = w;
    q->last = &w->next;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return GM_OK;
}

static int count_devices(int *count)
{
    *count = 1;
    return GM_OK;
}

static int open_device(int index, int threads, gm_device **device)
{
    (void)index;
    (void)threads;
    *device = calloc(1, sizeof **device);
    return *device ? GM_OK : gm_fail(GM_EDEVICE, "out of host memory");
}

static void close_device(gm_device *device)
{
    free(device);
}

static int attach(gm_device *device)
{
    (void)device;
    return count_call("attach");
}

static int alloc_memory(gm_device *device, size_t bytes, void **out)
{
    (void)device;
    *out = NULL;
    int status = count_call("memory");
    if (!status && !(*out = malloc(bytes)))
        status = gm_fail(GM_EDEVICE, "out of host memory");
    return status;
}

static void free_memory(gm_device *device, void *memory)
{
    (void)device;
    if (!early) /* work that was taken for done may still run */
        free(memory);
}

static int queue_open(gm_device *device, gm_queue **out)
{
    (void)device;
    int status = count_call("queue_open");
    if (status)
        return status;
    gm_queue *q = calloc(1, sizeof *q);
    if (!q)
        return gm_fail(GM_EDEVICE, "out of host memory");
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    if (pthread_create(&q->thread, NULL, run_queue, q))
        abort();
    *out = q;
    return GM_OK;
}

static void queue_close(gm_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closing = 1;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static int queue_sync(gm_queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->first || q->working)
        pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
    return count_call("queue_sync");
}

static int event_open(gm_device *device, int is_timed, gm_event **out)
{
    (void)device;
    (void)is_timed;
    int status = count_call("event_open");
    if (status)
        return status;
    gm_event *e = calloc(1, sizeof *e);
    if (!e)
        return gm_fail(GM_EDEVICE, "out of host memory");
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    *out = e;
    return GM_OK;
}

static void event_close(gm_event *e)
{
    if (early)
        return;
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

typedef struct mark {
    gm_event *event;
    int64_t number;
} mark;

static void complete(void *argument)
{
    mark *m = argument;
    pthread_mutex_lock(&m->event->lock);
    m->event->completed = m->number;
    m->event->at = gm_clock();
    pthread_cond_broadcast(&m->event->changed);
    pthread_mutex_unlock(&m->event->lock);
}

static void wait_for(void *argument)
{
    mark *m = argument;
    pthread_mutex_lock(&m->event->lock);
    while (m->event->completed < m->number)
        pthread_cond_wait(&m->event->changed, &m->event->lock);
    pthread_mutex_unlock(&m->event->lock);
}

static int event_record(gm_event *e, gm_queue *queue)
{
    int status = count_call("event_record");
    if (status)
        return status;
    pthread_mutex_lock(&e->lock);
    mark m = {e, ++e->recorded};
    pthread_mutex_unlock(&e->lock);
    return gm_late_enqueue(queue, complete, &m, sizeof m);
}

static int event_wait(gm_queue *queue, gm_event *e)
{
    int status = count_call("event_wait");
    if (status)
        return status;
    pthread_mutex_lock(&e->lock);
    mark m = {e, e->recorded};
    pthread_mutex_unlock(&e->lock);
    return gm_late_enqueue(queue, wait_for, &m, sizeof m);
}

static int event_done(gm_event *e, int *done)
{
    *done = 1;
    if (early)
        return GM_OK;
    pthread_mutex_lock(&e->lock);
    *done = e->completed == e->recorded;
    pthread_mutex_unlock(&e->lock);
    return count_call("event_done");
}

static int event_sync(gm_event *e)
{
    pthread_mutex_lock(&e->lock);
    for (int64_t number = e->recorded; e->completed < number && !early;)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
    return count_call("event_sync");
}

static int event_seconds(gm_event *from, gm_event *to, double *seconds)
{
    pthread_mutex_lock(&from->lock);
    double begin = from->at;
    pthread_mutex_unlock(&from->lock);
    pthread_mutex_lock(&to->lock);
    *seconds = to->at - begin;
    pthread_mutex_unlock(&to->lock);
    return count_call("event_seconds");
}

typedef struct copy {
    void *dst;
    const void *src;
    size_t bytes;
} copy;

static void do_copy(void *argument)
{
    copy *c = argument;
    memcpy(c->dst, c->src, c->bytes);
}

/* The rows are contiguous. */
static int enqueue_copy(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                        int64_t rows)
{
    (void)dst_pitch;
    (void)src_pitch;
    int status = count_call("copy");
    copy c = {dst, src, width * (size_t)rows};
    return status ? status : gm_late_enqueue(queue, do_copy, &c, sizeof c);
}

static void host_pin(gm_device *device, void *memory)
{
    (void)device;
    (void)memory;
}

const gm_device_ops gm_device_late = {
    .kind = "late",
    .count = count_devices,
    .open = open_device,
    .close = close_device,
    .attach = attach,
    .alloc = alloc_memory,
    .free = free_memory,
    .host_alloc = alloc_memory,
    .host_alloc_pageable = alloc_memory,
    .host_pin = host_pin,
    .host_free = free_memory,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .queue_sync = queue_sync,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_done = event_done,
    .event_sync = event_sync,
    .event_seconds = event_seconds,
    .copy_in = enqueue_copy,
    .copy_out = enqueue_copy,
};
