#include "src/exchange/window.h"

#include "base/status.h"

#include <stdlib.h>

/* An allocation of a rank, as this rank's device addresses it. */
typedef struct window {
    int rank;
    int64_t number;
    void *memory; /* its begin */
} window;

struct gm_windows {
    const gm_device_ops *ops;
    gm_device *device;
    const gm_ranks *ranks;
    window *windows;
    int count, room;
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
    return GM_OK;
}

void gm_windows_close(gm_windows *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->count; i++)
        w->ops->close_shared(w->device, w->windows[i].memory);
    free(w->windows);
    free(w);
}

int gm_windows_show(gm_windows *w, const void *memory, gm_shared_memory *shared)
{
    char why[GM_SHARED_WHY];
    int status = w->ops->share(w->device, memory, shared, why);
    return status || !why[0] ? status : gm_fail(GM_EDEVICE, "device memory of rank %d: %s", w->ranks->rank, why);
}

static int make_room(gm_windows *w)
{
    int room = w->count < w->room ? w->room : 2 * w->room + 8;
    window *windows = room == w->room ? w->windows : realloc(w->windows, (size_t)room * sizeof *windows);
    if (!windows)
        return gm_fail(GM_EDEVICE, "no memory for windows to other ranks");
    w->windows = windows;
    w->room = room;
    return GM_OK;
}

/* As the last one of the table. */
static int open_window(gm_windows *w, int rank, const gm_shared_memory *shared)
{
    char why[GM_SHARED_WHY] = "";
    window opened = {.rank = rank, .number = shared->number};
    int status = make_room(w);
    if (!status)
        status = w->ops->open_shared(w->device, shared, &opened.memory, why);
    if (!status && !opened.memory)
        status = gm_fail(GM_EDEVICE,
                         "rank %d does not address the device memory of rank %d: %s; --exchange staged goes through "
                         "the host",
                         w->ranks->rank, rank, why);
    if (!status)
        w->windows[w->count++] = opened;
    return status;
}

int gm_windows_find(gm_windows *w, int rank, const gm_shared_memory *shared, void **memory)
{
    int i = 0;
    while (i < w->count && (w->windows[i].rank != rank || w->windows[i].number != shared->number))
        i++;
    int status = i < w->count ? GM_OK : open_window(w, rank, shared);
    *memory = status ? NULL : (char *)w->windows[i].memory + shared->offset;
    return status;
}
