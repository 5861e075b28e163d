/* build.h - a table of sources (sources.h) that is being made. Internal to io/. */
#ifndef GM_IO_VIRTUAL_BUILD_H
#define GM_IO_VIRTUAL_BUILD_H

#include "io/virtual/mappings.h"
#include "io/virtual/sources.h"

enum { GM_SOURCES_DEPTH = 8 }; /* of virtual datasets made of virtual datasets */

/* count elements of size bytes. */
typedef struct gm_rows {
    void *data;
    int64_t count, room;
    size_t size;
} gm_rows;

/* Indices by a hash of what they stand for. */
typedef struct gm_index {
    int64_t *slot; /* -1: free */
    int64_t room, used;
} gm_index;

typedef struct gm_sources_build {
    const gm_dataset *record;
    const char *title;
    gm_rows file, source, patch, word, text;
    gm_rows depth;           /* of each source: int */
    gm_index files, sources; /* by path; by file and name */
    int64_t runs;            /* pieces of irregular selections so far */
} gm_sources_build;

/* Begins a table for a record; both are lent. gm_build_end() in any case. */
void gm_build_begin(gm_sources_build *build, const gm_dataset *record, const char *title);
void gm_build_end(gm_sources_build *build);

gm_source *gm_build_source(const gm_sources_build *build, int64_t index);

/* Room for count more elements, cleared; *first: the index of the first one. Pointers into the rows are lost.
 * GM_EDEVICE.
 */
int gm_build_add(gm_sources_build *build, gm_rows *rows, int64_t count, int64_t *first);

const char *gm_build_text(const gm_sources_build *build, int64_t at);
const char *gm_build_path(const gm_sources_build *build, int file);

/* A file, a new one if there is none of that path. */
int gm_build_file(gm_sources_build *build, const char *path, int *file);

/* A dataset of a file, a new one if there is none, at that depth of virtual datasets. */
int gm_build_find(gm_sources_build *build, const char *path, const char *name, int depth, int *source);

/* The patches of a virtual source from its mappings; sources[i]: that of mapping i, which has been described.
 * GM_EINPUT.
 */
int gm_build_patches(gm_sources_build *build, int source, gm_mappings mappings, const int *sources);

/* The order of the patches of a virtual source, and what is known of them. */
int gm_build_order(gm_sources_build *build, int source);

/* The table so far; pointers into it are lost as those above. */
gm_sources gm_build_view(const gm_sources_build *build);

#endif
