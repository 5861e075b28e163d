/* The plan of a reduction: how the data are cut into pieces, what a slot holds, what memory that takes. Pure arithmetic. */
#include "base/memory.h"
#include "base/size.h"
#include "io/reader.h"
#include "src/readers.h"
#include "src/reduce.h"

#include <stdio.h>
#include <string.h>

enum {
    USUAL_PIECE = 4 << 20, /* a copy of so many bytes reaches the speed of the link */
    MOST_PIECE = 32 << 20, /* a link gives 3 % more than with the usual one */
    PIECES = 256,          /* that are few enough for what each costs the ring's thread, and many enough to overlap */
    MOST_SLOTS = 32,
    SPARE_SLOTS = 3,       /* beside those that are read into */
    ALIGN = 256,           /* of the records behind the elements of a slot */
    RUN = 64 << 10,        /* bytes of a row that are worth a read */
    NARROW = 32768,        /* columns side by side that keep a device busy */
    RECORD = sizeof(gm_moments),
    TOTAL = sizeof(gm_total),
    BOTH = RECORD + TOTAL,
    OVERHEAD = 8192 /* of an allocation, at most */
};
static const int64_t usual_block = INT64_C(256) << 20; /* bytes of the records of a block of columns */

int gm_reduce_axis(const gm_dataset *d, const char *axis, gm_reduction *r, int *rank, int64_t *dims)
{
    char title[GM_PATH_MAX];
    int64_t number = 0, last = d->view_rank - 1;
    *rank = 0;
    r->outer = r->inner = 1;
    r->n = gm_dataset_elements(d);
    if (strcmp(axis, "all") == 0)
        return GM_OK;
    int is_word = strcmp(axis, "frame") == 0 || strcmp(axis, "pixel") == 0 || strcmp(axis, "vector") == 0;
    if (!is_word && gm_integer_parse(axis, 0, INT64_MAX, &number))
        return gm_fail(GM_EUSAGE, "--axis '%s': expected all, frame, pixel, vector or the number of a dimension", axis);
    if (d->view_rank == 0)
        return gm_fail(GM_EUSAGE, "--axis %s: %s is a single number, expected --axis all", axis, gm_dataset_title(d, title));
    if (!is_word && number > last)
        return gm_fail(GM_EUSAGE, "--axis %s: %s has %d dimension%s, expected %s%lld", axis, gm_dataset_title(d, title), d->view_rank, last ? "s" : "",
                       last ? "0 to " : "", (long long)last);
    if (strcmp(axis, "vector") == 0)
        number = last;
    r->n = 1;
    for (int k = 0; k <= last; k++) {
        int reduced = strcmp(axis, "frame") == 0 ? k > 0 : k == number;
        int64_t *factor = reduced ? &r->n : k < number || strcmp(axis, "frame") == 0 ? &r->outer : &r->inner;
        *factor = gm_mul_sat(*factor, d->view[k]);
        if (!reduced)
            dims[(*rank)++] = d->view[k];
    }
    return GM_OK;
}

const char *gm_reduce_mode_name(gm_reduce_mode mode)
{
    static const char *const names[] = {[GM_REDUCE_SEGMENTS] = "segments", [GM_REDUCE_NODES] = "nodes", [GM_REDUCE_BATCHES] = "batches",
                                        [GM_REDUCE_COLUMNS] = "columns"};
    return names[mode];
}

void gm_reduce_share(const gm_reduce_plan *plan, const gm_ranks *ranks, int64_t *begin, int64_t *end)
{
    int64_t groups = gm_ceil_div(plan->units, plan->unit), each = groups / ranks->size, more = groups % ranks->size;
    int64_t first = each * ranks->rank + gm_min(ranks->rank, more);
    *begin = gm_min(gm_mul_sat(first, plan->unit), plan->units);
    *end = gm_min(gm_mul_sat(first + each + (ranks->rank < more), plan->unit), plan->units);
}

/* What a plan is made from. */
typedef struct problem {
    const gm_reduction *r;
    int64_t size;         /* bytes of an element */
    int64_t leaf, leaves; /* elements of one, their number in a segment */
    int64_t chunk;        /* elements that are best read together: whole rows of the dataset's matrix */
    int64_t ranks, threads;
    int64_t host, device; /* bytes that may be used */
    int unified;
} problem;

/* The largest multiple of unit that is not above most, if there is one: else most. */
static int64_t whole_units(int64_t most, int64_t unit)
{
    return unit > 0 && unit <= most ? most - most % unit : most;
}

/* Pieces of whole things, of so many elements each, that leave so many bytes of records: segments, or outer indices. */
static void cut_whole(const problem *p, int64_t elements, int64_t records, int64_t piece, gm_reduce_plan *plan)
{
    int64_t each = elements * p->size + records;
    int64_t unit = p->chunk % elements == 0 ? p->chunk / elements : 1;
    plan->units = p->r->outer;
    plan->at_once = gm_min(gm_max(piece / each, 1), gm_max(gm_ceil_div(plan->units, p->ranks), 1));
    plan->at_once = whole_units(plan->at_once, unit);
    plan->unit = unit <= plan->at_once && unit <= plan->units / p->ranks ? unit : 1;
    plan->data = gm_round_up(plan->at_once * elements * p->size, ALIGN);
    plan->slot = plan->data + plan->at_once * records;
}

static void cut_nodes(const problem *p, int64_t piece, gm_reduce_plan *plan)
{
    int64_t n = p->r->n, bytes = gm_min(p->leaf, n) * p->size;
    int aligned = p->chunk % p->leaf == 0 && (p->r->outer == 1 || n % p->chunk == 0);
    plan->units = gm_mul_sat(p->r->outer, gm_ceil_div(p->leaves, GM_NODE));
    plan->unit = 1;
    plan->at_once = gm_min(gm_max(piece / (bytes + RECORD), 1), p->leaves);
    plan->at_once = whole_units(plan->at_once, aligned ? p->chunk / p->leaf : 1);
    plan->data = gm_round_up(plan->at_once * bytes, ALIGN);
    plan->slot = plan->data + plan->at_once * RECORD;
}

/* Rectangles of a band of rows. Chunks are decoded once when a piece, or pieces that come one after the other, hold all that is wanted of them:
 * then the band is as high as a chunk; else high enough for whole leaves, which are the cheapest for the device. */
static void cut_columns(const problem *p, int64_t piece, gm_reduce_plan *plan)
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
    if (elements / gm_min(rows, elements) < gm_min(RUN / p->size, inner)) /* a small slot: rather few rows than short ones */
        rows = gm_max(whole_units(elements / gm_min(gm_min(RUN / p->size, inner), elements), row_unit), 1);
    plan->cols = gm_min(whole_units(gm_max(elements / rows, 1), col_unit), inner);
    if (plan->cols == inner) /* full rows: as many as there is room for */
        rows = gm_max(rows, whole_units(elements / inner, row_unit > 1 ? row_unit : GM_LEAF_COLUMN));
    plan->rows = gm_min(rows, gm_max(n, 1));
    plan->unit = p->r->outer >= 4 * p->ranks ? inner : col_unit > 1 && col_unit <= inner / p->ranks ? col_unit : GM_LEAF_COLUMN;
    plan->units = gm_mul_sat(p->r->outer, inner);
    int exact = gm_dtype_get_kind(d->type) != GM_FLOAT, shared = by_rows && p->ranks > 1 && n / row_unit >= p->ranks;
    if (exact && shared && ((d->layout == GM_CHUNKED && col_unit > inner / p->ranks) || inner < GM_LEAF_COLUMN * p->ranks)) {
        plan->by_rows = 1;
        plan->units = n;
        plan->unit = row_unit;
    }
    plan->scratch = plan->cols < NARROW && plan->rows > GM_LEAF_COLUMN ? plan->cols * (plan->rows / GM_LEAF_COLUMN) : 0;
    plan->data = gm_round_up(gm_max(plan->rows * plan->cols * p->size, TOTAL * GM_LEAF_COLUMN), ALIGN);
    plan->slot = plan->data;
}

static void cut(const problem *p, int64_t piece, gm_reduce_plan *plan)
{
    int64_t n = p->r->n, inner = p->r->inner, records = gm_mul_sat(p->leaves, RECORD);
    int shared = p->ranks > 1 && p->r->outer < p->ranks; /* a segment is for more than one rank */
    *plan = (gm_reduce_plan){.unit = 1, .at_once = 1};
    if (n == 0 || gm_mul_sat(p->r->outer, inner) == 0) {
        plan->units = gm_mul_sat(p->r->outer, inner); /* nothing to read */
    } else if (inner == 1 && !shared && gm_add_sat(gm_mul_sat(n, p->size), records) <= piece) {
        plan->mode = GM_REDUCE_SEGMENTS;
        cut_whole(p, n, records, piece, plan);
        plan->slot = gm_round_up(plan->slot, ALIGN) + gm_min(plan->at_once, GM_REDUCE_BATCH) * TOTAL;
    } else if (inner == 1) {
        plan->mode = GM_REDUCE_NODES;
        cut_nodes(p, piece, plan);
    } else if (!shared && gm_add_sat(gm_mul_sat(gm_mul_sat(n, inner), p->size), gm_mul_sat(inner, BOTH)) <= piece) {
        plan->mode = GM_REDUCE_BATCHES;
        cut_whole(p, n * inner, inner * BOTH, piece, plan);
    } else {
        plan->mode = GM_REDUCE_COLUMNS;
        cut_columns(p, piece, plan);
    }
}

/* Memory of a rank beside the ring, on the device and on the host: blocks of columns, totals of nodes. */
static void beside(const problem *p, gm_reduce_plan *plan, int64_t *host, int64_t *device)
{
    *host = *device = 0;
    if (plan->mode == GM_REDUCE_COLUMNS)
        *device = plan->block * BOTH + plan->scratch * RECORD + 3 * OVERHEAD;
    if (plan->by_rows)
        *host = plan->slot + OVERHEAD;
    if (plan->mode == GM_REDUCE_NODES && p->ranks > 1) {
        int64_t each = gm_min(gm_ceil_div(plan->units, p->ranks), 2 * gm_ceil_div(p->leaves, GM_NODE));
        *host = gm_mul_sat(gm_mul_sat(each, TOTAL + 8), 1 + p->ranks) + 2 * OVERHEAD;
    }
    if (p->unified)
        *host = gm_add_sat(*host, *device);
}

/* How often the ring's slot of this size fits beside the rest. */
static int64_t slots_that_fit(const problem *p, gm_reduce_plan *plan)
{
    int64_t host, device, slots;
    plan->block = plan->mode == GM_REDUCE_COLUMNS ? plan->cols : 0;
    beside(p, plan, &host, &device);
    slots = (p->host - host) / (plan->slot + OVERHEAD);
    if (host > p->host || device > p->device)
        return 0;
    return p->unified ? gm_min(slots, p->device >= device ? slots : 0) : gm_min(slots, (p->device - device) / (plan->slot + OVERHEAD));
}

/* With the number of slots chosen, the block of columns takes what room is left, up to what is of use. */
static void choose_block(const problem *p, gm_reduce_plan *plan)
{
    const gm_dataset *d = p->r->dataset;
    int64_t host, device, ring = gm_mul_sat(plan->depth, plan->slot + OVERHEAD);
    if (plan->mode == GM_REDUCE_COLUMNS) {
        beside(p, plan, &host, &device);
        int64_t room = p->device - device - (p->unified ? 0 : ring);
        if (p->unified)
            room = gm_min(room, p->host - host - ring);
        int64_t most = gm_min(p->r->inner, gm_max(gm_ceil_div(gm_ceil_div(plan->units, plan->unit), p->ranks) * plan->unit, 1));
        if (plan->by_rows)
            most = p->r->inner;
        if (d->layout != GM_CHUNKED) /* a chunk that is wider than a block would be decoded for each block */
            most = gm_min(most, gm_max(usual_block / BOTH, plan->cols));
        plan->block = gm_min(plan->cols + whole_units(gm_max(room / BOTH, 0), plan->cols), gm_max(most, 1));
    }
    beside(p, plan, &host, &device);
    plan->host_bytes = gm_add_sat(host, ring);
    plan->device_bytes = gm_add_sat(device, p->unified ? 0 : ring);
}

/* What a reader with one thread would take if the cap were so many bytes: nothing, when it would not find enough. */
static int64_t reader_bytes_under(const gm_dataset *dataset, int64_t cap)
{
    int64_t before = gm_memory_cap(GM_HOST);
    gm_memory_set_cap(GM_HOST, cap);
    int64_t bytes = gm_reader_bytes(dataset, 1);
    gm_memory_set_cap(GM_HOST, before);
    return bytes;
}

static int refuse(const problem *p, gm_reduce_plan *plan, int64_t extra_host, int64_t extra_device)
{
    int64_t host, device, ring = gm_mul_sat(plan->depth, plan->slot + OVERHEAD);
    beside(p, plan, &host, &device);
    host = gm_add_sat(gm_add_sat(host, extra_host), ring);
    device = gm_add_sat(gm_add_sat(device, extra_device), p->unified ? 0 : ring);
    int of_host = host - extra_host > p->host;
    gm_account account = of_host ? GM_HOST : GM_DEVICE;
    int64_t need = gm_add_sat(gm_memory_used(account), of_host ? host : device);
    if (of_host)
        need = gm_add_sat(need, reader_bytes_under(p->r->dataset, need));
    char have_text[GM_SIZE_TEXT], need_text[GM_SIZE_TEXT];
    return gm_fail(GM_EDEVICE, "--%s-memory %s is too little for this reduction, expected at least %lld bytes (%s)", of_host ? "host" : "device",
                   gm_size_format(gm_memory_cap(account), have_text), (long long)need, gm_size_format(need, need_text));
}

static int64_t pieces_of(const problem *p, const gm_reduce_plan *plan)
{
    if (plan->mode == GM_REDUCE_COLUMNS)
        return INT64_MAX;
    int64_t things = gm_ceil_div(gm_ceil_div(plan->units, plan->unit), p->ranks) * plan->unit * (plan->mode == GM_REDUCE_NODES ? GM_NODE : 1);
    return gm_max(gm_ceil_div(things, plan->at_once), 1);
}

/* Bytes of a slot. The calls that send a piece to a device with memory of its own take as long as the link takes for one of the usual size: in long jobs
 * pieces are larger, for which there must be more to read than there is to pin. */
static int64_t usual_piece(const problem *p)
{
    const gm_reduction *r = p->r;
    int64_t bytes = gm_mul_sat(gm_mul_sat(r->outer, r->n), gm_mul_sat(r->inner, p->size)) / p->ranks;
    return p->unified ? USUAL_PIECE : gm_max(USUAL_PIECE, gm_min(gm_round_up(bytes / PIECES, USUAL_PIECE), MOST_PIECE));
}

/* Slots that are read into by all threads, and those that are on their way meanwhile. */
static int64_t usual_depth(const problem *p, const gm_reduce_plan *plan)
{
    return gm_min(gm_ceil_div(p->threads, plan->readers) + SPARE_SLOTS, MOST_SLOTS);
}

/* Threads that read a piece together: a chunk is one thread's. */
static void share_out(const problem *p, gm_reduce_plan *plan)
{
    const gm_dataset *d = p->r->dataset;
    int by_rows = plan->mode == GM_REDUCE_COLUMNS, whole = d->layout == GM_CHUNKED;
    int64_t elements = plan->data / p->size;
    plan->share = !whole ? 1 : by_rows ? gm_dataset_row_unit(d) : p->chunk;
    plan->readers = gm_readers_count(d, plan->data, (by_rows ? plan->rows : elements) / plan->share, (int)p->threads);
}

/* Makes the plan; 0 when it does not fit: then it is the smallest one. */
static int make(const gm_options *o, const problem *p, gm_reduce_plan *plan)
{
    for (int64_t piece = o->piece ? o->piece : usual_piece(p);; piece /= 2) {
        cut(p, gm_max(piece, 1), plan);
        share_out(p, plan);
        int64_t wanted = gm_min(o->depth ? o->depth : usual_depth(p, plan), pieces_of(p, plan));
        int64_t fit = slots_that_fit(p, plan);
        plan->depth = o->depth ? wanted : gm_min(wanted, gm_max(fit, gm_min(wanted, 2)));
        if (fit >= plan->depth)
            break;
        if (o->piece || piece <= 1)
            return 0;
    }
    choose_block(p, plan);
    return 1;
}

int gm_reduce_plan_all(const gm_job *job, const gm_reduction *r, int64_t extra_host, int64_t extra_device, gm_reduce_plan *plan)
{
    const gm_dataset *d = r->dataset;
    int64_t matrix_rows, matrix_cols, threads = -(int64_t)job->threads;
    problem p = {.r = r, .size = (int64_t)gm_dtype_size(d->type), .leaf = gm_leaf_length(d->type), .ranks = job->ranks->size,
                 .unified = job->ops->unified};
    gm_dataset_matrix(d, &matrix_rows, &matrix_cols);
    p.leaves = gm_ceil_div(r->n, p.leaf);
    p.chunk = gm_mul_sat(gm_dataset_row_unit(d), gm_max(matrix_cols, 1));
    int64_t host = gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST), device = gm_memory_cap(GM_DEVICE) - gm_memory_used(GM_DEVICE);
    if (gm_least_all(&host) || gm_least_all(&device) || gm_least_all(&threads))
        return gm_job_agree_all(job, GM_EMPI);
    p.threads = -threads;
    p.device = gm_max(device - extra_device, 0);
    /* Readers get what all threads can use, up to an eighth, if the ring can do with the rest; else what one thread needs. */
    int64_t least = gm_reader_bytes(d, 1), most = gm_max(least, gm_min(gm_reader_bytes(d, (int)p.threads), host / 8));
    p.host = gm_max(host - gm_add_sat(extra_host, most), 0);
    if (make(job->options, &p, plan))
        return gm_job_agree_all(job, GM_OK);
    p.host = gm_max(host - gm_add_sat(extra_host, least), 0);
    return gm_job_agree_all(job, make(job->options, &p, plan) ? GM_OK : refuse(&p, plan, extra_host, extra_device));
}
