/* normalize on a device whose memory is not the host's: the processor's kernels in a table that is not unified and
 * checks every address. */
#include "kernels/normalize/calls.h"
#include "kernels/reduce/calls.h"
#include "src/operation.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 256, WORDS_MOST = 24 };

static gm_ranks ranks;

static gm_device_ops apart;
static const gm_device_ops *real_ops;
static struct {
    char *start;
    size_t bytes;
} places[PLACES];
static int strangers;      /* addresses passed to a kernel or a copy that are not in the memory they must be in */
static size_t refuse_from; /* allocations of this number of bytes or more fail; 0: none */

static int is_on_device(const void *address, size_t bytes)
{
    for (int i = 0; i < PLACES; i++)
        if (places[i].start && (const char *)address >= places[i].start &&
            (const char *)address + bytes <= places[i].start + places[i].bytes)
            return 1;
    return 0;
}

static void want(const void *address, size_t bytes, int on_device)
{
    strangers += bytes > 0 && is_on_device(address, bytes) != on_device;
}

static int apart_alloc(gm_device *device, size_t bytes, void **out)
{
    *out = NULL;
    if (refuse_from && bytes >= refuse_from)
        return gm_fail(GM_EDEVICE, "planted: no device memory");
    int status = real_ops->alloc(device, bytes, out);
    for (int i = 0; i < PLACES && !status; i++)
        if (!places[i].start) {
            places[i].start = *out;
            places[i].bytes = bytes;
            break;
        }
    if (!status)
        memset(*out, 0xa5, bytes);
    return status;
}

static void apart_free(gm_device *device, void *memory)
{
    for (int i = 0; i < PLACES; i++)
        if (memory && places[i].start == memory)
            places[i].start = NULL;
    real_ops->free(device, memory);
}

static int apart_copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                         int64_t rows)
{
    want(dst, width * (size_t)rows, 1);
    want(src, width * (size_t)rows, 0);
    return real_ops->copy_in(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int apart_copy_out(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                          int64_t rows)
{
    want(dst, width * (size_t)rows, 0);
    want(src, width * (size_t)rows, 1);
    return real_ops->copy_out(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int apart_normalize(gm_queue *queue, const gm_normalize_call *call)
{
    size_t n = (size_t)(call->rows * call->cols), real = call->wide ? sizeof(double) : sizeof(float);
    size_t entries = (size_t)(1 + (call->rows - 1) * call->row_step + (call->cols - 1) * call->col_step);
    want(call->src, n * gm_dtype_size(call->src_type), 1);
    want(call->out, n * gm_dtype_size(call->out_type), 1);
    want(call->sub, entries * real, 1);
    want(call->factor, entries * real, 1);
    want(call->counts, sizeof *call->counts, 1);
    return real_ops->normalize(queue, call);
}

static int apart_histogram(gm_queue *queue, const gm_histogram_call *call)
{
    size_t groups = call->row_step ? (size_t)call->rows : 1, words = groups * (size_t)call->prefixes * sizeof(uint64_t);
    want(call->src, (size_t)(call->rows * call->cols) * gm_dtype_size(call->type), 1);
    want(call->prefix, words, 1);
    want(call->counts, words << call->bits, 1);
    return real_ops->histogram(queue, call);
}

static int apart_rows(gm_queue *queue, const gm_reduce_rows_call *call)
{
    want(call->src, gm_dtype_size(call->type), 1);
    want(call->out, (size_t)call->leaves * sizeof *call->out, 1);
    return real_ops->reduce_rows(queue, call);
}

static int apart_columns(gm_queue *queue, const gm_reduce_columns_call *call)
{
    want(call->src, (size_t)call->rows * call->pitch, 1);
    want(call->open, (size_t)call->cols * sizeof *call->open, 1);
    want(call->total, (size_t)call->cols * sizeof *call->total, 1);
    return real_ops->reduce_columns(queue, call);
}

static int run(const char *line, int with_own_memory)
{
    static char words[WORDS_MOST][128];
    char *argv[WORDS_MOST + 1] = {0}, copy[1024];
    gm_options options;
    int argc = 0;
    snprintf(copy, sizeof copy, "gpumem-run %s", line);
    for (char *word = strtok(copy, " "); word && argc < WORDS_MOST; word = strtok(NULL, " ")) {
        snprintf(words[argc], sizeof words[0], "%s", word);
        argv[argc] = words[argc];
        argc++;
    }
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = &ranks};
    int status = gm_agree_all(&ranks, gm_options_parse(argc, argv, &options));
    if (!status)
        status = gm_job_open_device_all(&job, 1);
    if (!status && with_own_memory) {
        real_ops = job.ops;
        apart = *job.ops;
        apart.unified = 0;
        apart.alloc = apart_alloc;
        apart.free = apart_free;
        apart.copy_in = apart_copy_in;
        apart.copy_out = apart_copy_out;
        apart.normalize = apart_normalize;
        apart.histogram = apart_histogram;
        apart.reduce_rows = apart_rows;
        apart.reduce_columns = apart_columns;
        job.ops = &apart;
    }
    if (!status)
        status = gm_operation_run_all(&job);
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    return status;
}

static void check(const char *arguments)
{
    char line[1024];
    strangers = 0;
    snprintf(line, sizeof line, "normalize in.h5 -o one.h5 --force --no-sync --threads 2 %s", arguments);
    int status = run(line, 0);
    snprintf(line, sizeof line, "normalize in.h5 -o two.h5 --force --no-sync --threads 2 %s %s",
             strstr(arguments, "--piece") ? "" : "--piece 20000", arguments);
    if (!status)
        status = run(line, 1);
    fflush(stdout);
    int out = dup(1), null = open("/dev/null", O_WRONLY); /* what compare prints is no TAP */
    dup2(null, 1);
    int differ = status ? status : run("compare two.h5 one.h5", 0);
    fflush(stdout);
    dup2(out, 1);
    close(out);
    close(null);
    gm_error error;
    gm_error_get(&error);
    tap_ok(status == GM_OK && differ == GM_OK, "the same on a device with memory of its own: %s (status %d %s)",
           arguments, status, error.text);
    tap_ok(strangers == 0, "every address is where it must be: %d are not", strangers);
    gm_error_clear();
}

int main(void)
{
    static const char *const cases[] = {
        "",
        "--per frame",
        "--per pixel",
        "--method zscore",
        "--method zscore --per frame --type f64",
        "--method zscore --per pixel",
        "--method percentile",
        "--method percentile --per frame --high 80",
        "--method scale --sub 3 --factor 0.5 --type f32",
        "--method flatfield --flat in.h5:/images[0:3] --dark in.h5:/images[5]",
    };
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    tap_ok(run("gen stack in.h5 --frames 9 --height 47 --width 101 --no-sync", 0) == GM_OK, "input is made");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i]);
    refuse_from = 60000; /* the stack's 85 446 bytes, and not the ring */
    check("--piece 10000 --depth 2");
    tap_ok(run("gen stack in.h5 --frames 9 --height 47 --width 101 --type f32 --force --no-sync", 0) == GM_OK,
           "floats are made");
    refuse_from = 0;
    check("--method percentile");
    check("--method zscore --type u8");
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
