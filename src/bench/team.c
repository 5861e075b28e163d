/* Times ranks that work together. The clocks of hosts differ, and ranks leave a barrier one after the other: the time
 * of a repetition is the longest that any rank measures from the barrier before it to the one after it, which is never
 * less than from the first begin to the last end. An agreement on the status is the barrier, so that a failure or a
 * signal on one rank ends the measurement on all of them. */
#include "src/bench/team.h"

#include "base/clock.h"
#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 8,  /* repetitions between two decisions of rank 0, at most */
    LEAST = 5,  /* repetitions */
    MOST = 200, /* likewise */
    MOST_CALLS = 256,
};
/* No batch begins later; where all tests run; a repetition lasts about as long, so that barriers do not count. */
static const double timing_s = 0.4, brief_s = 0.05, repetition_s = 5e-3, steady_spread = 0.01;

/* A repetition as a rank has seen it. */
typedef struct seen {
    double whole, own, work, before;
    int is_impossible;
} seen;

typedef struct batch {
    seen of[BATCH];
    char host[GM_HOST_MAX];
} batch;

typedef struct team_timing {
    gm_bench *bench;
    const gm_team *team;
    const gm_team_work *work;
    int64_t calls;   /* of a repetition */
    batch own, *all; /* all: [ranks], on rank 0 */
    double *sums;    /* on rank 0: [ranks][2], work and seconds */
    double seconds[MOST];
    int done;
    double nominal; /* work of a repetition */
    int is_impossible;
} team_timing;

int gm_team_has(const gm_team *team, int rank)
{
    return rank >= team->first && rank < team->first + team->count;
}

/* Returns an agreed status. */
static int repeat_all(team_timing *t, seen *s)
{
    const gm_job *job = t->bench->job;
    const gm_team_work *w = t->work;
    int is_member = gm_team_has(t->team, job->ranks->rank), status = GM_OK;
    *s = (seen){0};
    if (is_member && w->prepare)
        status = w->prepare(w->context);
    status = gm_job_agree_all(job, status);
    double from = gm_clock();
    for (int64_t i = 0; i < t->calls && is_member && !status; i++) {
        gm_team_share share = {0};
        status = w->run(w->context, &share);
        s->work += share.work;
        s->before += share.before;
        s->is_impossible |= share.is_impossible;
    }
    s->own = gm_clock() - from + s->before;
    status = gm_job_agree_all(job, status);
    s->whole = gm_clock() - from;
    if (is_member && w->finish)
        w->finish(w->context);
    return status;
}

/* The seconds of repetition i, and of `nominal` work at its rate. Rank 0. */
static double seconds_of(team_timing *t, int i)
{
    double whole = 0, before = 0, work = 0;
    for (int r = 0; r < t->bench->job->ranks->size; r++) {
        const seen *s = &t->all[r].of[i];
        whole = fmax(whole, s->whole);
        before = fmax(before, s->before);
        work += s->work;
        t->is_impossible |= s->is_impossible;
        t->sums[2 * r] += s->work;
        t->sums[2 * r + 1] += s->own;
    }
    t->is_impossible |= work == 0;
    if (t->nominal == 0)
        t->nominal = t->work->work > 0 ? t->work->work : work;
    return work > 0 ? (whole + before) * t->nominal / work : 0;
}

/* Repetitions that follow, 0 for none. Rank 0. */
static int64_t next_batch(const team_timing *t, const gm_bench_timing *timing, double elapsed)
{
    int done = t->done, asked = t->work->repetitions;
    if (t->is_impossible)
        return 0;
    if (asked > 0)
        return gm_min(asked - done, BATCH);
    int going = done < LEAST ||
                (timing->spread >= steady_spread && done < MOST && elapsed < (t->bench->is_brief ? brief_s : timing_s));
    return going ? gm_min(done < LEAST ? LEAST - done : BATCH, MOST - done) : 0;
}

/* `count` repetitions, and what rank 0 makes of them. *next: repetitions that follow. */
static int batch_all(team_timing *t, int64_t count, double from, gm_bench_timing *timing, int64_t *next)
{
    const gm_job *job = t->bench->job;
    int status = GM_OK;
    for (int64_t i = 0; i < count && !status; i++)
        status = repeat_all(t, &t->own.of[i]);
    if (!status)
        status = gm_gather_all(job->ranks, &t->own, sizeof t->own, t->all);
    if (!status && job->ranks->rank == 0) {
        for (int64_t i = 0; i < count; i++)
            t->seconds[t->done++] = seconds_of(t, (int)i);
        gm_bench_summarize(t->seconds, t->done, timing);
        *next = next_batch(t, timing, gm_clock() - from);
    }
    return status ? status : gm_broadcast_all(next, sizeof *next);
}

/* The first repetition loads code and maps pages; a second one shows how many calls a repetition has. */
static int warm_up_all(team_timing *t)
{
    int status = GM_OK;
    seen s = {0};
    for (int i = 0; i < 2 && !status; i++)
        status = repeat_all(t, &s);
    if (!status && s.whole > 0)
        t->calls = gm_max(1, (int64_t)fmin(ceil(repetition_s / s.whole), MOST_CALLS));
    return status ? status : gm_broadcast_all(&t->calls, sizeof t->calls);
}

/* The extreme rates of the ranks that had work. Rank 0. */
static void find_extremes(const team_timing *t, gm_bench_row *row)
{
    for (int r = 0; r < t->bench->job->ranks->size; r++) {
        double rate = t->sums[2 * r + 1] > 0 ? t->sums[2 * r] / t->sums[2 * r + 1] : 0;
        if (rate > 0 && (row->rate_min == 0 || rate < row->rate_min)) {
            row->rate_min = rate;
            row->slow_rank = r;
            memcpy(row->slow_host, t->all[r].host, sizeof row->slow_host);
        }
        row->rate_max = fmax(row->rate_max, rate);
    }
}

static int time_all(team_timing *t, gm_bench_row *row)
{
    gm_bench_timing timing = {.calls = 1};
    int64_t next = t->work->repetitions > 0 ? gm_min(t->work->repetitions, BATCH) : LEAST;
    int status = t->work->repetitions > 0 ? GM_OK : warm_up_all(t);
    double from = gm_clock();
    while (next > 0 && !status)
        status = batch_all(t, next, from, &timing, &next);
    if (status || t->bench->job->ranks->rank != 0)
        return status;
    if (t->is_impossible)
        return GM_OK;
    timing.calls = (int)t->calls;
    timing.median /= (double)t->calls;
    row->timing = timing;
    row->work = t->nominal / (double)t->calls;
    find_extremes(t, row);
    return GM_OK;
}

int gm_team_time_all(gm_bench *bench, const gm_team *team, const gm_team_work *work, gm_bench_row *row)
{
    const gm_ranks *ranks = bench->job->ranks;
    team_timing *t = calloc(1, sizeof *t);
    int status = t ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the times of %d ranks", ranks->size);
    row->ranks = team->count;
    if (!status) {
        t->bench = bench;
        t->team = team;
        t->work = work;
        t->calls = 1;
        memcpy(t->own.host, ranks->host, sizeof t->own.host);
    }
    if (!status && ranks->rank == 0) {
        t->all = calloc((size_t)ranks->size, sizeof *t->all);
        t->sums = calloc((size_t)ranks->size, 2 * sizeof *t->sums);
        if (!t->all || !t->sums)
            status = gm_fail(GM_EDEVICE, "no memory for the times of %d ranks", ranks->size);
    }
    status = gm_job_agree_all(bench->job, status);
    if (!status)
        status = time_all(t, row);
    if (t) {
        free(t->sums);
        free(t->all);
    }
    free(t);
    return status;
}
