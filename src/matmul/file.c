/* Operands and C as they lie in their files. A vector is one stored row here, where the reader and the output have one
 * element in each row: it goes by ranges of elements. */
#include "src/matmul/matmul.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t gm_matmul_row_unit(const gm_matmul_case *c, int which)
{
    return c->is_row[which] ? 1 : gm_dataset_row_unit(&c->operand[which]);
}

int64_t gm_matmul_col_unit(const gm_matmul_case *c, int which)
{
    return c->is_row[which] ? gm_dataset_row_unit(&c->operand[which]) : gm_dataset_col_unit(&c->operand[which]);
}

int64_t gm_matmul_result_unit(const gm_matmul_case *c, const gm_output *output)
{
    return c->is_row[GM_C0] ? 1 : gm_output_row_unit(output, 0);
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

/* Elements that were read, from `first` of the piece on: the host has them in its caches. */
static int check_integers(const gm_matmul_case *c, int which, const gm_piece *piece, int64_t first, int64_t count,
                          const void *elements)
{
    const gm_dataset *d = &c->operand[which];
    int found = 0;
    for (int64_t i = 0; i < count; i++) /* without a branch: a vector loop */
        found |= is_beyond(d->type, element_at(d, elements, i));
    for (int64_t i = 0; i < count && found; i++) {
        uint64_t x = element_at(d, elements, i);
        int64_t at = first + i, row = piece->row + at / piece->cols, col = piece->col + at % piece->cols;
        if (is_beyond(d->type, x))
            return fail_beyond(d, row * c->stored_cols[which] + col, x);
    }
    return GM_OK;
}

int gm_matmul_read(void *context, const gm_piece *piece, gm_range part, void *to)
{
    const gm_matmul *p = context;
    int which = piece->kind == GM_PIECE_FINISH ? GM_C0 : piece->matrix;
    int64_t size = (int64_t)gm_dtype_size(p->c->operand[which].type);
    int64_t first = part.begin / size, count = gm_range_length(part) / size;
    int status = p->c->is_row[which]
                     ? gm_reader_read_range(p->reader[which], piece->col + first, count, to)
                     : gm_reader_read_part(p->reader[which], piece->row, piece->col, piece->cols, first, count, to);
    return status || !p->c->is_checked[which] ? status : check_integers(p->c, which, piece, first, count, to);
}

int gm_matmul_write(void *context, const gm_piece *piece, gm_range all, const void *from)
{
    (void)all;
    const gm_matmul *p = context;
    return p->c->is_row[GM_C0] ? gm_output_write_range(p->output, 0, piece->col, piece->cols, from)
                               : gm_output_write(p->output, 0, piece->row, piece->rows, piece->col, piece->cols, from,
                                                 (size_t)piece->cols * gm_dtype_size(p->c->result));
}
