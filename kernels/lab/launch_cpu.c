/* Empty regions of OpenMP. */
#include "kernels/lab/calls.h"

int gm_cpu_launches(int threads, const gm_launches_call *call)
{
    for (int64_t i = 0; i < call->count; i++) {
#pragma omp parallel num_threads(threads)
        __asm__ volatile(""); /* a region without a statement might be removed */
    }
    return GM_OK;
}
