/* A slot on a device that only counts: memory and events are released whatever fails, and times go to their phases. */
#include "src/stream/slot.h"
#include "tests/tap.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

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

static int event_open(gm_device *device, int is_timed, gm_event **event)
{
    (void)device;
    (void)is_timed;
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

static int copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                   int64_t rows)
{
    (void)queue;
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)dst + (size_t)i * dst_pitch, (const char *)src + (size_t)i * src_pitch, width);
    return GM_OK;
}

static const gm_device_ops ops = {
    .copy_in = copy_in,
    .copy_out = copy_in,
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

/* With buffers: host memory for what comes back, an event for each thread, and nothing of either is lost. */
static void test_buffers(void)
{
    const gm_stream_setup with = {.ops = &ops, .piece = 64, .buffer = 16, .out = 24, .threads = 3};
    const int calls = 1 + 3 + 2 * GM_DEVICE_STAGES;
    char device_memory[64];
    gm_slot slot = {.index = 0};
    opened = closed = frees = 0;
    int status = gm_slot_open(&with, device_memory, &slot);
    tap_ok(status == GM_OK && !slot.memory.host && slot.memory.out && slot.memory.device == device_memory &&
               opened == calls,
           "with buffers a slot has host memory only for what comes back, and an event for each thread");
    gm_slot_close(&with, &slot);
    tap_ok(closed == opened && frees == 1, "they are released");
    const gm_stream_setup none = {.ops = &ops, .piece = 64, .buffer = 16, .out_at = 32, .threads = 3};
    opened = closed = pins = 0;
    status = gm_slot_open(&none, device_memory, &slot);
    gm_slot_pin(&none, &slot);
    tap_ok(status == GM_OK && !slot.memory.host && !slot.memory.out && opened == calls - 1 && pins == 0,
           "none where I/O threads copy all that comes back, and nothing is pinned");
    gm_slot_close(&none, &slot);
    tap_ok(closed == opened, "events are released");
    for (int call = 1; call <= calls; call++) {
        opened = closed = 0;
        until_failure = call;
        status = gm_slot_open(&with, device_memory, &slot);
        gm_slot_close(&with, &slot);
        gm_error_clear();
        tap_ok(status == GM_EDEVICE && opened == call - 1 && closed == opened, "call %d fails: released", call);
    }
    until_failure = 0;
}

/* Every part of a piece of rows, to the slot or to rows further apart. */
static void test_copy(void)
{
    enum { ROWS = 5, WIDTH = 7, PITCH = 11 };
    unsigned char from[ROWS * WIDTH], to[ROWS * PITCH], device[ROWS * WIDTH];
    const gm_stream_setup copying = {.ops = &ops, .piece = sizeof device};
    gm_slot slot = {.memory.device = device, .piece = {.in = sizeof from}};
    int wrong = 0, packed_wrong = 0;
    for (int i = 0; i < ROWS * WIDTH; i++)
        from[i] = (unsigned char)(i + 1);
    for (int begin = 0; begin < ROWS * WIDTH; begin++)
        for (int end = begin + 1; end <= ROWS * WIDTH; end++) {
            memset(to, 0, sizeof to);
            memset(device, 0, sizeof device);
            slot.piece.in_place = to;
            slot.piece.in_width = WIDTH;
            slot.piece.in_pitch = PITCH;
            wrong += gm_slot_copy_in(&copying, &slot, begin, end, from + begin, NULL);
            slot.piece.in_place = NULL;
            slot.piece.in_pitch = 0;
            packed_wrong += gm_slot_copy_in(&copying, &slot, begin, end, from + begin, NULL);
            for (int i = 0; i < ROWS * PITCH; i++) {
                int at = i / PITCH * WIDTH + i % PITCH, inside = i % PITCH < WIDTH && at >= begin && at < end;
                wrong += to[i] != (inside ? from[at] : 0);
            }
            for (int i = 0; i < ROWS * WIDTH; i++)
                packed_wrong += device[i] != (i >= begin && i < end ? from[i] : 0);
        }
    tap_ok(wrong == 0, "any part of a piece goes to its place in rows with gaps between them, and nothing else");
    tap_ok(packed_wrong == 0, "and to its place in the slot");
}

/* Every part of what a piece writes, from its place in the slot or elsewhere on the device. */
static void test_copy_back(void)
{
    enum { OUT_AT = 16, OUT = 21 };
    unsigned char device[OUT_AT + OUT], elsewhere[OUT], to[OUT + 1];
    const gm_stream_setup copying = {.ops = &ops, .piece = sizeof device, .out_at = OUT_AT};
    gm_slot slot = {.memory.device = device, .piece = {.out = OUT}};
    int wrong = 0;
    for (int i = 0; i < OUT_AT + OUT; i++)
        device[i] = (unsigned char)(100 + i);
    for (int i = 0; i < OUT; i++)
        elsewhere[i] = (unsigned char)(1 + i);
    for (int place = 0; place < 2; place++)
        for (int begin = 0; begin < OUT; begin++)
            for (int end = begin + 1; end <= OUT; end++) {
                const unsigned char *from = place ? elsewhere : device + OUT_AT;
                memset(to, 0, sizeof to);
                slot.piece.out_place = place ? elsewhere : NULL;
                wrong += gm_slot_copy_out(&copying, &slot, begin, end, to, NULL);
                wrong += memcmp(to, from + begin, (size_t)(end - begin)) != 0 || to[end - begin] != 0;
            }
    tap_ok(wrong == 0, "any part of what a piece writes comes from its place, and nothing else");
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
        unsigned by_lanes;
    } cases[] = {
        {GM_STAGE_READ | GM_STAGE_WRITE | GM_STAGE_SEND | GM_STAGE_DONE, -1, 0},
        {GM_STAGE_READ | GM_STAGE_TO_DEVICE, GM_DEVICE_STAGE_IN, 0},
        {GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE | GM_STAGE_DONE, GM_DEVICE_STAGE_COMPUTE, 0},
        {GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE, GM_DEVICE_STAGE_OUT, 0},
        {GM_STAGE_TO_DEVICE | GM_STAGE_FROM_DEVICE, GM_DEVICE_STAGE_OUT, 0},
        {GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE, GM_DEVICE_STAGE_COMPUTE, GM_STAGE_FROM_DEVICE},
        {GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE, GM_DEVICE_STAGE_COMPUTE, GM_STAGE_TO_DEVICE},
        {GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE, -1, GM_STAGE_FROM_DEVICE},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_slot slot = {.piece.stages = cases[i].stages, .by_lanes = cases[i].by_lanes};
        wrong += gm_slot_last_device_stage(&slot) != cases[i].last;
    }
    tap_ok(wrong == 0, "the last device stage of a piece; what I/O threads copy is none");
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
    slot.by_lanes = GM_STAGE_FROM_DEVICE;
    if (!status)
        status = gm_slot_add_times(&setup, &slot, &times);
    tap_ok(status == GM_OK && times.seconds[GM_PHASE_VERIFY] == 2 && times.seconds[GM_PHASE_FROM_DEVICE] == 1,
           "but not that of a copy by an I/O thread");
    until_failure = 1;
    tap_ok(gm_slot_add_times(&setup, &slot, &times) == GM_EDEVICE, "a failing timer is reported");
    gm_error_clear();
    gm_slot_close(&setup, &slot);
}

int main(void)
{
    test_open();
    test_failures();
    test_buffers();
    test_copy();
    test_copy_back();
    test_stages();
    test_times();
    return tap_done();
}
