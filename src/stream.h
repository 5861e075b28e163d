/* stream.h - the ring of pinned slots through which every byte of an operation goes:
 *
 *   file -> (reader threads) slot -> device -> kernel -> device -> slot (writer threads) -> file
 *
 * An operation says what its pieces are and what happens to one (gm_program); the ring keeps many of them in flight. A slot is, in this
 * order, skipping what its piece does not need:
 *
 *   FREE         the ring's
 *   READING      I/O threads', running program.read, each for a share of it; a piece that is received from another rank has program.receive on the main thread
 *   READY        the ring's: waits for its turn, pieces go to the device in order
 *   TO_DEVICE    the device's: work enqueued by program.to_device on the queue `in`
 *   RUNNING      the device's: program.compute on the queue `compute`
 *   FROM_DEVICE  the device's: program.from_device on the queue `out`
 *   WRITING      an I/O thread's, running program.write; a piece that is sent to another rank has program.send on the main thread
 *
 * After a failure nothing new is read, computed or written; pieces that meet another rank are still walked through, with no data, so that
 * this rank misses no appointment (mpi/exchange.h). */
#ifndef GM_SRC_STREAM_H
#define GM_SRC_STREAM_H

#include "base/device.h"
#include "mpi/ranks.h"
#include "src/share.h"

#include <stddef.h>

/* One piece of work: a rectangle of one of the operation's matrices. What kind, matrix, leaf, step and last
 * mean is the operation's. */
typedef struct gm_piece {
    int kind;
    int matrix;
    int64_t row, rows, col, cols;
    int64_t at_row, at_col; /* where it belongs in what it is a part of */
    int64_t leaf, leaves;   /* first leaf, and how many */
    int64_t step;
    int peer; /* the rank to send to or receive from */
    int last; /* of the pieces that belong together */
    unsigned stages; /* GM_STAGE_* */
    int readers;     /* threads that read it together; 0: one */
    int verifies;    /* its compute stage counts as GM_PHASE_VERIFY */
    int64_t bytes;   /* that the piece moves from or to a file, for the progress shown */
} gm_piece;

enum {
    GM_STAGE_READ = 1,
    GM_STAGE_RECEIVE = 2,
    GM_STAGE_TO_DEVICE = 4,
    GM_STAGE_COMPUTE = 8,
    GM_STAGE_FROM_DEVICE = 16,
    GM_STAGE_SEND = 32,
    GM_STAGE_WRITE = 64,
    GM_STAGE_DONE = 128, /* program.done on the main thread, when all work of the piece on the device is over */
};

typedef struct gm_slot_memory {
    void *host;    /* piece bytes, pinned from its first copy on */
    void *device;  /* its twin on the device; host itself on a device that addresses host memory */
} gm_slot_memory;

/* All callbacks return a gm_status. read and write run on I/O threads, several at a time, each on its own slot or share of one; the others on the main
 * thread, in the order of the pieces. Those of stages that no piece has may be NULL. */
typedef struct gm_program {
    void *context;
    /* The next piece; *more = 0 when there is none. */
    int (*next)(void *context, gm_piece *piece, int *more);
    int (*read)(void *context, const gm_piece *piece, gm_share share, void *host); /* host: the whole piece's */
    int (*receive)(void *context, const gm_piece *piece, void *host); /* host NULL: this rank has failed */
    /* Makes a queue wait for what this stage of the piece needs beside the stages before it; what it waits is not busy time. May be NULL. */
    int (*await)(void *context, const gm_piece *piece, unsigned stage, gm_queue *queue);
    int (*to_device)(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in);
    int (*compute)(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *compute);
    int (*from_device)(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out);
    int (*send)(void *context, const gm_piece *piece, const void *host); /* host NULL: this rank has failed */
    int (*write)(void *context, const gm_piece *piece, const void *host);
    int (*done)(void *context, const gm_piece *piece, const void *host);
} gm_program;

typedef enum gm_phase {
    GM_PHASE_OPEN,
    GM_PHASE_READ,
    GM_PHASE_TO_DEVICE,
    GM_PHASE_COMPUTE,
    GM_PHASE_EXCHANGE,
    GM_PHASE_FROM_DEVICE,
    GM_PHASE_WRITE,
    GM_PHASE_VERIFY,
    GM_PHASES
} gm_phase;

/* Busy seconds of a phase: while at least one thread or the device was at it. */
typedef struct gm_phase_times {
    double seconds[GM_PHASES];
} gm_phase_times;

typedef struct gm_stream_setup {
    const gm_device_ops *ops;
    gm_device *device;
    const gm_ranks *ranks;
    int64_t piece, depth; /* bytes of a slot; their number at most: one is allocated when no other is free */
    int threads;          /* for reading and writing */
    void (*progress)(void *context, int64_t bytes); /* after each piece, main thread; may be NULL */
    void *progress_context;
} gm_stream_setup;

enum { GM_SLOT_ALIGN = 256 }; /* bytes: what a slot takes of the device's memory is a multiple of it */

typedef struct gm_stream gm_stream;

/* Allocates the first slot and starts threads. GM_EDEVICE when memory does not suffice. Not collective. */
int gm_stream_open(const gm_stream_setup *setup, gm_stream **stream);
void gm_stream_close(gm_stream *stream); /* takes NULL */

/* The queue of the first stage on the device: for an event that marks what was put into it so far. */
gm_queue *gm_stream_in(gm_stream *stream);

/* Runs a program to its end, or to the first failure here or on another rank (GM_EPEER). Returns when no slot is in use. Not collective by
 * itself; ranks whose pieces meet must all run it. Adds to *times. */
int gm_stream_run(gm_stream *stream, const gm_program *program, gm_phase_times *times);

#endif
