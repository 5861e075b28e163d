/* Single elements that one rank's device computes wrong, by ten times the threshold of the check: each is found, its
 * tile computed once more, and C has the bits of a product without a fault. On the processor and on a device with
 * memory and queues of its own, by each grid. And products without a fault, of many shapes: none fails its check.
 *
 * GPUMEM_TEST_RUNS: how many of each (40); GPUMEM_TEST_SEED: other ones. */
#include "src/operation.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 24, M = 400, N = 350, K = 1000 };

static gm_ranks ranks;
static uint64_t state;

static int64_t random_below(int64_t most)
{
    state += GM_RANDOM_STEP;
    return (int64_t)(gm_random_mix(state) % (uint64_t)most);
}

/* --- A device whose product is wrong once --- */

static const gm_device_ops *real_ops;
static gm_device_ops faulty_ops;
static gm_product faulty_product;
static double fault; /* added to an element of the next product; 0: none */
static int64_t fault_row, fault_col;

static int multiply(gm_queue *queue, const gm_product_call *call)
{
    const gm_product *real = gm_product_find(real_ops, NULL, &(gm_product_query){.precision = GM_PRECISION_FP32});
    int status = real->run(queue, call);
    if (status || fault == 0)
        return status;
    float *at = (float *)call->acc + fault_row % call->m * call->ldacc + fault_col % call->n, value;
    status = real_ops->copy_out(queue, &value, sizeof value, at, sizeof value, sizeof value, 1);
    if (!status)
        status = real_ops->queue_sync(queue);
    value += (float)fault;
    fault = 0;
    if (!status)
        status = real_ops->copy_in(queue, at, sizeof value, &value, sizeof value, sizeof value, 1);
    return status ? status : real_ops->queue_sync(queue);
}

static const gm_product *give_product(gm_device *device, int index)
{
    const gm_product *real = real_ops->product(device, index);
    if (!real || real->precision != GM_PRECISION_FP32)
        return real;
    faulty_product = *real;
    faulty_product.run = multiply;
    return &faulty_product;
}

/* --- Runs --- */

typedef struct outcome {
    int status;
    int64_t repaired; /* rank 0, as is the next */
    double threshold;
} outcome;

/* Runs a command line on the processor, or, with a cap on its memory, on the slow device. */
static outcome run(const char *line, int64_t device_memory)
{
    char copy[1024], *argv[ARGUMENTS] = {"gpumem-run"}, *save = NULL;
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    gm_options options;
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = &ranks};
    outcome o = {.status = gm_agree_all(&ranks, gm_options_parse(argc, argv, &options))};
    if (!o.status)
        o.status = gm_job_open_device_all(&job, 1);
    if (!o.status) {
        if (device_memory) {
            job.ops = slow_device_ops(job.ops);
            gm_memory_set_cap(GM_DEVICE, device_memory);
        }
        real_ops = job.ops;
        faulty_ops = *job.ops;
        faulty_ops.product = give_product;
        job.ops = &faulty_ops;
        o.status = gm_operation_run_all(&job);
    }
    const json_t *found = job.report.verification;
    o.repaired = json_integer_value(json_object_get(found, "tiles_repaired"));
    o.threshold = json_real_value(json_object_get(found, "threshold"));
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    return o;
}

/* Are the elements of C the same? Large data begin at byte 4096. */
enum { ONE_LEAF = 70 };

static const struct {
    const char *name, *options;
    int64_t device_memory;
    int k; /* of the product; ONE_LEAF: of three layers, rank 2's alone has a leaf */
} ways[] = {
    {"processor, rows", "--grid 3x1x1", 0, K},
    {"processor, columns", "--grid 1x3x1", 0, K},
    {"processor, layers", "--grid 1x1x3", 0, K},
    {"processor, layers without leaves", "--grid 1x1x3", 0, ONE_LEAF},
    {"kept", "--grid 1x3x1", INT64_C(1) << 30, K},
    {"layers without leaves", "--grid 1x1x3", INT64_C(1) << 30, ONE_LEAF},
    {"blocks", "--grid 3x1x1", 1 << 20, K},
    {"layers in blocks", "--grid 1x1x3", 2 << 20, K},
    {"layers without leaves, in blocks", "--grid 1x1x3", 2 << 20, ONE_LEAF},
    {"shared rows", "--panels exchange --grid 1x3x1", INT64_C(1) << 30, K},
    {"shared columns", "--panels exchange --grid 3x1x1", INT64_C(1) << 30, K},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* A product by a way, into a file of the folder. */
static outcome multiply_by(int way, const char *file)
{
    char line[512];
    snprintf(line, sizeof line,
             "matmul in.h5:/A[:,:%d] in.h5:/B[:%d] -o %s --force --no-sync --threads 2 --piece 50000 %s", ways[way].k,
             ways[way].k, file, ways[way].options);
    return run(line, ways[way].device_memory);
}

/* Uniform elements of [0, 1): the norms that the threshold is relative to, for a block of all of C at most. */
static double scale_of(int k)
{
    double element = k / 3.0, vector = 7.0 / 3;
    return sqrt(element) * sqrt((M > N ? M : N) * vector * element);
}

static int mend(int way, double threshold)
{
    char clean[64];
    int64_t victim = random_below(ranks.size), row = random_below(M), col = random_below(N);
    if (ways[way].k == ONE_LEAF)
        victim = 2;
    snprintf(clean, sizeof clean, "clean.%d.h5", ways[way].k);
    fault = ranks.rank == victim ? 10 * threshold * scale_of(ways[way].k) : 0;
    fault_row = row;
    fault_col = col;
    outcome o = multiply_by(way, "mended.h5");
    int good = o.status == GM_OK;
    if (ranks.rank == 0)
        good = good && o.repaired == 1 && command_same_data(clean, "mended.h5", (size_t)M * N * sizeof(float));
    if (!good) {
        gm_error error;
        gm_error_get(&error);
        tap_diag("%s, element [%lld, %lld] of rank %lld: status %d, %lld tiles: %s", ways[way].name, (long long)row,
                 (long long)col, (long long)victim, o.status, (long long)o.repaired, error.text);
    }
    gm_error_clear();
    return good;
}

static void check_faults(int runs)
{
    char clean[64];
    double threshold[WAYS];
    int good = 0, passed = 0;
    for (int i = 0; i < WAYS; i++) {
        snprintf(clean, sizeof clean, "clean.%d.h5", ways[i].k);
        outcome o = multiply_by(i, clean);
        threshold[i] = o.threshold;
        passed += o.status == GM_OK && o.repaired == 0;
    }
    gm_broadcast_all(threshold, sizeof threshold);
    tap_ok(passed == WAYS, "without a fault nothing is computed again");
    for (int i = 0; i < runs; i++)
        good += mend(i % WAYS, threshold[i % WAYS]);
    tap_ok(good == runs, "%d of %d wrong elements are found and mended", good, runs);
}

static void check_clean(int runs)
{
    static const char *const precisions[] = {"fp32", "fp64", "exact"};
    char line[512];
    int good = 0;
    for (int i = 0; i < runs; i++) {
        long long m = 1 + random_below(M), n = 1 + random_below(N), k = 1 + random_below(i % 4 ? 300 : K);
        snprintf(line, sizeof line,
                 "matmul in.h5:/A[0:%lld,0:%lld] in.h5:/B[0:%lld,0:%lld] -o mended.h5 --force --no-sync "
                 "--threads 2 --precision %s",
                 m, k, k, n, precisions[random_below(3)]);
        outcome o = run(line, random_below(2) ? INT64_C(64) << 20 : 0);
        int passed = o.status == GM_OK && o.repaired == 0;
        if (!passed)
            tap_diag("%s: status %d, %lld tiles", line, o.status, (long long)o.repaired);
        good += passed;
    }
    tap_ok(good == runs, "%d of %d products pass their check", good, runs);
}

int main(void)
{
    char line[256];
    if (gm_ranks_start_all(&ranks))
        return 1;
    if (folder_enter_all(&ranks))
        return 1;
    const char *runs = getenv("GPUMEM_TEST_RUNS"), *seed = getenv("GPUMEM_TEST_SEED");
    int count = runs ? atoi(runs) : getenv("GPUMEM_TEST_MEMCHECK") ? WAYS : 40;
    state = seed ? (uint64_t)atoi(seed) : 1;
    gm_log_setup(0, GM_QUIET);
    snprintf(line, sizeof line, "gen matrices in.h5 --rows %d --inner %d --columns %d --no-sync", M, K, N);
    tap_ok(run(line, 0).status == GM_OK, "input is made");
    check_faults(count);
    check_clean(count);
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
