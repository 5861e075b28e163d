/* bench file - the strategies of reading a file and of writing new ones, to the device too, beside memory and transfers
 * in the same run. By all ranks at once: what one rank would read and write is shared among them.
 *
 * Cold is a read from an emptied page cache, and a write with its flush to the disk. A repetition ends after a limit of
 * time even if the file does not: its rate is the result, and its time is that of all bytes at that rate. */
#include "src/bench/file/file.h"

#include "base/file/new_file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/bench/benchmark.h"
#include "kernels/host.h"
#include "src/budget.h"
#include "src/result.h"
#include "src/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGE = GM_FILE_TEST_PAGE, TRANSFER_SIZES = 5 };
static const int64_t read_most = INT64_C(8) << 30, write_usual = INT64_C(1) << 30;
static const int64_t usual_piece = 16 << 20, least_piece = 64 << 10;
static const int64_t transfer_sizes[TRANSFER_SIZES] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
static const double repetition_s = 0.4;

/* --- Transfers --- */

typedef struct transfer {
    const gm_file_test *test;
    int64_t bytes;
    int to_host;
} transfer;

static int run_transfer(void *context, gm_queue *queue)
{
    const transfer *t = context;
    const gm_device_ops *ops = t->test->bench->ops;
    size_t n = (size_t)t->bytes;
    return t->to_host ? ops->copy_out(queue, t->test->slots, n, t->test->staging, n, n, 1)
                      : ops->copy_in(queue, t->test->staging, n, t->test->slots, n, n, 1);
}

static int measure_transfer(gm_file_test *test, int64_t bytes)
{
    transfer transfers[2] = {{test, bytes, 0}, {test, bytes, 1}};
    gm_bench_case cases[2] = {{run_transfer, &transfers[0]}, {run_transfer, &transfers[1]}};
    gm_bench_timing timings[2];
    int64_t to_device = 0;
    int status = gm_bench_time(test->bench, cases, 2, 0, timings);
    for (int i = 0; i < 2 && !status; i++) {
        gm_bench_row row = gm_bench_row_make(test->bench, i == 0 ? "copy to device" : "copy from device",
                                             i == 0 ? "host to device" : "device to host", GM_CACHE_WARM, &timings[i]);
        row.work = (double)bytes;
        gm_size_format(bytes, row.shape);
        if (i == 0 && bytes == test->piece)
            to_device = (int64_t)(row.work / timings[0].median);
        status = gm_bench_add(test->bench, &row);
    }
    status = gm_job_agree_all(test->bench->job, status);
    if (!status)
        status = gm_sum_all(&to_device);
    if (to_device > 0)
        test->to_device_rate = (double)to_device;
    return status;
}

/* The sizes up to a piece, and a piece. */
static int measure_transfers(gm_file_test *test)
{
    int status = GM_OK, is_piece_done = 0;
    for (int i = 0; i < TRANSFER_SIZES && !status; i++) {
        if (transfer_sizes[i] > test->piece)
            continue;
        status = measure_transfer(test, transfer_sizes[i]);
        is_piece_done |= transfer_sizes[i] == test->piece;
    }
    return status || is_piece_done ? status : measure_transfer(test, test->piece);
}

/* --- The test --- */

/* New files are made beside the file that is read, or in the folder of --output. Rank 0. */
static int find_output(gm_file_test *test)
{
    const char *asked = test->bench->job->options->output;
    char path[GM_PATH_MAX];
    struct stat st;
    if (asked && stat(asked, &st))
        return gm_fail(GM_EOUTPUT, "--output '%s': %s, expected a folder for new files", asked, strerror(errno));
    if (asked && !S_ISDIR(st.st_mode))
        return gm_fail(GM_EOUTPUT, "--output '%s': is a file, expected a folder for new files", asked);
    int length = snprintf(test->output, sizeof test->output, "%s%s", asked ? asked : test->dataset.file,
                          asked ? "/bench" : "");
    if (length >= (int)sizeof test->output)
        return gm_fail(GM_EOUTPUT, "--output: the name is too long");
    int quiet = gm_error_hush(1), fd = gm_new_file_create(test->output, "try", 1, path), why = errno;
    gm_error_hush(quiet);
    if (fd < 0)
        return gm_fail(GM_EOUTPUT,
                       "%s: cannot create a file in this folder: %s; --output can name a folder for new files",
                       test->output, strerror(why));
    gm_new_file_discard(fd, path);
    return GM_OK;
}

/* Bytes of pinned memory that a rank has: a piece for each thread, and for the slots of the ring. */
static int64_t memory_of(const gm_file_test *test)
{
    return test->piece * (2 * test->count[test->counts - 1] + GM_FILE_TEST_MORE_SLOTS + 1);
}

/* The same on all ranks: the least that any of them allows. */
static int level_all(int64_t *available, int64_t *room, int64_t *threads)
{
    int status = gm_min_all(available);
    if (!status)
        status = gm_min_all(room);
    return status ? status : gm_min_all(threads);
}

static int find_sizes_all(gm_file_test *test)
{
    const gm_job *job = test->bench->job;
    const gm_options *o = job->options;
    int64_t size = (int64_t)gm_dtype_size(test->dataset.type), available = gm_budget_available() / 2,
            room = gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST), threads = job->threads;
    int status = level_all(&available, &room, &threads);
    if (status)
        return status;
    test->limit_s = repetition_s;
    test->write_bytes = gm_min(write_usual, available);
    if (o->shapes && (gm_size_parse(o->shapes, &test->write_bytes) || test->write_bytes < 1))
        return gm_fail(
            GM_EUSAGE,
            "--shapes '%s': bench file expected a size to write, such as 256M, of at most " GM_SIZE_MOST_TEXT,
            o->shapes);
    test->read_bytes = gm_min(gm_mul_sat(gm_dataset_elements(&test->dataset), size), read_most);
    test->read_bytes = gm_min(test->read_bytes, available);
    for (test->counts = 0; test->counts < GM_FILE_TEST_COUNTS - 1 && 1 << test->counts < threads; test->counts++)
        test->count[test->counts] = 1 << test->counts;
    test->count[test->counts++] = (int)threads;
    test->piece = o->piece ? gm_max(o->piece / PAGE, 1) * PAGE : usual_piece;
    while (!o->piece && test->piece > least_piece &&
           (memory_of(test) > room / 2 ||
            (job->ranks->size > 1 && test->piece * job->ranks->size > test->read_bytes))) /* each rank has a piece */
        test->piece /= 2;
    return gm_dataset_elements(&test->dataset) > 0
               ? GM_OK
               : gm_fail(GM_EINPUT, "%s: the dataset is empty; bench file needs elements to read", test->dataset.file);
}

/* Rank 0 looks at the file, and all ranks know it. */
static int describe_all(gm_file_test *test)
{
    const gm_job *job = test->bench->job;
    int status = GM_OK;
    if (job->ranks->rank == 0) {
        status = gm_describe(test->bench->argument, NULL, &test->dataset);
        if (!status)
            status = find_output(test);
    }
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(&test->dataset, sizeof test->dataset));
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(test->output, sizeof test->output));
    if (!status)
        status = gm_run_share_sources_all(job, &test->dataset);
    return status ? status : gm_result_ask_for_names_all(job, &test->named);
}

static int allocate(gm_file_test *test)
{
    const gm_device_ops *ops = test->bench->ops;
    size_t bytes = (size_t)(test->count[test->counts - 1] * test->piece);
    void *slots = NULL;
    int status = ops->host_alloc(test->bench->device, bytes, &slots);
    test->slots = slots;
    if (!status) /* random: a file system could compress zeros */
        gm_cpu_random(slots, GM_DTYPE_U64, 0, GM_DISTRIBUTION_UNIFORM, gm_random_key(1, 0), 0, (int64_t)(bytes / 8));
    if (!status && !ops->unified)
        status = ops->alloc(test->bench->device, (size_t)test->piece, &test->staging);
    return status;
}

/* Does the page cache give the file up? Rank 0 tries. */
static int find_cold_all(const gm_file_test *test, int *is_cold)
{
    const gm_job *job = test->bench->job;
    *is_cold = job->ranks->rank == 0 && gm_read_benchmark_evict(&test->dataset);
    if (job->ranks->rank == 0 && !*is_cold)
        gm_note("bench file: no cold reads: the page cache keeps %s, or does not report its state", test->dataset.file);
    return gm_job_agree_all(job, gm_broadcast_all(is_cold, sizeof *is_cold));
}

static int measure_all(gm_file_test *test)
{
    int is_cold = 0, status = test->staging ? measure_transfers(test) : GM_OK;
    if (!status)
        status = gm_file_test_memory(test);
    if (!status)
        status = gm_file_test_warm_up(test);
    if (!status)
        status = gm_file_test_reads(test, GM_CACHE_WARM);
    if (!status)
        status = find_cold_all(test, &is_cold);
    if (!status && is_cold)
        status = gm_file_test_reads(test, GM_CACHE_COLD);
    if (!status)
        status = gm_file_test_writes(test, GM_CACHE_WARM);
    if (!status)
        status = gm_file_test_first_reads(test);
    return status ? status : gm_file_test_writes(test, GM_CACHE_COLD);
}

int gm_bench_file(gm_bench *bench)
{
    gm_file_test *test = calloc(1, sizeof *test);
    int status = gm_job_agree_all(bench->job, test ? GM_OK : gm_fail(GM_EDEVICE, "no memory for bench file"));
    if (status) {
        free(test);
        return status;
    }
    test->bench = bench;
    status = describe_all(test);
    if (!status)
        status = gm_job_agree_all(bench->job, find_sizes_all(test));
    if (!status)
        status = gm_job_agree_all(bench->job, allocate(test));
    if (!status)
        status = measure_all(test);
    bench->ops->free(bench->device, test->staging);
    bench->ops->host_free(bench->device, test->slots);
    free(test);
    return status;
}
