/* chunk_pool.c - the pool of chunk buffers: chunks shared by threads, eviction, the limit on memory, failed decodes. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/memory.h"
#include "base/status.h"
#include "io/read/chunk_pool.h"
#include "tests/tap.h"

enum { BUFFER = 100000, THREADS = 8, ROUNDS = 200 };

static const gm_pipeline pipeline = {1, {{GM_FILTER_DEFLATE, 1}}, BUFFER};

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000L}, NULL);
}

/* Memory of one entry. */
static int64_t entry_bytes(void)
{
    int64_t before = gm_memory_used(GM_HOST), bytes;
    gm_chunk_pool *pool;
    gm_chunk_pool_open(&pipeline, BUFFER, &pool);
    gm_chunk_pool_release(pool, gm_chunk_pool_acquire(pool, GM_CHUNK_NONE));
    bytes = gm_memory_used(GM_HOST) - before;
    gm_chunk_pool_close(pool);
    return bytes;
}

/* Room for a number of entries and no more. */
static void allow(int entries)
{
    gm_memory_set_cap(GM_HOST, gm_memory_used(GM_HOST) + entries * entry_bytes() + entry_bytes() / 2);
}

/* --- one thread --- */

/* Acquires a chunk, decodes it if need be, and releases it. Returns whether it had to be decoded. */
static int visit(gm_chunk_pool *pool, int64_t chunk)
{
    gm_chunk_entry *entry = gm_chunk_pool_acquire(pool, chunk);
    int decoded = !entry->data;
    if (decoded) {
        entry->decoder.buffer[0][0] = (char)chunk;
        gm_chunk_pool_decoded(pool, entry, entry->decoder.buffer[0]);
    }
    decoded = decoded || entry->data[0] != (char)chunk;
    gm_chunk_pool_release(pool, entry);
    return decoded;
}

static void check_one_thread(void)
{
    int64_t before = gm_memory_used(GM_HOST), each = entry_bytes();
    gm_chunk_pool *pool;
    gm_chunk_entry *a, *b;
    tap_ok(gm_memory_used(GM_HOST) == before, "a closed pool has released its memory");
    gm_memory_set_cap(GM_HOST, before + 2 * each + each / 2);
    tap_ok(gm_chunk_pool_open(&pipeline, BUFFER, &pool) == GM_OK && gm_memory_used(GM_HOST) == before,
           "a new pool has no entries");
    a = gm_chunk_pool_acquire(pool, GM_CHUNK_NONE);
    b = gm_chunk_pool_acquire(pool, GM_CHUNK_NONE);
    tap_ok(a && b && a != b && !a->data && !b->data, "elements that are not kept are not shared");
    tap_ok(a->decoder.inflater && a->decoder.buffer[0] && a->decoder.buffer[1], "an entry has all that deflate needs");
    gm_chunk_pool_release(pool, a);
    gm_chunk_pool_release(pool, b);

    tap_ok(visit(pool, 1) && visit(pool, 2), "new chunks are decoded");
    tap_ok(!visit(pool, 1) && !visit(pool, 2) && !visit(pool, 1), "chunks are kept");
    tap_ok(visit(pool, 3) && !visit(pool, 1), "the chunk released first is evicted");
    tap_ok(visit(pool, 2), "and is decoded again");
    tap_ok(gm_memory_used(GM_HOST) == before + 2 * each, "in the memory that there is");
    a = gm_chunk_pool_acquire(pool, 1);
    if (!a->data)
        gm_chunk_pool_decoded(pool, a, a->decoder.buffer[0]);
    for (int64_t chunk = 10; chunk < 20; chunk++)
        visit(pool, chunk);
    tap_ok(a->data && a->chunk == 1, "a chunk in use is not evicted");
    gm_chunk_pool_release(pool, a);

    a = gm_chunk_pool_acquire(pool, 30);
    gm_chunk_pool_decoded(pool, a, NULL);
    gm_chunk_pool_release(pool, a);
    tap_ok(visit(pool, 30), "a chunk that failed is not kept");
    gm_chunk_pool_close(pool);
    tap_ok(gm_memory_used(GM_HOST) == before, "nothing is left");

    allow(0);
    gm_chunk_pool_open(&pipeline, BUFFER, &pool);
    tap_ok(gm_chunk_pool_acquire(pool, 1) == NULL, "without memory there is no entry");
    gm_chunk_pool_close(pool);
    gm_chunk_pool_close(NULL);
    gm_memory_set_cap(GM_HOST, INT64_MAX);
}

/* --- threads --- */

typedef struct shared {
    gm_chunk_pool *pool;
    int fail; /* number of decodes, from the first on, that fail */
    atomic_int decodes, delivered, wrong;
} shared;

/* All want the same chunk. */
static void *want_one(void *context)
{
    shared *s = context;
    gm_chunk_entry *entry = gm_chunk_pool_acquire(s->pool, 7);
    if (!entry->data) {
        int failed = atomic_fetch_add(&s->decodes, 1) < s->fail;
        pause_ms(20); /* meanwhile the others come */
        entry->decoder.buffer[0][0] = 7;
        gm_chunk_pool_decoded(s->pool, entry, failed ? NULL : entry->decoder.buffer[0]);
    }
    if (entry->data)
        atomic_fetch_add(&s->delivered, entry->data[0] == 7);
    gm_chunk_pool_release(s->pool, entry);
    return NULL;
}

static void run(void *(*work)(void *context), void *context)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, context);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void check_shared(int entries)
{
    shared s = {.fail = 0};
    allow(entries);
    gm_chunk_pool_open(&pipeline, BUFFER, &s.pool);
    run(want_one, &s);
    tap_ok(s.decodes == 1 && s.delivered == THREADS, "%d threads share one decode, %d entries", THREADS, entries);
    gm_chunk_pool_close(s.pool);

    s = (shared){.fail = 3};
    gm_chunk_pool_open(&pipeline, BUFFER, &s.pool);
    run(want_one, &s);
    tap_ok(s.decodes == 4 && s.delivered == THREADS - 3, "after a failure the next thread decodes");
    gm_chunk_pool_close(s.pool);

    s = (shared){.fail = THREADS};
    gm_chunk_pool_open(&pipeline, BUFFER, &s.pool);
    run(want_one, &s);
    tap_ok(s.decodes == THREADS && s.delivered == 0, "a chunk that cannot be decoded fails in every thread");
    gm_chunk_pool_close(s.pool);
    gm_memory_set_cap(GM_HOST, INT64_MAX);
}

/* Many chunks and few entries. */
static void *want_many(void *context)
{
    static atomic_int threads;
    shared *s = context;
    unsigned state = (unsigned)atomic_fetch_add(&threads, 1) + 1;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t chunk = (int64_t)((state = state * 1103515245u + 12345u) >> 16) % 6;
        gm_chunk_entry *entry = gm_chunk_pool_acquire(s->pool, chunk);
        if (!entry->data) {
            for (int k = 0; k < 1000; k++)
                entry->decoder.buffer[0][k] = (char)chunk;
            gm_chunk_pool_decoded(s->pool, entry, i % 17 ? entry->decoder.buffer[0] : NULL);
        }
        for (int k = 0; k < 1000 && entry->data; k++)
            s->wrong += entry->data[k] != (char)chunk;
        gm_chunk_pool_release(s->pool, entry);
    }
    return NULL;
}

static void check_crowd(int entries)
{
    int64_t before = gm_memory_used(GM_HOST), each = entry_bytes();
    shared s = {.fail = 0};
    allow(entries);
    gm_chunk_pool_open(&pipeline, BUFFER, &s.pool);
    run(want_many, &s);
    tap_ok(s.wrong == 0, "6 chunks, %d threads, %d entries: the right elements", THREADS, entries);
    tap_ok(gm_memory_used(GM_HOST) <= before + entries * each, "within the memory of %d entries", entries);
    gm_chunk_pool_close(s.pool);
    gm_memory_set_cap(GM_HOST, INT64_MAX);
}

static void *want_another(void *context)
{
    shared *s = context;
    gm_chunk_entry *entry = gm_chunk_pool_acquire(s->pool, 2);
    atomic_fetch_add(&s->delivered, 1);
    gm_chunk_pool_release(s->pool, entry);
    return NULL;
}

static void check_wait(void)
{
    shared s = {.fail = 0};
    gm_chunk_entry *entry;
    pthread_t thread;
    int early;
    allow(1);
    gm_chunk_pool_open(&pipeline, BUFFER, &s.pool);
    entry = gm_chunk_pool_acquire(s.pool, 1);
    pthread_create(&thread, NULL, want_another, &s);
    pause_ms(50);
    early = s.delivered;
    gm_chunk_pool_decoded(s.pool, entry, entry->decoder.buffer[0]);
    pause_ms(20);
    early += s.delivered;
    gm_chunk_pool_release(s.pool, entry);
    pthread_join(thread, NULL);
    tap_ok(early == 0 && s.delivered == 1, "a thread waits until the only entry is released");
    gm_chunk_pool_close(s.pool);
    gm_memory_set_cap(GM_HOST, INT64_MAX);
}

int main(void)
{
    check_one_thread();
    check_shared(1);
    check_shared(THREADS);
    check_crowd(1);
    check_crowd(3);
    check_crowd(THREADS);
    check_wait();
    return tap_done();
}
