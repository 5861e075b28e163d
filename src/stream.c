#include "src/stream.h"

#include "base/clock.h"
#include "base/memory.h"
#include "src/stop.h"
#include "src/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef enum slot_state { FREE, READING, READY, ON_DEVICE, WRITING } slot_state;

/* The three device stages of a slot: TO_DEVICE, RUNNING, FROM_DEVICE. */
enum { IN, RUN, OUT, LEGS };
static const struct {
    unsigned stage;
    gm_phase phase;
} legs[LEGS] = {
    [IN] = {GM_STAGE_TO_DEVICE, GM_PHASE_TO_DEVICE},
    [RUN] = {GM_STAGE_COMPUTE, GM_PHASE_COMPUTE},
    [OUT] = {GM_STAGE_FROM_DEVICE, GM_PHASE_FROM_DEVICE},
};

typedef struct slot {
    slot_state state; /* guarded by the ring's lock while an I/O thread has it */
    gm_piece piece;
    gm_slot_memory memory;
    gm_event *begin[LEGS], *end[LEGS];
} slot;

/* Time during which at least one thread was at it. */
typedef struct busy_clock {
    int active;
    double since, total;
} busy_clock;

struct gm_stream {
    gm_stream_setup setup;
    slot *slots;
    gm_queue *queues[LEGS];
    gm_workers *workers;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an I/O thread has finished a piece */
    int in_io;              /* slots that I/O threads have */
    busy_clock reading, writing;
    int status;             /* first failure of this rank's run */
    const gm_program *program;
    /* Pieces [0, issued) have a slot, [0, started) were given to the device, [0, retired) are over there. Slot of piece i: i mod depth. */
    int64_t issued, started, retired;
    int exhausted;
};

static slot *slot_of(gm_stream *s, int64_t index)
{
    return &s->slots[index % s->setup.depth];
}

static void busy(busy_clock *clock, int step)
{
    double now = gm_clock();
    if (clock->active > 0)
        clock->total += now - clock->since;
    clock->since = now;
    clock->active += step;
}

static void fail(gm_stream *s, int status)
{
    if (status && !s->status)
        s->status = status;
}

/* On an I/O thread: reads or writes the piece of a slot. */
static void io_work(void *context, int job)
{
    gm_stream *s = context;
    slot *slot = &s->slots[job];
    const gm_program *program = s->program;
    int writing = slot->state == WRITING;
    busy_clock *clock = writing ? &s->writing : &s->reading;

    pthread_mutex_lock(&s->lock);
    busy(clock, 1);
    int skip = s->status != GM_OK;
    pthread_mutex_unlock(&s->lock);
    int status = GM_OK;
    if (!skip)
        status = writing ? program->write(program->context, &slot->piece, slot->memory.host)
                         : program->read(program->context, &slot->piece, slot->memory.host);
    pthread_mutex_lock(&s->lock);
    busy(clock, -1);
    slot->state = writing ? FREE : READY;
    s->in_io--;
    fail(s, status);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void give_to_io(gm_stream *s, slot *slot, slot_state state)
{
    pthread_mutex_lock(&s->lock);
    slot->state = state;
    s->in_io++;
    pthread_mutex_unlock(&s->lock);
    gm_workers_give(s->workers, (int)(slot - s->slots));
}

static slot_state state_of(gm_stream *s, const slot *slot)
{
    pthread_mutex_lock(&s->lock);
    slot_state state = slot->state;
    pthread_mutex_unlock(&s->lock);
    return state;
}

/* Gives the next piece a free slot. *progress says whether it could. */
static int issue(gm_stream *s, int *progress)
{
    slot *slot = slot_of(s, s->issued);
    if (s->exhausted || state_of(s, slot) != FREE || s->issued - s->retired == s->setup.depth)
        return GM_OK;
    int more = 1;
    int status = s->program->next(s->program->context, &slot->piece, &more);
    *progress = 1;
    if (status)
        return status;
    if (!more) {
        s->exhausted = 1;
        return GM_OK;
    }
    s->issued++;
    if (slot->piece.stages & GM_STAGE_READ)
        give_to_io(s, slot, READING);
    else
        slot->state = READY;
    return GM_OK;
}

static int run_leg(gm_stream *s, slot *slot, int leg)
{
    const gm_device_ops *ops = s->setup.ops;
    const gm_program *p = s->program;
    gm_queue *queue = s->queues[leg];
    int status = ops->event_record(slot->begin[leg], queue);
    if (!status)
        status = leg == IN    ? p->to_device(p->context, &slot->piece, &slot->memory, queue)
                 : leg == RUN ? p->compute(p->context, &slot->piece, &slot->memory, queue)
                              : p->from_device(p->context, &slot->piece, &slot->memory, queue);
    return status ? status : ops->event_record(slot->end[leg], queue);
}

/* Puts the next slot's work into the device's queues, each stage behind the one before. */
static int start(gm_stream *s, gm_phase_times *times, int *progress)
{
    slot *slot = slot_of(s, s->started);
    if (s->started == s->issued || state_of(s, slot) != READY)
        return GM_OK;
    *progress = 1;
    const gm_program *p = s->program;
    int status = GM_OK;
    if (slot->piece.stages & GM_STAGE_RECEIVE) {
        double from = gm_clock();
        status = p->receive(p->context, &slot->piece, slot->memory.host);
        times->seconds[GM_PHASE_EXCHANGE] += gm_clock() - from;
    }
    s->started++; /* from here on the appointment is kept */
    slot->state = ON_DEVICE;
    for (int leg = 0, before = -1; leg < LEGS && !status; leg++) {
        if (!(slot->piece.stages & legs[leg].stage))
            continue;
        if (before >= 0)
            status = s->setup.ops->event_wait(s->queues[leg], slot->end[before]);
        if (!status)
            status = run_leg(s, slot, leg);
        before = leg;
    }
    return status;
}

/* The device's last mark in a slot's work, or NULL. */
static gm_event *last_event(const slot *slot)
{
    for (int leg = LEGS; leg-- > 0;)
        if (slot->piece.stages & legs[leg].stage)
            return slot->end[leg];
    return NULL;
}

static int add_times(gm_stream *s, const slot *slot, gm_phase_times *times)
{
    int status = GM_OK;
    for (int leg = 0; leg < LEGS && !status; leg++)
        if (slot->piece.stages & legs[leg].stage) {
            double seconds = 0;
            status = s->setup.ops->event_seconds(slot->begin[leg], slot->end[leg], &seconds);
            times->seconds[leg == RUN && slot->piece.verifies ? GM_PHASE_VERIFY : legs[leg].phase] += seconds;
        }
    return status;
}

/* Takes the oldest slot back from the device once its work is over. */
static int retire(gm_stream *s, gm_phase_times *times, int *progress)
{
    slot *slot = slot_of(s, s->retired);
    if (s->retired == s->started)
        return GM_OK;
    gm_event *event = last_event(slot);
    int done = 1;
    int status = event ? s->setup.ops->event_done(event, &done) : GM_OK;
    if (status || !done)
        return status;
    *progress = 1;
    const gm_program *p = s->program;
    unsigned stages = slot->piece.stages;
    status = add_times(s, slot, times);
    if (!status && (stages & GM_STAGE_SEND)) {
        double from = gm_clock();
        status = p->send(p->context, &slot->piece, slot->memory.host);
        times->seconds[GM_PHASE_EXCHANGE] += gm_clock() - from;
    }
    if (!status && (stages & GM_STAGE_DONE))
        status = p->done(p->context, &slot->piece, slot->memory.host);
    if (status)
        return status;
    s->retired++;
    if (stages & GM_STAGE_WRITE)
        give_to_io(s, slot, WRITING);
    else
        slot->state = FREE;
    if (s->setup.progress)
        s->setup.progress(s->setup.progress_context, slot->piece.bytes);
    return GM_OK;
}

/* Waits until something can have changed: a moment if the device and threads are both at work, else for the one that is. */
static int wait_for_change(gm_stream *s)
{
    int on_device = s->retired < s->started;
    pthread_mutex_lock(&s->lock);
    int in_io = s->in_io;
    if (in_io) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += on_device ? 50 * 1000 : 20 * 1000 * 1000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    if (in_io || !on_device)
        return GM_OK;
    gm_event *event = last_event(slot_of(s, s->retired));
    return event ? s->setup.ops->event_sync(event) : GM_OK;
}

static int run_normally(gm_stream *s, gm_phase_times *times)
{
    for (;;) {
        int progress = 0, status = gm_stop_status();
        if (!status && s->setup.ranks->size > 1 && gm_cancelled())
            status = GM_EPEER;
        if (!status)
            status = issue(s, &progress);
        if (!status)
            status = start(s, times, &progress);
        if (!status)
            status = retire(s, times, &progress);
        pthread_mutex_lock(&s->lock);
        fail(s, status);
        status = s->status;
        int idle = s->exhausted && s->retired == s->issued && s->in_io == 0;
        pthread_mutex_unlock(&s->lock);
        if (status || idle)
            return status;
        if (!progress && (status = wait_for_change(s)))
            return status;
    }
}

/* The appointments of a piece, with nothing to show. */
static void excuse(gm_stream *s, const gm_piece *piece, int received)
{
    const gm_program *p = s->program;
    if ((piece->stages & GM_STAGE_RECEIVE) && !received)
        p->receive(p->context, piece, NULL);
    if (piece->stages & GM_STAGE_SEND)
        p->send(p->context, piece, NULL);
}

/* After a failure: everything in flight comes to rest, then the remaining appointments are kept. */
static void run_out(gm_stream *s)
{
    if (s->status != GM_EPEER)
        gm_cancel(s->setup.ranks);
    for (int leg = 0; leg < LEGS; leg++)
        s->setup.ops->queue_sync(s->queues[leg]);
    pthread_mutex_lock(&s->lock);
    while (s->in_io)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    for (int64_t i = s->retired; i < s->issued; i++)
        excuse(s, &slot_of(s, i)->piece, i < s->started);
    gm_piece piece;
    int more = s->program->send || s->program->receive;
    while (more && !s->exhausted && s->program->next(s->program->context, &piece, &more) == GM_OK && more)
        excuse(s, &piece, 0);
    for (int64_t i = 0; i < s->setup.depth; i++)
        s->slots[i].state = FREE;
}

int gm_stream_run(gm_stream *s, const gm_program *program, gm_phase_times *times)
{
    s->program = program;
    s->status = GM_OK;
    s->issued = s->started = s->retired = 0;
    s->exhausted = 0;
    memset(&s->reading, 0, sizeof s->reading);
    memset(&s->writing, 0, sizeof s->writing);
    int status = run_normally(s, times);
    if (status) {
        fail(s, status);
        run_out(s);
    }
    times->seconds[GM_PHASE_READ] += s->reading.total;
    times->seconds[GM_PHASE_WRITE] += s->writing.total;
    return status;
}

gm_queue *gm_stream_in(gm_stream *s)
{
    return s->queues[IN];
}

gm_queue *gm_stream_compute(gm_stream *s)
{
    return s->queues[RUN];
}

static int open_slot(gm_stream *s, slot *slot)
{
    const gm_stream_setup *setup = &s->setup;
    int status = setup->ops->pin(setup->device, (size_t)setup->piece, &slot->memory.host);
    slot->memory.device = slot->memory.host;
    if (!status && !setup->ops->unified)
        status = setup->ops->alloc(setup->device, (size_t)setup->piece, &slot->memory.device);
    for (int leg = 0; leg < LEGS && !status; leg++) {
        status = setup->ops->event_open(setup->device, &slot->begin[leg]);
        if (!status)
            status = setup->ops->event_open(setup->device, &slot->end[leg]);
    }
    return status;
}

static void close_slot(gm_stream *s, slot *slot)
{
    const gm_stream_setup *setup = &s->setup;
    for (int leg = 0; leg < LEGS; leg++) {
        if (slot->begin[leg])
            setup->ops->event_close(slot->begin[leg]);
        if (slot->end[leg])
            setup->ops->event_close(slot->end[leg]);
    }
    if (slot->memory.device != slot->memory.host)
        setup->ops->free(setup->device, slot->memory.device);
    setup->ops->unpin(setup->device, slot->memory.host);
}

int gm_stream_open(const gm_stream_setup *setup, gm_stream **stream)
{
    *stream = NULL;
    gm_stream *s = calloc(1, sizeof *s);
    if (!s)
        return gm_fail(GM_EINTERNAL, "no memory for the streaming ring");
    s->setup = *setup;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->slots = calloc((size_t)setup->depth, sizeof *s->slots);
    int status = s->slots ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the streaming ring");
    for (int64_t i = 0; i < setup->depth && !status; i++)
        status = open_slot(s, &s->slots[i]);
    for (int leg = 0; leg < LEGS && !status; leg++)
        status = setup->ops->queue_open(setup->device, &s->queues[leg]);
    if (!status)
        status = gm_workers_open(setup->threads, io_work, s, (int)setup->depth, &s->workers);
    if (status) {
        gm_stream_close(s);
        return status;
    }
    *stream = s;
    return GM_OK;
}

void gm_stream_close(gm_stream *s)
{
    if (!s)
        return;
    gm_workers_close(s->workers);
    for (int leg = 0; leg < LEGS; leg++)
        if (s->queues[leg])
            s->setup.ops->queue_close(s->queues[leg]);
    for (int64_t i = 0; s->slots && i < s->setup.depth; i++)
        close_slot(s, &s->slots[i]);
    free(s->slots);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
