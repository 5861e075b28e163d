/* pack.h - chunks in their final form, from the scratch file by way of the ranks' spools to their places. Internal to io/. */
#ifndef GM_IO_PACK_H
#define GM_IO_PACK_H

#include "io/h5.h"
#include "io/output.h"

/* Places the chunks of an open dataset, in order. The caller holds the lock of h5.h. Memory: a chunk, and 16 bytes for each chunk
 * of a rank, charged to GM_HOST. GM_EOUTPUT, GM_EDEVICE. */
int gm_pack_place(hid_t set, const gm_output_record *record, int index, const char *title);

/* Removes the scratch file and the spools. */
void gm_pack_discard(const gm_output_record *record);

#endif
