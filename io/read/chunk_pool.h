/* chunk_pool.h - buffers in which threads decode chunks, and a cache of the chunks decoded last. Internal to io/.
 * Thread-safe. */
#ifndef GM_IO_READ_CHUNK_POOL_H
#define GM_IO_READ_CHUNK_POOL_H

#include "io/read/decode.h"

typedef struct gm_chunk_pool gm_chunk_pool;

/* The buffers of one thread, and the chunk decoded in them. */
typedef struct gm_chunk_entry {
    gm_decoder decoder;
    const char *data; /* the elements of the chunk; NULL until they are decoded */
    int64_t chunk;    /* the pool's, as the rest */
    int users;
    uint64_t released; /* when it was used last */
    struct gm_chunk_entry *next;
} gm_chunk_entry;

enum { GM_CHUNK_NONE = -1 };

/* A pool without entries for the chunks of a pipeline; buffer_bytes: gm_decode_buffer_bytes() or more. GM_EDEVICE. */
int gm_chunk_pool_open(const gm_pipeline *pipeline, size_t buffer_bytes, gm_chunk_pool **pool);
void gm_chunk_pool_close(gm_chunk_pool *pool); /* takes NULL */

/* An entry that holds the chunk decoded (data is not NULL), or one in which the caller alone decodes it and then calls
 * gm_chunk_pool_decoded(). Of two threads that want the same chunk, the second waits for the first; if that fails, the
 * second gets an entry to decode the chunk itself. GM_CHUNK_NONE is for elements that are not kept. Entries are added
 * as long as --host-memory allows, then the one released first is reused, then the call waits. NULL when there is none
 * at all. */
gm_chunk_entry *gm_chunk_pool_acquire(gm_chunk_pool *pool, int64_t chunk);

/* The chunk of an acquired entry is decoded, or (data NULL) could not be. */
void gm_chunk_pool_decoded(gm_chunk_pool *pool, gm_chunk_entry *entry, const char *data);

/* Ends the use of an acquired entry. */
void gm_chunk_pool_release(gm_chunk_pool *pool, gm_chunk_entry *entry);

#endif
