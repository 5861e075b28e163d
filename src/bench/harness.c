/* Times the cases of a test. They are called in turn, so that changes of clock, temperature and load meet all of them;
 * a few rounds at a time are enqueued into a queue that is held until all of them are in it. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "src/bench/bench.h"
#include "base/stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 5,      /* in a batch, at most */
    HELD = 24,       /* repetitions of a batch: a queue that is held takes no more events without blocking the host */
    LEAST = 5,       /* repetitions for median and spread */
    MOST = 2000,     /* repetitions of a case */
    MOST_CALLS = 16, /* in a repetition */
    FLUSH_TIMES = 4, /* the size of the flush buffer over that of the cache */
    EVENTS = 2 * ROUNDS * GM_BENCH_CASES,
};
static const double repetition_s = 200e-6; /* a warm repetition lasts at least as long; an event costs about 1 us */
/* No batch begins later: of a GPU; of a processor, whose times hardly get steady; and where all tests run. */
static const double timing_s[2][2] = {{2, 0.15}, {0.4, 0.05}};
static const double steady_spread = 0.01;
static const int64_t usual_cache = 64 << 20; /* if the device reports no size, and on processors, which report one level
                                                only */

int64_t gm_bench_room(const gm_bench *bench)
{
    int64_t room = bench->device_cap - gm_memory_used(GM_DEVICE);
    if (bench->ops->unified)
        room = gm_min(room, bench->host_cap - gm_memory_used(GM_HOST));
    return gm_max(room, 0);
}

static int open_events(gm_bench *bench)
{
    int status = GM_OK;
    bench->events = calloc(EVENTS, sizeof *bench->events);
    bench->seconds = malloc(GM_BENCH_CASES * MOST * sizeof *bench->seconds);
    if (!bench->events || !bench->seconds)
        return gm_fail(GM_EDEVICE, "no memory for the times of the cases");
    for (int i = 0; i < EVENTS && !status; i++)
        status = bench->ops->event_open(bench->device, 1, &bench->events[i]);
    return status;
}

/* Queue, events, and the memory that all tests share. */
static int prepare(gm_bench *bench)
{
    bench->flush_bytes = (size_t)gm_min(FLUSH_TIMES * bench->cache_bytes, gm_bench_room(bench) / 8 / 16 * 16);
    if ((int64_t)bench->flush_bytes < 2 * bench->cache_bytes)
        gm_note("bench: the buffer that flushes the caches is smaller than twice the cache; cold figures may be partly "
                "warm");
    int status = bench->ops->queue_open(bench->device, &bench->queue);
    if (!status)
        status = open_events(bench);
    if (!status)
        status = bench->ops->alloc(bench->device, bench->flush_bytes, &bench->flush);
    if (!status && !bench->ops->unified)
        status = bench->ops->host_alloc(bench->device, GM_BENCH_STAGING, &bench->staging);
    if (!status) /* last: after a failure nothing is at work on memory that is released */
        status = bench->ops->zero(bench->queue, bench->flush, bench->flush_bytes);
    if (!status)
        status = bench->ops->queue_sync(bench->queue);
    return status;
}

int gm_bench_open_all(gm_job *job, gm_bench *bench)
{
    bench->job = job;
    bench->ops = job->ops;
    bench->measure = job->ops->measure;
    bench->device = job->device;
    if (!bench->measure) /* all ranks have devices of one kind */
        return gm_fail(GM_EDEVICE, "bench: not supported on a device of kind %s", job->ops->kind);
    bench->cache_bytes = job->info.l2_bytes > 0 && !job->ops->unified ? job->info.l2_bytes
                                                                      : gm_max(job->info.l2_bytes, usual_cache);
    int status = gm_bench_level_all(bench);
    return status ? status : gm_job_agree_all(job, prepare(bench));
}

int gm_bench_skip(const gm_bench *bench, const char *why)
{
    gm_note("bench %s: not supported on a device of kind %s%s%s", bench->test, bench->ops->kind, why ? ": " : "",
            why ? why : "");
    return GM_OK;
}

void gm_bench_close(gm_bench *bench)
{
    if (bench->staging)
        bench->ops->host_free(bench->device, bench->staging);
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
    for (int i = 0; i < bench->name_count; i++)
        free(bench->names[i]);
    free(bench->names);
    *bench = (gm_bench){0};
}

/* Enqueues one repetition of a case between a pair of events. */
static int put_repetition(gm_bench *bench, const gm_bench_case *c, int flush, int calls, gm_event **pair)
{
    int status = gm_stop_status();
    if (!status && flush)
        status = bench->measure->flush(bench->queue, bench->flush, bench->flush_bytes);
    if (!status)
        status = bench->ops->event_record(pair[0], bench->queue);
    for (int i = 0; i < calls && !status; i++)
        status = c->run(c->context, bench->queue);
    return status ? status : bench->ops->event_record(pair[1], bench->queue);
}

/* The case and the round of repetition i of a batch. In a queue that is held the cases take turns. On a processor each
 * case has a thread pool of its own, whose threads spin for a while after a call and would slow down the next case:
 * there all rounds of a case follow each other. */
static void place(const gm_bench *bench, int i, int count, int rounds, int *which, int *round)
{
    *which = bench->measure->hold ? i % count : i / rounds;
    *round = bench->measure->hold ? i / count : i % rounds;
}

/* Enqueues all repetitions of a batch. */
static int put_batch(gm_bench *bench, const gm_bench_case *cases, int count, int flush, const gm_bench_timing *timings,
                     int rounds)
{
    int status = GM_OK, s, round;
    for (int i = 0; i < rounds * count && !status; i++) {
        place(bench, i, count, rounds, &s, &round);
        if (round == 0 && !bench->measure->hold) /* while the threads of the previous case stop spinning */
            status = cases[s].run(cases[s].context, bench->queue);
        if (!status)
            status = put_repetition(bench, &cases[s], flush, timings[s].calls, &bench->events[2 * i]);
    }
    return status;
}

/* Runs some rounds of all cases; the seconds of their calls follow those of the `done` repetitions. */
static int run_batch(gm_bench *bench, const gm_bench_case *cases, int count, int flush, gm_bench_timing *timings,
                     int rounds, int done)
{
    int held = 0, s, round, holds = bench->measure->hold && !bench->has_loops;
    int status = holds ? bench->measure->hold(bench->queue) : GM_OK;
    if (status)
        return status;
    status = put_batch(bench, cases, count, flush, timings, rounds);
    if (holds) {
        int released = bench->measure->release(bench->queue, &held); /* after a failure too, or the queue stays held */
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

typedef int batch_run(gm_bench *bench, const gm_bench_case *cases, int count, int flush, gm_bench_timing *timings,
                      int rounds, int done);

/* Likewise by the clock of the host, from a call to the end of its work. */
static int run_batch_by_clock(gm_bench *bench, const gm_bench_case *cases, int count, int flush,
                              gm_bench_timing *timings, int rounds, int done)
{
    int status = GM_OK;
    (void)flush, (void)timings;
    for (int i = 0; i < rounds * count && !status; i++) {
        status = gm_stop_status();
        double from = gm_clock();
        if (!status)
            status = cases[i % count].run(cases[i % count].context, bench->queue);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
        bench->seconds[i % count * MOST + done + i / count] = gm_clock() - from;
    }
    return status;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quantile `part` of n sorted numbers, interpolated linearly. */
static double quantile(const double *sorted, int n, double part)
{
    double at = part * (n - 1);
    int below = (int)at;
    return below + 1 < n ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]) : sorted[n - 1];
}

void gm_bench_summarize(const double *seconds, int repetitions, gm_bench_timing *timing)
{
    double sorted[MOST];
    int n = (int)gm_min(repetitions, gm_max(repetitions / 2, LEAST));
    memcpy(sorted, seconds + repetitions - n, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    timing->repetitions = repetitions;
    timing->median = quantile(sorted, n, 0.5);
    timing->spread = timing->median > 0 ? (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25)) / timing->median : 0;
}

/* Calls each case, which loads code, maps pages and raises clocks; then finds the number of calls in a repetition. */
static int warm_up(gm_bench *bench, const gm_bench_case *cases, int count, int flush, gm_bench_timing *timings)
{
    int status = GM_OK;
    for (int s = 0; s < count; s++)
        timings[s] = (gm_bench_timing){.calls = 1, .held = 1};
    for (int s = 0; s < count && !status; s++) {
        status = put_repetition(bench, &cases[s], flush, 1, bench->events);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
    }
    if (!status)
        status = run_batch(bench, cases, count, flush, timings, 1, 0);
    for (int s = 0; s < count; s++) {
        double once = status ? 0 : bench->seconds[s * MOST];
        int calls = once > 0 ? (int)fmin(ceil(repetition_s / once), MOST_CALLS) : MOST_CALLS;
        timings[s] = (gm_bench_timing){.calls = flush ? 1 : calls, .held = 1};
    }
    return status;
}

/* Repeats batches until the times are steady. */
static int repeat(gm_bench *bench, const gm_bench_case *cases, int count, int flush, gm_bench_timing *timings,
                  batch_run *run)
{
    double from = gm_clock(), most = timing_s[bench->ops->unified][bench->is_brief];
    int status = GM_OK, rounds = (int)gm_min(ROUNDS, HELD / count);
    for (int done = 0, going = 1; going && !status;) {
        status = run(bench, cases, count, flush, timings, rounds, done);
        if (status)
            break;
        done += rounds;
        going = done < LEAST;
        for (int s = 0; s < count; s++) {
            gm_bench_summarize(&bench->seconds[s * MOST], done, &timings[s]);
            going |= timings[s].spread >= steady_spread;
        }
        going = going && done + rounds <= MOST && (done < LEAST || gm_clock() - from < most);
    }
    return status;
}

int gm_bench_time(gm_bench *bench, const gm_bench_case *cases, int count, int flush, gm_bench_timing *timings)
{
    if (flush && !bench->measure->flush)
        return gm_fail(GM_EINTERNAL, "bench: a device of kind %s cannot flush its caches", bench->ops->kind);
    int status = warm_up(bench, cases, count, flush, timings);
    status = gm_bench_meet_all(bench, GM_BENCH_TIMES, status);
    return status ? status : repeat(bench, cases, count, flush, timings, run_batch);
}

int gm_bench_time_by_clock(gm_bench *bench, const gm_bench_case *cases, int count, gm_bench_timing *timings)
{
    for (int s = 0; s < count; s++)
        timings[s] = (gm_bench_timing){.calls = 1};
    int status = run_batch_by_clock(bench, cases, count, 0, timings, 1, 0);
    status = gm_bench_meet_all(bench, GM_BENCH_TIMES, status);
    return status ? status : repeat(bench, cases, count, 0, timings, run_batch_by_clock);
}
