/* staged.h - device memory of one rank to device memory of another: a region goes in pieces, by the path
 *
 *   staged   device -> pinned slot -> MPI -> pinned slot -> device
 *            device -> pinned slot that both ranks address -> device   (ranks of one host, where they can share memory)
 *   ipc      device -> device (of two ranks the lower one addresses the other's memory, and copies both ways: window.h)
 *
 * and the stages of different pieces, in both directions, are under way at once. Where a rank addresses memory of its
 * peer a message says that a piece, or room for it, is there, and another one that it has been copied. A device that
 * addresses host memory has no slots: messages go from and to its memory. Both paths wait in `end` alone, so that the
 * main thread, which alone calls MPI, can do other work meanwhile.
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

enum { GM_STAGED_PINNED = (16 << 20) + 2 * GM_ALLOC_OVERHEAD }; /* bytes, unless the device addresses host memory */

/* Opens the queues and slots (GM_STAGED_PINNED at most; is_direct: ipc, without slots) for exchanges of this rank;
 * ranks: lent. GM_EDEVICE: the ranks agree on the status before they exchange. The caller closes it, also after a
 * failure, on all ranks; close takes NULL. Collective. */
int gm_staged_open_all(const gm_device_ops *ops, gm_device *device, const gm_ranks *ranks, int is_direct,
                       gm_staged **staged);
void gm_staged_close_all(gm_staged *staged);

/* gm_exchange_trade() by this path. */
int gm_staged_exchange(gm_staged *staged, const gm_exchange_region *send, const gm_exchange_region *receive,
                       gm_event *after, int status);

#endif
