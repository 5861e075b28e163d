/* probe.h - does a path carry bytes? Random bytes go around a ring of all ranks, in both directions, and are compared
 * on the host. And how fast? */
#ifndef GM_SRC_EXCHANGE_PROBE_H
#define GM_SRC_EXCHANGE_PROBE_H

#include "base/memory.h"
#include "src/exchange/path.h"

/* Bytes that a probe needs on the host, and twice on the device. It takes more where there is room. */
enum { GM_PROBE_LEAST = 3 * 8256 + GM_ALLOC_OVERHEAD };

/* GM_EMPI: other bytes arrived, or none within the setup's patience. The status is agreed. Collective. */
int gm_probe_bytes_all(const gm_exchange_setup *setup, const gm_path *path, void *state);

/* gm_exchange_rate_all(). Collective. */
int gm_probe_rate_all(const gm_exchange_setup *setup, const gm_path *path, void *state, double *own, double *least);

#endif
