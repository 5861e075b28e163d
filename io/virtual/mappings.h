/* mappings.h - the mappings of a virtual dataset, as its file has them. Internal to io/. */
#ifndef GM_IO_VIRTUAL_MAPPINGS_H
#define GM_IO_VIRTUAL_MAPPINGS_H

#include "io/dataset.h"
#include "io/virtual/selection.h"

/* All mappings of one virtual dataset: the reply of the worker. */
typedef struct gm_mappings {
    void *reply; /* lends the strings and runs of its mappings; NULL: lent itself */
    int rank;
    int64_t dims[GM_RANK_MAX];
    unsigned char fill[8]; /* as the type asked for, in this machine's order of bytes */
    const int64_t *at, *end;
    const char *file, *path, *name; /* of the last mapping */
} gm_mappings;

typedef struct gm_mapping {
    const char *file; /* as the dataset names it; "." for its own */
    const char *path; /* its location; "" when it is missing */
    const char *name; /* of the source in it */
    gm_selection_words to, from;
} gm_mapping;

/* Reads them from the dataset name of a file. type: of the fill value. Mappings whose sources are named by a pattern
 * ("part-%b.h5") are one for each source that there is. title names the dataset that the user named, for messages.
 * GM_EINPUT. gm_mappings_free() also after a failure. */
int gm_mappings_read(const char *file, const char *name, gm_dtype type, const char *title, gm_mappings *mappings);
void gm_mappings_free(gm_mappings *mappings);

/* The same from what gm_mappings_put() put into the reply of another call; data is lent. */
int gm_mappings_parse(const void *data, size_t bytes, const char *title, gm_mappings *mappings);

/* The next one, in the order of the file. Returns 0 at the end; -1 when there is no mapping where one should be. */
int gm_mappings_next(gm_mappings *mappings, gm_mapping *mapping);

/* --- In calls of the worker, under the lock of h5.h --- */

/* Appends the mappings of an open virtual dataset to a reply. GM_EINPUT as gm_mappings_read(). */
int gm_mappings_put(hid_t set, gm_dtype type, const char *title, gm_reply *reply);

typedef struct gm_mapping_found {
    const char *file, *path, *name; /* as those above */
    hid_t to, from;
    int64_t block; /* of an unlimited selection `to`; -1: all of it */
} gm_mapping_found;

/* Calls visit for each mapping of an open dataset, in the order of the file; none when it is not virtual. A status
 * other than GM_OK ends the walk and is returned. GM_EINPUT as gm_mappings_read(). */
typedef int gm_mapping_visit(void *context, const gm_mapping_found *mapping);
int gm_mappings_visit(hid_t set, const char *title, gm_mapping_visit *visit, void *context);

#endif
