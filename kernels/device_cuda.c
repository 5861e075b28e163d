/* CUDA devices. A process opens one of them, which then is the current device of the thread that opened it. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device_cuda.h"
#include "kernels/matmul/products_cuda.h"
#include "kernels/sight.h"

static const char variable[] = "CUDA_VISIBLE_DEVICES";
static gm_sight_entry only;    /* the entry that narrow() has set; empty: none */
static int only_position = -1; /* its place in the list before */

static cudaError_t count_devices(int *count)
{
    cudaError_t error = cudaGetDeviceCount(count);
    if (error != cudaSuccess) {
        cudaGetLastError();
        *count = 0;
    }
    return error;
}

static int cuda_count(int *count)
{
    count_devices(count);
    return GM_OK;
}

/* Of a list that a user or a batch system has set one entry; without a list a number, but not in a job: CUDA's numbers
 * begin at 0 in what the batch system has given to it. */
static void narrow(int local_rank)
{
    const char *visible = getenv(variable);
    if (visible == NULL && gm_sight_is_job())
        return;
    if (gm_sight_choose(visible, gm_sight_count(""), local_rank, only, &only_position))
        setenv(variable, only, 1);
    else
        only[0] = '\0';
}

/* The driver makes as many queues of the hardware for a process as this says, 8 if it is not set, and most of the time
 * of a start is theirs, and of an end. Copies in both directions and kernels overlap with two. */
static void cuda_set_environment(int local_rank)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 0);
    if (local_rank >= 0)
        narrow(local_rank);
}

/* cudaFree() makes the context; the check of the code loads what all kernels need. */
static void start_device(int index)
{
    if (cudaSetDevice(index) != cudaSuccess || cudaFree(NULL) != cudaSuccess || gm_cuda_code_check() != 0)
        cudaGetLastError();
}

static void cuda_start(int local_rank)
{
    int count;
    count_devices(&count);
    for (int i = 0; i < count; i++)
        if (local_rank == GM_LOCAL_ALL || count == 1 || (local_rank >= 0 && i == local_rank % count))
            start_device(i);
}

/* As in nvidia-smi, if that is known. */
static int number_of(int index)
{
    int is_uuid = only[0] == 'G';
    return is_uuid ? only_position : gm_sight_number(getenv(variable), index);
}

static const char *cuda_absence(void)
{
    static char narrowed[GM_SIGHT_MAX + 128];
    int count, version = 0;
    cudaError_t error = count_devices(&count);
    /* Without a driver the runtime says that its version is insufficient; the version is then 0. */
    if (error == cudaErrorInsufficientDriver && (cudaDriverGetVersion(&version) != cudaSuccess || version == 0))
        return "no NVIDIA driver is installed";
    if (error != cudaSuccess && only[0] != '\0') {
        snprintf(narrowed, sizeof narrowed, "%s; this rank has GPU %s alone in sight (%s)", cudaGetErrorString(error),
                 only, variable);
        return narrowed;
    }
    if (error != cudaSuccess)
        return cudaGetErrorString(error);
    return count > 0 ? NULL : "no CUDA device is visible";
}

static void cuda_close(gm_device *device)
{
    if (device != NULL) {
        gm_cuda_rival_close(device->rival);
        free(device);
    }
}

/* The current device is per thread. */
static int cuda_attach(gm_device *device)
{
    return gm_cuda_check(device, cudaSetDevice(device->index), "making it the device of a thread");
}

static int cuda_open(int index, int threads, gm_device **out)
{
    int status = GM_OK;
    struct cudaDeviceProp properties;
    (void)threads;
    *out = NULL;
    gm_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return gm_fail(GM_EDEVICE, "no memory for a device");
    device->index = index;
    device->number = number_of(index);
    device->memory.account = GM_DEVICE;
    device->pinned.account = GM_HOST;
    status = gm_cuda_check(device, cudaGetDeviceProperties(&properties, index), "reading its properties");
    if (status != GM_OK)
        goto out;
    snprintf(device->name, sizeof device->name, "%s", properties.name);
    device->pitch_max = properties.memPitch;
    device->uuid = properties.uuid;
    device->has_hopper = properties.major == 9 && properties.minor == 0 && gm_cuda_hopper_is_built();
    status = gm_cuda_check(device, cudaSetDevice(index), "opening");
    if (status != GM_OK)
        goto out;
    status = gm_cuda_check(device, (cudaError_t)gm_cuda_code_check(), "this program holds no code for it");
    if (status != GM_OK)
        goto out;
    *out = device;
    device = NULL;
out:
    cuda_close(device);
    return status;
}

/* Launchers as functions of the table. */
#define LAUNCH(name, type, what)                                                                     \
    static int run_##name(gm_queue *queue, const type *call)                                         \
    {                                                                                                \
        return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_##name(queue->stream, call), what); \
    }
#define GM_CUDA_PRODUCT(precision, family, operand, accumulator, kernel, name, ...) \
    LAUNCH(name, gm_product_call, "product (kernel " kernel ")")
#include "kernels/matmul/products_cuda.def"
#undef GM_CUDA_PRODUCT

#define LAUNCH_NONE(name)
#define LAUNCH_CUDA(name) LAUNCH(name, gm_##name##_call, "kernel " #name)
#define GM_DEVICE_OP(name, cpu, cuda) LAUNCH_##cuda(name)
#include "base/device_ops.def"
#undef GM_DEVICE_OP

#define ENTRY_NONE(name)
#define ENTRY_CUDA(name) .name = run_##name,

#define RUN(name) run_##name
static const gm_product products[] = {
#define GM_CUDA_PRODUCT(...) GM_CUDA_PRODUCT_ROW(__VA_ARGS__)
#include "kernels/matmul/products_cuda.def"
#undef GM_CUDA_PRODUCT
};

static const gm_product *cuda_product(gm_device *device, int index)
{
    const gm_product *end = products + sizeof products / sizeof products[0], *at = products;
    for (; at < end; at++)
        if ((at->family != GM_KERNEL_HOPPER || !device || device->has_hopper) && index-- == 0)
            return at;
    return NULL;
}

const gm_device_ops gm_device_cuda = {
    .kind = "cuda",
    .unified = 0,
    .set_environment = cuda_set_environment,
    .start = cuda_start,
    .count = cuda_count,
    .absence = cuda_absence,
    .open = cuda_open,
    .close = cuda_close,
    .attach = cuda_attach,
    .describe = gm_cuda_describe,
    .alloc = gm_cuda_alloc,
    .free = gm_cuda_free,
    .host_alloc = gm_cuda_host_alloc,
    .host_alloc_pageable = gm_cuda_host_alloc_pageable,
    .host_pin = gm_cuda_pages_pin,
    .host_free = gm_cuda_host_free,
    .host_register = gm_cuda_host_register,
    .host_unregister = gm_cuda_host_unregister,
    .share = gm_cuda_share,
    .open_shared = gm_cuda_open_shared,
    .close_shared = gm_cuda_close_shared,
    .queue_open = gm_cuda_queue_open,
    .queue_close = gm_cuda_queue_close,
    .queue_sync = gm_cuda_queue_sync,
    .event_open = gm_cuda_event_open,
    .event_close = gm_cuda_event_close,
    .event_record = gm_cuda_event_record,
    .event_wait = gm_cuda_event_wait,
    .event_done = gm_cuda_event_done,
    .event_sync = gm_cuda_event_sync,
    .event_seconds = gm_cuda_event_seconds,
    .copy_in = gm_cuda_copy_in,
    .copy_out = gm_cuda_copy_out,
    .copy_within = gm_cuda_copy_within,
    .zero = gm_cuda_zero,
    .stream = gm_cuda_queue_stream,
    .product = cuda_product,
#define GM_DEVICE_OP(name, cpu, cuda) ENTRY_##cuda(name)
#include "base/device_ops.def"
#undef GM_DEVICE_OP
    .measure = &gm_cuda_measure,
};
