/* pairs.h - copies from the device memory of one rank to that of another, on one host. */
#ifndef GM_SRC_BENCH_MACHINE_PAIRS_H
#define GM_SRC_BENCH_MACHINE_PAIRS_H

#include "src/bench/bench.h"

/* Each ordered pair of devices, then, where all ranks are on one host, all devices at once in a ring. Devices that
 * cannot reach each other have a row without a rate. The status is agreed. Collective. */
int gm_bench_pairs_all(gm_bench *bench);

#endif
