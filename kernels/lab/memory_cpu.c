/* Chains of pointers, by the processor. */
#include "kernels/lab/kinds.h"

int gm_cpu_chain(int threads, const gm_chain_call *call)
{
    const gm_chain_call c = *call;
#pragma omp parallel for num_threads(threads)
    for (int64_t s = 0; s < c.count; s++) {
        char *place = (char *)c.dst + gm_lab_permuted(s, c.count) * c.stride;
        uint64_t link = c.base + (uint64_t)(c.scale * gm_lab_permuted((s + 1) & (c.count - 1), c.count));
        if (c.bytes == 8)
            *(uint64_t *)place = link;
        else
            *(uint32_t *)place = (uint32_t)link;
    }
    return GM_OK;
}

int gm_cpu_chase(int threads, const gm_chase_call *call)
{
    const char *base = call->src, *at = base + *call->state;
    (void)threads;
    for (int64_t s = 0; s < call->steps; s++)
        at = *(const char *const *)at;
    *call->state = (uint64_t)(at - base);
    return GM_OK;
}
