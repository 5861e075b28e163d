/* leaves.c - opens and closes the sources of a virtual dataset. */
#include "io/read/leaves.h"

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

struct gm_leaves {
    const gm_dataset *record;
    const char *title;
    const gm_sources *sources;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a leaf was opened, or released */
    int *place;             /* [sources]: index of its leaf; -1: none */
    gm_leaf *leaf;
    int leaves;            /* places */
    int cold;              /* files are few enough for O_DIRECT */
    int large, large_kept; /* plain leaves that are open; as many may be while they are not in use */
    int64_t charged;
    int spare; /* one plain leaf is charged for good: it never lacks memory */
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

/* A plain leaf with buffers for one thread. */
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

/* Places and leaves of at most so many sources. */
static int64_t table_bytes(int64_t sources)
{
    return sources * (int64_t)sizeof(int) + gm_min(sources, files_max()) * (int64_t)sizeof(gm_leaf);
}

int64_t gm_leaves_bytes(const gm_dataset *record, int threads, int64_t room)
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

int gm_leaves_open(const gm_dataset *record, const char *title, const gm_sources *sources, gm_leaves **out)
{
    gm_leaves *l = calloc(1, sizeof *l);
    int64_t direct = 0;
    void *memory = NULL;
    *out = NULL;
    if (!l)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    l->record = record;
    l->title = title;
    l->sources = sources;
    l->large_kept = large_kept(record, gm_memory_cap(GM_HOST));
    l->leaves = (int)gm_min(gm_max(sources->sources, 1), files_max());
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->changed, NULL);
    if (gm_host_try_charge(record->sources_bytes))
        l->charged = record->sources_bytes;
    l->spare = l->charged && record->chunked_sources + record->serial_sources > 0 &&
               gm_host_try_charge(gm_plain_bytes());
    if (!l->charged || !gm_host_try((size_t)table_bytes(sources->sources), &memory)) {
        gm_leaves_close(l);
        return fail_memory(title, gm_leaves_bytes(record, 1, gm_memory_cap(GM_HOST)));
    }
    l->leaf = memory;
    l->place = (int *)(void *)(l->leaf + l->leaves);
    for (int64_t i = 0; i < sources->sources; i++) {
        l->place[i] = -1;
        direct += sources->source[i].kind == GM_SOURCE_DIRECT;
    }
    for (int i = 0; i < l->leaves; i++)
        l->leaf[i] = (gm_leaf){.source = -1, .bytes.fd = -1};
    l->cold = direct * COLD_FILES <= files_max();
    *out = l;
    return GM_OK;
}

/* The charge of a plain leaf. */
static int charge_plain(const gm_leaves *l)
{
    return l->large < l->spare || gm_host_try_charge(gm_plain_bytes());
}

static void release_plain(gm_leaves *l)
{
    l->large--;
    if (l->large >= l->spare)
        gm_host_release_charge(gm_plain_bytes());
}

/* Of a leaf that nobody uses. */
static void close_leaf(gm_leaves *l, gm_leaf *leaf)
{
    if (leaf->source < 0)
        return;
    gm_cold_close(leaf->bytes.cold);
    if (leaf->bytes.fd >= 0)
        close(leaf->bytes.fd);
    free((char *)leaf->bytes.title);
    if (leaf->plain) {
        gm_plain_close(leaf->plain);
        release_plain(l);
    }
    l->place[leaf->source] = -1;
    *leaf = (gm_leaf){.source = -1, .bytes.fd = -1};
}

void gm_leaves_close(gm_leaves *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->leaves && l->leaf; i++)
        close_leaf(l, &l->leaf[i]);
    gm_host_free(l->leaf);
    if (l->charged)
        gm_host_release_charge(l->charged);
    if (l->spare)
        gm_host_release_charge(gm_plain_bytes());
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

/* "FILE:DATASET: its part PATH"; NULL: no memory. */
static char *part_title(const gm_leaves *l, const gm_source *source)
{
    const char *path = gm_source_path(l->sources, source->data_file);
    size_t room = strlen(l->title) + strlen(path) + 16;
    char *text = malloc(room);
    if (text)
        snprintf(text, room, "%s: its part %s", l->title, path);
    return text;
}

/* The end of the data of a contiguous source in its file. */
static int64_t find_end(const gm_leaves *l, const gm_source *source)
{
    int64_t end = (int64_t)gm_dtype_size(l->record->type);
    for (int d = 0; d < source->rank; d++)
        end = gm_mul_sat(end, l->sources->word[source->words + d]);
    return gm_add_sat(end, source->offset);
}

/* *crowded: there are too many open files. */
static int open_bytes(const gm_leaves *l, const gm_source *source, gm_leaf *leaf, int *crowded)
{
    const char *path = gm_source_path(l->sources, source->data_file);
    const gm_identity *identity = &l->sources->file[source->data_file].identity;
    int64_t end = find_end(l, source);
    struct stat st;
    leaf->bytes.code = GM_EINPUT;
    leaf->bytes.fd = open(path, O_RDONLY | O_CLOEXEC);
    *crowded = leaf->bytes.fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (*crowded)
        return GM_EINPUT;
    if (leaf->bytes.fd < 0 || fstat(leaf->bytes.fd, &st))
        return gm_fail(GM_EINPUT, "%s cannot be opened: %s", leaf->bytes.title, strerror(errno));
    if (end > st.st_size)
        return gm_fail(GM_EINPUT, "%s ends at byte %" PRId64 ", expected %" PRId64 ": it is damaged or truncated",
                       leaf->bytes.title, (int64_t)st.st_size, end);
    if (l->cold)
        leaf->bytes.cold = gm_cold_open(leaf->bytes.fd, GM_COLD_PROBE);
    return gm_identity_check_open(identity, leaf->bytes.fd, path, leaf->bytes.title);
}

/* The record of a source, in the type of the virtual dataset. */
static void make_record(const gm_leaves *l, const gm_source *source, gm_dataset *r)
{
    const gm_sources *s = l->sources;
    const int64_t *dims = s->word + source->words;
    memset(r, 0, sizeof *r);
    snprintf(r->file, sizeof r->file, "%s", gm_source_path(s, source->file));
    snprintf(r->data_file, sizeof r->data_file, "%s", gm_source_path(s, source->data_file));
    snprintf(r->name, sizeof r->name, "%s", s->texts + source->name);
    r->identity = s->file[source->file].identity;
    r->data_identity = s->file[source->data_file].identity;
    r->type = l->record->type;
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

static int open_plain(const gm_leaves *l, const gm_source *source, gm_leaf *leaf)
{
    gm_dataset *record = malloc(sizeof *record);
    if (!record)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", leaf->bytes.title);
    make_record(l, source, record);
    int status = gm_plain_open(record, leaf->bytes.title, &leaf->plain);
    free(record);
    return status;
}

static int open_leaf(const gm_leaves *l, int index, gm_leaf *leaf, int *crowded)
{
    const gm_source *source = &l->sources->source[index];
    *crowded = 0;
    leaf->bytes.title = part_title(l, source);
    if (!leaf->bytes.title)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", l->title);
    return source->kind == GM_SOURCE_DIRECT ? open_bytes(l, source, leaf, crowded) : open_plain(l, source, leaf);
}

/* --- Places --- */

/* The free or idle leaf that was released first; of those that are plain, if large; NULL: none. */
static gm_leaf *find_idle(gm_leaves *l, int large)
{
    gm_leaf *found = NULL;
    for (int i = 0; i < l->leaves; i++) {
        gm_leaf *leaf = &l->leaf[i];
        if (leaf->users || (large && !leaf->plain))
            continue;
        if (!found || leaf->source < 0 || (found->source >= 0 && leaf->released < found->released))
            found = leaf;
    }
    return found;
}

/* Memory for one more plain leaf, at the cost of idle ones: *room is 0 when other threads use all. */
static int make_large_room(gm_leaves *l, int *room)
{
    gm_leaf *idle;
    while (l->large >= l->large_kept && (idle = find_idle(l, 1)))
        close_leaf(l, idle);
    *room = charge_plain(l);
    return *room || l->large ? GM_OK : fail_memory(l->title, gm_plain_bytes());
}

/* A place for a source, which counts as used from then on; NULL: wait. */
static int take_place(gm_leaves *l, int source, gm_leaf **leaf)
{
    int large = l->sources->source[source].kind != GM_SOURCE_DIRECT, room = 1;
    *leaf = find_idle(l, 0);
    if (!*leaf)
        return GM_OK;
    int status = large ? make_large_room(l, &room) : GM_OK;
    *leaf = status || !room ? NULL : find_idle(l, 0);
    if (!*leaf)
        return status;
    close_leaf(l, *leaf);
    (*leaf)->source = source;
    (*leaf)->users = 1;
    (*leaf)->is_opening = 1;
    l->place[source] = (int)(*leaf - l->leaf);
    l->large += large;
    return GM_OK;
}

/* After it could not be opened. */
static void give_up(gm_leaves *l, gm_leaf *leaf)
{
    if (l->sources->source[leaf->source].kind != GM_SOURCE_DIRECT && !leaf->plain) {
        release_plain(l);
    }
    leaf->users = leaf->is_opening = 0;
    close_leaf(l, leaf);
    pthread_cond_broadcast(&l->changed);
}

/* Too many files are open: one that is idle is closed, or another thread is waited for. Returns 0 when there is
 * neither.
 */
static int make_file_room(gm_leaves *l)
{
    int used = 0;
    for (int i = 0; i < l->leaves; i++)
        used += l->leaf[i].users > 0;
    for (int i = 0; i < l->leaves; i++) {
        if (l->leaf[i].source >= 0 && !l->leaf[i].users) {
            close_leaf(l, &l->leaf[i]);
            return 1;
        }
    }
    if (used)
        pthread_cond_wait(&l->changed, &l->mutex);
    return used;
}

/* Opens the leaf of a place, without the lock. *again: there were too many files. */
static int fill_place(gm_leaves *l, gm_leaf *leaf, int *again)
{
    int source = leaf->source, crowded;
    pthread_mutex_unlock(&l->mutex);
    int status = open_leaf(l, source, leaf, &crowded);
    pthread_mutex_lock(&l->mutex);
    *again = 0;
    if (!status) {
        leaf->is_opening = 0;
        pthread_cond_broadcast(&l->changed);
        return GM_OK;
    }
    give_up(l, leaf);
    *again = crowded && make_file_room(l);
    if (crowded && !*again)
        gm_fail(GM_EINPUT, "%s: its part %s cannot be opened: too many open files", l->title,
                gm_source_path(l->sources, l->sources->source[source].data_file));
    return *again ? GM_OK : status;
}

int gm_leaves_acquire(gm_leaves *l, int source, gm_leaf **out)
{
    int status = GM_OK;
    *out = NULL;
    pthread_mutex_lock(&l->mutex);
    while (!status && !*out) {
        gm_leaf *leaf = l->place[source] < 0 ? NULL : &l->leaf[l->place[source]];
        int again = 0;
        if (leaf && !leaf->is_opening) {
            leaf->users++;
            *out = leaf;
            break;
        }
        if (!leaf && (status = take_place(l, source, &leaf)) == GM_OK && leaf) {
            status = fill_place(l, leaf, &again);
            if (!status && !again)
                *out = leaf;
        } else if (!status) {
            pthread_cond_wait(&l->changed, &l->mutex);
        }
    }
    pthread_mutex_unlock(&l->mutex);
    return status;
}

void gm_leaves_release(gm_leaves *l, gm_leaf *leaf)
{
    pthread_mutex_lock(&l->mutex);
    leaf->released = ++l->clock;
    if (--leaf->users == 0)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}
