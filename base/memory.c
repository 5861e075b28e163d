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

/* Charges if that is within the cap; *used: what is, or would be, in use. Returns whether it is. */
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

static int64_t total_of(size_t bytes)
{
    return gm_add_sat(gm_round_up((int64_t)bytes, HEADER), HEADER);
}

/* Memory that is charged already; *out is NULL and the charge released when the system has none. Returns whether it has. */
static int allocate(int64_t total, void **out)
{
    char *block = aligned_alloc(HEADER, (size_t)total);
    *out = block ? block + HEADER : NULL;
    if (block)
        *(int64_t *)(void *)block = total;
    else
        gm_memory_release(GM_HOST, total);
    return block != NULL;
}

int gm_host_alloc(size_t bytes, void **out)
{
    *out = NULL;
    int64_t total = total_of(bytes);
    int status = gm_memory_charge(GM_HOST, total);
    if (status || allocate(total, out))
        return status;
    char need[GM_SIZE_TEXT];
    return gm_fail(GM_EDEVICE, "out of host memory: the system does not give %s more", gm_size_format(total, need));
}

int gm_host_try(size_t bytes, void **out)
{
    int64_t total = total_of(bytes), used, cap;
    *out = NULL;
    return charge(GM_HOST, total, &used, &cap) && allocate(total, out);
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
