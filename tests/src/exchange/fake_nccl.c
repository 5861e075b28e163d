/* A library that stands for libnccl.so.2 in tests/src/exchange/nccl.c: the functions that the program uses, by a file
 * that the ranks of one host map, with queues of the slow device in the place of streams. As NCCL's, its communicators
 * do not block: what a group has is put into the queue some calls later, and until then nothing else may be. Messages
 * of two ranks meet in their order; a wait ends with them, or with the abort of the communicator.
 *
 * fake_nccl_set() plants faults. Built without the program: it has no header of it but the list of faults. */
#define _GNU_SOURCE 1
#include "tests/src/exchange/fake_nccl.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, REMOTE_ERROR = 6, IN_PROGRESS = 7 };
enum { RANKS = 4, PIPE = 1 << 16, ID = 128, MESSAGES = 256, POLLS = 3 };

typedef struct channel {
    _Atomic uint64_t written, read;
    char data[PIPE];
} channel;

typedef struct shared {
    atomic_int arrived;
    channel channels[RANKS][RANKS]; /* from, to */
} shared;

typedef struct message {
    int is_receive, peer;
    char *data;
    uint64_t bytes, done, head, heads; /* heads: bytes of the head that have gone; the head is the size */
} message;

typedef struct communicator {
    shared *file;
    int rank, size, error;
    atomic_int aborted, working;
} communicator;

typedef struct work {
    communicator *c;
    int count;
    message messages[MESSAGES];
} work;

typedef struct identity {
    char bytes[ID];
} identity;

typedef struct configuration {
    size_t size;
    unsigned magic, version;
    int blocking;
} configuration;

static fake_put *put_call;
static fake_find *find_bytes;
static fake_fault fault;
static int depth, polls; /* of the group; until its work is put */
static work *group;
static void *group_stream;

void fake_nccl_set(fake_put *put, fake_find *find, fake_fault what)
{
    put_call = put;
    find_bytes = find;
    fault = what;
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static void hang(void)
{
    for (;;)
        sleep(100);
}

/* --- Messages, on the queue's thread --- */

/* Moves bytes between a message and its channel; returns how many. */
static uint64_t move(channel *p, int is_receive, char *data, uint64_t bytes)
{
    uint64_t written = atomic_load(&p->written), read = atomic_load(&p->read), n = 0;
    uint64_t room = is_receive ? written - read : PIPE - (written - read);
    for (; n < bytes && n < room; n++)
        if (is_receive)
            data[n] = p->data[(read + n) % PIPE];
        else
            p->data[(written + n) % PIPE] = data[n];
    atomic_fetch_add(is_receive ? &p->read : &p->written, n);
    return n;
}

static int is_done(const message *m)
{
    return m->heads == sizeof m->head && m->done == m->bytes;
}

static uint64_t advance(communicator *c, message *m)
{
    channel *p = m->is_receive ? &c->file->channels[m->peer][c->rank] : &c->file->channels[c->rank][m->peer];
    uint64_t moved = 0;
    if (m->heads < sizeof m->head) {
        moved = move(p, m->is_receive, (char *)&m->head + m->heads, sizeof m->head - m->heads);
        m->heads += moved;
    }
    if (m->heads == sizeof m->head && m->head != m->bytes)
        c->error = INVALID_ARGUMENT; /* the other end has another size */
    else if (m->heads == sizeof m->head) {
        uint64_t n = move(p, m->is_receive, m->data + m->done, m->bytes - m->done);
        if (fault == FAKE_WRONG && m->is_receive && n > 0)
            m->data[m->done] ^= 4;
        m->done += n;
        moved += n;
    }
    return moved;
}

/* The first message of a channel that has not ended goes on. */
static void do_work(void *argument)
{
    work *w = argument;
    int left = w->count;
    while (left > 0 && !atomic_load(&w->c->aborted)) {
        uint64_t moved = 0, waiting[2] = {0, 0}; /* bit r: a message of rank r goes on */
        left = 0;
        for (int i = 0; i < w->count; i++) {
            message *m = &w->messages[i];
            uint64_t bit = UINT64_C(1) << m->peer;
            if (is_done(m) || waiting[m->is_receive] & bit)
                continue;
            if (fault != FAKE_LOST)
                moved += advance(w->c, m);
            if (!is_done(m)) {
                waiting[m->is_receive] |= bit;
                left++;
            }
        }
        if (!moved)
            rest();
    }
    atomic_fetch_sub(&w->c->working, 1);
    free(w);
}

/* --- The interface --- */

int ncclGetVersion(int *version)
{
    *version = fault == FAKE_OLD ? 21003 : fault == FAKE_OTHER_VERSION ? 22907 : 22809;
    return SUCCESS;
}

const char *ncclGetErrorString(int result)
{
    return result == REMOTE_ERROR ? "fake remote error" : "fake error";
}

int ncclGetUniqueId(identity *id)
{
    static int made;
    const char *folder = getenv("TMPDIR");
    if (fault == FAKE_NO_IDENTITY)
        return SYSTEM_ERROR;
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "%.80s/nccl-%d-%d", folder ? folder : "/tmp", (int)getpid(), made++);
    int file = open(id->bytes, O_RDWR | O_CREAT | O_EXCL, 0600);
    int failed = file < 0 || ftruncate(file, sizeof(shared));
    if (file >= 0)
        close(file);
    return failed ? SYSTEM_ERROR : SUCCESS;
}

int ncclCommInitRankConfig(communicator **out, int size, identity id, int rank, configuration *config)
{
    if (fault == FAKE_CONNECT_HANGS)
        hang();
    if (fault == FAKE_CONNECT_FAILS)
        return SYSTEM_ERROR;
    if (config->magic != 0xcafebeef || config->size != sizeof *config || config->blocking != 0 || size > RANKS ||
        strcmp(getenv("NCCL_NVLS_ENABLE"), "0") != 0)
        return INVALID_ARGUMENT;
    int file = open(id.bytes, O_RDWR);
    communicator *c = calloc(1, sizeof *c);
    if (file < 0 || !c)
        return SYSTEM_ERROR;
    c->file = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    c->rank = rank;
    c->size = size;
    if (fault != FAKE_NEVER_READY)
        atomic_fetch_add(&c->file->arrived, 1);
    *out = c;
    return IN_PROGRESS;
}

static void put_group(communicator *c)
{
    fake_region regions[MESSAGES];
    int count = group->count;
    for (int i = 0; i < count; i++) {
        message *m = &group->messages[i];
        regions[i] = (fake_region){m->data, m->bytes, m->is_receive};
        m->data = find_bytes(m->data);
    }
    atomic_fetch_add(&c->working, 1);
    put_call(group_stream, do_work, group, regions, count);
    group = NULL;
}

int ncclCommGetAsyncError(communicator *c, int *error)
{
    *error = c->error;
    if (!c->error && atomic_load(&c->file->arrived) < c->size)
        *error = IN_PROGRESS;
    else if (!c->error && group && depth == 0 && --polls > 0)
        *error = IN_PROGRESS;
    else if (!c->error && group && depth == 0) {
        put_group(c);
    } else if (fault == FAKE_REMOTE_ERROR && atomic_load(&c->working)) {
        *error = c->error = REMOTE_ERROR;
    }
    return SUCCESS;
}

int ncclGroupStart(void)
{
    depth++;
    return SUCCESS;
}

int ncclGroupEnd(void)
{
    depth--;
    polls = POLLS;
    return IN_PROGRESS;
}

static int add(int is_receive, void *data, size_t count, int type, int peer, communicator *c, void *stream)
{
    if (!group)
        group = calloc(1, sizeof *group);
    if (!group || depth != 1 || group->count == MESSAGES || type != 0 || peer < 0 || peer >= c->size ||
        atomic_load(&c->file->arrived) < c->size)
        return INVALID_ARGUMENT;
    group->c = c;
    group_stream = stream;
    group->messages[group->count++] = (message){
        .is_receive = is_receive, .peer = peer, .data = data, .bytes = count, .head = is_receive ? 0 : count};
    return fault == FAKE_SEND_FAILS && !is_receive ? INVALID_ARGUMENT : SUCCESS;
}

int ncclSend(const void *data, size_t count, int type, int peer, communicator *c, void *stream)
{
    return add(0, (void *)(uintptr_t)data, count, type, peer, c, stream);
}

int ncclRecv(void *data, size_t count, int type, int peer, communicator *c, void *stream)
{
    return add(1, data, count, type, peer, c, stream);
}

static int end(communicator *c)
{
    while (atomic_load(&c->working))
        rest();
    munmap(c->file, sizeof(shared));
    free(c);
    free(group);
    group = NULL;
    depth = 0;
    return SUCCESS;
}

int ncclCommAbort(communicator *c)
{
    if (fault == FAKE_ABORT_HANGS)
        hang();
    atomic_store(&c->aborted, 1);
    return end(c);
}

int ncclCommDestroy(communicator *c)
{
    return atomic_load(&c->working) ? INVALID_ARGUMENT : end(c);
}
