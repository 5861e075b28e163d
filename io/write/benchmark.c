/* benchmark.c - writes new files and measures the rate. */
#define _GNU_SOURCE 1 /* O_DIRECT */
#include "io/write/benchmark.h"

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
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
    } local[] = {{0x01021994 /* tmpfs */, 1, 0}, {0xEF53 /* ext4 */, 1, 1}, {0x58465342 /* XFS */, 1, 1}};
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

/* The state of one run. */
typedef struct run {
    const gm_write_benchmark *asked;
    int fd[GM_WRITE_BENCHMARK_THREADS], files;
    char *map;               /* of the only file; NULL: pwrite */
    double end;              /* time after which no block is begun */
    _Atomic int64_t written; /* blocks */
} run;

static int write_block(void *context, int thread, int64_t index)
{
    run *t = context;
    size_t bytes = t->asked->block_bytes;
    gm_bytes file = {.fd = t->fd[index % t->files], .code = GM_EOUTPUT, .title = "probe"};
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

/* Opens new files that have no name. */
static int open_files(const char *file, run *t)
{
    char path[GM_PATH_MAX];
    int ok = 1, files = t->asked->files;
    for (t->files = 0; t->files < files && ok; t->files += ok) {
        int fd = gm_new_file_create(file, "probe", 1, path);
        if (fd >= 0)
            gm_new_file_discard(-1, path);
        ok = fd >= 0;
        if (ok && t->asked->strategy == GM_WRITE_DIRECT) {
            int flags = fcntl(fd, F_GETFL);
            ok = flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
        }
        if (fd >= 0 && !ok)
            close(fd);
        t->fd[t->files] = fd;
    }
    return ok;
}

static int flush_files(const run *t)
{
    int ok = 1;
    for (int i = 0; i < t->files; i++)
        ok = fdatasync(t->fd[i]) == 0 && ok;
    return ok;
}

static double measure(const char *file, const gm_write_benchmark *asked)
{
    const size_t size = (size_t)asked->blocks * asked->block_bytes;
    run t = {.asked = asked};
    double start, allocated = 0, seconds = 0;
    int ok = open_files(file, &t);
    start = gm_clock();
    if (ok && asked->strategy != GM_WRITE_PLAIN) {
        ok = gm_space_allocate(t.fd[0], 0, (int64_t)size) == 0;
        allocated = gm_clock() - start;
    }
    if (ok && asked->strategy == GM_WRITE_MAPPED) {
        t.map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, t.fd[0], 0);
        ok = t.map != MAP_FAILED;
    }
    if (ok) {
        start = gm_clock();
        t.end = start + asked->limit;
        ok = gm_parallel_for(asked->threads, asked->blocks, write_block, &t) == GM_OK;
        if (t.map)
            munmap(t.map, size);
        ok = ok && (!asked->sync || flush_files(&t));
        seconds = gm_clock() - start;
        allocated *= (double)t.written / (double)asked->blocks; /* the share that was used */
        seconds = asked->overlap ? fmax(seconds, allocated) : seconds + allocated;
    }
    for (int i = 0; i < t.files; i++)
        close(t.fd[i]);
    return ok && seconds > 0 ? (double)t.written * (double)asked->block_bytes / seconds : 0;
}

double gm_write_benchmark_run(const char *file, const gm_write_benchmark *asked)
{
    gm_write_benchmark t = *asked;
    double rate = 0;
    t.threads = (int)gm_max(1, gm_min(t.threads, GM_WRITE_BENCHMARK_THREADS));
    t.files = (int)gm_max(1, gm_min(t.files, GM_WRITE_BENCHMARK_THREADS));
    if (is_possible(file, t.strategy)) {
        int quiet = gm_error_hush(1);
        rate = measure(file, &t);
        gm_error_hush(quiet);
    }
    return rate;
}
