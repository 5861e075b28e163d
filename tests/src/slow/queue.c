#include "tests/src/slow/queue.h"

#include "base/clock.h"
#include "tests/src/slow/memory.h"
#include "tests/src/slow/products.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* gm_queue and gm_event are these. */
typedef struct slow_queue {
    pthread_t thread;
    slow_work *first, **last;
    int busy, closing;
    gm_queue *real;
    unsigned seed;
    slow_line line;
} slow_queue;

typedef struct slow_event {
    int64_t recorded, completed; /* numbers of the last record enqueued and of the last one completed */
    int is_timed;
    double time;
    slow_clock after; /* the work before the last record */
} slow_event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, device_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const gm_device_ops *real;
static unsigned queues_opened;

static slow_queue *slow_of(gm_queue *queue)
{
    return (slow_queue *)(void *)queue;
}

/* --- What may wait for a message of a library --- */

enum { CODES = 256 };
static int calls_under_way, pending; /* calls of libraries, and all work, in queues; under the lock, as the codes */
static struct {
    slow_kind kind;
    const void *product;
    int types[2];
} codes[CODES];
static int code_count;

/* A call of a library may be a message that waits for another rank, and that rank may have failed: then the host does
 * not come back from what waits for the device. */
void slow_queue_check_calm(const char *what)
{
    pthread_mutex_lock(&lock);
    if (calls_under_way)
        slow_die("%s may wait for a message that is under way", what);
    pthread_mutex_unlock(&lock);
}

/* The first launch of a kernel loads its code, for which the driver may wait for the device. Under the lock. */
static void load_code(const slow_work *w)
{
    int types[2] = {0, 0}, i = 0;
    switch (w->kind) {
    case SLOW_DO_unpack:
        types[0] = w->of.unpack.src_type;
        types[1] = w->of.unpack.dst_type;
        break;
    case SLOW_DO_fold:
        types[0] = w->of.fold.type;
        break;
    case SLOW_DO_finish:
        types[0] = w->of.finish.c0 ? w->of.finish.c0_type + 1 : 0;
        break;
    case SLOW_DO_probe:
        types[0] = w->of.probe.type;
        break;
    case SLOW_PRODUCT:
        break;
    default:
        return;
    }
    while (i < code_count && !(codes[i].kind == w->kind && codes[i].product == w->product &&
                               codes[i].types[0] == types[0] && codes[i].types[1] == types[1]))
        i++;
    if (i < code_count)
        return;
    if (calls_under_way)
        slow_die("the first launch of %s may wait for a message that is under way", w->uses.call);
    if (i < CODES) {
        codes[i].kind = w->kind;
        codes[i].product = w->product;
        codes[i].types[0] = types[0];
        codes[i].types[1] = types[1];
        code_count++;
    }
}

static void delay(slow_queue *q)
{
    struct timespec delay_time = {0, (long)(rand_r(&q->seed) % 8 == 0 ? rand_r(&q->seed) % 3000000 : 0)};
    nanosleep(&delay_time, NULL);
}

/* Work space comes back changed, as a GPU uses it and the processor does not. */
static void use_spaces(const slow_work *w)
{
    if (w->kind == SLOW_DO_probe && w->of.probe.work && w->of.probe.rows && w->of.probe.cols)
        memset(w->of.probe.work, 0x3c, w->of.probe.work_bytes);
    if (w->kind == SLOW_DO_reduce_columns && w->of.reduce_columns.scratch)
        memset(w->of.reduce_columns.scratch, 0x3c,
               (size_t)w->of.reduce_columns.scratch_count * sizeof *w->of.reduce_columns.scratch);
}

static int do_work(slow_queue *q, slow_work *w)
{
    use_spaces(w);
    switch (w->kind) {
    case SLOW_COPY_IN:
        if (slow_uses_digest(&w->uses.use[0]) != w->of.copy.digest)
            slow_die("host memory changes before it is copied");
        /* fallthrough */
    case SLOW_COPY_OUT:
    case SLOW_COPY_WITHIN:
        return real->copy_in(q->real, w->of.copy.dst, w->of.copy.dst_pitch, w->of.copy.src, w->of.copy.src_pitch,
                             w->of.copy.width, w->of.copy.rows);
    case SLOW_ZERO:
        return real->zero(q->real, w->of.copy.dst, w->of.copy.width);
    case SLOW_PRODUCT:
        if (!w->product->run)
            return slow_product_run(w->product, &w->of.product);
        if (w->of.product.schemes) /* as the kernels of GPUs do: elsewhere it changes a sum of the check */
            w->of.product.schemes[GM_SCHEME_F16] += (double)w->of.product.m * (double)w->of.product.n *
                                                    (double)w->of.product.k;
        return w->product->run(q->real, &w->of.product);
#define GM_DEVICE_OP(name, cpu, cuda) \
    case SLOW_DO_##name:              \
        return real->name(q->real, &w->of.name);
#include "base/device_ops.def"
#undef GM_DEVICE_OP
    default:
        return GM_EINTERNAL;
    }
}

/* Records an event or waits for it, under the lock. */
static void do_event(slow_work *w)
{
    slow_event *e = w->of.record.event;
    if (w->kind == SLOW_RECORD) {
        e->completed = w->of.record.number;
        e->time = gm_clock();
        pthread_cond_broadcast(&changed);
    }
    while (w->kind == SLOW_WAIT && e->completed < w->of.record.number)
        pthread_cond_wait(&changed, &lock);
}

static void *run(void *argument)
{
    slow_queue *q = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!q->first && !q->closing)
            pthread_cond_wait(&changed, &lock);
        slow_work *w = q->first;
        if (!w)
            break;
        q->first = w->next;
        if (!q->first)
            q->last = &q->first;
        q->busy = 1;
        if (w->kind == SLOW_RECORD || w->kind == SLOW_WAIT) {
            do_event(w);
        } else if (w->kind == SLOW_CALL) {
            pthread_mutex_unlock(&lock);
            delay(q);
            w->of.call.function(w->of.call.argument);
            pthread_mutex_lock(&lock);
            calls_under_way--;
        } else {
            pthread_mutex_unlock(&lock);
            delay(q);
            pthread_mutex_lock(&device_lock); /* one piece of work at a time, as the CPU device expects */
            int status = do_work(q, w);
            /* the processor leaves out the rest of a product after a signal or a failure */
            if (status && status != GM_ESTOPPED && status != GM_EPEER)
                slow_die("work of a queue fails");
            pthread_mutex_unlock(&device_lock);
            pthread_mutex_lock(&lock);
        }
        q->busy = 0;
        pending--;
        free(w);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Under the lock. */
static void put_event(slow_queue *q, slow_work *w)
{
    slow_event *e = w->of.record.event;
    if (w->kind == SLOW_RECORD) {
        w->of.record.number = ++e->recorded;
        e->after = q->line.after;
    } else if (w->kind == SLOW_WAIT) {
        w->of.record.number = e->recorded;
        slow_order_wait(&q->line, &e->after);
    }
}

/* The addresses in *what, which is in a variable of the caller, become those of the bytes. */
int slow_queue_put(gm_queue *queue, slow_work *what)
{
    slow_queue *q = slow_of(queue);
    slow_work *w = malloc(sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "out of host memory");
    slow_uses_settle(&what->uses);
    *w = *what;
    w->next = NULL;
    pthread_mutex_lock(&lock);
    slow_order_add(&q->line, &w->uses);
    load_code(w);
    calls_under_way += w->kind == SLOW_CALL;
    pending++;
    put_event(q, w);
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
        slow_die("no thread for a queue");
    slow_order_open(&q->line);
    *queue = (gm_queue *)(void *)q;
    return status;
}

static int queue_sync(gm_queue *queue)
{
    slow_queue *q = slow_of(queue);
    pthread_mutex_lock(&lock);
    while (q->first || q->busy)
        pthread_cond_wait(&changed, &lock);
    slow_order_know(&q->line.after);
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
    slow_order_close(&q->line);
    free(q);
}

static int event_open(gm_device *device, int is_timed, gm_event **event)
{
    (void)device;
    slow_event *e = calloc(1, sizeof *e);
    e->is_timed = is_timed;
    *event = (gm_event *)(void *)e;
    return GM_OK;
}

static void event_close(gm_event *event)
{
    free(event);
}

static int event_record(gm_event *event, gm_queue *queue)
{
    return slow_queue_put(queue, &(slow_work){.kind = SLOW_RECORD, .of.record.event = (slow_event *)(void *)event});
}

static int event_wait(gm_queue *queue, gm_event *event)
{
    return slow_queue_put(queue, &(slow_work){.kind = SLOW_WAIT, .of.record.event = (slow_event *)(void *)event});
}

static int event_done(gm_event *event, int *done)
{
    slow_event *e = (slow_event *)(void *)event;
    pthread_mutex_lock(&lock);
    *done = e->completed == e->recorded;
    if (*done)
        slow_order_know(&e->after);
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

static int event_sync(gm_event *event)
{
    slow_event *e = (slow_event *)(void *)event;
    pthread_mutex_lock(&lock);
    slow_clock after = e->after;
    for (int64_t number = e->recorded; e->completed < number;)
        pthread_cond_wait(&changed, &lock);
    slow_order_know(&after);
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

static int event_seconds(gm_event *from, gm_event *to, double *seconds)
{
    const slow_event *a = (slow_event *)(void *)from, *b = (slow_event *)(void *)to;
    pthread_mutex_lock(&lock);
    if (!a->is_timed || !b->is_timed)
        slow_die("the time of an event that is not timed");
    if (a->recorded == 0 || b->recorded == 0 || a->completed < a->recorded || b->completed < b->recorded)
        slow_die("the time between events that are not done, or were never recorded");
    *seconds = b->time - a->time;
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

/* Waits for all work, as a GPU does before it frees memory. */
void slow_queue_settle(void)
{
    pthread_mutex_lock(&lock);
    while (pending)
        pthread_cond_wait(&changed, &lock);
    slow_order_know(NULL);
    pthread_mutex_unlock(&lock);
}

void slow_queue_call(void *queue, void (*function)(void *), void *argument, const slow_region *regions, int count)
{
    slow_work w = {.kind = SLOW_CALL, .of.call = {function, argument}};
    for (int i = 0; i < count; i++) {
        void *memory = regions[i].memory;
        slow_uses uses = {.call = "a library"};
        slow_uses_add(&uses, "memory", &memory, 0, regions[i].writes ? SLOW_WRITES : SLOW_READS, regions[i].bytes,
                      regions[i].bytes, 1);
        slow_uses_settle(&uses);
        pthread_mutex_lock(&lock);
        slow_order_add(&((slow_queue *)queue)->line, &uses);
        pthread_mutex_unlock(&lock);
    }
    if (slow_queue_put(queue, &w))
        slow_die("a function is not queued");
}

void slow_queue_fill(gm_device_ops *ops, const gm_device_ops *of)
{
    real = of;
    code_count = 0; /* as in a new process */
    ops->queue_open = queue_open;
    ops->queue_close = queue_close;
    ops->queue_sync = queue_sync;
    ops->event_open = event_open;
    ops->event_close = event_close;
    ops->event_record = event_record;
    ops->event_wait = event_wait;
    ops->event_done = event_done;
    ops->event_sync = event_sync;
    ops->event_seconds = event_seconds;
}
