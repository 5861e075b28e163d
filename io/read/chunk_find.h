/* chunk_find.h - the place of a chunk in its file. Internal to io/; the caller holds the lock of h5.h.
 *
 * H5Dget_chunk_info() and H5Dget_chunk_info_by_coord() of 1.10.8 walk over all chunks at each call, and leave out a
 * user block. H5Dread_chunk() (since 1.10.3) looks up one chunk: the driver of input_vfd.h reads metadata as usual, and
 * notes address and size of a raw chunk instead of reading it. */
#ifndef GM_IO_READ_CHUNK_FIND_H
#define GM_IO_READ_CHUNK_FIND_H

#include "io/dataset.h"
#include "io/input_vfd.h"

typedef struct gm_chunk_place {
    gm_input_place at; /* with the bytes as stored; address 0: there are none; HADDR_UNDEF: it was never written */
    hsize_t offset[GM_RANK_MAX]; /* of its first element */
    uint32_t filter_mask;        /* bit i: filter i was not applied */
    char fill[64]; /* of a chunk that was never written: an element as the file has it; 0 where it says nothing */
} gm_chunk_place;

/* The chunk `at` of a grid of chunks of this shape, of a numeric dataset in a file opened with gm_input_access(), from
 * which nothing else is read. space is the dataset's; its selection is overwritten. GM_EINPUT when libhdf5 fails, or
 * does not say for sure that the chunk was never written; the message begins with title. */
int gm_chunk_find(hid_t set, hid_t space, const char *title, int rank, const int64_t *chunk, const int64_t *at,
                  gm_chunk_place *place);

#endif
