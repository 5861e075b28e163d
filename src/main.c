/* main.c - gpumem-run: start of the ranks, the operation, the end of the ranks. */
#include "config.h"

#include "base/clock.h"
#include "base/log.h"
#include "src/job.h"
#include "src/stop.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum device_need { ANY, CPU, NONE } device_need;

static const struct {
    gm_operation *run;
    device_need device;
} operations[GM_OPERATIONS] = {
#define GM_OPERATION(id, name, function, device, least, most, arguments, help) {function, device},
#include "src/operations.def"
#undef GM_OPERATION
};

/* --help and --version, which need no MPI; under a launcher they print once. */
static int answered(const gm_options *options)
{
    if (!options->help && !options->version)
        return 0;
    if (gm_ranks_peek() != 0)
        return 1;
    if (options->help)
        gm_options_help(stdout, options->operation);
    else
        printf("gpumem-run %s\n", PACKAGE_VERSION);
    return 1;
}

static int run_all(gm_job *job, double started)
{
    device_need need = operations[job->options->operation].device;
    int status = gm_report_open_all(job);
    if (status)
        return status;
    if (need != NONE)
        status = gm_job_open_device_all(job, need == CPU);
    job->report.init_s = gm_clock() - started;
    if (!status)
        status = operations[job->options->operation].run(job);
    if (!job->options->report)
        return status;

    /* The report tells of failures, too; the cause of one must outlive the writing of it. */
    gm_error cause;
    gm_error_get(&cause);
    gm_error_clear();
    int written = gm_report_write_all(job, status);
    if (status > GM_DIFFER) {
        gm_error_clear();
        gm_fail(cause.code, "%s", cause.text);
    }
    return status ? status : written;
}

int main(int argc, char **argv)
{
    double started = gm_clock();
    gm_options options;
    char **words = malloc((size_t)(argc + 1) * sizeof *words); /* parsing reorders; provenance wants what was given */
    if (!words)
        return GM_EINTERNAL;
    memcpy(words, argv, (size_t)(argc + 1) * sizeof *words);
    int parsed = gm_options_parse(argc, words, &options);
    if (!parsed && answered(&options)) {
        free(words);
        return GM_OK;
    }

    gm_ranks ranks;
    gm_stop_install();
    int status = gm_ranks_start_all(&ranks);
    if (!status) {
        gm_log_setup(ranks.rank == 0, options.quiet ? GM_QUIET : options.verbose ? GM_VERBOSE : GM_NORMAL);
        status = gm_agree_all(&ranks, parsed);
    }
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = &ranks, .threads = 1, .sharers = 1,
                  .report = {.started = (double)time(NULL)}};
    if (!status)
        status = run_all(&job, started);
    if (status > GM_DIFFER && ranks.rank == 0) {
        gm_error error;
        gm_error_get(&error);
        gm_error_print(error.text);
    }
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    gm_ranks_end_all();
    free(words);
    return status;
}
