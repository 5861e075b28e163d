#include "src/bench/machine/together.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"

enum {
    BATCH = 5, /* repetitions between two agreements, at most */
    LEAST = 5, /* repetitions */
    MOST = 200 /* likewise */
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

int gm_together_is_lonely(const gm_bench *bench)
{
    if (bench->job->ranks->size > 1)
        return 0;
    gm_note("bench %s: needs two ranks or more; mpirun -np 2 gpumem-run bench %s", bench->test, bench->test);
    return 1;
}
