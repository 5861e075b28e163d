/* A slot on a device that only counts: memory and events are released whatever fails, and times go to their phases. */
#include "src/stream/slot.h"
#include "tests/tap.h"

#include "base/status.h"

#include <stdlib.h>

static int opened, closed, pins, frees, until_failure; /* until_failure: calls until one fails; 0: none does */

static int fails(void)
{
    return until_failure > 0 && --until_failure == 0 ? gm_fail(GM_EDEVICE, "planted failure") : GM_OK;
}

static int host_alloc_pageable(gm_device *device, size_t bytes, void **out)
{
    (void)device;
    int status = fails();
    *out = status ? NULL : malloc(bytes);
    opened += !status;
    return status;
}

static void host_pin(gm_device *device, void *memory)
{
    (void)device;
    pins += memory != NULL;
}

static void host_free(gm_device *device, void *memory)
{
    (void)device;
    frees++;
    closed += memory != NULL;
    free(memory);
}

static int event_open(gm_device *device, gm_event **event)
{
    (void)device;
    int status = fails();
    *event = status ? NULL : malloc(1);
    opened += !status;
    return status;
}

static void event_close(gm_event *event)
{
    closed++;
    free(event);
}

static int event_seconds(gm_event *from, gm_event *to, double *seconds)
{
    *seconds = from && to ? 1 : 0;
    return fails();
}

static const gm_device_ops ops = {
    .host_alloc_pageable = host_alloc_pageable,
    .host_pin = host_pin,
    .host_free = host_free,
    .event_open = event_open,
    .event_close = event_close,
    .event_seconds = event_seconds,
};
static const gm_stream_setup setup = {.ops = &ops, .piece = 64};

static void test_open(void)
{
    char device_memory;
    gm_slot slot = {.index = 0};
    int status = gm_slot_open(&setup, &device_memory, &slot);
    tap_ok(status == GM_OK && slot.index == -1 && slot.state == GM_SLOT_FREE && slot.memory.device == &device_memory &&
               !slot.pinned && pins == 0,
           "a new slot is free, has no piece and is not pinned");
    gm_slot_pin(&setup, &slot);
    tap_ok(slot.pinned && pins == 1, "pinned");
    gm_slot_close(&setup, &slot);
    tap_ok(opened == 1 + 2 * GM_DEVICE_STAGES && closed == opened && frees == 1, "memory and events are released");

    gm_device_ops unified = ops;
    unified.unified = 1;
    gm_stream_setup on_host = {.ops = &unified, .piece = 64};
    status = gm_slot_open(&on_host, NULL, &slot);
    tap_ok(status == GM_OK && slot.memory.device == slot.memory.host, "where device memory is host memory, it is one");
    gm_slot_close(&on_host, &slot);
}

static void test_failures(void)
{
    for (int call = 1; call <= 1 + 2 * GM_DEVICE_STAGES; call++) {
        gm_slot slot = {.index = 0};
        opened = closed = 0;
        until_failure = call;
        int status = gm_slot_open(&setup, NULL, &slot);
        gm_slot_close(&setup, &slot);
        gm_error_clear();
        tap_ok(status == GM_EDEVICE && opened == call - 1 && closed == opened, "call %d of opening fails: released",
               call);
    }
    until_failure = 0;
}

static void test_stages(void)
{
    static const struct {
        unsigned stages;
        int last;
    } cases[] = {
        {GM_STAGE_READ | GM_STAGE_WRITE | GM_STAGE_SEND | GM_STAGE_DONE, -1},
        {GM_STAGE_READ | GM_STAGE_TO_DEVICE, GM_DEVICE_STAGE_IN},
        {GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE | GM_STAGE_DONE, GM_DEVICE_STAGE_COMPUTE},
        {GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE, GM_DEVICE_STAGE_OUT},
        {GM_STAGE_TO_DEVICE | GM_STAGE_FROM_DEVICE, GM_DEVICE_STAGE_OUT},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_slot slot = {.piece.stages = cases[i].stages};
        wrong += gm_slot_last_device_stage(&slot) != cases[i].last;
    }
    tap_ok(wrong == 0, "the last device stage of a piece");
}

static void test_times(void)
{
    gm_phase_times times = {0};
    gm_slot slot = {.index = 0};
    int status = gm_slot_open(&setup, NULL, &slot);
    slot.piece.stages = GM_STAGE_READ | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE | GM_STAGE_WRITE;
    if (!status)
        status = gm_slot_add_times(&setup, &slot, &times);
    slot.piece.verifies = 1;
    slot.piece.stages |= GM_STAGE_FROM_DEVICE;
    if (!status)
        status = gm_slot_add_times(&setup, &slot, &times);
    tap_ok(status == GM_OK && times.seconds[GM_PHASE_TO_DEVICE] == 2 && times.seconds[GM_PHASE_COMPUTE] == 1 &&
               times.seconds[GM_PHASE_VERIFY] == 1 && times.seconds[GM_PHASE_FROM_DEVICE] == 1 &&
               times.seconds[GM_PHASE_READ] == 0 && times.seconds[GM_PHASE_WRITE] == 0,
           "the time of each device stage is added to its phase");
    until_failure = 1;
    tap_ok(gm_slot_add_times(&setup, &slot, &times) == GM_EDEVICE, "a failing timer is reported");
    gm_error_clear();
    gm_slot_close(&setup, &slot);
}

int main(void)
{
    test_open();
    test_failures();
    test_stages();
    test_times();
    return tap_done();
}
