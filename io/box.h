/* box.h - a rectangle of a dataset's matrix as boxes of the dataset. Internal to io/.
 *
 * The columns of the matrix are the trailing dimensions of what is selected, one after the other; a range of columns that begins or ends
 * inside one of them is several boxes, at most two for each dimension. */
#ifndef GM_IO_BOX_H
#define GM_IO_BOX_H

#include "io/bytes.h"
#include "io/dataset.h"

/* count[d] elements from start[d] on in the dataset's own dimensions, selection.step[d] apart. */
typedef struct gm_box {
    int64_t start[GM_RANK_MAX], count[GM_RANK_MAX];
    int row_dim;     /* the dimension of the matrix's rows; -1: none, one row */
    int64_t columns; /* of the matrix that it covers, one after the other */
} gm_box;

/* The largest box of rows [row, row + rows) whose columns begin at col and end at end or before. col < end, all inside the matrix. */
void gm_box_next(const gm_dataset *dataset, int64_t row, int64_t rows, int64_t col, int64_t end, gm_box *box);

/* How a box lies in the elements of its dataset, one behind the other in C order, and in memory with rows pitch bytes apart: dims, outermost first, one
 * for each dimension. Returns the byte of its first element. */
int64_t gm_box_strides(const gm_dataset *dataset, const gm_box *box, size_t pitch, gm_stride *dims);

#endif
