/* source_pool.c - opens and closes the sources of a virtual dataset. */
#include "io/read/source_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/cold.h"
#include "io/read/chunk_read.h"
#include "io/read/chunks.h"

/* Files that one virtual dataset keeps open at most; those that the rest of the program needs; the part of the others
 * that is for one input. */
enum { FILES_MAX = 256, FILES_APART = 32, FILES_SHARE = 4 };

enum { COLD_FILES = 3 }; /* descriptors of a source that is read by O_DIRECT */

enum { SMALL_SHARE = 64 }; /* of the memory, for sources that are open and not in use */

struct gm_source_pool {
    const gm_dataset *record;
    const char *title;
    const gm_sources *sources;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* an entry was opened, or released */
    int *place;             /* [sources]: index of its entry; -1: none */
    gm_source_entry *entry;
    int entries;           /* places */
    int cold;              /* files are few enough for O_DIRECT */
    int large, large_kept; /* plain entries that are open; as many may be while they are not in use */
    int64_t charged;
    int spare; /* one plain entry is charged for good: it never lacks memory */
    uint64_t clock;
};

/* --- Plans --- */

static int files_max(void)
{
    struct rlimit limit;
    int64_t files = FILES_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT32_MAX)
        files = ((int64_t)limit.rlim_cur - FILES_APART) / FILES_SHARE;
    return (int)gm_max(1, gm_min(files, FILES_MAX));
}

/* A plain entry with buffers for one thread. */
static int64_t large_bytes(const gm_dataset *record, int64_t room)
{
    int64_t chunks = 0;
    if (record->chunked_sources)
        chunks = gm_chunk_reader_estimate(gm_mul_sat(record->source_chunks, GM_CHUNK_TABLE_BYTES),
                                          record->source_chunk_bytes, record->filtered_sources > 0, 1, room);
    return gm_add_sat(gm_plain_bytes(), chunks);
}

static int large_kept(const gm_dataset *record, int64_t room)
{
    int64_t all = (int64_t)record->chunked_sources + record->serial_sources;
    return (int)gm_min(gm_min(all, files_max()), room / SMALL_SHARE / large_bytes(record, room));
}

/* The places of the sources of a table, and the entries. */
static int64_t table_bytes(int64_t sources)
{
    return sources * (int64_t)sizeof(int) + gm_min(sources, files_max()) * (int64_t)sizeof(gm_source_entry);
}

int64_t gm_source_pool_bytes(const gm_dataset *record, int threads, int64_t room)
{
    int64_t all = (int64_t)record->chunked_sources + record->serial_sources;
    int64_t bytes = gm_add_sat(table_bytes(record->sources_bytes / (int64_t)sizeof(gm_source)), GM_ALLOC_OVERHEAD);
    int64_t large = gm_max(gm_min(gm_min(threads, all), files_max()), large_kept(record, room));
    return gm_add_sat(gm_add_sat(record->sources_bytes, bytes), gm_mul_sat(large, large_bytes(record, room)));
}

/* --- Opening and closing --- */

static int fail_memory(const char *title, int64_t bytes)
{
    char text[GM_SIZE_TEXT];
    return gm_fail(GM_EDEVICE, "%s: --host-memory leaves too little to read it, expected %s", title,
                   gm_size_format(bytes, text));
}

int gm_source_pool_open(const gm_dataset *record, const char *title, const gm_sources *sources, gm_source_pool **out)
{
    gm_source_pool *pool = calloc(1, sizeof *pool);
    int64_t direct = 0;
    void *memory = NULL;
    *out = NULL;
    if (!pool)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    pool->record = record;
    pool->title = title;
    pool->sources = sources;
    pool->large_kept = large_kept(record, gm_memory_cap(GM_HOST));
    pool->entries = (int)gm_min(gm_max(sources->sources, 1), files_max());
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, NULL);
    if (gm_host_try_charge(record->sources_bytes))
        pool->charged = record->sources_bytes;
    pool->spare = pool->charged && record->chunked_sources + record->serial_sources > 0 &&
                  gm_host_try_charge(gm_plain_bytes());
    if (!pool->charged || !gm_host_try((size_t)table_bytes(sources->sources), &memory)) {
        gm_source_pool_close(pool);
        return fail_memory(title, gm_source_pool_bytes(record, 1, gm_memory_cap(GM_HOST)));
    }
    pool->entry = memory;
    pool->place = (int *)(void *)(pool->entry + pool->entries);
    for (int64_t i = 0; i < sources->sources; i++) {
        pool->place[i] = -1;
        direct += sources->source[i].kind == GM_SOURCE_DIRECT;
    }
    for (int i = 0; i < pool->entries; i++)
        pool->entry[i] = (gm_source_entry){.source = -1, .bytes.fd = -1};
    pool->cold = direct * COLD_FILES <= files_max();
    *out = pool;
    return GM_OK;
}

/* The charge of a plain entry. */
static int charge_plain(const gm_source_pool *pool)
{
    return pool->large < pool->spare || gm_host_try_charge(gm_plain_bytes());
}

static void release_plain(gm_source_pool *pool)
{
    pool->large--;
    if (pool->large >= pool->spare)
        gm_host_release_charge(gm_plain_bytes());
}

/* Of an entry that no thread uses. */
static void close_entry(gm_source_pool *pool, gm_source_entry *entry)
{
    if (entry->source < 0)
        return;
    gm_cold_close(entry->bytes.cold);
    if (entry->bytes.fd >= 0)
        close(entry->bytes.fd);
    free((char *)entry->bytes.title);
    if (entry->plain) {
        gm_plain_close(entry->plain);
        release_plain(pool);
    }
    pool->place[entry->source] = -1;
    *entry = (gm_source_entry){.source = -1, .bytes.fd = -1};
}

void gm_source_pool_close(gm_source_pool *pool)
{
    if (!pool)
        return;
    for (int i = 0; i < pool->entries && pool->entry; i++)
        close_entry(pool, &pool->entry[i]);
    gm_host_free(pool->entry);
    if (pool->charged)
        gm_host_release_charge(pool->charged);
    if (pool->spare)
        gm_host_release_charge(gm_plain_bytes());
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

/* "FILE:DATASET: its part PATH"; NULL: no memory. */
static char *part_title(const gm_source_pool *pool, const gm_source *source)
{
    const char *path = gm_source_path(pool->sources, source->data_file);
    size_t room = strlen(pool->title) + strlen(path) + 16;
    char *text = malloc(room);
    if (text)
        snprintf(text, room, "%s: its part %s", pool->title, path);
    return text;
}

/* The end of the data of a contiguous source in its file. */
static int64_t find_end(const gm_source_pool *pool, const gm_source *source)
{
    int64_t end = (int64_t)gm_dtype_size(pool->record->type);
    for (int d = 0; d < source->rank; d++)
        end = gm_mul_sat(end, pool->sources->word[source->words + d]);
    return gm_add_sat(end, source->offset);
}

/* *crowded: there are too many open files. */
static int open_bytes(const gm_source_pool *pool, const gm_source *source, gm_source_entry *entry, int *crowded)
{
    const char *path = gm_source_path(pool->sources, source->data_file);
    const gm_identity *identity = &pool->sources->file[source->data_file].identity;
    int64_t end = find_end(pool, source);
    struct stat st;
    entry->bytes.code = GM_EINPUT;
    entry->bytes.fd = open(path, O_RDONLY | O_CLOEXEC);
    *crowded = entry->bytes.fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (*crowded)
        return GM_EINPUT;
    if (entry->bytes.fd < 0 || fstat(entry->bytes.fd, &st))
        return gm_fail(GM_EINPUT, "%s cannot be opened: %s", entry->bytes.title, strerror(errno));
    if (end > st.st_size)
        return gm_fail(GM_EINPUT, "%s ends at byte %" PRId64 ", expected %" PRId64 ": it is damaged or truncated",
                       entry->bytes.title, (int64_t)st.st_size, end);
    if (pool->cold)
        entry->bytes.cold = gm_cold_open(entry->bytes.fd, GM_COLD_PROBE);
    return gm_identity_check_open(identity, entry->bytes.fd, path, entry->bytes.title);
}

/* The record of a source, in the type of the virtual dataset. */
static void make_record(const gm_source_pool *pool, const gm_source *source, gm_dataset *r)
{
    const gm_sources *s = pool->sources;
    const int64_t *dims = s->word + source->words;
    memset(r, 0, sizeof *r);
    snprintf(r->file, sizeof r->file, "%s", gm_source_path(s, source->file));
    snprintf(r->data_file, sizeof r->data_file, "%s", gm_source_path(s, source->data_file));
    snprintf(r->name, sizeof r->name, "%s", s->texts + source->name);
    r->identity = s->file[source->file].identity;
    r->data_identity = s->file[source->data_file].identity;
    r->type = pool->record->type;
    r->swap = source->swap;
    r->rank = source->rank;
    r->layout = (gm_layout)source->layout;
    r->filters = source->filters;
    r->raw_chunks = source->kind == GM_SOURCE_CHUNKS;
    for (int d = 0; d < r->rank; d++) {
        r->dims[d] = r->selection.count[d] = dims[d];
        r->chunk[d] = dims[r->rank + d];
        r->selection.step[d] = 1;
    }
}

static int open_plain(const gm_source_pool *pool, const gm_source *source, gm_source_entry *entry)
{
    gm_dataset *record = malloc(sizeof *record);
    if (!record)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", entry->bytes.title);
    make_record(pool, source, record);
    int status = gm_plain_open(record, entry->bytes.title, &entry->plain);
    free(record);
    return status;
}

static int open_entry(const gm_source_pool *pool, int index, gm_source_entry *entry, int *crowded)
{
    const gm_source *source = &pool->sources->source[index];
    *crowded = 0;
    entry->bytes.title = part_title(pool, source);
    if (!entry->bytes.title)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", pool->title);
    return source->kind == GM_SOURCE_DIRECT ? open_bytes(pool, source, entry, crowded)
                                            : open_plain(pool, source, entry);
}

/* --- Places --- */

/* The free or idle entry that was released first; of those that are plain, if large; NULL: none. */
static gm_source_entry *find_idle(gm_source_pool *pool, int large)
{
    gm_source_entry *found = NULL;
    for (int i = 0; i < pool->entries; i++) {
        gm_source_entry *entry = &pool->entry[i];
        if (entry->users || (large && !entry->plain))
            continue;
        if (!found || entry->source < 0 || (found->source >= 0 && entry->released < found->released))
            found = entry;
    }
    return found;
}

/* Memory for one more plain entry, at the cost of idle ones: *room is 0 when other threads use all. */
static int make_large_room(gm_source_pool *pool, int *room)
{
    gm_source_entry *idle;
    while (pool->large >= pool->large_kept && (idle = find_idle(pool, 1)))
        close_entry(pool, idle);
    *room = charge_plain(pool);
    return *room || pool->large ? GM_OK : fail_memory(pool->title, gm_plain_bytes());
}

/* A place for a source, which counts as used from then on; NULL: wait. */
static int take_place(gm_source_pool *pool, int source, gm_source_entry **entry)
{
    int large = pool->sources->source[source].kind != GM_SOURCE_DIRECT, room = 1;
    *entry = find_idle(pool, 0);
    if (!*entry)
        return GM_OK;
    int status = large ? make_large_room(pool, &room) : GM_OK;
    *entry = status || !room ? NULL : find_idle(pool, 0);
    if (!*entry)
        return status;
    close_entry(pool, *entry);
    (*entry)->source = source;
    (*entry)->users = 1;
    (*entry)->is_opening = 1;
    pool->place[source] = (int)(*entry - pool->entry);
    pool->large += large;
    return GM_OK;
}

/* After it could not be opened. */
static void give_up(gm_source_pool *pool, gm_source_entry *entry)
{
    if (pool->sources->source[entry->source].kind != GM_SOURCE_DIRECT && !entry->plain)
        release_plain(pool);
    entry->users = entry->is_opening = 0;
    close_entry(pool, entry);
    pthread_cond_broadcast(&pool->changed);
}

/* Too many files are open: one that is idle is closed, or another thread is waited for. Returns 0 when there is
 * neither.
 */
static int make_file_room(gm_source_pool *pool)
{
    int used = 0;
    for (int i = 0; i < pool->entries; i++)
        used += pool->entry[i].users > 0;
    for (int i = 0; i < pool->entries; i++) {
        if (pool->entry[i].source >= 0 && !pool->entry[i].users) {
            close_entry(pool, &pool->entry[i]);
            return 1;
        }
    }
    if (used)
        pthread_cond_wait(&pool->changed, &pool->mutex);
    return used;
}

/* Opens the entry of a place, without the lock. *again: there were too many files. */
static int fill_place(gm_source_pool *pool, gm_source_entry *entry, int *again)
{
    int source = entry->source, crowded;
    pthread_mutex_unlock(&pool->mutex);
    int status = open_entry(pool, source, entry, &crowded);
    pthread_mutex_lock(&pool->mutex);
    *again = 0;
    if (!status) {
        entry->is_opening = 0;
        pthread_cond_broadcast(&pool->changed);
        return GM_OK;
    }
    give_up(pool, entry);
    *again = crowded && make_file_room(pool);
    if (crowded && !*again)
        gm_fail(GM_EINPUT, "%s: its part %s cannot be opened: too many open files", pool->title,
                gm_source_path(pool->sources, pool->sources->source[source].data_file));
    return *again ? GM_OK : status;
}

int gm_source_pool_acquire(gm_source_pool *pool, int source, gm_source_entry **out)
{
    int status = GM_OK;
    *out = NULL;
    pthread_mutex_lock(&pool->mutex);
    while (!status && !*out) {
        gm_source_entry *entry = pool->place[source] < 0 ? NULL : &pool->entry[pool->place[source]];
        int again = 0;
        if (entry && !entry->is_opening) {
            entry->users++;
            *out = entry;
            break;
        }
        if (!entry && (status = take_place(pool, source, &entry)) == GM_OK && entry) {
            status = fill_place(pool, entry, &again);
            if (!status && !again)
                *out = entry;
        } else if (!status) {
            pthread_cond_wait(&pool->changed, &pool->mutex);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return status;
}

void gm_source_pool_release(gm_source_pool *pool, gm_source_entry *entry)
{
    pthread_mutex_lock(&pool->mutex);
    entry->released = ++pool->clock;
    if (--entry->users == 0)
        pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}
