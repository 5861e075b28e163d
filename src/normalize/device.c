/* The stages of a piece that all passes have in common, and the last pass, which applies the numbers that the others
 * found. */
#include "src/normalize/normalize.h"

#include "kernels/element.h"
#include "kernels/normalize/normalize.h"

#include <float.h>
#include <math.h>
#include <string.h>

static int read_piece(void *context, const gm_piece *piece, gm_range part, void *to)
{
    const gm_normalize *p = context;
    int64_t size = (int64_t)gm_dtype_size(p->c->src.type), first = part.begin / size,
            count = gm_range_length(part) / size;
    return gm_normalize_is_range(p, piece)
               ? gm_reader_read_range(p->reader, piece->row * p->c->cols + piece->col + first, count, to)
               : gm_reader_read_part(p->reader, piece->row, piece->col, piece->cols, first, count, to);
}

void gm_normalize_begin(gm_normalize *p, gm_program *program, int64_t begin, int64_t end)
{
    *program = (gm_program){.context = p, .read = read_piece};
    p->at = begin;
    p->end = end;
}

int64_t gm_normalize_scale_bytes(const gm_normalize_case *c)
{
    return c->wide || c->widens ? sizeof(double) : sizeof(float);
}

int gm_normalize_set(gm_normalize *p, int64_t i, double sub, double span, double top)
{
    int64_t entries = p->plan.entries;
    double factor = top / span;
    float narrow = (float)factor;
    if (isnan(sub) || isnan(span)) {
        sub = NAN;
        factor = 1;
    } else if (span == 0 || isinf(factor) ||
               (!p->c->wide && isinf(narrow))) { /* or a factor that is no number: as good as constant */
        sub = 0;
        factor = NAN;
    }
    if (gm_normalize_scale_bytes(p->c) == sizeof(double)) {
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

/* Does float32 hold a finite span and its factor, with all digits? */
static int fits_scale(double span, double factor)
{
    return span > DBL_MAX || (!isinf((float)span) && (factor == 0 || !(fabs(factor) < FLT_MIN)));
}

int gm_normalize_set_ends(gm_normalize *p, int64_t i, double low, double high, double span)
{
    double top = p->c->hi - p->c->lo;
    if (span > DBL_MAX && !isinf(low) && !isinf(high))
        return gm_normalize_set(p, i, low, high / 2 - low / 2, top / 2);
    p->overflows |= !fits_scale(span, top / span);
    return gm_normalize_set(p, i, isinf(low) && span > DBL_MAX ? 0 : low, span, top);
}

int gm_normalize_settle_all(gm_normalize *p)
{
    const gm_job *job = p->job;
    int64_t fits = !p->overflows;
    p->wide = p->c->wide;
    if (!p->c->widens)
        return GM_OK;
    int status = gm_job_agree_all(job, gm_min_all(&fits));
    p->wide = !fits;
    for (int64_t k = 0; k < 2 * p->plan.entries && !p->wide; k++) { /* in place: a float lies before what follows */
        double wide;
        memcpy(&wide, (char *)p->host_scale + k * (int64_t)sizeof wide, sizeof wide);
        float narrow = (float)wide;
        memcpy((char *)p->host_scale + k * (int64_t)sizeof narrow, &narrow, sizeof narrow);
    }
    return status;
}

/* --- The last pass --- */

static int next(void *context, gm_piece *piece, int *more)
{
    gm_normalize *p = context;
    int64_t size = (int64_t)gm_dtype_size(p->c->type);
    int status = gm_normalize_next(p, piece, more, GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE, size);
    if (status || !*more)
        return status;
    piece->out = piece->rows * piece->cols * size;
    piece->out_unit = gm_normalize_is_range(p, piece) ? size : piece->cols * size;
    p->job->report.bytes_written += piece->out;
    return GM_OK;
}

/* An element of a type with this value, or the nearest that the type holds. */
static uint64_t element_of(gm_dtype type, double value)
{
    switch (type) {
#define ELEMENT_UNSIGNED(ctype, v) ((v) >= 0x1p64 ? UINT64_MAX : (uint64_t)(ctype)(v))
#define ELEMENT_SIGNED(ctype, v) (uint64_t)((v) >= 0x1p63 ? INT64_MAX : (int64_t)(ctype)(v))
#define ELEMENT_FLOAT(ctype, v) gm_raw_##ctype(gm_round_##ctype(v))
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) \
    case GM_DTYPE_##id:                                \
        return ELEMENT_##kind(ctype, value);
#include "base/types/dtypes.def"
#undef GM_DTYPE
    default:
        return 0;
    }
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_normalize *p = context;
    const gm_normalize_case *c = p->c;
    int to_target = c->method == GM_MINMAX || c->method == GM_PERCENTILE;
    int64_t real = p->wide ? 8 : 4, by_row = c->per == GM_PER_FRAME,
            by_col = c->method == GM_FLATFIELD || c->per == GM_PER_PIXEL;
    const char *scale = (const char *)p->scale + (by_row * piece->at_row + by_col * piece->at_col) * real;
    gm_normalize_call call = {
        .rows = piece->rows,
        .cols = piece->cols,
        .src = gm_normalize_elements(p, piece, slot),
        .src_type = c->src.type,
        .swap = c->src.swap,
        .out = (char *)slot->device + p->plan.in_bytes,
        .out_type = c->type,
        .wide = p->wide,
        .sub = scale,
        .factor = scale + p->plan.entries * real,
        .row_step = (int)by_row,
        .col_step = (int)by_col,
        .add = to_target ? c->lo : 0,
        .log = c->log,
        .rounding = c->rounding,
        .lo = c->lo,
        .hi = c->hi,
        .below = element_of(c->type, c->lo),
        .above = element_of(c->type, c->hi),
        .marked = element_of(c->type,
                             c->method == GM_FLATFIELD || c->method == GM_ZSCORE ? fmin(fmax(0, c->lo), c->hi) : c->lo),
        .counts = p->counts,
    };
    return p->job->ops->normalize(queue, &call);
}

static int put(void *context, const gm_piece *piece, gm_range part, const void *from)
{
    const gm_normalize *p = context;
    int64_t size = (int64_t)gm_dtype_size(p->c->type), at = part.begin / size, count = gm_range_length(part) / size;
    if (gm_normalize_is_range(p, piece))
        return gm_output_write_range(p->output, 0, piece->row * p->c->cols + piece->col + at, count, from);
    return gm_output_write_part(p->output, 0, piece->row, piece->col, piece->cols, at, count, from);
}

int gm_normalize_apply(gm_normalize *p, gm_normalize_counts *counts)
{
    const gm_device_ops *ops = p->job->ops;
    gm_queue *queue = gm_stream_in(p->stream);
    size_t bytes = (size_t)p->plan.entries * 2 * (p->wide ? sizeof(double) : sizeof(float));
    gm_program program;
    int status = ops->zero(queue, p->counts, sizeof *p->counts);
    if (!status && !ops->unified)
        status = ops->copy_in(queue, p->scale, bytes, p->host_scale, bytes, bytes, 1);
    if (!status)
        status = ops->queue_sync(queue);
    gm_normalize_begin(p, &program, 0, gm_normalize_pieces(&p->plan));
    program.next = next;
    program.compute = compute;
    program.write = put;
    if (!status)
        status = gm_normalize_run(p, &program, NULL);
    if (!status)
        status = ops->copy_out(queue, counts, sizeof *counts, p->counts, sizeof *counts, sizeof *counts, 1);
    return status ? status : ops->queue_sync(queue);
}
