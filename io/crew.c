/* crew.c - threads for one piece of work. */
#include "io/crew.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/status.h"

typedef struct crew {
    int (*work)(void *context, int thread, int64_t index);
    void *context;
    int64_t count;
    _Atomic int64_t next;
    atomic_int status;
} crew;

typedef struct hand {
    crew *crew;
    int thread;
    pthread_t id;
} hand;

static void *run(void *argument)
{
    hand *h = argument;
    crew *c = h->crew;

    for (int64_t index; (index = atomic_fetch_add(&c->next, 1)) < c->count && !atomic_load(&c->status);) {
        int status = c->work(c->context, h->thread, index), none = GM_OK;

        if (status)
            atomic_compare_exchange_strong(&c->status, &none, status);
    }
    return NULL;
}

int gm_crew_run(int threads, int64_t count, int (*work)(void *context, int thread, int64_t index), void *context)
{
    crew c = {.work = work, .context = context, .count = count};
    hand *hands, self = {.crew = &c};
    sigset_t all, before;
    int started = 0;

    if (threads > count)
        threads = count > 1 ? (int)count : 1;
    hands = threads > 1 ? malloc((size_t)(threads - 1) * sizeof *hands) : NULL;
    sigfillset(&all); /* signals are for the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; hands && started < threads - 1; started++) {
        hands[started] = (hand){.crew = &c, .thread = started + 1};
        if (pthread_create(&hands[started].id, NULL, run, &hands[started]))
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    run(&self);
    for (int i = 0; i < started; i++)
        pthread_join(hands[i].id, NULL);
    free(hands);
    return atomic_load(&c.status);
}
