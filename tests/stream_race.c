/* The ring on a device that works later, on threads of its own (late_device.h): pieces of all kinds beside each other, failures in every stage, of
 * the device and of another rank, a signal. Every value arrives once, whole and in order. What one thread writes while another looks at it is for
 * the thread sanitizer to see: tests/long/stream_race.t builds this with it. Of mpi/ there is what the ring asks for and no more. */
#include "base/status.h"
#include "src/stop.h"
#include "src/stream.h"
#include "tests/late_device.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 150, ITEMS = 64, BYTES = ITEMS * 8, PANELS = 2 };

/* --- mpi/, as the ring knows it --- */

static int cancels, until_cancelled;

void gm_cancel(const gm_ranks *ranks)
{
    (void)ranks;
    cancels++;
}

int gm_cancelled(void)
{
    return until_cancelled > 0 && --until_cancelled == 0;
}

/* --- The operation --- */

enum { DEVICE = GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE | GM_STAGE_FROM_DEVICE };

/* Kinds of pieces, in turn. */
static const unsigned kinds[] = {
    GM_STAGE_READ | DEVICE | GM_STAGE_WRITE,
    GM_STAGE_READ | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE,
    GM_STAGE_RECEIVE | DEVICE | GM_STAGE_SEND,
    GM_STAGE_READ | DEVICE | GM_STAGE_DONE,
    GM_STAGE_READ | GM_STAGE_WRITE,
    GM_STAGE_READ | DEVICE | GM_STAGE_SEND | GM_STAGE_DONE | GM_STAGE_WRITE,
    GM_STAGE_RECEIVE | GM_STAGE_TO_DEVICE | GM_STAGE_COMPUTE,
    GM_STAGE_COMPUTE | GM_STAGE_DONE,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct operation {
    int next, in_turn; /* in_turn: 1 + the kind of all pieces; 0: all kinds in turn */
    unsigned fail_stage;
    int fail_at;
    atomic_int wrong, reads, writes;
    int received, sent, done, excused;
    int last_met, last_done; /* pieces */
    int64_t moved;
    int64_t panel[PANELS][ITEMS]; /* of the device: filled on the first queue, used on the second */
    gm_event *used[PANELS];
    int64_t sum; /* of the device */
} operation;

static unsigned stages_of(const operation *o, int piece)
{
    return kinds[o->in_turn ? o->in_turn - 1 : piece % KINDS];
}

static int64_t item(int piece, int i)
{
    return (int64_t)piece * 1000 + i;
}

static int fails(operation *o, const gm_piece *piece, unsigned stage)
{
    return o->fail_stage == stage && piece->kind == o->fail_at ? gm_fail(GM_EINPUT, "planted") : GM_OK;
}

static int next(void *context, gm_piece *piece, int *more)
{
    operation *o = context;
    *more = o->next < PIECES;
    *piece = (gm_piece){.kind = o->next, .stages = stages_of(o, o->next), .bytes = BYTES, .verifies = o->next % 3 == 0, .readers = o->next % 4};
    o->next++;
    return GM_OK;
}

static void fill(const gm_piece *piece, gm_share share, int64_t *host)
{
    int64_t begin, end;
    gm_share_cut(share, 0, ITEMS, 1, &begin, &end);
    for (int i = (int)begin; i < end; i++)
        host[i] = item(piece->kind, i);
}

static int read_piece(void *context, const gm_piece *piece, gm_share share, void *host)
{
    operation *o = context;
    gm_late_pause();
    fill(piece, share, host);
    gm_late_pause();
    o->reads += share.index == 0;
    return fails(o, piece, GM_STAGE_READ);
}

/* Pieces that meet another rank come in the order of the pieces, sends and receives each for themselves. */
static int receive(void *context, const gm_piece *piece, void *host)
{
    operation *o = context;
    o->received++;
    if (host)
        fill(piece, (gm_share){0, 1}, host);
    o->excused += !host;
    return host ? fails(o, piece, GM_STAGE_RECEIVE) : GM_OK;
}

static int await(void *context, const gm_piece *piece, unsigned stage, gm_queue *queue)
{
    operation *o = context;
    return stage == GM_STAGE_TO_DEVICE ? gm_device_late.event_wait(queue, o->used[piece->kind % PANELS]) : GM_OK;
}

typedef struct job {
    operation *o;
    int piece;
    int has_panel;
    int64_t *device;
} job;

static void fill_panel(void *argument)
{
    job *j = argument;
    memcpy(j->o->panel[j->piece % PANELS], j->device, BYTES);
}

static void use_panel(void *argument)
{
    job *j = argument;
    for (int i = 0; i < ITEMS && j->has_panel; i++) {
        j->o->wrong += j->o->panel[j->piece % PANELS][i] != item(j->piece, i);
        j->device[i] *= 2;
    }
    j->o->sum += j->piece;
}

static int to_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    job j = {context, piece->kind, 1, slot->device};
    int status = gm_device_late.copy_in(in, slot->device, BYTES, slot->host, BYTES, BYTES, 1);
    if (!status)
        status = gm_late_put(in, fill_panel, &j, sizeof j);
    return status ? status : fails(context, piece, GM_STAGE_TO_DEVICE);
}

static int compute(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    operation *o = context;
    job j = {o, piece->kind, (piece->stages & GM_STAGE_TO_DEVICE) != 0, slot->device};
    int status = gm_late_put(queue, use_panel, &j, sizeof j);
    if (!status && j.has_panel)
        status = gm_device_late.event_record(o->used[piece->kind % PANELS], queue);
    return status ? status : fails(o, piece, GM_STAGE_COMPUTE);
}

static int from_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *out)
{
    int status = gm_device_late.copy_out(out, slot->host, BYTES, slot->device, BYTES, BYTES, 1);
    return status ? status : fails(context, piece, GM_STAGE_FROM_DEVICE);
}

static void check(operation *o, const gm_piece *piece, const int64_t *host)
{
    int factor = piece->stages & GM_STAGE_FROM_DEVICE ? 2 : 1;
    for (int i = 0; i < ITEMS; i++)
        o->wrong += host[i] != factor * item(piece->kind, i);
}

static int write_piece(void *context, const gm_piece *piece, const void *host)
{
    operation *o = context;
    gm_late_pause();
    check(o, piece, host);
    gm_late_pause();
    o->writes++;
    return fails(o, piece, GM_STAGE_WRITE);
}

static int send(void *context, const gm_piece *piece, const void *host)
{
    operation *o = context;
    o->wrong += piece->kind <= o->last_met;
    o->last_met = piece->kind;
    o->sent++;
    o->excused += !host;
    if (host)
        check(o, piece, host);
    return host ? fails(o, piece, GM_STAGE_SEND) : GM_OK;
}

static int done(void *context, const gm_piece *piece, const void *host)
{
    operation *o = context;
    o->wrong += piece->kind <= o->last_done;
    o->last_done = piece->kind;
    o->done++;
    if (piece->stages & GM_STAGE_FROM_DEVICE)
        check(o, piece, host);
    return fails(o, piece, GM_STAGE_DONE);
}

static void progress(void *context, int64_t bytes)
{
    *(int64_t *)context += bytes;
}

/* --- Runs --- */

typedef struct machine {
    gm_device *device;
    gm_stream *stream;
    gm_ranks ranks;
    int64_t moved;
} machine;

static int open_machine(machine *m, int depth, int threads)
{
    *m = (machine){.ranks = {.size = 2}};
    int status = gm_device_late.open(0, 1, &m->device);
    gm_stream_setup setup = {.ops = &gm_device_late, .device = m->device, .ranks = &m->ranks, .piece = BYTES, .depth = depth, .threads = threads,
                             .progress = progress, .progress_context = &m->moved};
    return status ? status : gm_stream_open(&setup, &m->stream);
}

static void close_machine(machine *m)
{
    gm_stream_close(m->stream);
    gm_device_late.close(m->device);
}

static int run(machine *m, operation *o)
{
    gm_phase_times times = {0};
    gm_program program = {o, next, read_piece, receive, await, to_device, compute, from_device, send, write_piece, done};
    o->last_met = o->last_done = -1;
    m->moved = 0;
    int status = GM_OK;
    for (int i = 0; i < PANELS; i++)
        if (gm_device_late.event_open(m->device, &o->used[i]))
            abort();
    status = gm_stream_run(m->stream, &program, &times);
    o->moved = m->moved;
    for (int i = 0; i < PANELS; i++)
        gm_device_late.event_close(o->used[i]);
    return status;
}

static int count(const operation *o, unsigned stage)
{
    int n = 0;
    for (int i = 0; i < PIECES; i++)
        n += (stages_of(o, i) & stage) != 0;
    return n;
}

/* Did all come through? */
static int is_whole(const operation *o)
{
    int64_t sum = 0;
    for (int i = 0; i < PIECES; i++)
        sum += stages_of(o, i) & GM_STAGE_COMPUTE ? i : 0;
    return o->wrong == 0 && o->reads == count(o, GM_STAGE_READ) && o->writes == count(o, GM_STAGE_WRITE) && o->sum == sum
           && o->received == count(o, GM_STAGE_RECEIVE) && o->sent == count(o, GM_STAGE_SEND) && o->done == count(o, GM_STAGE_DONE)
           && o->excused == 0 && o->moved == (int64_t)PIECES * BYTES;
}

/* Has this rank met the others as often as they expect? */
static int has_kept_appointments(const operation *o)
{
    return o->received == count(o, GM_STAGE_RECEIVE) && o->sent == count(o, GM_STAGE_SEND) && o->wrong == 0;
}

static void test_all_through(void)
{
    static const int depths[] = {1, 2, 3, 5, 8, 24}, threads[] = {1, 2, 5, 16};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            machine m;
            int status = open_machine(&m, depths[d], threads[t]), whole = !status;
            for (int kind = 0; kind <= KINDS && !status; kind += KINDS / 2) { /* the same ring again and again */
                operation o = {.in_turn = kind};
                status = run(&m, &o);
                whole = whole && is_whole(&o);
            }
            close_machine(&m);
            tap_ok(status == GM_OK && whole, "%d slots, %d threads: all pieces whole, once and in order", depths[d], threads[t]);
        }
}

/* After a failure the same ring runs once more, as it should. */
static void test_failure(const char *what, operation o, int code, int depth, int threads)
{
    machine m;
    int before = cancels, status = open_machine(&m, depth, threads), kept = 0, again = GM_EINTERNAL, whole = 0;
    if (!status) {
        status = run(&m, &o);
        kept = has_kept_appointments(&o) && cancels == before + (code != GM_EPEER);
        gm_error_clear();
        operation second = {.in_turn = 0};
        again = run(&m, &second);
        whole = is_whole(&second);
    }
    close_machine(&m);
    tap_ok(status == code && kept && again == GM_OK && whole, "%s, %d slots, %d threads: ends with %d, appointments kept, then a whole run", what,
           depth, threads, code);
    if (status != code || !kept || again || !whole)
        tap_diag("ended with %d; %d received, %d sent, %d cancels, %d wrong; the second with %d, whole: %d", status, o.received, o.sent,
                 cancels - before, o.wrong, again, whole);
}

static void test_failures(void)
{
    static const struct {
        unsigned stage;
        const char *name;
        int kind; /* that has it */
    } stages[] = {{GM_STAGE_READ, "read", 0},       {GM_STAGE_RECEIVE, "receive", 2},   {GM_STAGE_TO_DEVICE, "to_device", 5},
                  {GM_STAGE_COMPUTE, "compute", 7}, {GM_STAGE_FROM_DEVICE, "from_device", 3}, {GM_STAGE_SEND, "send", 2},
                  {GM_STAGE_DONE, "done", 5},       {GM_STAGE_WRITE, "write", 4}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (int at = stages[i].kind, turn = 0; at < PIECES; at += 8 * KINDS, turn++) {
            operation o = {.fail_stage = stages[i].stage, .fail_at = at};
            test_failure(stages[i].name, o, GM_EINPUT, 1 + (int)(5 * turn + 3 * i) % 17, 1 + (int)(2 * turn + i) % 7);
        }
    for (int calls = 1; calls < 400; calls += 37) {
        until_cancelled = calls;
        test_failure("another rank has failed", (operation){.in_turn = 0}, GM_EPEER, 1 + calls % 9, 1 + calls % 5);
        until_cancelled = 0;
    }
}

/* The device fails at one call of its table, while the ring is made or later. A ring that is refused one more slot does with those that it has. */
static void test_device(void)
{
    for (int call = 1; call < 1500; call = call < 70 ? call + 4 : call + 97) {
        machine m;
        operation o = {.in_turn = 0};
        gm_late_fail_at(call);
        int status = open_machine(&m, 4, 3), opened = !status;
        if (opened) {
            gm_late_fail_at(call > 2 * PANELS ? call : 2 * PANELS); /* not the events of the operation itself */
            status = run(&m, &o);
        }
        gm_late_fail_at(0);
        close_machine(&m);
        gm_error_clear();
        int right = status == GM_EDEVICE ? !opened || has_kept_appointments(&o) : status == GM_OK && opened && is_whole(&o);
        tap_ok(right, "the device fails at call %d%s%s", call, status ? "" : ", for which there is another way",
               opened ? "" : ", while the ring is made");
    }
}

/* Last: what was caught stays. */
static void test_signal(void)
{
    gm_stop_install();
    raise(SIGUSR2);
    for (int depth = 1; depth < 9; depth += 3) {
        machine m;
        operation o = {.in_turn = 0};
        int status = open_machine(&m, depth, 3);
        if (!status)
            status = run(&m, &o);
        close_machine(&m);
        gm_error_clear();
        tap_ok(status == GM_ESTOPPED && has_kept_appointments(&o), "after a signal, %d slots", depth);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    gm_late_lie(argc > 1); /* with an argument: a device that nobody should believe, for the sanitizer to be tried on */
    test_all_through();
    if (argc == 1) {
        test_failures();
        test_device();
        test_signal();
    }
    return tap_done();
}
