/* main.c - gpumem-run: starts the ranks, runs the operation, ends the ranks. */
#include "config.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/describe/describe.h"
#include "io/worker.h"
#include "kernels/kernels.h"
#include "mpi/launcher.h"
#include "src/operation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void print_error(void)
{
    gm_error error;
    gm_error_get(&error);
    gm_error_print(error.text);
}

/* --help and --version, which need no MPI; under a launcher they print once. Returns the exit code. */
static int answer(const gm_options *options)
{
    if (gm_launcher_rank() != 0)
        return GM_OK;
    if (options->help)
        gm_options_help(stdout, options->operation);
    else
        printf("gpumem-run %s\n", PACKAGE_VERSION);
    int status = gm_stdout_flush();
    if (status)
        print_error();
    return status;
}

/* MPI_Init ends or crashes the process where it can open no file: Open MPI takes 20 under mpirun. */
static int check_files(void)
{
    enum { LEAST = 32 };
    struct rlimit limit;
    char host[256] = "";
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= LEAST)
        return GM_OK;
    gethostname(host, sizeof host - 1);
    int status = gm_fail(GM_EDEVICE, "the limit of open files (ulimit -n) is %d, expected at least %d (rank %d on %s)",
                         (int)limit.rlim_cur, LEAST, gm_launcher_rank(), host);
    if (gm_launcher_local_rank() <= 0)
        print_error();
    return status;
}

/* Makes room for the open files of a run before there are threads. Later the kernel takes 10 to 40 ms each time that
 * the table of open files grows (synchronize_rcu()), and CUDA, MPI and an output in parts open some hundred files. */
static void grow_file_table(void)
{
    enum { FILES = 1024 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    int last = (int)(limit.rlim_cur < FILES ? limit.rlim_cur : FILES) - 1, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, last);
    if (high >= 0)
        close(high);
    if (fd >= 0)
        close(fd);
}

static int run_all(gm_job *job, double started)
{
    int status = gm_report_open_all(job);
    if (status)
        return status;
    job->report.init_s = gm_clock() - started;
    status = gm_operation_run_all(job);
    gm_stop_end();
    return gm_report_end_all(job, status);
}

int main(int argc, char **argv)
{
    double started = gm_clock();
    gm_blas_restart(argv);
    gm_launcher_leave_step();
    gm_log_start();
    gm_stop_install();
    gm_options options;
    char **words = malloc((size_t)(argc + 1) * sizeof *words); /* parsing reorders; provenance needs the order given */
    int parsed = words ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the command line");
    memset(&options, 0, sizeof options);
    if (!parsed) {
        memcpy(words, argv, (size_t)(argc + 1) * sizeof *words);
        parsed = gm_options_parse(argc, words, &options);
    }
    if (!parsed && (options.help || options.version)) {
        free(words);
        return answer(&options);
    }
    int refused = check_files();
    if (refused) {
        free(words);
        return refused;
    }
    grow_file_table();

    gm_ranks ranks;
    gm_job job = {.argc = argc,
                  .argv = argv,
                  .options = &options,
                  .ranks = &ranks,
                  .threads = 1,
                  .sharers = 1,
                  .report = {.started = (double)time(NULL)}};
    gm_hdf5_start();
    gm_worker_start(); /* a process with threads, or with a device, should not fork */
    if (!parsed)
        gm_job_start_device(&job, gm_operation_device(&options));
    double from = gm_clock();
    int status = gm_ranks_start_all(&ranks);
    job.report.start.mpi = gm_clock() - from;
    if (!status) {
        gm_log_setup(ranks.rank == 0, options.quiet ? GM_QUIET : options.verbose ? GM_VERBOSE : GM_NORMAL);
        status = gm_agree_all(&ranks, parsed);
    }
    if (!status)
        status = run_all(&job, started);
    if (status > GM_DIFFER && ranks.rank == 0)
        print_error();
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    gm_worker_stop();
    gm_ranks_end_all();
    free(words);
    if (gm_early_end(&job.early)) { /* after a failure */
        fflush(NULL);
        _exit(status);
    }
    return status;
}
