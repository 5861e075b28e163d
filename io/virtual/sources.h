/* sources.h - what a dataset is read from besides the file of its record: files of external storage; of a virtual
 * dataset, its sources and what lies where. Internal to io/, but for gm_sources_check(), gm_sources_export() and
 * gm_sources_import().
 *
 * A record refers to a table of the process, which is the same bytes on every rank. Each dataset among the sources is
 * in it once, however many mappings lead to it. */
#ifndef GM_IO_VIRTUAL_SOURCES_H
#define GM_IO_VIRTUAL_SOURCES_H

#include "io/dataset.h"
#include "io/virtual/patch.h"

typedef enum gm_source_kind {
    GM_SOURCE_DIRECT,  /* elements lie contiguously at offset in data_file, as the reader of the record delivers them */
    GM_SOURCE_CHUNKS,  /* chunks of data_file */
    GM_SOURCE_FOREIGN, /* libhdf5 reads and converts it */
    GM_SOURCE_VIRTUAL  /* made of sources; the first source is the dataset of the record */
} gm_source_kind;

typedef struct gm_source {
    int kind, rank;
    int layout, filters; /* as they are in the file */
    int swap;            /* its elements are read in the other order of bytes */
    int file, data_file; /* indices; -1: a line of elements between two selections, in no file */
    /* virtual */
    int order_dim;
    int complete; /* every element is in exactly one patch */
    int apart;    /* no element is in two */
    int ordered;  /* `order` is that of the patches as well: of two with the same element the later one counts */
    int unused;   /* no gaps: the bytes of a table have a hash */
    unsigned char fill[8]; /* as the reader delivers it */
    int64_t patch, patches;
    int64_t order; /* words: [patches] the patches by their first index in dimension order_dim, then [patches] the
                      greatest last index there of the patches up to each */
    /* all */
    int64_t name;  /* in the text */
    int64_t words; /* of dims [rank], then chunk [rank] */
    int64_t offset;
} gm_source;

typedef struct gm_source_file {
    gm_identity identity;
    int64_t path; /* in the text */
} gm_source_file;

typedef struct gm_source_patch {
    int64_t words; /* to [rank], last [rank], from [rank of the source], axes */
    int source, axes;
} gm_source_patch;

typedef struct gm_sources {
    int64_t files, sources, patches, words, text; /* how many of each */
    const gm_source_file *file;
    const gm_source *source;
    const gm_source_patch *patch;
    const int64_t *word;
    const char *texts;
} gm_sources;

/* Makes a copy of a table the one of a record, and fills in the record's members on it. GM_EDEVICE. */
int gm_sources_set(gm_dataset *record, const gm_sources *sources);

/* The table of a record, good until the process ends. Returns 0 when this process has none. */
int gm_sources_find(const gm_dataset *record, gm_sources *sources);

/* The path of file number `file`: a pointer into the table. */
const char *gm_source_path(const gm_sources *sources, int file);

/* Patch number index of a virtual source, as arithmetic wants it. */
void gm_source_get_patch(const gm_sources *sources, const gm_source *source, int64_t index, gm_patch *patch);

/* Checks that no file of a record has changed since it was described, nor one of its sources. GM_EINPUT; GM_ESTOPPED.
 */
int gm_sources_check(const gm_dataset *record);

/* A hash of bytes, the same on hosts of one order of bytes. */
uint64_t gm_sources_hash(const void *data, size_t bytes);

/* The table of a record as bytes (record->sources_bytes of them), for other processes; NULL when this one has none. */
const void *gm_sources_export(const gm_dataset *record);

/* Makes a copy of such bytes the table of a record, unless there is one. GM_EDEVICE. */
int gm_sources_import(const gm_dataset *record, const void *data);

#endif
