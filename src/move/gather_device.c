/* The stages of a piece: of indices, of data that are held, of rows that are wanted, of results. */
#include "base/size.h"
#include "kernels/move/calls.h"
#include "src/move/gather.h"

static const gm_gather_plan *plan_of(const gm_run *run)
{
    return &((const gm_gather *)run->own)->plan;
}

static int64_t element_bytes(const gm_run *run)
{
    return ((const gm_gather_case *)run->c)->size;
}

static unsigned if_copied(const gm_run *run, unsigned stages)
{
    return run->job->ops->unified ? 0 : stages;
}

static int copy_in(const gm_run *run, gm_queue *in, void *dst, const void *src, int64_t bytes)
{
    return bytes ? run->job->ops->copy_in(in, dst, (size_t)bytes, src, (size_t)bytes, (size_t)bytes, 1) : GM_OK;
}

static int copy_out(const gm_run *run, gm_queue *out, void *dst, const void *src, int64_t bytes)
{
    return bytes ? run->job->ops->copy_out(out, dst, (size_t)bytes, src, (size_t)bytes, (size_t)bytes, 1) : GM_OK;
}

/* --- Indices, and with data that are held the rows that they name --- */

/* at: position; held: col: column. A piece is some positions, or a part of one. */
static int next_indices(void *context, gm_piece *piece, int *more)
{
    gm_run *run = context;
    gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    int64_t beside = c->index_size[0] + (c->indices > 1 ? c->index_size[1] : 0);
    *more = g->at < g->end && atomic_load(&g->bad) == INT64_MAX;
    *piece = (gm_piece){.row = g->at,
                        .rows = gm_min(g->plan.pieces, g->end - g->at),
                        .col = g->col,
                        .cols = g->plan.held ? gm_min(g->plan.part, c->columns - g->col) : 0,
                        .stages = GM_STAGE_READ | GM_STAGE_COMPUTE | GM_STAGE_WRITE |
                                  if_copied(run, GM_STAGE_TO_DEVICE | GM_STAGE_FROM_DEVICE)};
    piece->bytes = piece->rows * (beside + piece->cols * c->size);
    g->col += piece->cols;
    if (!g->plan.held || g->col == c->columns) {
        g->at += piece->rows;
        g->col = 0;
    }
    return GM_OK;
}

int gm_gather_read_indices(const gm_run *run, int64_t first, int64_t count, void *host)
{
    const gm_gather_case *c = run->c;
    int status = GM_OK;
    *(int64_t *)host = INT64_MAX;
    for (int i = 0; i < c->indices && !status; i++)
        status = gm_reader_read_range(run->reader[GM_GATHER_INDEX + i], first, count,
                                      (char *)host + plan_of(run)->raw_at[i]);
    return status;
}

static int read_indices(void *context, const gm_piece *piece, gm_range whole, void *host)
{
    (void)whole;
    gm_run *run = context;
    gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    for (int i = 0; i < c->indices; i++)
        atomic_fetch_add(&g->read, piece->rows * c->index_size[i]);
    return gm_gather_read_indices(run, piece->row, piece->rows, host);
}

static int send_indices(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    const gm_run *run = context;
    const gm_gather_case *c = run->c;
    int status = copy_in(run, in, slot->device, slot->host, sizeof(int64_t));
    for (int i = 0; i < c->indices && !status; i++) {
        int64_t at = plan_of(run)->raw_at[i];
        status = copy_in(run, in, (char *)slot->device + at, (char *)slot->host + at, piece->rows * c->index_size[i]);
    }
    return status;
}

gm_index_rows_call gm_gather_index_call(const gm_run *run, int i, int64_t first, int64_t count, char *slot)
{
    const gm_gather_case *c = run->c;
    const gm_dataset *index = &c->input[GM_GATHER_INDEX + i];
    return (gm_index_rows_call){.count = count,
                                .extent = c->input[GM_GATHER_DATA].view[i],
                                .first = first,
                                .adds = i > 0,
                                .type = index->type,
                                .swap = index->swap,
                                .index = slot + plan_of(run)->raw_at[i],
                                .rows = (int64_t *)(void *)(slot + plan_of(run)->rows_at),
                                .bad = (int64_t *)(void *)slot};
}

static int compute_rows(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_run *run = context;
    const gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    char *device = slot->device;
    int status = GM_OK;
    for (int i = 0; i < c->indices && !status; i++) {
        gm_index_rows_call call = gm_gather_index_call(run, i, piece->row, piece->rows, device);
        status = run->job->ops->index_rows(queue, &call);
    }
    if (status || !g->plan.held)
        return status;
    gm_gather_call call = {.count = piece->rows,
                           .rows = c->rows,
                           .bytes = piece->cols * c->size,
                           .index = (const int64_t *)(const void *)(device + g->plan.rows_at),
                           .from = g->memory + piece->col * c->size,
                           .to = device + g->plan.out_at,
                           .from_pitch = c->columns * c->size,
                           .to_pitch = piece->cols * c->size};
    return run->job->ops->gather(queue, &call);
}

static int fetch_rows(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    const gm_run *run = context;
    const gm_gather_plan *plan = plan_of(run);
    int64_t at = plan->held ? plan->out_at : plan->rows_at;
    int64_t bytes = piece->rows * (plan->held ? piece->cols * element_bytes(run) : (int64_t)sizeof(int64_t));
    int status = copy_out(run, out, slot->host, slot->device, sizeof(int64_t));
    return status ? status : copy_out(run, out, (char *)slot->host + at, (char *)slot->device + at, bytes);
}

static int write_range(gm_run *run, int64_t first, int64_t count, const void *src)
{
    gm_gather *g = run->own;
    atomic_fetch_add(&g->written, count * element_bytes(run));
    return gm_output_write_range(run->output, 0, first, count, src);
}

/* Pieces are issued in order until one has a bad index, and all that are issued come here: the lowest one is found. */
static int keep_rows(void *context, const gm_piece *piece, gm_range all, const void *host)
{
    (void)all;
    gm_run *run = context;
    gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    const char *slot = host;
    long long bad = *(const int64_t *)host, lowest = atomic_load(&g->bad);
    while (bad < lowest && !atomic_compare_exchange_weak(&g->bad, &lowest, bad))
        ;
    if (bad != INT64_MAX)
        return GM_OK;
    if (g->plan.held)
        return write_range(run, piece->row * c->columns + piece->col, piece->rows * piece->cols, slot + g->plan.out_at);
    const int64_t *rows = (const int64_t *)(const void *)(slot + g->plan.rows_at);
    for (int64_t i = 0, place = piece->row - g->block.begin; i < piece->rows && g->keeps; i++)
        g->entries[place + i] = (gm_gather_entry){rows[i], place + i};
    return GM_OK;
}

const gm_program gm_gather_indices = {.next = next_indices,
                                      .read = read_indices,
                                      .to_device = send_indices,
                                      .compute = compute_rows,
                                      .from_device = fetch_rows,
                                      .write = keep_rows};

/* --- Held data --- */

/* at: element. */
static int next_load(void *context, gm_piece *piece, int *more)
{
    gm_run *run = context;
    gm_gather *g = run->own;
    const gm_dataset *d = run->input;
    *more = g->at < g->end;
    *piece = (gm_piece){.rows = 1,
                        .col = g->at,
                        .cols = gm_min(g->plan.load, g->end - g->at),
                        .stages = GM_STAGE_READ | if_copied(run, GM_STAGE_TO_DEVICE)};
    piece->bytes = piece->in = piece->cols * element_bytes(run);
    piece->in_unit = element_bytes(run);
    piece->in_place = g->memory + piece->col * element_bytes(run);
    if (gm_reader_is_parallel(d) && d->layout != GM_CHUNKED)
        piece->readers = gm_ring_readers(piece->bytes, piece->cols, run->job->threads);
    g->at += gm_max(piece->cols, 0);
    return GM_OK;
}

static int read_load(void *context, const gm_piece *piece, gm_range part, void *to)
{
    gm_run *run = context;
    gm_gather *g = run->own;
    int64_t size = element_bytes(run);
    atomic_fetch_add(&g->read, gm_range_length(part));
    return gm_reader_read_range(run->reader[GM_GATHER_DATA], piece->col + part.begin / size,
                                gm_range_length(part) / size, to);
}

const gm_program gm_gather_load = {.next = next_load, .read = read_load};

/* --- Rows that are wanted, to a block --- */

static int64_t gap_of(const gm_run *run)
{
    return gm_gather_gap(run->c, gm_range_length(((const gm_gather *)run->own)->band));
}

/* at: entry; col: column of the band. Parts of rows come one after the other: what is decoded for one has the next. */
static int next_rows(void *context, gm_piece *piece, int *more)
{
    gm_run *run = context;
    gm_gather *g = run->own;
    int64_t width = gm_range_length(g->band), rows = 0;
    *more = g->at < g->end;
    *piece = (gm_piece){.row = g->at,
                        .col = g->band.begin + g->col,
                        .cols = gm_min(g->plan.part, width - g->col),
                        .at_col = g->col,
                        .stages = GM_STAGE_READ | GM_STAGE_COMPUTE | if_copied(run, GM_STAGE_TO_DEVICE)};
    piece->rows = gm_gather_cut(g->entries + g->at, g->end - g->at, g->plan.entries, g->plan.room, gap_of(run), &rows);
    piece->at_row = rows;
    piece->bytes = rows * piece->cols * element_bytes(run);
    g->col += piece->cols;
    if (g->col == width) {
        g->at += piece->rows;
        g->col = 0;
    }
    return GM_OK;
}

/* Rows [row, row + rows) of the piece's columns, to consecutive rows. */
static int read_run(gm_run *run, const gm_piece *piece, int64_t row, int64_t rows, char *dst)
{
    gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    int64_t bytes = piece->cols * c->size;
    int status = GM_OK;
    atomic_fetch_add(&g->read, rows * bytes);
    atomic_fetch_add(&g->reads, piece->cols == c->columns ? 1 : rows);
    if (piece->cols == c->columns)
        return gm_reader_read_range(run->reader[GM_GATHER_DATA], row * c->columns, rows * c->columns, dst);
    for (int64_t i = 0; i < rows && !status; i++)
        status = gm_reader_read_range(run->reader[GM_GATHER_DATA], (row + i) * c->columns + piece->col, piece->cols,
                                      dst + i * bytes);
    return status;
}

/* A slot holds numbers of rows in the slot, places in the block, and rows. */
static int read_rows(void *context, const gm_piece *piece, gm_range whole, void *host)
{
    (void)whole;
    gm_run *run = context;
    const gm_gather *g = run->own;
    const gm_gather_entry *e = g->entries + piece->row;
    int64_t *index = host, *place = (int64_t *)(void *)((char *)host + g->plan.place_at);
    int64_t bytes = piece->cols * element_bytes(run), gap = gap_of(run), first = 0; /* entry that a run begins with */
    char *data = (char *)host + g->plan.data_at;
    int joins, status = GM_OK;
    for (int64_t k = 0; k < piece->rows && !status; k++) {
        index[k] = gm_gather_pack(&e[k] - (k > 0), &e[k], k ? index[k - 1] : -1, gap, &joins);
        place[k] = e[k].place;
        if (k > 0 && !joins) {
            status = read_run(run, piece, e[first].row, e[k - 1].row + 1 - e[first].row, data + index[first] * bytes);
            first = k;
        }
    }
    int64_t last = piece->rows - 1;
    return status ? status
                  : read_run(run, piece, e[first].row, e[last].row + 1 - e[first].row, data + index[first] * bytes);
}

static int send_rows(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    const gm_run *run = context;
    const gm_gather_plan *plan = plan_of(run);
    int64_t bytes = piece->rows * (int64_t)sizeof(int64_t), data = piece->at_row * piece->cols * element_bytes(run);
    char *host = slot->host, *device = slot->device;
    int status = copy_in(run, in, device, host, bytes);
    if (!status)
        status = copy_in(run, in, device + plan->place_at, host + plan->place_at, bytes);
    return status ? status : copy_in(run, in, device + plan->data_at, host + plan->data_at, data);
}

static int compute_block(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_run *run = context;
    const gm_gather *g = run->own;
    const char *device = slot->device;
    int64_t size = element_bytes(run);
    gm_gather_call call = {.count = piece->rows,
                           .rows = piece->at_row,
                           .bytes = piece->cols * size,
                           .index = (const int64_t *)(const void *)device,
                           .place = (const int64_t *)(const void *)(device + g->plan.place_at),
                           .from = device + g->plan.data_at,
                           .to = g->memory + piece->at_col * size,
                           .from_pitch = piece->cols * size,
                           .to_pitch = gm_range_length(g->band) * size};
    return run->job->ops->gather(queue, &call);
}

const gm_program gm_gather_rows = {
    .next = next_rows, .read = read_rows, .to_device = send_rows, .compute = compute_block};

/* --- A block, to the file --- */

/* Lines of the block that are contiguous in the output: rows of the band, or the whole block. */
static int64_t line_of(const gm_run *run)
{
    const gm_gather *g = run->own;
    int64_t width = gm_range_length(g->band);
    return width == ((const gm_gather_case *)run->c)->columns ? width * gm_range_length(g->block) : width;
}

/* at: element of the block. */
static int next_results(void *context, gm_piece *piece, int *more)
{
    gm_run *run = context;
    gm_gather *g = run->own;
    int64_t line = line_of(run), size = element_bytes(run);
    *more = g->at < g->end;
    if (!*more)
        return GM_OK;
    *piece = (gm_piece){.row = g->at / line,
                        .rows = 1,
                        .col = g->at % line,
                        .cols = gm_min(g->plan.ring.slot / size, line - g->at % line),
                        .stages = GM_STAGE_WRITE | if_copied(run, GM_STAGE_FROM_DEVICE)};
    piece->bytes = piece->out = piece->cols * size;
    piece->out_unit = size;
    piece->out_place = g->memory + g->at * size;
    g->at += piece->cols;
    return GM_OK;
}

static int write_results(void *context, const gm_piece *piece, gm_range part, const void *from)
{
    gm_run *run = context;
    const gm_gather *g = run->own;
    int64_t first = (g->block.begin + piece->row) * ((const gm_gather_case *)run->c)->columns + g->band.begin,
            size = element_bytes(run);
    return write_range(run, first + piece->col + part.begin / size, gm_range_length(part) / size, from);
}

const gm_program gm_gather_results = {.next = next_results, .write = write_results};
