/* The pieces of a pass over a rank's rectangle: down the rows of a block of columns, then of the next one. */
#include "base/size.h"
#include "src/normalize/normalize.h"

int64_t gm_normalize_pieces(const gm_normalize_plan *plan)
{
    return plan->rows == 0 ? 0 : gm_ceil_div(plan->rows, plan->piece_rows) * gm_ceil_div(plan->cols, plan->piece_cols);
}

/* Piece number `step` of the rectangle: where it is, and its shape. */
static void place(const gm_normalize_plan *plan, int64_t step, gm_piece *piece)
{
    int64_t across = gm_ceil_div(plan->block_cols, plan->piece_cols), down = gm_ceil_div(plan->rows, plan->piece_rows);
    int64_t block = step / (across * down), rest = step - block * across * down, first = block * plan->block_cols;
    across = gm_ceil_div(gm_min(plan->block_cols, plan->cols - first), plan->piece_cols);
    int64_t row = rest / across * plan->piece_rows, col = first + rest % across * plan->piece_cols;
    *piece = (gm_piece){.step = step,
                        .at_row = row,
                        .at_col = col,
                        .row = plan->row + row,
                        .col = plan->col + col,
                        .rows = gm_min(plan->piece_rows, plan->rows - row),
                        .cols = gm_min(plan->piece_cols, plan->cols - col)};
}

/* The place of a kept piece on the device. */
static void *kept_of(const gm_normalize *p, const gm_piece *piece)
{
    return (char *)p->kept + piece->step * p->plan.in_bytes;
}

/* Bytes of elements to read, and where they go. */
static void set_read(const gm_normalize *p, int64_t bytes, gm_piece *piece)
{
    int64_t size = (int64_t)gm_dtype_size(p->c->src.type), row = piece->cols * size;
    int is_range = gm_normalize_is_range(p, piece);
    piece->in = bytes;
    piece->in_from = is_range ? (piece->row * p->c->cols + piece->col) * size : piece->row * row;
    piece->in_unit = is_range ? p->plan.share * size : p->plan.share_rows * row;
    piece->in_place = p->kept ? kept_of(p, piece) : NULL;
    piece->readers = gm_ring_readers(bytes, p->plan.readers, p->plan.readers);
}

int gm_normalize_next(gm_normalize *p, gm_piece *piece, int *more, unsigned stages, int64_t more_bytes)
{
    *more = p->at < p->end;
    if (!*more)
        return GM_OK;
    place(&p->plan, p->at++, piece);
    int is_kept = piece->step < p->filled;
    int64_t n = piece->rows * piece->cols, bytes = is_kept ? 0 : n * (int64_t)gm_dtype_size(p->c->src.type);
    piece->stages = stages | (is_kept ? 0 : GM_STAGE_READ | GM_STAGE_TO_DEVICE);
    if (!is_kept)
        set_read(p, bytes, piece);
    piece->bytes = bytes + n * more_bytes;
    p->job->report.bytes_read += bytes;
    return GM_OK;
}

int gm_normalize_run(gm_normalize *p, gm_program *program, void *pass)
{
    p->pass = pass;
    int status = gm_stream_run(p->stream, program, &p->job->report.times);
    if (!status && p->kept)
        p->filled = gm_max(p->filled, p->end);
    return status;
}

const void *gm_normalize_elements(const gm_normalize *p, const gm_piece *piece, const gm_slot_memory *slot)
{
    return p->kept ? kept_of(p, piece) : slot->device;
}

int gm_normalize_is_range(const gm_normalize *p, const gm_piece *piece)
{
    return piece->rows == 1 || piece->cols == p->c->cols;
}
