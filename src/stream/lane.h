/* lane.h - internal to the ring: the way of one I/O thread to the device. It fills pinned buffers in turn, each of
 * which is copied on the lane's queue while it fills the next one. */
#ifndef GM_SRC_LANE_H
#define GM_SRC_LANE_H

#include "src/stream/ring_plan.h"
#include "src/stream/slot.h"

/* Seconds after the event `origin`. */
typedef struct gm_span {
    double begin, end;
} gm_span;

typedef struct gm_lane {
    char *memory; /* [GM_RING_BUFFERS][setup->buffer]: pinned by its thread, before the first copy */
    gm_queue *queue;
    struct {
        gm_event *begin, *end;
        int is_copied; /* a copy has begun whose end is not known */
    } buffer[GM_RING_BUFFERS];
    int attached; /* its thread to the device */
    int next;     /* the buffer to be filled */
} gm_lane;

/* Allocates the lane of setup->buffer and its events. A lane that failed to open is closed like any other; its thread
 * has ended. Main thread. GM_EDEVICE. */
int gm_lane_open(const gm_stream_setup *setup, gm_lane *lane);
void gm_lane_close(const gm_stream_setup *setup, gm_lane *lane);

/* Waits until the next buffer may be filled. *span: of the copy that it held, empty if it held none. On the lane's
 * thread. GM_EDEVICE. */
int gm_lane_take(const gm_stream_setup *setup, gm_lane *lane, gm_event *origin, void **buffer, gm_span *span);

/* Waits for the copy of a buffer, if one has begun. *span as above. While the lane's thread does not use it. */
int gm_lane_settle(const gm_stream_setup *setup, gm_lane *lane, int at, gm_event *origin, gm_span *span);

/* Begins to copy bytes [begin, end) of the slot's piece from the buffer that was taken. On the lane's thread. */
int gm_lane_copy(const gm_stream_setup *setup, gm_lane *lane, const gm_slot *slot, int64_t begin, int64_t end);

#endif
