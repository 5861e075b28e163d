/* sources.c - the tables of sources that this process has. */
#include "io/virtual/sources.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/text/hash.h"

/* A table as bytes: the head, then its arrays. */
typedef struct head {
    int64_t files, sources, patches, words, text;
} head;

typedef struct table {
    struct table *next;
    int64_t bytes;
    uint64_t hash;
    max_align_t data[];
} table;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static table *tables; /* for the life of the process: a record may be read again at any time */

uint64_t gm_sources_hash(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t sum = GM_HASH_START ^ bytes, word;
    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15;
        sum ^= sum >> 29;
    }
    sum = gm_hash_bytes(sum, at, bytes);
    return sum ^ sum >> 32;
}

static const table *find(int64_t bytes, uint64_t hash)
{
    const table *found;
    pthread_mutex_lock(&mutex);
    for (found = tables; found && (found->bytes != bytes || found->hash != hash);)
        found = found->next;
    pthread_mutex_unlock(&mutex);
    return found;
}

static void put(table *t)
{
    pthread_mutex_lock(&mutex);
    t->next = tables;
    tables = t;
    pthread_mutex_unlock(&mutex);
}

static int fail_memory(const gm_dataset *record)
{
    return gm_fail(GM_EDEVICE, "%s: no memory for a table of its parts", record->file);
}

/* Copies one array; places begin at multiples of 8. */
static char *copy_array(char *to, const void *from, int64_t count, size_t size)
{
    size_t bytes = (size_t)count * size;
    if (bytes)
        memcpy(to, from, bytes);
    return to + (bytes + 7) / 8 * 8;
}

static int64_t table_bytes(const gm_sources *s)
{
    return (int64_t)(sizeof(head) + (size_t)s->files * sizeof *s->file + (size_t)s->sources * sizeof *s->source +
                     (size_t)s->patches * sizeof *s->patch + (size_t)s->words * sizeof *s->word) +
           gm_round_up(s->text, 8);
}

static void copy_table(const gm_sources *s, table *t)
{
    char *at = (char *)t->data;
    *(head *)(void *)at = (head){s->files, s->sources, s->patches, s->words, s->text};
    at = copy_array(at + sizeof(head), s->file, s->files, sizeof *s->file);
    at = copy_array(at, s->source, s->sources, sizeof *s->source);
    at = copy_array(at, s->patch, s->patches, sizeof *s->patch);
    at = copy_array(at, s->word, s->words, sizeof *s->word);
    copy_array(at, s->texts, s->text, 1);
}

/* The most that a reader of one source needs, and the number of those that are not read by pread alone. */
static void set_needs(gm_dataset *record, const gm_sources *s)
{
    record->source_chunks = record->source_chunk_bytes = 0;
    record->source_files = s->files;
    record->chunked_sources = record->filtered_sources = record->serial_sources = 0;
    for (int64_t i = 0; i < s->sources; i++) {
        const gm_source *source = &s->source[i];
        const int64_t *dims = s->word + source->words, *chunk = dims + source->rank;
        int64_t chunks = 1, bytes = (int64_t)gm_dtype_size(record->type);
        record->serial_sources += source->kind == GM_SOURCE_FOREIGN;
        if (source->kind != GM_SOURCE_CHUNKS)
            continue;
        for (int d = 0; d < source->rank; d++) {
            chunks = gm_mul_sat(chunks, gm_ceil_div(dims[d], chunk[d]));
            bytes = gm_mul_sat(bytes, chunk[d]);
        }
        record->chunked_sources++;
        record->filtered_sources += source->filters > 0;
        record->source_chunks = gm_max(record->source_chunks, chunks);
        record->source_chunk_bytes = gm_max(record->source_chunk_bytes, bytes);
    }
}

int gm_sources_set(gm_dataset *record, const gm_sources *sources)
{
    int64_t bytes = table_bytes(sources);
    table *t = calloc(1, sizeof *t + (size_t)bytes);
    if (!t)
        return fail_memory(record);
    copy_table(sources, t);
    t->bytes = record->sources_bytes = bytes;
    t->hash = record->sources_hash = gm_sources_hash(t->data, (size_t)bytes);
    set_needs(record, sources);
    if (find(t->bytes, t->hash))
        free(t);
    else
        put(t);
    return GM_OK;
}

int gm_sources_find(const gm_dataset *record, gm_sources *s)
{
    const table *t = record->sources_bytes ? find(record->sources_bytes, record->sources_hash) : NULL;
    if (!t)
        return 0;
    const char *at = (const char *)t->data;
    const head *h = (const void *)at;
    *s = (gm_sources){h->files, h->sources, h->patches, h->words, h->text, NULL, NULL, NULL, NULL, NULL};
    s->file = (const void *)(at += sizeof *h);
    s->source = (const void *)(at += (size_t)h->files * sizeof *s->file);
    s->patch = (const void *)(at += (size_t)h->sources * sizeof *s->source);
    s->word = (const void *)(at += (size_t)h->patches * sizeof *s->patch);
    s->texts = at + (size_t)h->words * sizeof *s->word;
    return 1;
}

const char *gm_source_path(const gm_sources *s, int file)
{
    return s->texts + s->file[file].path;
}

void gm_source_get_patch(const gm_sources *s, const gm_source *source, int64_t index, gm_patch *patch)
{
    const gm_source_patch *p = &s->patch[source->patch + index];
    const int64_t *word = s->word + p->words;
    int from_rank = s->source[p->source].rank;
    *patch = (gm_patch){source->rank,
                        from_rank,
                        p->axes,
                        word,
                        word + source->rank,
                        word + 2 * source->rank,
                        (const gm_axis *)(const void *)(word + 2 * source->rank + from_rank)};
}

/* --- Files --- */

int gm_sources_check(const gm_dataset *record)
{
    enum { AT_ONCE = 256, TITLE = 2 * GM_PATH_MAX + 32 };
    char title[TITLE];
    gm_sources s;
    int status = gm_identity_check(&record->identity, record->file, record->file);
    if (!status && record->data_file[0])
        status = gm_identity_check(&record->data_identity, record->data_file, record->data_file);
    if (!gm_sources_find(record, &s))
        return status;
    for (int i = 0; i < s.files && !status; i++) {
        snprintf(title, sizeof title, "%s: its part %s", record->file, gm_source_path(&s, i));
        status = gm_identity_check(&s.file[i].identity, gm_source_path(&s, i), title);
        if (!status && i % AT_ONCE == 0)
            status = gm_stop_status();
    }
    return status;
}

/* --- Other processes --- */

const void *gm_sources_export(const gm_dataset *record)
{
    const table *t = record->sources_bytes ? find(record->sources_bytes, record->sources_hash) : NULL;
    return t ? t->data : NULL;
}

int gm_sources_import(const gm_dataset *record, const void *data)
{
    if (find(record->sources_bytes, record->sources_hash))
        return GM_OK;
    table *t = calloc(1, sizeof *t + (size_t)record->sources_bytes);
    if (!t)
        return fail_memory(record);
    memcpy(t->data, data, (size_t)record->sources_bytes);
    t->bytes = record->sources_bytes;
    t->hash = record->sources_hash;
    put(t);
    return GM_OK;
}
