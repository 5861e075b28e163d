/* chunk_check.h - how long the chunks are that libhdf5 is to read. It takes a chunk for a whole one, however few bytes
 * its filters give, and reads beyond a shorter one. Internal to io/; in the worker, under the lock of h5.h. */
#ifndef GM_IO_READ_CHUNK_CHECK_H
#define GM_IO_READ_CHUNK_CHECK_H

#include "io/dataset.h"
#include "io/h5.h"

typedef struct gm_chunk_check gm_chunk_check;

/* Of an open chunked dataset (plist: its creation property list) that is as dataset says, of a file opened with
 * gm_input_access(). set and title are lent, and space, the dataset's, whose selection is overwritten. The caller
 * closes *check, also after a failure. GM_EDEVICE, GM_EINPUT. */
int gm_chunk_check_open(hid_t set, hid_t space, hid_t plist, const gm_dataset *dataset, const char *title,
                        gm_chunk_check **check);

/* Compares the chunks that a part, which is not empty, touches. Filters of plug-ins are trusted. GM_EINPUT: one is too
 * short. GM_EDEVICE. */
int gm_chunk_check_part(gm_chunk_check *check, const gm_selection *part);

void gm_chunk_check_close(gm_chunk_check *check);

#endif
