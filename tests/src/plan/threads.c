/* The threads that read and write: no more than one for each 4 MiB of the rank's longest pass, unless --threads asks
 * for them or data are decoded. */
#include "src/plan/plan.h"
#include "tests/tap.h"

#include "base/log.h"

enum { THREADS = 16, MIB = 1 << 20 };

static gm_ranks ranks;
static double bytes;

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    (void)run;
    (void)budget;
    (void)need;
    return GM_OK;
}

static int work(const gm_run *run, int rank, gm_work *passes)
{
    (void)run;
    (void)rank;
    passes[0] = (gm_work){.times = 1, .read = bytes / 4};
    passes[1] = (gm_work){.times = 1, .read = bytes / 2, .write = bytes / 2};
    return 2;
}

static const gm_operation operation = {.plan = plan, .work = work};

static void check(const char *name, double of_pass, const char *threads, int is_decoded, int wanted)
{
    char *argv[] = {"gpumem-run",    "flip", "in.h5", "--device", "cpu", threads ? "--threads" : NULL,
                    (char *)threads, NULL};
    const int argc = threads ? 7 : 5;
    static gm_output_record record;
    gm_options options;
    gm_dataset input = {.layout = is_decoded ? GM_CHUNKED : GM_CONTIGUOUS, .direct = !is_decoded};
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = &ranks};
    gm_run run = {.job = &job, .operation = &operation, .record = &record, .input = &input, .shape.inputs = 1};
    bytes = of_pass;
    int status = gm_options_parse(argc, argv, &options);
    if (!status)
        status = gm_job_open_device_all(&job, 1);
    job.threads = THREADS;
    if (!status)
        status = gm_plan_all(&run);
    tap_ok(status == GM_OK && run.threads == wanted, "%s: %d threads (status %d)", name, run.threads, status);
    gm_job_close_device(&job);
}

int main(void)
{
    if (gm_ranks_start_all(&ranks))
        return 1;
    gm_log_setup(0, GM_QUIET);
    check("no bytes", 0, NULL, 0, 1);
    check("4 MiB", 4.0 * MIB, NULL, 0, 1);
    check("more", 4.0 * MIB + 1, NULL, 0, 2);
    check("many", 1000.0 * MIB, NULL, 0, THREADS);
    check("--threads", 4.0 * MIB, "16", 0, THREADS);
    check("chunks", 4.0 * MIB, NULL, 1, THREADS);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
