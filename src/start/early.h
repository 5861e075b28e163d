/* early.h - the start of a device on a thread of its own, while MPI starts and files are described. */
#ifndef GM_SRC_START_EARLY_H
#define GM_SRC_START_EARLY_H

#include "base/device.h"

#include <pthread.h>

/* All 0: nothing was begun. It must last as long as the process, or until gm_early_end() has returned 0. */
typedef struct gm_early {
    const gm_device_ops *ops;
    int local_rank;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int has_ended; /* under the lock */
    double seconds;
    enum { GM_EARLY_NONE, GM_EARLY_RUNS, GM_EARLY_JOINED } state;
} gm_early;

/* Begins the start of a kind of device (gm_device_ops: set_environment, start) for the rank of this number on its host,
 * or GM_LOCAL_...; nothing where ops is NULL or of a kind that takes no time. If no thread can be created, nothing is
 * begun either, and the device starts when it is opened. Called on the main thread, while no other one looks at the
 * environment: what the device finds there is set here. */
void gm_early_begin(gm_early *early, const gm_device_ops *ops, int local_rank);

/* Waits until the start has ended, with success or without: opening the device finds its failure again. GM_ESTOPPED,
 * GM_EPEER: a signal, or another rank that has failed, ended the wait, and the start goes on. Not collective. */
int gm_early_wait(gm_early *early);

/* Does the start still go on? Then nothing but _exit() ends the process for sure: handlers of exit() may wait for it.
 */
int gm_early_end(gm_early *early);

#endif
