/* chunk_vfd.h - where a chunk lies in its file. Internal to io/; the caller holds the lock of h5.h.
 *
 * H5Dget_chunk_info() and H5Dget_chunk_info_by_coord() of 1.10.8 walk over all chunks at each call, and leave out a user block.
 * H5Dread_chunk() (since 1.10.3) looks up one chunk: so a driver of our own reads metadata as usual, and notes place and size of a raw
 * chunk instead of reading it. */
#ifndef GM_IO_CHUNK_VFD_H
#define GM_IO_CHUNK_VFD_H

#include "io/h5.h"

typedef struct gm_chunk_place {
    haddr_t address; /* in the file itself, a user block included; HADDR_UNDEF: the chunk was never written */
    hsize_t bytes;   /* as it is stored */
    uint32_t skipped; /* bit i: filter i was not applied */
} gm_chunk_place;

/* File access by the driver, for reading only. A file that is open this way is good for nothing but the call below. The caller closes it. */
hid_t gm_chunk_vfd_access(void);

/* The chunk of a dataset of numbers, in a file open that way, whose first element is at offset. space is the dataset's own, its selection is lost.
 * Returns 0, or 1 when libhdf5 cannot tell. */
int gm_chunk_vfd_find(hid_t set, hid_t space, const hsize_t *offset, gm_chunk_place *place);

#endif
