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

static int add(gm_windows *w, window added)
{
    int room = w->count < w->room ? w->room : 2 * w->room + 8;
    window *windows = room == w->room ? w->windows : realloc(w->windows, (size_t)room * sizeof *windows);
    if (!windows)
        return gm_fail(GM_EDEVICE, "no memory for windows to other ranks");
    w->windows = windows;
    w->room = room;
    w->windows[w->count++] = added;
    return GM_OK;
}

static int open_window(gm_windows *w, int rank, const gm_shared_memory *shared, window *opened)
{
    char why[GM_SHARED_WHY] = "";
    *opened = (window){.rank = rank, .number = shared->number};
    int status = w->ops->open_shared(w->device, shared, &opened->memory, why);
    return status || opened->memory
               ? status
               : gm_fail(GM_EDEVICE,
                         "rank %d does not address the device memory of rank %d: %s; --exchange staged goes through "
                         "the host",
                         w->ranks->rank, rank, why);
}

int gm_windows_find(gm_windows *w, int rank, const gm_shared_memory *shared, void **memory)
{
    window found;
    int i = 0, status = GM_OK;
    while (i < w->count && (w->windows[i].rank != rank || w->windows[i].number != shared->number))
        i++;
    if (i < w->count)
        found = w->windows[i];
    else
        status = open_window(w, rank, shared, &found);
    if (!status && i == w->count)
        status = add(w, found);
    if (status && i == w->count)
        w->ops->close_shared(w->device, found.memory);
    *memory = status ? NULL : (char *)found.memory + shared->offset;
    return status;
}
