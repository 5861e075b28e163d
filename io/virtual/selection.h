/* selection.h - selections of HDF5 as flat words of 64 bits, which a call of the worker replies. Internal to io/.
 *
 *   GM_SELECTION_ALL, GM_SELECTION_NONE
 *   GM_SELECTION_SLAB, rank, then start, stride, count, block for each dimension (-1: unlimited)
 *   GM_SELECTION_RUNS, rank, runs, then for each of them the first index of each dimension, and the number of elements
 *                      along the last one; in the order of elements */
#ifndef GM_IO_VIRTUAL_SELECTION_H
#define GM_IO_VIRTUAL_SELECTION_H

#include "io/h5.h"
#include "io/virtual/patch.h"
#include "io/worker.h"

enum { GM_SELECTION_ALL, GM_SELECTION_NONE, GM_SELECTION_SLAB, GM_SELECTION_RUNS };

/* Runs of one selection, and of all in a virtual dataset, at most. */
enum { GM_SELECTION_RUNS_MAX = 1 << 20 };

/* --- In a call, under the lock of h5.h --- */

/* Appends the selection of a space. title names the dataset. GM_EINPUT: too many runs. */
int gm_selection_put(hid_t space, const char *title, gm_reply *reply);

/* Appends one block of a selection with an unlimited number of blocks. */
int gm_selection_put_block(hid_t space, int64_t block, const char *title, gm_reply *reply);

/* Is the selection unlimited in a dimension? */
int gm_selection_is_unlimited(hid_t space);

/* --- For its caller --- */

typedef struct gm_selection_words {
    int kind;
    gm_slab slab;       /* GM_SELECTION_SLAB */
    int unlimited;      /* its dimension without end; -1: none */
    int64_t runs;       /* GM_SELECTION_RUNS, of slab.rank */
    const int64_t *run; /* [runs][slab.rank + 1]; lent */
    int64_t elements;   /* of GM_SELECTION_RUNS */
} gm_selection_words;

/* Reads a selection at *at. Returns 0, or 1 when there is none before end. */
int gm_selection_get(const int64_t **at, const int64_t *end, gm_selection_words *selection);

#endif
