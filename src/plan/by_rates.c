#include "src/plan/plan.h"

#include "base/memory.h"
#include "src/rates/measure.h"

#include <math.h>
#include <string.h>

static int work_of(const void *context, int rank, gm_work *passes)
{
    const gm_run *run = context;
    return run->operation->work(run, rank, passes);
}

gm_expectation gm_plan_expect(const gm_run *run)
{
    gm_expectation expectation;
    gm_work_expect(&run->job->rates, work_of, run, &expectation);
    return expectation;
}

static int64_t source_files(const gm_run *run)
{
    int64_t files = 0;
    for (int i = 0; i < run->shape.inputs; i++)
        files += run->input[i].source_files;
    return files;
}

int gm_plan_set_rates_all(const gm_run *run)
{
    gm_job *job = run->job;
    gm_rates_setting setting = {.device = &job->info,
                                .ops = job->ops,
                                .handle = job->device,
                                .kernel = gm_kernel_find(job->options->kernel),
                                .path = job->options->exchange,
                                .unified = job->ops->unified,
                                .threads = job->threads,
                                .ranks = job->ranks->size,
                                .hosts = job->ranks->hosts,
                                .sharers = job->sharers,
                                .writes = run->shape.outputs > 0,
                                .parts = strcmp(job->options->output_layout, "parts") == 0,
                                .source_files = source_files(run)};
    gm_rates_default(&setting, &job->rates);
    if (job->model.nodes)
        gm_model_set_rates(&job->model, &job->rates);
    return gm_job_agree_all(job, gm_broadcast_all(&job->rates, sizeof job->rates));
}

/* The time that a measurement of the rates may take; 0 where its figures are not wanted, or the run too short. */
static double measurement_of(const gm_run *run)
{
    const double part = 0.02, most = 0.05; /* of the run; seconds */
    if (!run->job->options->plan && (!run->operation->by_rates || run->job->ranks->size == 1))
        return 0;
    double seconds = gm_plan_expect(run).seconds;
    return seconds < 1 ? 0 : fmin(part * seconds, most);
}

static int plan_by_rates_all(gm_run *run)
{
    gm_job *job = run->job;
    int status = gm_plan_set_rates_all(run);
    if (!status)
        status = gm_plan_all(run);
    if (status)
        return status;
    const gm_dataset *first = run->shape.inputs && run->input[0].direct ? &run->input[0] : NULL;
    gm_rates_sample sample = {
        .ranks = job->ranks, .ops = job->ops, .device = job->device, .input = first, .threads = job->threads};
    sample.seconds = job->ranks->rank == 0 ? measurement_of(run) : 0;
    status = gm_job_agree_all(job, gm_broadcast_all(&sample.seconds, sizeof sample.seconds));
    if (status || sample.seconds <= 0)
        return status;
    const gm_rates nominal = job->rates;
    gm_memory_set_optional(INT64_MAX); /* what is planned is not allocated yet */
    status = gm_rates_measure_all(&sample, &job->rates);
    if (!status)
        status = gm_plan_all(run);
    if (status != GM_EDEVICE)
        return status;
    gm_error_clear(); /* by measured rates the plan needs more memory than the one that fits */
    job->rates = nominal;
    return gm_plan_all(run);
}

/* Ranks without work leave their processors to others, and the plan is made again. With more threads it may give work
 * to other ranks: then all have their shares as before, and it is made once more. */
int gm_plan_by_rates_all(gm_run *run)
{
    gm_job *job = run->job;
    int status = plan_by_rates_all(run), share = 1, is_last = job->ops->unified || job->ranks->size == 1;
    for (int changes = 0; !status && !is_last; changes++) {
        int works = gm_work_is_there(work_of, run, job->ranks->rank);
        status = gm_job_on_all(job, changes == 2 || works == share, &is_last);
        if (status || is_last)
            break;
        share = changes == 0 ? works : 1;
        status = gm_job_share_processors_all(job, share);
        if (!status)
            status = gm_plan_all(run);
    }
    return status;
}
