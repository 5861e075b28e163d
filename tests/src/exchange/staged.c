/* Three ranks exchange device memory: on the processor, which stages nothing, and on a device that is slow, works in
 * queues of its own and does not address host memory. Every byte arrives and none beside it changes; when a rank fails,
 * is stopped, or has failed before, its peers learn it and nobody waits. A hang is a failure: the launcher's time limit
 * ends it. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/stop.h"
#include "kernels/kernels.h"
#include "mpi/ranks.h"
#include "src/exchange/exchange.h"
#include "src/exchange/staged.h"
#include "tests/src/exchange/links.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gm_ranks ranks;
static gm_device *device;
static int is_direct; /* the path is ipc */

/* --- Memory that cannot be shared: the linker replaces memfd_create() (-Wl,--wrap) --- */

static int shares = 1; /* on this rank */

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

int __wrap_memfd_create(const char *name, unsigned flags)
{
    return shares ? __real_memfd_create(name, flags) : -1;
}

/* --- A table whose copies fail --- */

static gm_device_ops failing;
static const gm_device_ops *working;
static int copies_left; /* until one fails; -1: none does */

static int is_struck(void)
{
    return copies_left >= 0 && copies_left-- == 0;
}

static int failing_copy_out(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                            size_t width, int64_t rows)
{
    return is_struck() ? gm_fail(GM_EDEVICE, "planted failure")
                       : working->copy_out(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int failing_copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                           size_t width, int64_t rows)
{
    return is_struck() ? gm_fail(GM_EDEVICE, "planted failure")
                       : working->copy_in(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int failing_copy_within(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                               size_t width, int64_t rows)
{
    return is_struck() ? gm_fail(GM_EDEVICE, "planted failure")
                       : working->copy_within(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int failing_share(gm_device *of, const void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY])
{
    int status = working->share(of, memory, shared, why);
    if (is_struck())
        snprintf(why, GM_SHARED_WHY, "planted failure");
    return status;
}

static int failing_open(gm_device *of, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY])
{
    if (!is_struck())
        return working->open_shared(of, shared, memory, why);
    snprintf(why, GM_SHARED_WHY, "planted failure");
    *memory = NULL;
    return GM_OK;
}

/* --- Failures --- */

static const gm_path *path(void)
{
    return is_direct ? &gm_path_ipc : &gm_path_staged;
}

static int exchange(gm_staged *s, const gm_device_ops *ops, const link *links, int count, int gap, int status,
                    int *arrived)
{
    const way w = {path(), s, ops, device, &ranks, ""};
    return link_exchange(&w, links, count, gap, status, arrived);
}

/* After a failure of rank 1: all agree on it, and the next exchange finds no message of this one. */
static void recover(gm_staged *s, const gm_device_ops *ops, int status, int expected, const char *name)
{
    int arrived, agreed = gm_agree_all(&ranks, status);
    tap_ok(agreed == expected, "%s: all agree on %d", name, expected);
    gm_error_clear();
    status = exchange(s, ops, link_ring, LINK_RANKS, 5, GM_OK, &arrived);
    status = gm_agree_all(&ranks, status); /* a rank that goes on may fail, and be heard by one that is not so far */
    tap_ok(!status && arrived, "%s: the next exchange", name);
}

/* A copy fails on rank 1: the n-th from the device or to it. */
static void test_failing_copy(gm_staged *s, int is_out, int n)
{
    char name[64];
    int arrived, status;
    snprintf(name, sizeof name, "copy %d %s the device fails", n, is_out ? "from" : "to");
    failing = *working;
    if (is_out) {
        failing.copy_out = failing_copy_out;
        failing.share = failing_share;
    } else {
        failing.copy_in = failing_copy_in;
        failing.copy_within = failing_copy_within;
        failing.open_shared = failing_open;
    }
    copies_left = ranks.rank == 1 ? n : -1;
    status = exchange(s, &failing, link_ring, LINK_RANKS, 0, GM_OK, &arrived);
    if (ranks.rank == 1)
        tap_ok(status == GM_EDEVICE, "%s: status %d", name, status);
    else if (is_out && ranks.rank == (is_direct ? 0 : 2)) /* it waits for what rank 1 cannot say */
        tap_ok(status == GM_EPEER, "%s: the peer has status %d", name, status);
    else
        tap_ok(status == GM_EPEER || (status == GM_OK && arrived), "%s: status %d", name, status);
    copies_left = -1;
    recover(s, &failing, status, GM_EDEVICE, name);
    failing = *working;
}

/* Rank 1 has failed before the exchange, and has no memory for it. */
static void test_failed_rank(gm_staged *s, const gm_device_ops *ops, const char *name)
{
    int arrived, status;
    if (ranks.rank == 1) {
        const gm_exchange_region send = {.peer = 2, .pitch = 40000, .width = 40000, .rows = 90},
                                 receive = {0, NULL, 1, 40000, 90};
        status = gm_staged_exchange(s, &send, &receive, NULL, gm_fail(GM_EINPUT, "planted failure"));
    } else {
        status = exchange(s, ops, link_ring, LINK_RANKS, 0, GM_OK, &arrived);
    }
    tap_ok(status == (ranks.rank == 1 ? GM_EINPUT : GM_EPEER) || (ranks.rank == 0 && status == GM_OK),
           "%s: a rank that has failed before: status %d", name, status);
    recover(s, ops, status, GM_EINPUT, name);
}

/* Rank 1 is told to exchange with itself: its peers learn that it failed. */
static void test_self(gm_staged *s, const gm_device_ops *ops, const char *name)
{
    const link self[] = {{1, 1, 3, 9, 9}, {0, 2, 3, 9, 9}};
    int arrived, status = exchange(s, ops, self, 2, 0, GM_OK, &arrived);
    tap_ok(ranks.rank != 1 || status == GM_EINTERNAL, "%s: itself is refused (status %d)", name, status);
    recover(s, ops, status, GM_EINTERNAL, name);
}

/* Rank 1 is stopped while it waits for rank 0, which is at work and hears of it. Nothing follows: a signal stays. */
static void test_signal(gm_staged *s, const gm_device_ops *ops)
{
    int arrived, status = GM_OK;
    double from = gm_clock();
    if (ranks.rank == 1)
        raise(SIGTERM);
    while (ranks.rank == 0 && !status && gm_clock() - from < 20)
        status = gm_stop_status();
    tap_ok(gm_clock() - from < 10, "a signal: the other ranks hear of it");
    status = exchange(s, ops, link_ring, LINK_RANKS, 0, status, &arrived);
    tap_ok(status == (ranks.rank == 1 ? GM_ESTOPPED : GM_EPEER), "a signal: status %d", status);
    tap_ok(gm_agree_all(&ranks, status) == GM_ESTOPPED, "a signal: all agree on it");
    gm_error_clear();
}

static gm_staged *open_staged(const gm_device_ops *ops, int expected)
{
    gm_staged *s = NULL;
    int status = gm_staged_open_all(ops, device, &ranks, is_direct, &s);
    tap_ok(status == expected, "open: status %d", status);
    gm_error_clear();
    return s;
}

static void test_failures(void)
{
    gm_staged *s = open_staged(&failing, GM_OK);
    for (int is_out = 0; is_out < 2; is_out++)
        for (int n = 0; n < (is_direct ? 2 : 8); n += 1 + n)
            test_failing_copy(s, is_out, n);
    gm_staged_close_all(s);
}

static int opened; /* windows to memory of other ranks */

static int counting_open(gm_device *of, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY])
{
    opened++;
    return working->open_shared(of, shared, memory, why);
}

/* Some bytes arrive wrong. */
static int wrong_copy_within(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                             size_t width, int64_t rows)
{
    int status = working->copy_within(queue, dst, dst_pitch, src, src_pitch, width, rows);
    return status ? status : working->zero(queue, (char *)dst + width / 2, 64);
}

/* The probe goes the ways of the exchanges to come, in their memory where that is large enough: no window more is
 * opened. Of two ranks the lower one opens memory of the other. windows: of each rank; NULL: any. */
static void test_ways(int64_t bytes, const int *windows, int expected, const char *name)
{
    gm_exchange_choice choice;
    gm_exchange *x = NULL;
    void *memory[2];
    int next = (ranks.rank + 1) % LINK_RANKS, last = (ranks.rank + LINK_RANKS - 1) % LINK_RANKS, is_alone;
    for (int i = 0; i < 2; i++)
        if (working->alloc(device, (size_t)bytes, &memory[i]))
            exit(1);
    is_alone = ranks.rank == 2; /* the others exchange with each other */
    const gm_exchange_way ways[] = {{memory[0], bytes, is_alone ? -1 : 1 - ranks.rank, is_alone ? -1 : 1 - ranks.rank},
                                    {memory[1], bytes, next, last}};
    const gm_exchange_setup setup = {.ops = &failing,
                                     .device = device,
                                     .ranks = &ranks,
                                     .sharers = 1,
                                     .wanted = "ipc",
                                     .ways = ways,
                                     .way_count = 2,
                                     .seconds = INFINITY};
    failing.open_shared = counting_open;
    opened = 0;
    int status = gm_exchange_open_all(&setup, &choice, &x);
    tap_ok(status == expected && (!windows || opened == windows[ranks.rank]), "%s: status %d, %d windows", name, status,
           opened);
    gm_error_clear();
    gm_exchange_close_all(x);
    for (int i = 0; i < 2; i++)
        working->free(device, memory[i]);
    failing = *working;
}

static void test_device(const gm_device_ops *ops, const char *name)
{
    int64_t used = gm_memory_used(GM_HOST);
    gm_staged *s = open_staged(ops, GM_OK);
    if (!ops->unified && !is_direct) /* slots to send, and to receive where they are not shared */
        tap_ok((gm_memory_used(GM_HOST) - used < 9 << 20) == (strstr(name, "shared") != NULL), "%s", name);
    const way w = {path(), s, ops, device, &ranks, name};
    link_test_random(&w);
    link_test_large(&w);
    link_test_event(&w);
    test_failed_rank(s, ops, name);
    test_self(s, ops, name);
    gm_staged_close_all(s);
}

int main(void)
{
    gm_stop_install();
    if (gm_ranks_start_all(&ranks) || ranks.size != LINK_RANKS || gm_device_cpu.open(0, 1, &device))
        return 1;
    int64_t before = gm_memory_used(GM_HOST);
    working = slow_device_ops(&gm_device_cpu);
    failing = *working;
    test_device(&gm_device_cpu, "not staged");
    test_device(working, "by shared slots");
    shares = ranks.rank != 1;
    test_device(working, "by messages");
    test_failures();
    shares = 1;
    test_failures();
    is_direct = 1;
    test_device(working, "from device to device");
    test_failures();
    gm_staged_close_all(open_staged(&gm_device_cpu, GM_EDEVICE));
    test_ways(4 << 20, (const int[]){3, 1, 0}, GM_OK, "a probe in the memory of exchanges");
    test_ways(4 << 10, (const int[]){2, 1, 0}, GM_OK, "a probe in memory of its own, as that is small");
    failing.copy_within = wrong_copy_within;
    test_ways(4 << 20, NULL, GM_EMPI, "a probe in the memory of exchanges, where wrong bytes arrive");
    is_direct = 0;
    gm_memory_set_cap(GM_HOST, gm_memory_used(GM_HOST) + (5 << 20));
    gm_staged_close_all(open_staged(working, GM_EDEVICE));
    gm_memory_set_cap(GM_HOST, INT64_MAX);
    gm_staged *s = open_staged(working, GM_OK);
    test_signal(s, working);
    gm_staged_close_all(s);
    tap_ok(gm_memory_used(GM_HOST) == before, "all memory is released");
    gm_device_cpu.close(device);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
