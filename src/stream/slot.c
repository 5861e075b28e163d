#include "src/stream/slot.h"

#include <stdlib.h>

const char *gm_phase_name(gm_phase phase)
{
    static const char *const names[GM_PHASES] = {
        [GM_PHASE_OPEN] = "open",       [GM_PHASE_READ] = "read",         [GM_PHASE_TO_DEVICE] = "to_device",
        [GM_PHASE_COMPUTE] = "compute", [GM_PHASE_EXCHANGE] = "exchange", [GM_PHASE_FROM_DEVICE] = "from_device",
        [GM_PHASE_WRITE] = "write",     [GM_PHASE_VERIFY] = "verify",
    };
    return names[phase];
}

const struct gm_device_stage gm_device_stages[GM_DEVICE_STAGES] = {
    [GM_DEVICE_STAGE_IN] = {GM_STAGE_TO_DEVICE, GM_PHASE_TO_DEVICE},
    [GM_DEVICE_STAGE_COMPUTE] = {GM_STAGE_COMPUTE, GM_PHASE_COMPUTE},
    [GM_DEVICE_STAGE_OUT] = {GM_STAGE_FROM_DEVICE, GM_PHASE_FROM_DEVICE},
};

int gm_slot_open(const gm_stream_setup *setup, void *device_memory, gm_slot *slot)
{
    slot->index = -1;
    void *host = NULL;
    int64_t bytes = setup->buffer ? setup->out : setup->piece;
    int status = bytes > 0 ? setup->ops->host_alloc_pageable(setup->device, (size_t)bytes, &host) : GM_OK;
    slot->memory.host = setup->buffer ? NULL : host;
    slot->memory.out = setup->buffer || !host ? host : (char *)host + setup->out_at;
    slot->memory.device = setup->ops->unified ? host : device_memory;
    if (setup->buffer && !status) {
        slot->arrivals = calloc((size_t)setup->threads, sizeof *slot->arrivals);
        if (!slot->arrivals)
            status = gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the streaming ring");
    }
    for (int i = 0; setup->buffer && i < setup->threads && !status; i++)
        status = setup->ops->event_open(setup->device, 0, &slot->arrivals[i].event);
    for (int stage = 0; stage < GM_DEVICE_STAGES && !status; stage++) {
        status = setup->ops->event_open(setup->device, 1, &slot->begin[stage]);
        if (!status)
            status = setup->ops->event_open(setup->device, 1, &slot->end[stage]);
    }
    return status;
}

static void *host_memory(const gm_stream_setup *setup, const gm_slot *slot)
{
    return setup->buffer ? slot->memory.out : slot->memory.host;
}

void gm_slot_close(const gm_stream_setup *setup, gm_slot *slot)
{
    for (int stage = 0; stage < GM_DEVICE_STAGES; stage++) {
        if (slot->begin[stage])
            setup->ops->event_close(slot->begin[stage]);
        if (slot->end[stage])
            setup->ops->event_close(slot->end[stage]);
    }
    for (int i = 0; slot->arrivals && i < setup->threads; i++)
        if (slot->arrivals[i].event)
            setup->ops->event_close(slot->arrivals[i].event);
    free(slot->arrivals);
    setup->ops->host_free(setup->device, host_memory(setup, slot));
    *slot = (gm_slot){.index = -1};
}

void gm_slot_pin(const gm_stream_setup *setup, gm_slot *slot)
{
    if (host_memory(setup, slot))
        setup->ops->host_pin(setup->device, host_memory(setup, slot));
    slot->pinned = 1;
}

int gm_slot_copy_in(const gm_stream_setup *setup, const gm_slot *slot, int64_t begin, int64_t end, const void *from,
                    gm_queue *queue)
{
    const gm_piece *piece = &slot->piece;
    char *to = piece->in_place ? piece->in_place : slot->memory.device;
    int64_t width = piece->in_pitch ? piece->in_width : end - begin;
    int status = GM_OK;
    if (!piece->in_pitch)
        return setup->ops->copy_in(queue, to + begin, (size_t)width, from, (size_t)width, (size_t)width, 1);
    while (begin < end && !status) {
        gm_rectangle r = gm_rectangle_next(width, begin, end);
        status = setup->ops->copy_in(queue, to + r.row * piece->in_pitch + r.col, (size_t)piece->in_pitch, from,
                                     (size_t)r.cols, (size_t)r.cols, r.rows);
        begin += r.rows * r.cols;
        from = (const char *)from + r.rows * r.cols;
    }
    return status;
}

int gm_slot_copy_out(const gm_stream_setup *setup, const gm_slot *slot, int64_t begin, int64_t end, void *to,
                     gm_queue *queue)
{
    const char *place = slot->piece.out_place, *from = place ? place : (char *)slot->memory.device + setup->out_at;
    size_t bytes = (size_t)(end - begin);
    return setup->ops->copy_out(queue, to, bytes, from + begin, bytes, bytes, 1);
}

int gm_slot_has_stage(const gm_slot *slot, int stage)
{
    return (slot->piece.stages & ~slot->by_lanes & gm_device_stages[stage].bit) != 0;
}

int gm_slot_last_device_stage(const gm_slot *slot)
{
    int stage = GM_DEVICE_STAGES - 1;
    while (stage >= 0 && !gm_slot_has_stage(slot, stage))
        stage--;
    return stage;
}

int gm_slot_add_times(const gm_stream_setup *setup, const gm_slot *slot, gm_phase_times *times)
{
    int status = GM_OK;
    for (int stage = 0; stage < GM_DEVICE_STAGES && !status; stage++)
        if (gm_slot_has_stage(slot, stage)) {
            double seconds = 0;
            status = setup->ops->event_seconds(slot->begin[stage], slot->end[stage], &seconds);
            times->seconds[stage == GM_DEVICE_STAGE_COMPUTE && slot->piece.verifies ? GM_PHASE_VERIFY
                                                                                    : gm_device_stages[stage].phase] +=
                seconds;
        }
    return status;
}
