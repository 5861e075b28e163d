/* Replaces device_cuda.c in a build without CUDA: a kind of device with no devices. Its operations and
 * products are known without one, for plans. */
#include "kernels/kernels.h"
#include "kernels/matmul/products_cuda.h"

static int none_count(int *count)
{
    *count = 0;
    return GM_OK;
}

static const char *none_absence(void)
{
    return "this program was built without CUDA";
}

static int fail_none(void)
{
    return gm_fail(GM_EDEVICE, "%s", none_absence());
}

static int none_open(int index, int threads, gm_device **device)
{
    (void)index;
    (void)threads;
    *device = NULL;
    return fail_none();
}

/* Entries that stand for what a device can do; without one they are never called. */
static int none_run(gm_queue *queue, const gm_product_call *call)
{
    (void)queue;
    (void)call;
    return fail_none();
}

#define RUN(name) none_run
static const gm_product products[] = {
#define GM_CUDA_PRODUCT(...) GM_CUDA_PRODUCT_ROW(__VA_ARGS__)
#include "kernels/matmul/products_cuda.def"
#undef GM_CUDA_PRODUCT
};

static const gm_product *none_product(gm_device *device, int index)
{
    (void)device;
    return index < (int)(sizeof products / sizeof products[0]) ? &products[index] : NULL;
}

#define RUN_NONE(name)
#define RUN_CUDA(name)                                                    \
    static int none_##name(gm_queue *queue, const gm_##name##_call *call) \
    {                                                                     \
        (void)queue;                                                      \
        (void)call;                                                       \
        return fail_none();                                               \
    }
#define GM_DEVICE_OP(name, cpu, cuda) RUN_##cuda(name)
#include "base/device_ops.def"
#undef GM_DEVICE_OP

#define ENTRY_NONE(name)
#define ENTRY_CUDA(name) .name = none_##name,

/* Other entries need an open device. */
const gm_device_ops gm_device_cuda = {
    .kind = "cuda",
    .count = none_count,
    .absence = none_absence,
    .open = none_open,
    .product = none_product,
#define GM_DEVICE_OP(name, cpu, cuda) ENTRY_##cuda(name)
#include "base/device_ops.def"
#undef GM_DEVICE_OP
};
