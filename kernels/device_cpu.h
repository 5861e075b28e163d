/* device_cpu.h - inside the CPU device: what its parts know of each other. */
#ifndef GM_KERNELS_DEVICE_CPU_H
#define GM_KERNELS_DEVICE_CPU_H

#include "kernels/bench/measure.h"
#include "kernels/ledger.h"

struct gm_device {
    int threads;
    gm_ledger memory;
};

struct gm_queue {
    gm_device *device;
};

extern const gm_measure_ops gm_cpu_measure;

#endif
