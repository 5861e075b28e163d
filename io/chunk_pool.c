/* chunk_pool.c - places to decode chunks at. */
#include "io/chunk_pool.h"

#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/status.h"

struct gm_chunk_pool {
    int rooms, inflates;
    size_t room;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a place was decoded or given */
    gm_chunk_work *works;
    uint64_t clock;
};

int gm_chunk_pool_open(const gm_pipeline *pipeline, size_t room, gm_chunk_pool **out)
{
    gm_chunk_pool *pool = calloc(1, sizeof *pool);

    *out = pool;
    if (!pool)
        return gm_fail(GM_EDEVICE, "no memory for a pool of chunks");
    pool->rooms = gm_decode_rooms(pipeline);
    pool->room = (room + 63) / 64 * 64;
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
    while (pool->works) {
        gm_chunk_work *work = pool->works;

        pool->works = work->next;
        libdeflate_free_decompressor(work->decoder.inflater);
        gm_host_free(work->decoder.room[0]);
        free(work);
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

/* One place more; NULL when there is no memory for it. */
static gm_chunk_work *grow(gm_chunk_pool *pool)
{
    gm_chunk_work *work = calloc(1, sizeof *work);
    void *rooms = NULL;

    if (!work || !gm_host_try((size_t)pool->rooms * pool->room, &rooms))
        goto out;
    work->decoder.room[0] = rooms;
    work->decoder.room[1] = pool->rooms > 1 ? work->decoder.room[0] + pool->room : NULL;
    if (pool->inflates && !(work->decoder.inflater = libdeflate_alloc_decompressor()))
        goto out;
    work->next = pool->works;
    pool->works = work;
    return work;
out:
    gm_host_free(rooms);
    free(work);
    return NULL;
}

gm_chunk_work *gm_chunk_pool_take(gm_chunk_pool *pool, int64_t chunk)
{
    gm_chunk_work *found = NULL;

    pthread_mutex_lock(&pool->mutex);
    while (!found) {
        gm_chunk_work *same = NULL, *idle = NULL;

        for (gm_chunk_work *w = pool->works; w; w = w->next) {
            if (chunk != GM_CHUNK_NONE && w->chunk == chunk)
                same = w;
            if (w->users == 0 && (!idle || w->given < idle->given))
                idle = w;
        }
        if (same && same->data) {
            found = same;
        } else if (!same && (idle || (idle = grow(pool)))) {
            found = idle;
            found->chunk = chunk;
            found->data = NULL;
        } else if (!pool->works) {
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

void gm_chunk_pool_decoded(gm_chunk_pool *pool, gm_chunk_work *work, const char *data)
{
    pthread_mutex_lock(&pool->mutex);
    work->data = data;
    if (!data)
        work->chunk = GM_CHUNK_NONE;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

void gm_chunk_pool_give(gm_chunk_pool *pool, gm_chunk_work *work)
{
    pthread_mutex_lock(&pool->mutex);
    work->users--;
    work->given = ++pool->clock;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}
