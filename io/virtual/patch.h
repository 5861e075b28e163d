/* patch.h - a part of a virtual dataset and the part of its source that lies there: arithmetic. Internal to io/.
 *
 * A selection of HDF5 is elements in C order; the n-th one of the virtual dataset is the n-th one of the source. A
 * patch has one or more axes that both sides share: one step along an axis is a step along one dimension of each side.
 */
#ifndef GM_IO_VIRTUAL_PATCH_H
#define GM_IO_VIRTUAL_PATCH_H

#include "io/box.h"

/* count elements, to_step apart in dimension to_dim of the virtual dataset, from_step apart in from_dim of the source.
 */
typedef struct gm_axis {
    int64_t count, to_step, from_step;
    int to_dim, from_dim;
} gm_axis;

enum { GM_AXES_MAX = 4 * GM_RANK_MAX };

/* Axes are in C order, outermost first, of both sides; along a dimension of several axes, the steps of one of them are
 * beyond the reach of those inside it. Arrays are lent. */
typedef struct gm_patch {
    int to_rank, from_rank, axes;
    const int64_t *to, *last; /* [to_rank]: the first and the last index of the virtual dataset */
    const int64_t *from;      /* [from_rank]: the first index of the source */
    const gm_axis *axis;
} gm_patch;

/* A regular selection: count blocks of block elements, stride apart, from start on, in each dimension. */
typedef struct gm_slab {
    int rank;
    int64_t start[GM_RANK_MAX], stride[GM_RANK_MAX], count[GM_RANK_MAX], block[GM_RANK_MAX];
} gm_slab;

/* Elements of a selection; INT64_MAX: too many. */
int64_t gm_slab_elements(const gm_slab *slab);

/* The last index in a dimension of a selection that is not empty; INT64_MAX: beyond all. */
int64_t gm_slab_last(const gm_slab *slab, int d);

/* The axes that two selections of as many elements, not empty, share: their number. 0 axes: one element. -1: their
 * shapes have no common division; then each of them shares axes with a line of as many elements. */
int gm_slab_axes(const gm_slab *to, const gm_slab *from, gm_axis *axes /* [GM_AXES_MAX] */);

/* Elements of a source: count of them along each span, step apart in dimension dim, memory bytes apart in memory;
 * outermost first. */
typedef struct gm_span {
    int64_t count, step, memory;
    int dim;
} gm_span;

enum { GM_SPANS_MAX = 2 * GM_RANK_MAX };

typedef struct gm_spans {
    int64_t start[GM_RANK_MAX]; /* the first element */
    int64_t memory;             /* byte of memory of the first element */
    int spans;
    gm_span span[GM_SPANS_MAX];
} gm_spans;

/* Calls visit for the elements of a region of the virtual dataset that lie in the patch, as spans of the source, in
 * no particular order. A status other than GM_OK ends the walk and is returned. Pure. */
typedef int gm_spans_visit(void *context, const gm_spans *spans);
int gm_patch_walk(const gm_patch *patch, const gm_region *region, gm_spans_visit *visit, void *context);

/* Calls visit for spans of a dataset of the given rank as regions, which have one span at most in each dimension;
 * memory: byte of the region's first element. */
typedef int gm_region_visit(void *context, const gm_region *region, int64_t memory);
int gm_spans_regions(const gm_spans *spans, int rank, gm_region_visit *visit, void *context);

/* Have two patches of one virtual dataset no element in common, as far as one dimension tells? */
int gm_patch_is_apart(const gm_patch *a, const gm_patch *b);

#endif
