/* ahead.c - allocates the memory of files on tmpfs before they are written. */
#include "io/write/ahead.h"

#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/size.h"
#include "base/status.h"
#include "base/thread.h"
#include "io/parallel_for.h"
#include "io/write/space.h"

struct gm_ahead {
    pthread_t thread; /* of the loop, which starts the others */
    int threads, files;
    atomic_int is_stopped;
    int64_t slices; /* of all files; beyond the end of the shorter ones some are empty */
    struct {
        int fd;
        int64_t bytes;
    } file[]; /* [files] */
};

/* A writer waits no longer for its file than a slice takes, or a few of them. */
static const int64_t slice = 1 << 20;

/* The files take turns, as a file is allocated by one thread at a time. */
static int allocate(void *context, int thread, int64_t index)
{
    (void)thread;
    gm_ahead *a = context;
    int file = (int)(index % a->files);
    int64_t at = index / a->files * slice;
    if (atomic_load(&a->is_stopped))
        return GM_ESTOPPED;
    return gm_space_allocate(a->file[file].fd, at, gm_min(at + slice, a->file[file].bytes)) ? GM_EOUTPUT : GM_OK;
}

static void *run(void *argument)
{
    gm_ahead *a = argument;
    gm_parallel_for(a->threads, a->slices, allocate, a);
    return NULL;
}

static int is_on_tmpfs(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

gm_ahead *gm_ahead_begin(const int *descriptors, int files, int threads)
{
    gm_ahead *a = files > 0 && threads > 0 && is_on_tmpfs(descriptors[0])
                      ? calloc(1, sizeof *a + (size_t)files * sizeof a->file[0])
                      : NULL;
    int64_t most = 0;
    if (!a)
        return NULL;
    a->threads = (int)gm_min(threads, files);
    a->files = files;
    for (int i = 0; i < files; i++) {
        struct stat st;
        a->file[i].fd = descriptors[i];
        a->file[i].bytes = fstat(descriptors[i], &st) ? 0 : st.st_size;
        most = gm_max(most, a->file[i].bytes);
    }
    a->slices = gm_ceil_div(most, slice) * files;
    if (gm_thread_start(&a->thread, run, a) == 0)
        return a;
    free(a);
    return NULL;
}

void gm_ahead_stop(gm_ahead *ahead)
{
    if (ahead)
        atomic_store(&ahead->is_stopped, 1);
}

void gm_ahead_end(gm_ahead *ahead)
{
    if (!ahead)
        return;
    gm_ahead_stop(ahead);
    pthread_join(ahead->thread, NULL);
    free(ahead);
}
