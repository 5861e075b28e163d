/* The clock of bench. The subjects are called in turn, so that they meet the same moods of the machine; a few rounds at a time are put into a
 * queue that is held back until all of them are there. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "src/bench.h"
#include "src/stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 5,        /* of a batch: with all calls of it fewer launches than a queue takes before its host must wait */
    LEAST = 5,         /* repetitions that median and spread are made of */
    MOST = 2000,       /* repetitions of a subject */
    MOST_CALLS = 16,   /* in a repetition */
    FLUSH_TIMES = 4,   /* the cache */
    EVENTS = 2 * ROUNDS * GM_BENCH_SUBJECTS,
};
static const double repetition_s = 200e-6; /* warm repetitions last at least so long: an event costs about one of them */
static const double patience_s = 2, steady = 0.01;
static const int64_t usual_cache = 64 << 20; /* for a device that does not tell; processors tell of one level only */

int64_t gm_bench_room(const gm_bench *bench)
{
    int64_t room = gm_memory_cap(GM_DEVICE) - gm_memory_used(GM_DEVICE);
    if (bench->ops->unified)
        room = gm_min(room, gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST));
    return gm_max(room, 0);
}

static int open_events(gm_bench *bench)
{
    int status = GM_OK;
    bench->events = calloc(EVENTS, sizeof *bench->events);
    bench->seconds = malloc(GM_BENCH_SUBJECTS * MOST * sizeof *bench->seconds);
    if (!bench->events || !bench->seconds)
        return gm_fail(GM_EDEVICE, "no memory for the clock");
    for (int i = 0; i < EVENTS && !status; i++)
        status = bench->ops->event_open(bench->device, &bench->events[i]);
    return status;
}

int gm_bench_open(gm_job *job, gm_bench *bench)
{
    *bench = (gm_bench){.job = job, .ops = job->ops, .measure = job->ops->measure, .device = job->device};
    if (!bench->measure)
        return gm_fail(GM_EDEVICE, "bench: not supported on a device of kind %s", job->ops->kind);
    bench->cache_bytes = job->info.l2_bytes > 0 && !job->ops->unified ? job->info.l2_bytes : gm_max(job->info.l2_bytes, usual_cache);
    bench->flush_bytes = (size_t)gm_min(FLUSH_TIMES * bench->cache_bytes, gm_bench_room(bench) / 8 / 16 * 16);
    if ((int64_t)bench->flush_bytes < 2 * bench->cache_bytes)
        gm_note("bench: memory to empty the caches is short: cold figures are not quite cold");
    int status = bench->ops->queue_open(bench->device, &bench->queue);
    if (!status)
        status = open_events(bench);
    if (!status)
        status = bench->ops->alloc(bench->device, bench->flush_bytes, &bench->flush);
    if (!status)
        status = bench->ops->zero(bench->queue, bench->flush, bench->flush_bytes);
    if (!status && !bench->ops->unified)
        status = bench->ops->pin(bench->device, GM_BENCH_STAGING, &bench->staging);
    if (!status)
        status = bench->ops->queue_sync(bench->queue);
    return status;
}

void gm_bench_close(gm_bench *bench)
{
    if (bench->staging)
        bench->ops->unpin(bench->device, bench->staging);
    if (bench->flush)
        bench->ops->free(bench->device, bench->flush);
    for (int i = 0; bench->events && i < EVENTS; i++)
        if (bench->events[i])
            bench->ops->event_close(bench->events[i]);
    if (bench->queue)
        bench->ops->queue_close(bench->queue);
    free(bench->events);
    free(bench->seconds);
    free(bench->rows);
    *bench = (gm_bench){0};
}

/* One repetition of a subject between a pair of events. */
static int put_repetition(gm_bench *bench, const gm_subject *subject, gm_heat heat, int calls, gm_event **pair)
{
    int status = GM_OK;
    if (heat == GM_COLD)
        status = bench->measure->flush(bench->queue, bench->flush, bench->flush_bytes);
    if (!status)
        status = bench->ops->event_record(pair[0], bench->queue);
    for (int i = 0; i < calls && !status; i++)
        status = subject->run(subject->context, bench->queue);
    return status ? status : bench->ops->event_record(pair[1], bench->queue);
}

/* Where repetition i of a batch belongs. In a queue that is held back the subjects take turns call by call. A processor's subjects have threads of
 * their own each, which turn on the spot for a while after a call and would slow down the next subject: there each has its rounds in one go. */
static void place(const gm_bench *bench, int i, int count, int rounds, int *subject, int *round)
{
    *subject = bench->measure->hold ? i % count : i / rounds;
    *round = bench->measure->hold ? i / count : i % rounds;
}

/* All repetitions of a batch, into the queue. */
static int put_batch(gm_bench *bench, const gm_subject *subjects, int count, gm_heat heat, const gm_timing *timings, int rounds)
{
    int status = GM_OK, s, round;
    for (int i = 0; i < rounds * count && !status; i++) {
        place(bench, i, count, rounds, &s, &round);
        if (round == 0 && !bench->measure->hold)
            status = subjects[s].run(subjects[s].context, bench->queue); /* while the others' threads fall asleep */
        if (!status)
            status = put_repetition(bench, &subjects[s], heat, timings[s].calls, &bench->events[2 * i]);
    }
    return status;
}

/* Some rounds of all subjects; seconds of a call are written behind the `done` repetitions that there are. */
static int run_batch(gm_bench *bench, const gm_subject *subjects, int count, gm_heat heat, gm_timing *timings, int rounds, int done)
{
    int held = 0, s, round;
    int status = bench->measure->hold ? bench->measure->hold(bench->queue) : GM_OK;
    if (status)
        return status;
    status = put_batch(bench, subjects, count, heat, timings, rounds);
    if (bench->measure->hold) {
        int released = bench->measure->release(bench->queue, &held); /* whatever happened: nothing must wait for it */
        status = status ? status : released;
    }
    int synced = bench->ops->queue_sync(bench->queue);
    status = status ? status : synced;
    for (int i = 0; i < rounds * count && !status; i++) {
        place(bench, i, count, rounds, &s, &round);
        double *seconds = &bench->seconds[s * MOST + done + round];
        status = bench->ops->event_seconds(bench->events[2 * i], bench->events[2 * i + 1], seconds);
        *seconds /= timings[s].calls;
    }
    for (s = 0; s < count; s++)
        timings[s].held = timings[s].held && held;
    return status;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which this part of n sorted numbers lies, between neighbours in proportion. */
static double quantile(const double *sorted, int n, double part)
{
    double at = part * (n - 1);
    int below = (int)at;
    return below + 1 < n ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]) : sorted[n - 1];
}

static void judge(const double *seconds, int repetitions, gm_timing *timing)
{
    double sorted[MOST];
    int n = (int)gm_min(repetitions, gm_max(repetitions / 2, LEAST));
    memcpy(sorted, seconds + repetitions - n, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    timing->repetitions = repetitions;
    timing->median = quantile(sorted, n, 0.5);
    timing->spread = timing->median > 0 ? (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25)) / timing->median : 0;
}

/* Loads code, makes pages and wakes clocks; then finds how many calls make a repetition long enough. */
static int warm_up(gm_bench *bench, const gm_subject *subjects, int count, gm_heat heat, gm_timing *timings)
{
    int status = GM_OK;
    for (int s = 0; s < count; s++)
        timings[s] = (gm_timing){.calls = 1, .held = 1};
    for (int s = 0; s < count && !status; s++) {
        status = put_repetition(bench, &subjects[s], heat, 1, bench->events);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
    }
    if (!status)
        status = run_batch(bench, subjects, count, heat, timings, 1, 0);
    for (int s = 0; s < count; s++) {
        double once = status ? 0 : bench->seconds[s * MOST];
        int calls = once > 0 ? (int)fmin(ceil(repetition_s / once), MOST_CALLS) : MOST_CALLS;
        timings[s] = (gm_timing){.calls = heat == GM_COLD ? 1 : calls, .held = 1};
    }
    return status;
}

int gm_bench_time(gm_bench *bench, const gm_subject *subjects, int count, gm_heat heat, gm_timing *timings)
{
    if (heat == GM_COLD && !bench->measure->flush)
        return gm_fail(GM_EINTERNAL, "bench: no way to empty the caches of a device of kind %s", bench->ops->kind);
    int status = warm_up(bench, subjects, count, heat, timings);
    double from = gm_clock();
    for (int done = 0, going = 1; going && !status;) {
        status = gm_stop_status();
        if (!status)
            status = run_batch(bench, subjects, count, heat, timings, ROUNDS, done);
        if (status)
            break;
        done += ROUNDS;
        going = 0;
        for (int s = 0; s < count; s++) {
            judge(&bench->seconds[s * MOST], done, &timings[s]);
            going |= timings[s].spread >= steady;
        }
        going = going && done + ROUNDS <= MOST && gm_clock() - from < patience_s;
    }
    return status;
}
