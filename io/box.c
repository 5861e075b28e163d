/* box.c - cuts rectangles into boxes; the strides of a box. */
#include "io/box.h"

#include "base/size.h"

void gm_box_next(const gm_dataset *dataset, int64_t row, int64_t rows, int64_t col, int64_t end, gm_box *box)
{
    const gm_selection *selection = &dataset->selection;
    int own[GM_RANK_MAX]; /* a dimension of the view -> of the dataset */
    int n = 0, whole = 1; /* whole: the box has every dimension further in from end to end */
    int64_t inner = 1;    /* columns in one step of the dimension */
    int64_t left = col;
    for (int d = 0; d < dataset->rank; d++) {
        box->start[d] = selection->start[d];
        box->count[d] = 1;
        if (!selection->dropped[d])
            own[n++] = d;
    }
    box->columns = 1;
    for (int v = n - 1; v > 0; v--) {
        int64_t index = left % dataset->view[v];
        left /= dataset->view[v];
        box->start[own[v]] += index * selection->step[own[v]];
        if (whole) {
            box->count[own[v]] = gm_min(dataset->view[v] - index, (end - col) / inner);
            box->columns = box->count[own[v]] * inner;
            whole = box->count[own[v]] == dataset->view[v];
            inner *= dataset->view[v];
            if (inner > end - col)
                whole = 0;
        }
    }
    box->row_dim = n ? own[0] : -1;
    if (n) {
        box->start[own[0]] += row * selection->step[own[0]];
        box->count[own[0]] = rows;
    }
}

void gm_box_region(const gm_dataset *dataset, const gm_box *box, size_t pitch, gm_region *region)
{
    int64_t memory = (int64_t)gm_dtype_size(dataset->type);
    for (int d = dataset->rank - 1; d >= 0; d--) {
        region->start[d] = box->start[d];
        region->step[d] = dataset->selection.step[d];
        region->count[d] = box->count[d];
        region->memory[d] = d == box->row_dim ? (int64_t)pitch : memory;
        if (d != box->row_dim)
            memory *= box->count[d];
    }
}

int gm_box_view(const gm_dataset *dataset, const int64_t *start, const int64_t *count, gm_region *region)
{
    const gm_selection *selection = &dataset->selection;
    int64_t memory = (int64_t)gm_dtype_size(dataset->type);
    int v = dataset->view_rank;
    for (int d = dataset->rank - 1; d >= 0; d--) {
        int64_t at = 0, extent = 1;
        if (!selection->dropped[d]) {
            v--;
            at = start[v];
            extent = count[v];
            if (at < 0 || extent < 0 || extent > dataset->view[v] - at)
                return 0;
        }
        region->start[d] = selection->start[d] + at * selection->step[d];
        region->step[d] = selection->step[d];
        region->count[d] = extent;
        region->memory[d] = memory;
        memory *= extent;
    }
    return 1;
}

int64_t gm_region_strides(const gm_dataset *dataset, const gm_region *region, gm_stride *dims)
{
    int64_t first = 0, stride = (int64_t)gm_dtype_size(dataset->type);
    for (int d = dataset->rank - 1; d >= 0; d--) {
        first += region->start[d] * stride;
        dims[d] = (gm_stride){region->count[d], stride * region->step[d], region->memory[d]};
        stride *= dataset->dims[d];
    }
    return first;
}

int64_t gm_region_elements(int rank, const gm_region *region)
{
    int64_t elements = 1;
    for (int d = 0; d < rank; d++)
        elements *= region->count[d];
    return elements;
}
