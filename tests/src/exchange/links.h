/* links.h - for tests of exchanges: regions of device memory that three ranks send to each other by a path, filled with
 * bytes that depend on their place, and looked at when they have arrived. The device's memory is host memory. */
#ifndef GM_TESTS_SRC_EXCHANGE_LINKS_H
#define GM_TESTS_SRC_EXCHANGE_LINKS_H

#include "src/exchange/path.h"

enum { LINK_RANKS = 3 };

/* An open path of this process. */
typedef struct way {
    const gm_path *path;
    void *state;
    const gm_device_ops *ops;
    gm_device *device;
    const gm_ranks *ranks;
    const char *name;
} way;

/* Rows from a rank to another, the same on all ranks. */
typedef struct link {
    int from, to, number;
    int64_t rows, width;
} link;

/* From each rank to the next. */
extern const link link_ring[LINK_RANKS];

/* This rank's part of some links, one from each rank at most; gap: bytes between rows of the source, and twice as many
 * where they arrive. Returns the status; *arrived: what it receives is right, and nothing beside it has changed. */
int link_exchange(const way *w, const link *links, int count, int gap, int status, int *arrived);

/* Tests, TAP: forty random exchanges; pieces of the largest size; data of work that is under way. */
void link_test_random(const way *w);
void link_test_large(const way *w);
void link_test_event(const way *w);

#endif
