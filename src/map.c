#include "src/map.h"

#include "base/size.h"
#include "src/operation.h"

#include <stdio.h>

enum {
    USUAL_PIECE = 8 << 20, /* bytes: files and links reach their speed */
    SPARE_SLOTS = 2,       /* in addition to one for each thread */
    MOST_SLOTS = 16
};

static int64_t bytes_each(const gm_map *map)
{
    return map->in + map->out;
}

/* The unit that pieces of at most `elements` elements hold; *within: the unit that they lie in, or 0. */
static int64_t unit_of(const gm_map *map, int64_t elements, int64_t *within)
{
    int64_t unit = 1;
    *within = 0;
    for (int i = 0; i < GM_MAP_UNITS && map->unit[i]; i++) {
        *within = i ? map->unit[i - 1] : 0;
        unit = map->unit[i];
        if (unit <= elements)
            break;
    }
    return unit;
}

static void cut(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    gm_run *run = context;
    const gm_map *map = &run->shape.map;
    int64_t within, elements = bytes / bytes_each(map), unit = unit_of(map, elements, &within);
    int64_t share = gm_range_length(run->range);
    elements = gm_max(gm_min(elements, gm_round_up(share, unit)) / unit, 1) * unit;
    run->piece = within ? gm_min(elements, within) : elements;
    run->out_at = gm_round_up(gm_mul_sat(run->piece, map->in), GM_SLOT_ALIGN);
    *cost = (gm_ring_cost){.slot = gm_add_sat(run->out_at, gm_mul_sat(run->piece, map->out)),
                           .host = map->host,
                           .pieces = gm_ceil_div(share, run->piece),
                           .slots = gm_min(budget->threads + SPARE_SLOTS, MOST_SLOTS)};
}

static gm_range share_of(const gm_run *run, int rank)
{
    const gm_map *map = &run->shape.map;
    return gm_range_split(map->elements, gm_max(map->share, 1), run->job->ranks->size, rank);
}

/* Does every piece that is read go to the device? */
static int is_copied_as_read(const gm_run *run)
{
    const gm_program *own = &run->operation->program;
    return run->shape.map.in && !own->read && own->compute && gm_reader_takes_any(run->input);
}

int gm_map_plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    const gm_map *map = &run->shape.map;
    gm_ring_request request = gm_run_ring_request(run, budget);
    run->range = share_of(run, run->job->ranks->rank);
    run->bytes_read = gm_range_length(run->range) * map->in;
    run->bytes_written = gm_range_length(run->range) * map->out;
    request.buffers = is_copied_as_read(run);
    request.usual = USUAL_PIECE;
    request.least = gm_max(GM_RING_LEAST_PIECE, bytes_each(map));
    request.cut = cut;
    request.context = run;
    return gm_ring_plan_make(&request, budget, &run->ring, need);
}

void gm_map_print_plan(const gm_run *run)
{
    printf("range           %lld elements in pieces of %lld\n", (long long)run->shape.map.elements,
           (long long)run->piece);
}

void gm_map_print_share(const gm_run *run, int rank)
{
    gm_range share = share_of(run, rank);
    printf("rank %-10d elements [%lld:%lld]\n", rank, (long long)share.begin, (long long)share.end);
}

int gm_map_work(const gm_run *run, int rank, gm_work *passes)
{
    const gm_map *map = &run->shape.map;
    double elements = (double)gm_range_length(share_of(run, rank));
    passes[0] = gm_run_work(run, elements * (double)map->in, elements * (double)map->out);
    return 1;
}

json_t *gm_map_plan_json(const gm_run *run)
{
    return json_pack("{s:I, s:I}", "elements", (json_int_t)run->shape.map.elements, "piece_elements",
                     (json_int_t)run->piece);
}

/* --- The stages of a piece --- */

static const gm_program *stages_of(const gm_run *run)
{
    return &run->operation->program;
}

/* Elements of the piece that begins at an element: whole units of the largest size that begins there, fits a piece and
 * does not pass the end; they lie in one unit of the size before. */
static int64_t length_of(const gm_map *map, int64_t most, int64_t at, int64_t end)
{
    for (int i = 0; i < GM_MAP_UNITS && map->unit[i]; i++) {
        int64_t unit = map->unit[i], length = gm_min(most, end - at) / unit * unit;
        if (at % unit || length == 0)
            continue;
        return i == 0 ? length : gm_min(length, map->unit[i - 1] - at % map->unit[i - 1]);
    }
    return gm_min(most, end - at); /* less than the smallest unit */
}

static int64_t source_of(const gm_run *run, const gm_piece *piece)
{
    return run->operation->source ? run->operation->source(run, piece) : piece->col;
}

static int next(void *context, gm_piece *piece, int *more)
{
    gm_run *run = context;
    const gm_map *map = &run->shape.map;
    const gm_program *own = stages_of(run);
    int64_t at = run->at, count = length_of(map, run->piece, at, run->range.end), within;
    int64_t unit = unit_of(map, run->piece, &within);
    int copies = run->job->ops->unified ? 0 : 1;
    *more = count > 0;
    if (!*more)
        return GM_OK;
    *piece = (gm_piece){.rows = 1, .col = at, .cols = count, .bytes = count * bytes_each(map)};
    if (map->in || own->read)
        piece->stages |= GM_STAGE_READ;
    if (own->compute)
        piece->stages |= GM_STAGE_COMPUTE | (copies ? GM_STAGE_TO_DEVICE : 0) |
                         (copies && map->out ? GM_STAGE_FROM_DEVICE : 0);
    if (map->out) {
        piece->stages |= GM_STAGE_WRITE;
        piece->out = count * map->out;
        piece->out_unit = map->out;
    }
    if (map->in && run->shape.inputs == 1) {
        piece->in = count * map->in;
        piece->in_from = source_of(run, piece) * map->in;
        piece->in_unit = unit * map->in;
        piece->readers = gm_ring_readers(piece->in, gm_reader_is_parallel(run->input) ? gm_ceil_div(count, unit) : 1,
                                         run->job->threads);
    }
    run->at += count;
    return GM_OK;
}

static int read_range(void *context, const gm_piece *piece, gm_range part, void *to)
{
    const gm_run *run = context;
    int64_t size = run->shape.map.in;
    return gm_reader_read_range(run->reader[0], source_of(run, piece) + part.begin / size, gm_range_length(part) / size,
                                to);
}

static int write_range(void *context, const gm_piece *piece, gm_range part, const void *from)
{
    const gm_run *run = context;
    int64_t size = run->shape.map.out;
    return gm_output_write_range(run->output, 0, piece->col + part.begin / size, gm_range_length(part) / size, from);
}

static int run_range(gm_run *run)
{
    const gm_program *own = stages_of(run);
    gm_program program = {.context = run,
                          .next = next,
                          .read = own->read ? own->read : read_range,
                          .to_device = own->to_device,
                          .compute = own->compute,
                          .write = own->write ? own->write : write_range};
    run->at = run->range.begin;
    run->job->report.bytes_read = run->bytes_read;
    run->job->report.bytes_written = run->bytes_written;
    return gm_stream_run(run->stream, &program, &run->job->report.times);
}

int gm_map_prepare(gm_run *run)
{
    int status = gm_run_open_readers(run);
    return status ? status : gm_run_open_ring(run);
}

int gm_map_run_all(gm_run *run)
{
    return gm_job_agree_all(run->job, run_range(run));
}
