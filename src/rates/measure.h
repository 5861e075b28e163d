/* measure.h - a short measurement of what differs most from machine to machine: the storage of the input, and the
 * exchange between ranks. */
#ifndef GM_SRC_RATES_MEASURE_H
#define GM_SRC_RATES_MEASURE_H

#include "io/dataset.h"
#include "mpi/ranks.h"
#include "src/rates/rates.h"

typedef struct gm_rates_sample {
    const gm_ranks *ranks;
    const gm_device_ops *ops; /* whose memory is exchanged */
    gm_device *device;
    const gm_dataset *input; /* that is read; NULL: none */
    int threads;             /* of this rank, that read */
    double seconds;          /* about as long as it may take */
} gm_rates_sample;

/* Replaces rates by what is measured: one rank of each host reads alone, then all ranks at the same time; then pairs of
 * ranks exchange device memory by the staged path (src/exchange/staged.h), which works everywhere, both ways, all pairs
 * at the same time. A rate that cannot be measured stays as it is, and is no failure: the run itself meets the cause.
 * On a device of its own a rate of reading counts only where it is lower, as the ring reads no faster than a loop of
 * reads without copies. The rates are the same on all ranks. GM_EMPI, GM_ESTOPPED. Collective. */
int gm_rates_measure_all(const gm_rates_sample *sample, gm_rates *rates);

#endif
