/* Signals that ask the program to stop: the first is noted, a second counts two seconds later, and none after the
 * result is complete. Each case in a process of its own. */
#include "base/stop.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "tests/tap.h"

enum { DONE = 3, TOO_LATE = 4 };

static void wait_seconds(double seconds)
{
    double from = gm_clock();
    while (gm_clock() - from < seconds) /* a signal ends a sleep */
        usleep(10000);
}

static int first_is_noted(void)
{
    gm_error error;
    if (gm_stop_asked() || gm_stop_status())
        return 1;
    raise(SIGTERM);
    int status = gm_stop_status();
    gm_error_get(&error);
    return gm_stop_asked() && status == GM_ESTOPPED && strstr(error.text, "signal 15") ? DONE : 1;
}

static int twice_at_once(void)
{
    double from = gm_clock();
    raise(SIGTERM);
    raise(SIGINT);
    wait_seconds(0.5);
    if (gm_clock() - from > 1.5) /* on a busy machine */
        return TOO_LATE;
    raise(SIGUSR2);
    return gm_stop_status() == GM_ESTOPPED ? DONE : 1;
}

static int twice_in_time(void)
{
    raise(SIGTERM);
    wait_seconds(2.1);
    raise(SIGTERM);
    return 1;
}

static int after_the_end(void)
{
    raise(SIGTERM);
    gm_stop_end();
    return !gm_stop_asked() && gm_stop_status() == GM_OK ? DONE : 1;
}

static int always(void)
{
    return 1;
}

static int peers(void)
{
    gm_stop_set_peers(always);
    int here = gm_stop_status();
    pid_t child = fork();
    if (child == 0)
        _exit(gm_stop_status());
    int state;
    return waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == GM_OK && here == GM_EPEER
               ? DONE
               : 1;
}

static void *ask(void *status)
{
    *(int *)status = gm_stop_status();
    return NULL;
}

static int abandoned(void)
{
    pthread_t thread;
    int there[2] = {-1, -1};
    gm_stop_set_peers(NULL);
    for (int i = 0; i < 2; i++) {
        gm_stop_abandon(!i);
        if (gm_stop_status() || pthread_create(&thread, NULL, ask, &there[i]) || pthread_join(thread, NULL))
            return 1;
    }
    return there[0] == GM_EPEER && there[1] == GM_OK ? DONE : 1;
}

static int peers_after_the_end(void)
{
    gm_stop_set_peers(always);
    gm_stop_end();
    return gm_stop_status() == GM_OK ? DONE : 1;
}

static int code_of(int (*body)(void))
{
    int state;
    pid_t child = fork();
    if (child == 0) {
        gm_stop_install();
        _exit(body());
    }
    return waitpid(child, &state, 0) == child && WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

int main(void)
{
    tap_ok(code_of(first_is_noted) == DONE, "a signal is noted, with its number");
    int code = TOO_LATE;
    for (int i = 0; i < 20 && code == TOO_LATE; i++)
        code = code_of(twice_at_once);
    tap_ok(code == DONE, "others within two seconds are the same request");
    tap_ok(code_of(twice_in_time) == GM_ESTOPPED, "one after two seconds ends the process with 75");
    tap_ok(code_of(after_the_end) == DONE, "none counts when the result is complete");
    tap_ok(code_of(peers) == DONE, "other ranks are asked for on the main thread, and not in a forked child");
    tap_ok(code_of(peers_after_the_end) == DONE, "and not when the result is complete");
    tap_ok(code_of(abandoned) == DONE, "other threads learn that the run is abandoned, the main thread does not");
    return tap_done();
}
