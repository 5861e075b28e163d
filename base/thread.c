/* thread.c - threads beside the main one. */
#include "base/thread.h"

#include <signal.h>

int gm_thread_start_with(const pthread_attr_t *attributes, pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int gm_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    return gm_thread_start_with(NULL, thread, run, argument);
}
