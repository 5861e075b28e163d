/* bench overlap - a stream of pieces through the device: copied in, computed with, copied out. One after the other on
 * one queue; on three queues with events and three slots, as the program's ring works; the same from pageable memory.
 * The kernel takes about as long as the copy of a piece; copies alone are the limit. Rates are of the bytes in. */
#include "base/memory.h"
#include "base/size.h"
#include "src/bench/lab/host.h"
#include "src/bench/lab/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 32, SLOTS = 3, CASES = 5, SAMPLES = 1024 /* of a piece */, TRIAL_STEPS = 512, MOST_STEPS = 1 << 16 };
static const int64_t usual_piece = 8 << 20;
static const double share = 0.9; /* of the time of a copy: copies in both directions at once take longer */

typedef struct overlap {
    gm_bench *bench;
    int64_t piece;                                   /* bytes */
    int steps;                                       /* of the kernel */
    uint32_t *in, *out, *pageable_in, *pageable_out; /* [PIECES][piece], host memory */
    uint32_t *slots[SLOTS];                          /* [piece], device memory */
    gm_queue *compute, *away;                        /* besides that of the copies in */
    gm_event *arrived[SLOTS], *computed[SLOTS], *left[SLOTS];
    gm_lab_case cases[CASES];
    int count;
} overlap;

/* Of a case: the host memory, and the steps of the kernel; 0: there is no kernel. */
typedef struct way {
    const overlap *overlap;
    const uint32_t *in;
    uint32_t *out;
    int steps;
} way;

static size_t words_of(const overlap *o)
{
    return (size_t)o->piece / sizeof(uint32_t);
}

static int put_in(const way *w, gm_queue *queue, int i)
{
    const overlap *o = w->overlap;
    size_t n = (size_t)o->piece;
    return o->bench->ops->copy_in(queue, o->slots[i % SLOTS], n, w->in + (size_t)i * words_of(o), n, n, 1);
}

static int put_out(const way *w, gm_queue *queue, int i)
{
    const overlap *o = w->overlap;
    size_t n = (size_t)o->piece;
    return o->bench->ops->copy_out(queue, w->out + (size_t)i * words_of(o), n, o->slots[i % SLOTS], n, n, 1);
}

static int put_kernel(const way *w, gm_queue *queue, int i)
{
    const overlap *o = w->overlap;
    const gm_xorshift_call call = {o->slots[i % SLOTS], (int64_t)words_of(o), w->steps};
    return o->bench->measure->xorshift(queue, &call);
}

static int run_kernels(const gm_lab_case *self, gm_queue *queue)
{
    int status = GM_OK;
    for (int i = 0; i < PIECES && !status; i++)
        status = put_kernel(self->call, queue, i);
    return status;
}

static int run_serial(const gm_lab_case *self, gm_queue *queue)
{
    int status = GM_OK;
    for (int i = 0; i < PIECES && !status; i++) {
        status = put_in(self->call, queue, i);
        if (!status)
            status = put_kernel(self->call, queue, i);
        if (!status)
            status = put_out(self->call, queue, i);
    }
    return status;
}

/* Work of `queue` from now on starts after that of `before`. */
static int follow(const overlap *o, gm_queue *before, gm_event *event, gm_queue *queue)
{
    int status = o->bench->ops->event_record(event, before);
    return status ? status : o->bench->ops->event_wait(queue, event);
}

/* One piece, each stage on its queue. Its slot is free when the piece before it in the slot has left. */
static int put_piece(const way *w, gm_queue *queue, int i)
{
    const overlap *o = w->overlap;
    int s = i % SLOTS;
    gm_queue *last = queue;
    int status = o->bench->ops->event_wait(queue, o->left[s]);
    if (!status)
        status = put_in(w, queue, i);
    if (!status && w->steps > 0) {
        status = follow(o, queue, o->arrived[s], o->compute);
        if (!status)
            status = put_kernel(w, o->compute, i);
        last = o->compute;
    }
    if (!status)
        status = follow(o, last, o->computed[s], o->away);
    if (!status)
        status = put_out(w, o->away, i);
    return status ? status : o->bench->ops->event_record(o->left[s], o->away);
}

static int run_overlapped(const gm_lab_case *self, gm_queue *queue)
{
    const way *w = self->call;
    int status = GM_OK;
    for (int i = 0; i < PIECES && !status; i++)
        status = put_piece(w, queue, i);
    return status ? status : w->overlap->bench->ops->event_wait(queue, w->overlap->left[(PIECES - 1) % SLOTS]);
}

/* --- Checks --- */

/* Words of a piece, the first and the last among them, after some steps. */
static int expect(const gm_lab_case *self, int i, const uint32_t *got, const uint32_t *from, int64_t steps)
{
    const overlap *o = self->test;
    size_t last = words_of(o) - 1;
    int wrong = 0;
#pragma omp parallel for num_threads(o->bench->job->threads) reduction(+ : wrong)
    for (int k = 0; k < SAMPLES; k++) {
        size_t at = k + 1 < SAMPLES ? last / (SAMPLES - 1) * (size_t)k : last;
        uint32_t x = from[at];
        for (int64_t s = 0; s < steps; s++)
            x = gm_lab_xorshift(x);
        wrong += got[at] != x;
    }
    return wrong == 0 ? GM_OK
                      : gm_fail(GM_ECHECK, "bench overlap: %s %s: %d of %d words of piece %d are wrong", self->variant,
                                self->shape, wrong, SAMPLES, i);
}

static int run_and_wait(const gm_lab_case *self)
{
    const overlap *o = self->test;
    int status = self->run(self, o->bench->queue);
    return status ? status : o->bench->ops->queue_sync(o->bench->queue);
}

static int check_pieces(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const overlap *o = self->test;
    const way *w = self->call;
    (void)max_error, (void)mean_error;
    memset(w->out, 0, (size_t)PIECES * (size_t)o->piece);
    int status = run_and_wait(self);
    for (int i = 0; i < PIECES && !status; i++)
        status = expect(self, i, w->out + (size_t)i * words_of(o), w->in + (size_t)i * words_of(o), w->steps);
    return status;
}

/* The kernels alone work on what is in the slots, again and again. */
static int check_kernels(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const overlap *o = self->test;
    const way *w = self->call;
    int status = GM_OK;
    (void)max_error, (void)mean_error;
    for (int s = 0; s < SLOTS && !status; s++)
        status = put_in(w, o->bench->queue, s);
    if (!status)
        status = run_and_wait(self);
    for (int s = 0; s < SLOTS && !status; s++)
        status = put_out(w, o->bench->queue, s);
    if (!status)
        status = o->bench->ops->queue_sync(o->bench->queue);
    for (int s = 0; s < SLOTS && !status; s++)
        status = expect(self, s, w->out + (size_t)s * words_of(o), w->in + (size_t)s * words_of(o),
                        (int64_t)w->steps * ((PIECES - 1 - s) / SLOTS + 1));
    return status;
}

/* --- Cases --- */

static gm_lab_case *add(overlap *o, const char *variant, const way *w, int limit)
{
    char size[GM_SIZE_TEXT];
    gm_lab_case *c = &o->cases[o->count++];
    *c = (gm_lab_case){.kernel = w->steps > 0 ? "xorshift" : "none",
                       .run = run_overlapped,
                       .check = check_pieces,
                       .test = o,
                       .call = w,
                       .work = (double)o->piece * PIECES,
                       .unit = &gm_bench_unit_bytes,
                       .clock = GM_LAB_HOST,
                       .cache = GM_CACHE_WARM,
                       .limit = limit};
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    snprintf(c->shape, sizeof c->shape, "%d x %s", PIECES, gm_size_format(o->piece, size));
    return c;
}

static int measure_cases(overlap *o)
{
    const way copies = {o, o->in, o->out, 0}, pinned = {o, o->in, o->out, o->steps},
              pageable = {o, o->pageable_in, o->pageable_out, o->steps};
    add(o, "copies only", &copies, 0);
    gm_lab_case *kernels = add(o, "kernel only", &pinned, 0);
    kernels->run = run_kernels;
    kernels->check = check_kernels;
    add(o, "serial", &pinned, 1)->run = run_serial;
    add(o, "overlapped", &pinned, 1);
    add(o, "overlapped, pageable", &pageable, 1);
    return gm_lab_measure(o->bench, o->cases, o->count);
}

static int try_in(void *context, gm_queue *queue)
{
    return put_in(context, queue, 0);
}

static int try_kernel(void *context, gm_queue *queue)
{
    return put_kernel(context, queue, 0);
}

/* The steps with which the kernel takes its share of the time of a copy. */
static int calibrate(overlap *o)
{
    way trial = {o, o->in, o->out, TRIAL_STEPS};
    const gm_bench_case cases[2] = {{try_in, &trial}, {try_kernel, &trial}};
    gm_bench_timing timings[2];
    int status = gm_bench_time(o->bench, cases, 2, 0, timings);
    if (!status && timings[1].median > 0)
        o->steps = (int)fmax(1, fmin(share * TRIAL_STEPS * timings[0].median / timings[1].median, MOST_STEPS));
    return status;
}

static int open_queues(overlap *o)
{
    const gm_device_ops *ops = o->bench->ops;
    int status = ops->queue_open(o->bench->device, &o->compute);
    if (!status)
        status = ops->queue_open(o->bench->device, &o->away);
    for (int s = 0; s < SLOTS && !status; s++) {
        status = ops->event_open(o->bench->device, 0, &o->arrived[s]);
        if (!status)
            status = ops->event_open(o->bench->device, 0, &o->computed[s]);
        if (!status)
            status = ops->event_open(o->bench->device, 0, &o->left[s]);
    }
    return status;
}

static int allocate(overlap *o)
{
    const gm_device_ops *ops = o->bench->ops;
    size_t n = PIECES * (size_t)o->piece;
    void *memory[4 + SLOTS] = {0};
    int status = ops->host_alloc(o->bench->device, n, &memory[0]);
    if (!status)
        status = ops->host_alloc(o->bench->device, n, &memory[1]);
    if (!status)
        status = gm_host_alloc(n, &memory[2]);
    if (!status)
        status = gm_host_alloc(n, &memory[3]);
    for (int s = 0; s < SLOTS && !status; s++)
        status = ops->alloc(o->bench->device, (size_t)o->piece, &memory[4 + s]);
    o->in = memory[0];
    o->out = memory[1];
    o->pageable_in = memory[2];
    o->pageable_out = memory[3];
    for (int s = 0; s < SLOTS; s++)
        o->slots[s] = memory[4 + s];
    return status ? status : open_queues(o);
}

/* Freeing device memory waits for work that a failure has left, before the host memory goes. */
static void release(overlap *o)
{
    const gm_device_ops *ops = o->bench->ops;
    for (int s = 0; s < SLOTS; s++) {
        gm_event *events[] = {o->arrived[s], o->computed[s], o->left[s]};
        for (int e = 0; e < 3; e++)
            if (events[e])
                ops->event_close(events[e]);
        ops->free(o->bench->device, o->slots[s]);
    }
    if (o->compute)
        ops->queue_close(o->compute);
    if (o->away)
        ops->queue_close(o->away);
    gm_host_free(o->pageable_out);
    gm_host_free(o->pageable_in);
    ops->host_free(o->bench->device, o->out);
    ops->host_free(o->bench->device, o->in);
}

static int measure_piece(gm_bench *bench, int64_t piece)
{
    overlap o = {.bench = bench, .piece = piece, .steps = 1};
    int status = allocate(&o);
    if (!status) {
        gm_lab_randomize(bench, o.in, PIECES * piece);
        memcpy(o.pageable_in, o.in, PIECES * (size_t)piece);
        status = calibrate(&o);
    }
    if (!status)
        status = measure_cases(&o);
    release(&o);
    return status;
}

/* --shapes: bytes of a piece. */
int gm_bench_overlap(gm_bench *bench)
{
    int64_t piece = usual_piece;
    if (bench->ops->unified)
        return gm_bench_skip(bench, "its queue does each piece of work at once");
    if (!bench->measure->xorshift)
        return gm_bench_skip(bench, NULL);
    while (piece > GM_BENCH_PAIR_UNIT &&
           (5 * PIECES * piece > gm_lab_host_room(bench) || 2 * SLOTS * piece > gm_bench_room(bench)))
        piece /= 2;
    return gm_bench_each_size(bench, GM_BENCH_PAIR_UNIT, &piece, 1, measure_piece);
}
