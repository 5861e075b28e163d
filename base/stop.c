#define _GNU_SOURCE 1 /* gettid */
#include "base/stop.h"

#include "base/clock.h"
#include "base/status.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STOPPED "stopped by signal %d (%s): no output is written"
static const double patience = 2; /* seconds until a second signal counts */

static const int signals[] = {SIGUSR2, SIGTERM, SIGINT};
enum { SIGNALS = sizeof signals / sizeof signals[0] };
static char messages[SIGNALS][GM_MESSAGE_MAX]; /* made before a handler needs them */
static volatile sig_atomic_t caught, ended, immediate, speaks_now;
static volatile double caught_at;
static atomic_int abandoned;
static pid_t main_thread;
static int (*peers_cancelled)(void);

static void end_now(int number)
{
    for (int i = 0; i < SIGNALS && speaks_now; i++)
        if (signals[i] == number && write(STDERR_FILENO, messages[i], strlen(messages[i])) < 0)
            break;
    _exit(GM_ESTOPPED);
}

static void on_signal(int number)
{
    if (immediate)
        end_now(number);
    if (!caught) {
        caught_at = gm_clock();
        caught = number;
    } else if (gm_clock() - caught_at >= patience) {
        _exit(GM_ESTOPPED);
    }
}

void gm_stop_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask); /* one handler at a time */
    for (int i = 0; i < SIGNALS; i++) {
        snprintf(messages[i], sizeof messages[i], "gpumem-run: error: " STOPPED "\n", signals[i],
                 strsignal(signals[i]));
        sigaction(signals[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* the write that exceeds the file size limit fails with EFBIG */
}

void gm_stop_set_immediate(int is_immediate, int speaks)
{
    speaks_now = speaks;
    immediate = is_immediate;
    if (immediate && caught)
        end_now((int)caught);
}

int gm_stop_asked(void)
{
    return caught && !ended;
}

int gm_stop_status(void)
{
    if (gm_stop_asked())
        return gm_fail(GM_ESTOPPED, STOPPED, (int)caught, strsignal((int)caught));
    if (ended) /* a peer may hear a signal while this rank completes the output, and say so */
        return GM_OK;
    if (gettid() != main_thread) /* neither other threads nor a forked child may call MPI */
        return atomic_load(&abandoned) ? GM_EPEER : GM_OK;
    return peers_cancelled && peers_cancelled() ? GM_EPEER : GM_OK;
}

void gm_stop_abandon(int is_abandoned)
{
    atomic_store(&abandoned, is_abandoned);
}

void gm_stop_set_peers(int (*cancelled)(void))
{
    main_thread = gettid();
    peers_cancelled = cancelled;
}

void gm_stop_end(void)
{
    ended = 1;
}
