/* stripes.h - the table of a virtual dataset made of whole rows of contiguous parts: in which file, and where, each row lies. Internal to io/. */
#ifndef GM_IO_STRIPES_H
#define GM_IO_STRIPES_H

#include "io/dataset.h"

/* Rows [row, row + rows) lie one behind the other from byte offset of a part's file on. */
typedef struct gm_stripe {
    int64_t row, rows, offset;
    int part;
} gm_stripe;

typedef struct gm_stripes_part {
    char *path;
    int64_t end; /* of the data in it */
} gm_stripes_part;

enum { GM_STRIPES_PARTS = 256 }; /* files at most: each is kept open */

typedef struct gm_stripes {
    gm_stripe *stripe; /* in the order of rows, every row in one of them; charged to GM_HOST */
    int64_t count, row_bytes;
    gm_stripes_part *part;
    int parts, parts_max;
} gm_stripes;

/* Opens the file of a record with row_runs, and its parts, and fills the table. *found: 0, with GM_OK, when H5Dread has to do it: parts that are not
 * contiguous or of another type or order of bytes, rows in no part or in two, too many files, no memory. GM_EINPUT: no such dataset, a part
 * missing or damaged. gm_stripes_free() in any case. */
int gm_stripes_find(const gm_dataset *dataset, const char *title, gm_stripes *stripes, int *found);
void gm_stripes_free(gm_stripes *stripes);

/* The stripe that a row of the dataset lies in. */
const gm_stripe *gm_stripes_at(const gm_stripes *stripes, int64_t row);

#endif
