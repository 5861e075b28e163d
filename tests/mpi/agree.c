/* Three ranks: messages, collectives, and agreement when one rank fails, in mpi/ and in the collective functions of
 * src/. A hang is a failure: the launcher's time limit ends it. */
#include "mpi/cancel.h"
#include "mpi/exchange.h"
#include "src/job.h"
#include "src/result.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static gm_ranks ranks;
static int first;

/* Every rank evaluates ok; rank 0 reports whether all of them hold. */
static void all_ok(int ok, const char *what)
{
    int64_t least = ok;
    gm_min_all(&least);
    if (first)
        tap_ok((int)least, "%s", what);
}

static void test_worst_code(void)
{
    gm_error error;
    all_ok(gm_agree_all(&ranks, GM_OK) == GM_OK, "no rank fails: all return success");

    int mine = ranks.rank == 1 ? gm_fail(GM_EINPUT, "bad input") : GM_OK;
    all_ok(gm_agree_all(&ranks, mine) == GM_EINPUT, "one rank fails: all return its code");
    gm_error_get(&error);
    all_ok(strstr(error.text, "bad input (rank 1 on ") != NULL, "all have its message with rank and host");
    gm_error again;
    gm_agree_all(&ranks, GM_EINPUT);
    gm_error_get(&again);
    all_ok(strcmp(error.text, again.text) == 0, "a second agreement does not change the message");
    gm_error_clear();

    mine = ranks.rank == 0   ? gm_fail(GM_EINPUT, "input")
           : ranks.rank == 1 ? gm_fail(GM_EOUTPUT, "output")
                             : gm_fail(GM_EPEER, "peer");
    all_ok(gm_agree_all(&ranks, mine) == GM_EOUTPUT, "the higher code is returned, GM_EPEER counts least");
    gm_error_clear();

    mine = ranks.rank > 0 ? gm_fail(GM_EDEVICE, "rank %d", ranks.rank) : GM_OK;
    int agreed = gm_agree_all(&ranks, mine);
    gm_error_get(&error);
    all_ok(agreed == GM_EDEVICE && strncmp(error.text, "rank 1 (", 8) == 0,
           "of equal codes the message of the lowest rank is returned");
    gm_error_clear();
}

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void test_idle(void)
{
    gm_agree_all(&ranks, GM_OK);
    double from = processor_seconds();
    if (ranks.rank == 1)
        usleep(500000);
    int status = gm_agree_all(&ranks, GM_OK);
    all_ok(status == GM_OK && processor_seconds() - from < 0.25, "ranks that wait leave their processors to others");
}

static void test_cancel(void)
{
    if (ranks.rank == 1) {
        gm_cancel();
    } else {
        for (int i = 0; i < 5000 && !gm_cancelled(); i++)
            usleep(1000);
    }
    all_ok(ranks.rank == 1 || gm_cancelled(), "the other ranks receive a cancel");
    int status = ranks.rank == 1 ? gm_fail(GM_EOUTPUT, "no space") : gm_fail(GM_EPEER, "peer");
    all_ok(gm_agree_all(&ranks, status) == GM_EOUTPUT, "all return the code of the rank that cancelled");
    gm_error_clear();
    all_ok(!gm_cancelled(), "no cancel is left after agreement");
}

static void test_exchange(void)
{
    enum { N = 100000 };
    char *data = malloc(N);
    int ok = data != NULL;
    if (ranks.rank == 1) {
        memset(data, 7, N);
        ok &= gm_send(0, data, N) == GM_OK && gm_send(0, NULL, N) == GM_OK && gm_send(0, data, N) == GM_OK;
    } else if (ranks.rank == 0) {
        ok &= gm_receive(1, data, N) == GM_OK && data[0] == 7 && data[N - 1] == 7;
        ok &= gm_receive(1, data, N) == GM_EPEER;
        ok &= gm_receive(1, NULL, N) == GM_OK;
    }
    free(data);
    all_ok(ok, "messages arrive; a failed sender notifies; a failed receiver discards");
}

static void test_collectives(void)
{
    int64_t value = ranks.rank == 2 ? -5 : 10;
    all_ok(gm_min_all(&value) == GM_OK && value == -5, "gm_min_all");
    value = 1 + ranks.rank;
    all_ok(gm_sum_all(&value) == GM_OK && value == 6, "gm_sum_all");
    double numbers[2] = {ranks.rank, 0.5}, sums[2] = {0};
    all_ok(gm_sum_floats_all(numbers, sums, 2) == GM_OK && sums[0] == 3 && sums[1] == 1.5, "gm_sum_floats_all");
    char text[8] = "";
    if (first)
        strcpy(text, "hello");
    all_ok(gm_broadcast_all(text, sizeof text) == GM_OK && strcmp(text, "hello") == 0, "gm_broadcast_all");
    int mine = 10 + ranks.rank, all[3] = {0};
    int status = gm_gather_all(&ranks, &mine, sizeof mine, all);
    all_ok(status == GM_OK && (!first || (all[0] == 10 && all[2] == 12)), "gm_gather_all");
    memset(all, 0, sizeof all);
    status = gm_allgather_all(&ranks, &mine, sizeof mine, all);
    all_ok(status == GM_OK && all[0] == 10 && all[2] == 12, "gm_allgather_all");
    int count, index;
    status = gm_peers_all(&ranks, ranks.rank == 1 ? "other" : "same", &count, &index);
    all_ok(status == GM_OK && count == (ranks.rank == 1 ? 1 : 2) && index == (ranks.rank == 2), "gm_peers_all");
}

/* A job as main() makes it from a command line. */
static int make_job(gm_job *job, gm_options *options, int argc, char **argv)
{
    memset(job, 0, sizeof *job);
    job->argc = argc;
    job->argv = argv;
    job->options = options;
    job->ranks = &ranks;
    job->threads = 1;
    return gm_options_parse(argc, argv, options);
}

static void test_result(void)
{
    char *file = "out.h5";
    all_ok(folder_enter_all(&ranks) == GM_OK, "a folder is made");
    char *argv[] = {"gpumem-run", "gen", "matrices", file, NULL};
    gm_options options;
    gm_job job;
    int status = make_job(&job, &options, 4, argv);
    gm_output_record *record = calloc(1, sizeof *record);
    strcpy(record->file, file);
    record->datasets = 1;
    strcpy(record->dataset[0].name, "/A");
    record->dataset[0].type = GM_DTYPE_F32;
    record->dataset[0].rank = 1;
    record->dataset[0].dims[0] = 10;
    gm_result result;

    all_ok(status == GM_OK && gm_result_begin_all(&job, job.threads, record, NULL, 0, &result) == GM_OK,
           "gm_result_begin_all");
    int mine = ranks.rank == 2 ? gm_fail(GM_EDEVICE, "no memory on one rank") : GM_OK;
    all_ok(gm_result_open_all(&job, mine, &result) == GM_EDEVICE, "gm_result_open_all: one rank has failed");
    gm_error_clear();
    all_ok(access(file, F_OK) != 0, "no file is left");

    status = gm_result_begin_all(&job, job.threads, record, NULL, 0, &result);
    if (!status)
        status = gm_result_open_all(&job, GM_OK, &result);
    all_ok(status == GM_OK, "gm_result_open_all");
    mine = ranks.rank == 1 ? gm_fail(GM_EINPUT, "read error on one rank") : GM_OK;
    all_ok(gm_result_finish_all(&job, &result, NULL, 0, mine) == GM_EINPUT,
           "gm_result_finish_all: one rank has failed");
    gm_error_clear();
    all_ok(access(file, F_OK) != 0, "no file is left");

    job.options = &options;
    options.report = first ? "absent/report.json" : "unused";
    all_ok(gm_report_open_all(&job) == GM_EOUTPUT,
           "gm_report_open_all: a report that cannot be written fails on all ranks");
    gm_error_clear();
    gm_report_clear(&job.report);

    options.device = "cuda";
    status = gm_job_open_device_all(&job, 0);
    all_ok(status == GM_OK || status == GM_EDEVICE, "gm_job_open_device_all: all ranks open a device or all fail");
    gm_job_close_device(&job);
    gm_error_clear();
    free(record);
    all_ok(folder_leave_all(&ranks, ""), "no file is left");
}

int main(void)
{
    if (gm_ranks_start_all(&ranks))
        return 1;
    first = ranks.rank == 0;
    test_worst_code();
    test_idle();
    test_cancel();
    test_exchange();
    test_collectives();
    test_result();
    int code = first ? tap_done() : 0;
    gm_ranks_end_all();
    return code;
}
