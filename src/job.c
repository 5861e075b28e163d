#include "src/job.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/kernels.h"
#include "kernels/matmul/calls.h"
#include "mpi/launcher.h"
#include "src/budget.h"

#include <string.h>

enum { MANY_PROCESSORS = 8 }; /* of which one less for I/O costs less than one that is shared with them */

int gm_job_agree_all(const gm_job *job, int status)
{
    return gm_agree_all(job->ranks, status);
}

int gm_job_on_all(const gm_job *job, int is_so, int *on_all)
{
    int64_t least = is_so;
    int status = gm_job_agree_all(job, gm_min_all(&least));
    *on_all = (int)least;
    return status;
}

static int is_wanted(const char *wanted, const gm_device_ops *ops)
{
    return strcmp(wanted, "auto") == 0 || strcmp(wanted, ops->kind) == 0;
}

void gm_job_start_device(gm_job *job, gm_device_need need)
{
    const gm_device_ops *ops = NULL;
    for (int i = 0; gm_device_kinds[i] && !ops; i++)
        if (gm_device_kinds[i]->start && is_wanted(job->options->device, gm_device_kinds[i]))
            ops = gm_device_kinds[i];
    if (need == GM_DEVICE_ANY)
        gm_early_begin(&job->early, ops, gm_launcher_local_rank());
    else if (need == GM_DEVICE_EACH)
        gm_early_begin(&job->early, ops, GM_LOCAL_ALL);
}

static int count_of(const gm_device_ops *ops, int *count)
{
    *count = 0;
    return ops->count(count);
}

/* The best kind of device that every rank has; or the kind that was asked for. */
static int choose_kind_all(gm_job *job, int cpu_only)
{
    const char *wanted = cpu_only ? gm_device_cpu.kind : job->options->device;
    const gm_device_ops *missing = NULL;
    job->ops = NULL;
    for (int i = 0; gm_device_kinds[i] && !job->ops; i++) {
        const gm_device_ops *ops = gm_device_kinds[i];
        if (!is_wanted(wanted, ops))
            continue;
        int count;
        int status = gm_job_agree_all(job, count_of(ops, &count));
        int64_t least = count;
        if (!status)
            status = gm_job_agree_all(job, gm_min_all(&least));
        if (status)
            return status;
        if (least > 0)
            job->ops = ops;
        else if (!missing)
            missing = ops;
    }
    if (!job->ops)
        return gm_job_agree_all(job,
                                gm_fail(GM_EDEVICE, "--device %s: not every rank has such a device: %s", wanted,
                                        missing && missing->absence() ? missing->absence() : "other ranks have none"));
    if (missing)
        gm_note("no %s device (%s): computing on the processor", missing->kind,
                missing->absence() ? missing->absence() : "on some ranks");
    return GM_OK;
}

int gm_job_bind_all(gm_job *job, int prefer_numa, int takes_share)
{
    if (!job->given)
        job->given = gm_bind_open(job->ranks->local_rank);
    return gm_bind_all(job->ranks, job->given, prefer_numa, takes_share, &job->binding);
}

/* Processors for this rank: near its device if that is somewhere. */
static int bind_all(gm_job *job, int takes_share)
{
    int status = gm_job_bind_all(job, job->device ? job->info.numa_node : -1, takes_share);
    if (status)
        return status;
    int own = !job->ops->unified &&
              job->binding.processors >= MANY_PROCESSORS; /* for the ring's thread, which keeps the device busy */
    job->threads = (int)(job->options->threads ? job->options->threads : job->binding.processors - own);
    return GM_OK;
}

/* A device that addresses host memory has its processors first, another its place on the machine first. */
static int open_and_bind_all(gm_job *job)
{
    int status = GM_OK, count = 0;
    if (job->ops->unified)
        status = bind_all(job, 1);
    if (!status)
        status = count_of(job->ops, &count);
    if (!status)
        status = job->ops->open(count > 0 ? job->ranks->local_rank % count : 0, job->threads, &job->device);
    if (!status)
        status = job->ops->describe(job->device, &job->info);
    status = gm_job_agree_all(job, status);
    return status || job->ops->unified ? status : bind_all(job, 1);
}

int gm_job_share_processors_all(gm_job *job, int takes_share)
{
    int count, index;
    int status = gm_peers_all(job->ranks, takes_share ? "a share" : "no share", &count, &index);
    int64_t most = takes_share ? -count : 0;
    if (!status)
        status = gm_job_agree_all(job, gm_min_all(&most));
    job->host_ranks = (int)-most;
    return status ? status : bind_all(job, takes_share);
}

/* available: bytes of the host that programs may take. */
static void set_caps(const gm_job *job, int64_t available)
{
    const gm_options *o = job->options;
    int64_t host = o->host_memory ? o->host_memory : available / GM_JOB_HOST_PART / job->ranks->local_size;
    int64_t device = job->ops->unified ? host : job->info.memory_free / 10 * 9 / job->sharers;
    if (o->device_memory)
        device = o->device_memory;
    gm_memory_set_cap(GM_HOST, host);
    gm_memory_set_cap(GM_DEVICE, device);
}

int gm_job_open_device_all(gm_job *job, int cpu_only)
{
    int index;
    int64_t most = -job->ranks->local_size;
    int status = choose_kind_all(job, cpu_only);
    if (!status)
        status = open_and_bind_all(job);
    if (!status)
        status = gm_job_agree_all(job, gm_min_all(&most));
    job->sharers = 1;
    job->host_ranks = (int)-most;
    if (!status && job->info.uuid[0])
        status = gm_peers_all(job->ranks, job->info.uuid, &job->sharers, &index);
    if (status)
        return status;
    if (job->sharers > 1)
        gm_warn("%d ranks share %s %s: each gets its share of the memory", job->sharers, job->info.name,
                job->info.uuid);
    set_caps(job, gm_budget_available());
    return GM_OK;
}

void gm_job_set_model(gm_job *job, const gm_model *model, gm_ranks *ranks)
{
    const gm_ranks run = *job->ranks;
    *ranks = run;
    ranks->size = (int)(model->nodes * model->gpus);
    ranks->local_size = (int)model->gpus;
    ranks->hosts = (int)model->nodes;
    job->ranks = ranks;
    job->model = *model;
    job->ops = &gm_device_cuda;
    job->info = *gm_model_device(model);
    job->sharers = 1;
    job->host_ranks = (int)model->gpus;
    job->threads = (int)(job->options->threads ? job->options->threads : gm_model_threads());
    set_caps(job, model->memory);
}

void gm_job_close_device(gm_job *job)
{
    if (job->device)
        job->ops->close(job->device);
    job->device = NULL;
    gm_bind_close(job->given);
    job->given = NULL;
}

int gm_job_open_exchange_all(gm_job *job, const gm_exchange_setup *purpose, gm_exchange **exchange)
{
    gm_exchange_setup setup = *purpose;
    setup.ops = job->ops;
    setup.device = job->device;
    setup.ranks = job->ranks;
    setup.sharers = job->sharers;
    if (strcmp(job->options->exchange, "auto") != 0) {
        setup.wanted = job->options->exchange;
        setup.reason = NULL;
    }
    return gm_exchange_open_all(&setup, &job->exchange, exchange);
}

int gm_job_check_kernel(const gm_job *job, gm_kernel kernel)
{
    for (int i = 0; i < GM_PRECISIONS; i++) {
        const gm_product_query query = {.precision = i, .kernel = kernel, .capability = job->info.capability};
        if (gm_product_find(job->ops, job->device, &query))
            return GM_OK;
    }
    return gm_fail(GM_EUSAGE, "--kernel %s: the device %s has no such kernel, expected --kernel auto",
                   gm_kernel_name(kernel), job->ops->kind);
}

int gm_job_fail_unsupported(const gm_job *job, const char *what)
{
    return gm_fail(GM_EDEVICE, "%s is not supported by the device %s, use --device cpu", what, job->ops->kind);
}

/* Small buffers spare the host's memory bus, which the ranks of a host share. A rank that has it for itself reaches the
 * rate of its link with whole slots and fewer calls of the driver. The same on all ranks. */
static int64_t wanted_buffer(const gm_job *job)
{
    int64_t usual = job->host_ranks <= 1 ? 0 : job->host_ranks == 2 ? 2 << 20 : 1 << 20;
    return job->options->buffer >= 0 ? job->options->buffer : usual;
}

/* By few runs on one host of four GPUs, 16 processors each: docs/performance.md, "Four GPUs of one host". */
void gm_job_spare_processors(gm_job *job)
{
    int processors = job->binding.processors;
    if (!job->ops->unified && wanted_buffer(job) > 0 && job->host_ranks > 1 && processors >= MANY_PROCESSORS &&
        !job->options->threads && !job->options->model)
        job->threads = (int)gm_min(job->threads, processors * 3 / 4);
}

int gm_job_budget_all(const gm_job *job, gm_ring_budget *budget)
{
    int64_t host = gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST), threads = -job->threads;
    int64_t device = gm_memory_cap(GM_DEVICE) - gm_memory_used(GM_DEVICE);
    if (gm_min_all(&host) || gm_min_all(&device) || gm_min_all(&threads))
        return gm_job_agree_all(job, GM_EMPI);
    *budget = (gm_ring_budget){.host = host,
                               .device = device,
                               .unified = job->ops->unified,
                               .threads = (int)-threads,
                               .buffer = wanted_buffer(job),
                               .buffer_is_given = job->options->buffer >= 0};
    return gm_job_agree_all(job, GM_OK);
}
