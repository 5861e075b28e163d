#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "src/move/gather.h"
#include "src/stream/stream.h"

#include <math.h>

enum {
    USUAL_PIECE = 8 << 20, /* bytes: files and links reach their speed */
    SPARE_SLOTS = 2,       /* in addition to one for each thread */
    MOST_SLOTS = 16,
    SHARE = 4096,                        /* bytes of a row that ranks share */
    READ = 4096,                         /* bytes: a shorter row takes as long to read */
    BLOCK = 16,                          /* pieces of data that a block is worth at least */
    ENTRY = 2 * 8,                       /* bytes of an entry, in a slot */
    FEW_ENTRIES = 16,                    /* of a row that is wanted more often */
    SORTED = 2 * sizeof(gm_gather_entry) /* bytes of a position on the host */
};

/* A plan, and all that it is made from. */
typedef struct problem {
    const gm_gather_case *c;
    gm_gather_plan *plan;
    int64_t indices;            /* bytes of all indices of a position */
    int64_t positions, columns; /* the most of any rank; columns: at least 1 */
} problem;

void gm_gather_share(const gm_gather_case *c, int ranks, int rank, gm_range *positions, gm_range *columns)
{
    *positions = (gm_range){0, c->positions};
    *columns = (gm_range){0, c->columns};
    if (c->positions < ranks) {
        *columns = gm_range_split(c->columns, SHARE / c->size, ranks, rank);
        if (rank > 0 && gm_range_length(*columns) == 0)
            *positions = (gm_range){0, 0};
    } else {
        *positions = gm_range_split(c->positions, 1, ranks, rank);
    }
}

static int64_t room_for(int64_t count, int64_t bytes)
{
    return gm_round_up(gm_mul_sat(count, bytes), GM_SLOT_ALIGN);
}

/* Offsets for pieces of indices; returns the bytes up to the end of the numbers of rows. */
static int64_t set_indices(const problem *p, int64_t pieces)
{
    gm_gather_plan *plan = p->plan;
    int64_t at = GM_SLOT_ALIGN;
    plan->pieces = pieces;
    for (int i = 0; i < p->c->indices; i++) {
        plan->raw_at[i] = at;
        at += room_for(pieces, p->c->index_size[i]);
    }
    plan->rows_at = at;
    return at + room_for(pieces, sizeof(int64_t));
}

/* As many columns as `bytes` have room for, whole rows or a part of one that keeps words aligned. */
static int64_t part_of(const problem *p, int64_t bytes)
{
    int64_t most = gm_max(bytes / p->c->size, 1), unit = GM_SLOT_ALIGN / p->c->size;
    return most >= p->columns ? p->columns : most > unit ? most - most % unit : most;
}

static int64_t slots_of(const gm_ring_budget *budget)
{
    return gm_min(budget->threads + SPARE_SLOTS, MOST_SLOTS);
}

/* Whole chunks, if a piece has room for one. */
static int64_t load_of(const gm_gather_case *c, int64_t elements)
{
    int64_t rows, cols;
    gm_dataset_matrix(&c->input[GM_GATHER_DATA], &rows, &cols);
    int64_t chunk = gm_mul_sat(gm_dataset_row_unit(&c->input[GM_GATHER_DATA]), gm_max(cols, 1));
    return chunk <= elements ? elements - elements % chunk : elements;
}

static void cut_held(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    const problem *p = context;
    gm_gather_plan *plan = p->plan;
    int64_t row = p->columns * p->c->size, beside = p->indices + (int64_t)sizeof(int64_t);
    int64_t pieces = gm_min(gm_max(bytes / (row + beside), 1), p->positions);
    plan->part = part_of(p, pieces > 1 ? row : bytes - beside);
    plan->out_at = set_indices(p, pieces);
    int64_t slot = gm_add_sat(plan->out_at, gm_mul_sat(pieces, plan->part * p->c->size));
    slot = gm_max(slot, gm_min(bytes, gm_mul_sat(p->c->rows, row))); /* for pieces of data */
    plan->load = load_of(p->c, gm_max(slot / p->c->size, 1));
    *cost = (gm_ring_cost){.slot = slot,
                           .device = gm_add_sat(gm_mul_sat(p->c->rows, row), GM_ALLOC_OVERHEAD),
                           .pieces = INT64_MAX,
                           .slots = slots_of(budget)};
}

/* Bytes of the block, on the host and on the device. */
static void set_block(const problem *p, int64_t positions, int64_t columns, gm_ring_cost *cost)
{
    p->plan->block = positions;
    p->plan->block_columns = columns;
    cost->host = gm_add_sat(gm_mul_sat(positions, SORTED), 2 * GM_ALLOC_OVERHEAD);
    cost->device = gm_add_sat(gm_mul_sat(positions, columns * p->c->size), GM_ALLOC_OVERHEAD);
}

static void cut_sorted(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    const problem *p = context;
    gm_gather_plan *plan = p->plan;
    int64_t size = p->c->size, row = p->columns * size, block = gm_mul_sat(bytes, BLOCK);
    int64_t least = gm_max(gm_min(FEW_ENTRIES, bytes / (4 * ENTRY)), 1);
    plan->entries = gm_min(gm_max(bytes / gm_add_sat(row, ENTRY), least), gm_max(p->positions, 1));
    int64_t room = gm_max(bytes - plan->entries * ENTRY, size);
    plan->part = part_of(p, room);
    plan->room = plan->part < p->columns ? 1 : gm_max(room / row, 1);
    plan->room = gm_min(plan->room, gm_max(p->c->rows, 1));
    plan->place_at = room_for(plan->entries, sizeof(int64_t));
    plan->data_at = 2 * plan->place_at;
    int64_t slot = gm_add_sat(plan->data_at, gm_mul_sat(plan->room, plan->part * size));
    int64_t pieces = gm_min(gm_max(bytes / (p->indices + (int64_t)sizeof(int64_t)), 1), gm_max(p->positions, 1));
    *cost = (gm_ring_cost){
        .slot = gm_max(slot, set_indices(p, pieces)), .pieces = INT64_MAX, .slots = slots_of(budget)};
    if (gm_add_sat(row, SORTED) <= block)
        set_block(p, gm_min(block / (row + SORTED), gm_max(p->positions, 1)), p->columns, cost);
    else
        set_block(p, 1, gm_min(part_of(p, block), p->columns), cost);
}

/* Columns, then positions, take the room that is left, on the device and on the host. */
static void grow_block(const problem *p, const gm_ring_budget *budget)
{
    gm_gather_plan *plan = p->plan;
    gm_ring_plan *ring = &plan->ring;
    int64_t size = p->c->size, row = p->columns * size;
    int64_t columns = gm_min(gm_max(ring->device_left, 0) / size, p->columns - plan->block_columns);
    if (plan->block_columns + columns < p->columns) /* parts that keep words aligned */
        columns -= (plan->block_columns + columns) % gm_min(GM_SLOT_ALIGN / size, plan->block_columns + columns);
    if (columns > 0 && gm_ring_plan_add(ring, budget, 0, columns * size))
        plan->block_columns += columns;
    if (plan->block_columns < p->columns)
        return;
    int64_t most = budget->unified ? gm_max(ring->host_left, 0) / (row + SORTED)
                                   : gm_min(gm_max(ring->device_left, 0) / row, gm_max(ring->host_left, 0) / SORTED);
    int64_t more = gm_min(most, p->positions - plan->block);
    if (more > 0 && gm_ring_plan_add(ring, budget, more * SORTED, more * row))
        plan->block += more;
}

/* Are the data no larger than what a rank asks of them? */
static int is_dense(const gm_gather_case *c, const problem *p)
{
    int64_t row = p->columns * c->size;
    return p->columns == c->columns && c->rows > 0 &&
           gm_mul_sat(c->rows, row) <= gm_mul_sat(p->positions, gm_max(row, READ));
}

int gm_gather_plan_make(const gm_gather_case *c, const gm_ring_request *request, const gm_ring_budget *budget,
                        int ranks, int rank, gm_gather_plan *plan, gm_ring_budget *need)
{
    gm_range positions, columns;
    gm_gather_share(c, ranks, 0, &positions, &columns); /* the largest, for the same plan on all ranks */
    problem p = {
        .c = c, .plan = plan, .positions = gm_range_length(positions), .columns = gm_max(gm_range_length(columns), 1)};
    for (int i = 0; i < c->indices; i++)
        p.indices += c->index_size[i];
    *plan = (gm_gather_plan){0};
    gm_gather_share(c, ranks, rank, &plan->positions, &plan->columns);
    gm_ring_request r = *request;
    gm_ring_plan ring;
    r.usual = r.least = USUAL_PIECE;
    r.cut = cut_held;
    r.context = &p;
    if (is_dense(c, &p) && gm_ring_plan_make(&r, budget, &ring, need) == GM_OK) {
        plan->held = 1;
        plan->ring = ring;
        return GM_OK;
    }
    r.least = GM_RING_LEAST_PIECE;
    r.cut = cut_sorted;
    int status = gm_ring_plan_make(&r, budget, &ring, need);
    if (status)
        return status;
    plan->ring = ring;
    grow_block(&p, budget);
    return GM_OK;
}

int64_t gm_gather_index_bytes(const gm_gather_case *c, const gm_gather_plan *plan, gm_range positions)
{
    int64_t count = gm_range_length(positions), size = 0;
    for (int i = 0; i < c->indices; i++)
        size += c->index_size[i];
    return count * size * (!plan->held && count > plan->block ? 2 : 1);
}

/* Rows that are read for a block of random numbers: an estimate. From a wanted row to the next one it is more than
 * `near` rows with the probability `apart`; those in between are then skipped. */
static double random_rows(const gm_gather_case *c, double count, int64_t columns)
{
    double density = count / (double)c->rows, near = (double)gm_gather_gap(c, columns) + 1;
    double wanted = -expm1(-density), apart = exp(-density * near);
    return (double)c->rows * (-expm1(-density * near) - wanted * (near - 1) * apart);
}

void gm_gather_bytes(const gm_gather_case *c, const gm_gather_plan *plan, gm_range positions, gm_range columns,
                     int64_t *read, int64_t *written)
{
    int64_t count = gm_range_length(positions), width = gm_range_length(columns), row = width * c->size;
    int64_t rows = count ? c->rows : 0;
    if (!plan->held && rows) {
        int64_t blocks = gm_ceil_div(count, plan->block);
        double each = random_rows(c, (double)count / (double)blocks, gm_min(width, plan->block_columns));
        rows = gm_min(llround((double)blocks * each), gm_mul_sat(blocks, c->rows));
    }
    *read = gm_add_sat(gm_mul_sat(rows, row), gm_gather_index_bytes(c, plan, positions));
    *written = count * row;
}
