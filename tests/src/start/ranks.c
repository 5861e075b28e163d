/* An operation while the device of each rank starts on a thread: files are described meanwhile, failures and signals of
 * one rank are those of all. */
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "src/operation.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double slow = 0.3; /* seconds */
static sem_t never_released;
static gm_ranks ranks;

static void start_slowly(int local_rank)
{
    (void)local_rank;
    struct timespec time = {0, (long)(slow * 1e9)};
    nanosleep(&time, NULL);
}

/* The signal comes while all ranks wait. */
static void start_never(int local_rank)
{
    start_slowly(local_rank);
    if (ranks.rank == ranks.size - 1)
        kill(getpid(), SIGTERM);
    while (sem_wait(&never_released))
        ;
}

static const gm_device_ops slowly = {.kind = "slow", .start = start_slowly},
                           never = {.kind = "never", .start = start_never};

static gm_job job; /* the thread of the last one goes on */

typedef struct outcome {
    int status;
    double seconds;
    gm_report report;
    gm_error error;
} outcome;

/* A command line, with the start of a device begun before; what is opened then is the processor. */
static outcome run(const gm_device_ops *ops, const char *line)
{
    char text[512], *argv[16] = {"gpumem-run"};
    gm_options options;
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    gm_error_clear();
    outcome o = {.status = gm_agree_all(&ranks, gm_options_parse(argc, argv, &options))};
    if (o.status)
        return o;
    job = (gm_job){.argc = argc, .argv = argv, .options = &options, .ranks = &ranks, .threads = 1, .sharers = 1};
    double from = gm_clock();
    gm_early_begin(&job.early, ops, ranks.local_rank);
    o.status = gm_operation_run_all(&job);
    o.seconds = gm_clock() - from;
    o.report = job.report;
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    while (ops != &never && gm_early_end(&job.early)) /* a rank that fails does not wait for it */
        start_slowly(0);
    gm_error_get(&o.error);
    gm_error_clear();
    return o;
}

static int same_on_all_ranks(int status)
{
    int64_t least = status, most = -status;
    return !gm_min_all(&least) && !gm_min_all(&most) && least == -most;
}

static void test_slow(void)
{
    outcome o = run(&slowly, "flip s.h5 --axis 1 -o out.h5 --no-sync --device cpu --threads 1");
    tap_ok(o.status == GM_OK && same_on_all_ranks(o.status), "an operation waits for its device: %d %s", o.status,
           o.error.text);
    tap_ok(o.report.start.device >= slow && o.report.start.wait > 0 && o.report.start.wait <= o.seconds,
           "the report has the start of the device, %.3f s, and the wait for it, %.3f s", o.report.start.device,
           o.report.start.wait);
    tap_ok(o.report.wall_s > 0 && o.report.wall_s <= o.seconds - o.report.start.wait + 1e-6,
           "the time of the work is without the wait: %.3f of %.3f s", o.report.wall_s, o.seconds);
    tap_ok(ranks.rank != 0 || o.report.start.describe > 0, "files are described: %.4f s", o.report.start.describe);
}

static void test_missing_file(void)
{
    outcome o = run(&slowly, "flip none.h5 --axis 1 -o out2.h5 --device cpu --threads 1");
    tap_ok(o.status == GM_EINPUT && same_on_all_ranks(o.status) && strstr(o.error.text, "none.h5"),
           "a file that is not there is the failure of all ranks: %s", o.error.text);
    tap_ok(!o.report.plan, "and nothing is planned");
}

/* The last one: the signal stays, and so does the thread. */
static void test_signal(void)
{
    outcome o = run(&never, "flip s.h5 --axis 1 -o out3.h5 --device cpu --threads 1");
    tap_ok(o.status == GM_ESTOPPED && same_on_all_ranks(o.status) && o.seconds >= slow && o.seconds < slow + 1,
           "a signal to one rank ends the wait of all for starts that hang (%.3f s): %s", o.seconds, o.error.text);
    tap_ok(access("out3.h5", F_OK) != 0, "no output is left");
}

int main(void)
{
    gm_stop_install();
    sem_init(&never_released, 0, 0);
    if (gm_ranks_start_all(&ranks))
        return 1;
    gm_log_setup(ranks.rank == 0, GM_QUIET);
    if (folder_enter_all(&ranks))
        return 1;
    int status = command_run_all(&ranks, NULL, "gen stack s.h5 --frames 4 --height 16 --width 16 --no-sync");
    tap_ok(status == GM_OK, "a stack is made");
    test_slow();
    test_missing_file();
    test_signal();
    tap_ok(folder_leave_all(&ranks, "s.h5 out.h5"), "no other files are left");
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
