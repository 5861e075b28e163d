/* checked_program.h - for tests of the ring: a program of pieces of all kinds on the late device, which checks that
 * every value arrives once, whole and in order. */
#ifndef GM_TESTS_SRC_STREAM_CHECKED_PROGRAM_H
#define GM_TESTS_SRC_STREAM_CHECKED_PROGRAM_H

#include "src/stream/stream.h"

#include <stdatomic.h>
#include <stdint.h>

enum { PIECES = 150, ITEMS = 64, BYTES = ITEMS * 8 /* of a slot */, PANELS = 2, KINDS = 8 /* of pieces */ };

typedef struct operation {
    int next, in_turn;                      /* in_turn: 1 + the kind of all pieces; 0: all kinds in turn */
    int has_buffers;                        /* the ring's threads: all that is read goes to the device */
    int by_ring;                            /* the ring copies from the device, every other piece from `results` */
    unsigned fail_stage;                    /* GM_STAGE_*, 0: none */
    int fail_at;                            /* the piece whose fail_stage fails with GM_EINPUT */
    atomic_int wrong, reads, writes, parts; /* parts: of what is written, in bytes */
    atomic_int late; /* parts that were written after the failure of an earlier one of their piece */
    int received, sent, done;
    int failures;                 /* sends and receives without data */
    int last_sent, last_done;     /* pieces */
    int64_t moved;                /* bytes that the ring's progress has reported; set by the test */
    int64_t panel[PANELS][ITEMS]; /* of the device: filled on the first queue, used on the second */
    gm_event *used[PANELS];
    int64_t sum;                    /* of the device */
    int64_t results[PIECES][ITEMS]; /* of the device */
} operation;

/* Opens the events of *o, which close_operation() closes; clears neither counts nor the planted failure. */
int open_operation(operation *o, gm_device *device);
void close_operation(operation *o);

/* The program of *o, for gm_stream_run(). */
gm_program program_of(operation *o);

/* Has every piece passed all its stages with correct values? */
int is_complete(const operation *o);

/* Has every send and every receive taken place once, as the other ranks expect, and nothing been written after the
 * planted failure of a write? */
int has_exchanged_all(const operation *o);

#endif
