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

/* Threads inside a BLAS call, for the whole process. OpenBLAS on POSIX threads has a number of its own. Its OpenMP
 * flavour takes OpenMP's, which is the calling thread's and belongs to the rest of the program: it is left as it was.
 */
void gm_cpu_blas_threads(int threads);

extern const gm_measure_ops gm_cpu_measure;

#endif
