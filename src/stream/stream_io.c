#include "src/stream/stream_io.h"

#include "base/clock.h"
#include "base/size.h"
#include "src/stream/io_threads.h"
#include "src/stream/lane.h"
#include "src/stream/sample.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The time in which at least one thread is active. */
typedef struct busy_clock {
    int active;
    double since, total;
} busy_clock;

/* The time that spans cover, and up to when, in seconds after the lanes' origin. */
typedef struct covered {
    gm_sample sample;
    double until;
} covered;

static const gm_phase phase_of[GM_LANE_WAYS] = {
    [GM_LANE_IN] = GM_PHASE_TO_DEVICE, [GM_LANE_OUT] = GM_PHASE_FROM_DEVICE};

struct gm_stream_io {
    const gm_stream_setup *setup;
    gm_slot *slots;
    const gm_program *program;
    gm_io_threads *pool;
    gm_lane *lanes;   /* of each thread; NULL: slots have host memory */
    gm_origin origin; /* of the lanes' times */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a slot comes back, or the I/O threads can accept more work */
    unsigned changes;       /* number of signals */
    int in_io;              /* pending and running: pieces to write, shares to read */
    busy_clock reading, writing;
    covered copying[GM_LANE_WAYS]; /* by at least one lane */
    int status;                    /* first failure of this rank's run */
};

static void busy(busy_clock *clock, int step)
{
    double now = gm_clock();
    if (clock->active > 0)
        clock->total += now - clock->since;
    clock->since = now;
    clock->active += step;
}

/* Takes the spans of all lanes about in the order of time. On the main thread while the I/O threads own no slot; or
 * under the lock. */
static void add_span(gm_stream_io *io, gm_lane_span span)
{
    covered *c = &io->copying[span.way];
    gm_sample_add(&c->sample, fmax(span.begin, c->until), span.end);
    c->until = fmax(span.end, c->until);
}

static void fail(gm_stream_io *io, int status)
{
    if (status && !io->status)
        io->status = status;
}

/* With this much work each I/O thread finds its next share when it has finished one. More would only spread the data
 * over more memory, and the processor's caches would hold less of it at the time of the copy to the device. */
static int max_in_io(const gm_stream_io *io)
{
    return io->setup->threads + io->setup->threads / 2;
}

/* Counts the time of what a thread begins (step 1) and ends (step -1). Returns whether the run has failed. */
static int mark(gm_stream_io *io, busy_clock *clock, int step)
{
    pthread_mutex_lock(&io->lock);
    busy(clock, step);
    int failed = io->status != GM_OK;
    pthread_mutex_unlock(&io->lock);
    return failed;
}

/* To the memory of the slot, or where a device that addresses host memory wants it. */
static int read_to_memory(gm_stream_io *io, const gm_slot *slot, gm_range part)
{
    const gm_piece *piece = &slot->piece;
    int in_place = io->setup->ops->unified && piece->in_place;
    char *to = in_place ? piece->in_place : slot->memory.host;
    int status = mark(io, &io->reading, 1) ? GM_OK
                                           : io->program->read(io->program->context, piece, part, to + part.begin);
    mark(io, &io->reading, -1);
    return status;
}

/* Bytes of a step: whole units, where a buffer holds one; 0: there are none. */
static int64_t step_of(const gm_stream_io *io, int64_t unit)
{
    int64_t buffer = io->setup->buffer;
    return unit > 0 && unit <= buffer ? buffer / unit * unit : buffer;
}

static void take_span(gm_stream_io *io, gm_lane_span span)
{
    pthread_mutex_lock(&io->lock);
    add_span(io, span);
    pthread_mutex_unlock(&io->lock);
}

/* To the buffers of the thread's lane, and from there to the device. */
static int read_by_lane(gm_stream_io *io, int thread, const gm_slot *slot, gm_range part)
{
    const gm_program *program = io->program;
    gm_lane *lane = &io->lanes[thread];
    int64_t step = step_of(io, slot->piece.in_pitch ? slot->piece.in_width : 0), end; /* rows, where gaps follow them */
    int status = GM_OK, failed = 0;
    for (int64_t at = part.begin; at < part.end && !status && !failed; at = end) {
        void *buffer;
        gm_lane_span span;
        end = gm_min(at + step, part.end);
        status = gm_lane_take(io->setup, lane, &buffer, &span);
        if (!status && !mark(io, &io->reading, 1))
            status = program->read(program->context, &slot->piece, (gm_range){at, end}, buffer);
        failed = mark(io, &io->reading, -1);
        if (!status && !failed)
            status = gm_lane_copy(io->setup, lane, slot, GM_LANE_IN, at, end);
        take_span(io, span);
    }
    slot->arrivals[thread].expected = 1;
    return status ? status : io->setup->ops->event_record(slot->arrivals[thread].event, lane->queue);
}

static int read_share(gm_stream_io *io, int thread, gm_slot *slot)
{
    const gm_piece *piece = &slot->piece;
    pthread_mutex_lock(&io->lock);
    gm_share share = slot->next;
    slot->next.index++;
    pthread_mutex_unlock(&io->lock);
    gm_range part = {0, piece->in};
    if (share.of > 1)
        part = gm_share_cut(share, piece->in_from, piece->in, piece->in_unit);
    if (share.of > 1 && part.begin == part.end)
        return GM_OK;
    return io->lanes ? read_by_lane(io, thread, slot, part) : read_to_memory(io, slot, part);
}

/* *failed: the run has failed, here or elsewhere. */
static int write_part(gm_stream_io *io, const gm_slot *slot, gm_range part, const void *from, int *failed)
{
    const gm_program *program = io->program;
    int status = mark(io, &io->writing, 1) ? GM_OK : program->write(program->context, &slot->piece, part, from);
    *failed = mark(io, &io->writing, -1);
    return status;
}

/* From the memory of the slot, or from where a device that addresses host memory has it. */
static int write_from_memory(gm_stream_io *io, const gm_slot *slot)
{
    const gm_piece *piece = &slot->piece;
    int in_place = io->setup->ops->unified && piece->out_place, failed;
    return write_part(io, slot, (gm_range){0, piece->out}, in_place ? piece->out_place : slot->memory.out, &failed);
}

/* A part of a piece in a buffer of a lane, or on its way there. */
typedef struct step {
    gm_range part;
    int at; /* the buffer */
    void *buffer;
} step;

/* Begins to copy the part of a step from the device. */
static int fetch(gm_stream_io *io, gm_lane *lane, const gm_slot *slot, step *s)
{
    gm_lane_span span;
    s->at = lane->next;
    int status = gm_lane_take(io->setup, lane, &s->buffer, &span);
    take_span(io, span);
    return status ? status : gm_lane_copy(io->setup, lane, slot, GM_LANE_OUT, s->part.begin, s->part.end);
}

/* From the device, by the buffers of the thread's lane: while a step is written the next one is copied. A thread waits
 * for copies of its own only, and these for nothing: the piece has passed its other stages. */
static int write_by_lane(gm_stream_io *io, int thread, const gm_slot *slot)
{
    gm_lane *lane = &io->lanes[thread];
    int64_t out = slot->piece.out, most = step_of(io, slot->piece.out_unit);
    step now = {.part = {0, gm_min(most, out)}}, ahead = now;
    int failed = mark(io, &io->writing, 0), status = failed ? GM_OK : fetch(io, lane, slot, &now);
    for (; !status && !failed && now.part.begin < out; now = ahead) {
        gm_lane_span span;
        ahead.part = (gm_range){now.part.end, gm_min(now.part.end + most, out)};
        if (ahead.part.begin < out)
            status = fetch(io, lane, slot, &ahead);
        if (status)
            break;
        status = gm_lane_settle(io->setup, lane, now.at, &span);
        take_span(io, span);
        if (!status)
            status = write_part(io, slot, now.part, now.buffer, &failed);
    }
    return status;
}

/* On an I/O thread: reads a share of the piece of a slot, or writes it. */
static void io_work(void *context, int thread, int job)
{
    gm_stream_io *io = context;
    gm_slot *slot = &io->slots[job];
    int writing = slot->state == GM_SLOT_WRITING;
    int status = !writing                                ? read_share(io, thread, slot)
                 : slot->by_lanes & GM_STAGE_FROM_DEVICE ? write_by_lane(io, thread, slot)
                                                         : write_from_memory(io, slot);
    pthread_mutex_lock(&io->lock);
    fail(io, status);
    int last = --slot->left == 0;
    if (last && !writing && !slot->pinned) { /* not on the main thread, which starts copies meanwhile */
        pthread_mutex_unlock(&io->lock);
        gm_slot_pin(io->setup, slot);
        pthread_mutex_lock(&io->lock);
    }
    io->in_io--;
    if (last)
        slot->state = writing ? GM_SLOT_FREE : GM_SLOT_READY;
    if (last || io->in_io == max_in_io(io)) {
        io->changes++;
        pthread_cond_signal(&io->changed);
    }
    pthread_mutex_unlock(&io->lock);
}

void gm_stream_io_submit(gm_stream_io *io, gm_slot *slot, gm_slot_state state)
{
    int shares = state == GM_SLOT_READING && slot->piece.readers > 1 ? slot->piece.readers : 1;
    pthread_mutex_lock(&io->lock);
    slot->state = state;
    slot->next = (gm_share){0, shares};
    slot->left = shares;
    io->in_io += shares;
    pthread_mutex_unlock(&io->lock);
    gm_io_threads_submit(io->pool, (int)(slot - io->slots), shares);
}

int gm_stream_io_is_busy(gm_stream_io *io)
{
    pthread_mutex_lock(&io->lock);
    int is_busy = io->in_io > max_in_io(io);
    pthread_mutex_unlock(&io->lock);
    return is_busy;
}

gm_slot_state gm_stream_io_state(gm_stream_io *io, const gm_slot *slot)
{
    pthread_mutex_lock(&io->lock);
    gm_slot_state state = slot->state;
    pthread_mutex_unlock(&io->lock);
    return state;
}

int gm_stream_io_is_ready(gm_stream_io *io, const gm_slot *slot)
{
    pthread_mutex_lock(&io->lock);
    int ready = slot->state == GM_SLOT_READY && io->status == GM_OK;
    pthread_mutex_unlock(&io->lock);
    return ready;
}

int gm_stream_io_merge_status(gm_stream_io *io, int status, int *idle)
{
    pthread_mutex_lock(&io->lock);
    fail(io, status);
    status = io->status;
    *idle = io->in_io == 0;
    pthread_mutex_unlock(&io->lock);
    return status;
}

unsigned gm_stream_io_changes(gm_stream_io *io)
{
    pthread_mutex_lock(&io->lock);
    unsigned changes = io->changes;
    pthread_mutex_unlock(&io->lock);
    return changes;
}

void gm_stream_io_wait(gm_stream_io *io, unsigned seen, long nanoseconds)
{
    int late = 0;
    pthread_mutex_lock(&io->lock);
    const struct timespec until = gm_clock_until(nanoseconds);
    while (io->changes == seen && !late)
        late = pthread_cond_timedwait(&io->changed, &io->lock, &until);
    pthread_mutex_unlock(&io->lock);
}

void gm_stream_io_drain(gm_stream_io *io)
{
    pthread_mutex_lock(&io->lock);
    while (io->in_io)
        pthread_cond_wait(&io->changed, &io->lock);
    pthread_mutex_unlock(&io->lock);
    for (int i = 0; io->lanes && i < io->setup->threads; i++)
        io->setup->ops->queue_sync(io->lanes[i].queue);
}

int gm_stream_io_begin(gm_stream_io *io, const gm_program *program, gm_queue *queue)
{
    const gm_device_ops *ops = io->setup->ops;
    io->program = program;
    io->status = GM_OK;
    io->reading = io->writing = (busy_clock){0};
    memset(io->copying, 0, sizeof io->copying);
    if (!io->lanes)
        return GM_OK;
    int status = ops->event_record(io->origin.event, queue);
    if (!status)
        status = ops->event_sync(io->origin.event);
    io->origin.time = gm_clock();
    return status;
}

int gm_stream_io_add_times(gm_stream_io *io, gm_phase_times *times)
{
    int status = GM_OK;
    for (int i = 0; io->lanes && i < io->setup->threads * GM_RING_BUFFERS && !status; i++) {
        gm_lane_span span;
        status = gm_lane_settle(io->setup, &io->lanes[i / GM_RING_BUFFERS], i % GM_RING_BUFFERS, &span);
        add_span(io, span);
    }
    times->seconds[GM_PHASE_READ] += io->reading.total;
    times->seconds[GM_PHASE_WRITE] += io->writing.total;
    for (int way = 0; io->lanes && way < GM_LANE_WAYS; way++)
        times->seconds[phase_of[way]] += gm_sample_estimate(&io->copying[way].sample, gm_clock() - io->origin.time);
    return status;
}

static int open_lanes(gm_stream_io *io)
{
    const gm_stream_setup *setup = io->setup;
    io->lanes = calloc((size_t)setup->threads, sizeof *io->lanes);
    int status = io->lanes ? setup->ops->event_open(setup->device, 1, &io->origin.event)
                           : gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the streaming ring");
    for (int i = 0; i < setup->threads && !status; i++)
        status = gm_lane_open(setup, &io->origin, &io->lanes[i]);
    return status;
}

int gm_stream_io_open(const gm_stream_setup *setup, gm_slot *slots, gm_stream_io **out)
{
    *out = NULL;
    gm_stream_io *io = calloc(1, sizeof *io);
    if (!io)
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the streaming ring");
    io->setup = setup;
    io->slots = slots;
    pthread_mutex_init(&io->lock, NULL);
    gm_clock_condition(&io->changed);
    int status = setup->buffer ? open_lanes(io) : GM_OK;
    if (!status)
        status = gm_io_threads_open(setup->threads, io_work, io, (int)setup->depth, &io->pool);
    if (status) {
        gm_stream_io_close(io);
        return status;
    }
    *out = io;
    return GM_OK;
}

void gm_stream_io_close(gm_stream_io *io)
{
    if (!io)
        return;
    gm_io_threads_close(io->pool);
    for (int i = 0; io->lanes && i < io->setup->threads; i++)
        gm_lane_close(io->setup, &io->lanes[i]);
    free(io->lanes);
    if (io->origin.event)
        io->setup->ops->event_close(io->origin.event);
    pthread_cond_destroy(&io->changed);
    pthread_mutex_destroy(&io->lock);
    free(io);
}
