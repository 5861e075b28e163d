#include "src/stream/lane.h"

#include "base/clock.h"
#include "src/stream/sample.h"

int gm_lane_open(const gm_stream_setup *setup, const gm_origin *origin, gm_lane *lane)
{
    const gm_device_ops *ops = setup->ops;
    void *memory = NULL;
    int status = ops->host_alloc_pageable(setup->device, (size_t)(GM_RING_BUFFERS * setup->buffer), &memory);
    lane->memory = memory;
    lane->origin = origin;
    if (!status)
        status = ops->queue_open(setup->device, &lane->queue);
    for (int i = 0; i < 2 * GM_RING_BUFFERS && !status; i++)
        status = ops->event_open(setup->device, i % 2, &lane->buffer[i / 2].end[i % 2]);
    return status;
}

void gm_lane_close(const gm_stream_setup *setup, gm_lane *lane)
{
    const gm_device_ops *ops = setup->ops;
    if (lane->queue) {
        ops->queue_sync(lane->queue); /* after a failure copies may be under way */
        ops->queue_close(lane->queue);
    }
    for (int i = 0; i < 2 * GM_RING_BUFFERS; i++)
        if (lane->buffer[i / 2].end[i % 2])
            ops->event_close(lane->buffer[i / 2].end[i % 2]);
    ops->host_free(setup->device, lane->memory);
    *lane = (gm_lane){0};
}

int gm_lane_settle(const gm_stream_setup *setup, gm_lane *lane, int at, gm_lane_span *span)
{
    const gm_device_ops *ops = setup->ops;
    const int is_timed = lane->buffer[at].is_timed;
    *span = (gm_lane_span){.way = lane->buffer[at].way, .begin = lane->buffer[at].begin};
    if (!lane->buffer[at].is_copied)
        return GM_OK;
    lane->buffer[at].is_copied = 0;
    int status = ops->event_sync(lane->buffer[at].end[is_timed]);
    return status || !is_timed ? status : ops->event_seconds(lane->origin->event, lane->buffer[at].end[1], &span->end);
}

int gm_lane_take(const gm_stream_setup *setup, gm_lane *lane, void **buffer, gm_lane_span *span)
{
    int status = GM_OK;
    *span = (gm_lane_span){0};
    *buffer = lane->memory + lane->next * setup->buffer;
    if (!lane->attached) {
        status = setup->ops->attach(setup->device);
        setup->ops->host_pin(setup->device, lane->memory);
        lane->attached = !status;
    }
    return status ? status : gm_lane_settle(setup, lane, lane->next, span);
}

int gm_lane_copy(const gm_stream_setup *setup, gm_lane *lane, const gm_slot *slot, gm_lane_way way, int64_t begin,
                 int64_t end)
{
    int at = lane->next, is_timed;
    char *buffer = lane->memory + at * setup->buffer;
    lane->buffer[at].begin = gm_clock() - lane->origin->time;
    lane->buffer[at].is_timed = is_timed = gm_sample_has(lane->buffer[at].begin);
    int status = way == GM_LANE_IN ? gm_slot_copy_in(setup, slot, begin, end, buffer, lane->queue)
                                   : gm_slot_copy_out(setup, slot, begin, end, buffer, lane->queue);
    if (!status)
        status = setup->ops->event_record(lane->buffer[at].end[is_timed], lane->queue);
    lane->buffer[at].is_copied = !status;
    lane->buffer[at].way = way;
    lane->next = (at + 1) % GM_RING_BUFFERS;
    return status;
}
