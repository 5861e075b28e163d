/* The processor as a device: device memory is host memory, and a queue does its work at once. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/size.h"
#include "base/text/escape.h"
#include "base/thread.h"
#include "kernels/blas/blas.h"
#include "kernels/device_cpu.h"
#include "kernels/matmul/calls.h"

struct gm_event {
    double time;
};

static int cpu_count(int *count)
{
    *count = 1;
    return GM_OK;
}

static const char *cpu_absence(void)
{
    return NULL;
}

static void cpu_close(gm_device *device)
{
    if (device != NULL) {
        free(device);
    }
}

static void *pass(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* The bytes of a size as OpenMP takes it, in KiB without a unit; 0: it takes none of it. */
static size_t openmp_size(const char *text)
{
    static const char units[] = "BKMG", blanks[] = " \t";
    char *rest;
    errno = 0;
    unsigned long long number = strtoull(text, &rest, 10);
    rest += strspn(rest, blanks);
    const char *unit = *rest ? strchr(units, toupper((unsigned char)*rest++)) : units + 1;
    int shift = unit ? 10 * (int)(unit - units) : 0;
    int is_size = unit && !errno && rest[strspn(rest, blanks)] == '\0' && number <= SIZE_MAX >> shift;
    return is_size ? (size_t)number << shift : 0;
}

/* The variable that sets the size of the stacks of OpenMP's threads; NULL: none does. */
static const char *openmp_stacks(size_t *bytes)
{
    static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        *bytes = text ? openmp_size(text) : 0;
        if (*bytes >= (size_t)PTHREAD_STACK_MIN)
            return names[i];
    }
    return NULL;
}

/* Can so many threads be started? OpenMP ends the program where it cannot start one. */
static int try_threads(int threads)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *thread = calloc((size_t)threads, sizeof *thread);
    pthread_attr_t attributes;
    size_t stack;
    const char *variable = openmp_stacks(&stack);
    int started = 0, error = thread == NULL ? ENOMEM : 0;
    pthread_attr_init(&attributes);
    if (variable)
        pthread_attr_setstacksize(&attributes, stack);
    pthread_mutex_lock(&gate);
    while (started < threads && !error) {
        error = gm_thread_start_with(&attributes, &thread[started], pass, &gate);
        started += !error;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_attr_destroy(&attributes);
    free(thread);
    if (error && variable)
        return gm_fail(GM_EDEVICE, "cannot start %d more threads with stacks of %s=%s: %s", threads, variable,
                       getenv(variable), strerror(error));
    return error ? gm_fail(GM_EDEVICE, "cannot start %d more threads: %s", threads, strerror(error)) : GM_OK;
}

static int cpu_open(int index, int threads, gm_device **out)
{
    *out = NULL;
    if (index != 0)
        return gm_fail(GM_EDEVICE, "CPU %d: the processor is one device, number 0", index);
    int status = threads > 1 ? try_threads(threads - 1) : GM_OK;
    if (status)
        return status;
    gm_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return gm_fail(GM_EDEVICE, "no memory for a device");
    device->threads = threads > 0 ? threads : 1;
    device->memory.account = GM_DEVICE;
    gm_blas_threads(1);
    *out = device;
    return GM_OK;
}

/* Text after the colon of the first line of a file of /proc that begins with key; empty when there is none. */
static void proc_find(const char *path, const char *key, char *text, size_t size)
{
    char line[512];
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon != NULL && strncmp(line, key, strlen(key)) == 0) {
            line[strcspn(line, "\n")] = '\0';
            gm_escape_line(colon + 1 + strspn(colon + 1, " \t"), text, size);
            break;
        }
    }
    fclose(file);
}

static int cpu_attach(gm_device *device)
{
    (void)device;
    return GM_OK;
}

static int cpu_describe(gm_device *device, gm_device_info *info)
{
    char available[64];
    (void)device;
    memset(info, 0, sizeof *info);
    snprintf(info->kind, sizeof info->kind, "cpu");
    proc_find("/proc/cpuinfo", "model name", info->name, sizeof info->name);
    if (info->name[0] == '\0')
        snprintf(info->name, sizeof info->name, "processor");
    proc_find("/proc/meminfo", "MemAvailable", available, sizeof available);
    info->memory_free = gm_mul_sat(strtoll(available, NULL, 10), 1024);
    info->memory_total = gm_mul_sat(gm_max(sysconf(_SC_PHYS_PAGES), 0), gm_max(sysconf(_SC_PAGESIZE), 0));
    info->index = info->numa_node = -1;
    info->multiprocessors = (int)gm_max(sysconf(_SC_NPROCESSORS_ONLN), 0);
#ifdef _SC_LEVEL2_CACHE_SIZE
    info->l2_bytes = gm_max(sysconf(_SC_LEVEL2_CACHE_SIZE), 0);
#endif
    return GM_OK;
}

static int cpu_alloc(gm_device *device, size_t bytes, void **out)
{
    *out = NULL;
    int status = gm_ledger_charge(&device->memory, bytes);
    if (status != GM_OK)
        return status;
    status = gm_host_alloc(bytes, out);
    if (status != GM_OK) {
        gm_ledger_release(&device->memory, NULL);
        return status;
    }
    gm_ledger_place(&device->memory, *out);
    return GM_OK;
}

static void cpu_free(gm_device *device, void *memory)
{
    if (memory != NULL) {
        gm_ledger_release(&device->memory, memory);
        gm_host_free(memory);
    }
}

static int cpu_host_alloc(gm_device *device, size_t bytes, void **out)
{
    (void)device;
    return gm_host_alloc(bytes, out);
}

static void cpu_host_none(gm_device *device, void *memory)
{
    (void)device;
    (void)memory;
}

static void cpu_host_free(gm_device *device, void *memory)
{
    (void)device;
    gm_host_free(memory);
}

static void cpu_host_register(gm_device *device, void *memory, size_t bytes)
{
    (void)device;
    (void)memory;
    (void)bytes;
}

static int cpu_queue_open(gm_device *device, gm_queue **queue)
{
    *queue = malloc(sizeof **queue);
    if (*queue == NULL)
        return gm_fail(GM_EDEVICE, "no memory for a queue");
    (*queue)->device = device;
    return GM_OK;
}

static void cpu_queue_close(gm_queue *queue)
{
    free(queue);
}

static int cpu_queue_sync(gm_queue *queue)
{
    (void)queue;
    return GM_OK;
}

static int cpu_event_open(gm_device *device, int is_timed, gm_event **event)
{
    (void)device;
    (void)is_timed;
    *event = calloc(1, sizeof **event);
    return *event != NULL ? GM_OK : gm_fail(GM_EDEVICE, "no memory for an event");
}

static void cpu_event_close(gm_event *event)
{
    free(event);
}

static int cpu_event_record(gm_event *event, gm_queue *queue)
{
    (void)queue;
    event->time = gm_clock();
    return GM_OK;
}

static int cpu_event_wait(gm_queue *queue, gm_event *event)
{
    (void)queue;
    (void)event;
    return GM_OK;
}

static int cpu_event_done(gm_event *event, int *done)
{
    (void)event;
    *done = 1;
    return GM_OK;
}

static int cpu_event_sync(gm_event *event)
{
    (void)event;
    return GM_OK;
}

static int cpu_event_seconds(gm_event *from, gm_event *to, double *seconds)
{
    *seconds = to->time - from->time;
    return GM_OK;
}

static int cpu_copy(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                    int64_t rows)
{
    (void)queue;
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)dst + (size_t)i * dst_pitch, (const char *)src + (size_t)i * src_pitch, width);
    return GM_OK;
}

static int cpu_zero(gm_queue *queue, void *dst, size_t bytes)
{
    (void)queue;
    memset(dst, 0, bytes);
    return GM_OK;
}

#define RUN(name)                                                       \
    static int run_##name(gm_queue *queue, const gm_product_call *call) \
    {                                                                   \
        return gm_cpu_matmul_##name(queue->device->threads, call);      \
    }
RUN(fp32)
RUN(fp64)
RUN(tf32)
RUN(fp16)
RUN(bf16)
RUN(int8)

/* exact: float32 data widened to float64 panels make the float64 product. tf32, fp16, bf16: 256 terms are one sum. */
#define PRODUCT(id, type, result, title, tiles, name, ...)                                                             \
    {                                                                                                                  \
        .precision = GM_PRECISION_##id, .family = GM_KERNEL_BLAS, .operand = GM_DTYPE_##type,                          \
        .accumulator = GM_DTYPE_##result, .tile = GM_CPU_TILE, .kernel = GM_BLAS title, .wants_tiles = GM_CPU_##tiles, \
        .run = run_##name, .batches = 1, __VA_ARGS__                                                                   \
    }
static const gm_product products[] = {
    PRODUCT(FP64, F64, F64, "-dgemm", TILES, fp64, .leaf.least = 2048, .error = {.addition = 0x1p-53}),
    PRODUCT(FP32, F32, F32, "-sgemm", TILES, fp32, .leaf.least = 128, .error = {.addition = 0x1p-24}),
    PRODUCT(EXACT, F64, F64, "-dgemm", TILES, fp64, .rounds = 1, .leaf.least = 2048, .error = {.addition = 0x1p-53}),
    PRODUCT(TF32, F32, F32, "-sgemm", TILES_COPIES, tf32, .leaf.least = 2048, .error = {0x1p-11, 0x1p-24, 256},
            .smallest = 0x1p-136),
    PRODUCT(FP16, F32, F32, "-sgemm", TILES_COPIES, fp16, .leaf.least = 2048, .error = {0x1p-11, 0x1p-24, 256},
            .largest = 65504, .smallest = 0x1p-24),
    PRODUCT(BF16, F32, F32, "-sgemm", TILES_COPIES, bf16, .leaf.least = 2048, .error = {0x1p-8, 0x1p-24, 256},
            .largest = 3.38e38, .smallest = 0x1p-133),
    PRODUCT(INT8, I8, I32, "-sgemm", TILES_COPIES, int8, .leaf.least = 8192)};

static const gm_product *cpu_product(gm_device *device, int index)
{
    (void)device;
    return index < (int)(sizeof products / sizeof products[0]) ? &products[index] : NULL;
}

/* The operations as entries of the table. */
#define RUN_NONE(name)
#define RUN_CPU(name)                                                    \
    static int run_##name(gm_queue *queue, const gm_##name##_call *call) \
    {                                                                    \
        return gm_cpu_##name(queue->device->threads, call);              \
    }
#define GM_DEVICE_OP(name, cpu, cuda) RUN_##cpu(name)
#include "base/device_ops.def"
#undef GM_DEVICE_OP

#define ENTRY_NONE(name)
#define ENTRY_CPU(name) .name = run_##name,

const gm_device_ops gm_device_cpu = {
    .kind = "cpu",
    .unified = 1,
    .count = cpu_count,
    .absence = cpu_absence,
    .open = cpu_open,
    .close = cpu_close,
    .attach = cpu_attach,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .host_alloc = cpu_host_alloc,
    .host_alloc_pageable = cpu_host_alloc,
    .host_pin = cpu_host_none,
    .host_free = cpu_host_free,
    .host_register = cpu_host_register,
    .host_unregister = cpu_host_none,
    .queue_open = cpu_queue_open,
    .queue_close = cpu_queue_close,
    .queue_sync = cpu_queue_sync,
    .event_open = cpu_event_open,
    .event_close = cpu_event_close,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_done = cpu_event_done,
    .event_sync = cpu_event_sync,
    .event_seconds = cpu_event_seconds,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy_within = cpu_copy,
    .zero = cpu_zero,
    .product = cpu_product,
#define GM_DEVICE_OP(name, cpu, cuda) ENTRY_##cpu(name)
#include "base/device_ops.def"
#undef GM_DEVICE_OP
    .measure = &gm_cpu_measure,
};
