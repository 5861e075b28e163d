/* CUDA devices. A process opens one of them, which then is the current device of the thread that opened it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "kernels/device_cuda.h"

int gm_cuda_check(const gm_device *device, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return GM_OK;
    cudaGetLastError(); /* the runtime keeps an error for the next who asks; this one has been told */
    return gm_fail(GM_EDEVICE, "GPU %d (%s): %s: %s", device->index, device->name, what, cudaGetErrorString(error));
}

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

static const char *cuda_absence(void)
{
    int count;
    cudaError_t error = count_devices(&count);
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
    device->memory.account = GM_DEVICE;
    device->pinned.account = GM_HOST;
    status = gm_cuda_check(device, cudaGetDeviceProperties(&properties, index), "asking for its properties");
    if (status != GM_OK)
        goto out;
    snprintf(device->name, sizeof device->name, "%s", properties.name);
    device->pitch_max = properties.memPitch;
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

/* Operations of one multiprocessor in one clock, a multiply-add being two; float64 on tensor cores where it has them. */
static const struct {
    int capability, fp32, fp64;
} units[] = {{80, 128, 128}, {86, 256, 4}, {87, 256, 4}, {89, 256, 4}, {90, 256, 256}, {100, 256, 128}, {120, 256, 4}};

static int find_numa_node(const char *pci)
{
    char path[96];
    int node = -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%d", &node) != 1)
            node = -1;
        fclose(file);
    }
    return node;
}

static void format_uuid(const cudaUUID_t *uuid, char text[48])
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5],
             b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* What the driver says of clocks and widths; a device that will not say leaves zeros. */
static void describe_speeds(const gm_device *device, gm_device_info *info)
{
    static const enum cudaDeviceAttr asked[] = {cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor,
                                                cudaDevAttrMultiProcessorCount,    cudaDevAttrClockRate,
                                                cudaDevAttrMemoryClockRate,        cudaDevAttrGlobalMemoryBusWidth,
                                                cudaDevAttrL2CacheSize};
    enum { ASKED = sizeof asked / sizeof asked[0] };
    int value[ASKED];
    for (int i = 0; i < ASKED; i++) {
        if (cudaDeviceGetAttribute(&value[i], asked[i], device->index) != cudaSuccess) {
            cudaGetLastError();
            value[i] = 0;
        }
    }
    info->capability = 10 * value[0] + value[1];
    info->multiprocessors = value[2];
    info->clock_hz = (int64_t)value[3] * 1000;
    info->memory_clock_hz = (int64_t)value[4] * 1000;
    info->memory_bus_bits = value[5];
    info->l2_bytes = value[6];
    info->memory_limit = 2.0 * (double)info->memory_clock_hz * info->memory_bus_bits / 8; /* two transfers a clock */
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].capability == info->capability) {
            info->fp32_limit = (double)info->clock_hz * info->multiprocessors * units[i].fp32;
            info->fp64_limit = (double)info->clock_hz * info->multiprocessors * units[i].fp64;
        }
    }
}

static int cuda_describe(gm_device *device, gm_device_info *info)
{
    struct cudaDeviceProp properties;
    size_t free_bytes, total_bytes;
    memset(info, 0, sizeof *info);
    int status = gm_cuda_check(device, cudaGetDeviceProperties(&properties, device->index), "asking for its properties");
    if (status != GM_OK)
        return status;
    status = gm_cuda_check(device, cudaMemGetInfo(&free_bytes, &total_bytes), "asking for its memory");
    if (status != GM_OK)
        return status;
    status = gm_cuda_check(device, cudaDeviceGetPCIBusId(info->pci, sizeof info->pci, device->index), "asking for its PCI address");
    if (status != GM_OK)
        return status;
    for (char *c = info->pci; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c); /* as the kernel writes it */
    }
    snprintf(info->kind, sizeof info->kind, "cuda");
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, device->name);
    format_uuid(&properties.uuid, info->uuid);
    info->memory_total = (int64_t)total_bytes;
    info->memory_free = (int64_t)free_bytes;
    info->numa_node = find_numa_node(info->pci);
    describe_speeds(device, info);
    return GM_OK;
}

static int fail_alloc(const gm_device *device, cudaError_t error, size_t bytes)
{
    char asked[GM_SIZE_TEXT], left[GM_SIZE_TEXT], whole[GM_SIZE_TEXT];
    size_t free_bytes, total_bytes;
    if (error != cudaErrorMemoryAllocation || cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        return gm_cuda_check(device, error, "allocating memory");
    cudaGetLastError();
    return gm_fail(GM_EDEVICE, "GPU %d (%s): out of memory: %s asked for, %s of %s free", device->index, device->name,
                   gm_size_format((int64_t)bytes, asked), gm_size_format((int64_t)free_bytes, left),
                   gm_size_format((int64_t)total_bytes, whole));
}

static int cuda_alloc(gm_device *device, size_t bytes, void **out)
{
    *out = NULL;
    int status = gm_ledger_charge(&device->memory, bytes);
    if (status != GM_OK)
        return status;
    size_t words = bytes / 16 + (bytes % 16 > 0); /* kernels read the last bytes with what else is in their word */
    cudaError_t error = cudaMalloc(out, 16 * (words > 0 ? words : 1));
    if (error != cudaSuccess) {
        gm_ledger_release(&device->memory, NULL);
        *out = NULL;
        return fail_alloc(device, error, bytes);
    }
    gm_ledger_place(&device->memory, *out);
    return GM_OK;
}

static void cuda_free(gm_device *device, void *memory)
{
    if (memory != NULL) {
        gm_ledger_release(&device->memory, memory);
        cudaFree(memory); /* what it reports is an error of earlier work, which the queues report */
    }
}

static int cuda_pin_later(gm_device *device, size_t bytes, void **out)
{
    char what[GM_SIZE_TEXT + 64], size[GM_SIZE_TEXT];
    *out = NULL;
    int status = gm_ledger_charge(&device->pinned, bytes);
    if (status != GM_OK)
        return status;
    *out = gm_cuda_pages_alloc(device, bytes);
    cudaError_t error = *out != NULL ? cudaSuccess : cudaHostAlloc(out, bytes > 0 ? bytes : 1, cudaHostAllocPortable);
    if (error != cudaSuccess) {
        gm_ledger_release(&device->pinned, NULL);
        *out = NULL;
        snprintf(what, sizeof what, "allocating %s of pinned host memory", gm_size_format((int64_t)bytes, size));
        return gm_cuda_check(device, error, what);
    }
    gm_ledger_place(&device->pinned, *out);
    return GM_OK;
}

static int cuda_pin(gm_device *device, size_t bytes, void **out)
{
    int status = cuda_pin_later(device, bytes, out);
    if (status == GM_OK)
        gm_cuda_pages_pin(device, *out);
    return status;
}

static void cuda_unpin(gm_device *device, void *memory)
{
    if (memory != NULL) {
        gm_ledger_release(&device->pinned, memory);
        if (!gm_cuda_pages_free(device, memory))
            cudaFreeHost(memory);
    }
}

static int cuda_queue_open(gm_device *device, gm_queue **out)
{
    *out = NULL;
    gm_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return gm_fail(GM_EDEVICE, "no memory for a queue");
    queue->device = device;
    int status = gm_cuda_check(device, cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking), "opening a stream");
    if (status != GM_OK) {
        free(queue);
        return status;
    }
    *out = queue;
    return GM_OK;
}

static void cuda_queue_close(gm_queue *queue)
{
    if (queue != NULL) {
        cudaStreamDestroy(queue->stream);
        cudaFreeHost(queue->gate);
        free(queue);
    }
}

static int cuda_queue_sync(gm_queue *queue)
{
    return gm_cuda_check(queue->device, cudaStreamSynchronize(queue->stream), "work in a stream");
}

/* Waiting for an event leaves the processor to the threads that read and write. */
static int cuda_event_open(gm_device *device, gm_event **out)
{
    *out = NULL;
    gm_event *event = malloc(sizeof *event);
    if (event == NULL)
        return gm_fail(GM_EDEVICE, "no memory for an event");
    event->device = device;
    int status = gm_cuda_check(device, cudaEventCreateWithFlags(&event->event, cudaEventBlockingSync), "making an event");
    if (status != GM_OK) {
        free(event);
        return status;
    }
    *out = event;
    return GM_OK;
}

static void cuda_event_close(gm_event *event)
{
    if (event != NULL) {
        cudaEventDestroy(event->event);
        free(event);
    }
}

static int cuda_event_record(gm_event *event, gm_queue *queue)
{
    return gm_cuda_check(event->device, cudaEventRecord(event->event, queue->stream), "recording an event");
}

static int cuda_event_wait(gm_queue *queue, gm_event *event)
{
    return gm_cuda_check(queue->device, cudaStreamWaitEvent(queue->stream, event->event, 0), "waiting for an event in a stream");
}

static int cuda_event_done(gm_event *event, int *done)
{
    cudaError_t error = cudaEventQuery(event->event);
    *done = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return GM_OK;
    }
    return gm_cuda_check(event->device, error, "work before an event");
}

static int cuda_event_seconds(gm_event *from, gm_event *to, double *seconds)
{
    float milliseconds = 0;
    int status = gm_cuda_check(from->device, cudaEventElapsedTime(&milliseconds, from->event, to->event), "timing two events");
    *seconds = 1e-3 * (double)milliseconds;
    return status;
}

static int copy(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, int64_t rows,
                enum cudaMemcpyKind kind)
{
    const char *what = kind == cudaMemcpyHostToDevice ? "copying to the GPU" : "copying from the GPU";
    if (width == 0 || rows == 0)
        return GM_OK;
    if (rows == 1 || (dst_pitch == width && src_pitch == width))
        return gm_cuda_check(queue->device, cudaMemcpyAsync(dst, src, width * (size_t)rows, kind, queue->stream), what);
    if (dst_pitch <= queue->device->pitch_max && src_pitch <= queue->device->pitch_max)
        return gm_cuda_check(queue->device, cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, (size_t)rows, kind, queue->stream), what);
    /* Rows further apart than CUDA takes (2 GiB): there cannot be many. */
    int status = GM_OK;
    for (size_t i = 0; i < (size_t)rows && status == GM_OK; i++) {
        const char *from = (const char *)src + i * src_pitch;
        status = gm_cuda_check(queue->device, cudaMemcpyAsync((char *)dst + i * dst_pitch, from, width, kind, queue->stream), what);
    }
    return status;
}

static int cuda_copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, int64_t rows)
{
    return copy(queue, dst, dst_pitch, src, src_pitch, width, rows, cudaMemcpyHostToDevice);
}

static int cuda_copy_out(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, int64_t rows)
{
    return copy(queue, dst, dst_pitch, src, src_pitch, width, rows, cudaMemcpyDeviceToHost);
}

static int cuda_zero(gm_queue *queue, void *dst, size_t bytes)
{
    return gm_cuda_check(queue->device, cudaMemsetAsync(dst, 0, bytes, queue->stream), "clearing memory");
}

/* The launchers as functions of the table. */
#define LAUNCHER(name, type, what) \
    static int run_##name(gm_queue *queue, const type *call) \
    { \
        return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_##name(queue->stream, call), what); \
    }
LAUNCHER(matmul_fp64, gm_product_call, "product (kernel dmma-fp64)")
LAUNCHER(matmul_fp32, gm_product_call, "product (kernel simt-fp32)")
LAUNCHER(matmul_exact, gm_product_call, "product (kernel dmma-exact)")
LAUNCHER(unpack, gm_unpack_call, "kernel unpack")
LAUNCHER(fold, gm_fold_call, "kernel fold")
LAUNCHER(finish, gm_finish_call, "kernel finish")
LAUNCHER(probe, gm_probe_call, "kernel probe")
LAUNCHER(reduce_rows, gm_rows_call, "kernel reduce (rows)")
LAUNCHER(reduce_columns, gm_columns_call, "kernel reduce (columns)")
LAUNCHER(normalize, gm_normalize_call, "kernel normalize")
LAUNCHER(histogram, gm_histogram_call, "kernel histogram")

enum { TILE = 256 }; /* a multiple of the tiles of all product kernels */

static const gm_product products[GM_PRECISIONS] = {
    [GM_FP64] = {GM_F64, GM_F64, TILE, 0, "mma", "dmma-fp64", run_matmul_fp64},
    [GM_FP32] = {GM_F32, GM_F32, TILE, 0, "simt", "simt-fp32", run_matmul_fp32},
    [GM_EXACT] = {GM_F32, GM_F64, TILE, 0, "mma", "dmma-exact", run_matmul_exact},
};

static const gm_product *cuda_product(gm_device *device, gm_precision precision)
{
    (void)device;
    return products[precision].run != NULL ? &products[precision] : NULL;
}

const gm_device_ops gm_device_cuda = {
    .kind = "cuda",
    .unified = 0,
    .count = cuda_count,
    .absence = cuda_absence,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .pin = cuda_pin,
    .pin_later = cuda_pin_later,
    .settle = gm_cuda_pages_pin,
    .unpin = cuda_unpin,
    .queue_open = cuda_queue_open,
    .queue_close = cuda_queue_close,
    .queue_sync = cuda_queue_sync,
    .event_open = cuda_event_open,
    .event_close = cuda_event_close,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_done = cuda_event_done,
    .event_seconds = cuda_event_seconds,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .zero = cuda_zero,
    .product = cuda_product,
    .unpack = run_unpack,
    .fold = run_fold,
    .finish = run_finish,
    .probe = run_probe,
    .reduce_rows = run_reduce_rows,
    .reduce_columns = run_reduce_columns,
    .normalize = run_normalize,
    .histogram = run_histogram,
    .measure = &gm_cuda_measure,
};
