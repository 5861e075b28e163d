#define _GNU_SOURCE /* MAP_ANONYMOUS, syscall() */
#include "tests/src/slow/memory.h"

#include "base/size.h"
#include "base/status.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ZONE = 256, NEW = 0xa7, EDGE = 0x5c };

typedef struct block {
    struct block *next;
    char *address, *bytes; /* of calls; where they are: the same for memory of the test */
    size_t size, mapped;   /* mapped: of both, from a zone before them on; 0: memory of the test */
    int fd;                /* of the bytes; -1: of another process */
    int64_t number;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;

void slow_die(const char *format, ...)
{
    gm_error error;
    va_list arguments;
    gm_error_get(&error);
    fprintf(stderr, "the slow device: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s%s\n", error.text[0] ? ": " : "", error.text);
    abort();
}

static void *add(block b)
{
    block *own = malloc(sizeof *own);
    if (!own)
        return NULL;
    *own = b;
    pthread_mutex_lock(&lock);
    own->next = blocks;
    blocks = own;
    pthread_mutex_unlock(&lock);
    return own->address;
}

static block take(const void *address)
{
    block b = {0};
    pthread_mutex_lock(&lock);
    for (block **at = &blocks; *at; at = &(*at)->next)
        if ((*at)->address == address) {
            block *found = *at;
            b = *found;
            *at = found->next;
            free(found);
            break;
        }
    pthread_mutex_unlock(&lock);
    if (!b.address)
        slow_die("%p is freed, and is no allocation of the device", address);
    return b;
}

/* The block that the address is in, or behind whose last byte it is. */
static block find(const void *address)
{
    block found = {0};
    const char *at = address;
    pthread_mutex_lock(&lock);
    for (const block *b = blocks; b && !found.address; b = b->next)
        if (at >= b->address && at <= b->address + b->size)
            found = *b;
    pthread_mutex_unlock(&lock);
    return found;
}

/* The bytes of a file, with a zone before and after them, as memory of the device. */
static int map(int fd, size_t bytes, block *b)
{
    *b = (block){.size = bytes, .mapped = bytes + 2 * ZONE, .fd = -1};
    char *pages = mmap(NULL, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *memory = fd < 0 ? MAP_FAILED : mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    b->address = pages + ZONE;
    b->bytes = memory + ZONE;
    return pages != MAP_FAILED && memory != MAP_FAILED;
}

void *slow_memory_alloc(size_t bytes)
{
    static int64_t count;
    block b;
    int fd = (int)syscall(SYS_memfd_create, "slow-device", 0); /* tests replace memfd_create() */
    if (fd < 0 || ftruncate(fd, (off_t)bytes + 2 * ZONE) || !map(fd, bytes, &b))
        return NULL;
    b.fd = fd;
    b.number = ++count;
    memset(b.bytes - ZONE, EDGE, ZONE);
    memset(b.bytes, NEW, bytes); /* nothing that a program may rely on: numbers of any type that are no zeros */
    memset(b.bytes + bytes, EDGE, ZONE);
    return add(b);
}

/* Where the bytes are, for another process. */
typedef struct place {
    long process;
    int fd;
    size_t bytes;
} place;

void slow_memory_share(const void *address, gm_shared_memory *shared)
{
    block b = find(address);
    const place at = {(long)getpid(), b.fd, b.size};
    if (!b.mapped || b.fd < 0)
        slow_die("%p is shared, and is no allocation of the device", address);
    *shared = (gm_shared_memory){.number = b.number, .offset = (const char *)address - b.address};
    memcpy(shared->name, &at, sizeof at);
}

void *slow_memory_open(const gm_shared_memory *shared)
{
    char path[64];
    place at;
    block b;
    memcpy(&at, shared->name, sizeof at);
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", at.process, at.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC), is_there = map(fd, at.bytes, &b);
    if (fd >= 0)
        close(fd);
    return is_there ? add(b) : NULL;
}

static int is_edge(const char *zone)
{
    int same = 1;
    for (int i = 0; i < ZONE; i++)
        same &= zone[i] == EDGE;
    return same;
}

void slow_memory_free(void *memory)
{
    block b = take(memory);
    if (!is_edge(b.bytes - ZONE) || !is_edge(b.bytes + b.size))
        slow_die("bytes %s an allocation of %zu bytes are written", is_edge(b.bytes - ZONE) ? "after" : "before",
                 b.size);
    munmap(b.address - ZONE, b.mapped);
    munmap(b.bytes - ZONE, b.mapped);
    if (b.fd >= 0)
        close(b.fd);
}

void slow_memory_add(void *memory, size_t bytes)
{
    add((block){.address = memory, .bytes = memory, .size = bytes});
}

void slow_memory_remove(const void *memory)
{
    take(memory);
}

char *slow_memory_find(const void *address, size_t bytes)
{
    const char *at = address;
    block b = find(address);
    return b.address && bytes <= (size_t)(b.address + b.size - at) ? b.bytes + (at - b.address) : NULL;
}

int slow_memory_has(const void *address, size_t bytes)
{
    int has = 0;
    const char *at = address;
    pthread_mutex_lock(&lock);
    for (const block *b = blocks; b; b = b->next)
        has |= at < b->address + b->size && b->address < at + bytes;
    pthread_mutex_unlock(&lock);
    return has;
}

size_t slow_memory_rest(const void *address)
{
    block b = find(address);
    return b.address ? (size_t)(b.address + b.size - (const char *)address) : 0;
}

int slow_memory_count(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (const block *b = blocks; b; b = b->next)
        count += b->mapped > 0;
    pthread_mutex_unlock(&lock);
    return count;
}
