/* foreign.h - reads regions of a dataset by H5Dread, in the worker (io/worker.h): for layouts, filters and types that
 * nothing else here reads. Internal to io/. */
#ifndef GM_IO_READ_FOREIGN_H
#define GM_IO_READ_FOREIGN_H

#include "io/box.h"

typedef struct gm_foreign gm_foreign;

/* dataset and title are lent until it is closed. The worker keeps the dataset open. GM_EINPUT as gm_reader_open(). */
int gm_foreign_open(const gm_dataset *dataset, const char *title, gm_foreign **out);
void gm_foreign_close(gm_foreign *foreign); /* takes NULL */

/* Reads a region to memory. Thread-safe, one thread after the other. GM_EINPUT. */
int gm_foreign_read(const gm_foreign *foreign, const gm_region *region, char *dst);

#endif
