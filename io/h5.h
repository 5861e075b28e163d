/* h5.h - libhdf5: its lock, error texts, types and files. Internal to io/.
 *
 * HDF5 is not thread-safe as distributions build it: every call of it is made between gm_h5_lock() and gm_h5_unlock().
 */
#ifndef GM_IO_H5_H
#define GM_IO_H5_H

#define H5_USE_110_API /* from 1.12 on, some names of 1.10 have other arguments */
#include <hdf5.h>

#include "base/types/dtype.h"

/* Takes the one lock; the first call prepares the library. Not recursive. */
void gm_h5_lock(void);
void gm_h5_unlock(void);

enum { GM_H5_TEXT = 512 };
/* Why the last call failed: the message of the innermost function. text has room for GM_H5_TEXT bytes.
 * Returns text. */
char *gm_h5_error(char *text);

/* Closes a file, group, dataset, type, dataspace, attribute or property list whose last changes are not at stake; takes
 * an invalid identifier as well. */
void gm_h5_close(hid_t id);

/* Returns id if ok; else closes it and returns H5I_INVALID_HID. */
hid_t gm_h5_ready(hid_t id, int ok);

/* The HDF5 type of an element in memory, made at its first use; negative on failure. Not to be closed. */
hid_t gm_h5_type(gm_dtype type);

/* A copy of it in the other order of bytes; the caller closes it. */
hid_t gm_h5_type_swapped(gm_dtype type);

/* Opens a user's HDF5 file for reading, by the driver of input_vfd.h; in calls of the worker (worker.h) only.
 * GM_EINPUT: missing, not readable, not HDF5, damaged. */
int gm_h5_open(const char *file, hid_t *id);

/* Opens a file by the plain POSIX driver, for any HDF5_DRIVER, with the flags of H5Fopen: outputs. Negative on failure,
 * without a message. */
hid_t gm_h5_open_as(const char *file, unsigned flags);

#endif
