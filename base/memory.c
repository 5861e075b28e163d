#include "base/memory.h"

#include "base/size.h"
#include "base/status.h"

#include <pthread.h>
#include <stdlib.h>

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

void gm_memory_set_cap(gm_account account, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    accounts[account].cap = bytes;
    pthread_mutex_unlock(&lock);
}

#define GETTER(field)                                                                                                        \
    int64_t gm_memory_##field(gm_account account)                                                                            \
    {                                                                                                                        \
        pthread_mutex_lock(&lock);                                                                                           \
        int64_t value = accounts[account].field;                                                                             \
        pthread_mutex_unlock(&lock);                                                                                         \
        return value;                                                                                                        \
    }
GETTER(cap)
GETTER(used)
GETTER(peak)

int gm_memory_charge(gm_account account, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    int64_t used = gm_add_sat(accounts[account].used, bytes), cap = accounts[account].cap;
    int fits = used <= cap && used != INT64_MAX;
    if (fits) {
        accounts[account].used = used;
        accounts[account].peak = gm_max(accounts[account].peak, used);
    }
    pthread_mutex_unlock(&lock);
    if (fits)
        return GM_OK;
    char need[GM_SIZE_TEXT], have[GM_SIZE_TEXT];
    return gm_fail(GM_EDEVICE, "out of %s: %s would be in use, %s allows %s", names[account].what, gm_size_format(used, need),
                   names[account].option, gm_size_format(cap, have));
}

void gm_memory_release(gm_account account, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    accounts[account].used -= bytes;
    pthread_mutex_unlock(&lock);
}

/* The size stands in a page of its own before the memory that the caller sees, so that this stays aligned. */
enum { HEADER = 4096 };

int gm_host_alloc(size_t bytes, void **out)
{
    *out = NULL;
    int64_t total = gm_add_sat(gm_round_up((int64_t)bytes, HEADER), HEADER);
    int status = gm_memory_charge(GM_HOST, total);
    if (status)
        return status;
    char *block = aligned_alloc(HEADER, (size_t)total);
    if (!block) {
        char need[GM_SIZE_TEXT];
        gm_memory_release(GM_HOST, total);
        return gm_fail(GM_EDEVICE, "out of host memory: the system does not give %s more", gm_size_format(total, need));
    }
    *(int64_t *)(void *)block = total;
    *out = block + HEADER;
    return GM_OK;
}

void gm_host_free(void *memory)
{
    if (!memory)
        return;
    char *block = (char *)memory - HEADER;
    int64_t total = *(int64_t *)(void *)block;
    free(block);
    gm_memory_release(GM_HOST, total);
}
