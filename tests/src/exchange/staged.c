/* Three ranks exchange device memory: on the processor, which stages nothing, and on a device that is slow, works in
 * queues of its own and does not address host memory. Every byte arrives and none beside it changes; when a rank fails,
 * is stopped, or has failed before, its peers learn it and nobody waits. A hang is a failure: the launcher's time limit
 * ends it. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/size.h"
#include "base/stop.h"
#include "kernels/kernels.h"
#include "mpi/ranks.h"
#include "src/exchange/staged.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, CASES = 40, GAP = 0xEE };

static gm_ranks ranks;
static gm_device *device;

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

/* --- Regions --- */

/* Rows from a rank to another, the same on all ranks. */
typedef struct link {
    int from, to, number;
    int64_t rows, width;
} link;

static unsigned char value(const link *l, int64_t row, int64_t col)
{
    uint32_t x = (uint32_t)row * 2654435761U + (uint32_t)col * 40503U + (uint32_t)(l->number * 31 + l->from * 97);
    return (unsigned char)(x >> 7 ^ x >> 15);
}

static gm_region lend(const gm_device_ops *ops, const link *l, int peer, int64_t gap)
{
    gm_region r = {.peer = peer, .width = (size_t)l->width, .pitch = (size_t)(l->width + gap), .rows = l->rows};
    size_t bytes = r.pitch * (size_t)r.rows + 1;
    if (ops->alloc(device, bytes, &r.memory))
        exit(1);
    memset(r.memory, GAP, bytes);
    return r;
}

static gm_region lend_source(const gm_device_ops *ops, const link *l, int64_t gap)
{
    gm_region r = lend(ops, l, l->to, gap);
    for (int64_t i = 0; i < l->rows; i++)
        for (int64_t k = 0; k < l->width; k++)
            ((unsigned char *)r.memory)[i * (int64_t)r.pitch + k] = value(l, i, k);
    return r;
}

/* Is every byte of the link there, and none beside it changed? */
static int has_arrived(const link *l, const gm_region *r)
{
    const unsigned char *at = r->memory;
    int64_t wrong = 0, pitch = (int64_t)r->pitch;
    for (int64_t i = 0; i < l->rows; i++)
        for (int64_t k = 0; k < pitch; k++)
            wrong += at[i * pitch + k] != (k < l->width ? value(l, i, k) : GAP);
    return wrong == 0 && at[pitch * l->rows] == GAP;
}

/* --- Exchanges --- */

/* This rank's part of some links, one from each rank at most. Returns the status; *arrived: what it receives is right.
 */
static int exchange(gm_staged *s, const gm_device_ops *ops, const link *links, int count, int gap, int status,
                    int *arrived)
{
    const link *out = NULL, *in = NULL;
    for (int i = 0; i < count; i++) {
        out = links[i].from == ranks.rank ? &links[i] : out;
        in = links[i].to == ranks.rank ? &links[i] : in;
    }
    gm_region send = {0}, receive = {0};
    if (out)
        send = lend_source(ops, out, gap);
    if (in)
        receive = lend(ops, in, in->from, 2 * gap);
    int result = gm_staged_exchange(s, out ? &send : NULL, in ? &receive : NULL, NULL, status);
    *arrived = !in || has_arrived(in, &receive);
    ops->free(device, send.memory);
    ops->free(device, receive.memory);
    return result;
}

static int64_t draw(uint64_t *state, int64_t n)
{
    return (int64_t)(gm_random_bits(7, (*state)++) % (uint64_t)n);
}

/* No bytes, one, some rows, narrow rows, rows of several pieces. */
static link random_link(uint64_t *state, int from, int to, int number)
{
    const int64_t shapes[][2] = {{0, 77},
                                 {5, 0},
                                 {1, 1},
                                 {1, 1 + draw(state, 3 << 20)},
                                 {1 + draw(state, 300), 1 + draw(state, 9000)},
                                 {1 + draw(state, 20000), 1 + draw(state, 5)},
                                 {1 + draw(state, 3), (1 << 18) + draw(state, 1 << 19)}};
    const int64_t *shape = shapes[draw(state, 7)];
    return (link){from, to, number, shape[0], shape[1]};
}

/* Links from each rank to the next, or to the one before; some are absent. */
static void test_random(gm_staged *s, const gm_device_ops *ops, const char *name)
{
    uint64_t state = 1;
    int faults = 0;
    for (int i = 0; i < CASES; i++) {
        int shift = 1 + (int)draw(&state, 2), gap = (int)draw(&state, 2) * (int)draw(&state, 99), count = 0, arrived;
        link links[RANKS];
        for (int from = 0; from < RANKS; from++) {
            links[count] = random_link(&state, from, (from + shift) % RANKS, i);
            count += draw(&state, 4) > 0;
        }
        int status = exchange(s, ops, links, count, gap, GM_OK, &arrived);
        faults += status != GM_OK || !arrived;
    }
    tap_ok(!faults, "%s: %d exchanges, faults %d", name, CASES, faults);
}

/* Two ranks, both directions, while the third has nothing to do; pieces of the largest size. */
static void test_large(gm_staged *s, const gm_device_ops *ops, const char *name)
{
    const link links[] = {{0, 2, 1, 1, (34 << 20) + 13}, {2, 0, 2, 4100, 8200}};
    int arrived, status = exchange(s, ops, links, 2, 3, GM_OK, &arrived);
    tap_ok(status == GM_OK && arrived, "%s: a row, and rows, of 32 MiB and more", name);
}

/* The copies begin after an event, and the rank does other work meanwhile. */
static void test_event(gm_staged *s, const gm_device_ops *ops, const char *name)
{
    const link around[] = {{0, 1, 5, 40, 20000}, {1, 2, 5, 40, 20000}, {2, 0, 5, 40, 20000}};
    const link *out = &around[ranks.rank], *in = &around[(ranks.rank + RANKS - 1) % RANKS];
    gm_region source = lend_source(ops, out, 0), send = lend(ops, out, out->to, 64),
              receive = lend(ops, in, in->from, 0);
    gm_queue *queue = NULL;
    gm_event *filled = NULL;
    int status = ops->queue_open(device, &queue);
    if (!status)
        status = ops->event_open(device, &filled);
    for (int64_t i = 0; i < out->rows && !status; i++)
        status = ops->copy_in(queue, (char *)send.memory + (size_t)i * send.pitch, send.pitch,
                              (char *)source.memory + (size_t)i * source.pitch, source.pitch, send.width, 1);
    if (!status)
        status = ops->event_record(filled, queue);
    gm_staged_begin(s, &send, &receive, filled, status);
    while (!gm_staged_advance(s))
        ;
    status = gm_agree_all(&ranks, gm_staged_end(s)); /* failures follow */
    tap_ok(!status && has_arrived(in, &receive), "%s: data of work that is under way", name);
    ops->event_close(filled);
    ops->queue_close(queue);
    ops->free(device, source.memory);
    ops->free(device, send.memory);
    ops->free(device, receive.memory);
}

/* --- Failures --- */

static const link ring[RANKS] = {{0, 1, 3, 90, 40000}, {1, 2, 3, 90, 40000}, {2, 0, 3, 90, 40000}};

/* After a failure of rank 1: all agree on it, and the next exchange finds no message of this one. */
static void recover(gm_staged *s, const gm_device_ops *ops, int status, int expected, const char *name)
{
    int arrived, agreed = gm_agree_all(&ranks, status);
    tap_ok(agreed == expected, "%s: all agree on %d", name, expected);
    gm_error_clear();
    status = exchange(s, ops, ring, RANKS, 5, GM_OK, &arrived);
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
    if (is_out)
        failing.copy_out = failing_copy_out;
    else
        failing.copy_in = failing_copy_in;
    copies_left = ranks.rank == 1 ? n : -1;
    status = exchange(s, &failing, ring, RANKS, 0, GM_OK, &arrived);
    if (ranks.rank == 1)
        tap_ok(status == GM_EDEVICE, "%s: status %d", name, status);
    else if (ranks.rank == 2 && is_out)
        tap_ok(status == GM_EPEER, "%s: the receiver has status %d", name, status);
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
        const gm_region send = {.peer = 2, .pitch = 40000, .width = 40000, .rows = 90},
                        receive = {0, NULL, 1, 40000, 90};
        status = gm_staged_exchange(s, &send, &receive, NULL, gm_fail(GM_EINPUT, "planted failure"));
    } else {
        status = exchange(s, ops, ring, RANKS, 0, GM_OK, &arrived);
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
    status = exchange(s, ops, ring, RANKS, 0, status, &arrived);
    tap_ok(status == (ranks.rank == 1 ? GM_ESTOPPED : GM_EPEER), "a signal: status %d", status);
    tap_ok(gm_agree_all(&ranks, status) == GM_ESTOPPED, "a signal: all agree on it");
    gm_error_clear();
}

static gm_staged *open_staged(const gm_device_ops *ops, int expected)
{
    gm_staged *s = NULL;
    int status = gm_staged_open(ops, device, ranks.rank, &s);
    tap_ok(status == expected, "open: status %d", status);
    gm_error_clear();
    return s;
}

static void test_device(const gm_device_ops *ops, const char *name)
{
    gm_staged *s = open_staged(ops, GM_OK);
    test_random(s, ops, name);
    test_large(s, ops, name);
    test_event(s, ops, name);
    test_failed_rank(s, ops, name);
    test_self(s, ops, name);
    gm_staged_close(s);
}

int main(void)
{
    gm_stop_install();
    if (gm_ranks_start_all(&ranks) || ranks.size != RANKS || gm_device_cpu.open(0, 1, &device))
        return 1;
    int64_t before = gm_memory_used(GM_HOST);
    working = slow_device_ops(&gm_device_cpu);
    failing = *working;
    test_device(&gm_device_cpu, "not staged");
    test_device(working, "staged");
    gm_staged *s = open_staged(&failing, GM_OK);
    for (int is_out = 0; is_out < 2; is_out++)
        for (int n = 0; n < 8; n += 1 + n)
            test_failing_copy(s, is_out, n);
    gm_memory_set_cap(GM_HOST, gm_memory_used(GM_HOST) + (20 << 20));
    gm_staged_close(open_staged(working, GM_EDEVICE));
    gm_memory_set_cap(GM_HOST, INT64_MAX);
    test_signal(s, working);
    gm_staged_close(s);
    tap_ok(gm_memory_used(GM_HOST) == before, "all memory is released");
    gm_device_cpu.close(device);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
