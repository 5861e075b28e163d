/* names.h - the names of a file's datasets. Internal to io/; the caller holds the lock of h5.h. */
#ifndef GM_IO_DESCRIBE_NAMES_H
#define GM_IO_DESCRIBE_NAMES_H

#include "io/h5.h"

/* Absolute names of datasets, hidden behind links or not, in the order of names. */
typedef struct gm_names {
    char **name;
    int count, room;
} gm_names;

/* Adds the names of an open file. GM_EINPUT. gm_names_free() also after a failure. */
int gm_names_find(hid_t file, const char *title, gm_names *names);
void gm_names_free(gm_names *names);

/* "; it holds /A, /B and 3 more": the first names that begin with under, for a message. text has room for GM_H5_TEXT
 * bytes. Returns text. */
char *gm_names_format(const gm_names *names, const char *under, char *text);

#endif
