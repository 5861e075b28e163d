/* external_read.h - elements of external storage, read without libhdf5: where a read is short, it takes zeros for the
 * rest. In the worker; internal to io/. */
#ifndef GM_IO_READ_EXTERNAL_READ_H
#define GM_IO_READ_EXTERNAL_READ_H

#include <hdf5.h>

#include "io/bytes.h"

typedef struct gm_external gm_external;

/* Opens the external storage of an open dataset. *out is NULL where it has none. title is lent. GM_EINPUT. */
int gm_external_open(hid_t set, const char *title, gm_external **out);
void gm_external_close(gm_external *external); /* takes NULL */

/* Bytes of an element in the files. */
size_t gm_external_size(const gm_external *external);

/* Reads the elements with these strides (io/bytes.h) from byte `first` on, and converts them to a type. to: their
 * bytes, dense. GM_EINPUT; GM_EDEVICE. */
int gm_external_read(const gm_external *external, int64_t first, const gm_stride *dims, int rank, int64_t elements,
                     hid_t type, void *to);

#endif
