/* benchmark.c - writes new files and measures the rate. */
#define _GNU_SOURCE 1 /* O_DIRECT */
#include "io/write/benchmark.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/new_file.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/parallel_for.h"

#include "io/write/space.h"

/* Can the file system of a folder take a strategy? A mapped page without space is a SIGBUS: mapping is for local file
 * systems that keep the space of fallocate, which copy-on-write ones do not. */
static int is_possible(const char *file, gm_write_strategy strategy)
{
    static const struct {
        long type;
        int mapped, direct;
    } local[] = {{TMPFS_MAGIC, 1, 0}, {EXT4_SUPER_MAGIC, 1, 1}, {XFS_SUPER_MAGIC, 1, 1}};
    char folder[GM_PATH_MAX];
    struct statfs fs;

    if (strategy == GM_WRITE_PLAIN || strategy == GM_WRITE_ALLOCATED)
        return 1;
    if (statfs(gm_path_folder(file, folder), &fs))
        return 0;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (local[i].type == (long)fs.f_type)
            return strategy == GM_WRITE_MAPPED ? local[i].mapped : local[i].direct;
    return 0;
}

struct gm_write_run {
    gm_write_benchmark asked;
    int files;
    char *map;                     /* of its blocks of the only file; NULL: pwrite */
    double allocated;              /* seconds of the allocation */
    double end;                    /* time after which no further block is begun */
    _Atomic int64_t written, read; /* blocks */
    char *room;                    /* for what is read */
    struct gm_write_file {
        int fd;
        char name[GM_PATH_MAX]; /* "": it has not made the file */
    } file[];                   /* [files] */
};

/* The first block counts in any case: on a busy machine the limit may have passed before a thread begins. */
static int is_late(const gm_write_run *t, int64_t index)
{
    return index > 0 && gm_clock() > t->end;
}

static int write_block(void *context, int thread, int64_t index)
{
    gm_write_run *t = context;
    size_t bytes = t->asked.block_bytes;
    gm_bytes file = {.fd = t->file[index % t->files].fd, .code = GM_EOUTPUT, .title = "probe"};
    const char *block = t->asked.data + (size_t)thread * t->asked.stride;
    int status = GM_OK, quiet = gm_error_hush(1);
    if (is_late(t, index))
        goto out;
    if (t->map)
        memcpy(t->map + index * (int64_t)bytes, block, bytes);
    else
        status = gm_bytes_write(&file, (t->asked.before + index / t->files) * (int64_t)bytes, block, bytes);
    if (!status)
        atomic_fetch_add(&t->written, 1);
out:
    gm_error_hush(quiet);
    return status;
}

/* Opens new files, or the one of another process. */
static int open_files(const char *file, const char *shared, int nameless, gm_write_run *t)
{
    int ok = 1, files = shared ? 1 : t->asked.files;
    for (t->files = 0; t->files < files && ok; t->files += ok) {
        int fd = shared ? gm_new_file_open(shared, O_RDWR)
                        : gm_new_file_create(file, "probe", nameless, t->file[t->files].name);
        ok = fd >= 0;
        if (ok && t->asked.strategy == GM_WRITE_DIRECT) {
            int flags = fcntl(fd, F_GETFL);
            ok = flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
        }
        if (fd >= 0 && !ok)
            gm_new_file_discard(fd, t->file[t->files].name);
        t->file[t->files].fd = fd;
    }
    return ok;
}

/* Space for all blocks, and a map of those of this process. */
static int prepare(const char *shared, gm_write_run *t)
{
    const gm_write_benchmark *asked = &t->asked;
    const size_t size = (size_t)asked->blocks * asked->block_bytes;
    int64_t all = (asked->all > 0 ? asked->all : asked->blocks) * (int64_t)asked->block_bytes;
    double start = gm_clock();
    int ok = asked->strategy == GM_WRITE_PLAIN || shared || gm_space_allocate(t->file[0].fd, 0, all) == 0;
    t->allocated = asked->strategy == GM_WRITE_PLAIN || shared ? 0 : gm_clock() - start;
    if (ok && asked->strategy == GM_WRITE_MAPPED && size > 0) {
        void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, t->file[0].fd,
                         asked->before * (int64_t)asked->block_bytes);
        ok = map != MAP_FAILED;
        t->map = ok ? map : NULL;
    }
    return ok;
}

gm_write_run *gm_write_run_open(const char *file, const gm_write_benchmark *asked, const char *shared, int nameless)
{
    size_t files = (size_t)gm_max(1, asked->files);
    gm_write_run *t = is_possible(file, asked->strategy) ? calloc(1, sizeof *t + files * sizeof t->file[0]) : NULL;
    if (!t)
        return NULL;
    t->asked = *asked;
    t->asked.threads = (int)gm_max(1, asked->threads);
    t->asked.files = (int)files;
    int quiet = gm_error_hush(1), ok = open_files(file, shared, nameless, t) && prepare(shared, t);
    gm_error_hush(quiet);
    if (ok)
        return t;
    gm_write_run_close(t);
    return NULL;
}

const char *gm_write_run_name(const gm_write_run *t)
{
    return t->file[0].name;
}

void gm_write_run_hide(gm_write_run *t)
{
    for (int i = 0; i < t->files; i++) {
        gm_new_file_discard(-1, t->file[i].name);
        t->file[i].name[0] = '\0';
    }
}

static void unmap(gm_write_run *t)
{
    if (t->map)
        munmap(t->map, (size_t)t->asked.blocks * t->asked.block_bytes);
    t->map = NULL;
}

void gm_write_run_close(gm_write_run *t)
{
    if (!t)
        return;
    unmap(t);
    for (int i = 0; i < t->files; i++)
        gm_new_file_discard(t->file[i].fd, t->file[i].name);
    free(t);
}

static int read_block(void *context, int thread, int64_t index)
{
    gm_write_run *t = context;
    size_t bytes = t->asked.block_bytes;
    gm_bytes file = {.fd = t->file[index % t->files].fd, .code = GM_EOUTPUT, .title = "probe"};
    int quiet = gm_error_hush(1), status = GM_OK;
    if (!is_late(t, index)) {
        status = gm_bytes_read(&file, (t->asked.before + index / t->files) * (int64_t)bytes,
                               t->room + (size_t)thread * t->asked.stride, bytes);
        t->read += !status;
    }
    gm_error_hush(quiet);
    return status;
}

int64_t gm_write_run_read(gm_write_run *t, char *room)
{
    int quiet = gm_error_hush(1);
    t->room = room;
    t->read = 0;
    t->end = gm_clock() + t->asked.limit;
    int ok = gm_parallel_for(t->asked.threads, t->asked.blocks, read_block, t) == GM_OK;
    gm_error_hush(quiet);
    return ok ? t->read * (int64_t)t->asked.block_bytes : 0;
}

static int flush_files(const gm_write_run *t)
{
    int ok = 1;
    for (int i = 0; i < t->files; i++)
        ok = fdatasync(t->file[i].fd) == 0 && ok;
    return ok;
}

int64_t gm_write_run_write(gm_write_run *t, double *allocated)
{
    int quiet = gm_error_hush(1);
    t->end = gm_clock() + t->asked.limit;
    int ok = gm_parallel_for(t->asked.threads, t->asked.blocks, write_block, t) == GM_OK;
    unmap(t);
    ok = ok && (!t->asked.sync || flush_files(t));
    gm_error_hush(quiet);
    *allocated = t->asked.blocks > 0 ? t->allocated * (double)t->written / (double)t->asked.blocks : 0;
    return ok ? t->written * (int64_t)t->asked.block_bytes : 0;
}

double gm_write_benchmark_run(const char *file, const gm_write_benchmark *asked)
{
    double allocated, rate = 0;
    gm_write_run *t = gm_write_run_open(file, asked, NULL, 1);
    if (t) {
        gm_write_run_hide(t);
        double start = gm_clock();
        int64_t bytes = gm_write_run_write(t, &allocated);
        double seconds = gm_clock() - start;
        seconds = asked->overlap ? fmax(seconds, allocated) : seconds + allocated;
        rate = seconds > 0 ? (double)bytes / seconds : 0;
    }
    gm_write_run_close(t);
    return rate;
}
