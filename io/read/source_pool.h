/* source_pool.h - the sources of a virtual dataset that are open: those used last, within the limit on open files and
 * the memory planned. Internal to io/. Thread-safe. */
#ifndef GM_IO_READ_SOURCE_POOL_H
#define GM_IO_READ_SOURCE_POOL_H

#include "io/bytes.h"
#include "io/read/plain.h"
#include "io/virtual/sources.h"

typedef struct gm_source_pool gm_source_pool;

/* A source that is open: either plain, or of contiguous bytes. */
typedef struct gm_source_entry {
    gm_plain *plain; /* NULL: bytes */
    gm_bytes bytes;
    int source; /* the pool's, as the rest; -1: free */
    int users, is_opening;
    uint64_t released;
} gm_source_entry;

/* record, title and sources are lent. Memory is charged to GM_HOST. GM_EDEVICE. */
int gm_source_pool_open(const gm_dataset *record, const char *title, const gm_sources *sources, gm_source_pool **pool);
void gm_source_pool_close(gm_source_pool *pool); /* takes NULL */

/* Bytes that are charged with the given threads, where `room` bytes may be allocated. Pure. */
int64_t gm_source_pool_bytes(const gm_dataset *record, int threads, int64_t room);

/* The entry of a source, opened if it is not; it stays open until it is released. Waits while all places are in use: a
 * thread acquires one entry at a time. GM_EINPUT, naming the source. */
int gm_source_pool_acquire(gm_source_pool *pool, int source, gm_source_entry **entry);
void gm_source_pool_release(gm_source_pool *pool, gm_source_entry *entry);

#endif
