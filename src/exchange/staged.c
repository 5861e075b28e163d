#include "src/exchange/staged.h"

#include "base/stop.h"
#include "src/exchange/half.h"

#include <stdlib.h>

/* --- Open and close --- */

int gm_staged_open_all(const gm_device_ops *ops, gm_device *device, const gm_ranks *ranks, int is_direct,
                       gm_staged **staged)
{
    gm_staged *s = *staged = calloc(1, sizeof *s);
    char *is_pinned = calloc((size_t)ranks->size, 1);
    int status = s && is_pinned ? GM_OK : gm_fail(GM_EDEVICE, "no memory for exchanges between ranks");
    status = gm_agree_all(ranks, status);
    if (status) {
        *staged = NULL;
        free(is_pinned);
        free(s);
        return status;
    }
    *s = (gm_staged){.ops = ops, .ranks = ranks, .is_direct = is_direct, .is_pinned = is_pinned};
    s->pool = (gm_pool){.ops = ops, .device = device};
    if (is_direct)
        status = gm_agree_all(ranks, gm_windows_open(ops, device, ranks, &s->windows));
    else if (!ops->unified)
        status = gm_shared_open_all(ranks, gm_half_bytes(), &s->shared);
    for (int channel = 0; channel < GM_CHANNELS && !status; channel++)
        status = gm_requests_open(GM_HALF_WAYS * GM_HALF_SLOTS, (gm_channel)channel, &s->requests[channel]);
    for (int way = 0; way < GM_HALF_WAYS && !status; way++) {
        s->halves[way].way = (gm_half_way)way;
        status = ops->unified ? GM_OK : gm_half_open(s, &s->halves[way]);
    }
    return status;
}

void gm_staged_close_all(gm_staged *s)
{
    if (!s)
        return;
    for (int d = 0; d < GM_HALF_WAYS; d++)
        if (s->halves[d].queue)
            s->ops->queue_close(s->halves[d].queue);
    for (int rank = 0; rank < s->ranks->size; rank++)
        if (s->is_pinned[rank])
            s->ops->host_unregister(s->pool.device, gm_shared_of(s->shared, rank));
    gm_windows_close(s->windows);
    if (s->is_direct)
        gm_agree_all(s->ranks, GM_OK); /* then the memory that they have opened may be freed */
    gm_shared_close(s->shared);
    gm_pool_release(&s->pool);
    for (int channel = 0; channel < GM_CHANNELS; channel++)
        gm_requests_close(s->requests[channel]);
    free(s->is_pinned);
    free(s);
}

/* --- The exchange --- */

static void begin(void *state, const gm_exchange_region *send, const gm_exchange_region *receive, gm_event *after,
                  int status)
{
    gm_staged *s = state;
    s->status = GM_OK;
    gm_half_note(s, status);
    gm_half_begin(s, &s->halves[GM_HALF_SEND], send, after);
    gm_half_begin(s, &s->halves[GM_HALF_RECEIVE], receive, after);
}

static int advance(void *state)
{
    gm_staged *s = state;
    int done = 1;
    if (!s->status)
        gm_half_note(s, gm_stop_status());
    for (int d = 0; d < GM_HALF_WAYS; d++)
        done &= gm_half_advance(s, &s->halves[d]);
    return done;
}

static void fail(void *state, int status)
{
    gm_staged *s = state;
    gm_half_note(s, status);
}

static int end(void *state)
{
    gm_staged *s = state;
    while (!advance(s))
        ;
    for (int d = 0; d < GM_HALF_WAYS && s->status; d++)
        if (s->halves[d].queue)
            s->ops->queue_sync(s->halves[d].queue);
    return s->status;
}

int gm_staged_exchange(gm_staged *s, const gm_exchange_region *send, const gm_exchange_region *receive, gm_event *after,
                       int status)
{
    begin(s, send, receive, after, status);
    return end(s);
}

/* --- The paths --- */

static int open_path_all(const gm_exchange_setup *setup, int is_direct, void **state, char version[GM_PATH_VERSION])
{
    gm_staged *s = NULL;
    int status = gm_staged_open_all(setup->ops, setup->device, setup->ranks, is_direct, &s);
    *state = s;
    version[0] = '\0';
    return gm_agree_all(setup->ranks, status);
}

static int open_staged_all(const gm_exchange_setup *setup, void **state, char version[GM_PATH_VERSION])
{
    return open_path_all(setup, 0, state, version);
}

static int open_ipc_all(const gm_exchange_setup *setup, void **state, char version[GM_PATH_VERSION])
{
    return open_path_all(setup, 1, state, version);
}

static void close_all(void *state)
{
    gm_staged_close_all(state);
}

const gm_path gm_path_staged = {.name = "staged",
                                .kernel = "MPI",
                                .is_through_host = 1,
                                .open_all = open_staged_all,
                                .close_all = close_all,
                                .begin = begin,
                                .advance = advance,
                                .fail = fail,
                                .end = end};

const gm_path gm_path_ipc = {.name = "ipc",
                             .kernel = "copy engine",
                             .is_addressed = 1,
                             .start_s = 0.08,
                             .too_slow = "the exchanges are shorter than opening the memory of others",
                             .open_all = open_ipc_all,
                             .close_all = close_all,
                             .begin = begin,
                             .advance = advance,
                             .fail = fail,
                             .end = end};
