/* Operands and C as they lie in their files. A vector is one stored row here, where the reader and the output have one
 * element in each row: it goes by ranges of elements. */
#include "src/matmul/matmul.h"

#include "base/size.h"

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

int gm_matmul_read(void *context, const gm_piece *piece, gm_range part, void *to)
{
    const gm_matmul *p = context;
    int which = piece->kind == GM_PIECE_FINISH ? GM_C0 : piece->matrix;
    int64_t size = (int64_t)gm_dtype_size(p->c->operand[which].type);
    int64_t first = part.begin / size, count = gm_range_length(part) / size;
    return p->c->is_row[which]
               ? gm_reader_read_range(p->reader[which], piece->col + first, count, to)
               : gm_reader_read_part(p->reader[which], piece->row, piece->col, piece->cols, first, count, to);
}

int gm_matmul_write(void *context, const gm_piece *piece, gm_range all, const void *from)
{
    (void)all;
    const gm_matmul *p = context;
    return p->c->is_row[GM_C0] ? gm_output_write_range(p->output, 0, piece->col, piece->cols, from)
                               : gm_output_write(p->output, 0, piece->row, piece->rows, piece->col, piece->cols, from,
                                                 (size_t)piece->cols * gm_dtype_size(p->c->result));
}
