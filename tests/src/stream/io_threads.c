/* The pool of I/O threads: order, number of calls, concurrency, signals, and threads that cannot be created. The linker
 * replaces pthread_create() by the one below (-Wl,--wrap). */
#include "src/stream/io_threads.h"
#include "tests/tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { JOBS = 100, THREADS = 64 };

static int creations_left = -1; /* until pthread_create() fails; -1: it does not */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    if (creations_left == 0)
        return EAGAIN;
    creations_left -= creations_left > 0;
    return __real_pthread_create(thread, attributes, start, argument);
}

typedef struct record {
    atomic_int calls[JOBS], done;
    int order[JOBS], ordered; /* for a pool of one thread */
    atomic_int running, most_running;
    atomic_int is_used[THREADS], shared; /* numbers of threads; calls by two threads of the same number */
    atomic_int unblocked;                /* calls in which a signal could arrive */
} record;

static void note(void *context, int thread, int job)
{
    record *r = context;
    if (atomic_exchange(&r->is_used[thread], 1))
        r->shared++;
    r->calls[job]++;
    r->done++;
    r->is_used[thread] = 0;
}

static void note_order(void *context, int thread, int job)
{
    record *r = context;
    if (r->ordered < JOBS)
        r->order[r->ordered++] = job;
    note(context, thread, job);
}

static void nap(long nanoseconds)
{
    nanosleep(&(struct timespec){0, nanoseconds}, NULL);
}

static int counts_are(const record *r, int jobs, int calls)
{
    int wrong = 0;
    for (int i = 0; i < jobs; i++)
        wrong += r->calls[i] != calls;
    return wrong == 0;
}

static void test_order(void)
{
    record r = {.ordered = 0};
    gm_io_threads *pool;
    int status = gm_io_threads_open(1, note_order, &r, JOBS, &pool), wrong = 0;
    for (int i = 0; i < JOBS / 2 && !status; i++)
        gm_io_threads_submit(pool, JOBS - 1 - i, 2);
    gm_io_threads_close(pool);
    for (int i = 0; i < JOBS; i++)
        wrong += r.order[i] != JOBS - 1 - i / 2;
    tap_ok(status == GM_OK && r.done == JOBS && !wrong, "one thread calls jobs in the order of submission, each twice");
}

static void test_counts(void)
{
    for (int threads = 1; threads <= 16; threads *= 4)
        for (int times = 1; times <= 20; times += 19) {
            record r = {.ordered = 0};
            gm_io_threads *pool;
            int status = gm_io_threads_open(threads, note, &r, JOBS, &pool);
            for (int i = 0; i < JOBS && !status; i++)
                gm_io_threads_submit(pool, i, times);
            gm_io_threads_close(pool);
            tap_ok(status == GM_OK && counts_are(&r, JOBS, times),
                   "%d threads: closing completes all jobs, each called %d times", threads, times);
        }
}

/* A queue of two entries is used again and again, as entries leave it. */
static void test_small_queue(void)
{
    record r = {.ordered = 0};
    gm_io_threads *pool;
    int status = gm_io_threads_open(3, note, &r, 2, &pool);
    for (int i = 0; i < JOBS && !status; i += 2) {
        gm_io_threads_submit(pool, i, 3);
        gm_io_threads_submit(pool, i + 1, 3);
        while (r.done < 3 * (i + 2))
            nap(10000);
    }
    gm_io_threads_close(pool);
    tap_ok(status == GM_OK && counts_are(&r, JOBS, 3) && !r.shared, "a queue of two entries carries %d jobs", JOBS);
}

/* Returns only when as many calls run as the pool has threads, or after ten seconds. */
static void meet(void *context, int thread, int threads)
{
    (void)thread;
    record *r = context;
    int running = ++r->running, most = r->most_running;
    while (running > most && !atomic_compare_exchange_weak(&r->most_running, &most, running))
        ;
    for (int i = 0; i < 10000 && r->most_running < threads; i++)
        nap(1000000);
    r->running--;
}

static void test_concurrency(void)
{
    record r = {.ordered = 0};
    gm_io_threads *pool;
    int status = gm_io_threads_open(6, meet, &r, 1, &pool);
    if (!status)
        gm_io_threads_submit(pool, 6, 6);
    gm_io_threads_close(pool);
    tap_ok(status == GM_OK && r.most_running == 6, "six threads run the calls of one job at the same time");
}

static void note_mask(void *context, int thread, int job)
{
    record *r = context;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    r->unblocked += !sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGINT) || !sigismember(&mask, SIGUSR2);
    note(context, thread, job);
}

static void test_signals(void)
{
    record r = {.ordered = 0};
    sigset_t mask;
    gm_io_threads *pool;
    int status = gm_io_threads_open(4, note_mask, &r, JOBS, &pool);
    for (int i = 0; i < JOBS && !status; i++)
        gm_io_threads_submit(pool, i, 1);
    gm_io_threads_close(pool);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    tap_ok(r.done == JOBS && r.unblocked == 0, "signals are blocked on the pool's threads");
    tap_ok(!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGUSR2), "and not on the thread that opened it");
}

static void test_failing_creation(void)
{
    record r = {.ordered = 0};
    gm_io_threads *pool;
    gm_error error;
    creations_left = 0;
    int status = gm_io_threads_open(4, note, &r, JOBS, &pool);
    gm_error_get(&error);
    tap_ok(status == GM_EDEVICE && !pool && strstr(error.text, "cannot create an I/O thread: "),
           "no thread can be created: a failure with a message");
    gm_error_clear();

    creations_left = 2;
    status = gm_io_threads_open(5, meet, &r, 2, &pool);
    creations_left = -1;
    if (!status)
        gm_io_threads_submit(pool, 2, 5);
    gm_io_threads_close(pool);
    gm_error_get(&error);
    tap_ok(status == GM_OK && error.code == GM_OK && r.most_running == 2 && r.running == 0,
           "two threads of five can be created: the pool has two");
}

int main(void)
{
    gm_io_threads_close(NULL);
    test_order();
    test_counts();
    test_small_queue();
    test_concurrency();
    test_signals();
    test_failing_creation();
    return tap_done();
}
