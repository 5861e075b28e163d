/* stream_io.h - internal to the ring: the I/O threads, which read files into slots and write slots to files.
 *
 * The main thread submits a slot to the I/O threads and does not touch it until its state says that it is back: READY
 * after a read, FREE after a write. One lock guards all that both sides use: the states of the slots that the I/O
 * threads own, the amount of pending work, the first failure of the run.
 *
 * The main thread calls these functions; program.read and program.write run on the I/O threads. */
#ifndef GM_SRC_STREAM_STREAM_IO_H
#define GM_SRC_STREAM_STREAM_IO_H

#include "src/stream/slot.h"

typedef struct gm_stream_io gm_stream_io;

/* Starts setup->threads threads for setup->depth slots, which need not be open yet. The caller owns setup and slots,
 * which must outlive *io. GM_EDEVICE when there is no memory or no thread can be created. */
int gm_stream_io_open(const gm_stream_setup *setup, gm_slot *slots, gm_stream_io **io);
void gm_stream_io_close(gm_stream_io *io); /* ends the threads; takes NULL */

/* Begins a run: clears its status and its busy times, which the queue's events count. The I/O threads own no slot.
 * GM_EDEVICE. */
int gm_stream_io_begin(gm_stream_io *io, const gm_program *program, gm_queue *queue);

/* Submits a slot: GM_SLOT_READING to as many I/O threads as its piece has readers, GM_SLOT_WRITING to one. After a
 * failure it comes back unread or unwritten. A slot that comes back from a read is pinned. */
void gm_stream_io_submit(gm_stream_io *io, gm_slot *slot, gm_slot_state state);

/* Is enough work pending, so that a new slot would only wait? */
int gm_stream_io_is_busy(gm_stream_io *io);

gm_slot_state gm_stream_io_state(gm_stream_io *io, const gm_slot *slot);

/* Is the slot READY, with its piece's data read? Never after a failure: slots then become READY without data. */
int gm_stream_io_is_ready(gm_stream_io *io, const gm_slot *slot);

/* Merges the main thread's status into the run's and returns that: the first failure of this thread or of an I/O
 * thread. *idle: the I/O threads own no slot. */
int gm_stream_io_merge_status(gm_stream_io *io, int status, int *idle);

/* A count of the events that the main thread waits for: a slot comes back, or the I/O threads can accept more work. */
unsigned gm_stream_io_changes(gm_stream_io *io);

/* Waits until gm_stream_io_changes() differs from `seen`, at most the given number of nanoseconds (less than a second).
 */
void gm_stream_io_wait(gm_stream_io *io, unsigned seen, long nanoseconds);

/* Waits until the I/O threads own no slot, and what they copied is on the device. After a failure. */
void gm_stream_io_drain(gm_stream_io *io);

/* Adds the busy seconds of the run. The I/O threads own no slot. GM_EDEVICE. */
int gm_stream_io_add_times(gm_stream_io *io, gm_phase_times *times);

#endif
