#include "base/size.h"
#include "src/reduce/device.h"

/* Elements before a leaf, counted over all segments. */
static int64_t leaf_start(const gm_reduce *p, int64_t leaf)
{
    return leaf / p->leaves * p->r->n + leaf % p->leaves * p->leaf;
}

int gm_reduce_is_own(const gm_reduce *p, int64_t segment)
{
    return segment * p->nodes >= p->begin && (segment + 1) * p->nodes <= p->end;
}

static unsigned stages_of(const gm_reduce *p, unsigned last)
{
    unsigned copies = p->job->ops->unified ? 0 : GM_STAGE_TO_DEVICE | GM_STAGE_FROM_DEVICE;
    return GM_STAGE_READ | copies | GM_STAGE_COMPUTE | last;
}

/* Segments, or outer indices. */
static int next_whole(gm_reduce *p, gm_piece *piece)
{
    int64_t count = gm_min(p->plan->at_once - p->at % p->plan->at_once, p->end - p->at);
    int64_t elements = p->r->n * p->r->inner;
    if (count <= 0)
        return 0;
    *piece = (gm_piece){.kind = GM_REDUCE_ELEMENTS,
                        .row = p->at,
                        .rows = count,
                        .col = p->at * elements,
                        .cols = count * elements,
                        .leaf = p->at * p->leaves,
                        .leaves = count * p->leaves,
                        .stages = stages_of(p, GM_STAGE_WRITE)};
    p->at += count;
    return 1;
}

/* Leaves of one segment, up to a multiple of at_once. */
static int next_leaves(gm_reduce *p, gm_piece *piece)
{
    int64_t segment = p->at / p->leaves, first = p->at % p->leaves;
    int64_t end = p->end / p->nodes * p->leaves + gm_min(p->end % p->nodes * GM_NODE, p->leaves);
    int64_t count = gm_min(gm_min(p->plan->at_once - first % p->plan->at_once, p->leaves - first), end - p->at);
    if (count <= 0)
        return 0;
    int64_t from = leaf_start(p, p->at), to = leaf_start(p, p->at + count);
    *piece = (gm_piece){.kind = GM_REDUCE_ELEMENTS,
                        .row = segment,
                        .rows = 1,
                        .col = from,
                        .cols = to - from,
                        .leaf = p->at,
                        .leaves = count,
                        .stages = stages_of(p, GM_STAGE_DONE)};
    p->at += count;
    return 1;
}

/* Columns of the block that begins at p->at: it ends with the rank's share, with the outer index, or with the memory.
 */
static int64_t block_columns(const gm_reduce *p)
{
    return gm_min(gm_min(p->plan->block, p->col1 - p->at), p->r->inner - p->at % p->r->inner);
}

/* Totals of a strip of the block: this rank's, then, on rank 0, those that others have of the same columns. */
static void next_results(gm_reduce *p, int64_t block, gm_piece *piece)
{
    int64_t cols = gm_min(p->plan->out / (int64_t)sizeof(gm_total), block - p->col);
    int first = p->job->ranks->rank == 0, last = p->peer + 1 >= p->sharers;
    *piece = (gm_piece){.kind = p->peer ? GM_REDUCE_RECEIVE : GM_REDUCE_RESULTS,
                        .peer = p->peer,
                        .row = p->row1,
                        .col = p->at + p->col,
                        .cols = cols,
                        .at_col = p->col,
                        .last = last};
    piece->stages = p->peer ? GM_STAGE_RECEIVE : GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE;
    if (!p->plan->by_rows)
        piece->stages |= GM_STAGE_WRITE;
    else
        piece->stages |= !first ? GM_STAGE_SEND : last ? GM_STAGE_DONE | GM_STAGE_WRITE : GM_STAGE_DONE;
    if (p->plan->by_rows && first && !last) {
        p->peer++;
        return;
    }
    p->peer = 0;
    p->col += cols;
    if (p->col < block)
        return;
    p->col = 0;
    p->row = p->row0;
    p->at += block;
}

static int next_rectangle(gm_reduce *p, gm_piece *piece)
{
    int64_t block = block_columns(p);
    if (block <= 0)
        return 0;
    if (p->row >= p->row1) {
        next_results(p, block, piece);
        return 1;
    }
    *piece = (gm_piece){.kind = GM_REDUCE_ELEMENTS,
                        .row = p->row,
                        .rows = gm_min(p->plan->rows - p->row % p->plan->rows, p->row1 - p->row),
                        .col = p->at + p->col,
                        .cols = gm_min(p->plan->cols, block - p->col),
                        .at_col = p->col,
                        .stages = stages_of(p, 0) & ~(unsigned)GM_STAGE_FROM_DEVICE};
    p->col += piece->cols;
    if (p->col >= block) {
        p->col = 0;
        p->row += piece->rows;
    }
    return 1;
}

int gm_reduce_next(void *context, gm_piece *piece, int *more)
{
    gm_reduce *p = context;
    if (p->plan->mode == GM_REDUCE_COLUMNS)
        *more = next_rectangle(p, piece);
    else if (p->plan->mode == GM_REDUCE_NODES)
        *more = next_leaves(p, piece);
    else
        *more = next_whole(p, piece);
    if (*more && piece->kind == GM_REDUCE_ELEMENTS) {
        int is_rows = p->plan->mode == GM_REDUCE_COLUMNS;
        int64_t row = (is_rows ? piece->cols : 1) * p->size; /* bytes */
        piece->in = piece->bytes = (is_rows ? piece->rows : piece->cols) * row;
        piece->in_from = (is_rows ? piece->row : piece->col) * row;
        piece->in_unit = p->plan->share * row;
        piece->readers = gm_ring_readers(piece->bytes, p->plan->readers, p->plan->readers);
    }
    return GM_OK;
}
