/* ways.c - how contiguous data get into a file fastest: asked of the file system itself, by writing a little. */
#define _GNU_SOURCE 1 /* fallocate, O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/crew.h"
#include "io/scratch.h"
#include "io/trial.h"

enum { BLOCK = 1 << 19, BLOCKS = 32, ROUNDS = 2, THREADS_MAX = 16 };
static const int64_t probe_from = INT64_C(256) << 20, parts_from = INT64_C(4) << 30;
static const double try_seconds = 0.004, clearly = 1.05, parts_gain = 2;

const char *gm_way_name(gm_way way)
{
    static const char *const names[GM_WAYS] = {
        [GM_WAY_PROBED] = "probed", [GM_WAY_PLAIN] = "plain",   [GM_WAY_ALLOCATED] = "allocated",
        [GM_WAY_MAPPED] = "mapped", [GM_WAY_DIRECT] = "direct",
    };

    return names[way];
}

/* What can be tried on the file system of a folder. A mapped page that finds no space is a SIGBUS: mapping is for file systems of this
 * host that keep what fallocate has given, which those that copy on write do not. */
static int is_possible(const char *file, gm_way way)
{
    static const struct {
        long type;
        int mapped, direct;
    } local[] = {{0x01021994 /* tmpfs */, 1, 0}, {0xEF53 /* ext4 */, 1, 1}, {0x58465342 /* XFS */, 1, 1}};
    char folder[GM_PATH_MAX];
    struct statfs fs;

    if (way == GM_WAY_PLAIN || way == GM_WAY_ALLOCATED)
        return 1;
    if (statfs(gm_output_folder(file, folder), &fs))
        return 0;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (local[i].type == (long)fs.f_type)
            return way == GM_WAY_MAPPED ? local[i].mapped : local[i].direct;
    return 0;
}

/* One way, tried on new files. */
typedef struct trial {
    const gm_write_trial *asked;
    int fd[GM_TRIAL_THREADS], files;
    char *map;  /* of the one file; NULL: written */
    double end; /* of the time for it */
    _Atomic int64_t written; /* blocks */
} trial;

static int write_block(void *context, int thread, int64_t index)
{
    trial *t = context;
    size_t bytes = t->asked->block_bytes;
    gm_bytes file = {t->fd[index % t->files], GM_EOUTPUT, "probe", 0, NULL};
    const char *block = t->asked->data + (size_t)thread * t->asked->stride;
    int status = GM_OK, quiet = gm_error_hush(1);

    if (gm_clock() > t->end)
        goto out;
    if (t->map)
        memcpy(t->map + index * (int64_t)bytes, block, bytes);
    else
        status = gm_bytes_write(&file, index / t->files * (int64_t)bytes, block, bytes);
    if (!status)
        atomic_fetch_add(&t->written, 1);
out:
    gm_error_hush(quiet);
    return status;
}

/* New files that are gone when they are closed. */
static int open_files(const char *file, trial *t)
{
    char path[GM_PATH_MAX];
    int ok = 1, files = t->asked->files;

    for (t->files = 0; t->files < files && ok; t->files += ok) {
        int fd = gm_output_claim(file, "probe", path);

        if (fd >= 0)
            unlink(path);
        ok = fd >= 0;
        if (ok && t->asked->way == GM_WAY_DIRECT) {
            int flags = fcntl(fd, F_GETFL);

            ok = flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
        }
        if (fd >= 0 && !ok)
            close(fd);
        t->fd[t->files] = fd;
    }
    return ok;
}

static int flush_files(const trial *t)
{
    int ok = 1;

    for (int i = 0; i < t->files; i++)
        ok = fdatasync(t->fd[i]) == 0 && ok;
    return ok;
}

static double try_way(const char *file, const gm_write_trial *asked)
{
    const size_t size = (size_t)asked->blocks * asked->block_bytes;
    trial t = {.asked = asked};
    double start, allocated = 0, seconds = 0;
    int ok = open_files(file, &t);

    start = gm_clock();
    if (ok && asked->way != GM_WAY_PLAIN) {
        ok = gm_space_allocate(t.fd[0], 0, (int64_t)size) == 0;
        allocated = gm_clock() - start;
    }
    if (ok && asked->way == GM_WAY_MAPPED) {
        t.map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, t.fd[0], 0);
        ok = t.map != MAP_FAILED;
    }
    if (ok) {
        start = gm_clock();
        t.end = start + asked->limit;
        ok = gm_crew_run(asked->threads, asked->blocks, write_block, &t) == GM_OK;
        if (t.map)
            munmap(t.map, size);
        ok = ok && (!asked->sync || flush_files(&t));
        seconds = gm_clock() - start;
        allocated *= (double)t.written / (double)asked->blocks; /* as much of it as was used */
        seconds = asked->behind ? fmax(seconds, allocated) : seconds + allocated;
    }
    for (int i = 0; i < t.files; i++)
        close(t.fd[i]);
    return ok && seconds > 0 ? (double)t.written * (double)asked->block_bytes / seconds : 0;
}

double gm_trial_write(const char *file, const gm_write_trial *asked)
{
    gm_write_trial t = *asked;
    double rate = 0;

    t.threads = (int)gm_max(1, gm_min(t.threads, GM_TRIAL_THREADS));
    t.files = (int)gm_max(1, gm_min(t.files, GM_TRIAL_THREADS));
    if (is_possible(file, t.way)) {
        int quiet = gm_error_hush(1);

        rate = try_way(file, &t);
        gm_error_hush(quiet);
    }
    return rate;
}

/* Fills in the record's rates: the best of some rounds, as others use the machine, too, and memory touched for the first time is slow. A way
 * that fails, for want of space or otherwise, is none; that is no error. */
static void probe(gm_output_record *record, int64_t bytes)
{
    int threads = (int)gm_max(1, gm_min(record->threads / gm_max(record->hosts, 1), THREADS_MAX));
    gm_write_trial t = {.files = 1, .threads = threads, .blocks = BLOCKS, .block_bytes = BLOCK, .limit = try_seconds, .behind = record->behind};
    void *block;

    if (gm_host_alloc(BLOCK, &block) == GM_OK) {
        for (int i = 0; i < BLOCK / 8; i++) /* some file systems would compress it away */
            ((uint64_t *)block)[i] = gm_random_mix((uint64_t)i);
        t.data = block;
        for (int round = 0; round < ROUNDS; round++) {
            t.files = 1;
            for (t.way = GM_WAY_PLAIN; t.way < GM_WAYS; t.way++)
                if (t.way <= GM_WAY_ALLOCATED || record->hosts <= 1)
                    record->rate[t.way] = fmax(record->rate[t.way], gm_trial_write(record->file, &t));
            t.way = GM_WAY_PLAIN;
            t.files = threads;
            if (threads > 1 && bytes >= parts_from)
                record->parts_rate = fmax(record->parts_rate, gm_trial_write(record->file, &t));
        }
        gm_host_free(block);
    }
}

void gm_ways_choose(gm_output_record *record, int64_t bytes)
{
    if (record->layout != GM_OUTPUT_PARTED && record->way == GM_WAY_PROBED && bytes >= probe_from) {
        probe(record, bytes);
        record->way = GM_WAY_PLAIN;
        for (gm_way way = GM_WAY_PLAIN; way < GM_WAYS; way++)
            if (record->rate[way] > clearly * record->rate[record->way])
                record->way = way;
        if (record->layout == GM_OUTPUT_AUTO && gm_output_gain(record) >= parts_gain)
            record->layout = GM_OUTPUT_PARTED;
    }
    if (record->layout == GM_OUTPUT_AUTO)
        record->layout = GM_OUTPUT_SINGLE;
    if (record->layout == GM_OUTPUT_PARTED || record->way == GM_WAY_PROBED)
        record->way = GM_WAY_PLAIN;
}

double gm_output_gain(const gm_output_record *record)
{
    return record->rate[record->way] > 0 ? record->parts_rate / record->rate[record->way] : 0;
}
