/* The ring on the CPU device: every piece passes its stages once and in order, for any depth and number of threads; a
 * failure in any stage stops the run, and the remaining sends and receives still take place. */
#include "kernels/kernels.h"
#include "src/stream/stream.h"
#include "tests/tap.h"

#include "base/status.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 200, BYTES = 4096 };

typedef struct state {
    int next, started, fail_at;
    unsigned fail_stage, stages;
    atomic_int wrong, reads, writes, failures, received;
    int sent;
    int64_t moved;
    int late;              /* turns that every fifth piece waits for */
    int waited, abandoned; /* turns; the status that abandon() was given */
    int driven, drive_at;  /* turns of drive(); the one that fails, 0: none */
} state;

static int fails(state *s, const gm_piece *piece, unsigned stage)
{
    return s->fail_stage == stage && piece->kind == s->fail_at ? gm_fail(GM_EINPUT, "planted failure") : GM_OK;
}

static int next(void *context, gm_piece *piece, int *more)
{
    state *s = context;
    *more = s->next < PIECES ? GM_MORE_NOW : GM_MORE_NONE;
    if (s->late && s->next % 7 == 0 && s->driven < 3 * s->next) {
        *more = GM_MORE_LATER;
        return GM_OK;
    }
    memset(piece, 0, sizeof *piece);
    piece->kind = s->next++;
    piece->stages = s->stages;
    piece->readers = piece->kind % 4;
    piece->bytes = piece->in = BYTES;
    piece->in_unit = 12;
    return GM_OK;
}

static int fill(void *context, const gm_piece *piece, gm_range part, void *to)
{
    state *s = context;
    s->reads += part.begin == 0;
    for (int i = (int)(part.begin / 4); i < part.end / 4; i++)
        ((int32_t *)to)[i - part.begin / 4] = piece->kind + i;
    return fails(s, piece, GM_STAGE_READ);
}

static int receive(void *context, const gm_piece *piece, void *host)
{
    state *s = context;
    s->received++;
    if (!host) {
        s->failures++;
        return GM_OK;
    }
    int status = fill(context, piece, (gm_range){0, BYTES}, host);
    return status ? status : fails(s, piece, GM_STAGE_RECEIVE);
}

static int in_order(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    (void)queue;
    state *s = context;
    s->wrong += piece->kind != s->started++;
    for (int i = 0; i < BYTES / 4; i++)
        ((int32_t *)slot->device)[i] *= 2;
    return fails(s, piece, GM_STAGE_COMPUTE);
}

static int nothing(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    (void)slot;
    (void)queue;
    return fails(context, piece, GM_STAGE_FROM_DEVICE);
}

static int check(void *context, const gm_piece *piece, gm_range all, const void *host)
{
    (void)all;
    state *s = context;
    s->writes++;
    for (int i = 0; i < BYTES / 4; i++)
        s->wrong += ((const int32_t *)host)[i] != 2 * (piece->kind + i);
    return fails(s, piece, GM_STAGE_WRITE);
}

static int send(void *context, const gm_piece *piece, const void *host)
{
    state *s = context;
    s->wrong += piece->kind != s->sent++;
    s->failures += host == NULL;
    return GM_OK;
}

static int await_turn(void *context, const gm_piece *piece, int *is_there)
{
    state *s = context;
    s->wrong += piece->kind != s->started; /* those before it have started */
    *is_there = piece->kind % 5 != 0 || ++s->waited % (s->late + 1) == 0;
    return fails(s, piece, GM_STAGE_DONE);
}

static int drive(void *context, int *is_under_way)
{
    state *s = context;
    *is_under_way = ++s->driven % 2;
    return s->driven == s->drive_at ? gm_fail(GM_EINPUT, "planted failure") : GM_OK;
}

static void abandon(void *context, int status)
{
    ((state *)context)->abandoned = status;
}

static void progress(void *context, int64_t bytes)
{
    ((state *)context)->moved += bytes;
}

static int allocations_left;

static int host_alloc_some(gm_device *device, size_t bytes, void **out)
{
    *out = NULL;
    return allocations_left-- > 0 ? gm_device_cpu.host_alloc(device, bytes, out)
                                  : gm_fail(GM_EDEVICE, "planted failure: no pinned memory");
}

static int run(state *s, int depth, int threads, int exchanging)
{
    gm_device *device;
    gm_stream *stream = NULL;
    gm_phase_times times = {0};
    gm_program program = {
        .context = s, .next = next, .read = fill, .compute = in_order, .from_device = nothing, .write = check};
    if (exchanging) {
        program.receive = receive;
        program.send = send;
    }
    if (s->late) {
        program.await_turn = await_turn;
        program.drive = drive;
        program.abandon = abandon;
    }
    if (gm_device_cpu.open(0, 1, &device))
        return GM_EINTERNAL;
    gm_device_ops ops = gm_device_cpu;
    ops.host_alloc_pageable = host_alloc_some;
    gm_stream_setup setup = {.ops = &ops,
                             .device = device,
                             .piece = BYTES,
                             .depth = depth,
                             .threads = threads,
                             .progress = progress,
                             .progress_context = s};
    int status = gm_stream_open(&setup, &stream);
    if (!status)
        status = gm_stream_run(stream, &program, &times);
    gm_stream_close(stream);
    gm_device_cpu.close(device);
    return status;
}

static void test_all_through(void)
{
    for (int depth = 1; depth <= 9; depth += 2)
        for (int threads = 1; threads <= 4; threads += 3) {
            state s = {.fail_at = -1,
                       .stages = GM_STAGE_READ | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE};
            int status = run(&s, depth, threads, 0);
            tap_ok(status == GM_OK && s.wrong == 0 && s.reads == PIECES && s.writes == PIECES &&
                       s.moved == (int64_t)PIECES * BYTES,
                   "%d slots, %d threads: each piece once, in order", depth, threads);
        }
}

/* Slots are opened while the ring runs. It goes on without those that cannot be opened, but for the first. */
static void test_few_slots(void)
{
    for (allocations_left = 0; allocations_left < 4;) {
        int allocations = allocations_left;
        state s = {.fail_at = -1, .stages = GM_STAGE_READ | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE};
        int status = run(&s, 9, 3, 0);
        gm_error error;
        gm_error_get(&error);
        tap_ok(status == (allocations ? GM_OK : GM_EDEVICE) && error.code == status && s.wrong == 0 &&
                   s.writes == (allocations ? PIECES : 0),
               "memory for %d slots of 9", allocations);
        gm_error_clear();
        allocations_left = allocations + 1;
    }
    allocations_left = INT_MAX;
}

static void test_failures(void)
{
    static const unsigned stages[] = {GM_STAGE_READ, GM_STAGE_COMPUTE, GM_STAGE_FROM_DEVICE, GM_STAGE_WRITE};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (int at = 0; at < PIECES; at += PIECES - 1) {
            state s = {.fail_at = at,
                       .fail_stage = stages[i],
                       .stages = GM_STAGE_READ | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE};
            int status = run(&s, 4, 2, 0);
            gm_error_clear();
            tap_ok(status == GM_EINPUT && s.wrong == 0, "a failure in stage %u of piece %d ends the run", stages[i],
                   at);
        }
}

static void test_exchange_after_failure(void)
{
    for (int at = 0; at < PIECES; at += 66) {
        state s = {.fail_at = at,
                   .fail_stage = GM_STAGE_COMPUTE,
                   .stages = GM_STAGE_RECEIVE | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_SEND};
        int status = run(&s, 4, 2, 1);
        gm_error_clear();
        tap_ok(status == GM_EINPUT && s.received == PIECES && s.sent == PIECES && s.wrong == 0 && s.failures > 0,
               "piece %d fails: every receive and send still takes place once, in order", at);
    }
}

/* Pieces that wait for something else than a read hold up those behind them, not the end of those before; and some
 * pieces are not there before more has been driven on. */
static void test_turns(void)
{
    const unsigned stages = GM_STAGE_READ | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE | GM_STAGE_WRITE;
    for (int depth = 1; depth <= 9; depth += 4) {
        state s = {.fail_at = -1, .stages = stages, .late = 7};
        int status = run(&s, depth, 2, 0);
        tap_ok(status == GM_OK && s.wrong == 0 && s.writes == PIECES && s.abandoned == GM_OK &&
                   s.waited == (PIECES + 4) / 5 * 8 && s.driven >= 3 * (PIECES - PIECES % 7),
               "%d slots: every fifth piece waits for its turn, %d turns in all, with %d of what goes on beside it",
               depth, s.waited, s.driven);
    }
    for (int turn = 1; turn < PIECES; turn += 30) {
        state s = {.fail_at = -1, .stages = stages, .late = 3, .drive_at = turn};
        int status = run(&s, 4, 2, 0);
        gm_error_clear();
        tap_ok(status == GM_EINPUT && s.wrong == 0 && s.abandoned == GM_EINPUT && s.driven == turn,
               "what goes on beside the pieces fails in turn %d", turn);
    }
    for (int at = 0; at < PIECES; at += 65) {
        state s = {.fail_at = at, .fail_stage = GM_STAGE_DONE, .stages = stages, .late = 3};
        int status = run(&s, 4, 2, 0);
        gm_error_clear();
        tap_ok(status == GM_EINPUT && s.wrong == 0 && s.abandoned == GM_EINPUT && s.started == at,
               "piece %d fails at its turn: it does not start, and what others expect is completed", at);
    }
}

int main(void)
{
    allocations_left = INT_MAX;
    test_all_through();
    test_few_slots();
    test_failures();
    test_exchange_after_failure();
    test_turns();
    return tap_done();
}
