#include "src/matmul/matmul.h"

#include "base/size.h"

void gm_strips_set(gm_strips *s, int64_t row0, int64_t rows, int64_t col0, int64_t cols, int64_t element,
                   int64_t capacity)
{
    int64_t fit = gm_max(capacity / element, 1);
    *s = (gm_strips){.row0 = row0,
                     .row1 = row0 + rows,
                     .col0 = col0,
                     .col1 = col0 + cols,
                     .row = row0,
                     .col = col0,
                     .row_unit = 1,
                     .col_unit = 1};
    s->cols = gm_min(gm_max(cols, 1), fit);
    s->rows = s->cols == cols ? gm_max(fit / s->cols, 1) : 1;
    if (rows == 0 || cols == 0)
        s->row = s->row1;
}

void gm_strips_align(gm_strips *s, int64_t row_unit, int64_t col_unit, int64_t element, int64_t capacity)
{
    int64_t fit = gm_max(capacity / element, 1);
    if (row_unit == 1 || fit / row_unit == 0)
        return;
    int64_t cols = fit / row_unit;
    if (cols >= s->col1 - s->col0) {
        s->rows = fit / s->cols / row_unit * row_unit;
    } else if (cols >= col_unit) {
        s->rows = row_unit;
        s->cols = cols / col_unit * col_unit;
        s->col_unit = col_unit;
    } else {
        return;
    }
    s->row_unit = row_unit;
}

int gm_strips_next(gm_strips *s, gm_piece *piece)
{
    if (s->row >= s->row1)
        return 0;
    piece->row = s->row;
    piece->rows = gm_min(s->rows - s->row % s->row_unit, s->row1 - s->row);
    piece->col = s->col;
    piece->cols = gm_min(s->cols - s->col % s->col_unit, s->col1 - s->col);
    piece->at_row = s->at_row + s->row - s->row0;
    piece->at_col = s->at_col + s->col - s->col0;
    s->col += piece->cols;
    if (s->col == s->col1) {
        s->col = s->col0;
        s->row += piece->rows;
    }
    piece->last = s->row >= s->row1;
    return 1;
}
