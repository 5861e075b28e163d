#include "src/plan/plan.h"

#include "base/log.h"
#include "src/rates/show.h"

/* The plan as a run on the model would make it. Nothing is measured. Collective. */
static int plan_for_all(gm_run *run, const gm_model *model, gm_ranks *ranks, gm_expectation *expectation)
{
    gm_job_set_model(run->job, model, ranks);
    int status = run->operation->suit ? run->operation->suit(run) : GM_OK;
    status = gm_job_agree_all(run->job, status);
    if (!status)
        status = gm_plan_set_rates_all(run);
    if (!status)
        status = gm_plan_all(run);
    if (!status && run->job->host_ranks > 1 && gm_plan_expect(run).working == 1) {
        run->job->host_ranks = 1;
        status = gm_plan_all(run);
    }
    if (!status)
        *expectation = gm_plan_expect(run);
    return status;
}

/* For one GPU of the model, which no grid of several fits. Collective. */
static int plan_single_all(gm_run *run, const gm_model *model, gm_ranks *ranks, gm_expectation *expectation)
{
    gm_job *job = run->job;
    const gm_options *options = job->options;
    const gm_model one = gm_model_single(model);
    gm_options alone = *options;
    alone.grid = NULL;
    alone.panels = "auto";
    job->options = &alone;
    int status = plan_for_all(run, &one, ranks, expectation);
    job->options = options;
    return status;
}

static int show_model(gm_run *run, const gm_expectation *expectation, const gm_expectation *single)
{
    const gm_model *model = &run->job->model;
    gm_plan_report(run, expectation);
    json_object_set_new(json_object_get(run->job->report.plan, "expected"), "model",
                        gm_model_json(model, expectation, single));
    gm_model_print(model);
    gm_plan_print(run, expectation);
    gm_gain_print(model, expectation, single);
    return gm_stdout_flush();
}

int gm_plan_show_model_all(gm_run *run)
{
    gm_job *job = run->job;
    const gm_model model = job->model;
    const gm_device_ops *ops = job->ops;
    const gm_device_info info = job->info;
    const gm_ranks *real = job->ranks;
    const int threads = job->threads, sharers = job->sharers, host_ranks = job->host_ranks;
    gm_expectation single, expectation;
    gm_ranks ranks;
    int status = plan_single_all(run, &model, &ranks, &single);
    if (!status)
        status = plan_for_all(run, &model, &ranks, &expectation);
    if (!status)
        status = show_model(run, &expectation, &single);
    job->ranks = real; /* the report is of this run */
    job->ops = ops;
    job->info = info;
    job->threads = threads;
    job->sharers = sharers;
    job->host_ranks = host_ranks;
    return gm_job_agree_all(job, status);
}
