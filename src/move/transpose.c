/* transpose - swaps two axes of a dataset: out[.., j, .., i, ..] = in[.., i, .., j, ..]. A piece is a box (boxes.h),
 * which is read in the order of the input, swapped by the device and written run by run, in the order of the output. */
#include "src/map.h"
#include "src/move/boxes.h"
#include "src/operation.h"

#include "base/size.h"
#include "kernels/move/calls.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    USUAL_PIECE = 8 << 20,  /* bytes: files and links reach their speed */
    LARGE_PIECE = 64 << 20, /* where runs are short otherwise */
    LONG_RUN = 64 << 10,    /* bytes that are read or written at a time */
    SPARE_SLOTS = 2,        /* in addition to one for each thread */
    MOST_SLOTS = 16
};

typedef struct transpose {
    gm_dataset in;
    int first, second; /* the axes: first < second */
} transpose;

/* Of this rank. */
typedef struct own {
    gm_boxes boxes;
} own;

static int64_t size_of(const gm_run *run)
{
    return (int64_t)gm_dtype_size(run->input[0].type);
}

/* --- Case --- */

/* "I,J": numbers from -rank to rank - 1 of two dimensions; negative ones count from the last one. */
static int read_axes(const char *text, transpose *t)
{
    char title[GM_PATH_MAX];
    const gm_dataset *d = &t->in;
    const char *comma = strchr(text, ',');
    int i, j;
    if (!comma || gm_run_axis_parse(d, text, (size_t)(comma - text), &i) ||
        gm_run_axis_parse(d, comma + 1, strlen(comma + 1), &j))
        return gm_fail(GM_EUSAGE, "--axes '%s': %s has %d dimensions, expected two numbers from %d to %d: I,J", text,
                       gm_dataset_title(d, title), d->view_rank, -d->view_rank, d->view_rank - 1);
    if (i == j)
        return gm_fail(GM_EUSAGE, "--axes '%s': both are dimension %d, expected two different ones", text, i);
    t->first = i < j ? i : j;
    t->second = i < j ? j : i;
    return GM_OK;
}

static int describe(gm_run *run)
{
    transpose *t = run->c;
    const gm_dataset *d = &t->in;
    char title[GM_PATH_MAX];
    int64_t dims[GM_RANK_MAX];
    int status = gm_run_describe_input(run, 0, run->job->options->operands[0], NULL);
    if (!status && d->view_rank < 2)
        status = gm_fail(GM_EINPUT, "%s: has %d dimension%s, transpose needs two", gm_dataset_title(d, title),
                         d->view_rank, d->view_rank == 1 ? "" : "s");
    if (!status)
        status = read_axes(run->job->options->axes, t);
    if (status)
        return status;
    run->shape.map.in = run->shape.map.out = size_of(run);
    gm_boxes whole = gm_boxes_of(d, t->first, t->second);
    for (int k = 0; k < d->view_rank; k++)
        dims[k] = d->view[gm_boxes_swapped(&whole, k)];
    return gm_run_describe_moved(run, d, d->view_rank, dims);
}

static void move_axes(const gm_run *run, gm_axes *axes)
{
    const transpose *t = run->c;
    int from = axes->from[t->first];
    axes->from[t->first] = axes->from[t->second];
    axes->from[t->second] = from;
}

static int suit(gm_run *run)
{
    return run->job->ops->transpose ? GM_OK : gm_job_fail_unsupported(run->job, "transpose");
}

/* --- Plan --- */

static void cut(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    gm_run *run = context;
    gm_boxes *boxes = &((own *)run->own)->boxes;
    gm_boxes_cut(boxes, bytes / (2 * size_of(run)));
    run->piece = gm_boxes_piece(boxes);
    run->out_at = gm_round_up(gm_mul_sat(run->piece, size_of(run)), GM_SLOT_ALIGN);
    *cost = (gm_ring_cost){.slot = gm_add_sat(run->out_at, gm_mul_sat(run->piece, size_of(run))),
                           .pieces = gm_boxes_count(boxes),
                           .slots = gm_min(budget->threads + SPARE_SLOTS, MOST_SLOTS)};
}

static int64_t usual_piece(gm_boxes boxes, int64_t size)
{
    int64_t bytes = USUAL_PIECE;
    for (;; bytes *= 2) {
        gm_boxes_cut(&boxes, bytes / (2 * size));
        if (bytes == LARGE_PIECE || gm_boxes_run(&boxes) * size >= LONG_RUN)
            return bytes;
    }
}

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    const transpose *t = run->c;
    gm_boxes *boxes = &((own *)run->own)->boxes;
    gm_ring_request request = gm_run_ring_request(run, budget);
    *boxes = gm_boxes_of(&t->in, t->first, t->second);
    gm_boxes_share(boxes, run->job->ranks->size, run->job->ranks->rank);
    run->bytes_read = run->bytes_written = gm_boxes_elements(boxes) * size_of(run);
    request.usual = usual_piece(*boxes, size_of(run));
    request.least = GM_RING_LEAST_PIECE;
    request.buffers = gm_reader_takes_any(run->input);
    request.cut = cut;
    request.context = run;
    return gm_ring_plan_make(&request, budget, &run->ring, need);
}

static char *box_text(const gm_run *run, char *text)
{
    const gm_boxes *boxes = &((const own *)run->own)->boxes;
    return gm_shape_format(boxes->rank, boxes->extent, text);
}

static void print_plan(const gm_run *run)
{
    char text[GM_SHAPE_TEXT];
    printf("range           %lld elements in boxes of %s\n", (long long)gm_dataset_elements(run->input),
           box_text(run, text));
}

static void print_share(const gm_run *run, int rank)
{
    const transpose *t = run->c;
    gm_boxes boxes = gm_boxes_of(&t->in, t->first, t->second);
    int d = gm_boxes_share(&boxes, run->job->ranks->size, rank);
    printf("rank %-10d dimension %d of the input [%lld:%lld]\n", rank, d, (long long)boxes.begin[d],
           (long long)boxes.end[d]);
}

static int work(const gm_run *run, int rank, gm_work *passes)
{
    const transpose *t = run->c;
    gm_boxes boxes = gm_boxes_of(&t->in, t->first, t->second);
    gm_boxes_share(&boxes, run->job->ranks->size, rank);
    double bytes = (double)gm_boxes_elements(&boxes) * (double)size_of(run);
    memcpy(boxes.extent, ((const own *)run->own)->boxes.extent, sizeof boxes.extent);
    passes[0] = gm_run_work(run, bytes, bytes);
    if (!gm_dataset_is_chunked(run->input)) /* chunks are read whole */
        passes[0].reads = (double)gm_boxes_runs(&boxes, 0);
    passes[0].writes = (double)gm_boxes_runs(&boxes, 1);
    return 1;
}

static json_t *plan_json(const gm_run *run)
{
    char text[GM_SHAPE_TEXT];
    return json_pack("{s:I, s:I, s:s}", "elements", (json_int_t)gm_dataset_elements(run->input), "piece_elements",
                     (json_int_t)run->piece, "box", box_text(run, text));
}

/* --- The stages of a piece: piece->at_row is the number of its box --- */

/* Returns its elements. */
static int64_t get_box(const gm_run *run, const gm_piece *piece, int64_t *start, int64_t *count)
{
    const gm_boxes *boxes = &((const own *)run->own)->boxes;
    int64_t elements = 1;
    gm_boxes_get(boxes, piece->at_row, start, count);
    for (int d = 0; d < boxes->rank; d++)
        elements *= count[d];
    return elements;
}

/* The outermost dimension of a box that threads can share. */
static int shared_dimension(const gm_boxes *boxes, const int64_t *count)
{
    int d = 0;
    while (d < boxes->rank - 1 && count[d] == 1)
        d++;
    return d;
}

static int next(void *context, gm_piece *piece, int *more)
{
    gm_run *run = context;
    const gm_boxes *boxes = &((const own *)run->own)->boxes;
    int64_t start[GM_RANK_MAX], count[GM_RANK_MAX], bytes;
    *more = run->at < gm_boxes_count(boxes);
    if (!*more)
        return GM_OK;
    *piece = (gm_piece){.at_row = run->at++, .stages = GM_STAGE_READ | GM_STAGE_COMPUTE | GM_STAGE_WRITE};
    piece->rows = 1;
    piece->cols = get_box(run, piece, start, count);
    bytes = piece->cols * size_of(run);
    piece->bytes = 2 * bytes;
    if (!run->job->ops->unified)
        piece->stages |= GM_STAGE_TO_DEVICE | GM_STAGE_FROM_DEVICE;
    int d = shared_dimension(boxes, count);
    piece->in = piece->out = bytes;
    piece->in_from = bytes / count[d] * start[d];
    piece->in_unit = bytes / count[d] * boxes->unit[d];
    piece->out_unit = size_of(run);
    piece->readers = gm_ring_readers(
        bytes, gm_reader_is_parallel(run->input) ? gm_ceil_div(count[d], boxes->unit[d]) : 1, run->job->threads);
    return GM_OK;
}

static int read_box(void *context, const gm_piece *piece, gm_range part, void *to)
{
    const gm_run *run = context;
    const gm_boxes *boxes = &((const own *)run->own)->boxes;
    int64_t start[GM_RANK_MAX], count[GM_RANK_MAX], n[GM_RANK_MAX], from[GM_RANK_MAX], size = size_of(run);
    int64_t at = part.begin / size, end = part.end / size;
    char *dst = to;
    int status = GM_OK;
    get_box(run, piece, start, count);
    while (at < end && !status) {
        int64_t elements = gm_boxes_next(boxes->rank, count, at, end, from, n);
        for (int d = 0; d < boxes->rank; d++)
            from[d] += start[d];
        status = gm_reader_read_box(run->reader[0], from, n, dst);
        at += elements;
        dst += elements * size;
    }
    return status;
}

static int64_t product(const int64_t *count, int from, int to)
{
    int64_t elements = 1;
    for (int d = from; d < to; d++)
        elements *= count[d];
    return elements;
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_run *run = context;
    const transpose *t = run->c;
    int64_t start[GM_RANK_MAX], count[GM_RANK_MAX];
    get_box(run, piece, start, count);
    gm_transpose_call call = {.outer = product(count, 0, t->first),
                              .first = count[t->first],
                              .middle = product(count, t->first + 1, t->second),
                              .second = count[t->second],
                              .inner = product(count, t->second + 1, t->in.view_rank),
                              .bytes = size_of(run),
                              .src = slot->device,
                              .dst = (char *)slot->device + run->out_at};
    return run->job->ops->transpose(queue, &call);
}

/* Each run of elements that is contiguous in the output, or what the part has of it, in their order. */
static int write_box(void *context, const gm_piece *piece, gm_range part, const void *from)
{
    const gm_run *run = context;
    const gm_boxes *boxes = &((const own *)run->own)->boxes;
    int64_t start[GM_RANK_MAX], count[GM_RANK_MAX], stride[GM_RANK_MAX], at[GM_RANK_MAX], length = 1, first = 0,
                                                                                          step = 1;
    int64_t done = part.begin / size_of(run), end = part.end / size_of(run);
    const char *src = from;
    int status = GM_OK, whole = 1, outer = boxes->rank; /* dimensions of the output before a run */
    get_box(run, piece, start, count);
    for (int k = boxes->rank - 1; k >= 0; k--) {
        int d = gm_boxes_swapped(boxes, k);
        stride[k] = step;
        step *= boxes->dims[d];
        first += start[d] * stride[k];
        if (whole) {
            outer = k;
            length *= count[d];
            whole = count[d] == boxes->dims[d];
        }
    }
    int64_t skipped = done % length, number = done / length;
    for (int k = outer - 1; k >= 0; k--) {
        at[k] = number % count[gm_boxes_swapped(boxes, k)];
        number /= count[gm_boxes_swapped(boxes, k)];
        first += at[k] * stride[k];
    }
    for (int64_t n; done < end && !status; done += n, src += n * size_of(run), skipped = 0) {
        int k = outer - 1;
        n = gm_min(length - skipped, end - done);
        status = gm_output_write_range(run->output, 0, first + skipped, n, src);
        for (; k >= 0 && ++at[k] == count[gm_boxes_swapped(boxes, k)]; k--) {
            first -= (at[k] - 1) * stride[k];
            at[k] = 0;
        }
        first += k >= 0 ? stride[k] : 0;
    }
    return status;
}

static int run_boxes_all(gm_run *run)
{
    gm_program program = {.context = run, .next = next, .read = read_box, .compute = compute, .write = write_box};
    run->at = 0;
    run->job->report.bytes_read = run->bytes_read;
    run->job->report.bytes_written = run->bytes_written;
    return gm_job_agree_all(run->job, gm_stream_run(run->stream, &program, &run->job->report.times));
}

const gm_operation gm_op_transpose = {.case_bytes = sizeof(transpose),
                                      .own_bytes = sizeof(own),
                                      .inputs = offsetof(transpose, in),
                                      .keeps_attributes = 1,
                                      .move_axes = move_axes,
                                      .describe = describe,
                                      .suit = suit,
                                      .plan = plan,
                                      .prepare = gm_map_prepare,
                                      .print_plan = print_plan,
                                      .print_share = print_share,
                                      .work = work,
                                      .plan_json = plan_json,
                                      .run_all = run_boxes_all};
