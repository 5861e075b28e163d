/* cold.c - large reads by O_DIRECT. */
#define _GNU_SOURCE 1 /* O_DIRECT, preadv2, statx */
#include "io/cold.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/size.h"

/* Each strategy has half of the epochs, in an order that a drift affects alike. An epoch has READS reads, or twice as
 * many as were active at one time: the rate of a strategy depends on their number. */
enum { EPOCHS = 4, READS = 4, PAGE = 4096, SAMPLES = 3, MEMORY_PART = 4 };
static const gm_cold_strategy strategies[EPOCHS] = {GM_COLD_CACHED, GM_COLD_DIRECT, GM_COLD_DIRECT, GM_COLD_CACHED};
static const size_t request_max = (size_t)1 << 30;
static const int64_t min_file_bytes = INT64_C(32) << 20; /* smaller ones are read before the probe ends */
static const double min_speedup = 1.25;                  /* of O_DIRECT, for a file that fits into the cache */

typedef struct epoch {
    double start, end;
    int64_t bytes;
    int begun, done, reads;
} epoch;

struct gm_cold {
    int direct, random;  /* the file again; random: without read-ahead, for gm_cold_look() */
    size_t unit, memory; /* alignment of offsets and addresses of direct reads */
    int fits;            /* the file fits into the cache, for the next reader */
    atomic_uint_fast64_t looks;
    atomic_int strategy;
    pthread_mutex_t lock; /* of the members below */
    int current, active, most;
    epoch epoch[EPOCHS];
};

static int reopen(int fd, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC | flags);
}

/* The alignment of direct reads; returns whether there can be any. */
static int find_alignment(gm_cold *cold)
{
    cold->unit = cold->memory = PAGE;
#ifdef STATX_DIOALIGN
    struct statx st;

    if (statx(cold->direct, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 && (st.stx_mask & STATX_DIOALIGN)) {
        cold->unit = st.stx_dio_offset_align;
        cold->memory = st.stx_dio_mem_align;
    }
#endif
    return cold->unit > 0 && cold->memory > 0 && GM_COLD_MIN_BYTES % cold->unit == 0 &&
           cold->memory <= GM_COLD_MIN_BYTES / 4;
}

gm_cold *gm_cold_open(int fd, gm_cold_strategy strategy)
{
    gm_cold *cold = strategy == GM_COLD_CACHED ? NULL : calloc(1, sizeof *cold);
    struct stat st;
    if (!cold)
        return NULL;
    cold->direct = reopen(fd, O_DIRECT);
    cold->random = reopen(fd, 0);
    atomic_init(&cold->strategy, strategy);
    atomic_init(&cold->looks, (uint64_t)(1e9 * gm_clock()));
    pthread_mutex_init(&cold->lock, NULL);
    if (cold->direct < 0 || cold->random < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !find_alignment(cold) ||
        (strategy == GM_COLD_PROBE && st.st_size < min_file_bytes)) {
        gm_cold_close(cold);
        return NULL;
    }
    cold->fits = st.st_size < (int64_t)sysconf(_SC_PHYS_PAGES) / MEMORY_PART * sysconf(_SC_PAGESIZE);
    posix_fadvise(cold->random, 0, 0, POSIX_FADV_RANDOM);
    return cold;
}

void gm_cold_close(gm_cold *cold)
{
    if (!cold)
        return;
    if (cold->direct >= 0)
        close(cold->direct);
    if (cold->random >= 0)
        close(cold->random);
    pthread_mutex_destroy(&cold->lock);
    free(cold);
}

/* Tries one page of each third until one is cached, which takes half a microsecond. The page differs from call to call,
 * as a try may fetch it. The kernel returns EAGAIN for a page that it would have to read. */
int gm_cold_look(gm_cold *cold, int64_t offset, size_t bytes)
{
    uint64_t random = gm_random_mix(atomic_fetch_add(&cold->looks, 1));
    size_t part = bytes / SAMPLES;
    int missing = 1;
    for (int i = 0; i < SAMPLES && missing; i++) {
        char byte;
        struct iovec to = {&byte, 1};
        missing = preadv2(cold->random, &to, 1, offset + (int64_t)((size_t)i * part + (random >> 16 * i) % part),
                          RWF_NOWAIT) < 0 &&
                  errno == EAGAIN;
    }
    return missing;
}

/* byte/s of each strategy in the probe. */
static void find_rates(const gm_cold *cold, double rate[GM_COLD_DIRECT + 1])
{
    int64_t bytes[GM_COLD_DIRECT + 1] = {0};
    double seconds[GM_COLD_DIRECT + 1] = {0};
    for (int i = 0; i < EPOCHS; i++) {
        if (cold->epoch[i].done == 0)
            continue;
        bytes[strategies[i]] += cold->epoch[i].bytes;
        seconds[strategies[i]] += cold->epoch[i].end - cold->epoch[i].start;
    }
    for (int strategy = 0; strategy <= GM_COLD_DIRECT; strategy++)
        rate[strategy] = seconds[strategy] > 0 ? (double)bytes[strategy] / seconds[strategy] : 0;
}

/* The strategy of a read that is about to begin. Once the probe has begun, all reads take part: data that the kernel
 * reads ahead for the cached ones look as if they had been cached before. */
static gm_cold_turn begin_read(gm_cold *cold, int missing)
{
    gm_cold_turn turn = {(gm_cold_strategy)atomic_load(&cold->strategy), -1, -1};
    epoch *e;
    if (turn.strategy != GM_COLD_PROBE)
        return turn;
    pthread_mutex_lock(&cold->lock);
    if (!missing && cold->epoch[0].begun == 0) {
        pthread_mutex_unlock(&cold->lock);
        return turn;
    }
    if (++cold->active > cold->most)
        cold->most = cold->active;
    if (cold->current < EPOCHS) {
        turn.epoch = cold->current;
        turn.strategy = strategies[turn.epoch];
        e = &cold->epoch[turn.epoch];
        if (e->begun++ == 0)
            e->start = gm_clock();
        if (e->begun >= gm_max(READS, 2 * cold->most)) {
            e->reads = e->begun;
            cold->current++;
        }
    } else { /* until the last reads of the probe are done */
        turn.strategy = GM_COLD_CACHED;
        turn.epoch = EPOCHS;
    }
    pthread_mutex_unlock(&cold->lock);
    return turn;
}

void gm_cold_done(gm_cold *cold, gm_cold_turn turn, size_t bytes)
{
    double rate[GM_COLD_DIRECT + 1];
    int over = 1;
    if (turn.epoch < 0)
        return;
    pthread_mutex_lock(&cold->lock);
    cold->active--;
    if (turn.epoch < EPOCHS) {
        epoch *e = &cold->epoch[turn.epoch];
        e->end = gm_clock();
        e->bytes += (int64_t)bytes;
        e->done++;
        for (int i = 0; i < EPOCHS; i++)
            over = over && cold->epoch[i].reads > 0 && cold->epoch[i].done == cold->epoch[i].reads;
        if (over && atomic_load(&cold->strategy) == GM_COLD_PROBE) {
            find_rates(cold, rate);
            atomic_store(&cold->strategy, rate[GM_COLD_DIRECT] > (cold->fits ? min_speedup : 1) * rate[GM_COLD_CACHED]
                                              ? GM_COLD_DIRECT
                                              : GM_COLD_CACHED);
        }
    }
    pthread_mutex_unlock(&cold->lock);
}

gm_cold_strategy gm_cold_result(gm_cold *cold, double rate[GM_COLD_DIRECT + 1])
{
    pthread_mutex_lock(&cold->lock);
    find_rates(cold, rate);
    pthread_mutex_unlock(&cold->lock);
    return (gm_cold_strategy)atomic_load(&cold->strategy);
}

/* Reads whole units to the first aligned address in dst, then moves them to its begin. Returns the number of bytes. */
static size_t read_units(gm_cold *cold, int64_t offset, char *dst, size_t room)
{
    size_t shift = (cold->memory - (uintptr_t)dst % cold->memory) % cold->memory, whole, got = 0;
    ssize_t n = 1;
    if (shift >= room)
        return 0;
    whole = (room - shift) / cold->unit * cold->unit;
    while (got < whole && got % cold->unit == 0 && n > 0) {
        n = pread(cold->direct, dst + shift + got, gm_min((int64_t)(whole - got), (int64_t)request_max),
                  offset + (int64_t)got);
        if (n > 0)
            got += (size_t)n;
        else if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0) /* unsupported by this file system, or an error that a plain read meets as well */
            atomic_store(&cold->strategy, GM_COLD_CACHED);
    }
    if (shift > 0)
        memmove(dst, dst + shift, got);
    return got;
}

gm_cold_turn gm_cold_read(gm_cold *cold, int64_t offset, void *dst, size_t bytes, size_t *from, size_t *to)
{
    gm_cold_turn turn = {GM_COLD_PROBE, -1, -1};
    int strategy = atomic_load(&cold->strategy),
        missing = strategy != GM_COLD_CACHED && gm_cold_look(cold, offset, bytes);
    *from = *to = 0;
    if (missing || strategy == GM_COLD_PROBE)
        turn = begin_read(cold, missing);
    if (turn.strategy == GM_COLD_DIRECT) {
        size_t head = (cold->unit - (size_t)offset % cold->unit) % cold->unit;
        turn.rest = cold->random;
        *from = head;
        *to = head + read_units(cold, offset + (int64_t)head, (char *)dst + head, bytes - head);
    }
    return turn;
}
