#include "src/move/boxes.h"

#include "base/range.h"
#include "base/size.h"

enum {
    EVEN = 64,        /* elements: extents that are cut are multiples of it, so that rows of a box are aligned */
    WELL_SHARED = 900 /* of 1000: the work of the average rank over that of the busiest */
};

gm_boxes gm_boxes_of(const gm_dataset *dataset, int first, int second)
{
    gm_boxes b = {.rank = dataset->view_rank, .first = first, .second = second};
    for (int d = 0; d < b.rank; d++) {
        b.dims[d] = b.end[d] = dataset->view[d];
        b.unit[d] = gm_dataset_view_unit(dataset, d);
    }
    return b;
}

int gm_boxes_swapped(const gm_boxes *b, int d)
{
    return d == b->first ? b->second : d == b->second ? b->first : d;
}

int gm_boxes_share(gm_boxes *b, int ranks, int rank)
{
    int64_t best = -1;
    int chosen = 0;
    for (int k = 0; k < b->rank && best < WELL_SHARED; k++) {
        int d = gm_boxes_swapped(b, k);
        int64_t units = gm_ceil_div(b->dims[d], b->unit[d]), most = gm_ceil_div(units, ranks);
        int64_t evenness = units ? (int64_t)(1000 * ((double)units / ((double)most * ranks))) : 0;
        if (evenness > best) {
            best = evenness;
            chosen = d;
        }
    }
    gm_range share = gm_range_split(b->dims[chosen], b->unit[chosen], ranks, rank);
    b->begin[chosen] = share.begin;
    b->end[chosen] = share.end;
    return chosen;
}

static int64_t length(const gm_boxes *b, int d)
{
    return b->end[d] - b->begin[d];
}

int64_t gm_boxes_piece(const gm_boxes *b)
{
    return gm_product_sat(b->extent, b->rank);
}

int64_t gm_boxes_elements(const gm_boxes *b)
{
    int64_t elements = 1;
    for (int d = 0; d < b->rank; d++)
        elements = gm_mul_sat(elements, length(b, d));
    return elements;
}

int64_t gm_boxes_count(const gm_boxes *b)
{
    int64_t count = 1;
    for (int d = 0; d < b->rank; d++)
        count = gm_mul_sat(count, gm_ceil_div(length(b, d), b->extent[d]));
    return count;
}

/* Raises an extent to `wanted`, as far as the box keeps to `elements`. Returns whether it grew. */
static int grow(gm_boxes *b, int d, int64_t wanted, int64_t elements)
{
    int64_t had = b->extent[d], most = elements / (gm_boxes_piece(b) / had), whole = gm_max(length(b, d), 1);
    int64_t step = b->unit[d] > 1 ? b->unit[d] : EVEN, extent = gm_min(gm_min(wanted, most), whole);
    if (extent < whole && extent > step)
        extent -= extent % step;
    else if (extent < whole && b->unit[d] > 1) /* parts of a chunk that are about as large as each other */
        extent = gm_ceil_div(b->unit[d], gm_ceil_div(b->unit[d], extent));
    b->extent[d] = gm_max(extent, had);
    return extent > had;
}

/* The one with fewer elements first, until neither grows. */
static void grow_axes(gm_boxes *b, int64_t elements)
{
    int d = b->first, other = b->second;
    for (int stuck = 0; stuck < 2;) {
        if (!stuck && (b->extent[d] > b->extent[other] || b->extent[d] == gm_max(length(b, d), 1))) {
            int swap = d;
            d = other;
            other = swap;
        }
        if (grow(b, d, gm_mul_sat(b->extent[d], 2), elements)) {
            stuck = 0;
            continue;
        }
        int swap = d;
        d = other;
        other = swap;
        stuck++;
    }
}

void gm_boxes_cut(gm_boxes *b, int64_t elements)
{
    elements = gm_max(elements, 1);
    for (int d = 0; d < b->rank; d++)
        b->extent[d] = gm_max(gm_min(b->unit[d], length(b, d)), 1);
    if (gm_boxes_piece(b) > elements)
        for (int d = 0; d < b->rank; d++)
            b->extent[d] = 1;
    for (int d = b->rank - 1; d > b->second; d--)
        grow(b, d, INT64_MAX, elements);
    grow_axes(b, elements);
    for (int d = b->second - 1; d >= 0; d--)
        if (d != b->first)
            grow(b, d, INT64_MAX, elements);
}

/* Elements of a box that are contiguous in the input, or in the output. */
static int64_t run_of(const gm_boxes *b, int swapped)
{
    int64_t run = 1;
    for (int k = b->rank - 1; k >= 0; k--) {
        int d = swapped ? gm_boxes_swapped(b, k) : k;
        run = gm_mul_sat(run, b->extent[d]);
        if (b->extent[d] < b->dims[d])
            break;
    }
    return run;
}

int64_t gm_boxes_run(const gm_boxes *b)
{
    return gm_min(run_of(b, 0), run_of(b, 1));
}

int64_t gm_boxes_runs(const gm_boxes *b, int of_output)
{
    int64_t runs = 1;
    int whole = 1; /* are all dimensions after d whole in a box? */
    for (int k = b->rank - 1; k >= 0; k--) {
        int d = of_output ? gm_boxes_swapped(b, k) : k;
        runs = gm_mul_sat(runs, whole ? gm_ceil_div(length(b, d), gm_max(b->extent[d], 1)) : length(b, d));
        whole = whole && b->extent[d] == b->dims[d];
    }
    return runs;
}

void gm_boxes_get(const gm_boxes *b, int64_t number, int64_t *start, int64_t *count)
{
    for (int k = b->rank - 1; k >= 0; k--) {
        int d = gm_boxes_swapped(b, k);
        int64_t along = gm_ceil_div(length(b, d), b->extent[d]);
        start[d] = b->begin[d] + number % along * b->extent[d];
        count[d] = gm_min(b->extent[d], b->end[d] - start[d]);
        number /= along;
    }
}

int64_t gm_boxes_next(int rank, const int64_t *count, int64_t at, int64_t end, int64_t *first, int64_t *n)
{
    int64_t elements = 1, below = 1; /* below: elements of the box with one index along d */
    int whole = 1;                   /* are all dimensions after d whole? */
    for (int d = rank - 1; d >= 0; d--) {
        first[d] = at / below % count[d];
        n[d] = whole ? gm_min(count[d] - first[d], (end - at) / below) : 1;
        elements *= n[d];
        whole = whole && n[d] == count[d];
        below *= count[d];
    }
    return elements;
}
