/* The start of a device on a thread: one that ends when it is let, one that fails, one that hangs when a signal comes.
 */
#include "src/start/early.h"

#include "base/stop.h"
#include "tests/tap.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct timespec pause_time = {0, 100000000};
static sem_t released; /* one start may end */
static int prepared, started, is_blocked, has_no_thread;
static atomic_int is_over;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    return has_no_thread ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

static void set_environment(int local_rank)
{
    prepared = local_rank;
    setenv("GM_TEST_PREPARED", "1", 1);
}

static void wait_for_release(void)
{
    while (sem_wait(&released))
        ;
}

static void start_slowly(int local_rank)
{
    sigset_t mask;
    started = local_rank;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    is_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR2);
    wait_for_release();
    atomic_store(&is_over, 1);
}

static void start_badly(int local_rank)
{
    gm_fail(GM_EDEVICE, "planted: device %d does not start", local_rank);
}

static void start_never(int local_rank)
{
    (void)local_rank;
    wait_for_release();
}

/* Lets a start end in a while. */
static void *release(void *nothing)
{
    nanosleep(&pause_time, NULL);
    sem_post(&released);
    return nothing;
}

/* Does the start go on for seconds after it may end? */
static int goes_on(gm_early *early)
{
    int is_on = gm_early_end(early);
    for (int i = 0; i < 200 && is_on; i++) {
        nanosleep(&pause_time, NULL);
        is_on = gm_early_end(early);
    }
    return is_on;
}

static const gm_device_ops none = {.kind = "none"},
                           slowly = {.kind = "slow", .set_environment = set_environment, .start = start_slowly},
                           badly = {.kind = "bad", .start = start_badly},
                           never = {.kind = "never", .start = start_never};

static void test_nothing(void)
{
    gm_early early;
    memset(&early, 0, sizeof early);
    tap_ok(gm_early_wait(&early) == GM_OK && !gm_early_end(&early), "nothing begun: nothing to wait for");
    gm_early_begin(&early, NULL, 0);
    tap_ok(gm_early_wait(&early) == GM_OK && !gm_early_end(&early), "no kind of device: the same");
    gm_early_begin(&early, &none, 0);
    tap_ok(gm_early_wait(&early) == GM_OK && !gm_early_end(&early), "one that takes no time: the same");
    has_no_thread = 1;
    started = -9;
    gm_early_begin(&early, &slowly, 1);
    has_no_thread = 0;
    tap_ok(gm_early_wait(&early) == GM_OK && !gm_early_end(&early) && started == -9, "no thread to be had: the same");
}

static void test_slow(void)
{
    static const struct {
        const char *what;
        int rank;
    } cases[] = {{"rank 3 of the host", 3}, {"rank unknown", GM_LOCAL_UNKNOWN}, {"all devices", GM_LOCAL_ALL}};
    gm_early early;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pthread_t thread;
        prepared = started = -9;
        atomic_store(&is_over, 0);
        gm_early_begin(&early, &slowly, cases[i].rank);
        tap_ok(!atomic_load(&is_over) && gm_early_end(&early), "%s: beginning does not wait", cases[i].what);
        tap_ok(prepared == cases[i].rank, "%s: its environment is set before: %d", cases[i].what, prepared);
        if (__real_pthread_create(&thread, NULL, release, NULL))
            abort();
        int status = gm_early_wait(&early);
        pthread_join(thread, NULL);
        tap_ok(!status && atomic_load(&is_over) && early.seconds > 0 && started == cases[i].rank,
               "%s: the wait lasts until the device has started (%.3f s)", cases[i].what, early.seconds);
        tap_ok(is_blocked, "%s: its thread has no signals", cases[i].what);
        tap_ok(gm_early_wait(&early) == GM_OK && !gm_early_end(&early), "%s: a second wait has nothing to do",
               cases[i].what);
    }
    gm_early_begin(&early, &slowly, 0);
    sem_post(&released);
    tap_ok(!goes_on(&early), "a start that has ended unwatched keeps nothing");
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    tap_ok(!sigismember(&mask, SIGTERM), "the main thread has its signals");
}

static void test_failure(void)
{
    gm_early early;
    gm_error error;
    gm_error_clear();
    gm_early_begin(&early, &badly, 0);
    int status = gm_early_wait(&early);
    gm_error_get(&error);
    tap_ok(!status && error.code == GM_OK, "a failure is left to who opens the device: %s",
           error.code ? error.text : "no message");
}

/* The last one: the signal stays. */
static void test_signal(void)
{
    gm_early early;
    gm_stop_install();
    gm_early_begin(&early, &never, 0);
    raise(SIGTERM);
    tap_ok(gm_early_wait(&early) == GM_ESTOPPED, "a signal ends the wait for a start that hangs");
    tap_ok(gm_early_end(&early), "which goes on");
    sem_post(&released);
    tap_ok(!goes_on(&early), "until it ends");
    gm_error_clear();
}

int main(void)
{
    sem_init(&released, 0, 0);
    test_nothing();
    test_slow();
    test_failure();
    test_signal();
    return tap_done();
}
