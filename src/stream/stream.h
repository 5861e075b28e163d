/* stream.h - the ring of slots through which every byte of an operation goes:
 *
 *   file -> (reader threads) slot -> device -> kernel -> device -> slot (writer threads) -> file
 *
 * An operation says what its pieces are and what happens to one (gm_program); the ring keeps many of them in flight. A
 * slot passes these states in order and skips those that its piece does not need:
 *
 *   FREE        the ring's
 *   READING     the I/O threads': program.read, each thread for a share of the piece
 *   READY       the ring's: the piece waits for its turn, as pieces go to the device in order, and then for what else
 *               it needs (program.await_turn); a piece that another rank sends is received here (program.receive, main
 *               thread)
 *   ON_DEVICE   the device's: three stages, each on a queue of its own
 *                   to_device    the copy of what was read, then program.to_device, on the queue `in`
 *                   compute      program.compute on the queue `compute`
 *                   from_device  program.from_device, or the copy of what is written, on the queue `out`
 *               then a piece for another rank is sent (program.send, main thread)
 *   WRITING     an I/O thread's: program.write
 *
 * A slot has pinned host memory of a piece's size. Where the plan gives the I/O threads buffers instead (setup.buffer),
 * a thread reads a share in steps of a buffer, and copies each step to the device at once, on a queue of its own
 * (lane.h): the processor's caches hold a buffer from the file to the copy, and little memory is pinned. The piece is
 * READY when all its copies have begun, and its first device stage waits for them: compute, where program.to_device has
 * nothing to add. In the same way back, the thread that writes a piece (piece.out) copies each step from the device
 * itself, and the piece skips from_device, unless program.from_device, program.send or program.done wants it in host
 * memory.
 *
 * After a failure nothing new is read, computed or written. Sends and receives still take place, without data, so that
 * no other rank waits for this one (mpi/exchange.h). */
#ifndef GM_SRC_STREAM_STREAM_H
#define GM_SRC_STREAM_STREAM_H

#include "base/device.h"
#include "base/range.h"

#include <stddef.h>

/* One piece of work: a rectangle of one of the operation's matrices. The operation defines the meaning of kind, matrix,
 * leaf, step, block and last. */
typedef struct gm_piece {
    int kind;
    int matrix;
    int64_t row, rows, col, cols;
    int64_t at_row, at_col; /* its place in the block that it is a part of */
    int64_t leaf, leaves;   /* first leaf, number of leaves */
    int64_t at_k;           /* where its leaves begin in the panels of its step */
    int64_t step, block;
    int64_t in;                 /* bytes that are read, one after the other, and that the ring copies to the device */
    int64_t in_from;            /* the first of them, counted from where units of in_unit bytes begin */
    int64_t in_unit;            /* bytes: the shares of several threads end with units */
    void *in_place;             /* where they go on the device, and nothing under way reads or writes; NULL: the slot */
    int64_t in_width, in_pitch; /* of in_place: bytes of a row, and from one row to the next; pitch 0: no gaps */
    int64_t out;                /* bytes that are written, one after the other, and that the ring copies back */
    int64_t out_unit;           /* bytes: parts that are written end with units, or with buffers that hold none */
    const void *out_place;      /* where they are on the device, unchanged until they are written; NULL: the slot */
    int peer;                   /* the rank to send to or receive from */
    int last;                   /* of the pieces that belong together */
    unsigned stages;            /* GM_STAGE_* */
    int readers;                /* threads that share its read; 0: one, and no unit is needed */
    int verifies;               /* the time of its compute stage is added to GM_PHASE_VERIFY */
    int64_t bytes;              /* moved from or to a file, for the progress display */
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
    void *host;   /* setup.piece bytes, pinned before their first copy; NULL where I/O threads have buffers */
    void *out;    /* host memory of the bytes from setup.out_at on: what comes back from the device, or is received */
    void *device; /* setup.piece bytes on the device; host itself on a device that addresses host memory */
} gm_slot_memory;

/* Is there a next piece? LATER: not before drive() is further on. */
enum { GM_MORE_NONE, GM_MORE_NOW, GM_MORE_LATER };

/* All callbacks return a gm_status. read and write run on I/O threads, several at a time, each on its own slot or its
 * own part of one; the others run on the main thread, in the order of the pieces. The callback of a stage that no piece
 * has may be NULL. Where they take `out`, it is the slot's. */
typedef struct gm_program {
    void *context;
    int (*next)(void *context, gm_piece *piece, int *more); /* the next piece, where *more is GM_MORE_NOW */
    /* Bytes `part` of the piece.in bytes, to memory that begins with the first of them. */
    int (*read)(void *context, const gm_piece *piece, gm_range part, void *to);
    int (*receive)(void *context, const gm_piece *piece, void *out); /* out NULL: this rank has failed */
    /* Makes the queue wait for whatever this stage of the piece needs besides the earlier stages; this wait is not
     * counted as busy time. Not for what an I/O thread copies from the device: that begins when the stages before are
     * done. May be NULL. */
    int (*await)(void *context, const gm_piece *piece, unsigned stage, gm_queue *queue);
    /* After the copy of what was read; NULL: nothing else is to be done. */
    int (*to_device)(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in);
    int (*compute)(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *compute);
    /* NULL: the ring copies piece.out bytes. */
    int (*from_device)(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out);
    int (*send)(void *context, const gm_piece *piece, const void *out); /* out NULL: this rank has failed */
    /* Bytes `part` of the piece.out bytes, from memory that begins with the first of them: all at once, or part by
     * part, in order, where the thread has buffers. With piece.out 0 the part is empty, and `from` is the slot's `out`.
     */
    int (*write)(void *context, const gm_piece *piece, gm_range part, const void *from);
    int (*done)(void *context, const gm_piece *piece, const void *out);
    /* *is_there: is what the piece needs besides its read there, from another rank say? Asked at its turn again and
     * again until it is: does not wait. May be NULL. */
    int (*await_turn)(void *context, const gm_piece *piece, int *is_there);
    /* Moves on what the program does beside its pieces, exchanges say, in each turn of the main thread: does not wait.
     * *is_under_way: it is to be called again soon. May be NULL. */
    int (*drive)(void *context, int *is_under_way);
    /* After a failure (status) on this rank: completes, on the main thread, what other ranks expect of it. May be NULL.
     */
    void (*abandon)(void *context, int status);
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
    int64_t buffer;       /* bytes of an I/O thread's buffer; 0: slots have host memory. All pieces that are read then
                             have the stage to_device */
    int64_t out_at;       /* what comes back, or is received, lies in a slot from out_at on */
    int64_t out;          /* with buffers: bytes of it that a slot has host memory for, 0 where I/O threads copy all */
    int threads;          /* for reading and writing */
    void (*progress)(void *context, int64_t bytes); /* after each piece, main thread; may be NULL */
    void *progress_context;
} gm_stream_setup;

/* Bytes: a slot takes a multiple of it of device memory, and its parts begin at multiples of it. */
enum { GM_SLOT_ALIGN = 256 };

typedef struct gm_stream gm_stream;

/* Allocates the first slot and the device memory of all slots, and starts the I/O threads. setup is copied; its device
 * must outlive the stream. GM_EDEVICE when there is too little memory or no thread can be created. Not collective. */
int gm_stream_open(const gm_stream_setup *setup, gm_stream **stream);
void gm_stream_close(gm_stream *stream); /* takes NULL */

/* The queue `in` of the first device stage, for an event that marks the work enqueued so far. */
gm_queue *gm_stream_in(gm_stream *stream);

/* Runs a program to its end, or to the first failure on this rank or on another one (GM_EPEER). Returns when no slot is
 * in use. Not collective, but ranks that send pieces to each other must all run it. Adds to *times. */
int gm_stream_run(gm_stream *stream, const gm_program *program, gm_phase_times *times);

#endif
