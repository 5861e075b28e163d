/* normalize_pass.c - what all passes over a rank's share have in common, and the last one, which applies the numbers that the others found. */
#include "src/normalize.h"

#include "base/memory.h"
#include "base/size.h"
#include "kernels/element.h"
#include "kernels/normalize.h"
#include "src/flat.h"
#include "src/readers.h"

#include <math.h>
#include <string.h>

static int64_t element_bytes(const gm_normalize *p)
{
    return (int64_t)gm_dtype_size(p->problem->src.type);
}

void gm_normalize_place(const gm_normalize_plan *plan, int64_t step, gm_piece *piece)
{
    int64_t across = gm_ceil_div(plan->block_cols, plan->piece_cols), down = gm_ceil_div(plan->rows, plan->piece_rows);
    int64_t block = step / (across * down), rest = step - block * across * down, first = block * plan->block_cols;
    across = gm_ceil_div(gm_min(plan->block_cols, plan->cols - first), plan->piece_cols);
    int64_t row = rest / across * plan->piece_rows, col = first + rest % across * plan->piece_cols;
    *piece = (gm_piece){.step = step, .at_row = row, .at_col = col, .row = plan->row + row, .col = plan->col + col,
                        .rows = gm_min(plan->piece_rows, plan->rows - row), .cols = gm_min(plan->piece_cols, plan->cols - col)};
}

int gm_normalize_next(gm_normalize *p, gm_piece *piece, int *more, unsigned stages, int64_t more_bytes)
{
    *more = p->at < p->end;
    if (!*more)
        return GM_OK;
    gm_normalize_place(&p->plan, p->at++, piece);
    int here = piece->step < p->filled;
    int64_t n = piece->rows * piece->cols, bytes = here ? 0 : n * element_bytes(p);
    piece->stages = stages | (here ? 0 : GM_STAGE_READ | GM_STAGE_TO_DEVICE);
    piece->readers = gm_readers_count(&p->problem->src, bytes, p->plan.readers, p->plan.readers);
    piece->bytes = bytes + n * more_bytes;
    p->job->report.bytes_read += bytes;
    return GM_OK;
}

static void *kept_at(const gm_normalize *p, const gm_piece *piece)
{
    return (char *)p->kept + piece->step * p->plan.in_bytes;
}

const void *gm_normalize_elements(const gm_normalize *p, const gm_piece *piece, const gm_slot_memory *slot)
{
    return p->kept ? kept_at(p, piece) : slot->device;
}

/* Do the elements of a piece follow each other in the file? */
static int is_range(const gm_normalize *p, const gm_piece *piece)
{
    return piece->rows == 1 || piece->cols == p->problem->cols;
}

/* On a device that addresses host memory, what is kept is read to where it is kept. */
static int read_piece(void *context, const gm_piece *piece, gm_share share, void *host)
{
    const gm_normalize *p = context;
    char *to = p->kept && p->job->ops->unified ? kept_at(p, piece) : host;
    int64_t first = piece->row * p->problem->cols + piece->col, begin, end;
    if (is_range(p, piece)) {
        gm_share_cut(share, first, piece->rows * piece->cols, p->plan.share, &begin, &end);
        return gm_reader_read_range(p->reader, begin, end - begin, to + (begin - first) * element_bytes(p));
    }
    gm_share_cut(share, piece->row, piece->rows, p->plan.share_rows, &begin, &end);
    to += (begin - piece->row) * piece->cols * element_bytes(p);
    return gm_reader_read(p->reader, begin, end - begin, piece->col, piece->cols, to, (size_t)(piece->cols * element_bytes(p)));
}

static int send_piece(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    const gm_normalize *p = context;
    const gm_device_ops *ops = p->job->ops;
    size_t bytes = (size_t)(piece->rows * piece->cols * element_bytes(p));
    if (ops->unified)
        return GM_OK;
    return ops->copy_in(in, p->kept ? kept_at(p, piece) : slot->device, bytes, slot->host, bytes, bytes, 1);
}

void gm_normalize_begin(gm_normalize *p, gm_program *program, int64_t begin, int64_t end)
{
    *program = (gm_program){.context = p, .read = read_piece, .to_device = send_piece};
    p->at = begin;
    p->end = end;
}

int gm_normalize_run(gm_normalize *p, gm_program *program, void *context)
{
    p->pass = context;
    int status = gm_stream_run(p->stream, program, &p->job->report.times);
    if (!status && p->kept)
        p->filled = gm_max(p->filled, p->end);
    return status;
}

int gm_normalize_set(gm_normalize *p, int64_t i, double sub, double span, double top)
{
    int64_t entries = p->plan.entries;
    double factor = top / span;
    float narrow = (float)factor;
    if (isnan(sub) || isnan(span)) {
        sub = NAN;
        factor = 1;
    } else if (span == 0 || isinf(factor) || (!p->problem->wide && isinf(narrow))) { /* or a factor that is no number: as good as constant */
        sub = 0;
        factor = NAN;
    }
    if (p->problem->wide) {
        double *scale = p->host_scale;
        scale[i] = sub;
        scale[entries + i] = factor;
    } else {
        float *scale = p->host_scale;
        scale[i] = (float)sub;
        scale[entries + i] = (float)factor;
    }
    return isnan(factor);
}

/* --- The last pass --- */

static int next(void *context, gm_piece *piece, int *more)
{
    gm_normalize *p = context;
    int64_t size = (int64_t)gm_dtype_size(p->problem->type);
    int status = gm_normalize_next(p, piece, more, GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE, size);
    if (!status && *more)
        p->job->report.bytes_written += piece->rows * piece->cols * size;
    return status;
}

/* An element of a type with this value, or the nearest that the type holds. */
static uint64_t element_of(gm_dtype type, double value)
{
    switch (type) {
#define ELEMENT_UNSIGNED(ctype, v) ((v) >= 0x1p64 ? UINT64_MAX : (uint64_t)(ctype)(v))
#define ELEMENT_SIGNED(ctype, v) (uint64_t)((v) >= 0x1p63 ? INT64_MAX : (int64_t)(ctype)(v))
#define ELEMENT_FLOAT(ctype, v) gm_raw_##ctype(gm_round_##ctype(v))
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    case GM_##id: \
        return ELEMENT_##kind(ctype, value);
#include "base/dtypes.def"
#undef GM_DTYPE
    default:
        return 0;
    }
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_normalize *p = context;
    const gm_normalize_case *c = p->problem;
    int to_target = c->method == GM_MINMAX || c->method == GM_PERCENTILE;
    int64_t real = c->wide ? 8 : 4, by_row = c->per == GM_PER_FRAME, by_col = c->method == GM_FLATFIELD || c->per == GM_PER_PIXEL;
    const char *scale = (const char *)p->scale + (by_row * piece->at_row + by_col * piece->at_col) * real;
    gm_normalize_call call = {
        .rows = piece->rows, .cols = piece->cols, .src = gm_normalize_elements(p, piece, slot), .src_type = c->src.type, .swap = c->src.swap,
        .out = (char *)slot->device + p->plan.in_bytes, .out_type = c->type, .wide = c->wide, .sub = scale,
        .factor = scale + p->plan.entries * real, .row_step = (int)by_row, .col_step = (int)by_col, .add = to_target ? c->lo : 0, .log = c->log,
        .rounding = c->rounding, .lo = c->lo, .hi = c->hi, .below = element_of(c->type, c->lo), .above = element_of(c->type, c->hi),
        .marked = element_of(c->type, c->method == GM_FLATFIELD || c->method == GM_ZSCORE ? fmin(fmax(0, c->lo), c->hi) : c->lo), .counts = p->counts,
    };
    return p->job->ops->normalize(queue, &call);
}

static int fetch(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    const gm_normalize *p = context;
    size_t bytes = (size_t)piece->rows * (size_t)piece->cols * gm_dtype_size(p->problem->type);
    if (p->job->ops->unified)
        return GM_OK;
    return p->job->ops->copy_out(out, (char *)slot->host + p->plan.in_bytes, bytes, (char *)slot->device + p->plan.in_bytes, bytes, bytes, 1);
}

static int put(void *context, const gm_piece *piece, const void *host)
{
    const gm_normalize *p = context;
    const gm_dataset *d = &p->problem->src;
    int64_t rows, cols, size = (int64_t)gm_dtype_size(p->problem->type), at = piece->row * p->problem->cols + piece->col;
    int64_t end = at + piece->rows * piece->cols;
    const char *from = (const char *)host + p->plan.in_bytes;
    int status = GM_OK;
    if (!is_range(p, piece))
        return gm_output_write(p->output, 0, piece->row, piece->rows, piece->col, piece->cols, from, (size_t)(piece->cols * size));
    gm_dataset_matrix(d, &rows, &cols);
    while (at < end && !status) {
        gm_rectangle r = gm_flat_rectangle(cols, at, end);
        status = gm_output_write(p->output, 0, r.row, r.rows, r.col, r.cols, from, (size_t)(r.cols * size));
        at += r.rows * r.cols;
        from += r.rows * r.cols * size;
    }
    return status;
}

int gm_normalize_apply(gm_normalize *p, gm_normalize_counts *counts)
{
    const gm_device_ops *ops = p->job->ops;
    gm_queue *queue = gm_stream_in(p->stream);
    size_t bytes = (size_t)p->plan.entries * 2 * (p->problem->wide ? sizeof(double) : sizeof(float));
    gm_program program;
    int status = ops->zero(queue, p->counts, sizeof *p->counts);
    if (!status && !ops->unified)
        status = ops->copy_in(queue, p->scale, bytes, p->host_scale, bytes, bytes, 1);
    if (!status)
        status = ops->queue_sync(queue);
    gm_normalize_begin(p, &program, 0, gm_normalize_pieces(&p->plan));
    program.next = next;
    program.compute = compute;
    program.from_device = fetch;
    program.write = put;
    if (!status)
        status = gm_normalize_run(p, &program, NULL);
    if (!status)
        status = ops->copy_out(queue, counts, sizeof *counts, p->counts, sizeof *counts, sizeof *counts, 1);
    return status ? status : ops->queue_sync(queue);
}
