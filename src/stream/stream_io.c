#include "src/stream/stream_io.h"

#include "base/clock.h"
#include "src/stream/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The time in which at least one thread is active. */
typedef struct busy_clock {
    int active;
    double since, total;
} busy_clock;

struct gm_stream_io {
    const gm_stream_setup *setup;
    gm_slot *slots;
    const gm_program *program;
    gm_workers *workers;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a slot comes back, or the I/O threads can accept more work */
    unsigned changes;       /* number of signals */
    int in_io;              /* pending and running: pieces to write, shares to read */
    busy_clock reading, writing;
    int status; /* first failure of this rank's run */
};

static void busy(busy_clock *clock, int step)
{
    double now = gm_clock();
    if (clock->active > 0)
        clock->total += now - clock->since;
    clock->since = now;
    clock->active += step;
}

static void fail(gm_stream_io *io, int status)
{
    if (status && !io->status)
        io->status = status;
}

/* With this much work each I/O thread finds its next share when it has finished one. More would only spread the data
 * over more memory, and the processor's caches would hold less of it at the time of the copy to the device. */
static int max_in_io(const gm_stream_io *io)
{
    return io->setup->threads + io->setup->threads / 2;
}

/* On an I/O thread: reads a share of the piece of a slot, or writes it. */
static void io_work(void *context, int job)
{
    gm_stream_io *io = context;
    gm_slot *slot = &io->slots[job];
    const gm_program *program = io->program;
    int writing = slot->state == GM_SLOT_WRITING;
    busy_clock *clock = writing ? &io->writing : &io->reading;
    pthread_mutex_lock(&io->lock);
    busy(clock, 1);
    int skip = io->status != GM_OK;
    gm_share share = slot->next;
    slot->next.index++;
    pthread_mutex_unlock(&io->lock);
    int status = GM_OK;
    if (!skip)
        status = writing ? program->write(program->context, &slot->piece, slot->memory.host)
                         : program->read(program->context, &slot->piece, share, slot->memory.host);
    pthread_mutex_lock(&io->lock);
    busy(clock, -1);
    fail(io, status);
    int last = --slot->left == 0;
    if (last && !writing && !slot->pinned) { /* not on the main thread, which starts copies meanwhile */
        pthread_mutex_unlock(&io->lock);
        gm_slot_pin(io->setup, slot);
        pthread_mutex_lock(&io->lock);
    }
    io->in_io--;
    if (last)
        slot->state = writing ? GM_SLOT_FREE : GM_SLOT_READY;
    if (last || io->in_io == max_in_io(io)) {
        io->changes++;
        pthread_cond_signal(&io->changed);
    }
    pthread_mutex_unlock(&io->lock);
}

void gm_stream_io_submit(gm_stream_io *io, gm_slot *slot, gm_slot_state state)
{
    int shares = state == GM_SLOT_READING && slot->piece.readers > 1 ? slot->piece.readers : 1;
    pthread_mutex_lock(&io->lock);
    slot->state = state;
    slot->next = (gm_share){0, shares};
    slot->left = shares;
    io->in_io += shares;
    pthread_mutex_unlock(&io->lock);
    gm_workers_submit(io->workers, (int)(slot - io->slots), shares);
}

int gm_stream_io_is_busy(gm_stream_io *io)
{
    pthread_mutex_lock(&io->lock);
    int is_busy = io->in_io > max_in_io(io);
    pthread_mutex_unlock(&io->lock);
    return is_busy;
}

gm_slot_state gm_stream_io_state(gm_stream_io *io, const gm_slot *slot)
{
    pthread_mutex_lock(&io->lock);
    gm_slot_state state = slot->state;
    pthread_mutex_unlock(&io->lock);
    return state;
}

int gm_stream_io_is_ready(gm_stream_io *io, const gm_slot *slot)
{
    pthread_mutex_lock(&io->lock);
    int ready = slot->state == GM_SLOT_READY && io->status == GM_OK;
    pthread_mutex_unlock(&io->lock);
    return ready;
}

int gm_stream_io_merge_status(gm_stream_io *io, int status, int *idle)
{
    pthread_mutex_lock(&io->lock);
    fail(io, status);
    status = io->status;
    *idle = io->in_io == 0;
    pthread_mutex_unlock(&io->lock);
    return status;
}

unsigned gm_stream_io_changes(gm_stream_io *io)
{
    pthread_mutex_lock(&io->lock);
    unsigned changes = io->changes;
    pthread_mutex_unlock(&io->lock);
    return changes;
}

void gm_stream_io_wait(gm_stream_io *io, unsigned seen, long nanoseconds)
{
    struct timespec until;
    int late = 0;
    pthread_mutex_lock(&io->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += nanoseconds;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    while (io->changes == seen && !late)
        late = pthread_cond_timedwait(&io->changed, &io->lock, &until);
    pthread_mutex_unlock(&io->lock);
}

void gm_stream_io_drain(gm_stream_io *io)
{
    pthread_mutex_lock(&io->lock);
    while (io->in_io)
        pthread_cond_wait(&io->changed, &io->lock);
    pthread_mutex_unlock(&io->lock);
}

void gm_stream_io_begin(gm_stream_io *io, const gm_program *program)
{
    io->program = program;
    io->status = GM_OK;
    io->reading = io->writing = (busy_clock){0};
}

void gm_stream_io_add_times(const gm_stream_io *io, gm_phase_times *times)
{
    times->seconds[GM_PHASE_READ] += io->reading.total;
    times->seconds[GM_PHASE_WRITE] += io->writing.total;
}

int gm_stream_io_open(const gm_stream_setup *setup, gm_slot *slots, gm_stream_io **out)
{
    *out = NULL;
    gm_stream_io *io = calloc(1, sizeof *io);
    if (!io)
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate the streaming ring");
    io->setup = setup;
    io->slots = slots;
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->changed, NULL);
    int status = gm_workers_open(setup->threads, io_work, io, (int)setup->depth, &io->workers);
    if (status) {
        gm_stream_io_close(io);
        return status;
    }
    *out = io;
    return GM_OK;
}

void gm_stream_io_close(gm_stream_io *io)
{
    if (!io)
        return;
    gm_workers_close(io->workers);
    pthread_cond_destroy(&io->changed);
    pthread_mutex_destroy(&io->lock);
    free(io);
}
