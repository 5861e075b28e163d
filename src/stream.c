#include "src/stream.h"

#include "base/clock.h"
#include "base/size.h"
#include "src/slot.h"
#include "src/stop.h"
#include "src/stream_io.h"

#include <stdlib.h>
#include <sys/prctl.h>

struct gm_stream {
    gm_stream_setup setup;
    gm_slot *slots;
    int64_t opened; /* of them: the others are opened when they are wanted, as pinning takes longer than reading */
    char *twins;    /* of the slots, on the device; NULL where it addresses host memory */
    gm_queue *queues[GM_LEGS];
    gm_stream_io *io;
    const gm_program *program;
    /* Pieces get a slot and go to the device in order, [0, issued) and [0, started); they come back from there as they are done, so that a long
     * product does not hold back the slots behind it. Only what meets other ranks or ends with a word to the operation keeps its order. */
    int64_t issued, started;
    int on_device, exhausted;
};

static const unsigned ordered_stages = GM_STAGE_SEND | GM_STAGE_DONE;

/* The slot of the first piece from index on that is still in flight; NULL when there is none. */
static gm_slot *next_in_use(gm_stream *s, int64_t index)
{
    gm_slot *next = NULL;
    for (int64_t i = 0; i < s->opened; i++)
        if (s->slots[i].index >= index && (!next || s->slots[i].index < next->index))
            next = &s->slots[i];
    return next;
}

static int64_t twin_bytes(const gm_stream_setup *setup)
{
    return gm_round_up(setup->piece, GM_SLOT_ALIGN);
}

/* One more slot of the ring. Where there is no memory for another, those that there are do. */
static int open_slot(gm_stream *s)
{
    void *twin = s->twins ? s->twins + s->opened * twin_bytes(&s->setup) : NULL;
    int status = gm_slot_open(&s->setup, twin, &s->slots[s->opened]);
    if (!status) {
        s->opened++;
        return GM_OK;
    }
    gm_slot_close(&s->setup, &s->slots[s->opened]);
    gm_error error;
    gm_error_get(&error);
    if (s->opened == 0 || error.code != GM_EDEVICE)
        return status;
    gm_error_clear();
    s->setup.depth = s->opened;
    return GM_OK;
}

/* A free slot, if need be a new one; NULL when all are in use. */
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

/* Gives the next piece a free slot. *progress says whether it could. */
static int issue(gm_stream *s, int *progress)
{
    gm_slot *slot = NULL;
    int status = s->exhausted || gm_stream_io_is_busy(s->io) ? GM_OK : free_slot(s, &slot);
    if (status || !slot)
        return status;
    int more = 1;
    status = s->program->next(s->program->context, &slot->piece, &more);
    *progress = 1;
    if (status)
        return status;
    if (!more) {
        s->exhausted = 1;
        return GM_OK;
    }
    slot->index = s->issued++;
    slot->sent = 0;
    if (slot->piece.stages & GM_STAGE_READ)
        gm_stream_io_give(s->io, slot, GM_SLOT_READING);
    else
        slot->state = GM_SLOT_READY;
    return GM_OK;
}

static int run_leg(gm_stream *s, gm_slot *slot, int leg)
{
    const gm_device_ops *ops = s->setup.ops;
    const gm_program *p = s->program;
    gm_queue *queue = s->queues[leg];
    if (leg != GM_LEG_RUN && !slot->settled)
        gm_slot_settle(&s->setup, slot);
    int status = p->await ? p->await(p->context, &slot->piece, gm_legs[leg].stage, queue) : GM_OK;
    if (!status)
        status = ops->event_record(slot->begin[leg], queue);
    if (!status)
        status = leg == GM_LEG_IN    ? p->to_device(p->context, &slot->piece, &slot->memory, queue)
                 : leg == GM_LEG_RUN ? p->compute(p->context, &slot->piece, &slot->memory, queue)
                              : p->from_device(p->context, &slot->piece, &slot->memory, queue);
    return status ? status : ops->event_record(slot->end[leg], queue);
}

/* Puts the next slot's work into the device's queues, each stage behind the one before. */
static int start(gm_stream *s, gm_phase_times *times, int *progress)
{
    gm_slot *slot = next_in_use(s, s->started);
    if (!slot || slot->index != s->started || !gm_stream_io_is_ready(s->io, slot))
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
    s->on_device++;
    slot->state = GM_SLOT_ON_DEVICE;
    for (int leg = 0, before = -1; leg < GM_LEGS && !status; leg++) {
        if (!(slot->piece.stages & gm_legs[leg].stage))
            continue;
        if (before >= 0)
            status = s->setup.ops->event_wait(s->queues[leg], slot->end[before]);
        if (!status)
            status = run_leg(s, slot, leg);
        before = leg;
    }
    return status;
}

/* Takes a slot back from the device, where its work is over. */
static int retire_slot(gm_stream *s, gm_slot *slot, gm_phase_times *times)
{
    const gm_program *p = s->program;
    unsigned stages = slot->piece.stages;
    int status = gm_slot_add_times(&s->setup, slot, times);
    if (!status && (stages & GM_STAGE_SEND)) {
        double from = gm_clock();
        slot->sent = 1; /* from here on the appointment is kept */
        status = p->send(p->context, &slot->piece, slot->memory.host);
        times->seconds[GM_PHASE_EXCHANGE] += gm_clock() - from;
    }
    if (!status && (stages & GM_STAGE_DONE))
        status = p->done(p->context, &slot->piece, slot->memory.host);
    if (status)
        return status;
    s->on_device--;
    slot->index = -1;
    if (stages & GM_STAGE_WRITE)
        gm_stream_io_give(s->io, slot, GM_SLOT_WRITING);
    else
        slot->state = GM_SLOT_FREE;
    if (s->setup.progress)
        s->setup.progress(s->setup.progress_context, slot->piece.bytes);
    return GM_OK;
}

/* Takes back what the device is through with, but for what must keep its order behind what it is not. Of a leg that has not come so far with one piece
 * no later one is asked about: each question is a call of the driver. */
static int retire(gm_stream *s, gm_phase_times *times, int *progress)
{
    int held[GM_LEGS] = {0}, ordered_held = 0, status = GM_OK;
    for (gm_slot *slot = next_in_use(s, 0), *next; slot && slot->index < s->started && !status; slot = next) {
        int leg = gm_slot_last_leg(slot), ordered = (slot->piece.stages & ordered_stages) != 0;
        int asks = !(ordered && ordered_held) && !(leg >= 0 && held[leg]), done = asks;
        next = next_in_use(s, slot->index + 1);
        if (asks && leg >= 0) {
            status = s->setup.ops->event_done(slot->end[leg], &done);
            held[leg] = !done;
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

static int run_normally(gm_stream *s, gm_phase_times *times)
{
    for (;;) {
        int progress = 0, at_rest, status = gm_stop_status();
        unsigned seen = gm_stream_io_changes(s->io);
        if (!status && s->setup.ranks->size > 1 && gm_cancelled())
            status = GM_EPEER;
        if (!status)
            status = issue(s, &progress);
        if (!status)
            status = start(s, times, &progress);
        if (!status)
            status = retire(s, times, &progress);
        status = gm_stream_io_note(s->io, status, &at_rest);
        if (status || (at_rest && s->exhausted && s->started == s->issued && s->on_device == 0))
            return status;
        if (!progress) /* only a moment while the device works: it does not say when it is done */
            gm_stream_io_wait(s->io, seen, s->on_device ? 20 * 1000 : 20 * 1000 * 1000);
    }
}

/* The appointments of a piece, with nothing to show. */
static void excuse(gm_stream *s, const gm_piece *piece, int received, int sent)
{
    const gm_program *p = s->program;
    if ((piece->stages & GM_STAGE_RECEIVE) && !received)
        p->receive(p->context, piece, NULL);
    if ((piece->stages & GM_STAGE_SEND) && !sent)
        p->send(p->context, piece, NULL);
}

/* After a failure: everything in flight comes to rest, then the remaining appointments are kept. */
static void run_out(gm_stream *s, int status)
{
    if (status != GM_EPEER)
        gm_cancel(s->setup.ranks);
    for (int leg = 0; leg < GM_LEGS; leg++)
        s->setup.ops->queue_sync(s->queues[leg]);
    gm_stream_io_drain(s->io);
    for (gm_slot *slot = next_in_use(s, 0); slot; slot = next_in_use(s, slot->index + 1))
        excuse(s, &slot->piece, slot->index < s->started, slot->sent);
    gm_piece piece;
    int more = s->program->send || s->program->receive;
    while (more && !s->exhausted && s->program->next(s->program->context, &piece, &more) == GM_OK && more)
        excuse(s, &piece, 0, 0);
    for (int64_t i = 0; i < s->opened; i++) {
        s->slots[i].state = GM_SLOT_FREE;
        s->slots[i].index = -1;
    }
}

int gm_stream_run(gm_stream *s, const gm_program *program, gm_phase_times *times)
{
    s->program = program;
    s->issued = s->started = 0;
    s->on_device = s->exhausted = 0;
    gm_stream_io_begin(s->io, program);
    prctl(PR_SET_TIMERSLACK, 1000UL); /* ns: else the system makes moments 50 us longer, as long as a copy of a piece takes */
    int status = run_normally(s, times);
    if (status)
        run_out(s, status);
    gm_stream_io_add_times(s->io, times);
    return status;
}

gm_queue *gm_stream_in(gm_stream *s)
{
    return s->queues[GM_LEG_IN];
}

int gm_stream_open(const gm_stream_setup *setup, gm_stream **stream)
{
    *stream = NULL;
    gm_stream *s = calloc(1, sizeof *s);
    if (!s)
        return gm_fail(GM_EINTERNAL, "no memory for the streaming ring");
    s->setup = *setup;
    s->slots = calloc((size_t)setup->depth, sizeof *s->slots);
    int status = s->slots ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the streaming ring");
    if (!status && !setup->ops->unified) { /* at once, and before anything runs: it may make the device wait */
        void *memory;
        status = setup->ops->alloc(setup->device, (size_t)(setup->depth * twin_bytes(setup)), &memory);
        s->twins = memory;
    }
    if (!status)
        status = open_slot(s);
    for (int leg = 0; leg < GM_LEGS && !status; leg++)
        status = setup->ops->queue_open(setup->device, &s->queues[leg]);
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
    for (int leg = 0; leg < GM_LEGS; leg++)
        if (s->queues[leg])
            s->setup.ops->queue_close(s->queues[leg]);
    for (int64_t i = 0; s->slots && i < s->opened; i++)
        gm_slot_close(&s->setup, &s->slots[i]);
    if (s->twins)
        s->setup.ops->free(s->setup.device, s->twins);
    free(s->slots);
    free(s);
}
