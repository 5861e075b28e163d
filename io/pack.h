/* pack.h - the writers' plain bytes into chunks. Internal to io/; the caller holds the lock of h5.h. */
#ifndef GM_IO_PACK_H
#define GM_IO_PACK_H

#include "io/h5.h"
#include "io/output.h"

/* Moves a dataset from offset of the scratch file raw to where it belongs: blocks of whole chunks, through a buffer of up to 64 MiB
 * (or one chunk, if that is larger) that is charged to GM_HOST. GM_EOUTPUT, GM_EDEVICE. */
int gm_pack_dataset(hid_t set, const gm_output_dataset *dataset, int raw, int64_t offset, const char *title);

#endif
