/* build.c - the rows of a table of sources, and the indices to find them by. */
#include "io/virtual/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"

/* --- Rows --- */

int gm_build_add(gm_sources_build *build, gm_build_rows *rows, int64_t count, int64_t *first)
{
    if (count > rows->room - rows->count) {
        int64_t room = gm_max(2 * rows->room, rows->count + gm_max(count, 16));
        void *more = realloc(rows->data, (size_t)room * rows->size);
        if (!more)
            return gm_fail(GM_EDEVICE, "%s: no memory for %" PRId64 " bytes on its parts", build->title,
                           room * (int64_t)rows->size);
        rows->data = more;
        rows->room = room;
    }
    if (count)
        memset((char *)rows->data + (size_t)rows->count * rows->size, 0, (size_t)count * rows->size);
    *first = rows->count;
    rows->count += count;
    return GM_OK;
}

gm_source *gm_build_source(const gm_sources_build *build, int64_t index)
{
    return (gm_source *)build->source.data + index;
}

gm_sources gm_build_view(const gm_sources_build *b)
{
    return (gm_sources){.files = b->file.count,
                        .sources = b->source.count,
                        .patches = b->patch.count,
                        .words = b->word.count,
                        .text = b->text.count,
                        .file = b->file.data,
                        .source = b->source.data,
                        .patch = b->patch.data,
                        .word = b->word.data,
                        .texts = b->text.data};
}

static int add_text(gm_sources_build *build, const char *text, int64_t *at)
{
    size_t bytes = strlen(text) + 1;
    int status = gm_build_add(build, &build->text, (int64_t)bytes, at);
    if (!status)
        memcpy((char *)build->text.data + *at, text, bytes);
    return status;
}

const char *gm_build_text(const gm_sources_build *build, int64_t at)
{
    return (const char *)build->text.data + at;
}

const char *gm_build_path(const gm_sources_build *build, int file)
{
    return gm_build_text(build, ((const gm_source_file *)build->file.data)[file].path);
}

/* --- Indices --- */

typedef int is_entry(const gm_sources_build *build, int64_t entry, int64_t number, const char *text);

static uint64_t hash_key(int64_t number, const char *text)
{
    return gm_sources_hash(text, strlen(text)) ^ (uint64_t)number * 0x9e3779b97f4a7c15;
}

/* The slot of a key: of its entry, or a free one. */
static int64_t *find_slot(const gm_sources_build *build, const gm_build_index *index, is_entry *is, int64_t number,
                          const char *text)
{
    uint64_t at = hash_key(number, text) % (uint64_t)index->room;
    while (index->slot[at] >= 0 && !is(build, index->slot[at], number, text))
        at = (at + 1) % (uint64_t)index->room;
    return &index->slot[at];
}

/* Makes room for one more entry. key: the number and text of an entry. */
static int grow(gm_sources_build *build, gm_build_index *index, is_entry *is,
                void (*key)(const gm_sources_build *build, int64_t entry, int64_t *number, const char **text))
{
    gm_build_index more = {.room = gm_max(4 * index->room, 64)};
    if (2 * (index->used + 1) <= index->room)
        return GM_OK;
    more.slot = malloc((size_t)more.room * sizeof *more.slot);
    if (!more.slot)
        return gm_fail(GM_EDEVICE, "%s: no memory for its parts", build->title);
    memset(more.slot, 0xff, (size_t)more.room * sizeof *more.slot);
    for (int64_t i = 0; i < index->room; i++) {
        const char *text;
        int64_t number;
        if (index->slot[i] < 0)
            continue;
        key(build, index->slot[i], &number, &text);
        *find_slot(build, &more, is, number, text) = index->slot[i];
    }
    free(index->slot);
    more.used = index->used;
    *index = more;
    return GM_OK;
}

static void file_key(const gm_sources_build *build, int64_t entry, int64_t *number, const char **text)
{
    *number = 0;
    *text = gm_build_path(build, (int)entry);
}

static void source_key(const gm_sources_build *build, int64_t entry, int64_t *number, const char **text)
{
    *number = gm_build_source(build, entry)->file;
    *text = gm_build_text(build, gm_build_source(build, entry)->name);
}

static int is_file(const gm_sources_build *build, int64_t entry, int64_t number, const char *text)
{
    const char *path;
    file_key(build, entry, &number, &path);
    return strcmp(path, text) == 0;
}

static int is_source(const gm_sources_build *build, int64_t entry, int64_t number, const char *text)
{
    const char *name;
    int64_t file;
    source_key(build, entry, &file, &name);
    return file == number && strcmp(name, text) == 0;
}

int gm_build_file(gm_sources_build *build, const char *path, int *file)
{
    int64_t entry = 0, at;
    int status = grow(build, &build->files, is_file, file_key);
    if (status)
        return status;
    int64_t *slot = find_slot(build, &build->files, is_file, 0, path);
    *file = (int)*slot;
    if (*slot >= 0)
        return GM_OK;
    status = gm_build_add(build, &build->file, 1, &entry);
    if (!status)
        status = add_text(build, path, &at);
    if (status)
        return status;
    ((gm_source_file *)build->file.data)[entry].path = at;
    *slot = entry;
    build->files.used++;
    *file = (int)entry;
    return GM_OK;
}

int gm_build_find(gm_sources_build *build, const char *path, const char *name, int depth, int *source)
{
    int64_t entry = 0, at = 0, level = 0;
    int file, status = gm_build_file(build, path, &file);
    if (!status)
        status = grow(build, &build->sources, is_source, source_key);
    if (status)
        return status;
    int64_t *slot = find_slot(build, &build->sources, is_source, file, name);
    *source = (int)*slot;
    if (*slot >= 0)
        return GM_OK;
    status = gm_build_add(build, &build->source, 1, &entry);
    if (!status)
        status = gm_build_add(build, &build->depth, 1, &level);
    if (!status)
        status = add_text(build, name, &at);
    if (status)
        return status;
    *gm_build_source(build, entry) = (gm_source){.file = file, .data_file = file, .name = at};
    ((int *)build->depth.data)[level] = depth;
    *slot = entry;
    build->sources.used++;
    *source = (int)entry;
    return GM_OK;
}

void gm_build_begin(gm_sources_build *build, const gm_dataset *record, const char *title)
{
    *build = (gm_sources_build){.record = record,
                                .title = title,
                                .file.size = sizeof(gm_source_file),
                                .source.size = sizeof(gm_source),
                                .patch.size = sizeof(gm_source_patch),
                                .word.size = sizeof(int64_t),
                                .text.size = 1,
                                .depth.size = sizeof(int)};
}

void gm_build_end(gm_sources_build *build)
{
    free(build->file.data);
    free(build->source.data);
    free(build->patch.data);
    free(build->word.data);
    free(build->text.data);
    free(build->depth.data);
    free(build->files.slot);
    free(build->sources.slot);
}
