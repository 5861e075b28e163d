#include "src/stream/io_threads.h"

#include "base/status.h"
#include "base/thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

struct gm_io_threads {
    pthread_mutex_t lock;
    /* The calls that wait for a thread, and one post per thread at the end. A condition would not do: glibc before 2.41
     * may lose a signal where several threads wait (sourceware.org bug 25847). */
    sem_t calls;
    gm_io_threads_work *work;
    void *context;
    struct {
        int job, times;
    } * jobs; /* circular, of max_jobs entries */
    int max_jobs, first, count;
    struct thread {
        gm_io_threads *pool;
        pthread_t id;
    } * threads;
    int thread_count;
};

static void *run(void *argument)
{
    struct thread *self = argument;
    gm_io_threads *pool = self->pool;
    int number = (int)(self - pool->threads);
    for (;;) {
        while (sem_wait(&pool->calls))
            ;
        pthread_mutex_lock(&pool->lock);
        if (pool->count == 0) /* an end: posted after all calls */
            break;
        int job = pool->jobs[pool->first].job;
        if (--pool->jobs[pool->first].times == 0) {
            pool->first = (pool->first + 1) % pool->max_jobs;
            pool->count--;
        }
        pthread_mutex_unlock(&pool->lock);
        pool->work(pool->context, number, job);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int gm_io_threads_open(int threads, gm_io_threads_work *work, void *context, int max_jobs, gm_io_threads **out)
{
    *out = NULL;
    gm_io_threads *pool = calloc(1, sizeof *pool);
    if (!pool)
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the pool of I/O threads");
    pthread_mutex_init(&pool->lock, NULL);
    sem_init(&pool->calls, 0, 0);
    pool->work = work;
    pool->context = context;
    pool->max_jobs = max_jobs;
    pool->jobs = calloc((size_t)max_jobs, sizeof *pool->jobs);
    pool->threads = calloc((size_t)threads, sizeof *pool->threads);
    if (!pool->jobs || !pool->threads) {
        gm_io_threads_close(pool);
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the pool of I/O threads");
    }
    int error = 0;
    for (; !error && pool->thread_count < threads; pool->thread_count += !error) {
        struct thread *thread = &pool->threads[pool->thread_count];
        thread->pool = pool;
        error = gm_thread_start(&thread->id, run, thread);
    }
    if (pool->thread_count == 0) {
        gm_io_threads_close(pool);
        return gm_fail(GM_EDEVICE, "cannot create an I/O thread: %s", strerror(error));
    }
    *out = pool;
    return GM_OK;
}

void gm_io_threads_close(gm_io_threads *pool)
{
    if (!pool)
        return;
    for (int i = 0; i < pool->thread_count; i++)
        sem_post(&pool->calls);
    for (int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i].id, NULL);
    sem_destroy(&pool->calls);
    pthread_mutex_destroy(&pool->lock);
    free(pool->jobs);
    free(pool->threads);
    free(pool);
}

void gm_io_threads_submit(gm_io_threads *pool, int job, int times)
{
    pthread_mutex_lock(&pool->lock);
    int at = (pool->first + pool->count) % pool->max_jobs;
    pool->jobs[at].job = job;
    pool->jobs[at].times = times;
    pool->count++;
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < times; i++)
        sem_post(&pool->calls);
}
