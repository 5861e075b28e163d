/* box.h - a rectangle of a dataset's matrix as boxes of the dataset. Internal to io/.
 *
 * The columns of the matrix are the trailing dimensions of the selection in C order; a range of columns that begins or
 * ends inside one of them is several boxes, at most two for each dimension. */
#ifndef GM_IO_BOX_H
#define GM_IO_BOX_H

#include "base/range.h"
#include "io/bytes.h"
#include "io/dataset.h"

/* count[d] elements from start[d] on in the dataset's own dimensions, selection.step[d] apart. */
typedef struct gm_box {
    int64_t start[GM_RANK_MAX], count[GM_RANK_MAX];
    int row_dim;     /* the dimension of the matrix's rows; -1: none, one row */
    int64_t columns; /* consecutive columns of the matrix that it covers */
} gm_box;

/* The largest box of rows [row, row + rows) whose columns begin at col and end at end or before. col < end, all inside
 * the matrix. */
void gm_box_next(const gm_dataset *dataset, int64_t row, int64_t rows, int64_t col, int64_t end, gm_box *box);

/* count[d] elements of a dataset from start[d] on, step[d] apart, memory[d] bytes apart in memory: one entry for each
 * dimension. */
typedef struct gm_region {
    int64_t start[GM_RANK_MAX], step[GM_RANK_MAX], count[GM_RANK_MAX], memory[GM_RANK_MAX];
} gm_region;

/* The region of a box in memory with rows pitch bytes apart. */
void gm_box_region(const gm_dataset *dataset, const gm_box *box, size_t pitch, gm_region *region);

/* The region of count[v] elements from start[v] on in each dimension of the view, in C order in memory, without gaps.
 * Returns 0 when they are not all inside the view. */
int gm_box_view(const gm_dataset *dataset, const int64_t *start, const int64_t *count, gm_region *region);

/* The strides of a region in the elements of its dataset, in C order: dims, outermost first, one for each dimension.
 * Returns the byte of its first element. */
int64_t gm_region_strides(const gm_dataset *dataset, const gm_region *region, gm_stride *dims);

/* Elements of a region. */
int64_t gm_region_elements(int rank, const gm_region *region);

#endif
