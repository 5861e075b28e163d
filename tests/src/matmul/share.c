/* Products whose panels are read once and exchanged, on four ranks, or the bits alone on more, on a device that is
 * slow, works in queues of its own and does not address host memory: the bits are those of one rank, whatever the grid,
 * and all ranks together read A and B once. A rank whose device or file fails, or that is stopped, ends all of them
 * with its code. A hang is a failure: the launcher's time limit ends it. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "io/read/reader.h"
#include "tests/src/command.h"
#include "tests/src/exchange/fake_library.h"
#include "tests/src/failing_device.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, M = 523, N = 437, K = 1500 };

static gm_ranks ranks;

/* --- Files --- */

static atomic_llong bytes_read; /* of elements, all of 4 bytes, that this rank has asked its readers for */

/* Reads and writes of the victim until they fail, all of them from there on; negative: they do not. */
static atomic_int reads_left, writes_left;
static atomic_int is_struck;

int __real_gm_reader_read_part(gm_reader *reader, int64_t row, int64_t col, int64_t cols, int64_t first, int64_t count,
                               void *to);
int __wrap_gm_reader_read_part(gm_reader *reader, int64_t row, int64_t col, int64_t cols, int64_t first, int64_t count,
                               void *to);
ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t offset);

static int fails(atomic_int *left)
{
    if (ranks.rank != failing.victim || atomic_load(left) < 0)
        return 0;
    if (atomic_load(left) > 0) {
        atomic_fetch_sub(left, 1);
        return 0;
    }
    atomic_store(&is_struck, 1);
    return 1;
}

int __wrap_gm_reader_read_part(gm_reader *reader, int64_t row, int64_t col, int64_t cols, int64_t first, int64_t count,
                               void *to)
{
    if (fails(&reads_left))
        return gm_fail(GM_EINPUT, "planted failure");
    atomic_fetch_add(&bytes_read, 4 * count);
    return __real_gm_reader_read_part(reader, row, col, cols, first, count, to);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    errno = ENOSPC;
    return fails(&writes_left) ? -1 : __real_pwrite(fd, from, bytes, offset);
}

/* --- Devices --- */

static int64_t device_memory = 1 << 30;
static const char *path = "staged"; /* of exchanges */

static void choose_slow(gm_job *job)
{
    job->ops = strcmp(path, "nccl") == 0 ? fake_library_ops() : slow_device_ops(job->ops);
    gm_memory_set_cap(GM_DEVICE, device_memory);
}

static void choose_failing(gm_job *job)
{
    choose_slow(job);
    job->ops = failing_device_ops(job->ops);
}

/* --- The same bits --- */

/* The options of products, the bytes of C, and those of A and B in the files. */
static const struct {
    const char *name, *options;
    int64_t bytes, inputs;
} products[] = {
    {"fp32", "in.h5", INT64_C(4) * M *N, INT64_C(4) * K *(M + N)},
    {"fp64", "in.h5 --precision fp64", INT64_C(8) * M *N, INT64_C(4) * K *(M + N)},
    {"exact", "in.h5 --precision exact --type f64", INT64_C(8) * M *N, INT64_C(4) * K *(M + N)},
    {"big-endian", "big.h5", INT64_C(4) * M *N, INT64_C(4) * K *(M + N)},
    {"both transposed", "at.h5:/A bt.h5:/A --transpose ab", INT64_C(4) * M *N, INT64_C(4) * K *(M + N)},
    {"B transposed", "in.h5:/A bt.h5:/A --transpose b", INT64_C(4) * M *N, INT64_C(4) * K *(M + N)},
    {"chunks", "chunks.h5:/A in.h5:/B", INT64_C(4) * M *N, INT64_C(4) * K *(M + N)},
    {"A times A transposed", "in.h5:/A in.h5:/A --transpose b", INT64_C(4) * M *M, INT64_C(8) * K *M},
    {"with C0", "in.h5 --alpha 1.5 --beta -2 --add c0.h5:/C", INT64_C(4) * M *N, INT64_C(4) * (K * (M + N) + M * N)},
    {"two leaves", "in.h5:/A[:,0:300] in.h5:/B[0:300,:]", INT64_C(4) * M *N, INT64_C(1200) * (M + N)},
    {"fewer rows of k than ranks", "in.h5:/A[:,0:2] in.h5:/B[0:2,:]", INT64_C(4) * M *N, INT64_C(8) * (M + N)},
    {"without a check", "in.h5 --no-verify", INT64_C(4) * M *N, INT64_C(4) * K *(M + N)},
};

static int64_t read_by_all(void)
{
    int64_t sum = atomic_exchange(&bytes_read, 0);
    gm_sum_all(&sum);
    return sum;
}

static void test_bits(void)
{
    static const char *const few[] = {"2x1x1", "1x2x1", "2x2x1", "4x1x1", "1x4x1", "3x1x1", "1x3x1"};
    static const char *const more[] = {"4x2x1", "2x4x1", "5x1x1", "3x2x1", "2x3x1", "4x2x1", "2x4x1"};
    static const char *const ways[] = {"", "--buffer 0"};
    enum { GRIDS = sizeof few / sizeof *few, PRODUCTS = sizeof products / sizeof *products };
    const char *const *grids = ranks.size > RANKS ? more : few;
    const char *how = "--force --no-sync --threads 2 --piece 50000";
    for (int i = 0; i < PRODUCTS; i++) {
        int faults = 0, runs = 0;
        int status = command_run_all(&ranks, NULL, "matmul %s -o e.h5 --grid 1x1x1 %s", products[i].options, how);
        for (int g = 0; g < GRIDS && !status; g++)
            for (int way = i == 0 ? 0 : g % 2; way <= (i == 0 ? 1 : g % 2); way++, runs++) {
                read_by_all();
                int made = command_run_all(&ranks, choose_slow,
                                           "matmul %s -o f.h5 --panels exchange --grid %s %s %s --exchange %s",
                                           products[i].options, grids[g], how, ways[way], runs % 2 ? "staged" : "ipc");
                int64_t bytes = read_by_all();
                int once = bytes == products[i].inputs;
                int good = !made && (ranks.rank > 0 || command_same_data("e.h5", "f.h5", (size_t)products[i].bytes));
                gm_error error;
                gm_error_get(&error);
                if (!good || !once)
                    tap_diag("%s %s: status %d, %lld bytes of %lld were read: %s", grids[g], ways[way], made,
                             (long long)bytes, (long long)products[i].inputs, error.text);
                faults += !good || !once;
                gm_memory_set_cap(GM_DEVICE, INT64_MAX);
            }
        tap_ok(!status && faults == 0, "%s: the bits of one rank, and inputs read once, in %d of %d runs",
               products[i].name, runs - faults, runs);
    }
}

static void test_ways(void)
{
    read_by_all();
    int status = command_run_all(&ranks, choose_slow, "matmul in.h5 -o f.h5 --force --no-sync --grid 2x2x1");
    int64_t bytes = read_by_all();
    tap_ok(!status && bytes == INT64_C(8) * K * (M + N), "by the usual rates each rank reads its panels");
    status = command_run_all(&ranks, choose_slow, "matmul in.h5 -o f.h5 --force --no-sync --panels read --grid 2x2x1");
    tap_ok(!status && read_by_all() == INT64_C(8) * K * (M + N), "and where it is to do so");
    gm_memory_set_cap(GM_DEVICE, INT64_MAX);
}

/* Panels that cannot be exchanged are refused with the reason. */
static void test_refusals(void)
{
    static const struct {
        const char *options, *reason;
        command_setup *device;
    } cases[] = {{"in.h5 --grid 1x1x1", "one rank", choose_slow},
                 {"in.h5 --grid 1x2x2", "layers", choose_slow},
                 {"in.h5:/A[0:100,:] in.h5:/B --grid 4x1x1", "no tile", choose_slow},
                 {"in.h5 --grid 2x2x1", "memory", choose_slow},
                 {"in.h5 --alpha 0 --beta 1 --add c0.h5:/C --grid 2x2x1", "nothing to multiply", choose_slow},
                 {"in.h5 --grid 2x2x1", "processor", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_error error;
        device_memory = strcmp(cases[i].reason, "memory") == 0 ? 2 << 20 : 1 << 30;
        int status = command_run_all(&ranks, cases[i].device, "matmul %s -o g.h5 --no-sync --panels exchange",
                                     cases[i].options);
        gm_error_get(&error);
        tap_ok(status == GM_EUSAGE && (ranks.rank > 0 || strstr(error.text, cases[i].reason)), "refused: %s: %s",
               cases[i].options, error.text);
        gm_error_clear();
        gm_memory_set_cap(GM_DEVICE, INT64_MAX);
    }
    device_memory = 1 << 30;
}

/* --- Failures --- */

/* All ranks end with the code, soon, and without an output; or the call was not made: *struck is 0. */
static int ends(const char *grid, int code, int64_t *struck)
{
    double from = gm_clock();
    int number = failing.left;
    int status = command_run_all(&ranks, choose_failing,
                                 "matmul in.h5 -o g.h5 --no-sync --threads 2 --piece 50000 --panels exchange "
                                 "--exchange %s --grid %s",
                                 path, grid);
    double took = gm_clock() - from;
    *struck = ranks.rank == failing.victim && (failing.left < 0 || atomic_exchange(&is_struck, 0));
    gm_sum_all(struck);
    int good = status == (*struck ? code : GM_OK) && took < 20;
    if (ranks.rank == 0)
        good &= unlink("g.h5") == (*struck ? -1 : 0);
    if (!good)
        tap_diag("%s, %s, rank %d, kind %d, %d: status %d after %.1f s", grid, path, failing.victim, failing.call,
                 number, status, took);
    gm_error_clear();
    gm_memory_set_cap(GM_DEVICE, INT64_MAX);
    return good;
}

static const char *const failing_grids[] = {"2x2x1", "4x1x1", "1x3x1"}, *const paths[] = {"staged", "nccl", "ipc"};
enum { FAILING_GRIDS = sizeof failing_grids / sizeof *failing_grids, PATHS = sizeof paths / sizeof *paths };

static void test_device(void)
{
    int struck = 0, good = 0, runs = 0;
    for (int call = FAILING_COPY_IN; call < FAILING_CALLS; call++) /* nothing is folded */
        for (failing.victim = 0; failing.victim < RANKS; failing.victim++)
            for (int number = failing.victim; number < 90; number = 4 * number + 5, runs++) {
                int64_t is_struck_at;
                failing.call = call;
                failing.left = number;
                path = paths[runs % PATHS];
                good += ends(failing_grids[runs % FAILING_GRIDS], GM_EDEVICE, &is_struck_at);
                struck += is_struck_at > 0;
            }
    failing.call = FAILING_CALLS;
    failing.left = 0;
    tap_ok(good == runs && struck > runs / 3, "calls that fail: %d of %d runs end in order, %d of them failed", good,
           runs, struck);
}

static void test_files(void)
{
    static const int codes[] = {GM_EINPUT, GM_EOUTPUT};
    int struck = 0, good = 0, runs = 0;
    for (int writes = 0; writes < 2; writes++)
        for (failing.victim = 0; failing.victim < RANKS; failing.victim++)
            for (int number = failing.victim; number < 40; number = 3 * number + 5, runs++) {
                int64_t is_struck_at;
                atomic_store(&reads_left, writes ? -1 : number);
                atomic_store(&writes_left, writes ? number : -1);
                path = paths[runs % PATHS];
                good += ends(failing_grids[runs % FAILING_GRIDS], codes[writes], &is_struck_at);
                struck += is_struck_at > 0;
            }
    atomic_store(&reads_left, -1);
    atomic_store(&writes_left, -1);
    tap_ok(good == runs && struck > runs / 3, "files that fail: %d of %d runs end in order, %d of them failed", good,
           runs, struck);
    path = "staged";
    command_run_all(&ranks, NULL, "matmul in.h5 -o e.h5 --force --no-sync --grid 1x1x1");
    int made = command_run_all(&ranks, choose_slow,
                               "matmul in.h5 -o f.h5 --force --no-sync --panels exchange --grid 2x2x1") == GM_OK;
    tap_ok(made && (ranks.rank > 0 || command_same_data("e.h5", "f.h5", (size_t)4 * M * N)),
           "and the next product is right");
    gm_memory_set_cap(GM_DEVICE, INT64_MAX);
}

/* A signal in the middle, on one rank; it stays, so that nothing follows. */
static void test_signal(void)
{
    int64_t struck;
    failing = (failing_plan){.rank = ranks.rank, .victim = 2, .call = FAILING_COPY_OUT, .left = 3, .stops = 1};
    path = "nccl";
    int good = ends("2x2x1", GM_ESTOPPED, &struck);
    tap_ok(good && struck, "a signal to one rank ends all");
}

static int make_inputs(void)
{
    static const char *const lines[] = {"matrices in.h5 --rows %d --inner %d --columns %d",
                                        "matrices big.h5 --rows %d --inner %d --columns %d --big-endian"};
    int status = GM_OK;
    for (int i = 0; i < 2 && !status; i++) {
        char line[128];
        snprintf(line, sizeof line, lines[i], M, K, N);
        status = command_run_all(&ranks, NULL, "gen %s --no-sync", line);
    }
    if (!status)
        status = command_run_all(&ranks, NULL, "gen matrices at.h5 --rows %d --inner %d --columns 1 --no-sync", K, M);
    if (!status)
        status = command_run_all(&ranks, NULL, "gen matrices bt.h5 --rows %d --inner %d --columns 1 --no-sync", N, K);
    if (!status)
        status = command_run_all(&ranks, NULL, "flip in.h5:/A -o chunks.h5:/A --axis 0 --chunk 96,100 --no-sync");
    return status ? status : command_run_all(&ranks, NULL, "matmul in.h5 -o c0.h5 --no-sync");
}

int main(void)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* the slow device is made of the processor's */
    gm_stop_install();
    atomic_store(&reads_left, -1);
    atomic_store(&writes_left, -1);
    if (gm_ranks_start_all(&ranks) || ranks.size < RANKS)
        return 1;
    gm_log_setup(0, GM_QUIET);
    failing.rank = ranks.rank;
    if (folder_enter_all(&ranks))
        return 1;
    tap_ok(make_inputs() == GM_OK, "inputs are made");
    test_bits();
    if (ranks.size == RANKS) {
        test_ways();
        test_refusals();
        test_device();
        test_files();
        test_signal();
    }
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
