#include "src/stream/stream.h"

#include "base/clock.h"
#include "base/size.h"
#include "base/stop.h"
#include "mpi/cancel.h"
#include "src/stream/slot.h"
#include "src/stream/stream_io.h"

#include <stdlib.h>

struct gm_stream {
    gm_stream_setup setup;
    gm_slot *slots;
    int64_t opened;      /* of setup.depth; more are opened on demand, as pinning takes longer than reading */
    char *device_memory; /* of all slots; NULL on a device that addresses host memory */
    gm_queue *queues[GM_DEVICE_STAGES];
    gm_stream_io *io;
    const gm_program *program;
    /* Pieces [0, issued) have been given a slot and pieces [0, started) have gone to the device, both in order. They
     * retire from the device as they complete, so that a long product does not hold up later slots; only pieces of
     * ordered_stages retire in order. */
    int64_t issued, started;
    int on_device, exhausted;
    int awaits; /* the next piece in order waits for something that does not wake the main thread */
};

static const unsigned ordered_stages = GM_STAGE_SEND | GM_STAGE_DONE;

/* The slot of the first piece in flight with this index or a higher one; NULL if there is none. */
static gm_slot *next_in_flight(gm_stream *s, int64_t index)
{
    gm_slot *next = NULL;
    for (int64_t i = 0; i < s->opened; i++)
        if (s->slots[i].index >= index && (!next || s->slots[i].index < next->index))
            next = &s->slots[i];
    return next;
}

static int64_t device_slot_bytes(const gm_stream_setup *setup)
{
    return gm_round_up(setup->piece, GM_SLOT_ALIGN);
}

/* Opens one more slot. If there is no memory for it, the ring goes on with the slots that it has, at least one. */
static int open_slot(gm_stream *s)
{
    void *device_memory = s->device_memory ? s->device_memory + s->opened * device_slot_bytes(&s->setup) : NULL;
    int before = gm_error_hush(s->opened > 0);
    int status = gm_slot_open(&s->setup, device_memory, &s->slots[s->opened]);
    gm_error_hush(before);
    if (!status) {
        s->opened++;
        return GM_OK;
    }
    gm_slot_close(&s->setup, &s->slots[s->opened]);
    if (s->opened == 0 || status != GM_EDEVICE)
        return status;
    s->setup.depth = s->opened;
    return GM_OK;
}

/* A free slot, if necessary a new one; NULL when all are in use. */
static int free_slot(gm_stream *s, gm_slot **slot)
{
    int status = GM_OK;
    *slot = NULL;
    for (int64_t i = 0; !*slot && i < s->opened; i++)
        if (gm_stream_io_state(s->io, &s->slots[i]) == GM_SLOT_FREE)
            *slot = &s->slots[i];
    if (*slot || s->opened == s->setup.depth)
        return GM_OK;
    int64_t before = s->opened;
    status = open_slot(s);
    if (s->opened > before)
        *slot = &s->slots[before];
    return status;
}

/* The stages of the piece that are copies by the lanes of I/O threads and no more. Results come back by a lane
 * unless the main thread needs it on the host. */
static unsigned stages_by_lanes(const gm_stream *s, const gm_piece *piece)
{
    const unsigned to = GM_STAGE_READ | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE,
                   back = GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE;
    int goes = !s->program->to_device && (piece->stages & to) == to;
    int returns = !s->program->from_device && piece->out > 0 &&
                  (piece->stages & (back | GM_STAGE_SEND | GM_STAGE_DONE)) == back;
    unsigned stages = (goes ? GM_STAGE_TO_DEVICE : 0) | (returns ? GM_STAGE_FROM_DEVICE : 0);
    return s->setup.buffer ? stages : 0;
}

/* Gives the next piece a free slot. Sets *progress if the program was asked for a piece. */
static int issue(gm_stream *s, int *progress)
{
    gm_slot *slot = NULL;
    int status = s->exhausted || gm_stream_io_is_busy(s->io) ? GM_OK : free_slot(s, &slot);
    if (status || !slot)
        return status;
    int more = GM_MORE_NOW;
    status = s->program->next(s->program->context, &slot->piece, &more);
    *progress = more != GM_MORE_LATER;
    s->exhausted = !status && more == GM_MORE_NONE;
    if (status || more != GM_MORE_NOW)
        return status;
    slot->index = s->issued++;
    slot->sent = 0;
    slot->by_lanes = stages_by_lanes(s, &slot->piece);
    if (slot->piece.stages & GM_STAGE_READ)
        gm_stream_io_submit(s->io, slot, GM_SLOT_READING);
    else
        slot->state = GM_SLOT_READY;
    return GM_OK;
}

/* Makes the queue wait for the copies of the I/O threads. */
static int await_arrivals(gm_stream *s, gm_slot *slot, gm_queue *queue)
{
    int status = GM_OK;
    for (int i = 0; i < s->setup.threads && !status; i++)
        if (slot->arrivals[i].expected) {
            slot->arrivals[i].expected = 0;
            status = s->setup.ops->event_wait(queue, slot->arrivals[i].event);
        }
    return status;
}

static int copy_in(gm_stream *s, gm_slot *slot, gm_queue *queue)
{
    const gm_program *p = s->program;
    int is_read = (slot->piece.stages & GM_STAGE_READ) != 0 && slot->piece.in > 0, status = GM_OK;
    if (is_read && !s->setup.buffer && !s->setup.ops->unified)
        status = gm_slot_copy_in(&s->setup, slot, 0, slot->piece.in, slot->memory.host, queue);
    return status || !p->to_device ? status : p->to_device(p->context, &slot->piece, &slot->memory, queue);
}

static int copy_out(gm_stream *s, gm_slot *slot, gm_queue *queue)
{
    const gm_program *p = s->program;
    if (p->from_device)
        return p->from_device(p->context, &slot->piece, &slot->memory, queue);
    int is_there = s->setup.ops->unified || slot->piece.out == 0;
    return is_there ? GM_OK : gm_slot_copy_out(&s->setup, slot, 0, slot->piece.out, slot->memory.out, queue);
}

/* Does the piece use the host memory of its slot? */
static int has_bytes(const gm_piece *piece)
{
    return (piece->stages & (GM_STAGE_READ | GM_STAGE_RECEIVE | GM_STAGE_FROM_DEVICE)) != 0;
}

static int enqueue_stage(gm_stream *s, gm_slot *slot, int stage)
{
    const gm_device_ops *ops = s->setup.ops;
    const gm_program *p = s->program;
    gm_queue *queue = s->queues[stage];
    if (stage != GM_DEVICE_STAGE_COMPUTE && !slot->pinned && has_bytes(&slot->piece))
        gm_slot_pin(&s->setup, slot);
    int status = p->await ? p->await(p->context, &slot->piece, gm_device_stages[stage].bit, queue) : GM_OK;
    if (!status && s->setup.buffer)
        status = await_arrivals(s, slot, queue);
    if (!status)
        status = ops->event_record(slot->begin[stage], queue);
    if (!status)
        status = stage == GM_DEVICE_STAGE_IN        ? copy_in(s, slot, queue)
                 : stage == GM_DEVICE_STAGE_COMPUTE ? p->compute(p->context, &slot->piece, &slot->memory, queue)
                                                    : copy_out(s, slot, queue);
    return status ? status : ops->event_record(slot->end[stage], queue);
}

/* Enqueues the work of the next slot in order on the device's queues, each stage after the one before. */
static int start(gm_stream *s, gm_phase_times *times, int *progress)
{
    gm_slot *slot = next_in_flight(s, s->started);
    const gm_program *p = s->program;
    int status = GM_OK, is_there = 1;
    s->awaits = 0;
    if (!slot || slot->index != s->started || !gm_stream_io_is_ready(s->io, slot))
        return GM_OK;
    if (p->await_turn)
        status = p->await_turn(p->context, &slot->piece, &is_there);
    s->awaits = !is_there;
    if (status || !is_there)
        return status;
    *progress = 1;
    if (slot->piece.stages & GM_STAGE_RECEIVE) {
        double from = gm_clock();
        status = p->receive(p->context, &slot->piece, slot->memory.out);
        times->seconds[GM_PHASE_EXCHANGE] += gm_clock() - from;
    }
    s->started++; /* the piece's receive has taken place, with success or without */
    s->on_device++;
    slot->state = GM_SLOT_ON_DEVICE;
    for (int stage = 0, before = -1; stage < GM_DEVICE_STAGES && !status; stage++) {
        if (!gm_slot_has_stage(slot, stage))
            continue;
        if (before >= 0)
            status = s->setup.ops->event_wait(s->queues[stage], slot->end[before]);
        if (!status)
            status = enqueue_stage(s, slot, stage);
        before = stage;
    }
    return status;
}

/* Takes a slot back from the device, where its work is done. */
static int retire_slot(gm_stream *s, gm_slot *slot, gm_phase_times *times)
{
    const gm_program *p = s->program;
    unsigned stages = slot->piece.stages;
    int status = gm_slot_add_times(&s->setup, slot, times);
    if (!status && (stages & GM_STAGE_SEND)) {
        double from = gm_clock();
        slot->sent = 1;
        status = p->send(p->context, &slot->piece, slot->memory.out);
        times->seconds[GM_PHASE_EXCHANGE] += gm_clock() - from;
    }
    if (!status && (stages & GM_STAGE_DONE))
        status = p->done(p->context, &slot->piece, slot->memory.out);
    if (status)
        return status;
    s->on_device--;
    slot->index = -1;
    if (stages & GM_STAGE_WRITE)
        gm_stream_io_submit(s->io, slot, GM_SLOT_WRITING);
    else
        slot->state = GM_SLOT_FREE;
    if (s->setup.progress)
        s->setup.progress(s->setup.progress_context, slot->piece.bytes);
    return GM_OK;
}

/* Takes back the slots whose work on the device is done, those of ordered_stages in order. Once a device stage has
 * not completed for one slot, later slots with the same last stage are not queried: each query is a driver call. */
static int retire(gm_stream *s, gm_phase_times *times, int *progress)
{
    int held[GM_DEVICE_STAGES] = {0}, ordered_held = 0, status = GM_OK;
    for (gm_slot *slot = next_in_flight(s, 0), *next; slot && slot->index < s->started && !status; slot = next) {
        int stage = gm_slot_last_device_stage(slot), ordered = (slot->piece.stages & ordered_stages) != 0;
        int asks = !(ordered && ordered_held) && !(stage >= 0 && held[stage]), done = asks;
        next = next_in_flight(s, slot->index + 1);
        if (asks && stage >= 0) {
            status = s->setup.ops->event_done(slot->end[stage], &done);
            held[stage] = !done;
        }
        if (done && !status) {
            *progress = 1;
            status = retire_slot(s, slot, times);
        } else {
            ordered_held |= ordered;
        }
    }
    return status;
}

static int run_pieces(gm_stream *s, gm_phase_times *times)
{
    for (;;) {
        int progress = 0, is_under_way = 0, idle, status = gm_stop_status();
        unsigned seen = gm_stream_io_changes(s->io);
        if (!status && s->program->drive)
            status = s->program->drive(s->program->context, &is_under_way);
        if (!status)
            status = issue(s, &progress);
        if (!status)
            status = start(s, times, &progress);
        if (!status)
            status = retire(s, times, &progress);
        status = gm_stream_io_merge_status(s->io, status, &idle);
        if (status || (idle && s->exhausted && s->started == s->issued && s->on_device == 0))
            return status;
        if (!progress) /* nanoseconds: short while what signals no end is at work, or waited for */
            gm_stream_io_wait(s->io, seen, s->on_device || s->awaits || is_under_way ? 20 * 1000 : 20 * 1000 * 1000);
    }
}

/* Completes the receive and the send of a piece without data, so that the other rank learns of the failure. */
static void notify_failure(gm_stream *s, const gm_piece *piece, int received, int sent)
{
    const gm_program *p = s->program;
    if ((piece->stages & GM_STAGE_RECEIVE) && !received)
        p->receive(p->context, piece, NULL);
    if ((piece->stages & GM_STAGE_SEND) && !sent)
        p->send(p->context, piece, NULL);
}

/* After a failure: waits for all pieces in flight, then completes all that other ranks expect. */
static void finish_failed_run(gm_stream *s, int status)
{
    if (status != GM_EPEER)
        gm_cancel();
    gm_stop_abandon(1);
    for (int stage = 0; stage < GM_DEVICE_STAGES; stage++)
        s->setup.ops->queue_sync(s->queues[stage]);
    gm_stream_io_drain(s->io);
    for (gm_slot *slot = next_in_flight(s, 0); slot; slot = next_in_flight(s, slot->index + 1))
        notify_failure(s, &slot->piece, slot->index < s->started, slot->sent);
    gm_piece piece;
    int more = s->program->send || s->program->receive ? GM_MORE_NOW : GM_MORE_NONE;
    while (more == GM_MORE_NOW && !s->exhausted && s->program->next(s->program->context, &piece, &more) == GM_OK &&
           more == GM_MORE_NOW)
        notify_failure(s, &piece, 0, 0);
    if (s->program->abandon)
        s->program->abandon(s->program->context, status);
    for (int64_t i = 0; i < s->opened; i++) {
        s->slots[i].state = GM_SLOT_FREE;
        s->slots[i].index = -1;
    }
}

int gm_stream_run(gm_stream *s, const gm_program *program, gm_phase_times *times)
{
    s->program = program;
    s->issued = s->started = 0;
    s->on_device = s->exhausted = s->awaits = 0;
    gm_stop_abandon(0);
    int status = gm_stream_io_begin(s->io, program, s->queues[GM_DEVICE_STAGE_IN]);
    if (!status)
        status = run_pieces(s, times);
    if (status)
        finish_failed_run(s, status);
    int timed = gm_stream_io_add_times(s->io, times);
    return status ? status : timed;
}

gm_queue *gm_stream_in(gm_stream *s)
{
    return s->queues[GM_DEVICE_STAGE_IN];
}

int gm_stream_open(const gm_stream_setup *setup, gm_stream **stream)
{
    *stream = NULL;
    gm_stream *s = calloc(1, sizeof *s);
    if (!s)
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the streaming ring");
    s->setup = *setup;
    s->slots = calloc((size_t)setup->depth, sizeof *s->slots);
    int status = s->slots ? GM_OK : gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the streaming ring");
    if (!status && !setup->ops->unified) { /* for all slots now: a later allocation may make the device wait */
        void *memory;
        status = setup->ops->alloc(setup->device, (size_t)(setup->depth * device_slot_bytes(setup)), &memory);
        s->device_memory = memory;
    }
    if (!status)
        status = open_slot(s);
    for (int stage = 0; stage < GM_DEVICE_STAGES && !status; stage++)
        status = setup->ops->queue_open(setup->device, &s->queues[stage]);
    if (!status)
        status = gm_stream_io_open(&s->setup, s->slots, &s->io);
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
    gm_stream_io_close(s->io);
    for (int stage = 0; stage < GM_DEVICE_STAGES; stage++)
        if (s->queues[stage])
            s->setup.ops->queue_close(s->queues[stage]);
    for (int64_t i = 0; s->slots && i < s->opened; i++)
        gm_slot_close(&s->setup, &s->slots[i]);
    if (s->device_memory)
        s->setup.ops->free(s->setup.device, s->device_memory);
    free(s->slots);
    free(s);
}
