/* ahead.h - allocates the memory of files on tmpfs before they are written. Internal to io/.
 *
 * A page that is there takes less time to write than one that is not, and pages are allocated while the memory bus is
 * busy with other things. */
#ifndef GM_IO_WRITE_AHEAD_H
#define GM_IO_WRITE_AHEAD_H

typedef struct gm_ahead gm_ahead;

/* Begins to allocate files, from their begin to their size, on `threads` threads of its own. The descriptors stay open
 * until gm_ahead_end(). It saves time only: NULL where it cannot begin, and a file without space is left to those that
 * write it. */
gm_ahead *gm_ahead_begin(const int *descriptors, int files, int threads);

/* Stops it soon, and does not wait. Takes NULL. Thread-safe. */
void gm_ahead_stop(gm_ahead *ahead);

/* Stops it and waits for its threads. Takes NULL. */
void gm_ahead_end(gm_ahead *ahead);

#endif
