/* pack.h - stores packed chunks from the ranks' spools in the output. Internal to io/. */
#ifndef GM_IO_WRITE_PACK_H
#define GM_IO_WRITE_PACK_H

#include "io/write/output.h"
#include "io/write/output_vfd.h"

/* Stores the chunks of an open dataset of a file, in order. The caller holds the lock of h5.h. Memory: a chunk, and 16
 * bytes for each chunk of a rank, charged to GM_HOST. GM_EOUTPUT, GM_EDEVICE. */
int gm_pack_place(const gm_output_vfd *file, hid_t set, const gm_output_record *record, int index, const char *title);

/* Gives up the scratch file. */
void gm_pack_drop_raw(gm_output_record *record);

/* Removes the scratch file and the spools. */
void gm_pack_discard(gm_output_record *record);

#endif
