#include "src/exchange/half.h"

#include "base/size.h"
#include "base/status.h"
#include "mpi/cancel.h"

#include <string.h>

/* Four slots in each direction: a copy and a message at work, and one piece ready for each. Pieces of 2 MiB take many
 * times the start of a copy and the handshake of a message, and are few enough bytes for the caches of the processor.
 * Shorter regions are cut into eight, so that their stages overlap too, down to 256 KiB, whose start costs as much as
 * their way. Between devices a piece of 32 MiB takes as long as one of 2 MiB through the host. */
enum { USUAL_PIECES = 8 };

static const struct {
    int64_t least, most;
} piece_bytes[GM_CARRIERS] = {[GM_BY_MESSAGE] = {256 << 10, GM_HALF_SLOT},
                              [GM_FROM_SLOT] = {256 << 10, GM_HALF_SLOT},
                              [GM_FROM_DEVICE] = {2 << 20, 32 << 20},
                              [GM_TO_DEVICE] = {2 << 20, 32 << 20}};

_Static_assert(GM_STAGED_PINNED == GM_HALF_WAYS * (GM_HALF_SLOTS * GM_HALF_SLOT + GM_ALLOC_OVERHEAD),
               "what plans count");

/* By [carrier == GM_TO_DEVICE]. */
static const gm_half_stage order[2][GM_HALF_WAYS][GM_HALF_STAGES] = {
    {[GM_HALF_SEND] = {GM_HALF_COPY, GM_HALF_MESSAGE, GM_HALF_RELEASE},
     [GM_HALF_RECEIVE] = {GM_HALF_MESSAGE, GM_HALF_COPY, GM_HALF_RELEASE}},
    {[GM_HALF_SEND] = {GM_HALF_RELEASE, GM_HALF_COPY, GM_HALF_MESSAGE},
     [GM_HALF_RECEIVE] = {GM_HALF_COPY, GM_HALF_RELEASE, GM_HALF_MESSAGE}}};

/* The slots to send of a rank of this host, pinned; NULL: they are not addressed here. */
static char *slots_of(gm_staged *s, int rank)
{
    char *slots = gm_shared_of(s->shared, rank);
    if (slots && !s->is_pinned[rank])
        s->ops->host_register(s->pool.device, slots, gm_half_bytes());
    if (slots)
        s->is_pinned[rank] = 1;
    return slots;
}

/* Slots to receive are for messages with bytes: from ranks of other hosts, if those of this one share. */
int gm_half_open(gm_staged *s, gm_half *h)
{
    if (h->way == GM_HALF_SEND && s->shared)
        h->own = slots_of(s, s->ranks->rank);
    else if (!s->windows && (!s->shared || s->ranks->hosts > 1))
        h->own = gm_pool_pinned(&s->pool, GM_HALF_SLOTS, GM_HALF_SLOT);
    for (int i = 0; i < GM_HALF_SLOTS; i++)
        h->copied[i] = gm_pool_event(&s->pool);
    return s->pool.status ? s->pool.status : s->ops->queue_open(s->pool.device, &h->queue);
}

/* --- Pieces --- */

static gm_cut cut_region(const gm_exchange_region *r, gm_carrier by)
{
    int64_t usual = gm_exchange_region_bytes(r) / USUAL_PIECES;
    return gm_cut_region(r, gm_min(gm_max(usual, piece_bytes[by].least), piece_bytes[by].most));
}

/* A piece: the part of the region, and the memory of its message. */
typedef struct piece {
    char *memory, *message;
    size_t width, pitch; /* pitch: of the message */
    int64_t rows;
} piece;

static piece piece_of(const gm_half *h, int64_t i)
{
    const gm_exchange_region r = gm_cut_piece(&h->region, &h->cut, i);
    piece p = {.memory = r.memory, .width = r.width, .rows = r.rows};
    p.message = h->slots ? h->slots + i % GM_HALF_SLOTS * GM_HALF_SLOT : p.memory;
    p.pitch = h->slots ? p.width : r.pitch;
    return p;
}

/* --- Stages --- */

/* The first failure of this rank. */
void gm_half_note(gm_staged *s, int status)
{
    if (s->status || !status)
        return;
    s->status = status;
    if (status != GM_EPEER)
        gm_cancel();
}

static int request_of(const gm_half *h, int64_t i)
{
    return (int)h->way * GM_HALF_SLOTS + (int)(i % GM_HALF_SLOTS);
}

/* Does the carrier copy between devices? */
static int is_direct(const gm_half *h)
{
    return h->by == GM_FROM_DEVICE || h->by == GM_TO_DEVICE;
}

/* Does this rank copy between devices, and not its peer? */
static int is_copier(const gm_half *h)
{
    return h->by == (h->way == GM_HALF_SEND ? GM_TO_DEVICE : GM_FROM_DEVICE);
}

/* The token of a piece: what is sent, or room for what is received. */
static int make_token(gm_staged *s, gm_half *h, int64_t i, int is_sent, piece *p)
{
    gm_token *t = &h->tokens[i % GM_HALF_SLOTS];
    int shows = is_sent && is_direct(h) && !is_copier(h) && !s->status;
    int status = shows ? gm_windows_show(s->windows, p->memory, &t->memory) : GM_OK;
    if (shows)
        t->pitch = h->region.pitch;
    *p = (piece){.message = (char *)t, .pitch = sizeof *t, .width = sizeof *t, .rows = 1};
    return status;
}

/* Of a channel: GM_CHANNEL_PIECES is along the data, GM_CHANNEL_RELEASES against them. After a failure it is a notice,
 * and bytes are discarded. */
static int start_transfer(gm_staged *s, gm_half *h, int64_t i, gm_channel channel)
{
    int is_sent = (channel == GM_CHANNEL_PIECES) == (h->way == GM_HALF_SEND), has_bytes = h->by == GM_BY_MESSAGE;
    piece p = piece_of(h, i);
    if (!has_bytes)
        gm_half_note(s, make_token(s, h, i, is_sent, &p));
    char *data = s->status && (is_sent || has_bytes) ? NULL : p.message;
    return is_sent
               ? gm_send_start(s->requests[channel], request_of(h, i), h->region.peer, data, p.pitch, p.width, p.rows)
               : gm_receive_start(s->requests[channel], request_of(h, i), h->region.peer, data, p.pitch, p.width,
                                  p.rows);
}

static int start_message(gm_staged *s, gm_half *h, int64_t i)
{
    return start_transfer(s, h, i, GM_CHANNEL_PIECES);
}

/* After a failure too: the peer waits for it. */
static int start_release(gm_staged *s, gm_half *h, int64_t i)
{
    return h->by == GM_BY_MESSAGE ? GM_OK : start_transfer(s, h, i, GM_CHANNEL_RELEASES);
}

/* Does the half put work into its queue? */
static int has_queue(const gm_half *h)
{
    return h->slots || is_direct(h);
}

/* From the memory that the peer has shown, or to it. */
static int copy_directly(gm_staged *s, gm_half *h, int64_t i)
{
    const piece p = piece_of(h, i);
    const gm_token *t = &h->tokens[i % GM_HALF_SLOTS];
    void *memory;
    int status = gm_windows_find(s->windows, h->region.peer, &t->memory, &memory);
    if (status)
        return status;
    return h->way == GM_HALF_SEND
               ? s->ops->copy_within(h->queue, memory, t->pitch, p.memory, h->region.pitch, p.width, p.rows)
               : s->ops->copy_within(h->queue, p.memory, h->region.pitch, memory, t->pitch, p.width, p.rows);
}

/* A copy that has failed in part is over before its piece is released. */
static int start_copy(gm_staged *s, gm_half *h, int64_t i)
{
    const piece p = piece_of(h, i);
    int status = GM_OK;
    if (!has_queue(h) || s->status)
        return GM_OK;
    if (is_copier(h))
        status = copy_directly(s, h, i);
    else if (!is_direct(h))
        status = h->way == GM_HALF_SEND
                     ? s->ops->copy_out(h->queue, p.message, p.pitch, p.memory, h->region.pitch, p.width, p.rows)
                     : s->ops->copy_in(h->queue, p.memory, h->region.pitch, p.message, p.pitch, p.width, p.rows);
    if (!status)
        status = s->ops->event_record(h->copied[i % GM_HALF_SLOTS], h->queue);
    if (status)
        s->ops->queue_sync(h->queue);
    return status;
}

static int test_message(gm_staged *s, gm_half *h, int64_t i, int *done)
{
    return gm_request_test(s->requests[GM_CHANNEL_PIECES], request_of(h, i), done);
}

/* After a failure the copies are not needed, and end() waits for those that were begun; memory of another rank is not
 * released before. */
static int test_copy(gm_staged *s, gm_half *h, int64_t i, int *done)
{
    *done = 1;
    if (!has_queue(h) || (s->status && h->by == GM_BY_MESSAGE))
        return GM_OK;
    int status = s->ops->event_done(h->copied[i % GM_HALF_SLOTS], done);
    *done |= status != GM_OK;
    return status;
}

static int test_release(gm_staged *s, gm_half *h, int64_t i, int *done)
{
    *done = 1;
    return h->by == GM_BY_MESSAGE ? GM_OK : gm_request_test(s->requests[GM_CHANNEL_RELEASES], request_of(h, i), done);
}

static const struct {
    int (*start)(gm_staged *s, gm_half *h, int64_t i);
    int (*test)(gm_staged *s, gm_half *h, int64_t i, int *done);
} stages[GM_HALF_STAGES] = {[GM_HALF_COPY] = {start_copy, test_copy},
                            [GM_HALF_MESSAGE] = {start_message, test_message},
                            [GM_HALF_RELEASE] = {start_release, test_release}};

/* A piece that is to be discarded waits for those before it (mpi/exchange.h). */
static int may_begin(const gm_staged *s, const gm_half *h)
{
    return h->begun[0] < h->cut.pieces && h->begun[0] < h->begun[GM_HALF_STAGES] + GM_HALF_SLOTS &&
           (!s->status || h->way == GM_HALF_SEND || h->begun[0] == h->begun[1]);
}

/* Moves on all pieces that can be, the last stage first. A failure ends no loop: messages go on as notices. */
int gm_half_advance(gm_staged *s, gm_half *h)
{
    const gm_half_stage *stage_at = order[h->by == GM_TO_DEVICE][h->way];
    for (int k = GM_HALF_STAGES; k > 0; k--)
        for (int done = 1; h->begun[k] < h->begun[k - 1]; h->begun[k]++) {
            gm_half_note(s, stages[stage_at[k - 1]].test(s, h, h->begun[k], &done));
            if (!done)
                break;
            if (k < GM_HALF_STAGES)
                gm_half_note(s, stages[stage_at[k]].start(s, h, h->begun[k]));
        }
    for (; may_begin(s, h); h->begun[0]++)
        gm_half_note(s, stages[stage_at[0]].start(s, h, h->begun[0]));
    return h->begun[GM_HALF_STAGES] == h->cut.pieces;
}

static gm_carrier carrier_of(const gm_staged *s, const gm_half *h)
{
    int peer = h->region.peer, is_lower = s->ranks->rank < peer;
    if (s->windows)
        return is_lower == (h->way == GM_HALF_SEND) ? GM_TO_DEVICE : GM_FROM_DEVICE;
    return gm_shared_of(s->shared, peer) ? GM_FROM_SLOT : GM_BY_MESSAGE;
}

void gm_half_begin(gm_staged *s, gm_half *h, const gm_exchange_region *region, gm_event *after)
{
    h->region = region ? *region : (gm_exchange_region){0};
    h->by = carrier_of(s, h);
    h->cut = cut_region(&h->region, h->by);
    memset(h->begun, 0, sizeof h->begun);
    if (h->cut.pieces > 0 && region->peer == s->ranks->rank) {
        h->cut.pieces = 0;
        gm_half_note(s, gm_fail(GM_EINTERNAL, "rank %d exchanges with itself", s->ranks->rank));
    }
    h->slots = h->cut.pieces > 0 && h->by == GM_FROM_SLOT && h->way == GM_HALF_RECEIVE ? slots_of(s, region->peer)
                                                                                       : h->own;
    if (after && has_queue(h) && h->cut.pieces > 0 && !s->status)
        gm_half_note(s, s->ops->event_wait(h->queue, after));
}
