/* slot.h - internal to the ring: one slot, its memory and its events on the device. */
#ifndef GM_SRC_STREAM_SLOT_H
#define GM_SRC_STREAM_SLOT_H

#include "src/stream/share.h"
#include "src/stream/stream.h"

typedef enum gm_slot_state {
    GM_SLOT_FREE,
    GM_SLOT_READING,
    GM_SLOT_READY,
    GM_SLOT_ON_DEVICE,
    GM_SLOT_WRITING
} gm_slot_state;

/* The stages of a slot that is ON_DEVICE, in this order, each on a queue of its own. */
enum { GM_DEVICE_STAGE_IN, GM_DEVICE_STAGE_COMPUTE, GM_DEVICE_STAGE_OUT, GM_DEVICE_STAGES };
extern const struct gm_device_stage {
    unsigned bit; /* of gm_piece.stages */
    gm_phase phase;
} gm_device_stages[GM_DEVICE_STAGES];

typedef struct gm_slot {
    gm_slot_state state; /* guarded by the lock of stream_io.c while the I/O threads own the slot */
    int64_t index;       /* of its piece, counted from 0; -1: none */
    gm_piece piece;
    gm_share next;     /* for the next I/O thread; guarded by the same lock */
    int left;          /* shares that are not done; guarded by the same lock */
    int sent;          /* program.send was called for the piece, with success or without */
    int pinned;        /* gm_slot_pin() was called */
    unsigned by_lanes; /* GM_STAGE_TO_DEVICE, GM_STAGE_FROM_DEVICE: the lanes of I/O threads do all of these stages */
    gm_slot_memory memory;
    gm_event *begin[GM_DEVICE_STAGES], *end[GM_DEVICE_STAGES];
    struct gm_arrival {  /* of each I/O thread, where they have buffers */
        gm_event *event; /* after the thread's last copy of the piece */
        int expected;    /* by the first device stage */
    } * arrivals;
} gm_slot;

/* Allocates host memory, which gm_slot_pin() pins before the first copy, and events. device_memory: setup->piece bytes
 * of device memory, which the caller owns. A slot that failed to open is closed like any other. GM_EDEVICE. */
int gm_slot_open(const gm_stream_setup *setup, void *device_memory, gm_slot *slot);
void gm_slot_close(const gm_stream_setup *setup, gm_slot *slot);

/* Pins the slot's memory if the device can, before the first copy, on the thread that owns the slot. */
void gm_slot_pin(const gm_stream_setup *setup, gm_slot *slot);

/* Begins to copy what was read of the piece, bytes [begin, end) of it, from `from` to its place on the device. Bytes at
 * `from` stay until the copy is done. GM_EDEVICE. */
int gm_slot_copy_in(const gm_stream_setup *setup, const gm_slot *slot, int64_t begin, int64_t end, const void *from,
                    gm_queue *queue);

/* Begins to copy what is written of the piece, bytes [begin, end) of it, from its place on the device to `to`.
 * GM_EDEVICE. */
int gm_slot_copy_out(const gm_stream_setup *setup, const gm_slot *slot, int64_t begin, int64_t end, void *to,
                     gm_queue *queue);

/* Does the slot's piece pass this device stage? */
int gm_slot_has_stage(const gm_slot *slot, int stage);

/* The last device stage of the slot's piece; -1 if it has none. */
int gm_slot_last_device_stage(const gm_slot *slot);

/* Adds the time that the device has spent on the piece. All its work on the device is done. GM_EDEVICE. */
int gm_slot_add_times(const gm_stream_setup *setup, const gm_slot *slot, gm_phase_times *times);

#endif
