/* rows.c - mappings of a virtual dataset as runs of whole rows. */
#include "io/rows.h"

#include "base/size.h"
#include "base/status.h"

enum { NOT_ROWS = -1 }; /* ends a walk without an error */

/* A selection in each dimension: count blocks, step from start to start. Adjacent blocks are one. */
typedef struct slab {
    hsize_t start[H5S_MAX_RANK], step[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
} slab;

static int take_slab(hid_t selection, int rank, slab *s)
{
    if (H5Sget_select_type(selection) != H5S_SEL_HYPERSLABS || H5Sget_simple_extent_ndims(selection) != rank
        || H5Sis_regular_hyperslab(selection) <= 0 || H5Sget_regular_hyperslab(selection, s->start, s->step, s->count, s->block) < 0)
        return 0;
    for (int d = 0; d < rank; d++) {
        if (s->count[d] == 0 || s->block[d] == 0 || s->count[d] > INT64_MAX || s->block[d] > INT64_MAX) /* unlimited is more than that */
            return 0;
        if (s->count[d] > 1 && s->step[d] == s->block[d]) {
            s->block[d] = (hsize_t)gm_mul_sat((int64_t)s->block[d], (int64_t)s->count[d]);
            s->count[d] = 1;
        }
    }
    return 1;
}

/* Does one dimension of a selection end inside the dataset? */
static int is_inside(const slab *s, int d, int64_t extent)
{
    hsize_t n = (hsize_t)extent;

    if (s->start[d] >= n || s->block[d] > n || s->count[d] > n || (s->count[d] > 1 && s->step[d] > n))
        return 0;
    return gm_add_sat(gm_add_sat((int64_t)s->start[d], (int64_t)s->block[d]),
                      s->count[d] > 1 ? gm_mul_sat((int64_t)s->count[d] - 1, (int64_t)s->step[d]) : 0) <= extent;
}

/* A selection of a dataset as blocks of elements; 0 when it is none. At most one dimension may have several blocks: those further in are whole then,
 * and those further out have one index. */
static int take_blocks(hid_t selection, int rank, const int64_t *dims, gm_blocks *b)
{
    int64_t all = 1, unit = 1; /* unit: elements of one index of a dimension */
    slab s;

    for (int d = 0; d < rank; d++)
        all = gm_mul_sat(all, dims[d]);
    *b = (gm_blocks){0, all, all, 1};
    if (all == 0 || all == INT64_MAX || H5Sget_select_type(selection) == H5S_SEL_ALL)
        return all > 0 && all < INT64_MAX;
    if (!take_slab(selection, rank, &s))
        return 0;
    *b = (gm_blocks){0, 1, 1, 1};
    for (int d = rank - 1; d >= 0; d--) {
        int whole = b->count == 1 && b->block == unit;

        if (!is_inside(&s, d, dims[d]))
            return 0;
        b->start += (int64_t)s.start[d] * unit;
        if (s.count[d] > 1 || s.block[d] > 1) {
            if (!whole)
                return 0;
            b->block = (int64_t)s.block[d] * unit;
            b->stride = s.count[d] > 1 ? (int64_t)s.step[d] * unit : b->block;
            b->count = (int64_t)s.count[d];
        }
        unit *= dims[d];
    }
    return 1;
}

/* Blocks of a selection of a part that has not been looked at: as many as there are if it is of the right kind; 0 when it cannot be. */
static int64_t guess_blocks(hid_t selection)
{
    int rank = H5Sget_simple_extent_ndims(selection);
    int64_t blocks = 1;
    slab s;

    if (H5Sget_select_type(selection) == H5S_SEL_ALL)
        return 1;
    if (rank < 0 || !take_slab(selection, rank, &s))
        return 0;
    for (int d = 0; d < rank; d++)
        blocks = gm_mul_sat(blocks, (int64_t)s.count[d]);
    return blocks;
}

int64_t gm_rows_columns(const gm_dataset *dataset)
{
    int64_t columns = 1;

    for (int d = 1; d < dataset->rank; d++)
        columns = gm_mul_sat(columns, dataset->dims[d]); /* of no rows, there may be very many */
    return columns;
}

static int take_target(const gm_mapping *map, const gm_dataset *dataset, int64_t columns, gm_blocks *to)
{
    return dataset->rank > 0 && take_blocks(map->to, dataset->rank, dataset->dims, to) && to->start % columns == 0 && to->block % columns == 0
           && to->stride % columns == 0;
}

typedef struct counting {
    const gm_dataset *dataset;
    int64_t columns, runs;
} counting;

static int count_mapping(void *context, hid_t set, const gm_mapping *map)
{
    counting *c = context;
    int64_t from = guess_blocks(map->from);
    gm_blocks to;

    (void)set;
    if (from == 0 || !take_target(map, c->dataset, c->columns, &to))
        return NOT_ROWS;
    c->runs = gm_add_sat(c->runs, gm_add_sat(to.count, from - 1));
    return GM_OK;
}

int gm_rows_count(hid_t set, const char *title, const gm_dataset *dataset, int64_t *runs)
{
    counting c = {dataset, gm_rows_columns(dataset), 0};
    int status = gm_mappings_visit(set, title, count_mapping, &c);

    *runs = status ? 0 : c.runs;
    return status == NOT_ROWS ? GM_OK : status;
}

int gm_rows_begin(const gm_mapping *map, const gm_dataset *dataset, int rank, const int64_t *dims, gm_row_walk *walk)
{
    *walk = (gm_row_walk){.columns = gm_rows_columns(dataset)};
    return take_target(map, dataset, walk->columns, &walk->to) && take_blocks(map->from, rank, dims, &walk->from)
           && walk->from.block % walk->columns == 0
           && gm_mul_sat(walk->from.block, walk->from.count) == gm_mul_sat(walk->to.block, walk->to.count);
}

/* Element i of a selection in the dataset; *left gets what is left of its block. */
static int64_t place(const gm_blocks *b, int64_t i, int64_t *left)
{
    *left = b->block - i % b->block;
    return b->start + i / b->block * b->stride + i % b->block;
}

int gm_rows_next(gm_row_walk *walk, gm_row_run *run)
{
    int64_t to, from, to_left, from_left, elements;

    if (walk->done == walk->to.block * walk->to.count)
        return 0;
    to = place(&walk->to, walk->done, &to_left);
    from = place(&walk->from, walk->done, &from_left);
    elements = gm_min(to_left, from_left);
    *run = (gm_row_run){to / walk->columns, elements / walk->columns, from};
    walk->done += elements;
    return 1;
}
