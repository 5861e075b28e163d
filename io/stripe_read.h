/* stripe_read.h - boxes of a virtual dataset made of whole rows, read from its parts. Internal to io/. */
#ifndef GM_IO_STRIPE_READ_H
#define GM_IO_STRIPE_READ_H

#include "io/box.h"

typedef struct gm_stripe_reader gm_stripe_reader;

/* For a record with row_runs; dataset and title are lent until it is closed. *out is NULL, with GM_OK, when the parts are not of that kind or memory
 * does not allow it: then H5Dread can do it. The table of stripes is charged to GM_HOST. GM_EINPUT as gm_reader_open(), also for a part that ends
 * before its data do. */
int gm_stripe_reader_open(const gm_dataset *dataset, const char *title, gm_stripe_reader **out);
void gm_stripe_reader_close(gm_stripe_reader *reader); /* takes NULL */

/* Bytes that may be charged; 0 for so many stripes that most are tiny: then it is H5Dread as well. */
int64_t gm_stripe_reader_bytes(const gm_dataset *dataset);

/* Reads a box, rows pitch bytes apart. Thread-safe. GM_EINPUT, naming the part. */
int gm_stripe_reader_read(const gm_stripe_reader *reader, const gm_box *box, char *dst, size_t pitch);

#endif
