/* Operands and C as they lie in their files. A vector is one stored row here, where the reader and the output have one
 * element in each row: it goes by ranges of elements. So do whole rows of a frame, and other parts of it by boxes. */
#include "src/matmul/matmul.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t gm_matmul_row_unit(const gm_matmul_case *c, int which)
{
    return c->is_row[which]     ? 1
           : c->is_stack[which] ? gm_dataset_view_unit(&c->operand[which], 1)
                                : gm_dataset_row_unit(&c->operand[which]);
}

int64_t gm_matmul_col_unit(const gm_matmul_case *c, int which)
{
    return c->is_row[which]     ? gm_dataset_row_unit(&c->operand[which])
           : c->is_stack[which] ? gm_dataset_view_unit(&c->operand[which], 2)
                                : gm_dataset_col_unit(&c->operand[which]);
}

int64_t gm_matmul_result_unit(const gm_matmul_case *c, const gm_output *output)
{
    return c->is_row[GM_C0] || c->is_batch ? 1 : gm_output_row_unit(output, 0);
}

/* Is the integer beyond those that float64 holds? */
static int is_beyond(gm_dtype type, uint64_t x)
{
    const uint64_t limit = UINT64_C(1) << 53;
    return type == GM_DTYPE_I64 ? x + limit > 2 * limit : x > limit;
}

static uint64_t element_at(const gm_dataset *d, const void *elements, int64_t index)
{
    uint64_t x;
    memcpy(&x, (const char *)elements + index * (int64_t)sizeof x, sizeof x);
    return d->swap ? __builtin_bswap64(x) : x;
}

/* Fails for the element at `index` of the selection, in C order. */
static int fail_beyond(const gm_dataset *d, int64_t index, uint64_t x)
{
    char title[GM_PATH_MAX], place[GM_COORDINATES_TEXT], number[32];
    int64_t at[GM_RANK_MAX];
    for (int v = d->view_rank - 1; v >= 0; v--) {
        at[v] = index % d->view[v];
        index /= d->view[v];
    }
    snprintf(number, sizeof number, d->type == GM_DTYPE_I64 ? "%" PRId64 : "%" PRIu64, x);
    return gm_fail(GM_EINPUT, "%s: element %s is %s, expected integers up to 2^53, which float64 holds",
                   gm_dataset_title(d, title), gm_coordinates_format(d->view_rank, at, place), number);
}

/* Is one of the integers beyond those, or the last of them? Without branches and comparisons: a vector loop of any
 * processor. */
static int may_be_beyond(const gm_dataset *d, const void *elements, int64_t count)
{
    const int is_signed = d->type == GM_DTYPE_I64, shift = is_signed ? 54 : 53;
    const uint64_t offset = is_signed ? UINT64_C(1) << 53 : 0;
    uint64_t found = 0;
    if (d->swap) {
        for (int64_t i = 0; i < count; i++)
            found |= (element_at(d, elements, i) + offset) >> shift;
        return found != 0;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t x;
        memcpy(&x, (const char *)elements + i * (int64_t)sizeof x, sizeof x);
        found |= (x + offset) >> shift;
    }
    return found != 0;
}

/* Elements that were read: `count` from `first` of a rectangle on, whose rows of `cols` elements begin at element
 * `corner` of the selection and lie `pitch` apart. The host has them in its caches. */
static int check_integers(const gm_dataset *d, int64_t corner, int64_t cols, int64_t pitch, int64_t first,
                          int64_t count, const void *elements)
{
    int may_be = may_be_beyond(d, elements, count);
    for (int64_t i = 0; i < count && may_be; i++) {
        uint64_t x = element_at(d, elements, i);
        int64_t at = first + i;
        if (is_beyond(d->type, x))
            return fail_beyond(d, corner + at / cols * pitch + at % cols, x);
    }
    return GM_OK;
}

int gm_matmul_read_range(const gm_matmul_case *c, gm_reader *reader, int which, int64_t first, int64_t count, void *to)
{
    int status = gm_reader_read_range(reader, first, count, to);
    return status || !c->is_checked[which] ? status
                                           : check_integers(&c->operand[which], first, count, count, 0, count, to);
}

/* Elements [first, first + count) of the rectangle of a piece, in a frame. */
static int read_boxes(gm_reader *reader, int64_t frame, const gm_piece *piece, int64_t size, int64_t first,
                      int64_t count, char *to)
{
    int64_t end = first + count;
    int status = GM_OK;
    while (first < end && !status) {
        gm_rectangle r = gm_rectangle_next(piece->cols, first, end);
        status = gm_reader_read_box(reader, (int64_t[]){frame, piece->row + r.row, piece->col + r.col},
                                    (int64_t[]){1, r.rows, r.cols}, to);
        first += r.rows * r.cols;
        to += r.rows * r.cols * size;
    }
    return status;
}

int gm_matmul_read(void *context, const gm_piece *piece, gm_range part, void *to)
{
    const gm_matmul *p = context;
    const gm_matmul_case *c = p->c;
    int which = piece->kind == GM_PIECE_FINISH ? GM_C0 : piece->matrix, status;
    gm_reader *reader = p->reader[which];
    int64_t size = (int64_t)gm_dtype_size(c->operand[which].type), cols = c->stored_cols[which];
    int64_t first = part.begin / size, count = gm_range_length(part) / size;
    int64_t frame = c->is_stack[which] ? p->frame : 0;
    int64_t corner = (frame * c->stored_rows[which] + piece->row) * cols + piece->col;
    if (c->is_row[which] || (c->is_stack[which] && piece->cols == cols))
        return gm_matmul_read_range(c, reader, which, corner + first, count, to);
    if (c->is_stack[which])
        status = read_boxes(reader, frame, piece, size, first, count, to);
    else
        status = gm_reader_read_part(reader, piece->row, piece->col, piece->cols, first, count, to);
    return status || !c->is_checked[which]
               ? status
               : check_integers(&c->operand[which], corner, piece->cols, cols, first, count, to);
}

/* Rows of a piece in a frame of C. */
static int write_rows(const gm_matmul *p, const gm_piece *piece, const char *from)
{
    int64_t bytes = piece->cols * (int64_t)gm_dtype_size(p->c->result), n = p->c->n;
    int64_t corner = (p->frame * p->c->m + piece->row) * n + piece->col;
    int status = GM_OK;
    if (piece->cols == n)
        return gm_output_write_range(p->output, 0, corner, piece->rows * n, from);
    for (int64_t i = 0; i < piece->rows && !status; i++)
        status = gm_output_write_range(p->output, 0, corner + i * n, piece->cols, from + i * bytes);
    return status;
}

int gm_matmul_write(void *context, const gm_piece *piece, gm_range all, const void *from)
{
    (void)all;
    const gm_matmul *p = context;
    return p->c->is_row[GM_C0] ? gm_output_write_range(p->output, 0, piece->col, piece->cols, from)
           : p->c->is_batch    ? write_rows(p, piece, from)
                               : gm_output_write(p->output, 0, piece->row, piece->rows, piece->col, piece->cols, from,
                                                 (size_t)piece->cols * gm_dtype_size(p->c->result));
}
