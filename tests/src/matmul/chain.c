/* Products whose layers are a chain, on four ranks, on the processor and on a device that is slow, works in queues of
 * its own and does not address host memory: the bits are those of one rank, whatever the grid, in one block or several,
 * with more layers than leaves. A rank whose device fails, or that is stopped, ends all of them with its code. A hang
 * is a failure: the launcher's time limit ends it. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "tests/src/command.h"
#include "tests/src/exchange/fake_library.h"
#include "tests/src/failing_device.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, M = 397, N = 341, K = 1500 };

static gm_ranks ranks;

/* --- Devices --- */

static int64_t device_memory; /* of the slow device; 0: the processor */
static int is_nccl;           /* the path of exchanges */

static void choose_device(gm_job *job)
{
    if (device_memory == 0)
        return;
    job->ops = is_nccl ? fake_library_ops() : slow_device_ops(job->ops);
    gm_memory_set_cap(GM_DEVICE, device_memory);
}

static void choose_failing(gm_job *job)
{
    choose_device(job);
    job->ops = failing_device_ops(job->ops);
}

/* --- The same bits --- */

/* The options of products, the bytes of C, and the device memory in which it takes several blocks. */
static const struct {
    const char *name, *options;
    int64_t bytes, little;
} products[] = {
    {"fp32", "in.h5", INT64_C(4) * M *N, 2 << 20},
    {"fp64", "in.h5 --precision fp64", INT64_C(8) * M *N, 4 << 20},
    {"exact", "in.h5 --precision exact --type f64", INT64_C(8) * M *N, 4 << 20},
    {"with C0", "in.h5 --alpha 1.5 --beta -2 --add c0.h5:/C", INT64_C(4) * M *N, 2 << 20},
    {"A times A transposed", "in.h5:/A in.h5:/A --transpose b", INT64_C(4) * M *M, 2 << 20},
    {"B transposed times B", "in.h5:/B in.h5:/B --transpose a", INT64_C(4) * N *N, 2 << 20},
    {"two leaves", "in.h5:/A[:,0:300] in.h5:/B[0:300,:]", INT64_C(4) * M *N, 2 << 20},
    {"one leaf", "in.h5:/A[:,0:70] in.h5:/B[0:70,:]", INT64_C(4) * M *N, 2 << 20},
    {"no leaf", "in.h5 --alpha 0 --beta 3 --add c0.h5:/C", INT64_C(4) * M *N, 2 << 20},
    {"without a check", "in.h5 --no-verify", INT64_C(4) * M *N, 2 << 20},
};

static void test_bits(void)
{
    static const char *const grids[] = {"1x1x2", "1x1x3", "1x1x4", "2x1x2", "1x2x2"};
    enum { GRIDS = sizeof grids / sizeof *grids, PRODUCTS = sizeof products / sizeof *products };
    const char *how = "--force --no-sync --threads 2 --piece 50000";
    for (int i = 0; i < PRODUCTS; i++) {
        int faults = 0, runs = 0;
        device_memory = 0;
        int status = command_run_all(&ranks, NULL, "matmul %s -o e.h5 --grid 1x1x1 %s", products[i].options, how);
        const int64_t memory[] = {0, 1 << 30, products[i].little};
        for (int g = 0; g < GRIDS && !status; g++)
            for (int way = 0; way < 3; way++, runs++) {
                device_memory = memory[way];
                int made = command_run_all(&ranks, choose_device, "matmul %s -o f.h5 --grid %s %s", products[i].options,
                                           grids[g], how);
                int good = !made && (ranks.rank > 0 || command_same_data("e.h5", "f.h5", (size_t)products[i].bytes));
                gm_error error;
                gm_error_get(&error);
                if (!good)
                    tap_diag("%s, %lld bytes: status %d: %s", grids[g], (long long)device_memory, made, error.text);
                faults += !good;
                gm_memory_set_cap(GM_DEVICE, INT64_MAX);
            }
        tap_ok(!status && faults == 0, "%s: the bits of one rank, in %d of %d runs", products[i].name, runs - faults,
               runs);
    }
}

/* --- Failures --- */

/* All ranks end with the code, soon, and without an output; or the call was not made: *struck is 0. */
static int ends(const char *grid, int code, int64_t *struck)
{
    double from = gm_clock();
    int number = failing.left;
    int status = command_run_all(&ranks, choose_failing,
                                 "matmul in.h5 -o g.h5 --no-sync --threads 2 --piece 50000 --grid %s --device-memory "
                                 "%lld --exchange %s",
                                 grid, (long long)(device_memory ? device_memory : 1 << 30),
                                 is_nccl ? "nccl" : "staged");
    double took = gm_clock() - from;
    *struck = ranks.rank == failing.victim && failing.left < 0;
    gm_sum_all(struck);
    int good = status == (*struck ? code : GM_OK) && took < 20;
    if (ranks.rank == 0)
        good &= unlink("g.h5") == (*struck ? -1 : 0);
    if (!good)
        tap_diag("%s, rank %d, %s %d: status %d after %.1f s", grid, failing.victim, failing_names[failing.call],
                 number, status, took);
    gm_error_clear();
    gm_memory_set_cap(GM_DEVICE, INT64_MAX);
    return good;
}

static void test_failures(void)
{
    static const int64_t memory[] = {0, 1 << 30, 2 << 20};
    int struck = 0, good = 0, runs = 0;
    for (int call = 0; call < FAILING_CALLS; call++)
        for (failing.victim = 0; failing.victim < RANKS; failing.victim++)
            for (int way = 0; way < 3; way++)
                for (int number = way; number < 40; number = 3 * number + 5, runs++) {
                    int64_t is_struck;
                    device_memory = memory[way];
                    is_nccl = device_memory == memory[1];
                    failing.call = call;
                    failing.left = number;
                    good += ends("1x1x4", GM_EDEVICE, &is_struck);
                    struck += is_struck > 0;
                }
    failing.call = FAILING_CALLS;
    tap_ok(good == runs && struck > runs / 3, "calls that fail: %d of %d runs end in order, %d of them failed", good,
           runs, struck);
    device_memory = is_nccl = 0;
    int made = command_run_all(&ranks, NULL, "matmul in.h5 -o f.h5 --force --no-sync --grid 1x1x4") == GM_OK;
    command_run_all(&ranks, NULL, "matmul in.h5 -o e.h5 --force --no-sync --grid 1x1x1");
    tap_ok(made && (ranks.rank > 0 || command_same_data("e.h5", "f.h5", (size_t)4 * M * N)),
           "and the next product is right");
}

/* A signal in the middle, on one rank; it stays, so that nothing follows. */
static void test_signal(void)
{
    device_memory = 1 << 30;
    is_nccl = 1;
    failing = (failing_plan){.rank = ranks.rank, .victim = 2, .call = FAILING_FOLD, .left = 3, .stops = 1};
    int64_t struck;
    int good = ends("1x1x4", GM_ESTOPPED, &struck);
    tap_ok(good && struck, "a signal to one rank ends all");
}

int main(void)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* the slow device is made of the processor's */
    gm_stop_install();
    if (gm_ranks_start_all(&ranks) || ranks.size != RANKS)
        return 1;
    gm_log_setup(0, GM_QUIET);
    failing.rank = ranks.rank;
    if (folder_enter_all(&ranks))
        return 1;
    tap_ok(command_run_all(&ranks, NULL, "gen matrices in.h5 --rows %d --inner %d --columns %d --no-sync", M, K, N) ==
                   GM_OK &&
               command_run_all(&ranks, NULL, "matmul in.h5 -o c0.h5 --no-sync") == GM_OK,
           "inputs are made");
    test_bits();
    test_failures();
    test_signal();
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
