#include "src/operation.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/kernels.h"
#include "src/map.h"
#include "src/plan/plan.h"
#include "src/result.h"

#include <stdlib.h>
#include <string.h>

#define GM_OPERATION(id, name, operation, device, groups, least, most, arguments, help) \
    extern const gm_operation operation;
#include "src/operations.def"
#undef GM_OPERATION

static const struct {
    const gm_operation *operation;
    gm_device_need device;
} operations[GM_OPERATIONS] = {
#define GM_OPERATION(id, name, operation, device, groups, least, most, arguments, help) \
    {&operation, GM_DEVICE_##device},
#include "src/operations.def"
#undef GM_OPERATION
};

gm_device_need gm_operation_device(const gm_options *options)
{
    gm_device_need need = operations[options->operation].device;
    const gm_operation *o = operations[options->operation].operation;
    return options->model || (o->is_of_files && o->is_of_files(options)) ? GM_DEVICE_NONE : need;
}

/* The operation of the options, with the frame's own members in the place of those that it leaves out. */
static gm_operation complete(const gm_options *options)
{
    const gm_operation *named = operations[options->operation].operation;
    const gm_operation *asked = named->variant ? named->variant(options) : NULL;
    gm_operation o = asked ? *asked : *named;
    if (o.plan || !o.describe) /* work of its own, or none that is planned */
        return o;
    o.plan = gm_map_plan;
    o.print_plan = o.print_plan ? o.print_plan : gm_map_print_plan;
    o.print_share = o.print_share ? o.print_share : gm_map_print_share;
    o.work = o.work ? o.work : gm_map_work;
    o.plan_json = o.plan_json ? o.plan_json : gm_map_plan_json;
    o.prepare = o.prepare ? o.prepare : gm_map_prepare;
    o.run_all = o.run_all ? o.run_all : gm_map_run_all;
    return o;
}

/* --- The case --- */

static int allocate(gm_run *run)
{
    const gm_operation *o = run->operation;
    run->c = calloc(1, gm_max((int64_t)o->case_bytes, 1));
    run->own = calloc(1, gm_max((int64_t)o->own_bytes, 1));
    run->record = calloc(1, sizeof *run->record);
    if (!run->c || !run->own || !run->record)
        return gm_fail(GM_EDEVICE, "no memory to describe the operation");
    run->input = (gm_dataset *)(void *)((char *)run->c + o->inputs);
    return GM_OK;
}

static void report_inputs(gm_run *run)
{
    json_t *inputs = run->job->report.inputs = json_array();
    for (int i = 0; i < run->shape.inputs; i++)
        json_array_append_new(inputs, gm_report_dataset(&run->input[run->shape.swapped && i < 2 ? 1 - i : i]));
}

static int check_report(const gm_run *run)
{
    return gm_report_check(run->job, run->input, run->shape.inputs, run->shape.outputs ? run->record->file : NULL);
}

static int share_all_sources_all(const gm_run *run)
{
    int status = GM_OK;
    for (int i = 0; i < run->shape.inputs && !status; i++)
        status = gm_run_share_sources_all(run->job, &run->input[i]);
    return status;
}

/* Reads --model, for a plan of a machine that is not there. Collective. */
static int read_model_all(gm_job *job)
{
    const gm_options *o = job->options;
    int status = GM_OK;
    if (!o->model)
        return GM_OK;
    if (job->ranks->size > 1)
        status = gm_fail(GM_EUSAGE, "--model plans for ranks of its own: run it without mpirun, there are %d ranks",
                         job->ranks->size);
    else if (strcmp(o->device, gm_device_cpu.kind) == 0)
        status = gm_fail(GM_EUSAGE, "--model plans for GPUs, which --device %s is not", o->device);
    else
        status = gm_model_parse(o->model, &job->model);
    return gm_job_agree_all(job, status);
}

/* The work of rank 0 while the device starts. */
static int describe_case(gm_run *run)
{
    if (!run->operation->describe || run->job->ranks->rank != 0)
        return GM_OK;
    double from = gm_clock();
    int status = run->operation->describe(run);
    if (!status)
        status = check_report(run);
    run->job->report.start.describe = gm_clock() - from;
    return status;
}

/* The device, unless the caller has opened one. Each rank waits for its own first, which leaves the processor to it:
 * a wait for other ranks does not. Collective. */
static int open_device_all(gm_run *run, int status)
{
    gm_job *job = run->job;
    gm_device_need need = gm_operation_device(job->options);
    int opens = !job->device && (need == GM_DEVICE_ANY || need == GM_DEVICE_CPU);
    double from = gm_clock(), opening;
    if (!status)
        status = gm_early_wait(&job->early);
    status = gm_job_agree_all(job, status);
    opening = gm_clock();
    if (!status && opens)
        status = gm_job_open_device_all(job, need == GM_DEVICE_CPU);
    gm_start_times *start = &job->report.start;
    start->wait = gm_clock() - from;
    start->device = gm_clock() - opening + (status ? 0 : job->early.seconds);
    job->report.init_s += start->wait;
    run->pool.ops = job->ops;
    run->pool.device = job->device;
    return status;
}

static int describe_all(gm_run *run)
{
    const gm_job *job = run->job;
    int status = gm_job_agree_all(job, allocate(run));
    if (!status)
        status = read_model_all(run->job);
    if (status)
        return status;
    gm_identity_want_stamps(job->ranks->hosts > 1);
    status = open_device_all(run, describe_case(run));
    if (status)
        return status;
    if (run->operation->suit && job->ranks->rank == 0 && !job->options->model)
        status = run->operation->suit(run);
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(&run->shape, sizeof run->shape));
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(run->c, run->operation->case_bytes));
    if (!status)
        status = share_all_sources_all(run);
    if (!status && job->ranks->rank == 0 && run->shape.inputs)
        report_inputs(run);
    return status;
}

/* --- The work --- */

static void release(gm_run *run)
{
    gm_run_close(run);
    if (run->operation->release && run->own)
        run->operation->release(run);
}

static int may_plan_smaller(const gm_run *run)
{
    const gm_options *o = run->job->options;
    return run->operation->plan && !o->device_memory && !(run->job->ops->unified && o->host_memory);
}

/* Others may have taken memory since the plan was made: then a smaller plan, unless the user has set the size.
 * Collective. */
static int prepare_all(gm_run *run, gm_result *result)
{
    enum { ATTEMPTS = 4 };
    if (!run->operation->prepare)
        return GM_OK;
    for (int attempt = 1;; attempt++) {
        int status = gm_job_agree_all(run->job, run->operation->prepare(run));
        if (status != GM_EDEVICE || attempt == ATTEMPTS || !may_plan_smaller(run))
            return status;
        if (gm_job_agree_all(run->job, result ? gm_result_wait(result) : GM_OK)) /* its message is not to be cleared */
            return status;
        gm_error error;
        gm_error_get(&error);
        gm_note("%s: trying a smaller plan", error.text);
        gm_error_clear();
        release(run);
        gm_memory_set_cap(GM_DEVICE, gm_memory_cap(GM_DEVICE) / 2);
        status = gm_plan_all(run);
        if (status)
            return status;
    }
}

static int work_all(gm_run *run)
{
    char text[GM_SIZE_TEXT];
    if (run->operation->plan)
        gm_detail("%s, %lld slots of %s, %d threads on processors %s", run->job->info.name, (long long)run->ring.depth,
                  gm_size_format(run->ring.slot, text), run->threads, run->job->binding.list);
    gm_progress_start(&run->progress, run->job, gm_operation_name(run->job->options->operation),
                      run->bytes_read + run->bytes_written);
    int status = run->operation->run_all(run);
    gm_progress_end(&run->progress);
    if (run->operation->plan && run->job->ranks->rank == 0) {
        gm_expectation expectation = gm_plan_expect(run);
        gm_plan_report(run, &expectation);
    }
    return status;
}

/* The output has the attributes of the first input, with labels for the axes that are left. */
static void keep_attributes(gm_run *run, gm_result *result)
{
    const gm_dataset *d = &run->input[0];
    result->attributes = d;
    for (int k = 0; k < d->rank; k++)
        if (!d->selection.dropped[k])
            result->axes.from[result->axes.rank++] = k;
    if (run->operation->move_axes)
        run->operation->move_axes(run, &result->axes);
}

/* The ranks that write allocate the parts, on threads beside those that read: the processor as a device has none to
 * spare. Collective. */
static int allocate_parts_all(const gm_run *run)
{
    const gm_job *job = run->job;
    int writes = run->bytes_written > 0, count, index;
    if (!run->record->parts || !job->ops || job->ops->unified)
        return GM_OK;
    int status = gm_peers_all(job->ranks, writes ? "writes" : "writes nothing", &count, &index);
    if (!status && writes)
        gm_output_allocate_parts(run->output, index, count, run->threads / GM_ALLOCATOR_READERS);
    return status;
}

/* Into an output, which a thread creates while all ranks prepare. */
static int write_all(gm_run *run, double *ended)
{
    gm_job *job = run->job;
    gm_result result;
    double from = gm_clock();
    int status = gm_result_begin_all(job, run->threads, run->record, run->input, run->shape.inputs, &result);
    if (status)
        return status;
    status = gm_result_open_all(job, prepare_all(run, &result), &result);
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (status)
        return status;
    run->output = result.output;
    status = allocate_parts_all(run);
    if (!status)
        status = work_all(run);
    if (run->record->raw[0])
        release(run); /* the final form of a chunked output wants the memory */
    if (run->operation->keeps_attributes)
        keep_attributes(run, &result);
    if (!status)
        status = gm_run_check_inputs_all(run, status);
    status = gm_result_finish_all(job, &result, run->attribute, run->attributes, status);
    *ended = gm_clock();
    return status;
}

static int look_all(gm_run *run, double *ended)
{
    double from = gm_clock();
    int status = prepare_all(run, NULL);
    run->job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (!status)
        status = work_all(run);
    *ended = gm_clock();
    return status;
}

int gm_operation_run_all(gm_job *job)
{
    const gm_operation o = complete(job->options);
    gm_run run = {.job = job, .operation = &o};
    gm_start_times *start = &job->report.start;
    double from = gm_clock(), ended = 0, planning;
    int status = describe_all(&run);
    from += start->wait; /* is no work */
    planning = gm_clock();
    if (!status && o.plan)
        status = job->options->model ? gm_plan_show_model_all(&run) : gm_plan_by_rates_all(&run);
    start->plan = gm_clock() - planning;
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    gm_detail("start: MPI %.3f s, device %.3f s, wait for it %.3f s; describing %.3f s, planning %.3f s", start->mpi,
              start->device, start->wait, start->describe, start->plan);
    if (!status && job->options->plan && !job->options->model)
        status = gm_plan_show_all(&run);
    else if (!status && !job->options->plan)
        status = run.shape.outputs ? write_all(&run, &ended) : look_all(&run, &ended);
    job->report.has_streamed = !status && o.plan && !job->options->plan;
    job->report.wall_s = (ended > 0 ? ended : gm_clock()) - from - job->report.sync_s;
    release(&run);
    free(run.record);
    free(run.own);
    free(run.c);
    return status ? status : run.outcome;
}
