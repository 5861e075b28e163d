/* Two ranks whose plans leave rank 1 without work, always or until it is made again: the processors of the host are
 * those of the ranks that have work by the last plan. */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "src/plan/plan.h"
#include "tests/affinity.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"

#include <sched.h>

static gm_ranks ranks;
static cpu_set_t given;       /* to this process, before any run */
static int plans, first_work; /* plans made; the first of them that gives rank 1 work */

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    (void)run;
    (void)budget;
    (void)need;
    plans++;
    return GM_OK;
}

static int work(const gm_run *run, int rank, gm_work *passes)
{
    (void)run;
    passes[0] = (gm_work){.times = rank == 0 || plans >= first_work, .read = 1000};
    return 1;
}

static const gm_operation operation = {.plan = plan, .work = work};

static int processors_of_all(const gm_job *job)
{
    uint64_t sum = (uint64_t)job->binding.processors;
    gm_sum_counts_all(&sum, 1);
    return (int)sum;
}

static void check(int first, int wanted_plans, const char *name)
{
    char *argv[] = {"gpumem-run", "flip", "in.h5", "--device", "cpu", NULL};
    static gm_output_record record;
    gm_options options;
    gm_job job = {.argc = 5, .argv = argv, .options = &options, .ranks = &ranks};
    gm_run run = {.job = &job, .operation = &operation, .record = &record};
    affinity_set(&given);
    int status = gm_options_parse(5, argv, &options);
    if (!status)
        status = gm_job_open_device_all(&job, 1);
    const int before = job.binding.processors, all = processors_of_all(&job), is_bound = job.binding.bound;
    job.ops = slow_device_ops(job.ops);
    plans = 0;
    first_work = first;
    if (!status)
        status = gm_plan_by_rates_all(&run);
    int is_alone = plans < first, wanted = is_alone && ranks.rank == 0 ? all : before;
    tap_ok(status == GM_OK && plans == wanted_plans, "%s: %d plans (status %d)", name, plans, status);
    tap_ok(job.host_ranks == (is_alone ? 1 : ranks.size), "%s: %d ranks work on the host", name, job.host_ranks);
    if (is_bound)
        tap_ok(job.binding.processors == wanted, "%s: %d processors, %d before, %d of all", name,
               job.binding.processors, before, all);
    else
        tap_skip("ranks are not bound here", "%s: processors", name);
    gm_job_close_device(&job);
}

int main(void)
{
    if (sched_getaffinity(0, sizeof given, &given) || gm_ranks_start_all(&ranks))
        return 1;
    gm_log_setup(0, GM_QUIET);
    check(1, 1, "all ranks have work");
    check(100, 2, "a rank without work");
    check(2, 3, "a rank that the second plan gives work");
    check(3, 2, "a rank that a third plan would give work");
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
