#include "src/exchange/probe.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/size.h"
#include "src/stream/pool.h"

#include <math.h>
#include <string.h>

/* Rows that end at no word; those of one turn lie apart, so that a path that packs them does so. Where the path starts
 * in little time a few will do: a run of 20 ms may wait for them. */
enum { ROWS = 517, FEW_ROWS = 65, LEAST_ROWS = 3, WIDTH = 8191, GAP = 65, PITCH = WIDTH + GAP };
enum { RATE_BYTES = 16 << 20, RATE_TURNS = 4 };
_Static_assert(GM_PROBE_LEAST == LEAST_ROWS * PITCH + GM_ALLOC_OVERHEAD, "what plans count");
static const double patience = 20; /* seconds */

typedef struct probe {
    const gm_exchange_setup *setup;
    const gm_path *path;
    void *state;
    gm_pool *shown; /* src and dst, which other ranks may address until the path is closed */
    gm_pool pool;
    gm_queue *queue;
    char *src, *dst; /* [rows][PITCH], device memory, dst behind src */
    uint64_t *host;  /* pinned, of as many bytes */
    int64_t rows;    /* the same on all ranks */
    int has_ways;    /* src and dst lie in the memory of the setup's ways; the same on all ranks */
} probe;

/* The rows that all ranks have room for, in the memory of the setup's first ways if that is enough. Collective. */
static int find_rows_all(probe *r, int64_t most, int ways)
{
    const gm_exchange_setup *e = r->setup;
    int64_t device = gm_memory_cap(GM_DEVICE) - gm_memory_used(GM_DEVICE),
            host = gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST), in_ways = ways ? host / (2 * PITCH) : 0;
    for (int i = 0; i < ways; i++)
        if (e->ways[i].from >= 0)
            in_ways = gm_min(in_ways, e->ways[i].bytes / (2 * PITCH));
    r->rows = gm_max(gm_min(most, gm_min(device, host) / (4 * PITCH)), LEAST_ROWS);
    int status = gm_min_all(&r->rows);
    if (!status)
        status = gm_min_all(&in_ways);
    r->has_ways = in_ways >= LEAST_ROWS;
    if (r->has_ways)
        r->rows = gm_min(most, in_ways);
    return status;
}

static int open_probe(probe *r)
{
    r->pool = (gm_pool){.ops = r->setup->ops, .device = r->setup->device};
    r->src = r->has_ways ? NULL : gm_pool_device(r->shown, 2 * r->rows, PITCH);
    r->dst = r->src ? r->src + r->rows * PITCH : NULL;
    r->host = gm_pool_pinned(&r->pool, r->rows, PITCH);
    int status = r->shown->status ? r->shown->status : r->pool.status;
    return status ? status : r->setup->ops->queue_open(r->setup->device, &r->queue);
}

static void close_probe(probe *r)
{
    if (r->queue)
        r->setup->ops->queue_close(r->queue);
    gm_pool_release(&r->pool);
}

/* Word i of what a rank sends in a turn; the last one ends beyond the rows. */
static uint64_t word_of(int rank, int turn, int64_t i)
{
    return gm_random_bits(gm_random_key(5, ((uint64_t)rank << 8) + (uint64_t)turn), (uint64_t)i);
}

static int fill(probe *r, int turn, size_t pitch)
{
    const gm_device_ops *ops = r->setup->ops;
    for (int64_t i = 0; i < gm_ceil_div(r->rows * WIDTH, 8); i++)
        r->host[i] = word_of(r->setup->ranks->rank, turn, i);
    int status = ops->copy_in(r->queue, r->src, pitch, r->host, WIDTH, WIDTH, r->rows);
    if (!status)
        status = ops->zero(r->queue, r->dst, (size_t)r->rows * PITCH);
    return status ? status : ops->queue_sync(r->queue);
}

static int compare(probe *r, int from, int turn, size_t pitch)
{
    const gm_device_ops *ops = r->setup->ops;
    int64_t bytes = r->rows * WIDTH, wrong = 0;
    int status = ops->copy_out(r->queue, r->host, WIDTH, r->dst, pitch, WIDTH, r->rows);
    if (!status)
        status = ops->queue_sync(r->queue);
    for (int64_t i = 0; 8 * i < bytes && !status; i++) {
        uint64_t right = word_of(from, turn, i);
        wrong += bytes - 8 * i >= 8 ? right != r->host[i] : memcmp(&right, &r->host[i], (size_t)(bytes - 8 * i)) != 0;
    }
    return wrong == 0 ? status
                      : gm_fail(GM_EMPI, "exchange %s: wrong bytes arrived from rank %d, in %lld of %lld words",
                                r->path->name, from, (long long)wrong, (long long)gm_ceil_div(bytes, 8));
}

static int trade(const probe *r, const gm_exchange_region *send, const gm_exchange_region *receive, int status)
{
    double limit = r->setup->patience > 0 ? r->setup->patience : patience, from = gm_clock();
    r->path->begin(r->state, send, receive, NULL, status);
    while (!status && !r->path->advance(r->state))
        if (gm_clock() - from > limit) {
            status = gm_fail(GM_EMPI, "exchange %s: a probe has not arrived after %g s", r->path->name, limit);
            r->path->fail(r->state, status);
        }
    return r->path->end(r->state);
}

/* Without ways turn 0 goes to the next rank, turn 1 to the one before; otherwise each way has two turns. The second one
 * is of rows that lie apart. Collective. */
static int turn_all(probe *r, int turn)
{
    const gm_ranks *ranks = r->setup->ranks;
    const gm_exchange_way *way = r->has_ways ? &r->setup->ways[turn / 2] : NULL;
    int next = (ranks->rank + 1) % ranks->size, last = (ranks->rank + ranks->size - 1) % ranks->size;
    int to = way ? way->to : turn ? last : next, from = way ? way->from : turn ? next : last, status = GM_OK;
    size_t pitch = turn % 2 ? PITCH : WIDTH;
    if (way) {
        r->src = way->memory;
        r->dst = way->memory + r->rows * PITCH;
    }
    const gm_exchange_region send = {to, r->src, pitch, WIDTH, r->rows},
                             receive = {from, r->dst, pitch, WIDTH, r->rows};
    if (from >= 0) {
        status = trade(r, &send, &receive, fill(r, turn, pitch));
        status = status ? status : compare(r, from, turn, pitch);
    }
    return gm_agree_all(ranks, status);
}

int gm_probe_bytes_all(const gm_exchange_setup *setup, const gm_path *path, void *state, gm_pool *shown)
{
    probe r = {.setup = setup, .path = path, .state = state, .shown = shown};
    int status = find_rows_all(&r, path->start_s > 1 ? ROWS : FEW_ROWS, setup->way_count);
    if (!status)
        status = gm_agree_all(setup->ranks, open_probe(&r));
    for (int turn = 0; turn < (r.has_ways ? 2 * setup->way_count : 2) && !status; turn++)
        status = turn_all(&r, turn);
    close_probe(&r);
    return status;
}

/* Seconds of a turn, once all ranks have met: of this rank, and until all have ended it. Collective. */
static int time_all(probe *r, int64_t bytes, double *own, double *seconds)
{
    const gm_ranks *ranks = r->setup->ranks;
    const gm_exchange_region send = {(ranks->rank + 1) % ranks->size, r->src, (size_t)bytes, (size_t)bytes, 1},
                             receive = {(ranks->rank + ranks->size - 1) % ranks->size, r->dst, (size_t)bytes,
                                        (size_t)bytes, 1};
    int status = gm_agree_all(ranks, GM_OK);
    double from = gm_clock();
    if (!status) {
        status = trade(r, &send, &receive, GM_OK);
        *own = gm_clock() - from;
        status = gm_agree_all(ranks, status);
    }
    *seconds = gm_clock() - from;
    return status;
}

static double rate_of(int64_t bytes, double seconds)
{
    return seconds > 0 ? (double)bytes / seconds : 0;
}

int gm_probe_rate_all(const gm_exchange_setup *setup, const gm_path *path, void *state, gm_pool *shown, double *own,
                      double *least)
{
    probe r = {.setup = setup, .path = path, .state = state, .shown = shown};
    double best = INFINITY, best_own = INFINITY, seconds = 0, own_seconds = 0;
    int status = find_rows_all(&r, RATE_BYTES / PITCH, 0);
    int64_t bytes = r.rows * PITCH, worst;
    if (!status)
        status = gm_agree_all(setup->ranks, open_probe(&r));
    for (int i = 0; i < RATE_TURNS && !status; i++) {
        status = time_all(&r, bytes, &own_seconds, &seconds);
        best = fmin(best, seconds);
        best_own = fmin(best_own, own_seconds);
    }
    worst = (int64_t)rate_of(bytes, best);
    if (!status)
        status = gm_min_all(&worst);
    *own = status ? 0 : rate_of(bytes, best_own);
    *least = status ? 0 : (double)worst;
    close_probe(&r);
    return status;
}
