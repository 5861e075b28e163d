/* chunk_pool.c - buffers and cache of decoded chunks. */
#include "io/read/chunk_pool.h"

#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/status.h"

struct gm_chunk_pool {
    int buffers, inflates;
    size_t buffer_bytes;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* an entry was decoded or released */
    gm_chunk_entry *entries;
    uint64_t clock;
};

int gm_chunk_pool_open(const gm_pipeline *pipeline, size_t buffer_bytes, gm_chunk_pool **out)
{
    gm_chunk_pool *pool = calloc(1, sizeof *pool);
    *out = pool;
    if (!pool)
        return gm_fail(GM_EDEVICE, "no memory for a pool of chunks");
    pool->buffers = gm_decode_buffers(pipeline);
    pool->buffer_bytes = (buffer_bytes + 63) / 64 * 64;
    for (int i = 0; i < pipeline->count; i++)
        pool->inflates |= pipeline->filter[i].kind == GM_FILTER_DEFLATE;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, NULL);
    return GM_OK;
}

void gm_chunk_pool_close(gm_chunk_pool *pool)
{
    if (!pool)
        return;
    while (pool->entries) {
        gm_chunk_entry *entry = pool->entries;
        pool->entries = entry->next;
        libdeflate_free_decompressor(entry->decoder.inflater);
        gm_host_free(entry->decoder.buffer[0]);
        free(entry);
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

/* Adds an entry; NULL when there is no memory for it. */
static gm_chunk_entry *grow(gm_chunk_pool *pool)
{
    gm_chunk_entry *entry = calloc(1, sizeof *entry);
    void *memory = NULL;
    if (!entry || !gm_host_try((size_t)pool->buffers * pool->buffer_bytes, &memory))
        goto out;
    entry->decoder.buffer[0] = memory;
    entry->decoder.buffer[1] = pool->buffers > 1 ? entry->decoder.buffer[0] + pool->buffer_bytes : NULL;
    if (pool->inflates && !(entry->decoder.inflater = libdeflate_alloc_decompressor()))
        goto out;
    entry->next = pool->entries;
    pool->entries = entry;
    return entry;
out:
    gm_host_free(memory);
    free(entry);
    return NULL;
}

gm_chunk_entry *gm_chunk_pool_acquire(gm_chunk_pool *pool, int64_t chunk)
{
    gm_chunk_entry *found = NULL;
    pthread_mutex_lock(&pool->mutex);
    while (!found) {
        gm_chunk_entry *same = NULL, *idle = NULL;
        for (gm_chunk_entry *e = pool->entries; e; e = e->next) {
            if (chunk != GM_CHUNK_NONE && e->chunk == chunk)
                same = e;
            if (e->users == 0 && (!idle || e->released < idle->released))
                idle = e;
        }
        if (same && same->data) {
            found = same;
        } else if (!same && (idle || (idle = grow(pool)))) {
            found = idle;
            found->chunk = chunk;
            found->data = NULL;
        } else if (!pool->entries) {
            break;
        } else {
            pthread_cond_wait(&pool->changed, &pool->mutex);
        }
    }
    if (found)
        found->users++;
    pthread_mutex_unlock(&pool->mutex);
    return found;
}

void gm_chunk_pool_decoded(gm_chunk_pool *pool, gm_chunk_entry *entry, const char *data)
{
    pthread_mutex_lock(&pool->mutex);
    entry->data = data;
    if (!data)
        entry->chunk = GM_CHUNK_NONE;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

void gm_chunk_pool_release(gm_chunk_pool *pool, gm_chunk_entry *entry)
{
    pthread_mutex_lock(&pool->mutex);
    entry->users--;
    entry->released = ++pool->clock;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}
