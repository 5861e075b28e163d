#include "src/bench/machine/together.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/size.h"

#include <string.h>

enum {
    BATCH = 5,         /* repetitions between two agreements, at most */
    LEAST = 5,         /* repetitions */
    MOST = 200,        /* likewise */
    CHECKED = 32 << 10 /* bytes that a thread compares together */
};
static const double batch_s = 0.05, timing_s[2] = {0.2, 0.03 /* all tests run */}, steady_spread = 0.01;

/* Repetitions that follow, 0 for none. Rank 0. */
static int64_t next_batch(const gm_bench *bench, const gm_bench_timing *timing, double elapsed)
{
    int done = timing->repetitions;
    int going = done < LEAST || (timing->spread >= steady_spread && elapsed < timing_s[bench->is_brief]);
    double fit = timing->median > 0 ? batch_s / timing->median : BATCH;
    int64_t batch = fit < BATCH ? gm_max((int64_t)fit, 1) : BATCH;
    return going ? gm_min(batch, MOST - done) : 0;
}

int gm_together_time_all(gm_bench *bench, gm_together *run, const void *context, gm_bench_timing *timing)
{
    double seconds[MOST], from = gm_clock();
    int done = 0, status = GM_OK;
    *timing = (gm_bench_timing){.calls = 1};
    for (int64_t batch = 1; batch > 0 && !status;) {
        for (int64_t i = 0; i < batch; i++) {
            double start = gm_clock();
            status = run(context, status);
            seconds[done++] = gm_clock() - start;
        }
        gm_bench_summarize(seconds, done, timing);
        batch = next_batch(bench, timing, gm_clock() - from);
        status = gm_job_agree_all(bench->job, status);
        if (!status)
            status = gm_broadcast_all(&batch, sizeof batch);
    }
    return status;
}

uint64_t gm_together_key(int rank)
{
    return gm_random_key(3, (uint64_t)rank);
}

int gm_together_is_right(const gm_bench *bench, int rank, int64_t at, int64_t bytes, const char *memory)
{
    const gm_bench_pair source = {.key = gm_together_key(rank)};
    int wrong = 0;
#pragma omp parallel for num_threads(bench->job->threads) reduction(| : wrong)
    for (int64_t i = 0; i < bytes; i += CHECKED) {
        char right[CHECKED];
        gm_bench_pair_source(&source, at + i, gm_min(bytes - i, CHECKED), right);
        wrong |= memcmp(right, memory + i, (size_t)gm_min(bytes - i, CHECKED)) != 0;
    }
    return !wrong;
}

int gm_together_is_lonely(const gm_bench *bench)
{
    if (bench->job->ranks->size > 1)
        return 0;
    gm_note("bench %s: needs two ranks or more; mpirun -np 2 gpumem-run bench %s", bench->test, bench->test);
    return 1;
}
