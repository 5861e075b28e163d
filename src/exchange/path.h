/* path.h - a way from device memory of one rank to device memory of another: the table that each fills, and the regions
 * that go. Internal to src/exchange/, but for gm_exchange_region: callers use exchange.h. */
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

/* The purpose that exchanges are opened for. */
typedef struct gm_exchange_setup {
    const gm_device_ops *ops;
    gm_device *device;
    const gm_ranks *ranks;
    int sharers;        /* ranks that share this rank's device, this one included */
    const char *wanted; /* "auto", or the name of a path */
    const char *reason; /* why it is the wanted path; NULL: it was asked for */
    double patience;    /* seconds that a library may take to start, and a probe to arrive; 0: the usual ones */
} gm_exchange_setup;

enum { GM_PATH_VERSION = 32 };

/* The functions are those of exchange.h, of which `state` is the part of the path. fail: the exchange under way fails
 * here with this status, as if the rank had failed before it. */
typedef struct gm_path {
    const char *name, *kernel; /* as options and reports have it; what carries the bytes */
    int is_through_host;       /* each byte crosses the bus to the host, whose limit counts */

    /* Opens it on all ranks, or on none: the status is agreed. version: what it is made of, or "". close is called
     * after a failure as well. Collective. */
    int (*open_all)(const gm_exchange_setup *setup, void **state, char version[GM_PATH_VERSION]);
    void (*close)(void *state);
    void (*begin)(void *state, const gm_exchange_region *send, const gm_exchange_region *receive, gm_event *after,
                  int status);
    int (*advance)(void *state);
    void (*fail)(void *state, int status);
    int (*end)(void *state);
} gm_path;

extern const gm_path gm_path_nccl, gm_path_staged;

#endif
