/* select.h - "[100:200,:,::2]": which elements of a dataset. Internal to io/. */
#ifndef GM_IO_DESCRIBE_SELECT_H
#define GM_IO_DESCRIBE_SELECT_H

#include "io/dataset.h"

/* Fills selection, view_rank, view and selected of a record whose names, rank and dims are known. text is "" for
 * everything. The rules are NumPy's: a negative index counts from the end, the ends of a range are cut to the
 * dimension, an index alone drops its dimension, dimensions without an item are whole. Steps are 1 or more. A range may
 * be empty, but not run backwards. GM_EUSAGE: not a selection; GM_EINPUT: one that does not fit the dataset. */
int gm_select(gm_dataset *record, const char *text);

#endif
