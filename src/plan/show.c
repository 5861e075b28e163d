#include "src/plan/plan.h"

#include "base/log.h"
#include "base/size.h"
#include "src/rates/show.h"

#include <stdio.h>

void gm_plan_print(const gm_run *run, const gm_expectation *expectation)
{
    const gm_job *job = run->job;
    char text[GM_SIZE_TEXT];
    run->operation->print_plan(run);
    printf("ring            %lld slots of %s\n", (long long)run->ring.depth, gm_size_format(run->ring.slot, text));
    if (run->ring.buffer)
        printf("buffers         %d of %s for each of %d threads\n", GM_RING_BUFFERS,
               gm_size_format(run->ring.buffer, text), run->threads);
    printf("device_memory   %s a rank\n", gm_size_format(run->ring.device_bytes, text));
    printf("host_memory     %s a rank\n", gm_size_format(run->ring.host_bytes, text));
    for (int rank = 0; rank < job->ranks->size; rank++)
        if (!job->model.nodes || rank == expectation->busiest) /* a model may have thousands */
            run->operation->print_share(run, rank);
    gm_expectation_print(expectation, &job->rates);
}

void gm_plan_report(gm_run *run, const gm_expectation *expectation)
{
    json_t *plan = run->job->report.plan = run->operation->plan_json(run);
    json_object_set_new(plan, "expected", gm_expectation_json(expectation, &run->job->rates));
    json_object_set_new(plan, "piece", json_integer((json_int_t)run->ring.slot));
    json_object_set_new(plan, "depth", json_integer((json_int_t)run->ring.depth));
    json_object_set_new(plan, "buffer", json_integer((json_int_t)run->ring.buffer));
    json_object_set_new(plan, "device_bytes", json_integer((json_int_t)run->ring.device_bytes));
    json_object_set_new(plan, "host_bytes", json_integer((json_int_t)run->ring.host_bytes));
}

int gm_plan_show_all(gm_run *run)
{
    int status = GM_OK;
    if (run->job->ranks->rank == 0) {
        gm_expectation expectation = gm_plan_expect(run);
        gm_plan_report(run, &expectation);
        gm_plan_print(run, &expectation);
        status = gm_stdout_flush();
    }
    return gm_job_agree_all(run->job, status);
}
