#include "src/plan/plan.h"

#include "base/memory.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>

/* The memory in which a chunked output is packed: by as many of the threads as the budget has room for, at least one.
 */
static int64_t pack_bytes(const gm_run *run, const gm_ring_budget *budget)
{
    int threads = budget->threads;
    int64_t bytes;
    while ((bytes = gm_output_pack_bytes(run->record, run->job->ranks->size, threads)) > budget->host && threads > 1)
        threads--;
    return bytes;
}

/* This rank's plan. The readers and the ring are gone when a chunked output is packed: the larger of both counts. */
static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    int64_t pack = pack_bytes(run, budget);
    *need = *budget;
    int status = run->operation->plan(run, budget, need);
    if (!status)
        run->ring.host_bytes = gm_max(run->ring.host_bytes, pack);
    if ((status && status != GM_EDEVICE) || pack <= budget->host)
        return status;
    need->host = gm_max(need->host, pack);
    return GM_EDEVICE;
}

/* Do all ranks' plans fit a budget? *need: where not, one that each of them asks for. Collective. */
static int try_all(gm_run *run, const gm_ring_budget *budget, int *fits, gm_ring_budget *need)
{
    int status = plan(run, budget, need);
    int64_t all_fit = status != GM_EDEVICE, host = -need->host, device = -need->device;
    status = gm_job_agree_all(run->job, all_fit ? status : GM_OK);
    if (status)
        return status;
    if (gm_min_all(&all_fit) || gm_min_all(&host) || gm_min_all(&device))
        return gm_job_agree_all(run->job, GM_EMPI);
    need->host = -host;
    need->device = -device;
    *fits = (int)all_fit;
    return GM_OK;
}

/* One number is the cap of both accounts. */
static int is_one_cap(const gm_run *run)
{
    return run->budget.unified && !run->job->options->device_memory;
}

static int64_t *bytes_of(gm_ring_budget *budget, gm_account account)
{
    return account == GM_HOST ? &budget->host : &budget->device;
}

/* With more room an operation may take more as well: budgets are tried until one fits. Collective. */
static int find_enough_all(gm_run *run, gm_ring_budget need, gm_ring_budget *enough)
{
    int fits = 0, status = GM_OK;
    while (!status && !fits) {
        if (need.host <= enough->host && need.device <= enough->device)
            return gm_job_agree_all(run->job, gm_fail(GM_EINTERNAL, "a plan was refused within its budget"));
        enough->host = gm_max(enough->host, need.host);
        enough->device = gm_max(enough->device, need.device);
        if (is_one_cap(run))
            enough->host = enough->device = gm_max(enough->host, enough->device);
        status = try_all(run, enough, &fits, &need);
    }
    return status;
}

/* The budget with other bytes on one side, or on both where one number is the cap of both. */
static gm_ring_budget with(const gm_run *run, gm_ring_budget budget, gm_account account, int64_t bytes)
{
    if (is_one_cap(run))
        budget.host = budget.device = bytes;
    else
        *bytes_of(&budget, account) = bytes;
    return budget;
}

/* Lowers one side of a budget that fits: to what there is, if that does, or to where a byte less does not.
 * Collective. */
static int lower_all(gm_run *run, gm_account account, gm_ring_budget *enough)
{
    int64_t low = *bytes_of(&run->budget, account), *high = bytes_of(enough, account), middle = low;
    int status = GM_OK;
    while (middle < *high && !status) {
        gm_ring_budget budget = with(run, *enough, account, middle), need;
        int fits;
        status = try_all(run, &budget, &fits, &need);
        if (!status && fits)
            *enough = budget;
        else
            low = middle;
        middle = *high - low > 1 ? low + (*high - low) / 2 : *high;
    }
    return status;
}

/* "--host-memory 1.00 MiB" is too little, "545152 bytes (532.38 KiB)" do; 0 where the cap is no lower. */
static int name_cap(const gm_job *job, gm_account account, int64_t have, int64_t enough, char *cap, char *wanted)
{
    static const char *const names[] = {[GM_HOST] = "--host-memory ", [GM_DEVICE] = "--device-memory "};
    char text[GM_SIZE_TEXT];
    int of_model = account == GM_HOST && job->model.nodes && !job->options->host_memory;
    int64_t need = gm_add_sat(gm_memory_used(account), enough);
    if (enough <= have)
        return 0;
    if (of_model)
        need = gm_mul_sat(need, (int64_t)GM_JOB_HOST_PART * job->ranks->local_size);
    sprintf(cap, "%s%s", of_model ? "--model memory=" : names[account],
            gm_size_format(of_model ? job->model.memory : gm_memory_cap(account), text));
    sprintf(wanted, "%lld bytes (%s)", (long long)need, gm_size_format(need, text));
    return 1;
}

static int fail_refused(const gm_run *run, const gm_ring_budget *enough)
{
    enum { TEXT = 4 * GM_SIZE_TEXT };
    char cap[GM_ACCOUNTS][TEXT], wanted[GM_ACCOUNTS][TEXT];
    const gm_job *job = run->job;
    const char *name = gm_operation_name(job->options->operation);
    char depth[48] = "";
    if (job->options->depth)
        sprintf(depth, " with --depth %lld", (long long)job->options->depth);
    int host = name_cap(job, GM_HOST, run->budget.host, enough->host, cap[GM_HOST], wanted[GM_HOST]);
    int device = !is_one_cap(run) &&
                 name_cap(job, GM_DEVICE, run->budget.device, enough->device, cap[GM_DEVICE], wanted[GM_DEVICE]);
    if (host && device)
        return gm_fail(GM_EDEVICE, "%s and %s are too little for %s%s, expected at least %s and %s", cap[GM_HOST],
                       cap[GM_DEVICE], name, depth, wanted[GM_HOST], wanted[GM_DEVICE]);
    gm_account lacking = host ? GM_HOST : GM_DEVICE;
    return gm_fail(GM_EDEVICE, "%s is too little for %s%s, expected at least %s", cap[lacking], name, depth,
                   wanted[lacking]);
}

static int refuse_all(gm_run *run, gm_ring_budget need)
{
    gm_ring_budget enough = run->budget;
    int status = find_enough_all(run, need, &enough);
    if (!status)
        status = lower_all(run, GM_HOST, &enough);
    if (!status && !is_one_cap(run))
        status = lower_all(run, GM_DEVICE, &enough);
    if (!status && run->job->ranks->rank == 0)
        status = fail_refused(run, &enough);
    return gm_job_agree_all(run->job, status);
}

/* Collective. */
static int survey_all(gm_run *run)
{
    int looks = run->operation->survey && run->job->ranks->rank == 0;
    return gm_job_agree_all(run->job, looks ? run->operation->survey(run) : GM_OK);
}

/* Of the ring and of the output. A thread takes longer to start and to end than a few MiB take to be read and written,
 * and an output in parts has a file for each. */
static int threads_of(const gm_run *run)
{
    const double least = 4 << 20; /* bytes of a thread */
    const gm_job *job = run->job;
    gm_work passes[GM_WORK_PASSES];
    double bytes = 0;
    if (job->options->threads || run->shape.inputs == 0 || !gm_run_takes_any(run))
        return job->threads;
    for (int i = run->operation->work(run, job->ranks->rank, passes) - 1; i >= 0; i--)
        bytes = fmax(bytes, passes[i].read + passes[i].write);
    return (int)fmax(1, fmin(job->threads, ceil(bytes / least)));
}

int gm_plan_all(gm_run *run)
{
    gm_ring_budget need;
    int fits;
    gm_memory_set_optional(INT64_MAX);
    if (run->shape.inputs > 0 && gm_run_takes_any(run))
        gm_job_spare_processors(run->job);
    int status = gm_job_budget_all(run->job, &run->budget);
    if (!status)
        status = try_all(run, &run->budget, &fits, &need);
    if (!status && !fits)
        status = refuse_all(run, need);
    if (!status)
        gm_memory_set_optional(gm_ring_plan_spare(&run->ring));
    run->threads = status ? 0 : threads_of(run);
    return status || !run->job->options->plan ? status : survey_all(run);
}
