#include "tests/src/stream/checked_program.h"

#include "base/status.h"
#include "tests/src/stream/late_device.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 24 /* bytes: parts that are written end with it */ };
enum { DEVICE = GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE };

/* Kinds of pieces, in turn. */
static const unsigned kinds[KINDS] = {
    GM_STAGE_READ | DEVICE | GM_STAGE_WRITE,
    GM_STAGE_READ | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE,
    GM_STAGE_RECEIVE | DEVICE | GM_STAGE_SEND,
    GM_STAGE_READ | DEVICE | GM_STAGE_DONE,
    GM_STAGE_READ | GM_STAGE_WRITE,
    GM_STAGE_READ | DEVICE | GM_STAGE_SEND | GM_STAGE_DONE | GM_STAGE_WRITE,
    GM_STAGE_RECEIVE | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE,
    GM_STAGE_COMPUTE | GM_STAGE_DONE,
};

static unsigned stages_of(const operation *o, int piece)
{
    unsigned stages = kinds[o->in_turn ? o->in_turn - 1 : piece % KINDS];
    return o->has_buffers && (stages & GM_STAGE_READ) ? stages | DEVICE : stages;
}

static int64_t item(int piece, int i)
{
    return (int64_t)piece * 1000 + i;
}

/* Where the results of a piece are on the device, if not in its slot. */
static int64_t *results_of(operation *o, const gm_piece *piece)
{
    return o->by_ring && piece->kind % 2 ? o->results[piece->kind] : NULL;
}

static int fails(operation *o, const gm_piece *piece, unsigned stage)
{
    return o->fail_stage == stage && piece->kind == o->fail_at ? gm_fail(GM_EINPUT, "planted failure") : GM_OK;
}

static int next(void *context, gm_piece *piece, int *more)
{
    operation *o = context;
    *more = o->next < PIECES;
    *piece = (gm_piece){.kind = o->next,
                        .stages = stages_of(o, o->next),
                        .bytes = BYTES,
                        .verifies = o->next % 3 == 0,
                        .readers = o->next % 4};
    if (piece->stages & GM_STAGE_READ) {
        piece->in = BYTES;
        piece->in_unit = 8;
    }
    if (o->by_ring && (piece->stages & GM_STAGE_FROM_DEVICE)) {
        piece->out = BYTES;
        piece->out_unit = UNIT;
        piece->out_place = results_of(o, piece);
    }
    o->next++;
    return GM_OK;
}

static void fill(const gm_piece *piece, gm_range part, int64_t *to)
{
    for (int64_t i = part.begin / 8; i < part.end / 8; i++)
        *to++ = item(piece->kind, (int)i);
}

static int read_piece(void *context, const gm_piece *piece, gm_range part, void *to)
{
    operation *o = context;
    gm_late_pause();
    fill(piece, part, to);
    gm_late_pause();
    o->reads += part.begin == 0;
    return fails(o, piece, GM_STAGE_READ);
}

static int receive(void *context, const gm_piece *piece, void *out)
{
    operation *o = context;
    o->received++;
    if (out)
        fill(piece, (gm_range){0, BYTES}, out);
    o->failures += !out;
    return out ? fails(o, piece, GM_STAGE_RECEIVE) : GM_OK;
}

static int await(void *context, const gm_piece *piece, unsigned stage, gm_queue *queue)
{
    operation *o = context;
    return stage == GM_STAGE_TO_DEVICE ? gm_device_late.event_wait(queue, o->used[piece->kind % PANELS]) : GM_OK;
}

typedef struct job {
    operation *o;
    int piece;
    int has_panel;
    int64_t *device;
    int64_t *results; /* NULL: in the place of what came */
} job;

static void fill_panel(void *argument)
{
    job *j = argument;
    memcpy(j->o->panel[j->piece % PANELS], j->device, BYTES);
}

static void use_panel(void *argument)
{
    job *j = argument;
    for (int i = 0; i < ITEMS && j->has_panel; i++) {
        j->o->wrong += j->o->panel[j->piece % PANELS][i] != item(j->piece, i);
        (j->results ? j->results : j->device)[i] = 2 * j->device[i];
    }
    j->o->sum += j->piece;
}

static int to_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    job j = {context, piece->kind, 1, slot->device, NULL};
    int status = GM_OK;
    if (piece->stages & GM_STAGE_RECEIVE)
        status = gm_device_late.copy_in(in, slot->device, BYTES, slot->out, BYTES, BYTES, 1);
    if (!status)
        status = gm_late_enqueue(in, fill_panel, &j, sizeof j);
    return status ? status : fails(context, piece, GM_STAGE_TO_DEVICE);
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    operation *o = context;
    job j = {o, piece->kind, (piece->stages & GM_STAGE_TO_DEVICE) != 0, slot->device, results_of(o, piece)};
    int status = gm_late_enqueue(queue, use_panel, &j, sizeof j);
    if (!status && j.has_panel)
        status = gm_device_late.event_record(o->used[piece->kind % PANELS], queue);
    return status ? status : fails(o, piece, GM_STAGE_COMPUTE);
}

static int from_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    int status = gm_device_late.copy_out(out, slot->out, BYTES, slot->device, BYTES, BYTES, 1);
    return status ? status : fails(context, piece, GM_STAGE_FROM_DEVICE);
}

static void check_part(operation *o, const gm_piece *piece, gm_range part, const int64_t *host)
{
    int factor = piece->stages & GM_STAGE_FROM_DEVICE ? 2 : 1;
    for (int64_t i = part.begin / 8; i < part.end / 8; i++)
        o->wrong += *host++ != factor * item(piece->kind, (int)i);
}

static void check(operation *o, const gm_piece *piece, const int64_t *host)
{
    check_part(o, piece, (gm_range){0, BYTES}, host);
}

/* Every other planted failure is one of the first part of its piece, the others are of the last one. */
static int write_piece(void *context, const gm_piece *piece, gm_range part, const void *host)
{
    operation *o = context;
    int is_first = part.begin == 0, is_last = part.end == piece->out, at_end = piece->kind / (8 * KINDS) % 2;
    int may_fail = at_end ? is_last : is_first;
    gm_late_pause();
    o->wrong += !is_last && gm_range_length(part) >= UNIT && part.end % UNIT != 0;
    o->late += !is_first && !at_end && o->fail_stage == GM_STAGE_WRITE && piece->kind == o->fail_at;
    check_part(o, piece, piece->out ? part : (gm_range){0, BYTES}, host);
    gm_late_pause();
    o->parts += (int)gm_range_length(part);
    o->writes += is_last;
    return may_fail ? fails(o, piece, GM_STAGE_WRITE) : GM_OK;
}

static int send(void *context, const gm_piece *piece, const void *host)
{
    operation *o = context;
    o->wrong += piece->kind <= o->last_sent;
    o->last_sent = piece->kind;
    o->sent++;
    o->failures += !host;
    if (host)
        check(o, piece, host);
    return host ? fails(o, piece, GM_STAGE_SEND) : GM_OK;
}

static int done(void *context, const gm_piece *piece, const void *host)
{
    operation *o = context;
    o->wrong += piece->kind <= o->last_done;
    o->last_done = piece->kind;
    o->done++;
    if (piece->stages & GM_STAGE_FROM_DEVICE)
        check(o, piece, host);
    return fails(o, piece, GM_STAGE_DONE);
}

int open_operation(operation *o, gm_device *device)
{
    int status = GM_OK;
    o->last_sent = o->last_done = -1;
    for (int i = 0; i < PANELS && !status; i++)
        status = gm_device_late.event_open(device, 0, &o->used[i]);
    return status;
}

void close_operation(operation *o)
{
    for (int i = 0; i < PANELS; i++)
        gm_device_late.event_close(o->used[i]);
}

gm_program program_of(operation *o)
{
    gm_program program = {.context = o,
                          .next = next,
                          .read = read_piece,
                          .receive = receive,
                          .await = await,
                          .to_device = to_device,
                          .compute = compute,
                          .from_device = from_device,
                          .send = send,
                          .write = write_piece,
                          .done = done};
    if (o->by_ring)
        program.from_device = NULL;
    return program;
}

static int count(const operation *o, unsigned stage)
{
    int n = 0;
    for (int i = 0; i < PIECES; i++)
        n += (stages_of(o, i) & stage) != 0;
    return n;
}

/* Bytes of all pieces that the ring copies from the device to be written. */
static int count_parts(const operation *o)
{
    const unsigned both = GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE;
    int n = 0;
    for (int i = 0; i < PIECES; i++)
        n += o->by_ring && (stages_of(o, i) & both) == both ? BYTES : 0;
    return n;
}

int is_complete(const operation *o)
{
    int64_t sum = 0;
    for (int i = 0; i < PIECES; i++)
        sum += stages_of(o, i) & GM_STAGE_COMPUTE ? i : 0;
    return o->wrong == 0 && o->parts == count_parts(o) && o->reads == count(o, GM_STAGE_READ) &&
           o->writes == count(o, GM_STAGE_WRITE) && o->sum == sum && o->received == count(o, GM_STAGE_RECEIVE) &&
           o->sent == count(o, GM_STAGE_SEND) && o->done == count(o, GM_STAGE_DONE) && o->failures == 0 &&
           o->moved == (int64_t)PIECES * BYTES;
}

int has_exchanged_all(const operation *o)
{
    return o->received == count(o, GM_STAGE_RECEIVE) && o->sent == count(o, GM_STAGE_SEND) && o->wrong == 0 &&
           o->late == 0;
}
