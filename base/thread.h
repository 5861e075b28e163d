/* thread.h - threads beside the main one. */
#ifndef GM_BASE_THREAD_H
#define GM_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked: they are for the main thread. attributes: NULL for the usual ones. Returns
 * 0, or the errno of a failure. */
int gm_thread_start_with(const pthread_attr_t *attributes, pthread_t *thread, void *(*run)(void *), void *argument);
int gm_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
