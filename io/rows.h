/* rows.h - virtual datasets that are made of whole rows: which elements of a part each of them is. Internal to io/; the caller holds the lock of
 * h5.h.
 *
 * A row is all elements of one index of the first dimension: the columns of the file, whatever is selected of it. */
#ifndef GM_IO_ROWS_H
#define GM_IO_ROWS_H

#include "io/mappings.h"

/* Elements of a dataset in C order: count blocks of them, stride from one's first element to the next one's. */
typedef struct gm_blocks {
    int64_t start, stride, block, count;
} gm_blocks;

/* Rows [row, row + rows) are the elements of the part from this one on, one behind the other. */
typedef struct gm_row_run {
    int64_t row, rows, element;
} gm_row_run;

/* The runs of a mapping; the inside is its own. */
typedef struct gm_row_walk {
    gm_blocks to, from;
    int64_t columns, done;
} gm_row_walk;

/* Elements of one row. */
int64_t gm_rows_columns(const gm_dataset *dataset);

/* At most so many runs are in a virtual dataset that may be made of whole rows, as far as its own mappings tell; 0 for any other one. GM_EINPUT as
 * gm_mappings_visit(). */
int gm_rows_count(hid_t set, const char *title, const gm_dataset *dataset, int64_t *runs);

/* Begins with the runs of a mapping to a part with so many dimensions. Returns 0 when it is not one of whole rows: irregular, unlimited, empty, beyond
 * the part, columns left out, rows that are torn apart in the part. */
int gm_rows_begin(const gm_mapping *map, const gm_dataset *dataset, int rank, const int64_t *dims, gm_row_walk *walk);

/* Takes the next run, in the order of rows; 0 when there is none. */
int gm_rows_next(gm_row_walk *walk, gm_row_run *run);

#endif
