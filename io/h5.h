/* h5.h - what the files of this room share about libhdf5. Internal to io/.
 *
 * HDF5 is not thread-safe as distributions build it: every call of it stands between gm_h5_lock() and gm_h5_unlock(). */
#ifndef GM_IO_H5_H
#define GM_IO_H5_H

#define H5_USE_110_API /* from 1.12 on, some names of 1.10 have other arguments */
#include <hdf5.h>

#include "base/dtype.h"

/* Takes the one lock; the first call prepares the library. Not recursive. */
void gm_h5_lock(void);
void gm_h5_unlock(void);

enum { GM_H5_TEXT = 512 };
/* Why the last call failed, in the words of the innermost function that saw it. text has room for GM_H5_TEXT bytes. Returns text. */
char *gm_h5_error(char *text);

/* IEEE 754 binary16 in this machine's order of bytes, which libhdf5 has no name for before 1.14.4. Not to be closed. */
hid_t gm_h5_float16(void);

/* The HDF5 type of an element in memory. Not to be closed. */
hid_t gm_h5_type(gm_dtype type);

/* A copy of it in the other order of bytes; the caller closes it. */
hid_t gm_h5_type_swapped(gm_dtype type);

/* Access by the plain POSIX driver, whatever HDF5_DRIVER says. The caller closes it. */
hid_t gm_h5_access(void);

/* Opens an HDF5 file for reading, by gm_h5_access() or by another way. GM_EINPUT: missing, not readable, not HDF5, damaged. */
int gm_h5_open(const char *file, hid_t *id);
int gm_h5_open_by(const char *file, hid_t access, hid_t *id);

#endif
