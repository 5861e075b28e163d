#include "base/memory.h"

#include "base/size.h"
#include "base/status.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

static const struct {
    const char *what, *option;
} names[GM_ACCOUNTS] = {
    [GM_HOST] = {"host memory", "--host-memory"},
    [GM_DEVICE] = {"device memory", "--device-memory"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int64_t cap, used, peak;
} accounts[GM_ACCOUNTS] = {{INT64_MAX, 0, 0}, {INT64_MAX, 0, 0}};
static struct {
    int64_t cap, used;
} optional = {INT64_MAX, 0}; /* of GM_HOST */

void gm_memory_set_cap(gm_account account, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    accounts[account].cap = bytes;
    pthread_mutex_unlock(&lock);
}

#define GETTER(field)                             \
    int64_t gm_memory_##field(gm_account account) \
    {                                             \
        pthread_mutex_lock(&lock);                \
        int64_t value = accounts[account].field;  \
        pthread_mutex_unlock(&lock);              \
        return value;                             \
    }
GETTER(cap)
GETTER(used)
GETTER(peak)

/* Charges if that is within the cap, and returns whether it is. *used: bytes in use, or that would be in use. */
static int charge(gm_account account, int64_t bytes, int64_t *used, int64_t *cap)
{
    pthread_mutex_lock(&lock);
    *used = gm_add_sat(accounts[account].used, bytes);
    *cap = accounts[account].cap;
    int fits = *used <= *cap && *used != INT64_MAX;
    if (fits) {
        accounts[account].used = *used;
        accounts[account].peak = gm_max(accounts[account].peak, *used);
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

int gm_memory_charge(gm_account account, int64_t bytes)
{
    int64_t used, cap;
    if (charge(account, bytes, &used, &cap))
        return GM_OK;
    char need[GM_SIZE_TEXT], have[GM_SIZE_TEXT];
    return gm_fail(GM_EDEVICE, "out of %s: %s would be in use, %s allows %s", names[account].what,
                   gm_size_format(used, need), names[account].option, gm_size_format(cap, have));
}

void gm_memory_release(gm_account account, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    accounts[account].used -= bytes;
    pthread_mutex_unlock(&lock);
}

void gm_memory_set_optional(int64_t bytes)
{
    pthread_mutex_lock(&lock);
    optional.cap = bytes;
    pthread_mutex_unlock(&lock);
}

/* Adds to what is optional, if that is allowed; or takes away from it. */
static int charge_optional(int64_t bytes)
{
    pthread_mutex_lock(&lock);
    int fits = gm_add_sat(optional.used, bytes) <= optional.cap || bytes < 0;
    optional.used += fits ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return fits;
}

int gm_memory_is_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int gm_memory_has_room(size_t bytes)
{
    if (!gm_memory_is_limited())
        return 1;
    void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return room != MAP_FAILED && munmap(room, bytes) == 0;
}

/* The size is in a page of its own in front of the caller's memory, which stays aligned. */
enum { HEADER = 4096 };

typedef struct header {
    int64_t total;
    int is_optional;
} header;

static int64_t total_of(size_t bytes)
{
    return gm_add_sat(gm_round_up((int64_t)bytes, HEADER), HEADER);
}

/* Allocates memory that is charged already. On failure *out is NULL and the charge is released. Returns whether it
 * succeeded. Libraries keep room under a limit of address space: libhdf5 crashes where it finds none for an output. */
static int allocate(int64_t total, int is_optional, void **out)
{
    static const size_t of_libraries = 16 << 20;
    char *block = aligned_alloc(HEADER, (size_t)total);
    if (block && !gm_memory_has_room(of_libraries)) {
        free(block);
        block = NULL;
    }
    *out = block ? block + HEADER : NULL;
    if (block)
        *(header *)(void *)block = (header){total, is_optional};
    else
        gm_memory_release(GM_HOST, total);
    return block != NULL;
}

int gm_host_alloc(size_t bytes, void **out)
{
    *out = NULL;
    int64_t total = total_of(bytes);
    int status = gm_memory_charge(GM_HOST, total);
    if (status || allocate(total, 0, out))
        return status;
    char need[GM_SIZE_TEXT];
    return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate %s", gm_size_format(total, need));
}

int gm_host_try(size_t bytes, void **out)
{
    int64_t total = total_of(bytes), used, cap;
    *out = NULL;
    if (!charge_optional(total))
        return 0;
    if (charge(GM_HOST, total, &used, &cap) && allocate(total, 1, out))
        return 1;
    charge_optional(-total);
    return 0;
}

int gm_host_try_charge(int64_t bytes)
{
    int64_t used, cap;
    if (!charge_optional(bytes))
        return 0;
    if (charge(GM_HOST, bytes, &used, &cap))
        return 1;
    charge_optional(-bytes);
    return 0;
}

void gm_host_release_charge(int64_t bytes)
{
    gm_memory_release(GM_HOST, bytes);
    charge_optional(-bytes);
}

void gm_host_free(void *memory)
{
    if (!memory)
        return;
    char *block = (char *)memory - HEADER;
    header h = *(header *)(void *)block;
    free(block);
    gm_memory_release(GM_HOST, h.total);
    if (h.is_optional)
        charge_optional(-h.total);
}
