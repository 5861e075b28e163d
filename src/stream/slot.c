#include "src/stream/slot.h"

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
    int status = setup->ops->host_alloc_pageable(setup->device, (size_t)setup->piece, &slot->memory.host);
    slot->memory.device = setup->ops->unified ? slot->memory.host : device_memory;
    for (int stage = 0; stage < GM_DEVICE_STAGES && !status; stage++) {
        status = setup->ops->event_open(setup->device, &slot->begin[stage]);
        if (!status)
            status = setup->ops->event_open(setup->device, &slot->end[stage]);
    }
    return status;
}

void gm_slot_close(const gm_stream_setup *setup, gm_slot *slot)
{
    for (int stage = 0; stage < GM_DEVICE_STAGES; stage++) {
        if (slot->begin[stage])
            setup->ops->event_close(slot->begin[stage]);
        if (slot->end[stage])
            setup->ops->event_close(slot->end[stage]);
    }
    setup->ops->host_free(setup->device, slot->memory.host);
    *slot = (gm_slot){.index = -1};
}

void gm_slot_pin(const gm_stream_setup *setup, gm_slot *slot)
{
    setup->ops->host_pin(setup->device, slot->memory.host);
    slot->pinned = 1;
}

int gm_slot_last_device_stage(const gm_slot *slot)
{
    int stage = GM_DEVICE_STAGES - 1;
    while (stage >= 0 && !(slot->piece.stages & gm_device_stages[stage].bit))
        stage--;
    return stage;
}

int gm_slot_add_times(const gm_stream_setup *setup, const gm_slot *slot, gm_phase_times *times)
{
    int status = GM_OK;
    for (int stage = 0; stage < GM_DEVICE_STAGES && !status; stage++)
        if (slot->piece.stages & gm_device_stages[stage].bit) {
            double seconds = 0;
            status = setup->ops->event_seconds(slot->begin[stage], slot->end[stage], &seconds);
            times->seconds[stage == GM_DEVICE_STAGE_COMPUTE && slot->piece.verifies ? GM_PHASE_VERIFY
                                                                                    : gm_device_stages[stage].phase] +=
                seconds;
        }
    return status;
}
