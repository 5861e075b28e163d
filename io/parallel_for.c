/* parallel_for.c - a parallel loop. */
#include "io/parallel_for.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/thread.h"

typedef struct loop {
    int (*work)(void *context, int thread, int64_t index);
    void *context;
    int64_t count;
    _Atomic int64_t next;
    atomic_int status;
} loop;

typedef struct worker {
    loop *loop;
    int thread;
    pthread_t id;
} worker;

static void *run(void *argument)
{
    worker *w = argument;
    loop *l = w->loop;
    for (int64_t index; (index = atomic_fetch_add(&l->next, 1)) < l->count && !atomic_load(&l->status);) {
        int status = l->work(l->context, w->thread, index), none = GM_OK;
        if (status)
            atomic_compare_exchange_strong(&l->status, &none, status);
    }
    return NULL;
}

int gm_parallel_for(int threads, int64_t count, int (*work)(void *context, int thread, int64_t index), void *context)
{
    loop l = {.work = work, .context = context, .count = count};
    worker *workers, self = {.loop = &l};
    int started = 0;
    if (threads > count)
        threads = count > 1 ? (int)count : 1;
    workers = threads > 1 ? malloc((size_t)(threads - 1) * sizeof *workers) : NULL;
    for (; workers && started < threads - 1; started++) {
        workers[started] = (worker){.loop = &l, .thread = started + 1};
        if (gm_thread_start(&workers[started].id, run, &workers[started]))
            break;
    }
    run(&self);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].id, NULL);
    free(workers);
    return atomic_load(&l.status);
}
