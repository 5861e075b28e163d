/* type.h - types of a file: the element types that hold them, and their names in messages. Internal to io/; the caller
 * holds the lock of h5.h. */
#ifndef GM_IO_TYPE_H
#define GM_IO_TYPE_H

#include "io/h5.h"

/* Has the file's type the other byte order than this machine? */
int gm_type_is_swapped(hid_t file_type);

/* How elements of a file's type are read: *type in memory, in the other byte order if *swap; *exact: the file holds
 * them so. Returns 1, or 0 when no numeric type holds every value. */
int gm_type_find(hid_t file_type, gm_dtype *type, int *exact, int *swap);

/* The type of such elements in memory; the caller closes it. Negative on failure. */
hid_t gm_type_in_memory(hid_t file_type, gm_dtype type, int swap);

/* "float32 big-endian", "string", ...: a file's type in words. text has room for GM_H5_TEXT bytes. Returns text. */
char *gm_type_format(hid_t file_type, char *text);

#endif
