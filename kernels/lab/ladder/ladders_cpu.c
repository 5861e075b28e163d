/* The steps of the ladders that a processor has. */
#include "kernels/lab/ladder/ladders.h"

/* The squares of elements [first, end). */
static uint32_t squares(const int32_t *src, int64_t first, int64_t end)
{
    uint32_t sum = 0;
    for (int64_t i = first; i < end; i++)
        sum += (uint32_t)(src[i] * src[i]);
    return sum;
}

/* One thread, or all: each the sums of some parts of its own. */
int gm_cpu_reduce_ladder(int threads, const gm_reduce_ladder_call *call)
{
    int sums = gm_reduce_ladder_sums(call);
    if (call->stage != GM_REDUCE_LADDER_ONE && call->stage != GM_REDUCE_LADDER_GRID)
        return gm_fail(GM_EINTERNAL, "ladder of sums: a processor has no step %d", (int)call->stage);
#pragma omp parallel for num_threads(call->stage == GM_REDUCE_LADDER_ONE ? 1 : threads)
    for (int s = 0; s < sums; s++)
        call->out[s] = squares(call->src, call->count * s / sums, call->count * (s + 1) / sums);
    return GM_OK;
}

int gm_cpu_transpose_ladder(int threads, const gm_transpose_ladder_call *call)
{
    int64_t n = call->n;
    if (call->stage != GM_TRANSPOSE_LADDER_NAIVE)
        return gm_fail(GM_EINTERNAL, "ladder of transpositions: a processor has no step %d", (int)call->stage);
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            call->dst[j * n + i] = call->src[i * n + j];
    return GM_OK;
}
