/* boxes.h - a dataset of which two axes are swapped, cut into boxes: pieces whose contiguous runs are long both in the
 * input and in the output. Pure arithmetic.
 *
 * Dimensions are those of the input's view. Boxes begin at multiples of their extents, and are numbered in the order of
 * the output. */
#ifndef GM_SRC_MOVE_BOXES_H
#define GM_SRC_MOVE_BOXES_H

#include "io/dataset.h"

typedef struct gm_boxes {
    int rank, first, second;                      /* the axes: first < second */
    int64_t dims[GM_RANK_MAX];                    /* of the whole */
    int64_t unit[GM_RANK_MAX];                    /* of chunks of the input; 1: none */
    int64_t begin[GM_RANK_MAX], end[GM_RANK_MAX]; /* of the part that is cut: all, or the share of a rank */
    int64_t extent[GM_RANK_MAX];                  /* of a box, at most; 0 before gm_boxes_cut() */
} gm_boxes;

/* All of a view. */
gm_boxes gm_boxes_of(const gm_dataset *dataset, int first, int second);

/* The dimension of the input that is dimension d of the output, and the other way round. */
int gm_boxes_swapped(const gm_boxes *boxes, int d);

/* Limits boxes to the share of a rank: a range of the outermost dimension of the output that ranks share evenly.
 * Returns that dimension. Shares begin at chunks. */
int gm_boxes_share(gm_boxes *boxes, int ranks, int rank);

/* Sets the extents of boxes of at most `elements` elements (of one, if need be): whole chunks where they fit, then the
 * innermost dimensions, then the axes, evenly, then what lies between and before them. */
void gm_boxes_cut(gm_boxes *boxes, int64_t elements);

/* Elements of a box; of all boxes. Number of boxes. */
int64_t gm_boxes_piece(const gm_boxes *boxes);
int64_t gm_boxes_elements(const gm_boxes *boxes);
int64_t gm_boxes_count(const gm_boxes *boxes);

/* Elements that are contiguous in the input and in the output: the fewer of both. */
int64_t gm_boxes_run(const gm_boxes *boxes);

/* Runs of all boxes: contiguous in the input, or in the output. Saturates. */
int64_t gm_boxes_runs(const gm_boxes *boxes, int of_output);

/* Box number `number` (from 0): count[d] elements from start[d] on. */
void gm_boxes_get(const gm_boxes *boxes, int64_t number, int64_t *start, int64_t *count);

/* The largest box of the elements at, at + 1, ... of a box of count[rank] elements, in C order, none of which is `end`
 * or later: n[d] elements from first[d] on. at < end. Returns its elements. */
int64_t gm_boxes_next(int rank, const int64_t *count, int64_t at, int64_t end, int64_t *first, int64_t *n);

#endif
