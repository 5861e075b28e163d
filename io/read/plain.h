/* plain.h - reads regions of a dataset that is no virtual one: contiguous data by pread, chunks by chunk_read.h,
 * everything else by foreign.h. Internal to io/. */
#ifndef GM_IO_READ_PLAIN_H
#define GM_IO_READ_PLAIN_H

#include "io/box.h"

typedef struct gm_plain gm_plain;

/* For a record that is not virtual. Checks that its files are those described, and long enough. GM_EINPUT, GM_EDEVICE.
 * title: for messages. Both are copied. */
int gm_plain_open(const gm_dataset *record, const char *title, gm_plain **plain);
void gm_plain_close(gm_plain *plain); /* takes NULL */

/* Bytes of an open one that are not charged: the caller does, if there are many. */
int64_t gm_plain_bytes(void);

/* Reads a region to memory. Thread-safe. GM_EINPUT. */
int gm_plain_read(gm_plain *plain, const gm_region *region, char *dst);

#endif
