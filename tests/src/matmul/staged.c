/* Products on a device that is slow, works in queues of its own and does not address host memory, made of the
 * processor: the bits must be those of the processor itself, whatever overtakes what. */
#include "src/operation.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static gm_ranks ranks;

enum { ARGUMENTS = 24 };

/* Runs a command line on the processor, or on the slow device with a cap on its memory. */
static int run(const char *line, int slow, int64_t device_memory, json_t **plan)
{
    char copy[1024], *argv[ARGUMENTS] = {"gpumem-run"}, *save = NULL;
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    gm_options options;
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = &ranks};
    int status = gm_options_parse(argc, argv, &options);
    if (!status)
        status = gm_job_open_device_all(&job, 1);
    if (!status && slow) {
        job.ops = slow_device_ops(job.ops);
        gm_memory_set_cap(GM_DEVICE, device_memory);
    }
    if (!status)
        status = gm_operation_run_all(&job);
    if (plan)
        *plan = json_incref(job.report.plan);
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    return status;
}

static void compare(const char *what, const char *options, int64_t device_memory, size_t bytes)
{
    char line[1024];
    json_t *plan = NULL;
    snprintf(line, sizeof line, "matmul in.h5 -o e.h5 --force --no-sync %s", options);
    int status = run(line, 0, 0, NULL);
    snprintf(line, sizeof line, "matmul in.h5 -o f.h5 --force --no-sync %s", options);
    if (!status)
        status = run(line, 1, device_memory, &plan);
    tap_ok(status == GM_OK, "%s: it runs (status %d)", what, status);
    if (status) {
        gm_error error;
        gm_error_get(&error);
        tap_diag("%s", error.text);
        gm_error_clear();
    } else {
        tap_ok(command_same_data("e.h5", "f.h5", bytes), "%s: the same bits, kept %d, block %lld x %lld, bands of %lld",
               what, (int)json_is_true(json_object_get(plan, "keep")),
               (long long)json_integer_value(json_object_get(plan, "block_rows")),
               (long long)json_integer_value(json_object_get(plan, "block_columns")),
               (long long)json_integer_value(json_object_get(plan, "band_rows")));
    }
    json_decref(plan);
}

/* With room for all, for one block, for small ones. */
static void compare_all(const char *name, const char *extra, size_t bytes)
{
    static const int64_t megabytes[] = {1024, 14, 6};
    char what[128], options[256];
    for (size_t i = 0; i < sizeof megabytes / sizeof *megabytes; i++) {
        snprintf(what, sizeof what, "%s, %lld MiB of the device", name, (long long)megabytes[i]);
        snprintf(options, sizeof options, "%s --piece 50000 --depth 7 --threads 3", extra);
        compare(what, options, megabytes[i] << 20, bytes);
    }
}

int main(void)
{
    const int64_t m = 1300, n = 1100, k = 1500;
    char line[256];
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    gm_log_setup(0, GM_QUIET);
    snprintf(line, sizeof line, "gen matrices in.h5 --rows %lld --inner %lld --columns %lld --no-sync", (long long)m,
             (long long)k, (long long)n);
    tap_ok(run(line, 0, 0, NULL) == GM_OK, "input is made");
    compare_all("fp32", "", (size_t)(m * n) * 4);
    compare("fp32, tile by tile", "--piece 50000 --depth 3 --threads 2", 3 << 20, (size_t)(m * n) * 4);
    compare_all("fp64", "--precision fp64", (size_t)(m * n) * 8);
    compare_all("float32 of fp64", "--precision fp64 --type f32", (size_t)(m * n) * 4);
    tap_ok(run("matmul in.h5 -o e0.h5 --force --no-sync", 0, 0, NULL) == GM_OK, "C0 is made");
    compare_all("with C0", "--beta 2 --add e0.h5:/C", (size_t)(m * n) * 4);
    compare_all("alpha = 0", "--alpha 0", (size_t)(m * n) * 4);
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
