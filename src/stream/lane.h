/* lane.h - internal to the ring: the way of one I/O thread to the device and back. It has pinned buffers, which it
 * takes in turn, and a queue. Data to the device are copied from one of them while it fills the next one; data from the
 * device are copied to the next one while it writes the one before. */
#ifndef GM_SRC_STREAM_LANE_H
#define GM_SRC_STREAM_LANE_H

#include "src/stream/ring_plan.h"
#include "src/stream/slot.h"

typedef enum gm_lane_way { GM_LANE_IN, GM_LANE_OUT, GM_LANE_WAYS } gm_lane_way; /* to the device, from it */

/* The point from which the times of copies count: an event on the device, and when it was done by gm_clock(). */
typedef struct gm_origin {
    gm_event *event;
    double time;
} gm_origin;

/* The time of a copy, or of a part of its wait for copies of other lanes: seconds after the origin. It begins when the
 * copy is given to the device: the link is at work from then on, for this lane or for another one. An event before
 * each copy would tell more, and cost as much as a small copy. Empty for a copy that is not in the sample (sample.h).
 */
typedef struct gm_lane_span {
    gm_lane_way way;
    double begin, end;
} gm_lane_span;

typedef struct gm_lane {
    char *memory; /* [GM_RING_BUFFERS][setup->buffer]: pinned by its thread, before the first copy */
    gm_queue *queue;
    const gm_origin *origin; /* borrowed: of a stream's run */
    struct {
        gm_event *end[2]; /* of the last copy: [1] is timed */
        double begin;     /* of it, seconds after the origin */
        int is_timed;     /* it is in the sample, and end[1] ends it */
        int is_copied;    /* that copy has begun, and its end is not known */
        gm_lane_way way;  /* of it */
    } buffer[GM_RING_BUFFERS];
    int attached; /* its thread to the device */
    int next;     /* the buffer to be taken */
} gm_lane;

/* Allocates the lane of setup->buffer and its events. A lane that failed to open is closed like any other; its thread
 * has ended. Main thread. GM_EDEVICE. */
int gm_lane_open(const gm_stream_setup *setup, const gm_origin *origin, gm_lane *lane);
void gm_lane_close(const gm_stream_setup *setup, gm_lane *lane);

/* Waits until the next buffer may be used. *span: of the copy that it held, empty if it held none. On the lane's
 * thread. GM_EDEVICE. */
int gm_lane_take(const gm_stream_setup *setup, gm_lane *lane, void **buffer, gm_lane_span *span);

/* Waits for the copy of a buffer, if one has begun. *span as above. While the lane's thread does not use it.
 * GM_EDEVICE. */
int gm_lane_settle(const gm_stream_setup *setup, gm_lane *lane, int at, gm_lane_span *span);

/* Begins to copy bytes [begin, end) of what the slot's piece reads from the buffer that was taken, or of what it writes
 * to that buffer. The next buffer is another one then. On the lane's thread. GM_EDEVICE. */
int gm_lane_copy(const gm_stream_setup *setup, gm_lane *lane, const gm_slot *slot, gm_lane_way way, int64_t begin,
                 int64_t end);

#endif
