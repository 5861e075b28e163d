#include "src/exchange/staged.h"

#include "base/size.h"
#include "base/stop.h"
#include "mpi/cancel.h"
#include "mpi/exchange.h"
#include "src/exchange/cut.h"
#include "src/stream/pool.h"

#include <stdlib.h>

/* Four slots in each direction: a copy and a message at work, and one piece ready for each. Pieces of 2 MiB take many
 * times the start of a copy and the handshake of a message, and are few enough bytes for the caches of the processor.
 * Shorter regions are cut into eight, so that their stages overlap too, down to 256 KiB, whose start costs as much as
 * their way. */
enum { SLOTS = 4, MOST_PIECE = 2 << 20, LEAST_PIECE = 256 << 10, USUAL_PIECES = 8 };

typedef enum direction { SEND, RECEIVE, DIRECTIONS } direction;

_Static_assert(GM_STAGED_PINNED == DIRECTIONS * (SLOTS * MOST_PIECE + GM_ALLOC_OVERHEAD), "what plans count");

/* The pieces of one direction, which pass two stages in order: when they are sent the copy and the message, when they
 * are received the message and the copy. Pieces [0, begun) have begun the first stage, [0, passed) the second, and [0,
 * ended) are done: ended <= passed <= begun <= ended + SLOTS. */
typedef struct lane {
    gm_exchange_region region;
    gm_cut cut;
    int64_t begun, passed, ended;
    gm_queue *queue;
    char *slots; /* [SLOTS][MOST_PIECE], pinned; NULL on a device that addresses host memory */
    gm_event *copied[SLOTS];
} lane;

struct gm_staged {
    const gm_device_ops *ops;
    int rank, status;
    gm_pool pool;
    gm_requests *requests; /* [DIRECTIONS][SLOTS] */
    lane lanes[DIRECTIONS];
};

/* --- Open and close --- */

static int open_lane(gm_staged *s, lane *l)
{
    l->slots = gm_pool_pinned(&s->pool, SLOTS, MOST_PIECE);
    for (int i = 0; i < SLOTS; i++)
        l->copied[i] = gm_pool_event(&s->pool);
    return s->pool.status ? s->pool.status : s->ops->queue_open(s->pool.device, &l->queue);
}

int gm_staged_open(const gm_device_ops *ops, gm_device *device, int rank, gm_staged **staged)
{
    gm_staged *s = *staged = calloc(1, sizeof *s);
    if (!s)
        return gm_fail(GM_EDEVICE, "no memory for exchanges between ranks");
    s->ops = ops;
    s->rank = rank;
    s->pool = (gm_pool){.ops = ops, .device = device};
    int status = gm_requests_open(DIRECTIONS * SLOTS, &s->requests);
    for (int d = 0; d < DIRECTIONS && !status && !ops->unified; d++)
        status = open_lane(s, &s->lanes[d]);
    return status;
}

void gm_staged_close(gm_staged *s)
{
    if (!s)
        return;
    for (int d = 0; d < DIRECTIONS; d++)
        if (s->lanes[d].queue)
            s->ops->queue_close(s->lanes[d].queue);
    gm_pool_release(&s->pool);
    gm_requests_close(s->requests);
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

static int request_of(const gm_staged *s, const lane *l, int64_t i)
{
    return (int)(l - s->lanes) * SLOTS + (int)(i % SLOTS);
}

static int start_message(const gm_staged *s, const lane *l, int64_t i)
{
    const piece p = piece_of(l, i);
    char *data = s->status ? NULL : p.message;
    return l == &s->lanes[SEND]
               ? gm_send_start(s->requests, request_of(s, l, i), l->region.peer, data, p.pitch, p.width, p.rows)
               : gm_receive_start(s->requests, request_of(s, l, i), l->region.peer, data, p.pitch, p.width, p.rows);
}

static int start_copy(const gm_staged *s, const lane *l, int64_t i)
{
    const piece p = piece_of(l, i);
    int status;
    if (!l->slots || s->status)
        return GM_OK;
    status = l == &s->lanes[SEND]
                 ? s->ops->copy_out(l->queue, p.message, p.pitch, p.memory, l->region.pitch, p.width, p.rows)
                 : s->ops->copy_in(l->queue, p.memory, l->region.pitch, p.message, p.pitch, p.width, p.rows);
    return status ? status : s->ops->event_record(l->copied[i % SLOTS], l->queue);
}

/* After a failure the copies are not needed; end() waits for those that were begun. */
static int test_copy(const gm_staged *s, const lane *l, int64_t i, int *done)
{
    *done = 1;
    return l->slots && !s->status ? s->ops->event_done(l->copied[i % SLOTS], done) : GM_OK;
}

static int start_stage(const gm_staged *s, const lane *l, int is_second, int64_t i)
{
    return (l == &s->lanes[SEND]) == is_second ? start_message(s, l, i) : start_copy(s, l, i);
}

static int test_stage(const gm_staged *s, const lane *l, int is_second, int64_t i, int *done)
{
    return (l == &s->lanes[SEND]) == is_second ? gm_request_test(s->requests, request_of(s, l, i), done)
                                               : test_copy(s, l, i, done);
}

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
    return l->begun < l->cut.pieces && l->begun < l->ended + SLOTS &&
           (!s->status || l == &s->lanes[SEND] || l->begun == l->passed);
}

/* Moves on all pieces that can be. A failure ends no loop: messages go on as notices. */
static void advance_lane(gm_staged *s, lane *l)
{
    for (int done = 1; l->ended < l->passed; l->ended++) {
        note(s, test_stage(s, l, 1, l->ended, &done));
        if (!done)
            break;
    }
    for (int done = 1; l->passed < l->begun; l->passed++) {
        note(s, test_stage(s, l, 0, l->passed, &done));
        if (!done)
            break;
        note(s, start_stage(s, l, 1, l->passed));
    }
    for (; may_begin(s, l); l->begun++)
        note(s, start_stage(s, l, 0, l->begun));
}

static void begin_lane(gm_staged *s, lane *l, const gm_exchange_region *region, gm_event *after)
{
    l->region = region ? *region : (gm_exchange_region){0};
    l->cut = cut_region(&l->region);
    l->begun = l->passed = l->ended = 0;
    if (l->cut.pieces > 0 && region->peer == s->rank) {
        l->cut.pieces = 0;
        note(s, gm_fail(GM_EINTERNAL, "rank %d exchanges with itself", s->rank));
    }
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
        done &= s->lanes[d].ended == s->lanes[d].cut.pieces;
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
    int status = gm_staged_open(setup->ops, setup->device, setup->ranks->rank, &s);
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
