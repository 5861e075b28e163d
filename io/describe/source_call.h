/* source_call.h - describes the sources of a virtual dataset, some at a time, in the worker. Internal to io/. */
#ifndef GM_IO_DESCRIBE_SOURCE_CALL_H
#define GM_IO_DESCRIBE_SOURCE_CALL_H

#include "io/dataset.h"

enum { GM_SOURCES_AT_ONCE = 64 };

typedef struct gm_source_name {
    char file[GM_PATH_MAX], name[GM_NAME_MAX];
} gm_source_name;

/* A source as it was found: a record of all of the dataset, as far as a reader needs one. The identities are of before
 * it was opened. */
typedef struct gm_source_found {
    gm_dataset record; /* identity; data_file and data_identity in any case; external: their number */
    int exact;         /* record.type is the type in the file; otherwise libhdf5 converts it */
} gm_source_found;

/* A file of external storage. */
typedef struct gm_source_external {
    char path[GM_PATH_MAX];
    gm_identity identity;
} gm_source_external;

/* Describes count sources (GM_SOURCES_AT_ONCE at most) that are read as elements of a type. *reply, to be freed, has
 * for each of them a gm_source_found, followed by record.external gm_source_external; *end is its end. title: the
 * dataset that the user named; is_part: messages say that the source is a part of it. GM_EINPUT: a source that is
 * missing, damaged, or not to be converted. */
int gm_source_call(const gm_source_name *names, int count, gm_dtype type, const char *title, int is_part, void **reply,
                   const char **end);

#endif
