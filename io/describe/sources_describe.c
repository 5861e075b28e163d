/* sources_describe.c - finds and describes the sources of a dataset. */
#include "io/describe/sources_describe.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "base/stop.h"
#include "io/describe/source_call.h"
#include "io/virtual/build.h"

/* --- Describing --- */

/* A file that was found again is the same one, or it was replaced meanwhile. */
static int set_identity(gm_sources_build *build, int file, const gm_identity *identity)
{
    gm_source_file *f = (gm_source_file *)build->file.data + file;
    if (!f->identity.host)
        f->identity = *identity;
    if (memcmp(&f->identity, identity, sizeof *identity) == 0)
        return GM_OK;
    return gm_fail(GM_EINPUT, "%s: %s has changed during the run", build->title, gm_build_text(build, f->path));
}

static int set_source(gm_sources_build *build, int64_t index, const gm_source_found *found)
{
    const gm_dataset *r = &found->record;
    int64_t words;
    int data_file, status = gm_build_file(build, r->data_file, &data_file);
    if (!status)
        status = set_identity(build, gm_build_source(build, index)->file, &r->identity);
    if (!status)
        status = set_identity(build, data_file, &r->data_identity);
    if (!status)
        status = gm_build_add(build, &build->word, 2 * r->rank, &words);
    if (status)
        return status;
    memcpy((int64_t *)build->word.data + words, r->dims, (size_t)r->rank * sizeof *r->dims);
    memcpy((int64_t *)build->word.data + words + r->rank, r->chunk, (size_t)r->rank * sizeof *r->chunk);
    gm_source *s = gm_build_source(build, index);
    int raw = found->exact && r->type == build->record->type;
    s->kind = r->layout == GM_VIRTUAL ? GM_SOURCE_VIRTUAL
              : raw && r->direct      ? GM_SOURCE_DIRECT
              : raw && r->raw_chunks  ? GM_SOURCE_CHUNKS
                                      : GM_SOURCE_FOREIGN;
    s->rank = r->rank;
    /* What libhdf5 makes of a number that does not fit depends on the order, which is that of the virtual dataset; but
     * integers of fewer bits than their bytes are right in their own order alone (gm_type_find()). */
    s->swap = s->kind == GM_SOURCE_FOREIGN && (found->exact || !r->swap) ? build->record->swap : r->swap;
    s->layout = r->layout;
    s->filters = r->filters;
    s->data_file = data_file;
    s->words = words;
    s->offset = r->offset;
    return GM_OK;
}

static int set_sources(gm_sources_build *build, int64_t first, int count, const char *at)
{
    int status = GM_OK;
    for (int i = 0; i < count && !status; i++) {
        const gm_source_found *found = (const void *)at;
        int externals = found->record.external, file;
        status = set_source(build, first + i, found);
        at += sizeof *found;
        for (int e = 0; e < externals && !status; e++, at += sizeof(gm_source_external)) {
            const gm_source_external *external = (const void *)at;
            status = gm_build_file(build, external->path, &file);
            if (!status)
                status = set_identity(build, file, &external->identity);
        }
    }
    return status;
}

/* All sources from first on. */
static int describe_sources(gm_sources_build *build, int64_t first)
{
    gm_source_name *names = calloc(GM_SOURCES_AT_ONCE, sizeof *names);
    int64_t end = build->source.count;
    int status = names ? GM_OK : gm_fail(GM_EDEVICE, "%s: no memory for its parts", build->title);
    while (first < end && !status) {
        int count = (int)gm_min(end - first, GM_SOURCES_AT_ONCE);
        const char *reply_end;
        void *reply;
        for (int i = 0; i < count; i++) {
            const gm_source *s = gm_build_source(build, first + i);
            strcpy(names[i].name, gm_build_text(build, s->name));
            strcpy(names[i].file, gm_build_path(build, s->file));
        }
        status = gm_source_call(names, count, build->record->type, build->title, first > 0, &reply, &reply_end);
        if (!status)
            status = set_sources(build, first, count, reply);
        free(reply);
        if (!status)
            status = gm_stop_status();
        first += count;
    }
    free(names);
    return status;
}

/* --- Virtual sources --- */

static int fail_missing(const gm_sources_build *build, const gm_mapping *map)
{
    return gm_fail(GM_EINPUT, "%s: its part %s:%s is missing: no such file", build->title, map->file, map->name);
}

/* Is the shape that libhdf5 gives the dataset that of its mappings? It leaves out sources without end that it cannot
 * open. */
static int has_extent(const gm_sources_build *build, int64_t source, int d)
{
    const gm_source *s = gm_build_source(build, source);
    int64_t extent = 0;
    for (int64_t i = 0; i < s->patches; i++) {
        const gm_source_patch *p = (const gm_source_patch *)build->patch.data + s->patch + i;
        extent = gm_max(extent, ((const int64_t *)build->word.data)[p->words + s->rank + d] + 1);
    }
    return extent == ((const int64_t *)build->word.data)[s->words + d];
}

/* Finds the sources of all mappings, new ones included. sources: one for each mapping; to be freed. */
static int find_sources(gm_sources_build *build, int depth, gm_mappings mappings, int **sources, int *unlimited)
{
    enum { AT_ONCE = 4096 };
    gm_build_rows found = {.size = sizeof **sources};
    gm_mapping map;
    int64_t i;
    int status = GM_OK, more, source;
    *unlimited = -1;
    while (!status && (more = gm_mappings_next(&mappings, &map)) != 0) {
        if (more < 0)
            status = gm_fail(GM_EINPUT, "%s: its parts cannot be read, the file is damaged", build->title);
        else if (!map.path[0])
            status = fail_missing(build, &map);
        if (!status)
            status = gm_build_find(build, map.path, map.name, depth, &source);
        if (!status)
            status = gm_build_add(build, &found, 1, &i);
        if (status)
            break;
        ((int *)found.data)[i] = source;
        if (map.to.unlimited >= 0)
            *unlimited = map.to.unlimited;
        if (i % AT_ONCE == 0)
            status = gm_stop_status();
    }
    *sources = found.data;
    return status;
}

static int is_as_described(const gm_sources_build *build, const gm_source *s, const gm_mappings *mappings)
{
    const int64_t *dims = (const int64_t *)build->word.data + s->words;
    return s->rank == mappings->rank &&
           (s->rank == 0 || memcmp(dims, mappings->dims, (size_t)s->rank * sizeof *dims) == 0);
}

/* The sources and the patches of a virtual source. */
static int expand(gm_sources_build *build, int64_t index, const gm_mappings *known)
{
    const gm_source *s = gm_build_source(build, index);
    int64_t first_new = build->source.count;
    int depth = ((const int *)build->depth.data)[index], unlimited, *sources = NULL;
    gm_mappings mappings;
    if (depth > GM_SOURCES_DEPTH)
        return gm_fail(GM_EINPUT, "%s: virtual datasets are nested more than %d deep", build->title, GM_SOURCES_DEPTH);
    int status = GM_OK;
    if (known)
        mappings = *known;
    else
        status = gm_mappings_read(gm_build_path(build, s->file), gm_build_text(build, s->name), build->record->type,
                                  build->title, &mappings);
    if (!status && !is_as_described(build, s, &mappings))
        status = gm_fail(GM_EINPUT, "%s: has changed during the run (shape)", build->title);
    if (!status)
        status = find_sources(build, depth + 1, mappings, &sources, &unlimited);
    if (!status)
        status = describe_sources(build, first_new);
    if (!status)
        status = gm_build_patches(build, (int)index, mappings, sources);
    if (!status && unlimited >= 0 && !has_extent(build, index, unlimited))
        status = gm_fail(GM_EINPUT, "%s: its parts do not end where HDF5 says that it does (dimension %d)",
                         build->title, unlimited);
    if (!status)
        memcpy(gm_build_source(build, index)->fill, mappings.fill, sizeof mappings.fill);
    free(sources);
    if (!known)
        gm_mappings_free(&mappings);
    return status;
}

/* The levels of virtual datasets below a source, lines not counted; more than GM_SOURCES_DEPTH: too many, or a circle.
 * levels: of each source; -1: unknown. */
static int count_levels(const gm_sources_build *build, int64_t index, int depth, int *levels)
{
    const gm_source *s = gm_build_source(build, index);
    int most = 0, is_line = s->file < 0;
    if (s->kind != GM_SOURCE_VIRTUAL)
        return 0;
    if (levels[index] >= 0 || depth > 2 * GM_SOURCES_DEPTH + 2)
        return levels[index] >= 0 ? levels[index] : GM_SOURCES_DEPTH + 1;
    for (int64_t i = 0; i < s->patches && most <= GM_SOURCES_DEPTH; i++) {
        int source = ((const gm_source_patch *)build->patch.data)[s->patch + i].source;
        most = (int)gm_max(most, count_levels(build, source, depth + 1, levels));
    }
    if (most <= GM_SOURCES_DEPTH)
        levels[index] = most + !is_line;
    return most + !is_line;
}

static int check_levels(const gm_sources_build *build)
{
    size_t bytes = (size_t)build->source.count * sizeof(int);
    int *levels = malloc(bytes);
    if (!levels)
        return gm_fail(GM_EDEVICE, "%s: no memory for its parts", build->title);
    memset(levels, 0xff, bytes);
    int most = count_levels(build, 0, 0, levels);
    free(levels);
    if (most > GM_SOURCES_DEPTH + 1)
        return gm_fail(GM_EINPUT, "%s: virtual datasets are nested more than %d deep", build->title, GM_SOURCES_DEPTH);
    return GM_OK;
}

/* --- The whole table --- */

static void reverse(unsigned char *value, size_t size)
{
    for (size_t i = 0; i < size / 2; i++) {
        unsigned char byte = value[i];
        value[i] = value[size - 1 - i];
        value[size - 1 - i] = byte;
    }
}

/* The reader delivers the order of bytes of the dataset itself, which its output keeps. */
static void set_order(const gm_sources_build *build)
{
    int swap = build->record->swap;
    for (int64_t i = 0; i < build->source.count; i++) {
        gm_source *s = gm_build_source(build, i);
        if (s->kind != GM_SOURCE_VIRTUAL)
            continue;
        s->swap = swap;
        if (swap)
            reverse(s->fill, gm_dtype_size(build->record->type));
    }
}

/* The record is that of the first source. */
static int set_first(gm_sources_build *build)
{
    gm_source_found *found = calloc(1, sizeof *found);
    if (!found)
        return gm_fail(GM_EDEVICE, "%s: no memory to describe it", build->title);
    found->record = *build->record;
    int status = set_source(build, 0, found);
    free(found);
    return status;
}

static int build_all(gm_sources_build *build, const gm_mappings *mappings)
{
    int first;
    int status = gm_build_find(build, build->record->file, build->record->name, 0, &first);
    if (!status)
        status = build->record->layout == GM_VIRTUAL ? set_first(build) : describe_sources(build, 0);
    for (int64_t i = 0; i < build->source.count && !status; i++)
        if (gm_build_source(build, i)->kind == GM_SOURCE_VIRTUAL && gm_build_source(build, i)->file >= 0)
            status = expand(build, i, i == 0 ? mappings : NULL);
    return status ? status : check_levels(build);
}

int gm_sources_describe(gm_dataset *record, const char *title, const gm_mappings *mappings)
{
    gm_sources_build build;
    gm_build_begin(&build, record, title);
    int status = build_all(&build, mappings);
    if (!status && record->layout == GM_VIRTUAL)
        set_order(&build);
    if (!status) {
        gm_sources sources = gm_build_view(&build);
        status = gm_sources_set(record, &sources);
    }
    gm_build_end(&build);
    return status;
}

int gm_sources_open(const gm_dataset *record, const char *title, gm_sources *sources)
{
    if (gm_sources_find(record, sources))
        return GM_OK;
    gm_dataset *again = malloc(sizeof *again);
    if (!again)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    *again = *record;
    int status = gm_sources_describe(again, title, NULL);
    if (!status && !gm_sources_find(record, sources))
        status = gm_fail(GM_EINPUT, "%s: has changed during the run (its parts)", title);
    free(again);
    return status;
}
