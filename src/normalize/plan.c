/* Shares, pieces and memory of normalize: pure arithmetic. */
#include "src/normalize/normalize.h"

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"

enum {
    COLUMN_BYTES = sizeof(gm_moments) + sizeof(gm_total), /* of a column whose statistics are computed */
    SEARCH_BYTES = 128,                                   /* of a frame whose percentiles are searched, on the host */
    USUAL_PIECE = 4 << 20, /* bytes of the wider type: copies of this size reach the speed of the link to a device */
    MOST_PIECE = 16 << 20, /* for a piece to be a whole frame */
    MOST_SLOTS = 32,
    SPARE_SLOTS = 2,                  /* in addition to one for each thread */
    LEAST_FOR_WIDE_DIGITS = 64 << 20, /* a budget for which digits of 16 bits are counted: 2 MiB a stack or frame */
    BATCH_COUNTS = 64 << 20           /* bytes of counts of frames whose percentiles are searched at a time */
};

/* A plan, and all that it is made from. */
typedef struct problem {
    const gm_normalize_case *c;
    gm_normalize_plan *plan;
    int ranks, rank;
} problem;

/* Floats whose sum depends on its order: pieces end with leaves. */
static int wants_leaves(const gm_normalize_case *c)
{
    return c->method == GM_ZSCORE && gm_dtype_get_kind(c->src.type) == GM_FLOAT;
}

static int wants_moments(const gm_normalize_case *c)
{
    return c->method == GM_MINMAX || c->method == GM_ZSCORE;
}

static int wants_columns(const gm_normalize_case *c)
{
    return c->per == GM_PER_PIXEL && wants_moments(c);
}

/* Chunks, where they are those of the matrix of frames and pixels. */
static int64_t row_unit_of(const gm_normalize_case *c)
{
    return c->src.view_rank > 0 && c->src.view[0] == c->rows ? gm_max(gm_dataset_row_unit(&c->src), 1) : 1;
}

static int64_t col_unit_of(const gm_normalize_case *c)
{
    return c->src.view_rank > 0 && c->src.view[0] == c->rows ? gm_max(gm_dataset_col_unit(&c->src), 1) : 1;
}

/* The rectangle: ranks share frames, or pixels where each pixel has statistics of its own and where frames are too few,
 * or nodes of the elements. */
static void set_share(const problem *p)
{
    const gm_normalize_case *c = p->c;
    gm_normalize_plan *plan = p->plan;
    int64_t row_unit = row_unit_of(c), col_unit = col_unit_of(c);
    int shares_pixels = (wants_columns(c) && !plan->by_rows) || (c->rows < p->ranks && c->per != GM_PER_FRAME);
    gm_range frames = {0, c->rows}, pixels = {0, c->cols};
    plan->as_row = wants_leaves(c) && c->per == GM_PER_STACK;
    if (plan->as_row) {
        frames.end = 1;
        pixels = gm_range_split(c->rows * c->cols, GM_NODE * gm_leaf_length(c->src.type), p->ranks, p->rank);
    } else if (shares_pixels) {
        pixels = gm_range_split(c->cols, c->cols / col_unit >= p->ranks && col_unit > 1 ? col_unit : 64, p->ranks,
                                p->rank);
    } else {
        frames = gm_range_split(c->rows, c->rows / row_unit >= p->ranks ? row_unit : 1, p->ranks, p->rank);
    }
    plan->row = frames.begin;
    plan->rows = gm_range_length(frames);
    plan->col = pixels.begin;
    plan->cols = gm_range_length(pixels);
    if (plan->rows == 0 || plan->cols == 0)
        plan->rows = plan->cols = 0;
    plan->entries = c->method == GM_FLATFIELD || c->per == GM_PER_PIXEL ? plan->cols
                    : c->per == GM_PER_FRAME                            ? plan->rows
                                                                        : 1;
}

int64_t gm_normalize_records(const gm_normalize_case *c, int64_t rows, int64_t cols)
{
    int64_t leaf = gm_leaf_length(c->src.type);
    if (!wants_moments(c) || wants_columns(c))
        return 0;
    return c->per == GM_PER_FRAME ? rows * gm_ceil_div(cols, leaf) : gm_ceil_div(rows * cols, leaf);
}

int64_t gm_normalize_nodes(const gm_normalize_case *c, int as_row, int ranks)
{
    int64_t node = GM_NODE * gm_leaf_length(c->src.type);
    return as_row ? gm_ceil_div(gm_range_length(gm_range_split(c->rows * c->cols, node, ranks, 0)), node) : 1;
}

/* Bytes of a slot with pieces of this shape. */
static int64_t set_bytes(const gm_normalize_case *c, gm_normalize_plan *plan)
{
    int64_t n = plan->piece_rows * plan->piece_cols;
    plan->in_bytes = gm_round_up(n * (int64_t)gm_dtype_size(c->src.type), GM_SLOT_ALIGN);
    plan->out_bytes = gm_max(n * (int64_t)gm_dtype_size(c->type),
                             gm_normalize_records(c, plan->piece_rows, plan->piece_cols) * (int64_t)sizeof(gm_moments));
    return plan->in_bytes + plan->out_bytes;
}

/* The largest pieces of at most the given number of elements: whole frames, whole chunks where they fit, parts of a
 * frame of even lengths. */
static void set_piece(const gm_normalize_case *c, int64_t elements, gm_normalize_plan *plan)
{
    int64_t row_unit = row_unit_of(c), col_unit = col_unit_of(c), unit = 64;
    int64_t leaf = wants_leaves(c) && !wants_columns(c) ? gm_leaf_length(c->src.type) : 1, cols = gm_max(plan->cols, 1);
    plan->piece_rows = 1;
    if (plan->as_row) {
        unit = gm_max(row_unit * c->cols, 1);
        unit = unit <= elements && unit % leaf == 0 ? unit : leaf;
        plan->piece_cols = gm_min(gm_max(elements / unit, 1) * unit, cols);
        return;
    }
    if (cols <= elements) {
        int64_t whole = row_unit * cols <= elements ? row_unit : 1;
        plan->piece_cols = cols;
        if (whole == row_unit || row_unit * col_unit > elements || c->per == GM_PER_FRAME) {
            plan->piece_rows = gm_min(elements / cols / whole * whole, gm_max(plan->rows, 1));
            return;
        }
    }
    if (row_unit > 1 && row_unit <= plan->rows && row_unit * col_unit <= elements && c->per != GM_PER_FRAME)
        plan->piece_rows = row_unit;
    elements /= plan->piece_rows;
    unit = col_unit > 1 && col_unit <= elements && col_unit % leaf == 0 ? col_unit
                                                                        : gm_max(leaf, unit <= elements ? unit : 1);
    plan->piece_cols = gm_min(
        gm_round_up(gm_ceil_div(cols, gm_ceil_div(cols, gm_max(elements / unit, 1) * unit)), unit), cols);
}

/* Columns whose statistics are computed at a time: all, if half of the budget holds them, so that chunks of whole
 * frames are decoded once. */
static void set_block(const problem *p, const gm_ring_budget *budget)
{
    gm_normalize_plan *plan = p->plan;
    int64_t bytes = budget->unified ? gm_min(budget->host, budget->device) : budget->device;
    int64_t columns = bytes / 2 / COLUMN_BYTES;
    plan->block_cols = plan->cols;
    if (wants_columns(p->c) && columns < plan->cols)
        plan->block_cols = gm_max(1, columns / plan->piece_cols) * plan->piece_cols;
}

/* Counts of percentiles: bits of a digit, frames at a time. Ranks that count a stack together have the same budget. */
static void set_digits(const problem *p, const gm_ring_budget *budget)
{
    const gm_normalize_case *c = p->c;
    gm_normalize_plan *plan = p->plan;
    int width = 8 * (int)gm_dtype_size(c->src.type), by_frame = c->per == GM_PER_FRAME;
    int64_t bytes = gm_min(budget->host, budget->device), batch = gm_min(BATCH_COUNTS, bytes / 8);
    plan->digit = width == 8 || bytes < LEAST_FOR_WIDE_DIGITS || (by_frame && c->cols < 32768) ? 8 : 16;
    plan->levels = width / plan->digit;
    int64_t targets = by_frame ? gm_min(GM_HISTOGRAM_PREFIXES, gm_max(c->cols, 1)) : GM_HISTOGRAM_PREFIXES;
    plan->prefixes = plan->levels > 1 ? (int)targets : 1; /* elements of a frame have no more prefixes than it has */
    int64_t one = (int64_t)plan->prefixes * (8 << plan->digit);
    plan->batch_rows = 1;
    if (by_frame) {
        plan->piece_rows = gm_min(plan->piece_rows, gm_max(1, batch / one));
        plan->batch_rows = gm_min(gm_max(plan->piece_rows, batch / one / plan->piece_rows * plan->piece_rows),
                                  gm_max(plan->rows, 1));
    }
    plan->count_bytes = plan->batch_rows * one;
    plan->prefix_bytes = plan->batch_rows * plan->prefixes * (int64_t)sizeof(uint64_t);
}

static int64_t scale_bytes(const problem *p)
{
    return gm_mul_sat(2 * p->plan->entries, gm_normalize_scale_bytes(p->c));
}

/* Memory in addition to the ring. A device that addresses host memory shares the numbers and counts with the host. */
static void set_beside(const problem *p, int unified, gm_ring_cost *cost)
{
    const gm_normalize_case *c = p->c;
    const gm_normalize_plan *plan = p->plan;
    int64_t scale = scale_bytes(p), on_device = 0, on_host = 0;
    if (c->method == GM_PERCENTILE) {
        on_device = plan->count_bytes + plan->prefix_bytes;
        on_host = (unified ? 0 : on_device) + plan->batch_rows * SEARCH_BYTES;
    } else if (wants_columns(c)) {
        on_device = plan->block_cols * COLUMN_BYTES;
        on_host = GM_NORMALIZE_STAGING * (int64_t)sizeof(gm_total) * (plan->by_rows ? 1 + p->ranks : 1);
    } else if (c->per == GM_PER_STACK && wants_moments(c)) { /* totals of a rank's nodes, and of all ranks' */
        on_host = gm_normalize_nodes(c, plan->as_row, p->ranks) * (1 + p->ranks) * (int64_t)sizeof(gm_total);
    }
    cost->host = scale + on_host + 5 * GM_ALLOC_OVERHEAD;
    cost->device = (unified ? 0 : scale) + on_device + 4 * GM_ALLOC_OVERHEAD;
}

/* Threads that read a piece together: a chunk is one thread's. */
static void set_readers(const problem *p, int threads)
{
    const gm_normalize_case *c = p->c;
    gm_normalize_plan *plan = p->plan;
    int whole = c->src.layout == GM_CHUNKED, is_range = plan->piece_rows == 1 || plan->piece_cols == c->cols;
    plan->share_rows = whole ? row_unit_of(c) : 1;
    plan->share = whole ? gm_max(plan->share_rows * c->cols, 1) : 1;
    int64_t units = is_range ? plan->piece_rows * plan->piece_cols / plan->share : plan->piece_rows / plan->share_rows;
    plan->readers = gm_ring_readers(plan->in_bytes, gm_reader_is_parallel(&c->src) ? units : 1, threads);
}

static void cut(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    const problem *p = context;
    const gm_normalize_case *c = p->c;
    gm_normalize_plan *plan = p->plan;
    int64_t each = (int64_t)(gm_dtype_size(c->src.type) + gm_dtype_size(c->type));
    set_piece(c, gm_max(bytes / each, 1), plan);
    while (set_bytes(c, plan) > bytes &&
           plan->piece_rows > 1) /* records of short frames take more than their elements */
        plan->piece_rows = gm_max(1, gm_min(plan->piece_rows - 1, plan->piece_rows / (set_bytes(c, plan) / bytes + 1)));
    if (c->method == GM_PERCENTILE)
        set_digits(p, budget);
    int64_t slot = set_bytes(c, plan);
    *cost = (gm_ring_cost){.slot = slot,
                           .out = gm_normalize_records(c, plan->piece_rows, plan->piece_cols) *
                                  (int64_t)sizeof(gm_moments),
                           .pieces = gm_normalize_pieces(plan),
                           .slots = gm_max(3, gm_min(budget->threads + SPARE_SLOTS, MOST_SLOTS))};
    set_block(p, budget);
    set_readers(p, budget->threads);
    set_beside(p, budget->unified, cost);
}

/* Elements of a piece. Of a part of a frame, the other parts would be written at the same time by other threads to the
 * same place of the same file, which takes one at a time. */
static int64_t usual_elements(const problem *p)
{
    const gm_normalize_case *c = p->c;
    int64_t wider = gm_max((int64_t)gm_dtype_size(c->src.type), (int64_t)gm_dtype_size(c->type)),
            usual = USUAL_PIECE / wider;
    return p->plan->cols > usual && p->plan->cols <= MOST_PIECE / wider ? p->plan->cols : usual;
}

gm_reduction gm_normalize_field(const gm_normalize_case *c, int index)
{
    const gm_dataset *field = index ? &c->dark : &c->flat;
    return (gm_reduction){.dataset = field,
                          .outer = 1,
                          .n = gm_dataset_elements(field) / gm_max(c->cols, 1),
                          .inner = c->cols,
                          .want = gm_statistic_want(GM_STAT_MEAN, field->type)};
}

/* The fields are averaged before the ring is opened; the reader of the stack, the numbers and the means are allocated
 * then. *most: the memory that this takes. */
static int plan_fields(const problem *p, const gm_ring_budget *budget, int64_t piece, int64_t depth,
                       gm_ring_budget *need, gm_ring_budget *most)
{
    const gm_normalize_case *c = p->c;
    int64_t means = gm_mul_sat(2 * p->plan->cols + c->cols, sizeof(double));
    int64_t exchange = (int64_t)(p->ranks + 1) * GM_NORMALIZE_EXCHANGE * (int64_t)sizeof(uint64_t);
    int64_t reader = gm_reader_bytes(&c->src, 1, budget->host);
    int64_t host = gm_add_sat(gm_add_sat(means, exchange), scale_bytes(p)) + reader + 6 * GM_ALLOC_OVERHEAD;
    int64_t device = (budget->unified ? 0 : scale_bytes(p)) + 2 * GM_ALLOC_OVERHEAD;
    gm_ring_budget left = *budget;
    host = gm_add_sat(host, budget->unified ? device : 0);
    left.host -= host;
    left.device -= device;
    for (int i = 0; i <= c->has_dark && c->cols > 0; i++) {
        gm_reduction field = gm_normalize_field(c, i);
        int status = gm_reduce_plan_make(&field, &left, p->ranks, piece, depth, &p->plan->field[i], need);
        if (status) {
            need->host += host;
            need->device += device;
            return status;
        }
        p->plan->field_spare[i] = gm_add_sat(gm_ring_plan_spare(&p->plan->field[i].ring), reader);
        most->host = gm_max(most->host, gm_add_sat(p->plan->field[i].ring.host_bytes, host));
        most->device = gm_max(most->device, gm_add_sat(p->plan->field[i].ring.device_bytes, device));
    }
    return GM_OK;
}

/* With p->plan->by_rows as it is. */
static int make(const problem *p, const gm_ring_budget *budget, int64_t piece, int64_t depth, gm_ring_budget *need)
{
    const gm_normalize_case *c = p->c;
    gm_normalize_plan *plan = p->plan;
    *plan = (gm_normalize_plan){.levels = 1, .by_rows = plan->by_rows};
    set_share(p);
    gm_ring_budget fields = {0};
    int status = c->method == GM_FLATFIELD ? plan_fields(p, budget, piece, depth, need, &fields) : GM_OK;
    if (status)
        return status;
    gm_ring_request request = {.piece = piece,
                               .depth = depth,
                               .buffers = gm_reader_takes_any(&c->src),
                               .usual = usual_elements(p) *
                                        (int64_t)(gm_dtype_size(c->src.type) + gm_dtype_size(c->type)),
                               .least = GM_RING_LEAST_PIECE,
                               .readers = gm_reader_bytes(&c->src, budget->threads, budget->host),
                               .readers_least = gm_reader_bytes(&c->src, 1, budget->host),
                               .cut = cut,
                               .context = (void *)(uintptr_t)p};
    status = gm_ring_plan_make(&request, budget, &plan->ring, need);
    if (status)
        return status;
    plan->ring.host_bytes = gm_max(plan->ring.host_bytes, fields.host);
    plan->ring.device_bytes = gm_max(plan->ring.device_bytes, fields.device);
    plan->passes = c->method == GM_SCALE || c->method == GM_FLATFIELD ? 1
                   : c->method == GM_PERCENTILE                       ? plan->levels + 1
                                                                      : 2;
    int64_t rectangle = gm_mul_sat(gm_normalize_pieces(plan), plan->in_bytes);
    plan->keep = plan->passes > 1 && rectangle > 0 &&
                 gm_ring_plan_add(&plan->ring, budget, 0, gm_add_sat(rectangle, GM_ALLOC_OVERHEAD));
    return GM_OK;
}

/* Where each chunk has pixels of several ranks' shares, all would decode it. Then ranks share frames and merge their
 * statistics of each pixel, if those do not depend on order and the largest share leaves memory for all pixels at once.
 */
static int is_by_rows(const gm_normalize_case *c, const gm_ring_budget *budget, int ranks, int64_t piece, int64_t depth)
{
    gm_normalize_plan plan = {.by_rows = 1};
    gm_ring_budget need;
    int in_order = gm_dtype_get_kind(c->src.type) == GM_FLOAT && c->method != GM_MINMAX;
    if (ranks == 1 || !wants_columns(c) || in_order || c->src.filters == 0 || col_unit_of(c) <= c->cols / ranks ||
        c->rows / row_unit_of(c) < ranks)
        return 0;
    return make(&(problem){c, &plan, ranks, 0}, budget, piece, depth, &need) == GM_OK && plan.block_cols == c->cols;
}

int gm_normalize_plan_make(const gm_normalize_case *c, const gm_ring_budget *budget, int ranks, int rank, int64_t piece,
                           int64_t depth, gm_normalize_plan *plan, gm_ring_budget *need)
{
    plan->by_rows = is_by_rows(c, budget, ranks, piece, depth);
    return make(&(problem){c, plan, ranks, rank}, budget, piece, depth, need);
}

int64_t gm_normalize_bytes_read(const gm_normalize_case *c, const gm_normalize_plan *plan)
{
    return plan->rows * plan->cols * (int64_t)gm_dtype_size(c->src.type) * (plan->keep ? 1 : plan->passes);
}
