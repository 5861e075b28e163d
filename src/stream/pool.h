/* pool.h - memory and events that are allocated one by one and released together. */
#ifndef GM_SRC_STREAM_POOL_H
#define GM_SRC_STREAM_POOL_H

#include "base/device.h"

enum { GM_POOL_ITEMS = 32 };

typedef struct gm_pool {
    const gm_device_ops *ops; /* with the device, set by the owner; NULL: host memory only */
    gm_device *device;
    int status; /* of the first allocation that failed; those after it allocate nothing */
    int items;
    struct {
        void *address;
        int kind;
    } item[GM_POOL_ITEMS];
} gm_pool;

/* Room for count elements of `size` bytes, not cleared; NULL when the pool's status is a failure (GM_EDEVICE). Host
 * memory is charged to GM_HOST, pinned memory too, device memory to GM_DEVICE. */
void *gm_pool_host(gm_pool *pool, int64_t count, size_t size);
void *gm_pool_pinned(gm_pool *pool, int64_t count, size_t size);
void *gm_pool_device(gm_pool *pool, int64_t count, size_t size);

/* An event of the device; NULL as above. */
gm_event *gm_pool_event(gm_pool *pool);

/* Releases everything, the last allocation first. The pool is empty then, and its status GM_OK. */
void gm_pool_release(gm_pool *pool);

#endif
