#include "tests/src/slow_device.h"

#include "base/memory.h"
#include "tests/src/slow/host.h"
#include "tests/src/slow/memory.h"
#include "tests/src/slow/products.h"
#include "tests/src/slow/queue.h"

#include <stdio.h>
#include <string.h>

static const gm_device_ops *real;
static gm_device_ops slow;
static gm_product product;
static const gm_product *real_product;

/* --- Memory --- */

static int alloc(gm_device *device, size_t bytes, void **out)
{
    (void)device;
    *out = NULL;
    slow_queue_check_calm("an allocation");
    int status = gm_memory_charge(GM_DEVICE, (int64_t)bytes);
    if (status)
        return status;
    *out = slow_memory_alloc(bytes);
    return *out ? GM_OK : gm_fail(GM_EDEVICE, "out of host memory");
}

static void release(gm_device *device, void *memory)
{
    (void)device;
    if (!memory)
        return;
    slow_queue_check_calm("a release of memory");
    size_t bytes = slow_memory_rest(memory);
    slow_queue_settle();
    gm_memory_release(GM_DEVICE, (int64_t)bytes);
    slow_memory_free(memory);
}

static int share(gm_device *device, const void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY])
{
    (void)device;
    slow_memory_share(memory, shared);
    why[0] = '\0';
    return GM_OK;
}

static int open_shared(gm_device *device, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY])
{
    (void)device;
    *memory = slow_memory_open(shared);
    snprintf(why, GM_SHARED_WHY, "%s", *memory ? "" : "no such memory");
    return GM_OK;
}

static void close_shared(gm_device *device, void *memory)
{
    (void)device;
    if (!memory)
        return;
    slow_queue_settle();
    slow_memory_free(memory);
}

static void close_device(gm_device *device)
{
    if (slow_memory_count())
        slow_die("%d allocations are left when the device is closed", slow_memory_count());
    real->close(device);
}

/* --- Calls --- */

/* The host's side is the first use. */
static void use_copy(slow_work *w)
{
    size_t width = w->of.copy.width;
    int64_t rows = w->of.copy.rows;
    int is_out = w->kind == SLOW_COPY_OUT;
    for (int i = 0; i < 2; i++)
        if (i == is_out)
            slow_uses_add(&w->uses, "source", &w->of.copy.src, w->kind == SLOW_COPY_IN, SLOW_READS,
                          w->of.copy.src_pitch, width, rows);
        else
            slow_uses_add(&w->uses, "target", &w->of.copy.dst, is_out, SLOW_WRITES, w->of.copy.dst_pitch, width, rows);
}

/* What the host writes before a copy in is done shows by its digest; what it reads before a copy out is done is as
 * wrong as new memory. */
static void guard_host(slow_work *w)
{
    const slow_use *host = &w->uses.use[0];
    slow_host_check(host->at, (size_t)(host->rows[0] - 1) * host->step[0] + host->width);
    slow_uses_settle(&(slow_uses){.call = w->uses.call, .count = 1, .use = {*host}});
    if (w->kind == SLOW_COPY_IN)
        w->of.copy.digest = slow_uses_digest(host);
    else if (!slow_order_uses(host))
        for (int64_t i = 0; i < host->rows[0]; i++)
            memset((char *)w->of.copy.dst + (size_t)i * host->step[0], 0xa7, host->width);
}

static int copy(gm_queue *queue, slow_kind kind, const char *name, void *dst, size_t dst_pitch, const void *src,
                size_t src_pitch, size_t width, int64_t rows)
{
    slow_work w = {.kind = kind, .uses.call = name};
    w.of.copy.dst = dst;
    w.of.copy.src = src;
    w.of.copy.dst_pitch = dst_pitch;
    w.of.copy.src_pitch = src_pitch;
    w.of.copy.width = width;
    w.of.copy.rows = rows;
    use_copy(&w);
    if (kind != SLOW_COPY_WITHIN && w.uses.count)
        guard_host(&w);
    return w.uses.count ? slow_queue_put(queue, &w) : GM_OK;
}

#define COPY_TO(name, kind)                                                                                        \
    static int name(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, \
                    int64_t rows)                                                                                  \
    {                                                                                                              \
        return copy(queue, kind, #name, dst, dst_pitch, src, src_pitch, width, rows);                              \
    }
COPY_TO(copy_in, SLOW_COPY_IN)
COPY_TO(copy_out, SLOW_COPY_OUT)
COPY_TO(copy_within, SLOW_COPY_WITHIN)

static int zero(gm_queue *queue, void *dst, size_t bytes)
{
    slow_work w = {.kind = SLOW_ZERO, .uses.call = "zero"};
    w.of.copy.dst = dst;
    w.of.copy.width = bytes;
    slow_uses_add(&w.uses, "target", &w.of.copy.dst, 0, SLOW_WRITES, bytes, bytes, 1);
    return slow_queue_put(queue, &w);
}

static int put_product(gm_queue *queue, const gm_product *of, const gm_product_call *call)
{
    slow_work w = {.kind = SLOW_PRODUCT, .of.product = *call, .product = of, .uses.call = "product"};
    slow_uses_product(w.product, &w.of.product, &w.uses);
    return slow_queue_put(queue, &w);
}

#define GM_DEVICE_OP(op, cpu, cuda)                                             \
    static int run_##op(gm_queue *queue, const gm_##op##_call *call)            \
    {                                                                           \
        slow_work w = {.kind = SLOW_DO_##op, .of.op = *call, .uses.call = #op}; \
        slow_uses_##op(&w.of.op, &w.uses);                                      \
        return slow_queue_put(queue, &w);                                       \
    }
#include "base/device_ops.def"
#undef GM_DEVICE_OP

void *slow_device_bytes(void *memory)
{
    char *bytes = slow_memory_find(memory, 0);
    return bytes ? bytes : memory;
}

static int run_product(gm_queue *queue, const gm_product_call *call)
{
    return put_product(queue, real_product, call);
}

static const gm_product *find_product(gm_device *device, int index)
{
    real_product = real->product(device, index);
    if (!real_product)
        return NULL;
    product = *real_product;
    product.run = run_product;
    return &product;
}

const gm_device_ops *slow_device_ops(const gm_device_ops *of)
{
    real = of;
    slow = *of;
    slow.unified = 0;
    slow_queue_fill(&slow, of);
    slow_host_fill(&slow, of);
    slow.close = close_device;
    slow.alloc = alloc;
    slow.free = release;
    slow.share = share;
    slow.open_shared = open_shared;
    slow.close_shared = close_shared;
    slow.copy_in = copy_in;
    slow.copy_out = copy_out;
    slow.copy_within = copy_within;
    slow.zero = zero;
    slow.product = find_product;
#define GM_DEVICE_OP(name, cpu, cuda) slow.name = run_##name;
#include "base/device_ops.def"
#undef GM_DEVICE_OP
    return &slow;
}

/* --- Products of a GPU --- */

enum { GPU_PRODUCTS = 16 };
static gm_product gpu_products[GPU_PRODUCTS];

/* An entry of gm_product has no context: a function for each. */
#define RUN_GPU(i)                                                       \
    static int run_gpu_##i(gm_queue *queue, const gm_product_call *call) \
    {                                                                    \
        return put_product(queue, slow_product(i), call);                \
    }
#define EACH_GPU(DO) \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
EACH_GPU(RUN_GPU)
#define NAME_GPU(i) run_gpu_##i,
static int (*const run_gpu[])(gm_queue *, const gm_product_call *) = {EACH_GPU(NAME_GPU)};

static const gm_product *find_gpu_product(gm_device *device, int index)
{
    const gm_product *of = index < GPU_PRODUCTS ? slow_product(index) : NULL;
    (void)device;
    if (!of)
        return NULL;
    gpu_products[index] = *of;
    gpu_products[index].run = run_gpu[index];
    return &gpu_products[index];
}

/* Sums that float64 does not hold are infinite. */
static int probe_of_gpu(gm_queue *queue, const gm_probe_call *call)
{
    gm_probe_call narrow = *call;
    narrow.wide = 0;
    return run_probe(queue, &narrow);
}

void slow_device_imitate(gm_device_ops *ops)
{
    ops->product = find_gpu_product;
    ops->probe = probe_of_gpu;
}
