/* box.c - cutting a range of columns into boxes; where they lie. */
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

int64_t gm_box_strides(const gm_dataset *dataset, const gm_box *box, size_t pitch, gm_stride *dims)
{
    int64_t size = (int64_t)gm_dtype_size(dataset->type), first = 0, stride = size, memory = size;

    for (int d = dataset->rank - 1; d >= 0; d--) {
        first += box->start[d] * stride;
        dims[d] = (gm_stride){box->count[d], stride * dataset->selection.step[d], d == box->row_dim ? (int64_t)pitch : memory};
        if (d != box->row_dim)
            memory *= box->count[d];
        stride *= dataset->dims[d];
    }
    return first;
}
