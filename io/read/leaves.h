/* leaves.h - the sources of a virtual dataset that are open: those used last, within the limit on open files and the
 * memory planned. Internal to io/. Thread-safe. */
#ifndef GM_IO_READ_LEAVES_H
#define GM_IO_READ_LEAVES_H

#include "io/bytes.h"
#include "io/read/plain.h"
#include "io/virtual/sources.h"

typedef struct gm_leaves gm_leaves;

/* A source that is open: either plain, or of contiguous bytes. */
typedef struct gm_leaf {
    gm_plain *plain; /* NULL: bytes */
    gm_bytes bytes;
    int source; /* the leaves' own, as the rest; -1: free */
    int users, is_opening;
    uint64_t released;
} gm_leaf;

/* record, title and sources are lent. Memory is charged to GM_HOST. GM_EDEVICE. */
int gm_leaves_open(const gm_dataset *record, const char *title, const gm_sources *sources, gm_leaves **leaves);
void gm_leaves_close(gm_leaves *leaves); /* takes NULL */

/* Bytes that are charged with the given threads, where `room` bytes may be allocated. Pure. */
int64_t gm_leaves_bytes(const gm_dataset *record, int threads, int64_t room);

/* The leaf of a source, opened if it is not; it stays open until it is released. Waits while all places are in use: a
 * thread acquires one leaf at a time. GM_EINPUT, naming the source. */
int gm_leaves_acquire(gm_leaves *leaves, int source, gm_leaf **leaf);
void gm_leaves_release(gm_leaves *leaves, gm_leaf *leaf);

#endif
