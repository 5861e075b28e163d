/* normalize_plan.c - shares, pieces and memory of normalize: arithmetic alone. */
#include "src/normalize.h"

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "src/flat.h"
#include "src/readers.h"

enum {
    COLUMN_BYTES = sizeof(gm_moments) + sizeof(gm_total), /* of a column whose statistics are being made */
    USUAL_PIECE = 4 << 20,    /* bytes of the wider type: copies of this size reach what the link to a device gives */
    MOST_PIECE = 16 << 20,    /* for a piece to be a whole frame */
    MOST_SLOTS = 32,
    SPARE_SLOTS = 2,          /* beside those that are written by all threads */
    LEAST_SLOT = 4096,
    OVERHEAD = 8192,          /* of an allocation, at most */
    LEAST_FOR_WIDE_DIGITS = 64 << 20, /* a cap from which on digits of 16 bits are counted: 2 MiB for each stack or frame */
    BATCH_COUNTS = 64 << 20   /* bytes of counts of frames whose percentiles are looked for at a time */
};

/* Floats whose sum depends on its order: pieces end with leaves. */
static int wants_leaves(const gm_normalize_case *c)
{
    return c->method == GM_ZSCORE && gm_dtype_get_kind(c->src.type) == GM_FLOAT;
}

static int wants_columns(const gm_normalize_case *c)
{
    return c->per == GM_PER_PIXEL && (c->method == GM_MINMAX || c->method == GM_ZSCORE);
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

/* The rectangle: ranks share frames, or pixels where each pixel has statistics of its own and where frames are too few, or nodes of the elements. */
static void set_share(const gm_ranks *ranks, const gm_normalize_case *c, gm_normalize_plan *plan)
{
    int64_t end, row_unit = row_unit_of(c), col_unit = col_unit_of(c);
    plan->flat = wants_leaves(c) && c->per == GM_PER_STACK;
    plan->rows = c->rows;
    plan->cols = c->cols;
    if (plan->flat) {
        plan->rows = 1;
        gm_flat_part(ranks, c->rows * c->cols, GM_NODE * gm_leaf_length(c->src.type), &plan->col, &end);
        plan->cols = end - plan->col;
    } else if ((wants_columns(c) && !c->by_rows) || (c->rows < ranks->size && c->per != GM_PER_FRAME)) {
        gm_flat_part(ranks, c->cols, c->cols / col_unit >= ranks->size && col_unit > 1 ? col_unit : 64, &plan->col, &end);
        plan->cols = end - plan->col;
    } else {
        gm_flat_part(ranks, c->rows, c->rows / row_unit >= ranks->size ? row_unit : 1, &plan->row, &end);
        plan->rows = end - plan->row;
    }
    if (plan->rows == 0 || plan->cols == 0)
        plan->rows = plan->cols = 0;
    plan->entries = c->method == GM_FLATFIELD || c->per == GM_PER_PIXEL ? plan->cols : c->per == GM_PER_FRAME ? plan->rows : 1;
}

int64_t gm_normalize_records(const gm_normalize_case *c, int64_t rows, int64_t cols)
{
    int64_t leaf = gm_leaf_length(c->src.type);
    if ((c->method != GM_MINMAX && c->method != GM_ZSCORE) || wants_columns(c))
        return 0;
    return c->per == GM_PER_FRAME ? rows * gm_ceil_div(cols, leaf) : gm_ceil_div(rows * cols, leaf);
}

/* Bytes of a slot with pieces of this shape. */
static int64_t set_bytes(const gm_normalize_case *c, gm_normalize_plan *plan)
{
    int64_t n = plan->piece_rows * plan->piece_cols;
    plan->in_bytes = gm_round_up(n * (int64_t)gm_dtype_size(c->src.type), 256);
    plan->out_bytes = gm_max(n * (int64_t)gm_dtype_size(c->type), gm_normalize_records(c, plan->piece_rows, plan->piece_cols) * (int64_t)sizeof(gm_moments));
    return plan->in_bytes + plan->out_bytes;
}

/* The largest pieces of at most so many elements: whole frames, whole chunks where they fit, parts of a frame of even lengths. */
static void set_piece(const gm_normalize_case *c, int64_t elements, gm_normalize_plan *plan)
{
    int64_t row_unit = row_unit_of(c), col_unit = col_unit_of(c), unit = 64;
    int64_t leaf = wants_leaves(c) && !wants_columns(c) ? gm_leaf_length(c->src.type) : 1, cols = gm_max(plan->cols, 1);
    plan->piece_rows = 1;
    if (plan->flat) {
        unit = row_unit * c->cols;
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
    unit = col_unit > 1 && col_unit <= elements && col_unit % leaf == 0 ? col_unit : gm_max(leaf, unit <= elements ? unit : 1);
    plan->piece_cols = gm_min(gm_round_up(gm_ceil_div(cols, gm_ceil_div(cols, gm_max(elements / unit, 1) * unit)), unit), cols);
}

int64_t gm_normalize_pieces(const gm_normalize_plan *plan)
{
    return plan->rows == 0 ? 0 : gm_ceil_div(plan->rows, plan->piece_rows) * gm_ceil_div(plan->cols, plan->piece_cols);
}

/* Columns whose statistics are made at a time: all, if half of what there is holds them, so that chunks of whole frames are decoded once. */
static void set_block(const gm_job *job, const gm_normalize_case *c, gm_normalize_plan *plan)
{
    gm_account account = job->ops->unified ? GM_HOST : GM_DEVICE;
    int64_t columns = (gm_memory_cap(account) - gm_memory_used(account)) / 2 / COLUMN_BYTES;
    plan->block_cols = plan->cols;
    if (wants_columns(c) && columns < plan->cols)
        plan->block_cols = gm_max(1, columns / plan->piece_cols) * plan->piece_cols;
}

/* Counts of percentiles: bits of a digit, frames at a time. Ranks that count a stack together have the same caps, if not the same room. */
static void set_digits(const gm_job *job, const gm_normalize_case *c, gm_normalize_plan *plan)
{
    const gm_options *o = job->options;
    int width = 8 * (int)gm_dtype_size(c->src.type), frames = c->per == GM_PER_FRAME;
    int tight = (o->host_memory && o->host_memory < LEAST_FOR_WIDE_DIGITS) || (o->device_memory && o->device_memory < LEAST_FOR_WIDE_DIGITS);
    int64_t budget = gm_min(BATCH_COUNTS, (gm_min(gm_memory_cap(GM_HOST), gm_memory_cap(GM_DEVICE)) - gm_memory_used(GM_HOST)) / 8);
    plan->digit = width == 8 || tight || (frames && c->cols < 32768) ? 8 : 16;
    plan->levels = width / plan->digit;
    plan->prefixes = plan->levels > 1 ? GM_HISTOGRAM_PREFIXES : 1;
    int64_t one = (int64_t)plan->prefixes * (8 << plan->digit);
    if (frames) {
        plan->piece_rows = gm_min(plan->piece_rows, gm_max(1, budget / one));
        plan->batch_rows = gm_min(gm_max(plan->piece_rows, budget / one / plan->piece_rows * plan->piece_rows), gm_max(plan->rows, 1));
    } else {
        plan->batch_rows = 1;
    }
    plan->count_bytes = plan->batch_rows * one;
    plan->prefix_bytes = plan->batch_rows * plan->prefixes * (int64_t)sizeof(uint64_t);
}

/* What a plan takes beside its slots and what it keeps: on the host and, of a device that has memory of its own, there. */
static void fixed_bytes(const gm_job *job, const gm_normalize_case *c, const gm_normalize_plan *plan, int64_t *host, int64_t *device)
{
    int64_t scale = 2 * plan->entries * (c->wide ? 8 : 4), work = 0, staging = 0;
    if (c->method == GM_PERCENTILE) {
        work = plan->count_bytes + plan->prefix_bytes;
        staging = work + (c->per == GM_PER_STACK && job->ranks->size > 1 ? plan->count_bytes * job->ranks->size : 0);
    } else if (wants_columns(c)) {
        work = plan->block_cols * COLUMN_BYTES;
        staging = GM_NORMALIZE_STAGING * (int64_t)sizeof(gm_total);
    } else if (plan->flat) {
        staging = gm_ceil_div(c->rows * c->cols, GM_NODE * gm_leaf_length(c->src.type)) * 2 * (int64_t)sizeof(gm_total);
    }
    *host = scale + OVERHEAD * 4 + staging + (job->ops->unified && c->method != GM_PERCENTILE ? work : 0);
    *device = job->ops->unified ? 0 : scale + work + OVERHEAD * 4;
}

/* What readers take: as much as their threads can use, up to an eighth of what there is. */
static int64_t reader_bytes(const gm_job *job, const gm_normalize_case *c)
{
    int64_t room = (gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST)) / 8;
    return gm_max(gm_reader_bytes(&c->src, 1), gm_min(gm_reader_bytes(&c->src, job->threads), room));
}

/* Pieces for slots of so many bytes, and how many slots there is room for. */
static int64_t try_slot(const gm_job *job, const gm_normalize_case *c, int64_t slot, gm_normalize_plan *plan)
{
    int64_t in = (int64_t)gm_dtype_size(c->src.type), out = (int64_t)gm_dtype_size(c->type), elements = gm_max(slot / (in + out), 1);
    set_piece(c, elements, plan);
    while (set_bytes(c, plan) > slot && plan->piece_rows > 1) /* records of short frames take more than their elements */
        plan->piece_rows = gm_max(1, gm_min(plan->piece_rows - 1, plan->piece_rows / (set_bytes(c, plan) / slot + 1)));
    if (c->method == GM_PERCENTILE)
        set_digits(job, c, plan);
    set_bytes(c, plan);
    set_block(job, c, plan);
    fixed_bytes(job, c, plan, &plan->host_bytes, &plan->device_bytes);
    int64_t each = plan->in_bytes + plan->out_bytes + OVERHEAD;
    int64_t host = gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST) - reader_bytes(job, c) - plan->host_bytes;
    int64_t device = gm_memory_cap(GM_DEVICE) - gm_memory_used(GM_DEVICE) - (job->ops->unified ? plan->host_bytes : plan->device_bytes);
    return gm_max(0, job->ops->unified && gm_memory_cap(GM_DEVICE) >= gm_memory_cap(GM_HOST) ? host / each : gm_min(host, device) / each);
}

/* Keeps the rectangle on the device if it is read more than once and there is room behind all the rest. */
static void set_keep(const gm_job *job, const gm_normalize_case *c, gm_normalize_plan *plan)
{
    gm_account account = job->ops->unified ? GM_HOST : GM_DEVICE;
    int64_t *taken = job->ops->unified ? &plan->host_bytes : &plan->device_bytes;
    int64_t readers = job->ops->unified ? reader_bytes(job, c) : 0;
    int64_t room = gm_min(gm_memory_cap(account), gm_memory_cap(GM_DEVICE)) - gm_memory_used(account) - *taken - readers;
    int64_t bytes = gm_mul_sat(gm_normalize_pieces(plan), plan->in_bytes);
    plan->keep = plan->passes > 1 && bytes > 0 && gm_add_sat(bytes, OVERHEAD) <= room;
    *taken += plan->keep ? bytes + OVERHEAD : 0;
}

/* What a slot is for. Of a part of a frame, the other parts would be written at the same time by other threads to the same place of the same file, which
 * takes one at a time. */
static int64_t usual_elements(const gm_normalize_case *c, const gm_normalize_plan *plan)
{
    int64_t wider = gm_max((int64_t)gm_dtype_size(c->src.type), (int64_t)gm_dtype_size(c->type)), usual = USUAL_PIECE / wider;
    return plan->cols > usual && plan->cols <= MOST_PIECE / wider ? plan->cols : usual;
}

/* Threads that read a piece together: a chunk is one thread's. */
static void share_out(const gm_job *job, const gm_normalize_case *c, gm_normalize_plan *plan)
{
    int whole = c->src.layout == GM_CHUNKED, is_range = plan->piece_rows == 1 || plan->piece_cols == c->cols;
    plan->share_rows = whole ? row_unit_of(c) : 1;
    plan->share = whole ? gm_max(plan->share_rows * c->cols, 1) : 1;
    int64_t units = is_range ? plan->piece_rows * plan->piece_cols / plan->share : plan->piece_rows / plan->share_rows;
    plan->readers = gm_readers_count(&c->src, plan->in_bytes, units, job->threads);
}

/* Makes the plan; 0 when it does not fit: then *account has too little, of which it needs so many bytes in all. */
static int make(const gm_job *job, const gm_normalize_case *c, gm_normalize_plan *plan, gm_account *account, int64_t *need)
{
    const gm_options *o = job->options;
    int64_t slot, room, wanted, each;
    *plan = (gm_normalize_plan){.levels = 1};
    set_share(job->ranks, c, plan);
    slot = o->piece ? o->piece : usual_elements(c, plan) * (int64_t)(gm_dtype_size(c->src.type) + gm_dtype_size(c->type));
    for (;; slot /= 2) { /* smaller pieces while not even two of them fit */
        room = try_slot(job, c, slot, plan);
        wanted = gm_max(1, gm_min(o->depth ? o->depth : gm_max(3, gm_min(job->threads + SPARE_SLOTS, MOST_SLOTS)), gm_normalize_pieces(plan)));
        if (room >= wanted || (!o->depth && room >= gm_min(wanted, 2)) || o->piece || slot <= LEAST_SLOT)
            break;
    }
    share_out(job, c, plan);
    plan->depth = o->depth ? wanted : gm_min(wanted, gm_max(room, 2));
    each = plan->in_bytes + plan->out_bytes + OVERHEAD;
    plan->host_bytes += plan->depth * each;
    plan->device_bytes += job->ops->unified ? 0 : plan->depth * each;
    if (room < plan->depth) {
        int64_t host = gm_memory_used(GM_HOST) + reader_bytes(job, c) + plan->host_bytes;
        *account = host > gm_memory_cap(GM_HOST) ? GM_HOST : GM_DEVICE;
        *need = *account == GM_HOST ? host : gm_memory_used(GM_DEVICE) + (job->ops->unified ? plan->host_bytes : plan->device_bytes);
        return 0;
    }
    plan->passes = c->method == GM_SCALE || c->method == GM_FLATFIELD ? 1 : c->method == GM_PERCENTILE ? plan->levels + 1 : 2;
    set_keep(job, c, plan);
    return 1;
}

/* Names a cap that would do: with more room readers and columns take more as well, so it is tried. */
static int refuse(const gm_job *job, const gm_normalize_case *c, gm_account account, int64_t need)
{
    char have[GM_SIZE_TEXT], text[GM_SIZE_TEXT];
    int64_t cap = gm_memory_cap(account), enough = cap;
    gm_normalize_plan plan;
    gm_account lacking = account;
    do {
        enough = gm_max(need, gm_add_sat(enough, OVERHEAD));
        gm_memory_set_cap(account, enough);
    } while (enough < INT64_MAX && !make(job, c, &plan, &lacking, &need) && lacking == account);
    gm_memory_set_cap(account, cap);
    return gm_fail(GM_EDEVICE, "--%s-memory %s is too little to normalize this, expected at least %lld bytes (%s)", account == GM_HOST ? "host" : "device",
                   gm_size_format(cap, have), (long long)enough, gm_size_format(enough, text));
}

int gm_normalize_plan_make(const gm_job *job, const gm_normalize_case *c, gm_normalize_plan *plan)
{
    gm_account account;
    int64_t need;
    return make(job, c, plan, &account, &need) ? GM_OK : refuse(job, c, account, need);
}

int gm_normalize_by_rows_all(const gm_job *job, gm_normalize_case *c)
{
    gm_normalize_plan plan;
    int size = job->ranks->size, in_order = gm_dtype_get_kind(c->src.type) == GM_FLOAT && c->method != GM_MINMAX;
    if (size == 1 || !wants_columns(c) || in_order || c->src.filters == 0 || col_unit_of(c) <= c->cols / size || c->rows / row_unit_of(c) < size)
        return GM_OK;
    c->by_rows = 1;
    int64_t fits = gm_normalize_plan_make(job, c, &plan) == GM_OK && plan.block_cols == c->cols;
    gm_error_clear();
    int status = gm_job_agree_all(job, gm_least_all(&fits));
    c->by_rows = (int)fits;
    return status;
}
