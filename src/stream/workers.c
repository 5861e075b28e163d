#include "src/stream/workers.h"

#include "base/status.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct gm_workers {
    pthread_mutex_t lock;
    /* The calls that wait for a thread, and one post per thread at the end. A condition would not do: glibc before 2.41
     * may lose a signal where several threads wait (sourceware.org bug 25847). */
    sem_t calls;
    gm_work_on *work;
    void *context;
    struct {
        int job, times;
    } * jobs; /* circular, of max_jobs entries */
    int max_jobs, first, count;
    struct thread {
        gm_workers *workers;
        pthread_t id;
    } * threads;
    int thread_count;
};

static void *run(void *argument)
{
    struct thread *self = argument;
    gm_workers *w = self->workers;
    int number = (int)(self - w->threads);
    for (;;) {
        while (sem_wait(&w->calls))
            ;
        pthread_mutex_lock(&w->lock);
        if (w->count == 0) /* an end: posted after all calls */
            break;
        int job = w->jobs[w->first].job;
        if (--w->jobs[w->first].times == 0) {
            w->first = (w->first + 1) % w->max_jobs;
            w->count--;
        }
        pthread_mutex_unlock(&w->lock);
        w->work(w->context, number, job);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int gm_workers_open(int threads, gm_work_on *work, void *context, int max_jobs, gm_workers **workers)
{
    *workers = NULL;
    gm_workers *w = calloc(1, sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the pool of I/O threads");
    pthread_mutex_init(&w->lock, NULL);
    sem_init(&w->calls, 0, 0);
    w->work = work;
    w->context = context;
    w->max_jobs = max_jobs;
    w->jobs = calloc((size_t)max_jobs, sizeof *w->jobs);
    w->threads = calloc((size_t)threads, sizeof *w->threads);
    if (!w->jobs || !w->threads) {
        gm_workers_close(w);
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the pool of I/O threads");
    }
    int error = 0;

    /* The main thread handles all signals. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; !error && w->thread_count < threads; w->thread_count += !error) {
        struct thread *thread = &w->threads[w->thread_count];
        thread->workers = w;
        error = pthread_create(&thread->id, NULL, run, thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (w->thread_count == 0) {
        gm_workers_close(w);
        return gm_fail(GM_EDEVICE, "cannot create an I/O thread: %s", strerror(error));
    }
    *workers = w;
    return GM_OK;
}

void gm_workers_close(gm_workers *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->thread_count; i++)
        sem_post(&w->calls);
    for (int i = 0; i < w->thread_count; i++)
        pthread_join(w->threads[i].id, NULL);
    sem_destroy(&w->calls);
    pthread_mutex_destroy(&w->lock);
    free(w->jobs);
    free(w->threads);
    free(w);
}

void gm_workers_submit(gm_workers *w, int job, int times)
{
    pthread_mutex_lock(&w->lock);
    int at = (w->first + w->count) % w->max_jobs;
    w->jobs[at].job = job;
    w->jobs[at].times = times;
    w->count++;
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < times; i++)
        sem_post(&w->calls);
}
