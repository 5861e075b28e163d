/* slot.h - inside the ring: one slot, its memory, its marks on the device. */
#ifndef GM_SRC_SLOT_H
#define GM_SRC_SLOT_H

#include "src/stream.h"

typedef enum gm_slot_state { GM_SLOT_FREE, GM_SLOT_READING, GM_SLOT_READY, GM_SLOT_ON_DEVICE, GM_SLOT_WRITING } gm_slot_state;

/* The three stages of a slot on the device, TO_DEVICE, RUNNING and FROM_DEVICE, each on a queue of its own. */
enum { GM_LEG_IN, GM_LEG_RUN, GM_LEG_OUT, GM_LEGS };
extern const struct gm_leg {
    unsigned stage;
    gm_phase phase;
} gm_legs[GM_LEGS];

typedef struct gm_slot {
    gm_slot_state state; /* guarded by the lock of stream_io.c while I/O threads have it */
    int64_t index;       /* of its piece, counted from the first; -1: none */
    gm_piece piece;
    gm_share next;       /* for the next I/O thread; guarded as well */
    int left;            /* shares that are not done */
    int sent;            /* program.send was called for it, whatever came of it */
    int settled;         /* its memory is pinned, as far as it can be */
    gm_slot_memory memory;
    gm_event *begin[GM_LEGS], *end[GM_LEGS];
} gm_slot;

/* Memory, to be pinned when it is first copied, and events; twin: device memory of the same size, which stays the caller's. A slot that failed to open is closed
 * like any other. */
int gm_slot_open(const gm_stream_setup *setup, void *twin, gm_slot *slot);
void gm_slot_close(const gm_stream_setup *setup, gm_slot *slot);

/* Pins its memory, as far as that can be: before its first copy, on the thread that has the slot. */
void gm_slot_settle(const gm_stream_setup *setup, gm_slot *slot);

/* The last leg of the piece's work on the device; -1 when it has none there. */
int gm_slot_last_leg(const gm_slot *slot);

/* Adds the time that the device spent on the piece, once it is done. */
int gm_slot_add_times(const gm_stream_setup *setup, const gm_slot *slot, gm_phase_times *times);

#endif
