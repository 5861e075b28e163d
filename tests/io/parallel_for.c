/* parallel_for.c - the parallel loop: every index once, by the threads that there are, until one fails. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/status.h"
#include "io/parallel_for.h"
#include "tests/tap.h"

enum { COUNT_MAX = 1000, THREADS_MAX = 16 };

static int creatable = THREADS_MAX; /* threads that the system gives */

/* Takes the place of the C library's. */
int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int (*original)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&original = dlsym(RTLD_NEXT, "pthread_create");
    return creatable-- > 0 ? original(id, attributes, start, argument) : EAGAIN;
}

typedef struct loop {
    int threads;
    int64_t fail_at; /* this index fails, and all after it */
    atomic_int done[COUNT_MAX], busy[THREADS_MAX + 1];
    atomic_int wrong, used[THREADS_MAX + 1];
    pthread_t caller;
} loop;

static int work(void *context, int thread, int64_t index)
{
    loop *l = context;
    sigset_t mask;
    if (thread < 0 || (thread >= l->threads && thread > 0))
        return GM_EINTERNAL;
    if (atomic_fetch_add(&l->busy[thread], 1) != 0)
        l->wrong++; /* two at a time under one number */
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!pthread_equal(pthread_self(), l->caller) && !sigismember(&mask, SIGINT))
        l->wrong++; /* signals are for the caller */
    if ((thread == 0) != (pthread_equal(pthread_self(), l->caller) != 0))
        l->wrong++;
    l->used[thread] = 1;
    l->done[index]++;
    if (index % 50 == 0)
        nanosleep(&(struct timespec){0, 500000}, NULL);
    atomic_fetch_sub(&l->busy[thread], 1);
    return index >= l->fail_at ? GM_EINPUT : GM_OK;
}

static int64_t count_done(const loop *l)
{
    int64_t sum = 0;
    for (int i = 0; i < COUNT_MAX; i++)
        sum += l->done[i];
    return sum;
}

static void check_loop(int threads, int64_t count)
{
    static loop l;
    int once = 1, status, used = 0;
    sigset_t mask;
    l = (loop){.threads = threads, .fail_at = COUNT_MAX, .caller = pthread_self()};
    status = gm_parallel_for(threads, count, work, &l);
    for (int i = 0; i < COUNT_MAX; i++)
        once = once && l.done[i] == (i < count);
    for (int i = 0; i <= THREADS_MAX; i++)
        used += l.used[i];
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    tap_ok(status == GM_OK && once && l.wrong == 0, "%d threads, %d indices: each once", threads, (int)count);
    tap_ok(!sigismember(&mask, SIGINT) && used <= (threads > 1 ? threads : 1), "signals stay as they were");
}

static void check_failure(int threads)
{
    static loop l;
    int status;
    l = (loop){.threads = threads, .fail_at = 100, .caller = pthread_self()};
    status = gm_parallel_for(threads, COUNT_MAX, work, &l);
    tap_ok(status == GM_EINPUT && l.wrong == 0, "%d threads: a failure is returned", threads);
    tap_ok(count_done(&l) <= 100 + threads, "and no index is begun after it");
}

int main(void)
{
    static const int64_t counts[] = {0, 1, 2, 7, COUNT_MAX};
    for (int threads = 0; threads <= THREADS_MAX; threads = threads ? 4 * threads : 1)
        for (int i = 0; i < 5; i++) {
            creatable = THREADS_MAX;
            check_loop(threads, counts[i]);
        }
    creatable = THREADS_MAX;
    check_failure(1);
    check_failure(4);
    for (int given = 0; given < 3; given++) {
        creatable = given;
        tap_diag("the system gives %d threads", given);
        check_loop(8, COUNT_MAX);
    }
    return tap_done();
}
