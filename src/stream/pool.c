#include "src/stream/pool.h"

#include "base/memory.h"
#include "base/size.h"

enum { HOST, PINNED, DEVICE, EVENT };

static void *add(gm_pool *pool, int kind, int64_t count, size_t size)
{
    size_t bytes = (size_t)gm_mul_sat(count, (int64_t)size);
    void *address = NULL;
    gm_event *event = NULL;
    if (pool->status)
        return NULL;
    if (pool->items == GM_POOL_ITEMS)
        pool->status = gm_fail(GM_EINTERNAL, "more than %d allocations of one pool", GM_POOL_ITEMS);
    else if (kind == HOST)
        pool->status = gm_host_alloc(bytes, &address);
    else if (kind == PINNED)
        pool->status = pool->ops->host_alloc(pool->device, bytes, &address);
    else if (kind == DEVICE)
        pool->status = pool->ops->alloc(pool->device, bytes, &address);
    else
        pool->status = pool->ops->event_open(pool->device, 0, &event);
    if (pool->status)
        return NULL;
    address = event ? (void *)event : address;
    pool->item[pool->items].kind = kind;
    pool->item[pool->items++].address = address;
    return address;
}

void *gm_pool_host(gm_pool *pool, int64_t count, size_t size)
{
    return add(pool, HOST, count, size);
}

void *gm_pool_pinned(gm_pool *pool, int64_t count, size_t size)
{
    return add(pool, PINNED, count, size);
}

void *gm_pool_device(gm_pool *pool, int64_t count, size_t size)
{
    return add(pool, DEVICE, count, size);
}

gm_event *gm_pool_event(gm_pool *pool)
{
    return add(pool, EVENT, 0, 0);
}

void gm_pool_release(gm_pool *pool)
{
    while (pool->items > 0) {
        void *address = pool->item[--pool->items].address;
        switch (pool->item[pool->items].kind) {
        case HOST:
            gm_host_free(address);
            break;
        case PINNED:
            pool->ops->host_free(pool->device, address);
            break;
        case DEVICE:
            pool->ops->free(pool->device, address);
            break;
        default:
            pool->ops->event_close(address);
        }
    }
    pool->status = GM_OK;
}
