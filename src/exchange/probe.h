/* probe.h - does a path carry bytes? Random bytes go the ways of the setup, or around a ring of all ranks in both
 * directions, and are compared on the host. And how fast? */
#ifndef GM_SRC_EXCHANGE_PROBE_H
#define GM_SRC_EXCHANGE_PROBE_H

#include "base/memory.h"
#include "src/exchange/path.h"
#include "src/stream/pool.h"

/* Bytes that a probe needs on the host, and twice on the device. It takes more where there is room. */
enum { GM_PROBE_LEAST = 3 * 8256 + GM_ALLOC_OVERHEAD };

/* shown: takes the device memory, which is freed when the path is closed. GM_EMPI: other bytes arrived, or none within
 * the setup's patience. The status is agreed. Collective. */
int gm_probe_bytes_all(const gm_exchange_setup *setup, const gm_path *path, void *state, gm_pool *shown);

/* gm_exchange_rate_all(). Collective. */
int gm_probe_rate_all(const gm_exchange_setup *setup, const gm_path *path, void *state, gm_pool *shown, double *own,
                      double *least);

#endif
