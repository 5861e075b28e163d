/* virtual_read.h - reads regions of a virtual dataset from its sources. libhdf5 never reads one: where it cannot open a
 * source, it delivers fill values with success. Internal to io/. */
#ifndef GM_IO_READ_VIRTUAL_READ_H
#define GM_IO_READ_VIRTUAL_READ_H

#include "io/box.h"

typedef struct gm_virtual gm_virtual;

/* For a virtual record; record and title are lent until it is closed. Its table and its open sources are charged to
 * GM_HOST. GM_EINPUT, GM_EDEVICE. */
int gm_virtual_open(const gm_dataset *record, const char *title, gm_virtual **reader);
void gm_virtual_close(gm_virtual *reader); /* takes NULL */

/* Bytes that are charged with the given threads, where `room` bytes may be allocated; it works with those of one
 * thread. Pure. */
int64_t gm_virtual_bytes(const gm_dataset *record, int threads, int64_t room);

/* Reads a region to memory. Elements in no mapping are the fill value; of two mappings of one element the later one
 * counts. Thread-safe. GM_EINPUT, naming the source. */
int gm_virtual_read(gm_virtual *reader, const gm_region *region, char *dst);

#endif
