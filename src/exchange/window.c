#include "src/exchange/window.h"

#include "base/status.h"
#include "base/thread.h"

#include <stdlib.h>

/* An allocation of a rank, as this rank's device addresses it. */
typedef struct window {
    int rank, is_pending; /* the thread is to open it */
    gm_shared_memory shared;
    void *memory; /* its begin; NULL: it is not open */
} window;

struct gm_windows {
    const gm_device_ops *ops;
    gm_device *device;
    const gm_ranks *ranks;
    pthread_mutex_t lock; /* of the windows, which stay in their places */
    window *windows;
    int count, room;
    pthread_t thread;
    int has_thread;
};

int gm_windows_open(const gm_device_ops *ops, gm_device *device, const gm_ranks *ranks, gm_windows **windows)
{
    gm_windows *w = *windows = NULL;
    if (ranks->hosts > 1)
        return gm_fail(GM_EDEVICE, "ranks on %d hosts do not address each other's memory", ranks->hosts);
    if (!ops->share)
        return gm_fail(GM_EDEVICE, "a device of kind %s does not share its memory", ops->kind);
    w = *windows = calloc(1, sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "no memory for windows to other ranks");
    *w = (gm_windows){.ops = ops, .device = device, .ranks = ranks};
    pthread_mutex_init(&w->lock, NULL);
    return GM_OK;
}

void gm_windows_close(gm_windows *w)
{
    if (!w)
        return;
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    for (int i = 0; i < w->count; i++)
        w->ops->close_shared(w->device, w->windows[i].memory);
    pthread_mutex_destroy(&w->lock);
    free(w->windows);
    free(w);
}

int gm_windows_show(gm_windows *w, const void *memory, gm_shared_memory *shared)
{
    char why[GM_SHARED_WHY];
    int status = w->ops->share(w->device, memory, shared, why);
    return status || !why[0] ? status : gm_fail(GM_EDEVICE, "device memory of rank %d: %s", w->ranks->rank, why);
}

/* --- The table --- */

static int add(gm_windows *w, window added)
{
    int status = GM_OK;
    pthread_mutex_lock(&w->lock);
    int room = w->count < w->room ? w->room : 2 * w->room + 8;
    window *windows = room == w->room ? w->windows : realloc(w->windows, (size_t)room * sizeof *windows);
    if (windows) {
        w->windows = windows;
        w->room = room;
        w->windows[w->count++] = added;
    } else {
        status = gm_fail(GM_EDEVICE, "no memory for windows to other ranks");
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

/* The window to an allocation, as it is now. Returns its place; -1: there is none. */
static int look_up(gm_windows *w, int rank, int64_t number, window *found)
{
    int i = 0;
    pthread_mutex_lock(&w->lock);
    while (i < w->count && (w->windows[i].rank != rank || w->windows[i].shared.number != number))
        i++;
    if (i < w->count)
        *found = w->windows[i];
    else
        i = -1;
    pthread_mutex_unlock(&w->lock);
    return i;
}

static void set(gm_windows *w, int i, void *memory)
{
    pthread_mutex_lock(&w->lock);
    w->windows[i].memory = memory;
    w->windows[i].is_pending = 0;
    pthread_mutex_unlock(&w->lock);
}

/* --- Opening --- */

/* Opens window i, which is closed. */
static int open_at(gm_windows *w, int i, const window *closed)
{
    char why[GM_SHARED_WHY] = "";
    void *memory = NULL;
    int status = w->ops->open_shared(w->device, &closed->shared, &memory, why);
    set(w, i, memory);
    return status || memory
               ? status
               : gm_fail(GM_EDEVICE,
                         "rank %d does not address the device memory of rank %d: %s; --exchange staged goes through "
                         "the host",
                         w->ranks->rank, closed->rank, why);
}

int gm_windows_find(gm_windows *w, int rank, const gm_shared_memory *shared, void **memory)
{
    window found = {.rank = rank, .shared = *shared};
    int i = look_up(w, rank, shared->number, &found), status = GM_OK;
    if (i < 0) {
        status = add(w, found);
        i = w->count - 1;
    }
    if (!status && !found.is_pending && !found.memory)
        status = open_at(w, i, &found);
    if (!status)
        look_up(w, rank, shared->number, &found);
    *memory = status || !found.memory ? NULL : (char *)found.memory + shared->offset;
    return status;
}

/* The windows that are pending when the thread starts. What fails is tried again when it is needed, and then fails with
 * its message. */
static void *open_pending(void *argument)
{
    gm_windows *w = argument;
    gm_error_hush(1);
    int attached = w->ops->attach(w->device);
    pthread_mutex_lock(&w->lock);
    int count = w->count;
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < count; i++) {
        char why[GM_SHARED_WHY];
        void *memory = NULL;
        pthread_mutex_lock(&w->lock);
        window next = w->windows[i];
        pthread_mutex_unlock(&w->lock);
        if (next.is_pending && !attached)
            w->ops->open_shared(w->device, &next.shared, &memory, why);
        if (next.is_pending)
            set(w, i, memory);
    }
    return NULL;
}

/* Adds a window for each source of this rank. shown: [ranks][count]. */
static int add_pending(gm_windows *w, const gm_shared_memory *shown, const gm_exchange_source *sources, int count)
{
    int status = GM_OK;
    for (int i = 0; i < count && !status; i++) {
        int rank = sources[i].from;
        if (rank >= 0 && shown[rank * count + i].number > 0)
            status = add(w, (window){.rank = rank, .is_pending = 1, .shared = shown[rank * count + i]});
    }
    return status;
}

/* What each rank has to show, on all ranks. Collective. */
static int show_all(gm_windows *w, const gm_exchange_source *sources, int count, gm_shared_memory *mine,
                    gm_shared_memory *shown)
{
    int status = GM_OK;
    for (int i = 0; i < count && !status; i++)
        if (sources[i].memory)
            status = gm_windows_show(w, sources[i].memory, &mine[i]);
    status = gm_agree_all(w->ranks, status);
    return status ? status
                  : gm_agree_all(w->ranks, gm_allgather_all(w->ranks, mine, (size_t)count * sizeof *mine, shown));
}

int gm_windows_expect_all(gm_windows *w, const gm_exchange_source *sources, int count)
{
    gm_shared_memory *mine = calloc((size_t)count, sizeof *mine),
                     *shown = calloc((size_t)(count * w->ranks->size), sizeof *shown);
    int status = mine && shown ? GM_OK : gm_fail(GM_EDEVICE, "no memory for windows to other ranks");
    if (w->has_thread)
        status = gm_fail(GM_EINTERNAL, "the sources of exchanges are expected twice");
    status = gm_agree_all(w->ranks, status);
    if (!status)
        status = show_all(w, sources, count, mine, shown);
    if (!status)
        status = gm_agree_all(w->ranks, add_pending(w, shown, sources, count));
    if (!status)
        w->has_thread = gm_thread_start(&w->thread, open_pending, w) == 0;
    for (int i = 0; i < w->count && !w->has_thread; i++)
        if (w->windows[i].is_pending)
            set(w, i, NULL);
    free(mine);
    free(shown);
    return status;
}
