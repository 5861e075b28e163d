/* window.h - device memory of other ranks of the host that this rank's device addresses. Opening an allocation takes
 * milliseconds, in which the process can do nothing else with its device, and one after the other on a host: each stays
 * open. */
#ifndef GM_SRC_EXCHANGE_WINDOW_H
#define GM_SRC_EXCHANGE_WINDOW_H

#include "base/device.h"
#include "mpi/ranks.h"

typedef struct gm_windows gm_windows;

/* GM_EDEVICE: the ranks are on several hosts, or the kind of device does not share its memory. */
int gm_windows_open(const gm_device_ops *ops, gm_device *device, const gm_ranks *ranks, gm_windows **windows);

/* Closes what is open, when no copy from it or to it is under way. Its owner frees it when all ranks have done so.
 * Takes NULL. */
void gm_windows_close(gm_windows *windows);

/* Where memory of this rank's device lies, for gm_windows_find() of another rank. GM_EDEVICE. */
int gm_windows_show(gm_windows *windows, const void *memory, gm_shared_memory *shared);

/* Memory of a rank as this rank's device addresses it; opens it if it is not open. GM_EDEVICE. */
int gm_windows_find(gm_windows *windows, int rank, const gm_shared_memory *shared, void **memory);

#endif
