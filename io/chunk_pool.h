/* chunk_pool.h - where threads decode chunks, and the chunks decoded last. Internal to io/. Thread-safe. */
#ifndef GM_IO_CHUNK_POOL_H
#define GM_IO_CHUNK_POOL_H

#include "io/decode.h"

typedef struct gm_chunk_pool gm_chunk_pool;

/* One place to decode a chunk at. */
typedef struct gm_chunk_work {
    gm_decoder decoder;
    const char *data; /* the elements of its chunk; NULL until they are decoded */
    int64_t chunk;    /* the pool's, as the rest */
    int users;
    uint64_t given; /* when it was used last */
    struct gm_chunk_work *next;
} gm_chunk_work;

enum { GM_CHUNK_NONE = -1 };

/* For the chunks of a pipeline, in rooms of room bytes. No place is made yet. GM_EDEVICE. */
int gm_chunk_pool_open(const gm_pipeline *pipeline, size_t room, gm_chunk_pool **pool);
void gm_chunk_pool_close(gm_chunk_pool *pool); /* takes NULL */

/* A place that has the chunk decoded (data is not NULL), or one for the caller alone to decode it in and say so; of two threads that want the same
 * chunk, the second waits for the first. GM_CHUNK_NONE is for elements that do not stay there. Places are made as long as --host-memory allows, then
 * they are waited for. NULL when there is none at all. */
gm_chunk_work *gm_chunk_pool_take(gm_chunk_pool *pool, int64_t chunk);

/* Its chunk is decoded, or (data NULL) could not be. */
void gm_chunk_pool_decoded(gm_chunk_pool *pool, gm_chunk_work *work, const char *data);

/* The caller no longer looks at it. */
void gm_chunk_pool_give(gm_chunk_pool *pool, gm_chunk_work *work);

#endif
