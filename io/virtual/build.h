/* build.h - a table of sources (sources.h) that is being made. Internal to io/. Functions that add to it return
 * GM_EDEVICE when there is no memory. */
#ifndef GM_IO_VIRTUAL_BUILD_H
#define GM_IO_VIRTUAL_BUILD_H

#include "io/virtual/mappings.h"
#include "io/virtual/sources.h"

enum { GM_SOURCES_DEPTH = 8 }; /* of virtual datasets made of virtual datasets */

/* The rows of one kind: `count` records of `size` bytes, with room for `room` of them. */
typedef struct gm_build_rows {
    void *data;
    int64_t count, room;
    size_t size;
} gm_build_rows;

/* Indices of rows, by a hash of their keys. */
typedef struct gm_build_index {
    int64_t *slot; /* -1: free */
    int64_t room, used;
} gm_build_index;

typedef struct gm_sources_build {
    const gm_dataset *record;
    const char *title;
    gm_build_rows file, source, patch, word, text;
    gm_build_rows depth;           /* of each source: int */
    gm_build_index files, sources; /* by path; by file and name */
    int64_t runs;                  /* pieces of irregular selections so far */
} gm_sources_build;

/* Begins a table for a record; record and title are lent until gm_build_end(), which releases it in any case. */
void gm_build_begin(gm_sources_build *build, const gm_dataset *record, const char *title);
void gm_build_end(gm_sources_build *build);

/* Row `index` of the sources; good until the next one is added. */
gm_source *gm_build_source(const gm_sources_build *build, int64_t index);

/* Adds `count` rows, cleared; *first: the index of the first one. Pointers into these rows are lost. */
int gm_build_add(gm_sources_build *build, gm_build_rows *rows, int64_t count, int64_t *first);

/* The text that begins at byte `at` of the texts, the path of a file: good until the next text is added. */
const char *gm_build_text(const gm_sources_build *build, int64_t at);
const char *gm_build_path(const gm_sources_build *build, int file);

/* *file: the index of the file at path, which is added if it is not there. */
int gm_build_file(gm_sources_build *build, const char *path, int *file);

/* *source: the index of a dataset of a file, which is added, at that depth of virtual datasets, if it is not there. */
int gm_build_find(gm_sources_build *build, const char *path, const char *name, int depth, int *source);

/* Adds the patches of a virtual source from its mappings; sources[i]: that of mapping i, which has been described.
 * GM_EINPUT. */
int gm_build_patches(gm_sources_build *build, int source, gm_mappings mappings, const int *sources);

/* Adds the order of the patches of a virtual source, and sets what is known of them (gm_source). */
int gm_build_order(gm_sources_build *build, int source);

/* The table so far; good until something is added. */
gm_sources gm_build_view(const gm_sources_build *build);

#endif
