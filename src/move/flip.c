/* flip - reverses a dataset along one axis: out[.., i, ..] = in[.., n - 1 - i, ..]. The elements are seen as
 * [outer][n][inner]; a piece is some outer indices with all their rows, or some rows of one of them, or a part of one
 * row, and comes from one range of the input, whose rows the device reverses. */
#include "src/operation.h"

#include "base/size.h"
#include "kernels/move/calls.h"

#include <stddef.h>

enum { SHARE = 4096 /* bytes of a row that ranks share */ };

typedef struct flip {
    gm_dataset in;
    int64_t n, inner;
} flip;

/* Whole chunks where the axis leaves them whole. With fewer rows than ranks, these share the elements of a row. */
static void set_work(gm_run *run, int axis)
{
    const flip *f = run->c;
    const gm_dataset *d = &f->in;
    int64_t rows, cols, size = (int64_t)gm_dtype_size(d->type), matrix = gm_mul_sat(f->n, f->inner);
    int64_t chunk = gm_dataset_row_unit(d);
    gm_dataset_matrix(d, &rows, &cols);
    run->shape.map = (gm_map){.elements = gm_dataset_elements(d), .in = size, .out = size};
    gm_map *map = &run->shape.map;
    if (map->elements / gm_max(f->inner, 1) < run->job->ranks->size)
        *map = (gm_map){map->elements, SHARE / size, {f->inner, 1}, size, size, 0};
    else if (axis == 0)
        *map = (gm_map){map->elements, f->inner, {matrix, gm_mul_sat(gm_min(chunk, f->n), f->inner), f->inner, 1},
                        size,          size,     0};
    else
        *map = (gm_map){map->elements, f->inner, {gm_mul_sat(chunk, cols), matrix, f->inner, 1}, size, size, 0};
}

static int describe(gm_run *run)
{
    flip *f = run->c;
    const gm_dataset *d = &f->in;
    char title[GM_PATH_MAX];
    int axis = 0, status = gm_run_describe_input(run, 0, run->job->options->operands[0], NULL);
    if (!status && !run->job->options->given[GM_OPTION_ROW_axis])
        status = gm_fail(GM_EUSAGE, "flip needs --axis N, the number of a dimension");
    if (!status && d->view_rank == 0)
        status = gm_fail(GM_EINPUT, "%s: is a single number, flip needs a dimension", gm_dataset_title(d, title));
    if (!status)
        status = gm_run_axis(d, run->job->options->axis, &axis);
    if (status)
        return status;
    f->n = d->view[axis];
    f->inner = gm_product_sat(d->view + axis + 1, d->view_rank - axis - 1);
    set_work(run, axis);
    return gm_run_describe_moved(run, d, d->view_rank, d->view);
}

static int suit(gm_run *run)
{
    return run->job->ops->flip ? GM_OK : gm_job_fail_unsupported(run->job, "flip");
}

/* The range of the input that a piece comes from, and its rows. */
static int64_t source_of(const flip *f, const gm_piece *piece, gm_flip_call *call)
{
    int64_t matrix = f->n * f->inner, at = piece->col % matrix, first = piece->col - at;
    *call = (gm_flip_call){.outer = 1, .rows = 1, .inner = piece->cols, .bytes = (int64_t)gm_dtype_size(f->in.type)};
    if (at == 0 && piece->cols % matrix == 0) {
        call->outer = piece->cols / matrix;
        call->rows = f->n;
        call->inner = f->inner;
        return first;
    }
    if (at % f->inner == 0 && piece->cols % f->inner == 0) {
        call->rows = piece->cols / f->inner;
        call->inner = f->inner;
        return first + matrix - at - piece->cols;
    }
    return first + (f->n - 1 - at / f->inner) * f->inner + at % f->inner; /* a part of a row */
}

static int64_t source(const gm_run *run, const gm_piece *piece)
{
    gm_flip_call call;
    return source_of(run->c, piece, &call);
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_run *run = context;
    gm_flip_call call;
    source_of(run->c, piece, &call);
    call.src = slot->device;
    call.dst = (char *)slot->device + run->out_at;
    return run->job->ops->flip(queue, &call);
}

const gm_operation gm_op_flip = {.case_bytes = sizeof(flip),
                                 .inputs = offsetof(flip, in),
                                 .keeps_attributes = 1,
                                 .describe = describe,
                                 .suit = suit,
                                 .source = source,
                                 .program = {.compute = compute}};
