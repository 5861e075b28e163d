/* clock.h - the host's monotonic clock, and waiting by it. */
#ifndef GM_BASE_CLOCK_H
#define GM_BASE_CLOCK_H

#include <pthread.h>
#include <time.h>

/* Seconds since an arbitrary start. */
static inline double gm_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A condition whose timed waits are by this clock: a step of the system's time does not change them. */
static inline void gm_clock_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Until when such a wait lasts that begins now. */
static inline struct timespec gm_clock_until(long nanoseconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += nanoseconds;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

#endif
