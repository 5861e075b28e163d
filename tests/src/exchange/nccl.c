/* Three ranks exchange device memory by a library that stands for NCCL (fake_nccl.c), on a device that is slow and
 * works in queues of its own. Every byte arrives; a library that is absent, old, different, hangs or brings wrong bytes
 * is passed over, with its reason, within the time it has; when a rank fails or is stopped while messages are under
 * way, all ranks learn it and nobody waits.
 *
 * With the word "die" the test is a program for tests/cli/exchange.t: rank 1 is killed, or ("stuck") fails where rank 0
 * cannot abort, while the others wait for its messages. */
#include "src/exchange/exchange.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/stop.h"
#include "kernels/kernels.h"
#include "tests/src/exchange/fake_library.h"
#include "tests/src/exchange/links.h"
#include "tests/src/slow/memory.h"
#include "tests/tap.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double within = 10; /* seconds */
static double patience = 20;     /* likewise */

static gm_ranks ranks;
static gm_device *device;
static const gm_device_ops *ops;

static void plant(int rank, fake_fault what)
{
    fake_library_plant(rank < 0 || rank == ranks.rank ? what : FAKE_GOOD);
}

/* --- Exchanges --- */

static int open_exchange_all(const char *wanted, int sharers, gm_exchange_choice *choice, gm_exchange **x)
{
    const gm_exchange_setup setup = {.ops = ops,
                                     .device = device,
                                     .ranks = &ranks,
                                     .sharers = sharers,
                                     .wanted = wanted,
                                     .patience = patience,
                                     .seconds = INFINITY};
    return gm_exchange_open_all(&setup, choice, x);
}

/* Opens a path by itself, without a probe. */
static int open_path_all(way *w)
{
    const gm_exchange_setup setup = {.ops = ops,
                                     .device = device,
                                     .ranks = &ranks,
                                     .sharers = 1,
                                     .wanted = w->path->name,
                                     .patience = patience,
                                     .seconds = INFINITY};
    char version[GM_PATH_VERSION];
    return w->path->open_all(&setup, &w->state, version);
}

static way open_nccl_all(const char *name)
{
    way w = {&gm_path_nccl, NULL, ops, device, &ranks, name};
    if (open_path_all(&w))
        exit(1);
    return w;
}

static void test_choice(void)
{
    gm_exchange_choice choice;
    gm_exchange *x = NULL;
    double own = 0, rate = 0;
    int status = open_exchange_all("auto", 1, &choice, &x);
    tap_ok(!status && strcmp(choice.path, "nccl") == 0 && strcmp(choice.version, "2.28.9") == 0 &&
               strstr(choice.reason, "does not share its memory"),
           "NCCL is taken: %s %s, as %s", choice.path, choice.version, choice.reason);
    status = gm_exchange_rate_all(x, &own, &rate);
    tap_ok(!status && rate > 0 && own >= rate, "a rate: %.3g GB/s, %.3g GB/s of all", own / 1e9, rate / 1e9);
    gm_exchange_close_all(x);
    status = open_exchange_all("staged", 1, &choice, &x);
    tap_ok(!status && strcmp(choice.path, "staged") == 0 && strcmp(choice.reason, "asked for") == 0,
           "staged is taken where it is asked for: %s", choice.reason);
    gm_exchange_close_all(x);
    status = open_exchange_all("nccl", ranks.rank == 2 ? 2 : 1, &choice, &x);
    gm_error error;
    gm_error_get(&error);
    tap_ok(status == GM_EDEVICE && strstr(error.text, "2 ranks share one") && strstr(error.text, "(rank 2"),
           "a shared GPU: %s", error.text);
    gm_error_clear();
    gm_exchange_close_all(x);
}

static void test_bytes(void)
{
    way w = open_nccl_all("NCCL");
    link_test_random(&w);
    link_test_large(&w);
    link_test_event(&w);
    w.path->close_all(w.state);
}

/* --- Faults at the start: NCCL is passed over --- */

static void test_start(int rank, fake_fault what, const char *reason)
{
    gm_exchange_choice choice;
    gm_exchange *x = NULL;
    gm_error error;
    int arrived;
    double from = gm_clock();
    plant(rank, what);
    patience = what == FAKE_NEVER_READY || what == FAKE_LOST || what == FAKE_CONNECT_HANGS ? 2 : 20;
    int status = open_exchange_all("auto", 1, &choice, &x);
    double seconds = gm_clock() - from;
    tap_ok(!status && strcmp(choice.path, "staged") == 0 && strstr(choice.reason, reason),
           "passed over: %s (status %d)", choice.reason, status);
    tap_ok(seconds < within, "... within %.1f s", seconds);
    gm_exchange_close_all(x);
    way w = {&gm_path_staged, NULL, ops, device, &ranks, "staged"};
    status = open_path_all(&w);
    if (!status)
        status = link_exchange(&w, link_ring, LINK_RANKS, 5, GM_OK, &arrived);
    tap_ok(gm_agree_all(&ranks, status) == GM_OK && arrived, "... and the staged path carries bytes");
    w.path->close_all(w.state);
    if (what != FAKE_CONNECT_HANGS) { /* what hangs stays */
        x = NULL;
        status = open_exchange_all("nccl", 1, &choice, &x);
        gm_error_get(&error);
        tap_ok(status && strstr(error.text, reason), "... and an error where it is asked for: %s", error.text);
        gm_error_clear();
        gm_exchange_close_all(x);
    }
    patience = 20;
    plant(-1, FAKE_GOOD);
}

/* --- Failures while messages are under way --- */

/* Rank 1 fails in a way; the exchange after it fails too, on all ranks, and one after a new open succeeds. */
static void test_failure(const char *name, fake_fault what, int status_before, int expected)
{
    int arrived;
    way w = open_nccl_all(name);
    int status = link_exchange(&w, link_ring, LINK_RANKS, 0, GM_OK, &arrived);
    tap_ok(gm_agree_all(&ranks, status) == GM_OK && arrived, "%s: before it", name);
    plant(1, what);
    double from = gm_clock();
    int own = ranks.rank == 1 && status_before ? gm_fail(status_before, "planted failure") : GM_OK;
    status = link_exchange(&w, link_ring, LINK_RANKS, 0, own, &arrived);
    tap_ok(ranks.rank == 1 ? status == expected : status == GM_EPEER || (status == GM_OK && arrived), "%s: status %d",
           name, status);
    tap_ok(gm_agree_all(&ranks, status) == expected && gm_clock() - from < within, "%s: all agree on it, in %.2f s",
           name, gm_clock() - from);
    gm_error_clear();
    plant(-1, FAKE_GOOD);
    status = gm_agree_all(&ranks, link_exchange(&w, link_ring, LINK_RANKS, 0, GM_OK, &arrived));
    tap_ok(status == GM_EINTERNAL, "%s: the path is closed (status %d)", name, status);
    w.path->close_all(w.state);
    gm_error_clear();
    w = open_nccl_all(name);
    status = gm_agree_all(&ranks, link_exchange(&w, link_ring, LINK_RANKS, 0, GM_OK, &arrived));
    tap_ok(!status && arrived, "%s: a new one carries bytes", name);
    w.path->close_all(w.state);
}

/* Rank 1 makes no exchange: it is at other work, and fails there. The others wait for it on the device. */
static void test_absence(void)
{
    int arrived, status = GM_OK;
    way w = open_nccl_all("work elsewhere");
    double from = gm_clock();
    while (ranks.rank == 1 && gm_clock() - from < 0.5)
        ;
    if (ranks.rank == 1)
        status = gm_fail(GM_EINPUT, "planted failure");
    status = link_exchange(&w, link_ring, LINK_RANKS, 0, status, &arrived);
    tap_ok(status == (ranks.rank == 1 ? GM_EINPUT : GM_EPEER), "a failure elsewhere: status %d", status);
    tap_ok(gm_agree_all(&ranks, status) == GM_EINPUT && gm_clock() - from < within, "a failure elsewhere: in %.2f s",
           gm_clock() - from);
    w.path->close_all(w.state);
    gm_error_clear();
}

/* Rank 1 fails of itself in the middle. */
static void test_fail(void)
{
    way w = open_nccl_all("fail");
    static char memory[1 << 20];
    const gm_exchange_region send = {(ranks.rank + 1) % 3, memory, 1 << 19, 1 << 19, 1},
                             receive = {(ranks.rank + 2) % 3, memory + (1 << 19), 1 << 19, 1 << 19, 1};
    slow_memory_add(memory, sizeof memory);
    plant(2, FAKE_LOST);
    w.path->begin(w.state, &send, &receive, NULL, GM_OK);
    for (int i = 0; i < 50; i++)
        w.path->advance(w.state);
    if (ranks.rank == 1)
        w.path->fail(w.state, gm_fail(GM_EOUTPUT, "planted failure"));
    int status = w.path->end(w.state);
    tap_ok(status == (ranks.rank == 1 ? GM_EOUTPUT : GM_EPEER), "failed from outside: status %d", status);
    tap_ok(gm_agree_all(&ranks, status) == GM_EOUTPUT, "failed from outside: all agree");
    w.path->close_all(w.state);
    slow_memory_remove(memory);
    gm_error_clear();
    plant(-1, FAKE_GOOD);
}

/* Rank 1 is stopped while messages are under way that never end. Nothing follows: a signal stays. */
static void test_signal(void)
{
    int arrived;
    way w = open_nccl_all("signal");
    plant(2, FAKE_LOST);
    if (ranks.rank == 1)
        raise(SIGTERM);
    double from = gm_clock();
    int status = link_exchange(&w, link_ring, LINK_RANKS, 0, GM_OK, &arrived);
    tap_ok(status == (ranks.rank == 1 ? GM_ESTOPPED : GM_EPEER), "a signal: status %d", status);
    tap_ok(gm_agree_all(&ranks, status) == GM_ESTOPPED && gm_clock() - from < within, "a signal: all agree, in %.2f s",
           gm_clock() - from);
    w.path->close_all(w.state);
    gm_error_clear();
}

/* For tests/cli/exchange.t: rank 1 is killed while the others wait for it, or fails and they cannot abort. */
static void die(const char *how)
{
    int arrived, is_kill = strcmp(how, "die") == 0, status = GM_OK;
    way w = open_nccl_all(how);
    if (!is_kill)
        plant(0, FAKE_ABORT_HANGS);
    double from = gm_clock();
    while (ranks.rank == 1 && gm_clock() - from < 0.5)
        ;
    if (ranks.rank == 1 && is_kill)
        raise(SIGKILL);
    if (ranks.rank == 1)
        status = gm_fail(GM_EINPUT, "planted failure");
    status = link_exchange(&w, link_ring, LINK_RANKS, 0, status, &arrived);
    status = gm_agree_all(&ranks, status);
    exit(status);
}

int main(int argc, char **argv)
{
    gm_stop_install();
    if (gm_ranks_start_all(&ranks) || ranks.size != LINK_RANKS || gm_device_cpu.open(0, 1, &device))
        return 1;
    ops = fake_library_ops();
    if (argc > 1)
        die(argv[1]);
    int64_t before = gm_memory_used(GM_DEVICE) + gm_memory_used(GM_HOST);
    test_choice();
    test_bytes();
    test_start(-1, FAKE_ABSENT, "libnccl.so.2 is not where the loader looks");
    test_start(1, FAKE_ABSENT, "libnccl.so.2 is not where the loader looks");
    test_start(2, FAKE_NO_SYMBOL, "has no ncclSend");
    test_start(1, FAKE_OLD, "expected version 2.14 or later");
    test_start(1, FAKE_OTHER_VERSION, "NCCL 2.29.7 here, 2.28.9 on another rank");
    test_start(0, FAKE_NO_IDENTITY, "ncclGetUniqueId: fake error");
    test_start(1, FAKE_CONNECT_FAILS, "ncclCommInitRankConfig: fake error");
    test_start(2, FAKE_NEVER_READY, "making a communicator takes more than 2 s");
    test_start(1, FAKE_WRONG, "wrong bytes arrived");
    test_start(1, FAKE_LOST, "a probe has not arrived after 2 s");
    test_start(1, FAKE_SEND_FAILS, "ncclSend: fake error");
    test_start(1, FAKE_REMOTE_ERROR, "fake remote error");
    test_failure("a remote error", FAKE_REMOTE_ERROR, GM_OK, GM_EMPI);
    test_failure("a send that fails", FAKE_SEND_FAILS, GM_OK, GM_EMPI);
    test_failure("a rank that has failed before", FAKE_GOOD, GM_EINPUT, GM_EINPUT);
    test_absence();
    test_fail();
    tap_ok(gm_memory_used(GM_DEVICE) + gm_memory_used(GM_HOST) == before, "all memory is released");
    test_start(2, FAKE_CONNECT_HANGS, "making a communicator takes more than 2 s");
    test_signal();
    gm_device_cpu.close(device);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
