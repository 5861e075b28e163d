/* box.c - rectangles of a matrix as boxes, against every element one by one. */
#include <string.h>

#include "base/size.h"
#include "io/box.h"
#include "tests/tap.h"

/* A case: shape, and start, step, count of the selection; count 0: an index alone. */
typedef struct shape {
    const char *name;
    int rank;
    int64_t dims[4], start[4], step[4], count[4];
} shape;

static const shape shapes[] = {
    {"scalar", 0, {0}, {0}, {0}, {0}},
    {"vector", 1, {13}, {0}, {1}, {13}},
    {"every third of a vector", 1, {13}, {1}, {3}, {4}},
    {"one element of a vector", 1, {13}, {5}, {1}, {0}},
    {"matrix", 2, {5, 7}, {0, 0}, {1, 1}, {5, 7}},
    {"steps in a matrix", 2, {9, 11}, {1, 2}, {2, 3}, {4, 3}},
    {"column of a matrix", 2, {5, 7}, {0, 3}, {1, 1}, {5, 0}},
    {"row of a matrix", 2, {5, 7}, {2, 0}, {1, 1}, {0, 7}},
    {"stack", 3, {3, 4, 5}, {0, 0, 0}, {1, 1, 1}, {3, 4, 5}},
    {"part of a stack", 3, {4, 6, 9}, {1, 1, 2}, {1, 2, 3}, {3, 2, 2}},
    {"frame of a stack", 3, {4, 6, 5}, {2, 0, 0}, {1, 1, 1}, {0, 6, 5}},
    {"four dimensions", 4, {3, 2, 3, 4}, {0, 0, 0, 0}, {1, 1, 1, 1}, {3, 2, 3, 4}},
    {"part of four dimensions", 4, {3, 4, 3, 6}, {0, 1, 0, 0}, {1, 2, 1, 2}, {3, 2, 0, 3}},
};

static void describe(const shape *s, gm_dataset *d)
{
    memset(d, 0, sizeof *d);
    d->type = GM_DTYPE_I32;
    d->rank = s->rank;
    for (int i = 0; i < s->rank; i++) {
        d->dims[i] = s->dims[i];
        d->selection.start[i] = s->start[i];
        d->selection.step[i] = s->step[i];
        d->selection.count[i] = gm_max(s->count[i], 1);
        d->selection.dropped[i] = s->count[i] == 0;
        if (s->count[i])
            d->view[d->view_rank++] = s->count[i];
    }
}

/* Where element `flat` of what is selected is in the dataset. */
static int64_t place(const gm_dataset *d, int64_t flat)
{
    int64_t index = 0, stride = 1;
    for (int i = d->rank - 1; i >= 0; i--) {
        index += (d->selection.start[i] + flat % d->selection.count[i] * d->selection.step[i]) * stride;
        flat /= d->selection.count[i];
        stride *= d->dims[i];
    }
    return index;
}

/* Compares the elements of a box with those of the rectangle, the memory of which has `pitch` elements in a row. */
static int compare(const gm_dataset *d, const gm_box *box, int64_t row, int64_t rows, int64_t col, int64_t pitch,
                   int64_t columns)
{
    gm_stride dims[GM_RANK_MAX];
    gm_region region;
    gm_box_region(d, box, (size_t)pitch * 4, &region);
    int64_t first = gm_region_strides(d, &region, dims), elements = gm_region_elements(d->rank, &region);
    int wrong = elements != rows * box->columns;
    for (int64_t e = 0; e < elements; e++) {
        int64_t file = first, memory = 0, left = e;
        for (int i = d->rank - 1; i >= 0; i--) {
            file += left % dims[i].count * dims[i].file;
            memory += left % dims[i].count * dims[i].memory;
            left /= dims[i].count;
        }
        wrong += memory % 4 != 0 || file % 4 != 0 || memory / 4 % pitch >= box->columns ||
                 file / 4 != place(d, (row + memory / 4 / pitch) * columns + col + memory / 4 % pitch);
    }
    return wrong;
}

static void check_boxes(const shape *s)
{
    int64_t rows, columns, boxes_most = 0;
    int wrong = 0;
    gm_dataset d;
    describe(s, &d);
    gm_dataset_matrix(&d, &rows, &columns);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t col = 0; col < columns; col++) {
            for (int64_t end = col + 1; end <= columns; end++) {
                int64_t at = col, boxes = 0;
                for (gm_box box; at < end; at += box.columns, boxes++) {
                    gm_box_next(&d, row, rows - row, at, end, &box);
                    wrong += box.columns < 1 || at + box.columns > end;
                    wrong += compare(&d, &box, row, rows - row, at, columns + 3, columns);
                }
                wrong += at != end;
                boxes_most = gm_max(boxes_most, boxes);
            }
        }
    }
    tap_ok(wrong == 0, "%s: boxes have the elements of the rectangle", s->name);
    tap_ok(boxes_most <= 2 * gm_max(d.view_rank - 1, 1), "at most two boxes for each dimension");
}

/* A box of the view: each element of it, in C order, is where the selection has it. */
static void check_view(const shape *s)
{
    int64_t start[GM_RANK_MAX], count[GM_RANK_MAX], elements = 1;
    gm_region region;
    gm_dataset d;
    describe(s, &d);
    for (int v = 0; v < d.view_rank; v++) {
        start[v] = d.view[v] / 3;
        count[v] = d.view[v] - start[v] - d.view[v] / 4;
        elements *= count[v];
    }
    int wrong = !gm_box_view(&d, start, count, &region) || gm_region_elements(d.rank, &region) != elements;
    for (int64_t e = 0; e < elements && !wrong; e++) {
        int64_t flat = 0, step = 1, left = e, memory = 0, in_region = e, index = 0, stride = 1;
        for (int v = d.view_rank - 1; v >= 0; v--) {
            flat += (start[v] + left % count[v]) * step;
            step *= d.view[v];
            left /= count[v];
        }
        for (int i = d.rank - 1; i >= 0; i--) {
            int64_t at = in_region % region.count[i];
            in_region /= region.count[i];
            memory += at * region.memory[i];
            index += (region.start[i] + at * region.step[i]) * stride;
            stride *= d.dims[i];
        }
        wrong = memory != 4 * e || index != place(&d, flat);
    }
    tap_ok(!wrong, "%s: a box of the view", s->name);
    if (d.view_rank) {
        count[d.view_rank - 1] = d.view[d.view_rank - 1] + 1 - start[d.view_rank - 1];
        tap_ok(!gm_box_view(&d, start, count, &region), "%s: a box that ends outside", s->name);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_boxes(&shapes[i]);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_view(&shapes[i]);
    return tap_done();
}
