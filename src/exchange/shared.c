#define _GNU_SOURCE 1 /* memfd_create */
#include "src/exchange/shared.h"

#include "base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* The memory of a rank, as others find it: the descriptor in its process, and bytes that the memory begins with. A
 * process of the same number in another namespace has others. */
typedef struct place {
    int host, is_there, fd;
    long process;
    char mark[16];
} place;

struct gm_shared {
    size_t bytes;
    int ranks, own;
    int is_charged;
    void *memory[]; /* [ranks]; NULL: none */
};

static void *map(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* *mine: without is_there where it could not be made. */
static void make(gm_shared *s, place *mine)
{
    int before = gm_error_hush(1);
    s->is_charged = !gm_memory_charge(GM_HOST, (int64_t)s->bytes);
    gm_error_hush(before);
    mine->process = (long)getpid();
    mine->fd = s->is_charged ? memfd_create("gpumem-exchange", MFD_CLOEXEC) : -1;
    if (mine->fd < 0 || ftruncate(mine->fd, (off_t)s->bytes) ||
        getrandom(mine->mark, sizeof mine->mark, 0) != (ssize_t)sizeof mine->mark)
        return;
    s->memory[s->own] = map(mine->fd, s->bytes);
    mine->is_there = s->memory[s->own] != NULL;
    if (mine->is_there)
        memcpy(s->memory[s->own], mine->mark, sizeof mine->mark);
}

static void *find(const place *of, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", of->process, of->fd);
    int fd = of->is_there ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *memory = fd >= 0 ? map(fd, bytes) : NULL;
    if (fd >= 0)
        close(fd);
    if (memory && memcmp(memory, of->mark, sizeof of->mark) != 0) {
        munmap(memory, bytes);
        memory = NULL;
    }
    return memory;
}

/* On all ranks, or on none. Collective. */
static int share_all(const gm_ranks *ranks, gm_shared *s, place *all, int64_t *on_all)
{
    place mine = {.host = ranks->host_index, .fd = -1};
    make(s, &mine);
    int status = gm_agree_all(ranks, gm_allgather_all(ranks, &mine, sizeof mine, all));
    *on_all = mine.is_there;
    for (int rank = 0; rank < ranks->size && !status; rank++) {
        if (rank == ranks->rank || all[rank].host != ranks->host_index)
            continue;
        s->memory[rank] = find(&all[rank], s->bytes);
        *on_all &= s->memory[rank] != NULL;
    }
    if (!status) /* all have mapped it before a descriptor closes */
        status = gm_agree_all(ranks, gm_min_all(on_all));
    if (mine.fd >= 0)
        close(mine.fd);
    return status;
}

int gm_shared_open_all(const gm_ranks *ranks, size_t bytes, gm_shared **shared)
{
    size_t count = (size_t)ranks->size;
    gm_shared *s = calloc(1, sizeof *s + count * sizeof s->memory[0]);
    place *all = calloc(count, sizeof *all);
    int64_t on_all = s && all;
    *shared = NULL;
    int status = gm_agree_all(ranks, gm_min_all(&on_all));
    if (!status && on_all) {
        *s = (gm_shared){.bytes = bytes, .ranks = ranks->size, .own = ranks->rank};
        status = share_all(ranks, s, all, &on_all);
    }
    free(all);
    if (status || !on_all)
        gm_shared_close(s);
    else
        *shared = s;
    return status;
}

void gm_shared_close(gm_shared *s)
{
    for (int rank = 0; s && rank < s->ranks; rank++)
        if (s->memory[rank])
            munmap(s->memory[rank], s->bytes);
    if (s && s->is_charged)
        gm_memory_release(GM_HOST, (int64_t)s->bytes);
    free(s);
}

void *gm_shared_of(const gm_shared *s, int rank)
{
    return s ? s->memory[rank] : NULL;
}
