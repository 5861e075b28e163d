/* clock.h - the host's monotonic clock. */
#ifndef GM_BASE_CLOCK_H
#define GM_BASE_CLOCK_H

#include <time.h>

/* Seconds since an arbitrary start. */
static inline double gm_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
