/* Exchanges by NCCL: from device memory to device memory, over NVLink, PCI Express or the network, as NCCL finds its
 * way. Regions go in the pieces of cut.h: rows that are apart are packed in device memory first, as messages are
 * contiguous. Pieces of both directions are put into a queue together, some at a time; piece i of one direction and
 * piece i of the other are always put together, so that no rank's piece waits for a later one of another rank.
 *
 * NCCL has no notices: a message that never comes is waited for on the device. So a rank that fails tells all ranks
 * (gm_cancel()), and each of them, which hears it while it drives its exchange on, aborts the communicator. After that
 * the path is closed for further exchanges. */
#include "base/log.h"
#include "base/size.h"
#include "base/stop.h"
#include "kernels/exchange/nccl.h"
#include "mpi/cancel.h"
#include "src/exchange/cut.h"
#include "src/exchange/exchange.h"
#include "src/stream/pool.h"

#include <stdio.h>
#include <stdlib.h>

/* Pieces take many times the start of a kernel; two slots in each direction are packed, sent and unpacked in the order
 * of the queue. A batch is what one call of NCCL starts. */
enum { SLOTS = 2, MOST_PIECE = 8 << 20, BATCH = 64 };
static const double patience = 20, end_seconds = 3; /* for the start of NCCL; for its end */

typedef enum direction { SEND, RECEIVE, DIRECTIONS } direction;

_Static_assert(GM_EXCHANGE_DEVICE == DIRECTIONS * (SLOTS * MOST_PIECE + GM_ALLOC_OVERHEAD), "what plans count");

typedef struct lane {
    gm_exchange_region region;
    gm_cut cut;
    int is_packed; /* its pieces go through slots */
    char *slots;   /* [SLOTS][MOST_PIECE], device memory */
} lane;

typedef struct nccl {
    const gm_device_ops *ops;
    int rank, status;
    gm_pool pool;
    gm_nccl *library;
    gm_queue *queue;
    gm_event *ended;
    lane lanes[DIRECTIONS];
    int is_open, is_aborted; /* the communicator: there are exchanges; there are none any more */
    int64_t put, batch;      /* pieces [0, put) are in the queue; those after them that NCCL is putting there */
    int is_putting, is_recorded, is_done;
} nccl;

/* --- Open and close --- */

static int prepare(const gm_exchange_setup *e, nccl *n)
{
    if (!e->ops->stream)
        return gm_fail(GM_EDEVICE, "NCCL exchanges memory of GPUs only");
    if (e->sharers > 1)
        return gm_fail(GM_EDEVICE, "NCCL needs a GPU for each rank, but %d ranks share one", e->sharers);
    n->ops = e->ops;
    n->rank = e->ranks->rank;
    n->pool = (gm_pool){.ops = e->ops, .device = e->device};
    for (int d = 0; d < DIRECTIONS; d++)
        n->lanes[d].slots = gm_pool_device(&n->pool, SLOTS, MOST_PIECE);
    n->ended = gm_pool_event(&n->pool);
    int status = n->pool.status ? n->pool.status : e->ops->queue_open(e->device, &n->queue);
    return status ? status : gm_nccl_open(e->ops, e->device, n->rank, e->ranks->size, &n->library);
}

/* Libraries of two versions may not understand each other. Collective. */
static int compare_versions_all(const gm_exchange_setup *e, const nccl *n)
{
    char own[GM_NCCL_VERSION_TEXT], other[GM_NCCL_VERSION_TEXT];
    int64_t version = gm_nccl_version(n->library), least = version;
    int status = gm_min_all(&least);
    if (!status && version != least)
        status = gm_fail(GM_EDEVICE, "NCCL %s here, %s on another rank", gm_nccl_version_format((int)version, own),
                         gm_nccl_version_format((int)least, other));
    return gm_agree_all(e->ranks, status);
}

/* The others wait for a rank in the same step: it tells them if it fails. */
static int connect(nccl *n, double seconds)
{
    int status = gm_nccl_do(n->library, GM_NCCL_CONNECT, seconds);
    if (status && status != GM_EPEER)
        gm_cancel();
    return status;
}

static int start_all(const gm_exchange_setup *e, nccl *n)
{
    double seconds = e->patience > 0 ? e->patience : patience;
    int status = gm_agree_all(e->ranks, gm_nccl_do(n->library, GM_NCCL_LOAD, seconds));
    if (!status)
        status = compare_versions_all(e, n);
    if (!status)
        status = gm_agree_all(e->ranks, n->rank == 0 ? gm_nccl_do(n->library, GM_NCCL_IDENTIFY, seconds) : GM_OK);
    if (!status)
        status = gm_agree_all(e->ranks, gm_broadcast_all(gm_nccl_id(n->library), GM_NCCL_ID));
    return status ? status : gm_agree_all(e->ranks, connect(n, seconds));
}

static int open_all(const gm_exchange_setup *e, void **state, char version[GM_PATH_VERSION])
{
    nccl *n = *state = calloc(1, sizeof *n);
    char text[GM_NCCL_VERSION_TEXT];
    version[0] = '\0';
    int status = gm_agree_all(e->ranks, n ? prepare(e, n) : gm_fail(GM_EDEVICE, "no memory for exchanges by NCCL"));
    if (status)
        return status;
    status = start_all(e, n);
    n->is_open = !status;
    if (gm_nccl_version(n->library))
        snprintf(version, GM_PATH_VERSION, "%s", gm_nccl_version_format(gm_nccl_version(n->library), text));
    return status;
}

/* A communicator that all ranks still have, and of which nothing is under way, is destroyed; any other one is aborted:
 * after a failure, which all ranks know of by now, others may have aborted theirs. */
static void end_communicator(nccl *n)
{
    gm_error error;
    gm_error_get(&error);
    int is_whole = n->is_open && !n->is_aborted && error.code == GM_OK;
    int was_hushed = gm_error_hush(1);
    if (gm_nccl_do(n->library, is_whole ? GM_NCCL_DESTROY : GM_NCCL_ABORT, end_seconds))
        gm_detail("NCCL has not ended its communicator");
    gm_error_hush(was_hushed);
}

static void close_all(void *state)
{
    nccl *n = state;
    if (!n)
        return;
    if (n->library)
        end_communicator(n);
    gm_nccl_close(n->library);
    if (n->queue)
        n->ops->queue_close(n->queue);
    gm_pool_release(&n->pool);
    free(n);
}

/* --- Failures --- */

/* Work that NCCL has put into the queue and does not take back would wait there for ever: the device cannot be used
 * again, not even to close it. */
static void give_up(const nccl *n)
{
    gm_error error;
    gm_error_get(&error);
    gm_error_print(error.code ? error.text : "NCCL does not abort its exchange with a rank that has failed");
    gm_ranks_abort(n->status == GM_EPEER ? GM_EMPI : n->status);
}

/* The first failure of this rank. Afterwards nothing of the exchange is under way. */
static void note(nccl *n, int status)
{
    int has_work = n->put > 0 || n->is_putting;
    if (n->status || !status)
        return;
    n->status = status;
    if (status != GM_EPEER)
        gm_cancel();
    if (n->is_aborted)
        return;
    n->is_aborted = 1;
    int was_hushed = gm_error_hush(1);
    int aborted = gm_nccl_do(n->library, GM_NCCL_ABORT, end_seconds);
    if (!aborted)
        n->ops->queue_sync(n->queue);
    gm_error_hush(was_hushed);
    if (aborted && has_work)
        give_up(n);
}

static void fail(void *state, int status)
{
    note(state, status);
}

/* --- The exchange --- */

static void begin_lane(nccl *n, lane *l, const gm_exchange_region *region)
{
    l->region = region ? *region : (gm_exchange_region){0};
    l->cut = gm_cut_region(region, MOST_PIECE);
    l->is_packed = l->cut.rows > 1 && l->region.pitch != l->region.width;
    if (l->cut.pieces > 0 && region->peer == n->rank)
        note(n, gm_fail(GM_EINTERNAL, "rank %d exchanges with itself", n->rank));
}

static int64_t count_pieces(const nccl *n)
{
    return gm_max(n->lanes[SEND].cut.pieces, n->lanes[RECEIVE].cut.pieces);
}

static void begin(void *state, const gm_exchange_region *send, const gm_exchange_region *receive, gm_event *after,
                  int status)
{
    nccl *n = state;
    n->status = GM_OK;
    n->put = n->batch = 0;
    n->is_putting = n->is_recorded = n->is_done = 0;
    note(n, status);
    if (!n->status && n->is_aborted)
        note(n, gm_fail(GM_EINTERNAL, "an exchange by NCCL after one that has failed"));
    begin_lane(n, &n->lanes[SEND], send);
    begin_lane(n, &n->lanes[RECEIVE], receive);
    if (after && count_pieces(n) > 0 && !n->status)
        note(n, n->ops->event_wait(n->queue, after));
}

static char *slot_of(const lane *l, int64_t i)
{
    return l->slots + i % SLOTS * MOST_PIECE;
}

/* The copies between the slots of a batch and the region, if it has any. */
static int copy_slots(const nccl *n, direction d)
{
    const lane *l = &n->lanes[d];
    int status = GM_OK;
    for (int64_t i = n->put; i < gm_min(n->put + n->batch, l->cut.pieces) && l->is_packed && !status; i++) {
        const gm_exchange_region p = gm_cut_piece(&l->region, &l->cut, i);
        status = d == SEND ? n->ops->copy_within(n->queue, slot_of(l, i), p.width, p.memory, p.pitch, p.width, p.rows)
                           : n->ops->copy_within(n->queue, p.memory, p.pitch, slot_of(l, i), p.width, p.width, p.rows);
    }
    return status;
}

static gm_nccl_message message_of(const nccl *n, direction d, int64_t i)
{
    const lane *l = &n->lanes[d];
    const gm_exchange_region p = gm_cut_piece(&l->region, &l->cut, i);
    return (gm_nccl_message){.peer = p.peer,
                             .is_receive = d == RECEIVE,
                             .memory = l->is_packed ? slot_of(l, i) : p.memory,
                             .bytes = p.width * (size_t)p.rows};
}

static int put_batch(nccl *n)
{
    gm_nccl_message messages[DIRECTIONS * BATCH];
    int count = 0;
    n->batch = gm_min(n->lanes[SEND].is_packed || n->lanes[RECEIVE].is_packed ? SLOTS : BATCH,
                      count_pieces(n) - n->put);
    int status = copy_slots(n, SEND);
    for (int64_t i = n->put; i < n->put + n->batch; i++)
        for (int d = 0; d < DIRECTIONS; d++)
            if (i < n->lanes[d].cut.pieces)
                messages[count++] = message_of(n, d, i);
    n->is_putting = 1;
    return status ? status : gm_nccl_put(n->library, n->ops->stream(n->queue), messages, count);
}

static int move(nccl *n)
{
    int ready = 0, status = gm_nccl_poll(n->library, &ready);
    if (status || !ready)
        return status;
    if (n->is_putting) {
        status = copy_slots(n, RECEIVE);
        n->is_putting = 0;
        n->put += n->batch;
    }
    if (status)
        return status;
    if (n->put < count_pieces(n))
        return put_batch(n);
    if (!n->is_recorded) {
        n->is_recorded = 1;
        status = n->ops->event_record(n->ended, n->queue);
    }
    return status ? status : n->ops->event_done(n->ended, &n->is_done);
}

static int advance(void *state)
{
    nccl *n = state;
    if (!n->status && !n->is_done)
        note(n, gm_stop_status());
    if (!n->status && count_pieces(n) == 0)
        n->is_done = 1;
    if (!n->status && !n->is_done)
        note(n, move(n));
    return n->status || n->is_done;
}

static int end(void *state)
{
    const nccl *n = state;
    while (!advance(state))
        ;
    return n->status;
}

const gm_path gm_path_nccl = {.name = "nccl",
                              .kernel = "NCCL",
                              .is_through_host = 0,
                              .start_s = 2,
                              .too_slow = "the exchanges are shorter than the start of NCCL",
                              .open_all = open_all,
                              .close_all = close_all,
                              .begin = begin,
                              .advance = advance,
                              .fail = fail,
                              .end = end};
