/* I/O threads that read in steps and copy each step to the device themselves, and what is written back, on a device
 * that is slow, works in queues of its own and does not address host memory: the same results as on the processor,
 * whatever the size of a step. */
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gm_ranks ranks;
static int64_t device_memory;

static void use_slow_device(gm_job *job)
{
    job->ops = slow_device_ops(job->ops);
    gm_memory_set_cap(GM_DEVICE, device_memory);
}

/* Are the elements of these datasets of two files the same? */
static int is_same(const char *datasets, const char *a, const char *b)
{
    char names[64], *save = NULL;
    int status = GM_OK;
    snprintf(names, sizeof names, "%s", datasets);
    for (char *name = strtok_r(names, " ", &save); name && !status; name = strtok_r(NULL, " ", &save))
        status = command_run_all(&ranks, NULL, "compare %s:%s %s:%s", a, name, b, name);
    return status == GM_OK;
}

/* words: the operation, its input and options; datasets: of the output. */
static void check(const char *words, const char *datasets)
{
    static const char *const buffers[] = {"0", "64K", "128K", "1M"};
    int status = command_run_all(&ranks, NULL, "%s -o expected.h5 --force --no-sync", words);
    tap_ok(status == GM_OK, "%s", words);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers && !status; i++)
        for (int megabytes = 512; megabytes >= 16 && !status; megabytes /= 32) {
            device_memory = (int64_t)megabytes << 20;
            status = command_run_all(&ranks, use_slow_device,
                                     "%s -o found.h5 --force --no-sync --threads 3 --buffer %s", words, buffers[i]);
            tap_ok(status == GM_OK && is_same(datasets, "expected.h5", "found.h5"),
                   "--buffer %s, %d MiB of device memory", buffers[i], megabytes);
        }
    if (status) {
        gm_error error;
        gm_error_get(&error);
        tap_diag("%s", error.text);
    }
}

/* With buffers slots take no host memory for what is only written: eight of 2 MiB fit a cap of 4 MiB. Plans only, as
 * the device's memory is the host's. */
static void test_memory(void)
{
    static const char *const operations[] = {"flip s.h5 --axis 0", "transpose s.h5 --axes 0,1", "normalize s.h5",
                                             "normalize s.h5 --method zscore --per frame"};
    device_memory = INT64_C(512) << 20;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        int status[2];
        for (int with = 0; with < 2; with++)
            status[with] = command_run_all(&ranks, use_slow_device,
                                           "%s -o small.h5 --plan --threads 3 --piece 2M --depth 8 --host-memory 4M "
                                           "--buffer %s",
                                           operations[i], with ? "64K" : "0");
        tap_ok(status[0] == GM_EDEVICE && status[1] == GM_OK,
               "%s: little host memory is enough with buffers (code %d), not without (code %d)", operations[i],
               status[1], status[0]);
    }
}

int main(void)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* the slow device is made of the processor's */
    if (gm_ranks_start_all(&ranks))
        return 1;
    if (folder_enter_all(&ranks))
        return 1;
    gm_log_setup(0, GM_QUIET);
    int status = command_run_all(&ranks, NULL, "gen stack s.h5 --frames 21 --height 301 --width 257 --no-sync");
    if (!status)
        status = command_run_all(&ranks, NULL, "gen matrices m.h5 --rows 700 --inner 900 --columns 500 --no-sync");
    if (!status)
        status = command_run_all(&ranks, NULL, "gen matrices t.h5 --rows 600 --inner 600 --columns 600 --no-sync");
    tap_ok(status == GM_OK, "inputs are made");
    /* Several ranks: pieces that are parts of rows of the output, which are longer than the smallest buffer. */
    static const struct {
        const char *words, *datasets;
        int ranks; /* the least */
    } cases[] = {
        {"reduce s.h5 --axis frame --stat min,max,sum,var", "min max sum var", 1},
        {"reduce s.h5 --axis pixel --stat min,max,sum,argmax", "min max sum argmax", 1},
        {"reduce s.h5 --axis 1 --stat sum,mean", "sum mean", 1},
        {"normalize s.h5 --piece 300K", "images", 1},
        {"normalize s.h5 --type f64", "images", 1},
        {"normalize s.h5 --per frame --method zscore", "images", 1},
        {"normalize s.h5 --per pixel --piece 200000", "images", 1},
        {"normalize s.h5 --per pixel --type f64", "images", 2},
        {"normalize s.h5:images[:,:,0:21] --per pixel --type u8", "images", 2},
        {"normalize s.h5:images[3:17,11:300,5:250] --method percentile", "images", 1},
        {"flip s.h5 --axis 0", "images", 1},
        {"flip s.h5 --axis 2 --piece 900000", "images", 2},
        {"flip s.h5:images[1:20,3:,::3] --axis 1", "images", 1},
        {"transpose s.h5 --axes 0,2", "images", 2},
        {"transpose s.h5 --axes 1,2 --piece 700001", "images", 1},
        {"transpose s.h5 --axes 0,1", "images", 1},
        {"matmul m.h5 --piece 400000", "C", 1},
        {"matmul t.h5 --precision fp64 --transpose ab --piece 300000", "C", 1},
        {"matmul m.h5 --precision exact --piece 400000", "C", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !status; i++)
        if (cases[i].ranks >= ranks.size)
            check(cases[i].words, cases[i].datasets);
    if (!status && ranks.size == 1)
        test_memory();
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
