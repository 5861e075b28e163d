#include "tests/src/slow_device.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tests/src/slow/memory.h"
#include "tests/src/slow/order.h"
#include "tests/src/slow/products.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An entry of a queue: the function to call and its argument, or an event to record or to wait for. */
typedef enum kind {
    COPY_IN,
    COPY_OUT,
    COPY_WITHIN,
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
            uint64_t digest; /* of what is copied in: it stays the same until that is done */
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
    slow_uses uses;
} work;

/* gm_queue and gm_event are these. */
typedef struct slow_queue {
    pthread_t thread;
    work *first, **last;
    int busy, closing;
    gm_queue *real;
    unsigned seed;
    slow_line line;
} slow_queue;

typedef struct slow_event {
    int64_t recorded, completed; /* numbers of the last record enqueued and of the last one completed */
    double time;
    slow_clock after; /* the work before the last record */
} slow_event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, device_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const gm_device_ops *real;
static gm_device_ops slow;
static gm_product product;
static const gm_product *real_product;
static unsigned queues_opened;
static int is_gpu; /* as slow_device_imitate() makes it */
enum { MAX_BLOCKS = 256 };
static struct {
    const char *from; /* NULL: a free place */
    size_t bytes;
    int is_pinned;
} blocks[MAX_BLOCKS]; /* host memory of the device; under the lock: threads allocate, pin and copy at once */

static slow_queue *slow_of(gm_queue *queue)
{
    return (slow_queue *)(void *)queue;
}

/* --- What may wait for a message of a library --- */

enum { CODES = 256 };
static int calls_under_way, pending; /* calls of libraries, and all work, in queues; under the lock, as the codes */
static struct {
    kind kind;
    const void *product;
    int types[2];
} codes[CODES];
static int code_count;

/* A call of a library may be a message that waits for another rank, and that rank may have failed: then the host does
 * not come back from what waits for the device. */
static void check_calm(const char *what)
{
    pthread_mutex_lock(&lock);
    if (calls_under_way)
        slow_die("%s may wait for a message that is under way", what);
    pthread_mutex_unlock(&lock);
}

/* The first launch of a kernel loads its code, for which the driver may wait for the device. Under the lock. */
static void load_code(const work *w)
{
    int types[2] = {0, 0}, i = 0;
    switch (w->kind) {
    case DO_unpack:
        types[0] = w->of.unpack.src_type;
        types[1] = w->of.unpack.dst_type;
        break;
    case DO_fold:
        types[0] = w->of.fold.type;
        break;
    case DO_finish:
        types[0] = w->of.finish.c0 ? w->of.finish.c0_type + 1 : 0;
        break;
    case DO_probe:
        types[0] = w->of.probe.type;
        break;
    case PRODUCT:
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
static void use_spaces(const work *w)
{
    if (w->kind == DO_probe && w->of.probe.work && w->of.probe.rows && w->of.probe.cols)
        memset(w->of.probe.work, 0x3c, w->of.probe.work_bytes);
    if (w->kind == DO_reduce_columns && w->of.reduce_columns.scratch)
        memset(w->of.reduce_columns.scratch, 0x3c,
               (size_t)w->of.reduce_columns.scratch_count * sizeof *w->of.reduce_columns.scratch);
}

static int do_work(slow_queue *q, work *w)
{
    use_spaces(w);
    switch (w->kind) {
    case COPY_IN:
        if (slow_uses_digest(&w->uses.use[0]) != w->of.copy.digest)
            slow_die("host memory changes before it is copied");
        /* fallthrough */
    case COPY_OUT:
    case COPY_WITHIN:
        return real->copy_in(q->real, w->of.copy.dst, w->of.copy.dst_pitch, w->of.copy.src, w->of.copy.src_pitch,
                             w->of.copy.width, w->of.copy.rows);
    case ZERO:
        return real->zero(q->real, w->of.copy.dst, w->of.copy.width);
    case PRODUCT:
        if (!w->product->run)
            return slow_product_run(w->product, &w->of.product);
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
static void put_event(slow_queue *q, work *w)
{
    slow_event *e = w->of.record.event;
    if (w->kind == RECORD) {
        w->of.record.number = ++e->recorded;
        e->after = q->line.after;
    } else if (w->kind == WAIT) {
        w->of.record.number = e->recorded;
        slow_order_wait(&q->line, &e->after);
    }
}

/* The addresses in *what, which is in a variable of the caller, become those of the bytes. */
static int put(gm_queue *queue, work *what)
{
    slow_queue *q = slow_of(queue);
    work *w = malloc(sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "out of host memory");
    slow_uses_settle(&what->uses);
    *w = *what;
    if (is_gpu && w->kind == DO_probe)
        w->of.probe.wide = 0; /* sums that float64 does not hold are infinite */
    w->next = NULL;
    pthread_mutex_lock(&lock);
    slow_order_add(&q->line, &w->uses);
    load_code(w);
    calls_under_way += w->kind == CALL;
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
    if (a->recorded == 0 || b->recorded == 0 || a->completed < a->recorded || b->completed < b->recorded)
        slow_die("the time between events that are not done, or were never recorded");
    *seconds = b->time - a->time;
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

/* --- Memory --- */

static int alloc(gm_device *device, size_t bytes, void **out)
{
    (void)device;
    *out = NULL;
    check_calm("an allocation");
    int status = gm_memory_charge(GM_DEVICE, (int64_t)bytes);
    if (status)
        return status;
    *out = slow_memory_alloc(bytes);
    return *out ? GM_OK : gm_fail(GM_EDEVICE, "out of host memory");
}

/* Waits for all work, as a GPU does before it frees memory. */
static void settle(void)
{
    pthread_mutex_lock(&lock);
    while (pending)
        pthread_cond_wait(&changed, &lock);
    slow_order_know(NULL);
    pthread_mutex_unlock(&lock);
}

static void release(gm_device *device, void *memory)
{
    (void)device;
    if (!memory)
        return;
    check_calm("a release of memory");
    size_t bytes = slow_memory_rest(memory);
    settle();
    gm_memory_release(GM_DEVICE, (int64_t)bytes);
    slow_memory_free(memory);
}

static void close_device(gm_device *device)
{
    if (slow_memory_count())
        slow_die("%d allocations are left when the device is closed", slow_memory_count());
    real->close(device);
}

/* The block that an address is in, or a free one, for NULL; MAX_BLOCKS: there is none. Under the lock. */
static int block_of(const char *at)
{
    int i = 0;
    while (i < MAX_BLOCKS &&
           !(at ? blocks[i].from && at >= blocks[i].from && at < blocks[i].from + blocks[i].bytes : !blocks[i].from))
        i++;
    return i;
}

/* New memory holds nothing that a program may rely on. */
static int lend(void *memory, size_t bytes, int is_pinned)
{
    memset(memory, 0xa7, bytes);
    pthread_mutex_lock(&lock);
    int i = block_of(NULL);
    if (i == MAX_BLOCKS)
        slow_die("more than %d blocks of host memory", MAX_BLOCKS);
    blocks[i].from = memory;
    blocks[i].bytes = bytes;
    blocks[i].is_pinned = is_pinned;
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

static int host_alloc(gm_device *device, size_t bytes, void **out)
{
    check_calm("an allocation");
    int status = real->host_alloc(device, bytes, out);
    return status ? status : lend(*out, bytes, 1);
}

static int host_alloc_pageable(gm_device *device, size_t bytes, void **out)
{
    int status = real->host_alloc_pageable(device, bytes, out);
    return status ? status : lend(*out, bytes, 0);
}

static void host_pin(gm_device *device, void *memory)
{
    pthread_mutex_lock(&lock);
    int i = block_of(memory);
    if (i < MAX_BLOCKS)
        blocks[i].is_pinned = 1;
    pthread_mutex_unlock(&lock);
    real->host_pin(device, memory);
}

static void host_free(gm_device *device, void *memory)
{
    pthread_mutex_lock(&lock);
    int i = memory ? block_of(memory) : MAX_BLOCKS;
    size_t bytes = i < MAX_BLOCKS ? blocks[i].bytes : 0;
    if (i < MAX_BLOCKS)
        blocks[i].from = NULL;
    pthread_mutex_unlock(&lock);
    slow_uses uses = {.call = "free"};
    slow_uses_add(&uses, "memory", &memory, 1, SLOW_WRITES, bytes, bytes, 1);
    if (uses.count && slow_order_uses(&uses.use[0]))
        slow_die("host memory, %zu bytes, is freed while work that may be under way uses it", bytes);
    if (memory)
        check_calm("a release of memory");
    real->host_free(device, memory);
}

/* --- Calls --- */

static void check_pinned(const void *memory, size_t bytes)
{
    pthread_mutex_lock(&lock);
    int i = block_of(memory), is_whole = 0;
    if (i < MAX_BLOCKS)
        is_whole = bytes <= (size_t)(blocks[i].from + blocks[i].bytes - (const char *)memory);
    if (i < MAX_BLOCKS && !(blocks[i].is_pinned && is_whole))
        slow_die(is_whole ? "a copy of memory that is not pinned is slow or synchronous on a real device"
                          : "a copy leaves its host memory");
    pthread_mutex_unlock(&lock);
}

/* The host's side is the first use. */
static void use_copy(work *w)
{
    size_t width = w->of.copy.width;
    int64_t rows = w->of.copy.rows;
    int is_out = w->kind == COPY_OUT;
    for (int i = 0; i < 2; i++)
        if (i == is_out)
            slow_uses_add(&w->uses, "source", &w->of.copy.src, w->kind == COPY_IN, SLOW_READS, w->of.copy.src_pitch,
                          width, rows);
        else
            slow_uses_add(&w->uses, "target", &w->of.copy.dst, is_out, SLOW_WRITES, w->of.copy.dst_pitch, width, rows);
}

/* What the host writes before a copy in is done shows by its digest; what it reads before a copy out is done is as
 * wrong as new memory. */
static void guard_host(work *w)
{
    const slow_use *host = &w->uses.use[0];
    check_pinned(host->at, (size_t)(host->rows[0] - 1) * host->step[0] + host->width);
    slow_uses_settle(&(slow_uses){.call = w->uses.call, .count = 1, .use = {*host}});
    if (w->kind == COPY_IN)
        w->of.copy.digest = slow_uses_digest(host);
    else if (!slow_order_uses(host))
        for (int64_t i = 0; i < host->rows[0]; i++)
            memset((char *)w->of.copy.dst + (size_t)i * host->step[0], 0xa7, host->width);
}

static int copy(gm_queue *queue, kind kind, const char *name, void *dst, size_t dst_pitch, const void *src,
                size_t src_pitch, size_t width, int64_t rows)
{
    work w = {.kind = kind, .uses.call = name};
    w.of.copy.dst = dst;
    w.of.copy.src = src;
    w.of.copy.dst_pitch = dst_pitch;
    w.of.copy.src_pitch = src_pitch;
    w.of.copy.width = width;
    w.of.copy.rows = rows;
    use_copy(&w);
    if (kind != COPY_WITHIN && w.uses.count)
        guard_host(&w);
    return w.uses.count ? put(queue, &w) : GM_OK;
}

#define COPY_TO(name, kind)                                                                                        \
    static int name(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, \
                    int64_t rows)                                                                                  \
    {                                                                                                              \
        return copy(queue, kind, #name, dst, dst_pitch, src, src_pitch, width, rows);                              \
    }
COPY_TO(copy_in, COPY_IN)
COPY_TO(copy_out, COPY_OUT)
COPY_TO(copy_within, COPY_WITHIN)

static int zero(gm_queue *queue, void *dst, size_t bytes)
{
    work w = {.kind = ZERO, .uses.call = "zero"};
    w.of.copy.dst = dst;
    w.of.copy.width = bytes;
    slow_uses_add(&w.uses, "target", &w.of.copy.dst, 0, SLOW_WRITES, bytes, bytes, 1);
    return put(queue, &w);
}

static int put_product(gm_queue *queue, const gm_product *of, const gm_product_call *call)
{
    work w = {.kind = PRODUCT, .of.product = *call, .product = of, .uses.call = "product"};
    slow_uses_product(w.product, &w.of.product, &w.uses);
    return put(queue, &w);
}

#define GM_DEVICE_OP(op, cpu, cuda)                                   \
    static int run_##op(gm_queue *queue, const gm_##op##_call *call)  \
    {                                                                 \
        work w = {.kind = DO_##op, .of.op = *call, .uses.call = #op}; \
        slow_uses_##op(&w.of.op, &w.uses);                            \
        return put(queue, &w);                                        \
    }
#include "base/device_ops.def"
#undef GM_DEVICE_OP

void slow_queue_call(void *queue, void (*function)(void *), void *argument, const slow_region *regions, int count)
{
    work w = {.kind = CALL, .of.call = {function, argument}};
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
    if (put(queue, &w))
        slow_die("a function is not queued");
}

void *slow_device_bytes(void *memory)
{
    char *bytes = slow_memory_find(memory, 0);
    return bytes ? bytes : memory;
}

static int run_product(gm_queue *queue, const gm_product_call *call)
{
    return put_product(queue, real_product, call);
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
    is_gpu = code_count = 0; /* as in a new process */
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
    slow.close = close_device;
    slow.alloc = alloc;
    slow.free = release;
    slow.host_alloc = host_alloc;
    slow.host_alloc_pageable = host_alloc_pageable;
    slow.host_pin = host_pin;
    slow.host_free = host_free;
    slow.copy_in = copy_in;
    slow.copy_out = copy_out;
    slow.copy_within = copy_within;
    slow.zero = zero;
    slow.product = find_product;
#define GM_DEVICE_OP(name, cpu, cuda) slow.name = run_##name;
#include "base/device_ops.def"
#undef GM_DEVICE_OP
    return &slow;
}

/* --- Products of a GPU --- */

enum { GPU_PRODUCTS = 16 };
static gm_product gpu_products[GPU_PRODUCTS];

/* An entry of gm_product has no context: a function for each. */
#define RUN_GPU(i)                                                       \
    static int run_gpu_##i(gm_queue *queue, const gm_product_call *call) \
    {                                                                    \
        return put_product(queue, slow_product(i), call);                \
    }
#define EACH_GPU(DO) \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
EACH_GPU(RUN_GPU)
#define NAME_GPU(i) run_gpu_##i,
static int (*const run_gpu[])(gm_queue *, const gm_product_call *) = {EACH_GPU(NAME_GPU)};

static const gm_product *find_gpu_product(gm_device *device, int index)
{
    const gm_product *of = index < GPU_PRODUCTS ? slow_product(index) : NULL;
    (void)device;
    if (!of)
        return NULL;
    gpu_products[index] = *of;
    gpu_products[index].run = run_gpu[index];
    return &gpu_products[index];
}

void slow_device_imitate(gm_device_ops *ops)
{
    is_gpu = 1;
    ops->product = find_gpu_product;
}
