/* worker_window.c - what calls and the driver tell the rank about the worker that they run in. */
#include "io/worker_window.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/size.h"

/* Bytes that a worker may allocate, for any file; more for each byte of metadata that it reads: libhdf5 makes 40 KB of
 * a mapping of a virtual dataset that takes 90 bytes in the file. */
static const int64_t memory_max = INT64_C(1) << 30, memory_per_byte = 512, memory_for_bytes = INT64_C(16) << 30;

/* A worker's own; NULL in any other process. */
static gm_worker_window *window;
/* Bytes of a chunk that a filter decodes in the time that is right for a byte of metadata. */
enum { CHUNK_PER_METADATA = 64 };

static int64_t memory_start, memory_needed, memory_allowed;
static rlim_t memory_hard;

int gm_worker_is_inside(void)
{
    return window != NULL;
}

void gm_worker_progress(void)
{
    if (window)
        window->progress++;
}

void gm_worker_waits(int waits)
{
    if (window)
        window->waits = waits;
}

/* Bytes of this process that count for RLIMIT_DATA; 0 where that is not known. */
static int64_t memory_now(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*s %*s %*s %*s %*s %lld", &pages) != 1)
        pages = 0;
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void limit_memory(void)
{
    struct rlimit limit;
    if (memory_start == 0)
        return;
    limit.rlim_max = memory_hard;
    limit.rlim_cur = (rlim_t)gm_add_sat(memory_start, gm_add_sat(memory_max, gm_max(memory_needed, memory_allowed)));
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_DATA, &limit);
}

void gm_worker_need_chunk(int64_t bytes, int64_t file_bytes)
{
    enum { TIMES = 3, RATIO_MOST = 1024 };
    int64_t needed = gm_mul_sat(TIMES, bytes);
    if (window && bytes / RATIO_MOST <= file_bytes && needed > memory_needed) {
        memory_needed = needed;
        limit_memory();
    }
}

void gm_worker_allow_chunk(int64_t bytes)
{
    if (window)
        window->allowed += gm_min(bytes, memory_needed) / CHUNK_PER_METADATA;
}

void gm_worker_allow(size_t bytes)
{
    enum { STEP = 64 << 20 };
    if (!window)
        return;
    window->allowed += (int64_t)bytes;
    int64_t memory = gm_min(gm_mul_sat(window->allowed, memory_per_byte), memory_for_bytes) / STEP * STEP;
    if (memory > memory_allowed) {
        memory_allowed = memory;
        limit_memory();
    }
}

int gm_worker_is_swollen(void)
{
    return memory_start && memory_now() - memory_start > memory_max / 4;
}

void gm_worker_enter(gm_worker_window *shared)
{
    struct rlimit limit;
    window = shared;
    if (getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur != RLIM_INFINITY) /* the user has a limit */
        return;
    memory_start = memory_now();
    memory_hard = limit.rlim_max;
    limit_memory();
}
