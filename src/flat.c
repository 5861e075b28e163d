#include "src/flat.h"

#include "base/memory.h"
#include "base/size.h"
#include "src/progress.h"

#include <stdio.h>

void gm_flat_part(const gm_ranks *ranks, int64_t elements, int64_t unit, int64_t *begin, int64_t *end)
{
    int64_t units = gm_ceil_div(elements, unit), each = units / ranks->size, more = units % ranks->size;
    int64_t first = each * ranks->rank + gm_min(ranks->rank, more);
    *begin = gm_min(gm_mul_sat(first, unit), elements);
    *end = gm_min(gm_mul_sat(first + each + (ranks->rank < more), unit), elements);
}

gm_rectangle gm_flat_rectangle(int64_t matrix_cols, int64_t at, int64_t end)
{
    gm_rectangle r = {.row = at / matrix_cols, .rows = 1, .col = at % matrix_cols};
    r.cols = gm_min(matrix_cols - r.col, end - at);
    if (r.cols == matrix_cols)
        r.rows = (end - at) / matrix_cols;
    return r;
}

enum { USUAL_PIECE = 8 << 20, MOST_SLOTS = 16, OVERHEAD = 8192 /* of an allocation, at most */ };

int gm_flat_slots(const gm_job *job, int64_t bytes, int64_t unit, int64_t *piece, int64_t *depth)
{
    const gm_options *o = job->options;
    int64_t cap = gm_memory_cap(GM_HOST), used = gm_memory_used(GM_HOST), room = cap - used;
    *depth = o->depth ? o->depth : gm_min(job->threads + 2, MOST_SLOTS);
    *piece = gm_min(gm_round_up(o->piece ? o->piece : USUAL_PIECE, unit), gm_round_up(gm_max(bytes, 1), unit));
    if (!o->depth)
        *depth = gm_min(*depth, gm_max(2, room / (*piece + OVERHEAD)));
    *depth = gm_min(*depth, gm_max(1, gm_ceil_div(bytes, *piece)));
    if (!o->piece)
        *piece = gm_min(*piece, gm_max(1, (room / *depth - OVERHEAD) / unit) * unit);
    if (gm_mul_sat(*depth, *piece + OVERHEAD) <= room)
        return GM_OK;
    char have[GM_SIZE_TEXT], need[GM_SIZE_TEXT];
    int64_t least = gm_mul_sat(o->depth ? *depth : gm_min(*depth, 2), (o->piece ? *piece : unit) + OVERHEAD);
    return gm_fail(GM_EDEVICE, "--host-memory %s is too little for the streaming ring, expected at least %lld bytes (%s)",
                   gm_size_format(cap, have), (long long)gm_add_sat(used, least), gm_size_format(gm_add_sat(used, least), need));
}

int gm_flat_run(gm_job *job, const char *what, int64_t bytes, int64_t piece, int64_t depth, const gm_program *program,
                gm_phase_times *times)
{
    gm_progress progress;
    gm_stream *stream;
    gm_stream_setup setup = {.ops = job->ops, .device = job->device, .ranks = job->ranks, .piece = piece, .depth = depth,
                             .threads = job->threads, .progress = gm_progress_add, .progress_context = &progress};
    int status = gm_stream_open(&setup, &stream);
    if (status)
        return status;
    gm_progress_start(&progress, job, what, bytes);
    status = gm_stream_run(stream, program, times);
    gm_progress_end(&progress);
    gm_stream_close(stream);
    return status;
}

char *gm_flat_shape(int rank, const int64_t *dims, char *text)
{
    int used = snprintf(text, GM_SHAPE_TEXT, "%s", rank ? "" : "scalar");
    for (int d = 0; d < rank && used < GM_SHAPE_TEXT; d++)
        used += snprintf(text + used, (size_t)(GM_SHAPE_TEXT - used), "%s%lld", d ? "x" : "", (long long)dims[d]);
    return text;
}
