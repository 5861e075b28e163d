#include "io/bench/speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/range.h"
#include "base/status.h"
#include "io/parallel_for.h"

enum {
    PIECE = 1 << 20, /* bytes of a read: the fastest of the ring's loop on four GPUs */
    READS = 32       /* of a thread, at most */
};

typedef struct measurement {
    gm_reader *reader;
    int threads;
    int64_t begin, end, piece; /* elements */
    double stop;
    char *buffers;                /* [threads][PIECE] */
    double (*took)[READS], *rate; /* [threads]: seconds of each read; byte/s */
} measurement;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rate of a thread is that of its median read: one during which it had no processor does not count. */
static int read_part(void *context, int thread, int64_t index)
{
    measurement *m = context;
    gm_range part = gm_range_split(m->end - m->begin, m->piece, m->threads, (int)index);
    double *took = m->took[thread], from = gm_clock();
    int reads = 0, status = GM_OK, before = gm_error_hush(1);
    for (int64_t at = part.begin;
         at + m->piece <= part.end && reads < READS && (reads == 0 || from < m->stop) && !status; at += m->piece) {
        status = gm_reader_read_range(m->reader, m->begin + at, m->piece, m->buffers + (size_t)thread * PIECE);
        double now = gm_clock();
        took[reads++] = now - from;
        from = now;
    }
    gm_error_hush(before);
    if (reads == 0 || status)
        return status;
    qsort(took, (size_t)reads, sizeof *took, by_size);
    m->rate[thread] += PIECE / fmax(took[reads / 2], 1e-9);
    return GM_OK;
}

/* Buffers, then times, then rates. */
static size_t room_of(int threads)
{
    return (size_t)threads * (PIECE + sizeof(double[READS]) + sizeof(double));
}

static double measure(measurement *m, double seconds)
{
    double sum = 0;
    m->stop = gm_clock() + seconds;
    if (gm_parallel_for(m->threads, m->threads, read_part, m))
        return 0;
    for (int i = 0; i < m->threads; i++)
        sum += m->rate[i];
    return sum;
}

double gm_reader_speed(const gm_dataset *dataset, int threads, int64_t begin, int64_t end, double seconds)
{
    void *room = NULL;
    double speed = 0;
    if (!gm_host_try(room_of(threads), &room))
        return 0;
    memset(room, 0, room_of(threads)); /* the system clears the pages before the clock runs */
    measurement m = {.threads = threads,
                     .begin = begin,
                     .end = end,
                     .piece = PIECE / (int64_t)gm_dtype_size(dataset->type),
                     .buffers = room};
    m.took = (double(*)[READS])(void *)(m.buffers + (size_t)threads * PIECE);
    m.rate = (double *)(m.took + threads);
    int before = gm_error_hush(1);
    if (gm_reader_open(dataset, &m.reader) == GM_OK)
        speed = measure(&m, seconds);
    gm_reader_close(m.reader);
    gm_error_hush(before);
    gm_host_free(room);
    return speed;
}
