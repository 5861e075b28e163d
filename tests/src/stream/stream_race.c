/* The ring on an asynchronous device (late_device.h): pieces of all kinds in flight at once, failures in every stage,
 * of the device and of another rank, a signal. Every value arrives once, whole and in order. tests/long/stream_race.t
 * builds this test with the thread sanitizer, without MPI: the functions of mpi/ that the ring calls are replaced here.
 */
#include "base/status.h"
#include "base/stop.h"
#include "src/stream/stream.h"
#include "tests/src/stream/checked_program.h"
#include "tests/src/stream/late_device.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdlib.h>

/* --- mpi/cancel.h --- */

static int cancels;         /* calls of gm_cancel() */
static int until_cancelled; /* calls of cancelled() until another rank has failed; 0: none fails */

void gm_cancel(void)
{
    cancels++;
}

static int cancelled(void)
{
    return until_cancelled > 0 && --until_cancelled == 0;
}

/* --- Runs --- */

static int few; /* under valgrind, to which most numbers of slots and threads are alike: some of them */

typedef struct ring {
    gm_device *device;
    gm_stream *stream;
    int64_t moved;
    gm_phase_times times; /* of the last run */
} ring;

static void progress(void *context, int64_t bytes)
{
    *(int64_t *)context += bytes;
}

/* out: bytes of host memory of a slot, where threads have buffers. */
static int open_ring(ring *r, int depth, int threads, int buffer, int out)
{
    *r = (ring){0};
    int status = gm_device_late.open(0, 1, &r->device);
    gm_stream_setup setup = {.ops = &gm_device_late,
                             .device = r->device,
                             .piece = BYTES,
                             .depth = depth,
                             .buffer = buffer,
                             .out = out,
                             .threads = threads,
                             .progress = progress,
                             .progress_context = &r->moved};
    return status ? status : gm_stream_open(&setup, &r->stream);
}

static void close_ring(ring *r)
{
    gm_stream_close(r->stream);
    gm_device_late.close(r->device);
}

static int run(ring *r, operation *o)
{
    gm_program program = program_of(o);
    if (open_operation(o, r->device))
        abort();
    r->moved = 0;
    r->times = (gm_phase_times){0};
    int status = gm_stream_run(r->stream, &program, &r->times);
    o->moved = r->moved;
    close_operation(o);
    return status;
}

static void test_all_through(void)
{
    static const int depths[] = {1, 2, 3, 5, 8, 24}, threads[] = {1, 2, 5, 16};
    static const int buffers[] = {0, 64, 4 * BYTES};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d += few ? 2 : 1)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t += few ? 2 : 1)
            for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++) {
                ring r;
                int status = open_ring(&r, depths[d], threads[t], buffers[b], BYTES), complete = !status;
                for (int kind = 0; kind <= KINDS && !status; kind += KINDS / 2) { /* several runs of one ring */
                    operation o = {.in_turn = kind, .has_buffers = buffers[b] > 0};
                    status = run(&r, &o);
                    complete = complete && is_complete(&o);
                }
                close_ring(&r);
                tap_ok(status == GM_OK && complete,
                       "%d slots, %d threads, buffers of %d bytes: all pieces complete, once and in order", depths[d],
                       threads[t], buffers[b]);
            }
}

/* The ring copies from the device: where threads have buffers, these threads do, part by part; and slots have no host
 * memory if nothing else needs it. */
static void test_way_back(void)
{
    static const int depths[] = {1, 4}, threads[] = {1, 2, 5}, buffers[] = {0, 16, 200, 4 * BYTES};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t += few ? 2 : 1)
            for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
                for (int all = 0; all <= 1; all++) { /* kinds of pieces: all, or those without host memory */
                    ring r;
                    int status = open_ring(&r, depths[d], threads[t], buffers[b], all * BYTES), complete = !status;
                    const double *seconds = r.times.seconds;
                    for (int turn = 0; turn < 2 && !status; turn++) {
                        operation o = {.in_turn = !all, .has_buffers = buffers[b] > 0, .by_ring = 1};
                        status = run(&r, &o);
                        complete = complete && is_complete(&o) && seconds[GM_PHASE_TO_DEVICE] > 0 &&
                                   seconds[GM_PHASE_FROM_DEVICE] > 0 && seconds[GM_PHASE_WRITE] > 0;
                    }
                    close_ring(&r);
                    tap_ok(status == GM_OK && complete,
                           "%s written, %d slots, %d threads, buffers of %d bytes: every part once and in its place",
                           all ? "pieces of all kinds" : "all pieces", depths[d], threads[t], buffers[b]);
                }
}

/* A failed run has completed its sends and receives, and the next run of the same ring succeeds. */
static void test_failure(const char *what, operation o, int code, int depth, int threads)
{
    ring r;
    int buffer = depth % 2 * 128;
    o.has_buffers = buffer > 0;
    int before = cancels, status = open_ring(&r, depth, threads, buffer, BYTES), exchanged = 0, again = GM_EINTERNAL,
        complete = 0;
    if (!status) {
        status = run(&r, &o);
        exchanged = has_exchanged_all(&o) && cancels == before + (code != GM_EPEER);
        gm_error_clear();
        operation second = {.has_buffers = buffer > 0, .by_ring = o.by_ring};
        again = run(&r, &second);
        complete = is_complete(&second);
    }
    close_ring(&r);
    tap_ok(status == code && exchanged && again == GM_OK && complete,
           "%s fails, %d slots, %d threads: code %d, sends and receives complete, the next run succeeds", what, depth,
           threads, code);
    if (status != code || !exchanged || again || !complete)
        tap_diag("code %d, %d received, %d sent, %d cancels, %d wrong; next run: code %d, complete: %d", status,
                 o.received, o.sent, cancels - before, o.wrong, again, complete);
}

static void test_failures(void)
{
    static const struct {
        unsigned stage;
        const char *name;
        int kind; /* of the pieces that have the stage */
    } stages[] = {{GM_STAGE_READ, "read", 0},
                  {GM_STAGE_RECEIVE, "receive", 2},
                  {GM_STAGE_TO_DEVICE, "to_device", 5},
                  {GM_STAGE_COMPUTE, "compute", 7},
                  {GM_STAGE_FROM_DEVICE, "from_device", 3},
                  {GM_STAGE_SEND, "send", 2},
                  {GM_STAGE_DONE, "done", 5},
                  {GM_STAGE_WRITE, "write", 4}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (int at = stages[i].kind, turn = 0; at < PIECES; at += 8 * KINDS, turn++) {
            operation o = {.fail_stage = stages[i].stage, .fail_at = at};
            test_failure(stages[i].name, o, GM_EINPUT, 1 + (int)(5 * turn + 3 * i) % 17, 1 + (int)(2 * turn + i) % 7);
        }
    for (int at = 0; at < PIECES; at += few ? 3 * KINDS : KINDS) {
        operation o = {.fail_stage = GM_STAGE_WRITE, .fail_at = at, .in_turn = at / KINDS / 2 % 2, .by_ring = 1};
        test_failure("the write of what the ring copied", o, GM_EINPUT, 1 + at / KINDS, 1 + at / KINDS % 5);
    }
    for (int calls = 1; calls < 400; calls += few ? 3 * 37 : 37) {
        until_cancelled = calls;
        test_failure("another rank", (operation){.in_turn = 0}, GM_EPEER, 1 + calls % 9, 1 + calls % 5);
        until_cancelled = 0;
    }
}

/* One call of the device table fails, while the ring is opened or later. A ring that cannot open another slot goes on
 * with those that it has. */
static void test_device(void)
{
    for (int call = 1; call < 1500; call = call < 70 ? call + 3 : call + 97) {
        ring r;
        operation o = {.has_buffers = call % 2, .by_ring = call / 2 % 2};
        gm_late_fail_at(call);
        int status = open_ring(&r, 4, 3, call % 2 * 128, BYTES), opened = !status;
        if (opened) {
            gm_late_fail_at(call > 2 * PANELS ? call : 2 * PANELS); /* not the events of the program itself */
            status = run(&r, &o);
        }
        gm_late_fail_at(0);
        close_ring(&r);
        gm_error_clear();
        int right = status == GM_EDEVICE ? !opened || has_exchanged_all(&o)
                                         : status == GM_OK && opened && is_complete(&o);
        tap_ok(right, "device call %d fails%s%s", call, status ? "" : ", and the ring does without",
               opened ? "" : ", while the ring is opened");
    }
}

/* Last: the signal is not cleared. */
static void test_signal(void)
{
    gm_stop_install();
    raise(SIGUSR2);
    for (int depth = 1; depth < 9; depth += 3) {
        ring r;
        operation o = {.by_ring = 1};
        int status = open_ring(&r, depth, 3, depth % 2 * 128, BYTES);
        o.has_buffers = depth % 2;
        if (!status)
            status = run(&r, &o);
        close_ring(&r);
        gm_error_clear();
        tap_ok(status == GM_ESTOPPED && has_exchanged_all(&o), "after a signal, %d slots", depth);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    few = getenv("GPUMEM_TEST_MEMCHECK") != NULL;
    gm_late_complete_early(argc > 1); /* with an argument: planted races, which the sanitizer must report */
    test_all_through();
    test_way_back();
    gm_stop_set_peers(cancelled);
    if (argc == 1) {
        test_failures();
        test_device();
        test_signal();
    }
    return tap_done();
}
