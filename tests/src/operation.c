/* The frame of an operation, on several ranks: failures of one rank in each stage, memory that is gone by the time that
 * a plan is prepared, and processors of a rank without work. */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "src/operation.h"

#include "base/log.h"
#include "base/memory.h"
#include "kernels/matmul/calls.h"
#include "kernels/move/calls.h"
#include "kernels/normalize/calls.h"
#include "kernels/reduce/calls.h"
#include "tests/affinity.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gm_ranks ranks;

/* The processor as a device with memory of its own, some of whose calls fail. */
static gm_device_ops faulty;
static const gm_device_ops *real_ops;
static gm_product product;
static int allocations_to_fail; /* on this rank */
static int failing_work;        /* on this rank: its operations fail */
static int64_t device_cap;      /* at the start of the last run */

typedef struct places {
    int before, was_bound; /* processors of this rank before a plan; was it bound to them? */
    gm_binding binding;    /* when a product began */
    int threads, host_ranks;
} places;

static const gm_job *job_of_run;
static places found;

static int faulty_alloc(gm_device *device, size_t bytes, void **out)
{
    *out = NULL;
    if (allocations_to_fail > 0) {
        allocations_to_fail--;
        return gm_fail(GM_EDEVICE, "planted: no device memory");
    }
    return real_ops->alloc(device, bytes, out);
}

static int fail_work(void)
{
    return failing_work ? gm_fail(GM_EDEVICE, "planted: the work fails") : GM_OK;
}

#define FAULTY(name)                                                        \
    static int faulty_##name(gm_queue *queue, const gm_##name##_call *call) \
    {                                                                       \
        int status = fail_work();                                           \
        return status ? status : real_ops->name(queue, call);               \
    }
FAULTY(flip)
FAULTY(transpose)
FAULTY(gather)
FAULTY(normalize)
FAULTY(histogram)
FAULTY(reduce_rows)
FAULTY(reduce_columns)

static int faulty_run(gm_queue *queue, const gm_product_call *call)
{
    int status = fail_work();
    found.binding = job_of_run->binding;
    found.threads = job_of_run->threads;
    found.host_ranks = job_of_run->host_ranks;
    return status
               ? status
               : gm_product_find(real_ops, NULL, &(gm_product_query){.precision = GM_PRECISION_FP32})->run(queue, call);
}

static const gm_product *faulty_product(gm_device *device, int index)
{
    const gm_product *real = real_ops->product(device, index);
    if (!real || real->precision != GM_PRECISION_FP32)
        return real;
    product = *real;
    product.run = faulty_run;
    return &product;
}

static void plant(gm_job *job)
{
    real_ops = job->ops;
    faulty = *job->ops;
    faulty.unified = 0;
    faulty.alloc = faulty_alloc;
    faulty.product = faulty_product;
    faulty.flip = faulty_flip;
    faulty.transpose = faulty_transpose;
    faulty.gather = faulty_gather;
    faulty.normalize = faulty_normalize;
    faulty.histogram = faulty_histogram;
    faulty.reduce_rows = faulty_reduce_rows;
    faulty.reduce_columns = faulty_reduce_columns;
    job->ops = &faulty;
    device_cap = gm_memory_cap(GM_DEVICE);
    job_of_run = job;
    found.before = job->binding.processors;
    found.was_bound = job->binding.bound;
}

/* The operation that is run, and the dataset that it makes. */
static const struct {
    const char *line, *dataset;
} commands[] = {
    {"flip s.h5 --axis 1", "/images"},
    {"transpose s.h5 --axes 0,1", "/images"},
    {"gather s.h5 --index i.h5", "/images"},
    {"normalize s.h5 --per frame", "/images"},
    {"normalize s.h5 --method percentile", "/images"},
    {"reduce s.h5 --axis frame", "/sum"},
    {"reduce s.h5 --axis pixel", "/sum"},
    {"matmul m.h5 --precision fp32 --grid 2x1x1", "/C"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int run(command_setup *setup, const char *line, const char *output, gm_error *error)
{
    int status = command_run_all(&ranks, setup, "%s -o %s --force --no-sync --threads 1 --device cpu", line, output);
    gm_error_get(error);
    gm_error_clear();
    return status;
}

static int same_on_all_ranks(int status)
{
    int64_t least = status, most = -status;
    return !gm_min_all(&least) && !gm_min_all(&most) && least == -most;
}

/* Files in the folder whose name begins so: an output under its final name or another one. */
static int count_files(const char *prefix)
{
    int count = 0;
    DIR *folder = opendir(".");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 || strncmp(entry->d_name, ".", 1) == 0;
    if (folder)
        closedir(folder);
    return count - 2; /* . and .. */
}

static void expect_failure(const char *line, const char *stage, int status, int wanted, const gm_error *error,
                           const char *text)
{
    tap_ok(status == wanted && same_on_all_ranks(status), "%s: %s fails on one rank, all return %d", line, stage,
           status);
    tap_ok(strstr(error->text, text) && strstr(error->text, "(rank "), "%s: all ranks have its message: %s", line,
           error->text);
    gm_agree_all(&ranks, GM_OK); /* no rank has begun the next run, whose output has the same name */
    tap_ok(count_files("out") == 0, "%s: no output is left", line);
    gm_agree_all(&ranks, GM_OK);
}

static void test_describe(void)
{
    static const struct {
        const char *line;
        int status;
        const char *message;
    } wrong[] = {
        {"flip none.h5 --axis 0 -o out.h5", GM_EINPUT, "none.h5"},
        {"flip s.h5 --axis 7 -o out.h5", GM_EUSAGE, "--axis '7'"},
        {"gather s.h5 --index none.h5 -o out.h5", GM_EINPUT, "none.h5"},
        {"normalize none.h5 -o out.h5", GM_EINPUT, "none.h5"},
        {"reduce none.h5", GM_EINPUT, "none.h5"},
        {"matmul m.h5 none.h5 -o out.h5", GM_EINPUT, "none.h5"},
        {"compare s.h5 none.h5", GM_EINPUT, "none.h5"},
        {"gen stack out.h5", GM_EUSAGE, "--frames"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gm_error error;
        int status = command_run_all(&ranks, NULL, "%s --device cpu", wrong[i].line);
        gm_error_get(&error);
        gm_error_clear();
        expect_failure(wrong[i].line, "describe", status, wrong[i].status, &error, wrong[i].message);
    }
}

static void test_less_memory(int command)
{
    gm_error error;
    const char *line = commands[command].line;
    int status = run(NULL, line, "good.h5", &error);
    tap_ok(status == GM_OK, "%s: without a fault", line);
    allocations_to_fail = ranks.rank == ranks.size - 1;
    status = run(plant, line, "out.h5", &error);
    tap_ok(status == GM_OK, "%s: memory that is gone once on one rank (%s)", line, error.text);
    tap_ok(allocations_to_fail == 0 && gm_memory_cap(GM_DEVICE) == device_cap / 2,
           "%s: all ranks have made a plan with half the memory", line);
    status = command_run_all(&ranks, NULL, "compare out.h5:%s good.h5:%s --device cpu", commands[command].dataset,
                             commands[command].dataset);
    tap_ok(status == GM_OK, "%s: the output is the same", line);
    gm_error_clear();
    if (ranks.rank == 0) {
        unlink("out.h5");
        unlink("good.h5");
    }
    gm_agree_all(&ranks, GM_OK);
}

static void test_no_memory(int command)
{
    gm_error error;
    allocations_to_fail = ranks.rank == ranks.size - 1 ? 1000 : 0;
    int status = run(plant, commands[command].line, "out.h5", &error);
    allocations_to_fail = 0;
    expect_failure(commands[command].line, "prepare", status, GM_EDEVICE, &error, "planted: no device memory");
}

static void test_work(int command)
{
    gm_error error;
    failing_work = ranks.rank == 0;
    int status = run(plant, commands[command].line, "out.h5", &error);
    failing_work = 0;
    expect_failure(commands[command].line, "run_all", status, GM_EDEVICE, &error, "planted: the work fails");
}

/* A user who has set the size gets no smaller plan. */
static void test_fixed_cap(void)
{
    gm_error error;
    allocations_to_fail = ranks.rank == 0;
    int status = run(plant, "flip s.h5 --axis 1 --device-memory 1M", "out.h5", &error);
    allocations_to_fail = 0;
    expect_failure("flip --device-memory 1M", "prepare", status, GM_EDEVICE, &error, "planted: no device memory");
}

/* Rank 0 alone has work. given: the processors of this rank before any run. */
static void test_idle(const cpu_set_t *given)
{
    cpu_set_t bound;
    gm_error error;
    gm_binding *mine = &found.binding;
    found = (places){0};
    affinity_set(given);
    int status = command_run_all(&ranks, plant,
                                 "matmul m.h5 --precision fp32 --grid 1x1x1 --no-sync --device cpu -o out.h5");
    gm_error_get(&error);
    gm_error_clear();
    tap_ok(status == GM_OK, "a rank without work (%s)", error.text);
    uint64_t all = (uint64_t)found.before;
    if (gm_sum_counts_all(&all, 1) || sched_getaffinity(0, sizeof bound, &bound))
        tap_ok(0, "processors are counted");
    else if (ranks.rank > 0)
        tap_ok(mine->processors == 0, "it multiplies nothing");
    else
        tap_ok(mine->processors == CPU_COUNT(&bound) && (!found.was_bound || mine->processors == (int)all) &&
                   found.host_ranks == 1 && found.threads >= mine->processors - 1,
               "its processors are those of the other: %d before, %d of %d, %d threads", found.before, mine->processors,
               (int)all, found.threads);
    if (ranks.rank == 0)
        unlink("out.h5");
    gm_agree_all(&ranks, GM_OK);
}

int main(void)
{
    gm_error error;
    cpu_set_t given;
    if (sched_getaffinity(0, sizeof given, &given) || gm_ranks_start_all(&ranks))
        return 1;
    gm_log_setup(ranks.rank == 0, GM_QUIET);
    if (folder_enter_all(&ranks))
        return 1;
    tap_ok(command_run_all(&ranks, NULL, "gen stack s.h5 --frames 10 --height 47 --width 101 --no-sync") == GM_OK &&
               command_run_all(&ranks, NULL, "gen matrices m.h5 --size 150 --no-sync") == GM_OK &&
               command_run_all(&ranks, NULL, "gen stack i.h5 --size 3 --type u8 --distribution integers --no-sync") ==
                   GM_OK,
           "inputs are made");
    test_idle(&given);
    test_describe();
    for (int i = 0; i < COMMANDS; i++) {
        test_less_memory(i);
        test_no_memory(i);
        test_work(i);
    }
    test_fixed_cap();
    tap_ok(run(NULL, commands[0].line, "out.h5", &error) == GM_OK, "a run after all of them");
    tap_ok(folder_leave_all(&ranks, "s.h5 i.h5 m.h5 out.h5"), "no other files are left");
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
