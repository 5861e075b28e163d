/* The plan of a run: that of its operation, with an output that can be packed, within a budget of memory and by rates;
 * for these ranks and devices, or for those of a model; in print and in the report. */
#include "src/operation.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "src/rates/measure.h"
#include "src/rates/show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- Within a budget --- */

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

int gm_operation_plan_all(gm_run *run)
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
    return status || !run->job->options->plan ? status : survey_all(run);
}

/* --- By rates --- */

static int work_of(const void *context, int rank, gm_work *passes)
{
    const gm_run *run = context;
    return run->operation->work(run, rank, passes);
}

static gm_expectation expect(const gm_run *run)
{
    gm_expectation expectation;
    gm_work_expect(&run->job->rates, work_of, run, &expectation);
    return expectation;
}

/* The default rates of rank 0, on all ranks, or those of the model. Collective. */
static int set_rates_all(const gm_run *run)
{
    gm_job *job = run->job;
    gm_rates_setting setting = {.device = &job->info,
                                .ops = job->ops,
                                .handle = job->device,
                                .kernel = gm_kernel_find(job->options->kernel),
                                .unified = job->ops->unified,
                                .threads = job->threads,
                                .ranks = job->ranks->size,
                                .hosts = job->ranks->hosts,
                                .sharers = job->sharers,
                                .writes = run->shape.outputs > 0,
                                .parts = strcmp(job->options->output_layout, "parts") == 0};
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
    double seconds = expect(run).seconds;
    return seconds < 1 ? 0 : fmin(part * seconds, most);
}

static int plan_by_rates_all(gm_run *run)
{
    gm_job *job = run->job;
    int status = set_rates_all(run);
    if (!status)
        status = gm_operation_plan_all(run);
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
        status = gm_operation_plan_all(run);
    if (status != GM_EDEVICE)
        return status;
    gm_error_clear(); /* by measured rates the plan needs more memory than the one that fits */
    job->rates = nominal;
    return gm_operation_plan_all(run);
}

/* Ranks without work leave their processors to others, and the plan is made again. With more threads it may give work
 * to other ranks: then all have their shares as before, and it is made once more. */
int gm_operation_plan_by_rates_all(gm_run *run)
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
            status = gm_operation_plan_all(run);
    }
    return status;
}

/* --- In print and in the report --- */

/* One "name value" a line. Rank 0. */
static void print_plan(const gm_run *run, const gm_expectation *expectation)
{
    const gm_job *job = run->job;
    char text[GM_SIZE_TEXT];
    run->operation->print_plan(run);
    printf("ring            %lld slots of %s\n", (long long)run->ring.depth, gm_size_format(run->ring.slot, text));
    if (run->ring.buffer)
        printf("buffers         %d of %s for each of %d threads\n", GM_RING_BUFFERS,
               gm_size_format(run->ring.buffer, text), run->budget.threads);
    printf("device_memory   %s a rank\n", gm_size_format(run->ring.device_bytes, text));
    printf("host_memory     %s a rank\n", gm_size_format(run->ring.host_bytes, text));
    for (int rank = 0; rank < job->ranks->size; rank++)
        if (!job->model.nodes || rank == expectation->busiest) /* a model may have thousands */
            run->operation->print_share(run, rank);
    gm_expectation_print(expectation, &job->rates);
}

static void report_plan(gm_run *run, const gm_expectation *expectation)
{
    json_t *plan = run->job->report.plan = run->operation->plan_json(run);
    json_object_set_new(plan, "expected", gm_expectation_json(expectation, &run->job->rates));
    json_object_set_new(plan, "piece", json_integer((json_int_t)run->ring.slot));
    json_object_set_new(plan, "depth", json_integer((json_int_t)run->ring.depth));
    json_object_set_new(plan, "buffer", json_integer((json_int_t)run->ring.buffer));
    json_object_set_new(plan, "device_bytes", json_integer((json_int_t)run->ring.device_bytes));
    json_object_set_new(plan, "host_bytes", json_integer((json_int_t)run->ring.host_bytes));
}

void gm_operation_report_plan(gm_run *run)
{
    gm_expectation expectation = expect(run);
    report_plan(run, &expectation);
}

int gm_operation_show_plan_all(gm_run *run)
{
    int status = GM_OK;
    if (run->job->ranks->rank == 0) {
        gm_expectation expectation = expect(run);
        report_plan(run, &expectation);
        print_plan(run, &expectation);
        status = gm_stdout_flush();
    }
    return gm_job_agree_all(run->job, status);
}

/* --- Of a model --- */

/* The plan as a run on the model would make it. Nothing is measured. Collective. */
static int plan_for_all(gm_run *run, const gm_model *model, gm_ranks *ranks, gm_expectation *expectation)
{
    gm_job_set_model(run->job, model, ranks);
    int status = run->operation->suit ? run->operation->suit(run) : GM_OK;
    status = gm_job_agree_all(run->job, status);
    if (!status)
        status = set_rates_all(run);
    if (!status)
        status = gm_operation_plan_all(run);
    if (!status && run->job->shares_host && expect(run).working == 1) {
        run->job->shares_host = 0;
        status = gm_operation_plan_all(run);
    }
    if (!status)
        *expectation = expect(run);
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
    report_plan(run, expectation);
    json_object_set_new(json_object_get(run->job->report.plan, "expected"), "model",
                        gm_model_json(model, expectation, single));
    gm_model_print(model);
    print_plan(run, expectation);
    gm_gain_print(model, expectation, single);
    return gm_stdout_flush();
}

int gm_operation_show_model_all(gm_run *run)
{
    gm_job *job = run->job;
    const gm_model model = job->model;
    const gm_device_ops *ops = job->ops;
    const gm_device_info info = job->info;
    const gm_ranks *real = job->ranks;
    const int threads = job->threads, sharers = job->sharers, shares_host = job->shares_host;
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
    job->shares_host = shares_host;
    return gm_job_agree_all(job, status);
}
