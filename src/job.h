/* job.h - the surroundings of an operation: the command line, the ranks, the device, the report. */
#ifndef GM_SRC_JOB_H
#define GM_SRC_JOB_H

#include "base/device.h"
#include "mpi/bind.h"
#include "mpi/ranks.h"
#include "src/exchange/exchange.h"
#include "src/options.h"
#include "src/rates/model.h"
#include "src/report.h"
#include "src/start/early.h"
#include "src/stream/ring_plan.h"

enum { GM_JOB_HOST_PART = 2 }; /* the ranks of a host share this part of its available memory, a half, by default */

typedef struct gm_job {
    int argc;
    char **argv;
    const gm_options *options;
    const gm_ranks *ranks;
    gm_bind_view *given; /* the processors that this rank was given; NULL: not looked at, or hwloc cannot tell */
    gm_binding binding;
    int host_ranks;           /* that work on one host, the most of any: the same on all ranks */
    int threads;              /* processor threads of this rank */
    const gm_device_ops *ops; /* NULL for an operation that needs no device */
    gm_early early;           /* the start of the device before it is opened */
    gm_device *device;
    gm_device_info info;
    int sharers;                 /* ranks that share this device, this one included */
    gm_rates rates;              /* that the plan rests on: the same on all ranks */
    gm_model model;              /* that the plan is for, in the place of these ranks and devices */
    gm_exchange_choice exchange; /* of a run that exchanges device memory */
    gm_report report;
} gm_job;

/* Agreement on a status, short for gm_agree_all(). Collective. */
int gm_job_agree_all(const gm_job *job, int status);

/* *on_all: is it so on every rank? Collective. */
int gm_job_on_all(const gm_job *job, int is_so, int *on_all);

/* The device of an operation: that of --device, the processor whatever --device says, every device in sight, or
 * none. */
typedef enum gm_device_need { GM_DEVICE_ANY, GM_DEVICE_CPU, GM_DEVICE_EACH, GM_DEVICE_NONE } gm_device_need;

/* Begins what takes long in the start of a device, of the first kind that --device asks for. No failure: the device is
 * opened in any case later. Before MPI and any thread have started. */
void gm_job_start_device(gm_job *job, gm_device_need need);

/* Opens the device that --device and --threads ask for, once its start has ended (gm_early_wait), and sets the caps of
 * the memory accounts (--host-memory, --device-memory). GM_EDEVICE, which is agreed. Collective. */
int gm_job_open_device_all(gm_job *job, int cpu_only);
void gm_job_close_device(gm_job *job);

/* Binds the ranks to shares of their processors (gm_bind_all), which job->binding says. Collective. */
int gm_job_bind_all(gm_job *job, int prefer_numa, int takes_share);

/* Ranks that take no share, as they have no work, leave their processors to the others of their host, which have more
 * threads for a plan to come. Not for a device that is a processor, which has counted its threads when it was opened.
 * Collective. */
int gm_job_share_processors_all(gm_job *job, int takes_share);

/* Ranks (kept in *ranks), device, threads and caps of a machine that is only described, in the place of those of the
 * run: for plans, which then open nothing. The device is the first one of rank 0. */
void gm_job_set_model(gm_job *job, const gm_model *model, gm_ranks *ranks);

/* Opens exchanges between the devices of the ranks, by the path that --exchange asks for or, if that leaves the choice,
 * by purpose->wanted, for its reason; it also says the seconds and the ways. job->exchange says which path was taken,
 * and why. The caller closes it, also after a failure. The status is agreed, as of gm_exchange_open_all(). Collective.
 */
int gm_job_open_exchange_all(gm_job *job, const gm_exchange_setup *purpose, gm_exchange **exchange);

/* For data that are copied as they are: where ranks share a host's memory bus, more threads than three on four
 * processors slow down each other, and those of CUDA and MPI. Not if --threads is given. */
void gm_job_spare_processors(gm_job *job);

/* The least that any rank may still allocate, with the most threads of any rank. Collective. */
int gm_job_budget_all(const gm_job *job, gm_ring_budget *budget);

/* GM_EUSAGE where the device has no such kernel of products, in any precision. */
int gm_job_check_kernel(const gm_job *job, gm_kernel kernel);

/* "WHAT is not supported by the device ...": returns GM_EDEVICE. */
int gm_job_fail_unsupported(const gm_job *job, const char *what);

#endif
