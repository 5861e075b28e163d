/* staged.h - device memory of one rank to device memory of another, through pinned memory: a region goes in pieces,
 *
 *   device -> pinned slot -> MPI -> pinned slot -> device
 *
 * and the stages of different pieces, in both directions, are under way at once. A device that addresses host memory
 * has no slots: messages go from and to its memory. Nothing waits but gm_staged_end() and gm_staged_exchange(), so that
 * the main thread, which alone calls MPI, can do other work meanwhile.
 *
 * Every rank makes the exchanges that its peers expect of it, in the same order, also after a failure: a rank that has
 * failed sends notices in place of its pieces and discards what it receives (mpi/exchange.h), and its failure, a signal
 * included, is news to all ranks (gm_cancel()). So after a failure the ranks agree (gm_agree_all()) before the next
 * exchange. Main thread only. */
#ifndef GM_SRC_EXCHANGE_STAGED_H
#define GM_SRC_EXCHANGE_STAGED_H

#include "base/memory.h"
#include "src/exchange/path.h"

typedef struct gm_staged gm_staged;

enum { GM_STAGED_PINNED = (32 << 20) + 2 * GM_ALLOC_OVERHEAD }; /* bytes, unless the device addresses host memory */

/* Opens the queues and slots (GM_STAGED_PINNED) for exchanges of this rank. GM_EDEVICE: the ranks agree on the
 * status before they exchange. The caller closes it, also after a failure; close takes NULL. */
int gm_staged_open(const gm_device_ops *ops, gm_device *device, int rank, gm_staged **staged);
void gm_staged_close(gm_staged *staged);

/* Begins to send a region while another one is received; either may be NULL, or empty: no message then. They do not
 * overlap, and stay until gm_staged_end(). Copies start after `after` (NULL: at once). status: of this rank, which may
 * have failed: then the regions' memory is not touched. One exchange of a process at a time. */
void gm_staged_begin(gm_staged *staged, const gm_exchange_region *send, const gm_exchange_region *receive,
                     gm_event *after, int status);

/* Drives the exchange on and does not wait. Returns 1 when nothing of it is under way any more. */
int gm_staged_advance(gm_staged *staged);

/* The exchange under way fails here with this status, as if the rank had failed before. */
void gm_staged_fail(gm_staged *staged, int status);

/* Waits for the end of the exchange: what was received is in device memory, what was sent may be changed. Returns the
 * rank's status, or why it failed: GM_EPEER when a peer or another rank has failed, GM_ESTOPPED, GM_EDEVICE;
 * GM_EINTERNAL if the rank is its own peer. After a failure the contents of what was received are undefined. */
int gm_staged_end(gm_staged *staged);

/* Begin and end in one call. */
int gm_staged_exchange(gm_staged *staged, const gm_exchange_region *send, const gm_exchange_region *receive,
                       gm_event *after, int status);

#endif
