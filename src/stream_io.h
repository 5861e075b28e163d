/* stream_io.h - inside the ring: the I/O threads' side, which fills slots from the file and empties them into it.
 *
 * The main thread gives a slot to the I/O threads and keeps its hands off until its state says that it is back: READY after a read, FREE after a write.
 * One lock guards what both sides look at: the states of the slots that I/O threads have, how much they have to do, the first failure of the run.
 *
 * Everything here is called by the main thread; program.read and program.write run on the I/O threads. */
#ifndef GM_SRC_STREAM_IO_H
#define GM_SRC_STREAM_IO_H

#include "src/slot.h"

typedef struct gm_stream_io gm_stream_io;

/* Starts setup->threads threads for setup->depth slots, which need not be opened yet. Setup and slots stay the caller's, and must outlive it. GM_EINTERNAL
 * when the system gives no thread. */
int gm_stream_io_open(const gm_stream_setup *setup, gm_slot *slots, gm_stream_io **io);
void gm_stream_io_close(gm_stream_io *io); /* ends the threads; takes NULL */

/* A run begins: no failure so far, no busy time. No slot is with the I/O threads. */
void gm_stream_io_begin(gm_stream_io *io, const gm_program *program);

/* Gives the piece of a slot to the I/O threads: GM_SLOT_READING, to as many as it has readers, or GM_SLOT_WRITING, to one. After a failure they give it back
 * unread or unwritten. What was read into is pinned when it comes back. */
void gm_stream_io_give(gm_stream_io *io, gm_slot *slot, gm_slot_state state);

/* Have the I/O threads more to do than they can begin at once? */
int gm_stream_io_is_busy(gm_stream_io *io);

gm_slot_state gm_stream_io_state(gm_stream_io *io, const gm_slot *slot);

/* Is the slot READY, with what its piece wanted read? After a failure nothing is, and slots become READY without. */
int gm_stream_io_is_ready(gm_stream_io *io, const gm_slot *slot);

/* Notes the main thread's status. Returns the run's first failure, of this thread or of an I/O thread; *at_rest: the I/O threads have no slot. */
int gm_stream_io_note(gm_stream_io *io, int status, int *at_rest);

/* How often something has changed for the main thread: a slot came back, or the I/O threads could do with more. */
unsigned gm_stream_io_changes(gm_stream_io *io);

/* Waits until there is a change after those that were seen, but no longer than so many nanoseconds (less than a second). */
void gm_stream_io_wait(gm_stream_io *io, unsigned seen, long nanoseconds);

/* Waits until the I/O threads have no slot. */
void gm_stream_io_drain(gm_stream_io *io);

/* Adds the busy seconds of the run. The I/O threads have no slot. */
void gm_stream_io_add_times(const gm_stream_io *io, gm_phase_times *times);

#endif
