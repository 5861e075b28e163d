/* storage.h - how a dataset is stored: layout, filters, and whether its bytes can be read without libhdf5. Internal to
 * io/; the caller holds the lock of h5.h. */
#ifndef GM_IO_DESCRIBE_STORAGE_H
#define GM_IO_DESCRIBE_STORAGE_H

#include "io/dataset.h"
#include "io/h5.h"

/* Fills layout, filters, chunk, and whether elements (exact: of the type in the file) can, or may, be read without
 * libhdf5, and where they lie. GM_EINPUT for a filter that is not installed and for missing parts of a virtual dataset.
 * title names the dataset. */
int gm_storage_find(hid_t set, int exact, const char *title, gm_dataset *record);

/* "chunked 1x22x26, deflate 4, shuffle": how a dataset is stored, in words. text has room for GM_H5_TEXT bytes. Returns
 * text. */
char *gm_storage_format(hid_t set, char *text);

#endif
