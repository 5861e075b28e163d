/* path.h - a path from device memory of one rank to device memory of another: the table that each fills, which is
 * internal to src/exchange/; and what callers of exchange.h describe: the regions that go, and what they are opened
 * for.
 */
#ifndef GM_SRC_EXCHANGE_PATH_H
#define GM_SRC_EXCHANGE_PATH_H

#include "base/device.h"
#include "mpi/ranks.h"

/* Rows of device memory, and the rank that they go to or come from. Both ends have the same rows and width; the pitch
 * is each one's own. */
typedef struct gm_exchange_region {
    int peer;
    void *memory;        /* [rows][pitch] bytes, of which `width` in each row count */
    size_t pitch, width; /* bytes */
    int64_t rows;
} gm_exchange_region;

/* Device memory that exchanges are made from and to, and the ranks that it goes to and comes from, which have the same
 * entry of their own; both are -1 where this rank has none. */
typedef struct gm_exchange_way {
    char *memory;
    int64_t bytes;
    int to, from;
} gm_exchange_way;

/* The purpose that exchanges are opened for. */
typedef struct gm_exchange_setup {
    const gm_device_ops *ops;
    gm_device *device;
    const gm_ranks *ranks;
    int sharers;                 /* ranks that share this rank's device, this one included */
    const char *wanted;          /* "auto", or the name of a path */
    const char *reason;          /* why it is the wanted path; NULL: it was asked for */
    const gm_exchange_way *ways; /* the probe tries these, and overwrites their memory; as many on all ranks. 0: it
                                  * tries a ring of all ranks, in memory of its own */
    int way_count;
    double patience; /* seconds that a library may take to start, and a probe to arrive; 0: the usual ones */
    double seconds;  /* of all exchanges through the host, the same on all ranks: "auto" passes over paths that take
                      * longer to start; INFINITY: it is not known, and all are tried */
} gm_exchange_setup;

enum { GM_PATH_VERSION = 32 };

/* The functions are those of exchange.h, of which `state` is the part of the path. fail: the exchange under way fails
 * here with this status, as if the rank had failed before it. */
typedef struct gm_path {
    const char *name, *kernel; /* as options and reports have it; what carries the bytes */
    int is_through_host;       /* each byte crosses the bus to the host, whose limit counts */
    int is_addressed;          /* other ranks address the memory of regions until the path is closed */
    double start_s;            /* seconds, about, until its first exchange is done */
    const char *too_slow;      /* why it is passed over: that is longer than the exchanges take */

    /* Opens it on all ranks, or on none: the status is agreed. version: what it is made of, or "". close_all is called
     * after a failure as well, on all ranks. Collective. */
    int (*open_all)(const gm_exchange_setup *setup, void **state, char version[GM_PATH_VERSION]);
    void (*close_all)(void *state);
    void (*begin)(void *state, const gm_exchange_region *send, const gm_exchange_region *receive, gm_event *after,
                  int status);
    int (*advance)(void *state);
    void (*fail)(void *state, int status);
    int (*end)(void *state);
} gm_path;

extern const gm_path gm_path_ipc, gm_path_nccl, gm_path_staged;

#endif
