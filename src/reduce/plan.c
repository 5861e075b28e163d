/* The plan of a reduction: how the data are cut into pieces, what a slot holds, what memory that takes. Pure
 * arithmetic. */
#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/read/reader.h"
#include "src/reduce/reduce.h"
#include "src/stream/stream.h"

enum {
    USUAL_PIECE = 4 << 20, /* a copy of this size reaches the speed of the link */
    MOST_PIECE = 32 << 20, /* a link gives 3 % more than with the usual one */
    PIECES = 256,          /* few enough for the cost of each to the ring's thread, and enough to overlap */
    MOST_SLOTS = 32,
    SPARE_SLOTS = 3,       /* in addition to those that are read into */
    MOST_TOTALS = 1 << 20, /* bytes of the totals of columns that go to the host together */
    RUN = 64 << 10,        /* bytes of a row that are worth a read */
    NARROW = 32768,        /* columns side by side that keep a device busy */
    RECORD = sizeof(gm_moments),
    TOTAL = sizeof(gm_total),
    BOTH = RECORD + TOTAL
};
static const int64_t usual_block = INT64_C(256) << 20; /* bytes of the records of a block of columns */

const char *gm_reduce_mode_name(gm_reduce_mode mode)
{
    static const char *const names[] = {[GM_REDUCE_SEGMENTS] = "segments",
                                        [GM_REDUCE_NODES] = "nodes",
                                        [GM_REDUCE_BATCHES] = "batches",
                                        [GM_REDUCE_COLUMNS] = "columns"};
    return names[mode];
}

gm_range gm_reduce_share(const gm_reduce_plan *plan, int ranks, int rank)
{
    return gm_range_split(plan->units, plan->unit, ranks, rank);
}

/* Elements of a segment of n elements before its node number `node`. */
static int64_t before_node(int64_t node, int64_t n, int64_t leaf)
{
    return gm_min(gm_mul_sat(node, GM_NODE * leaf), n);
}

int64_t gm_reduce_bytes(const gm_reduction *r, const gm_reduce_plan *plan, gm_range share)
{
    int64_t leaf = gm_leaf_length(r->dataset->type), elements = gm_range_length(share);
    if (r->n == 0)
        return 0;
    if (plan->mode == GM_REDUCE_NODES) {
        int64_t nodes = gm_ceil_div(gm_ceil_div(r->n, leaf), GM_NODE);
        elements = share.end / nodes * r->n + before_node(share.end % nodes, r->n, leaf) -
                   (share.begin / nodes * r->n + before_node(share.begin % nodes, r->n, leaf));
    } else if (plan->mode == GM_REDUCE_COLUMNS) {
        elements *= plan->by_rows ? r->inner : r->n;
    } else {
        elements *= r->n * r->inner;
    }
    return elements * (int64_t)gm_dtype_size(r->dataset->type);
}

/* A plan, and all that it is made from. */
typedef struct problem {
    const gm_reduction *r;
    gm_reduce_plan *plan;
    int64_t size;         /* bytes of an element */
    int64_t leaf, leaves; /* elements of one, their number in a segment */
    int64_t chunk;        /* elements that are best read together: whole rows of the dataset's matrix */
    int64_t ranks;
} problem;

/* The largest multiple of unit that is not above most, if there is one: else most. */
static int64_t whole_units(int64_t most, int64_t unit)
{
    return unit > 0 && unit <= most ? most - most % unit : most;
}

/* Pieces of whole segments, or outer indices, of `elements` elements and `records` bytes of records each. */
static int64_t cut_whole(const problem *p, int64_t elements, int64_t records, int64_t piece, gm_reduce_plan *plan)
{
    int64_t each = elements * p->size + records;
    int64_t unit = p->chunk % elements == 0 ? p->chunk / elements : 1;
    plan->units = p->r->outer;
    plan->at_once = gm_min(gm_max(piece / each, 1), gm_max(gm_ceil_div(plan->units, p->ranks), 1));
    plan->at_once = whole_units(plan->at_once, unit);
    plan->unit = unit <= plan->at_once && unit <= plan->units / p->ranks ? unit : 1;
    plan->data = gm_round_up(plan->at_once * elements * p->size, GM_SLOT_ALIGN);
    return plan->data + plan->at_once * records;
}

static int64_t cut_nodes(const problem *p, int64_t piece, gm_reduce_plan *plan)
{
    int64_t n = p->r->n, bytes = gm_min(p->leaf, n) * p->size;
    int aligned = p->chunk % p->leaf == 0 && (p->r->outer == 1 || n % p->chunk == 0);
    plan->units = gm_mul_sat(p->r->outer, gm_ceil_div(p->leaves, GM_NODE));
    plan->unit = 1;
    plan->at_once = gm_min(gm_max(piece / (bytes + RECORD), 1), p->leaves);
    plan->at_once = whole_units(plan->at_once, aligned ? p->chunk / p->leaf : 1);
    plan->data = gm_round_up(plan->at_once * bytes, GM_SLOT_ALIGN);
    return plan->data + plan->at_once * RECORD;
}

/* Rectangles of a band of rows, of runs that are worth a read. In slots smaller than such a run, runs get shorter
 * faster than the slot: the records of a column are many times the size of an element. Chunks are decoded once when a
 * piece, or pieces that come one after the other, hold all that is wanted of them: then the band is as high as a chunk;
 * else high enough for whole leaves, which are the cheapest for the device. */
static int64_t cut_columns(const problem *p, int64_t piece, gm_reduce_plan *plan)
{
    const gm_dataset *d = p->r->dataset;
    int64_t n = p->r->n, inner = p->r->inner, elements = gm_max(piece / p->size, 1), row_unit = 1, col_unit = 1;
    int by_rows = p->r->outer == 1 && d->view_rank > 0 && n == d->view[0]; /* rows of the dataset's matrix */
    if (by_rows && d->layout == GM_CHUNKED) {
        row_unit = gm_dataset_row_unit(d);
        col_unit = gm_min(gm_dataset_col_unit(d), inner);
    }
    int64_t rows = GM_LEAF_COLUMN;
    if (by_rows && d->layout == GM_CHUNKED)
        rows = col_unit == inner || col_unit == 1 ? row_unit : gm_round_up(GM_LEAF_COLUMN, row_unit);
    int64_t run = gm_min(gm_max(gm_min(piece, RUN) * gm_min(piece, RUN) / RUN / p->size, 1), inner);
    if (elements / gm_min(rows, elements) < run) /* a small slot: rather few rows than short ones */
        rows = gm_max(whole_units(elements / gm_min(run, elements), row_unit), 1);
    plan->cols = gm_min(whole_units(gm_max(elements / rows, 1), col_unit), inner);
    if (plan->cols == inner) /* full rows: as many as there is room for */
        rows = gm_max(rows, whole_units(elements / inner, row_unit > 1 ? row_unit : GM_LEAF_COLUMN));
    plan->rows = gm_min(rows, gm_max(n, 1));
    plan->unit = p->r->outer >= 4 * p->ranks                    ? inner
                 : col_unit > 1 && col_unit <= inner / p->ranks ? col_unit
                                                                : GM_LEAF_COLUMN;
    plan->units = gm_mul_sat(p->r->outer, inner);
    int exact = gm_dtype_get_kind(d->type) != GM_FLOAT, shared = by_rows && p->ranks > 1 && n / row_unit >= p->ranks;
    if (exact && shared &&
        ((d->layout == GM_CHUNKED && col_unit > inner / p->ranks) || inner < GM_LEAF_COLUMN * p->ranks)) {
        plan->by_rows = 1;
        plan->units = n;
        plan->unit = row_unit;
    }
    plan->scratch = plan->cols < NARROW && plan->rows > GM_LEAF_COLUMN ? plan->cols * (plan->rows / GM_LEAF_COLUMN) : 0;
    plan->data = gm_round_up(gm_max(plan->rows * plan->cols * p->size, TOTAL * GM_LEAF_COLUMN), GM_SLOT_ALIGN);
    return plan->data;
}

/* Returns the bytes of a slot. */
static int64_t cut(const problem *p, int64_t piece, gm_reduce_plan *plan)
{
    int64_t n = p->r->n, inner = p->r->inner, records = gm_mul_sat(p->leaves, RECORD);
    int shared = p->ranks > 1 && p->r->outer < p->ranks; /* a segment is for more than one rank */
    *plan = (gm_reduce_plan){.unit = 1, .at_once = 1};
    if (n == 0 || gm_mul_sat(p->r->outer, inner) == 0) {
        plan->units = gm_mul_sat(p->r->outer, inner); /* nothing to read */
        return 0;
    }
    if (inner == 1 && !shared && gm_add_sat(gm_mul_sat(n, p->size), records) <= piece) {
        plan->mode = GM_REDUCE_SEGMENTS;
        int64_t slot = cut_whole(p, n, records, piece, plan);
        return gm_round_up(slot, GM_SLOT_ALIGN) + gm_min(plan->at_once, GM_REDUCE_BATCH) * TOTAL;
    }
    if (inner == 1) {
        plan->mode = GM_REDUCE_NODES;
        return cut_nodes(p, piece, plan);
    }
    if (!shared && gm_add_sat(gm_mul_sat(gm_mul_sat(n, inner), p->size), gm_mul_sat(inner, BOTH)) <= piece) {
        plan->mode = GM_REDUCE_BATCHES;
        return cut_whole(p, n * inner, inner * BOTH, piece, plan);
    }
    plan->mode = GM_REDUCE_COLUMNS;
    return cut_columns(p, piece, plan);
}

/* Memory of a rank in addition to the ring, on the device and on the host: blocks of columns, totals of nodes. */
static void set_beside(const problem *p, gm_ring_cost *cost)
{
    const gm_reduce_plan *plan = p->plan;
    if (plan->mode == GM_REDUCE_COLUMNS)
        cost->device = gm_mul_sat(plan->block, BOTH) + plan->scratch * RECORD + 3 * GM_ALLOC_OVERHEAD;
    if (plan->by_rows)
        cost->host = cost->out + GM_ALLOC_OVERHEAD;
    if (plan->mode == GM_REDUCE_NODES && p->ranks > 1) {
        int64_t each = gm_min(gm_ceil_div(plan->units, p->ranks), 2 * gm_ceil_div(p->leaves, GM_NODE));
        cost->host = gm_mul_sat(gm_mul_sat(each, TOTAL + 8), 1 + p->ranks) + 2 * GM_ALLOC_OVERHEAD;
    }
}

static int64_t pieces_of(const problem *p)
{
    const gm_reduce_plan *plan = p->plan;
    if (plan->mode == GM_REDUCE_COLUMNS)
        return INT64_MAX;
    int64_t things = gm_ceil_div(gm_ceil_div(plan->units, plan->unit), p->ranks) * plan->unit *
                     (plan->mode == GM_REDUCE_NODES ? GM_NODE : 1);
    return gm_max(gm_ceil_div(things, plan->at_once), 1);
}

/* Bytes of a slot. The calls that send a piece to a device with memory of its own take as long as the link takes for
 * one of the usual size: in long jobs pieces are larger, for which there must be more to read than there is to pin. */
static int64_t usual_piece(const problem *p, const gm_ring_budget *budget)
{
    const gm_reduction *r = p->r;
    int64_t bytes = gm_mul_sat(gm_mul_sat(r->outer, r->n), gm_mul_sat(r->inner, p->size)) / p->ranks;
    return budget->unified ? USUAL_PIECE
                           : gm_max(USUAL_PIECE, gm_min(gm_round_up(bytes / PIECES, USUAL_PIECE), MOST_PIECE));
}

/* Threads that read a piece together: a chunk is one thread's. */
static void set_readers(const problem *p, int threads)
{
    const gm_dataset *d = p->r->dataset;
    gm_reduce_plan *plan = p->plan;
    int by_rows = plan->mode == GM_REDUCE_COLUMNS, whole = d->layout == GM_CHUNKED;
    int64_t elements = by_rows ? plan->rows : plan->data / p->size;
    plan->share = !whole ? 1 : by_rows ? gm_dataset_row_unit(d) : p->chunk;
    plan->readers = gm_ring_readers(plan->data, gm_reader_is_parallel(d) ? elements / plan->share : 1, threads);
}

static void cut_pieces(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    const problem *p = context;
    gm_reduce_plan *plan = p->plan;
    *cost = (gm_ring_cost){.slot = cut(p, bytes, plan)};
    int by_columns = plan->mode == GM_REDUCE_COLUMNS;
    plan->block = by_columns ? plan->cols : 0;
    plan->out_at = by_columns ? 0 : plan->data;
    plan->out = cost->out = by_columns ? gm_min(cost->slot, MOST_TOTALS) : cost->slot - plan->data;
    set_readers(p, budget->threads);
    cost->pieces = pieces_of(p);
    cost->slots = gm_min(gm_ceil_div(budget->threads, plan->readers) + SPARE_SLOTS, MOST_SLOTS);
    set_beside(p, cost);
}

/* The block of columns takes the room that is left, up to what is of use. */
static void grow_block(const problem *p, const gm_ring_budget *budget)
{
    const gm_dataset *d = p->r->dataset;
    gm_reduce_plan *plan = p->plan;
    if (plan->mode != GM_REDUCE_COLUMNS)
        return;
    int64_t share = gm_range_length(gm_reduce_share(plan, (int)p->ranks, 0));
    int64_t most = plan->by_rows ? p->r->inner : gm_min(p->r->inner, gm_max(share, 1));
    if (d->layout != GM_CHUNKED) /* a chunk that is wider than a block would be decoded for each block */
        most = gm_min(most, gm_max(usual_block / BOTH, plan->cols));
    int64_t room = gm_max(plan->ring.device_left / BOTH, 0);
    int64_t more = gm_min(whole_units(room, plan->cols), room), block = gm_min(plan->cols + more, gm_max(most, 1));
    if (block > plan->cols && gm_ring_plan_add(&plan->ring, budget, 0, (block - plan->cols) * BOTH))
        plan->block = block;
    else
        plan->block = gm_min(plan->cols, gm_max(most, 1));
}

int gm_reduce_plan_make(const gm_reduction *r, const gm_ring_budget *budget, int ranks, int64_t piece, int64_t depth,
                        gm_reduce_plan *plan, gm_ring_budget *need)
{
    const gm_dataset *d = r->dataset;
    int64_t matrix_rows, matrix_cols;
    problem p = {
        .r = r, .plan = plan, .size = (int64_t)gm_dtype_size(d->type), .leaf = gm_leaf_length(d->type), .ranks = ranks};
    gm_dataset_matrix(d, &matrix_rows, &matrix_cols);
    p.leaves = gm_ceil_div(r->n, p.leaf);
    p.chunk = gm_mul_sat(gm_dataset_row_unit(d), gm_max(matrix_cols, 1));
    gm_ring_request request = {.piece = piece,
                               .depth = depth,
                               .buffers = gm_reader_takes_any(d),
                               .usual = usual_piece(&p, budget),
                               .least = GM_RING_LEAST_PIECE,
                               .readers = gm_reader_bytes(d, budget->threads, budget->host),
                               .readers_least = gm_reader_bytes(d, 1, budget->host),
                               .cut = cut_pieces,
                               .context = &p};
    gm_ring_plan ring;
    int status = gm_ring_plan_make(&request, budget, &ring, need);
    if (status)
        return status;
    plan->ring = ring;
    grow_block(&p, budget);
    return GM_OK;
}
