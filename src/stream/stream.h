/* stream.h - the ring of pinned slots through which every byte of an operation goes:
 *
 *   file -> (reader threads) slot -> device -> kernel -> device -> slot (writer threads) -> file
 *
 * An operation says what its pieces are and what happens to one (gm_program); the ring keeps many of them in flight. A
 * slot passes these states in order and skips those that its piece does not need:
 *
 *   FREE        the ring's
 *   READING     the I/O threads': program.read, each thread for a share of the piece
 *   READY       the ring's: the piece waits for its turn, as pieces go to the device in order; a piece that another
 *               rank sends is received here (program.receive, main thread)
 *   ON_DEVICE   the device's: three stages, each on a queue of its own
 *                   to_device    program.to_device on the queue `in`
 *                   compute      program.compute on the queue `compute`
 *                   from_device  program.from_device on the queue `out`
 *               then a piece for another rank is sent (program.send, main thread)
 *   WRITING     an I/O thread's: program.write
 *
 * After a failure nothing new is read, computed or written. Sends and receives still take place, without data, so that
 * no other rank waits for this one (mpi/exchange.h). */
#ifndef GM_SRC_STREAM_H
#define GM_SRC_STREAM_H

#include "base/device.h"
#include "src/stream/share.h"

#include <stddef.h>

/* One piece of work: a rectangle of one of the operation's matrices. The operation defines the meaning of kind, matrix,
 * leaf, step and last. */
typedef struct gm_piece {
    int kind;
    int matrix;
    int64_t row, rows, col, cols;
    int64_t at_row, at_col; /* its place in the block that it is a part of */
    int64_t leaf, leaves;   /* first leaf, number of leaves */
    int64_t step;
    int peer;        /* the rank to send to or receive from */
    int last;        /* of the pieces that belong together */
    unsigned stages; /* GM_STAGE_* */
    int readers;     /* threads that share its read; 0: one */
    int verifies;    /* the time of its compute stage is added to GM_PHASE_VERIFY */
    int64_t bytes;   /* moved from or to a file, for the progress display */
} gm_piece;

enum {
    GM_STAGE_READ = 1,
    GM_STAGE_RECEIVE = 2,
    GM_STAGE_TO_DEVICE = 4,
    GM_STAGE_COMPUTE = 8,
    GM_STAGE_FROM_DEVICE = 16,
    GM_STAGE_SEND = 32,
    GM_STAGE_WRITE = 64,
    GM_STAGE_DONE = 128, /* program.done on the main thread, after all work of the piece on the device */
};

typedef struct gm_slot_memory {
    void *host;   /* setup.piece bytes, pinned before their first copy */
    void *device; /* as many bytes on the device; host itself on a device that addresses host memory */
} gm_slot_memory;

/* All callbacks return a gm_status. read and write run on I/O threads, several at a time, each on its own slot or its
 * own share of one; the others run on the main thread, in the order of the pieces. The callback of a stage that no
 * piece has may be NULL. */
typedef struct gm_program {
    void *context;
    /* The next piece; *more = 0 when there is none. */
    int (*next)(void *context, gm_piece *piece, int *more);
    int (*read)(void *context, const gm_piece *piece, gm_share share, void *host); /* host: of the whole piece */
    int (*receive)(void *context, const gm_piece *piece, void *host);              /* host NULL: this rank has failed */
    /* Makes the queue wait for whatever this stage of the piece needs besides the earlier stages; this wait is not
     * counted as busy time. May be NULL. */
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

const char *gm_phase_name(gm_phase phase); /* "to_device" */

/* Busy seconds of each phase: the time in which at least one thread or the device worked on it. */
typedef struct gm_phase_times {
    double seconds[GM_PHASES];
} gm_phase_times;

typedef struct gm_stream_setup {
    const gm_device_ops *ops;
    gm_device *device;
    int64_t piece, depth; /* bytes of a slot; largest number of slots: one is allocated when no other is free */
    int threads;          /* for reading and writing */
    void (*progress)(void *context, int64_t bytes); /* after each piece, main thread; may be NULL */
    void *progress_context;
} gm_stream_setup;

enum { GM_SLOT_ALIGN = 256 }; /* bytes: a slot takes a multiple of it of device memory */

typedef struct gm_stream gm_stream;

/* Allocates the first slot and the device memory of all slots, and starts the I/O threads. setup is copied; its device
 * must outlive the stream. GM_EDEVICE when there is too little memory or no thread can be created. Not collective. */
int gm_stream_open(const gm_stream_setup *setup, gm_stream **stream);
void gm_stream_close(gm_stream *stream); /* NULL is allowed */

/* The queue `in` of the first device stage, for an event that marks the work enqueued so far. */
gm_queue *gm_stream_in(gm_stream *stream);

/* Runs a program to its end, or to the first failure on this rank or on another one (GM_EPEER). Returns when no slot is
 * in use. Not collective, but ranks that send pieces to each other must all run it. Adds to *times. */
int gm_stream_run(gm_stream *stream, const gm_program *program, gm_phase_times *times);

#endif
