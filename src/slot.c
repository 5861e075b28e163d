#include "src/slot.h"

const struct gm_leg gm_legs[GM_LEGS] = {
    [GM_LEG_IN] = {GM_STAGE_TO_DEVICE, GM_PHASE_TO_DEVICE},
    [GM_LEG_RUN] = {GM_STAGE_COMPUTE, GM_PHASE_COMPUTE},
    [GM_LEG_OUT] = {GM_STAGE_FROM_DEVICE, GM_PHASE_FROM_DEVICE},
};

int gm_slot_open(const gm_stream_setup *setup, void *twin, gm_slot *slot)
{
    slot->index = -1;
    int status = setup->ops->pin_later(setup->device, (size_t)setup->piece, &slot->memory.host);
    slot->memory.device = setup->ops->unified ? slot->memory.host : twin;
    for (int leg = 0; leg < GM_LEGS && !status; leg++) {
        status = setup->ops->event_open(setup->device, &slot->begin[leg]);
        if (!status)
            status = setup->ops->event_open(setup->device, &slot->end[leg]);
    }
    return status;
}

void gm_slot_close(const gm_stream_setup *setup, gm_slot *slot)
{
    for (int leg = 0; leg < GM_LEGS; leg++) {
        if (slot->begin[leg])
            setup->ops->event_close(slot->begin[leg]);
        if (slot->end[leg])
            setup->ops->event_close(slot->end[leg]);
    }
    setup->ops->unpin(setup->device, slot->memory.host);
    *slot = (gm_slot){.index = -1};
}

void gm_slot_settle(const gm_stream_setup *setup, gm_slot *slot)
{
    setup->ops->settle(setup->device, slot->memory.host);
    slot->settled = 1;
}

int gm_slot_last_leg(const gm_slot *slot)
{
    int leg = GM_LEGS - 1;
    while (leg >= 0 && !(slot->piece.stages & gm_legs[leg].stage))
        leg--;
    return leg;
}

int gm_slot_add_times(const gm_stream_setup *setup, const gm_slot *slot, gm_phase_times *times)
{
    int status = GM_OK;
    for (int leg = 0; leg < GM_LEGS && !status; leg++)
        if (slot->piece.stages & gm_legs[leg].stage) {
            double seconds = 0;
            status = setup->ops->event_seconds(slot->begin[leg], slot->end[leg], &seconds);
            times->seconds[leg == GM_LEG_RUN && slot->piece.verifies ? GM_PHASE_VERIFY : gm_legs[leg].phase] += seconds;
        }
    return status;
}
