/* Groups of frames as pieces of the ring: LOAD, the strips of an operand that is the same for all frames, then a
 * MULTIPLY for each group, which reads, computes and writes all of it. */
#include "src/matmul/batch/batch.h"

#include "base/size.h"

#include <string.h>

/* The strips of the next operand that is loaded once. */
static void set_once(gm_batch *b)
{
    const gm_matmul_case *c = b->product.c;
    while (b->once <= GM_B && b->plan.once[b->once] == 0)
        b->once++;
    if (b->once <= GM_B)
        gm_strips_set(&b->strips, 0, c->stored_rows[b->once], 0, c->stored_cols[b->once],
                      (int64_t)gm_dtype_size(c->operand[b->once].type), b->plan.ring.slot);
}

void gm_batch_walk(gm_batch *b, gm_range frames, int loads)
{
    b->walk = frames;
    b->once = loads ? GM_A : GM_B + 1;
    set_once(b);
}

static unsigned copies(const gm_batch *b, unsigned stages)
{
    return b->product.job->ops->unified ? 0 : stages;
}

static int next_strip(gm_batch *b, gm_piece *piece)
{
    while (b->once <= GM_B) {
        if (gm_strips_next(&b->strips, piece)) {
            int64_t element = (int64_t)gm_dtype_size(b->product.c->operand[b->once].type);
            piece->kind = GM_PIECE_LOAD;
            piece->matrix = b->once;
            piece->in = piece->bytes = piece->rows * piece->cols * element;
            piece->stages = GM_STAGE_READ | GM_STAGE_COMPUTE | copies(b, GM_STAGE_TO_DEVICE);
            return 1;
        }
        b->once++;
        set_once(b);
    }
    return 0;
}

/* A group, up to the border of a unit of frames where it would pass one that it does not reach the end of: a chunk is
 * decoded once. Groups are whole units, or less than one. */
static int64_t length_of(const gm_batch *b)
{
    int64_t unit = b->plan.unit, to_border = unit - b->walk.begin % unit, group = b->plan.group;
    int64_t length = to_border < unit || group < unit ? gm_min(group, to_border) : group;
    return gm_min(length, gm_range_length(b->walk));
}

static void set_group(gm_batch *b, gm_piece *piece)
{
    const gm_matmul_case *c = b->product.c;
    int64_t frames = length_of(b);
    gm_batch_layout l = gm_batch_lay_out(&b->plan, frames);
    *piece = (gm_piece){.kind = GM_PIECE_MULTIPLY,
                        .row = b->walk.begin,
                        .rows = frames,
                        .in = l.in,
                        .in_unit = GM_SLOT_ALIGN,
                        .out = l.out,
                        .stages = GM_STAGE_COMPUTE | GM_STAGE_WRITE | GM_STAGE_DONE | copies(b, GM_STAGE_FROM_DEVICE)};
    if (l.in > 0)
        piece->stages |= GM_STAGE_READ | copies(b, GM_STAGE_TO_DEVICE);
    int is_parallel = 1;
    for (int i = 0; i < GM_OPERANDS; i++) {
        piece->bytes += frames * b->plan.bytes[i];
        if (b->plan.bytes[i] > 0)
            is_parallel &= gm_reader_takes_any(&c->operand[i]);
    }
    piece->bytes += frames * b->plan.result;
    piece->readers = gm_ring_readers(l.in, is_parallel ? gm_max(l.in / GM_SLOT_ALIGN, 1) : 1, b->product.job->threads);
    b->walk.begin += frames;
}

int gm_batch_next(void *context, gm_piece *piece, int *more)
{
    gm_batch *b = context;
    memset(piece, 0, sizeof *piece);
    *more = 1;
    if (gm_range_length(b->walk) == 0)
        *more = 0;
    else if (!next_strip(b, piece))
        set_group(b, piece);
    if (b->product.is_repair) /* not of the work that the progress display knows */
        piece->bytes = 0;
    return GM_OK;
}
