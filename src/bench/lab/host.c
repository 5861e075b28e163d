/* Buffers of host memory, filled and compared by all threads. */
#include "src/bench/lab/host.h"

#include "base/memory.h"
#include "base/size.h"
#include "kernels/host.h"

#include <string.h>

enum { PART = 1 << 20 }; /* bytes, of a thread's turn */

void gm_lab_randomize(const gm_bench *bench, void *dst, int64_t bytes)
{
    uint64_t key = gm_random_key(1, 2);
#pragma omp parallel for num_threads(bench->job->threads)
    for (int64_t at = 0; at < bytes; at += PART)
        gm_cpu_random((char *)dst + at, GM_DTYPE_U64, 0, GM_DISTRIBUTION_UNIFORM, key, at / 8,
                      gm_min(bytes - at, PART) / 8);
}

int gm_lab_is_equal(const gm_bench *bench, const void *a, const void *b, int64_t bytes)
{
    int differing = 0;
#pragma omp parallel for num_threads(bench->job->threads) reduction(| : differing)
    for (int64_t at = 0; at < bytes; at += PART)
        differing |= memcmp((const char *)a + at, (const char *)b + at, (size_t)gm_min(bytes - at, PART)) != 0;
    return !differing;
}

int64_t gm_lab_host_room(const gm_bench *bench)
{
    return gm_max(bench->host_cap - gm_memory_used(GM_HOST), 0);
}
