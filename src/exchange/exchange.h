/* exchange.h - device memory of one rank to device memory of another, by the best path that works here: a table of
 * paths (path.h), of which one is chosen when exchanges are opened, and tried (probe.h).
 *
 *   nccl.c      NCCL: from device to device
 *   staged.h    in pieces: through pinned memory of both hosts, and MPI; and ("ipc") straight from a device of the host
 *   half.h      the pieces of an exchange in one direction, of both
 *   window.h    device memory of other ranks of the host
 *   shared.h    host memory that several ranks address
 *   cut.h       a region as pieces
 *
 * Nothing waits but gm_exchange_end() and gm_exchange_trade(), so that the main thread, which alone calls these
 * functions, can do other work meanwhile.
 *
 * Every rank makes the exchanges that its peers expect of it, in the same order, also after a failure. The failure of a
 * rank, a signal included, is news to all ranks (gm_cancel()), and ends their exchanges; so after a failure the ranks
 * agree (gm_agree_all()), and open exchanges again before the next one: staged and ipc go on without.
 *
 * All of it is between two ranks: what several ranks need goes from one to the next. */
#ifndef GM_SRC_EXCHANGE_EXCHANGE_H
#define GM_SRC_EXCHANGE_EXCHANGE_H

#include "base/memory.h"
#include "src/exchange/path.h"

/* Device memory that exchanges by NCCL take of the program's own, in bytes, beside that of the probe. */
enum { GM_EXCHANGE_DEVICE = (32 << 20) + 2 * GM_ALLOC_OVERHEAD };

typedef struct gm_exchange gm_exchange;

/* The path that was taken, and why. */
typedef struct gm_exchange_choice {
    char path[8];                /* its name; "": none */
    char reason[GM_MESSAGE_MAX]; /* why better ones were not taken, or the one that was asked for; "": for no reason */
    char version[GM_PATH_VERSION]; /* of the library of NCCL, whether it was taken or not; "" where it did not open */
} gm_exchange_choice;

/* Opens exchanges among all ranks of the run: by the path that setup->wanted names, or ("auto") by the first of the
 * table that opens and whose probe succeeds; setup->seconds leaves out those that start slowly. One rank alone gets the
 * last one, without a probe. The probe overwrites the memory of setup->ways. The status is agreed: GM_EDEVICE, GM_EMPI,
 * GM_ESTOPPED. The caller closes it, also after a failure; close takes NULL, and is collective as well. Other ranks may
 * address the memory of regions until then: it is freed later. *choice is filled in either case. Collective. */
int gm_exchange_open_all(const gm_exchange_setup *setup, gm_exchange_choice *choice, gm_exchange **exchange);
void gm_exchange_close_all(gm_exchange *exchange);

/* Adds why a path is not taken to the reasons of those before it. */
void gm_exchange_add_reason(gm_exchange_choice *choice, const char *why);

/* The path number `index`, best first; NULL after the last one. */
const gm_path *gm_exchange_path(int index);

/* Begins to send a region while another one is received; either may be NULL, or empty: no message then. They do not
 * overlap, and stay until gm_exchange_end(). Work starts after `after` (NULL: at once). status: of this rank, which may
 * have failed: then the regions' memory is not touched. One exchange of a process at a time. */
void gm_exchange_begin(gm_exchange *exchange, const gm_exchange_region *send, const gm_exchange_region *receive,
                       gm_event *after, int status);

/* Drives the exchange on and does not wait. Returns 1 when nothing of it is under way any more. */
int gm_exchange_advance(gm_exchange *exchange);

/* Waits for the end of the exchange: what was received is in device memory, what was sent may be changed. Returns the
 * rank's status, or why it failed: GM_EPEER when a peer or another rank has failed, GM_ESTOPPED, GM_EDEVICE, GM_EMPI;
 * GM_EINTERNAL if the rank is its own peer. After a failure the contents of what was received are undefined. */
int gm_exchange_end(gm_exchange *exchange);

/* The rank has failed, with this status: what is under way ends for all ranks, and gm_exchange_end() does not wait for
 * messages of peers that do not come any more. */
void gm_exchange_fail(gm_exchange *exchange, int status);

/* Is an exchange under way: begun, and not ended? */
int gm_exchange_is_under_way(const gm_exchange *exchange);

/* Seconds from begin to end of all exchanges so far. */
double gm_exchange_seconds(const gm_exchange *exchange);

/* Begin and end in one call. */
int gm_exchange_trade(gm_exchange *exchange, const gm_exchange_region *send, const gm_exchange_region *receive,
                      gm_event *after, int status);

/* The rate of messages to the next rank while as many come from the one before, all ranks at once, in bytes per second:
 * *own of this rank, until its own have gone and come; *least of any rank, until those of all have. 0: there is one
 * rank, or no memory for it. Collective; the status is agreed. */
int gm_exchange_rate_all(gm_exchange *exchange, double *own, double *least);

#endif
