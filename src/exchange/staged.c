#include "src/exchange/staged.h"

#include "base/size.h"
#include "base/stop.h"
#include "mpi/cancel.h"
#include "mpi/exchange.h"
#include "src/exchange/cut.h"
#include "src/exchange/shared.h"
#include "src/stream/pool.h"

#include <stdlib.h>
#include <string.h>

/* Four slots in each direction: a copy and a message at work, and one piece ready for each. Pieces of 2 MiB take many
 * times the start of a copy and the handshake of a message, and are few enough bytes for the caches of the processor.
 * Shorter regions are cut into eight, so that their stages overlap too, down to 256 KiB, whose start costs as much as
 * their way. */
enum { SLOTS = 4, MOST_PIECE = 2 << 20, LEAST_PIECE = 256 << 10, USUAL_PIECES = 8 };

typedef enum direction { SEND, RECEIVE, DIRECTIONS } direction;

_Static_assert(GM_STAGED_PINNED == DIRECTIONS * (SLOTS * MOST_PIECE + GM_ALLOC_OVERHEAD), "what plans count");

/* The stages of a piece. The message has its bytes; or says that they are in a slot that its receiver addresses, who
 * then releases the slot. */
typedef enum stage { COPY, MESSAGE, RELEASE, STAGES } stage;

static const stage order[DIRECTIONS][STAGES] = {
    [SEND] = {COPY, MESSAGE, RELEASE}, [RECEIVE] = {MESSAGE, COPY, RELEASE}};

/* The pieces of one direction, which pass its stages in order. Pieces [0, begun[k]) have begun stage k of the order,
 * and [0, begun[STAGES]) are done, which is SLOTS less than begun[0] at most. */
typedef struct lane {
    direction way;
    gm_exchange_region region;
    gm_cut cut;
    int64_t begun[STAGES + 1];
    gm_queue *queue;
    char *own;     /* slots of this rank, [SLOTS][MOST_PIECE], pinned; NULL on a device that addresses host memory */
    char *slots;   /* of this exchange: those, or to receive from a rank of this host its slots to send */
    int is_shared; /* sender and receiver address them */
    gm_event *copied[SLOTS];
    char tokens[SLOTS]; /* messages without bytes of a piece */
} lane;

struct gm_staged {
    const gm_device_ops *ops;
    const gm_ranks *ranks;
    int status;
    gm_pool pool;
    gm_requests *requests[GM_CHANNELS]; /* each [DIRECTIONS][SLOTS] */
    gm_shared *shared;                  /* the slots to send of each rank; NULL: messages have all bytes */
    char *is_pinned;                    /* [ranks]: the slots of that rank */
    lane lanes[DIRECTIONS];
};

/* --- Open and close --- */

/* The slots to send of a rank of this host, pinned; NULL: they are not addressed here. */
static char *slots_of(gm_staged *s, int rank)
{
    char *slots = gm_shared_of(s->shared, rank);
    if (slots && !s->is_pinned[rank])
        s->ops->host_register(s->pool.device, slots, (size_t)SLOTS * MOST_PIECE);
    if (slots)
        s->is_pinned[rank] = 1;
    return slots;
}

/* Slots to receive are for messages with bytes: from ranks of other hosts, if those of this one share. */
static int open_lane(gm_staged *s, lane *l)
{
    if (l->way == SEND && s->shared)
        l->own = slots_of(s, s->ranks->rank);
    else if (!s->shared || s->ranks->hosts > 1)
        l->own = gm_pool_pinned(&s->pool, SLOTS, MOST_PIECE);
    for (int i = 0; i < SLOTS; i++)
        l->copied[i] = gm_pool_event(&s->pool);
    return s->pool.status ? s->pool.status : s->ops->queue_open(s->pool.device, &l->queue);
}

int gm_staged_open_all(const gm_device_ops *ops, gm_device *device, const gm_ranks *ranks, gm_staged **staged)
{
    gm_shared *shared = NULL;
    int status = ops->unified ? GM_OK : gm_shared_open_all(ranks, (size_t)SLOTS * MOST_PIECE, &shared);
    gm_staged *s = *staged = status ? NULL : calloc(1, sizeof *s);
    char *is_pinned = calloc((size_t)ranks->size, 1);
    if (!s || !is_pinned) {
        free(is_pinned);
        gm_shared_close(shared);
        return status ? status : gm_fail(GM_EDEVICE, "no memory for exchanges between ranks");
    }
    *s = (gm_staged){.ops = ops, .ranks = ranks, .shared = shared, .is_pinned = is_pinned};
    s->pool = (gm_pool){.ops = ops, .device = device};
    for (int channel = 0; channel < GM_CHANNELS && !status; channel++)
        status = gm_requests_open(DIRECTIONS * SLOTS, (gm_channel)channel, &s->requests[channel]);
    for (int way = 0; way < DIRECTIONS && !status; way++) {
        s->lanes[way].way = (direction)way;
        status = ops->unified ? GM_OK : open_lane(s, &s->lanes[way]);
    }
    return status;
}

void gm_staged_close(gm_staged *s)
{
    if (!s)
        return;
    for (int d = 0; d < DIRECTIONS; d++)
        if (s->lanes[d].queue)
            s->ops->queue_close(s->lanes[d].queue);
    for (int rank = 0; rank < s->ranks->size; rank++)
        if (s->is_pinned[rank])
            s->ops->host_unregister(s->pool.device, gm_shared_of(s->shared, rank));
    gm_shared_close(s->shared);
    gm_pool_release(&s->pool);
    for (int channel = 0; channel < GM_CHANNELS; channel++)
        gm_requests_close(s->requests[channel]);
    free(s->is_pinned);
    free(s);
}

/* --- Pieces --- */

static gm_cut cut_region(const gm_exchange_region *r)
{
    int64_t most = gm_min(gm_max(gm_exchange_region_bytes(r) / USUAL_PIECES, LEAST_PIECE), MOST_PIECE);
    return gm_cut_region(r, most);
}

/* A piece: the part of the region, and the memory of its message. */
typedef struct piece {
    char *memory, *message;
    size_t width, pitch; /* pitch: of the message */
    int64_t rows;
} piece;

static piece piece_of(const lane *l, int64_t i)
{
    const gm_exchange_region r = gm_cut_piece(&l->region, &l->cut, i);
    piece p = {.memory = r.memory, .width = r.width, .rows = r.rows};
    p.message = l->slots ? l->slots + i % SLOTS * MOST_PIECE : p.memory;
    p.pitch = l->slots ? p.width : r.pitch;
    return p;
}

/* --- Stages --- */

static int request_of(const lane *l, int64_t i)
{
    return (int)l->way * SLOTS + (int)(i % SLOTS);
}

static int start_message(gm_staged *s, lane *l, int64_t i)
{
    piece p = piece_of(l, i);
    gm_requests *requests = s->requests[GM_CHANNEL_PIECES];
    if (l->is_shared)
        p = (piece){.message = &l->tokens[i % SLOTS], .pitch = 1, .width = 1, .rows = 1};
    char *data = s->status ? NULL : p.message;
    return l->way == SEND
               ? gm_send_start(requests, request_of(l, i), l->region.peer, data, p.pitch, p.width, p.rows)
               : gm_receive_start(requests, request_of(l, i), l->region.peer, data, p.pitch, p.width, p.rows);
}

static int start_copy(gm_staged *s, lane *l, int64_t i)
{
    const piece p = piece_of(l, i);
    int status;
    if (!l->slots || s->status)
        return GM_OK;
    status = l->way == SEND ? s->ops->copy_out(l->queue, p.message, p.pitch, p.memory, l->region.pitch, p.width, p.rows)
                            : s->ops->copy_in(l->queue, p.memory, l->region.pitch, p.message, p.pitch, p.width, p.rows);
    return status ? status : s->ops->event_record(l->copied[i % SLOTS], l->queue);
}

/* After a failure too: the sender waits for it before it uses the slot again. */
static int start_release(gm_staged *s, lane *l, int64_t i)
{
    gm_requests *requests = s->requests[GM_CHANNEL_RELEASES];
    char *token = &l->tokens[i % SLOTS];
    if (!l->is_shared)
        return GM_OK;
    return l->way == SEND ? gm_receive_start(requests, request_of(l, i), l->region.peer, token, 1, 1, 1)
                          : gm_send_start(requests, request_of(l, i), l->region.peer, token, 1, 1, 1);
}

static int test_message(gm_staged *s, lane *l, int64_t i, int *done)
{
    return gm_request_test(s->requests[GM_CHANNEL_PIECES], request_of(l, i), done);
}

/* After a failure the copies are not needed, and end() waits for those that were begun; a slot of another rank is not
 * released before. */
static int test_copy(gm_staged *s, lane *l, int64_t i, int *done)
{
    *done = 1;
    if (!l->slots || (s->status && !l->is_shared))
        return GM_OK;
    int status = s->ops->event_done(l->copied[i % SLOTS], done);
    *done |= status != GM_OK;
    return status;
}

static int test_release(gm_staged *s, lane *l, int64_t i, int *done)
{
    *done = 1;
    return l->is_shared ? gm_request_test(s->requests[GM_CHANNEL_RELEASES], request_of(l, i), done) : GM_OK;
}

static const struct {
    int (*start)(gm_staged *s, lane *l, int64_t i);
    int (*test)(gm_staged *s, lane *l, int64_t i, int *done);
} stages[STAGES] = {[COPY] = {start_copy, test_copy},
                    [MESSAGE] = {start_message, test_message},
                    [RELEASE] = {start_release, test_release}};

/* --- The exchange --- */

/* The first failure of this rank. */
static void note(gm_staged *s, int status)
{
    if (s->status || !status)
        return;
    s->status = status;
    if (status != GM_EPEER)
        gm_cancel();
}

/* A piece that is to be discarded waits for those before it (mpi/exchange.h). */
static int may_begin(const gm_staged *s, const lane *l)
{
    return l->begun[0] < l->cut.pieces && l->begun[0] < l->begun[STAGES] + SLOTS &&
           (!s->status || l->way == SEND || l->begun[0] == l->begun[1]);
}

/* Moves on all pieces that can be, the last stage first. A failure ends no loop: messages go on as notices. */
static void advance_lane(gm_staged *s, lane *l)
{
    const stage *stage_at = order[l->way];
    for (int k = STAGES; k > 0; k--)
        for (int done = 1; l->begun[k] < l->begun[k - 1]; l->begun[k]++) {
            note(s, stages[stage_at[k - 1]].test(s, l, l->begun[k], &done));
            if (!done)
                break;
            if (k < STAGES)
                note(s, stages[stage_at[k]].start(s, l, l->begun[k]));
        }
    for (; may_begin(s, l); l->begun[0]++)
        note(s, stages[stage_at[0]].start(s, l, l->begun[0]));
}

static void begin_lane(gm_staged *s, lane *l, const gm_exchange_region *region, gm_event *after)
{
    l->region = region ? *region : (gm_exchange_region){0};
    l->cut = cut_region(&l->region);
    memset(l->begun, 0, sizeof l->begun);
    if (l->cut.pieces > 0 && region->peer == s->ranks->rank) {
        l->cut.pieces = 0;
        note(s, gm_fail(GM_EINTERNAL, "rank %d exchanges with itself", s->ranks->rank));
    }
    l->is_shared = l->cut.pieces > 0 && gm_shared_of(s->shared, region->peer);
    l->slots = l->is_shared && l->way == RECEIVE ? slots_of(s, region->peer) : l->own;
    if (after && l->slots && l->cut.pieces > 0 && !s->status)
        note(s, s->ops->event_wait(l->queue, after));
}

static void begin(void *state, const gm_exchange_region *send, const gm_exchange_region *receive, gm_event *after,
                  int status)
{
    gm_staged *s = state;
    s->status = GM_OK;
    note(s, status);
    begin_lane(s, &s->lanes[SEND], send, after);
    begin_lane(s, &s->lanes[RECEIVE], receive, after);
}

static int advance(void *state)
{
    gm_staged *s = state;
    int done = 1;
    if (!s->status)
        note(s, gm_stop_status());
    for (int d = 0; d < DIRECTIONS; d++) {
        advance_lane(s, &s->lanes[d]);
        done &= s->lanes[d].begun[STAGES] == s->lanes[d].cut.pieces;
    }
    return done;
}

static void fail(void *state, int status)
{
    gm_staged *s = state;
    note(s, status);
}

static int end(void *state)
{
    gm_staged *s = state;
    while (!advance(s))
        ;
    for (int d = 0; d < DIRECTIONS && s->status; d++)
        if (s->lanes[d].queue)
            s->ops->queue_sync(s->lanes[d].queue);
    return s->status;
}

int gm_staged_exchange(gm_staged *s, const gm_exchange_region *send, const gm_exchange_region *receive, gm_event *after,
                       int status)
{
    begin(s, send, receive, after, status);
    return end(s);
}

/* --- The path --- */

static int open_path_all(const gm_exchange_setup *setup, void **state, char version[GM_PATH_VERSION])
{
    gm_staged *s = NULL;
    int status = gm_staged_open_all(setup->ops, setup->device, setup->ranks, &s);
    *state = s;
    version[0] = '\0';
    return gm_agree_all(setup->ranks, status);
}

static void close_path(void *state)
{
    gm_staged_close(state);
}

const gm_path gm_path_staged = {.name = "staged",
                                .kernel = "MPI",
                                .is_through_host = 1,
                                .open_all = open_path_all,
                                .close = close_path,
                                .begin = begin,
                                .advance = advance,
                                .fail = fail,
                                .end = end};
