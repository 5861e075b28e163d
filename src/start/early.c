#include "src/start/early.h"

#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "src/start/environment.h"

#include <time.h>

static const long tick_ns = 20000000; /* between looks at signals and other ranks */

static void *run(void *argument)
{
    gm_early *early = argument;
    double from = gm_clock();
    gm_error_hush(1); /* opening the device finds the failure again */
    early->ops->start(early->local_rank);
    pthread_mutex_lock(&early->lock);
    early->seconds = gm_clock() - from;
    early->has_ended = 1;
    pthread_cond_signal(&early->changed);
    pthread_mutex_unlock(&early->lock);
    return NULL;
}

void gm_early_begin(gm_early *early, const gm_device_ops *ops, int local_rank)
{
    *early = (gm_early){.ops = ops, .local_rank = local_rank};
    if (!ops || !ops->start)
        return;
    if (ops->set_environment)
        ops->set_environment(local_rank);
    gm_environment_settle();
    pthread_mutex_init(&early->lock, NULL);
    gm_clock_condition(&early->changed);
    if (gm_thread_start(&early->thread, run, early) == 0)
        early->state = GM_EARLY_RUNS;
}

/* Waits for the end of the start, one tick at most. Returns whether it has come. */
static int wait_tick(gm_early *early)
{
    const struct timespec until = gm_clock_until(tick_ns);
    pthread_mutex_lock(&early->lock);
    if (!early->has_ended)
        pthread_cond_timedwait(&early->changed, &early->lock, &until);
    int has_ended = early->has_ended;
    pthread_mutex_unlock(&early->lock);
    return has_ended;
}

static void join(gm_early *early)
{
    pthread_join(early->thread, NULL);
    pthread_cond_destroy(&early->changed);
    pthread_mutex_destroy(&early->lock);
    early->state = GM_EARLY_JOINED;
}

int gm_early_wait(gm_early *early)
{
    int status = GM_OK;
    while (early->state == GM_EARLY_RUNS && !status) {
        if (wait_tick(early))
            join(early);
        else
            status = gm_stop_status();
    }
    return status;
}

int gm_early_end(gm_early *early)
{
    if (early->state != GM_EARLY_RUNS)
        return 0;
    pthread_mutex_lock(&early->lock);
    int has_ended = early->has_ended;
    pthread_mutex_unlock(&early->lock);
    if (has_ended)
        join(early);
    return !has_ended;
}
