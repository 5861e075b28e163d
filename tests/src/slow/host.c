#include "tests/src/slow/host.h"

#include "tests/src/slow/memory.h"
#include "tests/src/slow/queue.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const gm_device_ops *real;
enum { MAX_BLOCKS = 256 };
static struct {
    const char *from; /* NULL: a free place */
    size_t bytes;
    int is_pinned;
} blocks[MAX_BLOCKS]; /* under the lock: threads allocate, pin and copy at once */

/* The block that an address is in, or a free one, for NULL; MAX_BLOCKS: there is none. Under the lock. */
static int block_of(const char *at)
{
    int i = 0;
    while (i < MAX_BLOCKS &&
           !(at ? blocks[i].from && at >= blocks[i].from && at < blocks[i].from + blocks[i].bytes : !blocks[i].from))
        i++;
    return i;
}

static int add(void *memory, size_t bytes, int is_pinned)
{
    pthread_mutex_lock(&lock);
    int i = block_of(NULL);
    if (i == MAX_BLOCKS)
        slow_die("more than %d blocks of host memory", MAX_BLOCKS);
    blocks[i].from = memory;
    blocks[i].bytes = bytes;
    blocks[i].is_pinned = is_pinned;
    pthread_mutex_unlock(&lock);
    return GM_OK;
}

/* New memory holds nothing that a program may rely on. */
static int lend(void *memory, size_t bytes, int is_pinned)
{
    memset(memory, 0xa7, bytes);
    return add(memory, bytes, is_pinned);
}

static int host_alloc(gm_device *device, size_t bytes, void **out)
{
    slow_queue_check_calm("an allocation");
    int status = real->host_alloc(device, bytes, out);
    return status ? status : lend(*out, bytes, 1);
}

static int host_alloc_pageable(gm_device *device, size_t bytes, void **out)
{
    int status = real->host_alloc_pageable(device, bytes, out);
    return status ? status : lend(*out, bytes, 0);
}

static void host_pin(gm_device *device, void *memory)
{
    pthread_mutex_lock(&lock);
    int i = block_of(memory);
    if (i < MAX_BLOCKS)
        blocks[i].is_pinned = 1;
    pthread_mutex_unlock(&lock);
    real->host_pin(device, memory);
}

static void take_back(void *memory)
{
    pthread_mutex_lock(&lock);
    int i = memory ? block_of(memory) : MAX_BLOCKS;
    size_t bytes = i < MAX_BLOCKS ? blocks[i].bytes : 0;
    if (i < MAX_BLOCKS)
        blocks[i].from = NULL;
    pthread_mutex_unlock(&lock);
    slow_uses uses = {.call = "free"};
    slow_uses_add(&uses, "memory", &memory, 1, SLOW_WRITES, bytes, bytes, 1);
    if (uses.count && slow_order_uses(&uses.use[0]))
        slow_die("host memory, %zu bytes, is freed while work that may be under way uses it", bytes);
    if (memory)
        slow_queue_check_calm("a release of memory");
}

static void host_free(gm_device *device, void *memory)
{
    take_back(memory);
    real->host_free(device, memory);
}

static void host_register(gm_device *device, void *memory, size_t bytes)
{
    add(memory, bytes, 1);
    real->host_register(device, memory, bytes);
}

static void host_unregister(gm_device *device, void *memory)
{
    take_back(memory);
    real->host_unregister(device, memory);
}

void slow_host_check(const void *memory, size_t bytes)
{
    pthread_mutex_lock(&lock);
    int i = block_of(memory), is_whole = 0;
    if (i < MAX_BLOCKS)
        is_whole = bytes <= (size_t)(blocks[i].from + blocks[i].bytes - (const char *)memory);
    if (i < MAX_BLOCKS && !(blocks[i].is_pinned && is_whole))
        slow_die(is_whole ? "a copy of memory that is not pinned is slow or synchronous on a real device"
                          : "a copy leaves its host memory");
    pthread_mutex_unlock(&lock);
}

void slow_host_fill(gm_device_ops *ops, const gm_device_ops *of)
{
    real = of;
    ops->host_alloc = host_alloc;
    ops->host_alloc_pageable = host_alloc_pageable;
    ops->host_pin = host_pin;
    ops->host_free = host_free;
    ops->host_register = host_register;
    ops->host_unregister = host_unregister;
}
