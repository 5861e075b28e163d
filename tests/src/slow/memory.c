#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/src/slow/memory.h"

#include "base/size.h"
#include "base/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ZONE = 256, NEW = 0xa7, EDGE = 0x5c };

typedef struct block {
    struct block *next;
    char *address, *bytes; /* of calls; where they are: the same for memory of the test */
    size_t size, mapped;   /* mapped: at address - ZONE; 0: memory of the test */
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

void *slow_memory_alloc(size_t bytes)
{
    block b = {.size = bytes, .mapped = bytes + 2 * ZONE};
    char *pages = mmap(NULL, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *memory = aligned_alloc(ZONE, (size_t)gm_round_up((int64_t)bytes, ZONE) + 2 * ZONE);
    if (pages == MAP_FAILED || !memory)
        return NULL;
    b.address = pages + ZONE;
    b.bytes = memory + ZONE;
    memset(memory, EDGE, ZONE);
    memset(b.bytes, NEW, bytes); /* nothing that a program may rely on: numbers of any type that are no zeros */
    memset(b.bytes + bytes, EDGE, ZONE);
    return add(b);
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
    free(b.bytes - ZONE);
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
