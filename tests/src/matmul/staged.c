/* Products on a device that is slow, works in queues of its own and does not address host memory, made of the
 * processor: the bits must be those of the processor itself, whatever overtakes what. */
#include "src/operation.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"
#include "base/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gm_ranks ranks;
static char folder[] = "/tmp/gpumem-staged-XXXXXX";

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

/* Are the last bytes of two files, the elements of C, the same? */
static int same_data(const char *a, const char *b, size_t bytes)
{
    char *x = malloc(bytes), *y = malloc(bytes);
    int fa = open(a, O_RDONLY), fb = open(b, O_RDONLY);
    const off_t at = 4096; /* large data begin there */
    int same = fa >= 0 && fb >= 0 && pread(fa, x, bytes, at) == (ssize_t)bytes &&
               pread(fb, y, bytes, at) == (ssize_t)bytes && memcmp(x, y, bytes) == 0;
    close(fa);
    close(fb);
    free(x);
    free(y);
    return same;
}

static void compare(const char *what, const char *options, int64_t device_memory, size_t bytes)
{
    char line[1024], expected[64], found[64];
    json_t *plan = NULL;
    snprintf(expected, sizeof expected, "%s/e.h5", folder);
    snprintf(found, sizeof found, "%s/f.h5", folder);
    snprintf(line, sizeof line, "matmul %s/in.h5 -o %s --force --no-sync %s", folder, expected, options);
    int status = run(line, 0, 0, NULL);
    snprintf(line, sizeof line, "matmul %s/in.h5 -o %s --force --no-sync %s", folder, found, options);
    if (!status)
        status = run(line, 1, device_memory, &plan);
    tap_ok(status == GM_OK, "%s: it runs (status %d)", what, status);
    if (status) {
        gm_error error;
        gm_error_get(&error);
        tap_diag("%s", error.text);
        gm_error_clear();
    } else {
        tap_ok(same_data(expected, found, bytes), "%s: the same bits, kept %d, block %lld x %lld, bands of %lld", what,
               (int)json_is_true(json_object_get(plan, "keep")),
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
    if (gm_ranks_start_all(&ranks) || !mkdtemp(folder))
        return 1;
    gm_log_setup(0, GM_QUIET);
    snprintf(line, sizeof line, "gen matrices %s/in.h5 --rows %lld --inner %lld --columns %lld --no-sync", folder,
             (long long)m, (long long)k, (long long)n);
    tap_ok(run(line, 0, 0, NULL) == GM_OK, "input is made");
    compare_all("fp32", "", (size_t)(m * n) * 4);
    compare("fp32, tile by tile", "--piece 50000 --depth 3 --threads 2", 3 << 20, (size_t)(m * n) * 4);
    compare_all("fp64", "--precision fp64", (size_t)(m * n) * 8);
    compare_all("float32 of fp64", "--precision fp64 --type f32", (size_t)(m * n) * 4);
    snprintf(line, sizeof line, "--beta 2 --add %s/e0.h5:/C", folder);
    char first[256];
    snprintf(first, sizeof first, "matmul %s/in.h5 -o %s/e0.h5 --force --no-sync", folder, folder);
    tap_ok(run(first, 0, 0, NULL) == GM_OK, "C0 is made");
    compare_all("with C0", line, (size_t)(m * n) * 4);
    compare_all("alpha = 0", "--alpha 0", (size_t)(m * n) * 4);
    snprintf(line, sizeof line, "rm -r %s", folder);
    int code = tap_done();
    if (system(line))
        code = 1;
    gm_ranks_end_all();
    return code;
}
