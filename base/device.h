/* device.h - the table of device functions: what a kind of device must be able to do. Nothing here is of any device.
 *
 * A kind of device (the CPU, CUDA) fills one gm_device_ops. Memory that a table hands out is the device's own and is
 * named "device memory" below; "host memory" is what the processor addresses. Work is put into queues: in order within
 * one queue, and free to overlap between queues, unless an event says otherwise. A queue of the CPU does the work at
 * once.
 *
 * All functions return a gm_status and record a message when they fail. No function is collective. One thread at a
 * time may use a device; but any thread that has called attach() may copy on a queue of its own, record, wait for and
 * time events there, and open shared memory.
 *
 * The operations of the table are listed in base/device_ops.def, one line each. Their calls are declared where they are
 * implemented, in kernels/<room>/calls.h. An entry that is NULL is not supported by this kind of device: the caller
 * asks before it uses one, and says so. */
#ifndef GM_BASE_DEVICE_H
#define GM_BASE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/types/precision.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gm_device gm_device; /* one open device */
typedef struct gm_queue gm_queue;   /* an ordered queue of work on a device */
typedef struct gm_event gm_event;   /* a mark in a queue */

struct gm_product;     /* kernels/matmul/calls.h */
struct gm_measure_ops; /* kernels/bench/measure.h */
#define GM_DEVICE_OP(name, cpu, cuda) typedef struct gm_##name##_call gm_##name##_call;
#include "base/device_ops.def"
#undef GM_DEVICE_OP

typedef struct gm_device_info {
    char kind[8];                      /* "cpu", "cuda" */
    char name[96];                     /* as the vendor calls it */
    char uuid[48];                     /* "GPU-...", the same in every process; empty for the CPU */
    char pci[24];                      /* "0000:1b:00.0"; empty for the CPU */
    int64_t memory_total, memory_free; /* bytes */
    int index;                         /* as in messages and in nvidia-smi; -1: unknown, or there is only one */
    int numa_node;                     /* of the host memory nearest to it; -1: unknown */
    char driver[32], runtime[16];      /* versions: of its driver, and of the library that drives it; "": unknown */
    int capability;                    /* CUDA: 10 * major + minor */
    int multiprocessors;
    int64_t clock_hz, memory_clock_hz; /* 0: unknown */
    int memory_bus_bits;
    int64_t l2_bytes;
    double memory_limit;           /* bytes/s computed from clock and width; 0: unknown */
    double host_limit;             /* bytes/s from or to the host computed from the bus; 0: unknown */
    double fp32_limit, fp64_limit; /* flop/s computed from clocks and units; 0: unknown */
} gm_device_info;

/* Where device memory lies, for other processes of the same host: the name of an allocation, its number from 1,
 * which no other one of that process has ever, and bytes from its begin; and why one cannot have it. */
enum { GM_SHARED_NAME = 64, GM_SHARED_WHY = 96 };
typedef struct gm_shared_memory {
    char name[GM_SHARED_NAME];
    int64_t number, offset;
} gm_shared_memory;

/* In place of a rank's number on its host: it is not known; all devices are wanted. */
enum { GM_LOCAL_UNKNOWN = -1, GM_LOCAL_ALL = -2 };

typedef struct gm_device_ops {
    const char *kind; /* "cpu", "cuda" */
    int unified;      /* device memory is host memory: the program may pass host pointers and skip copies */

    /* Of a kind of device that takes long to start; NULL for others. Opening a device later finds the same failures,
     * without these calls as well.
     *
     * set_environment: sets the variables that the driver reads. Of the devices of this host only that of the rank of
     * this number on it, local_rank modulo their count, comes in this process's sight, if it is certain which one that
     * is; with GM_LOCAL_... all stay. Variables that make a start shorter are set unless the user has set them. Before
     * any other entry is called, on the only thread of the process.
     *
     * start: does beforehand what takes long in count and in open of that device (GM_LOCAL_ALL: of each device in
     * sight; GM_LOCAL_UNKNOWN: of the only one). On any thread, but beside no call of another entry. */
    void (*set_environment)(int local_rank);
    void (*start)(int local_rank);

    /* Number of devices of this kind in this process's sight; 0 without driver or device (no error, no message). */
    int (*count)(int *count);
    /* Why count is 0, or NULL: for the message when somebody asked for this kind. */
    const char *(*absence)(void);
    /* Opens device index for this process; threads: processor threads it may use. The caller closes it. */
    int (*open)(int index, int threads, gm_device **device);
    void (*close)(gm_device *device);
    /* Makes the device that of the calling thread, as it is of the thread that opened it. */
    int (*attach)(gm_device *device);
    int (*describe)(gm_device *device, gm_device_info *info);

    /* Device memory, charged to GM_DEVICE (the CPU's to GM_HOST too), aligned to 256 bytes, not cleared; free takes
     * NULL. */
    int (*alloc)(gm_device *device, size_t bytes, void **out);
    void (*free)(gm_device *device, void *memory);
    /* Pinned host memory, for asynchronous copies, charged to GM_HOST; host_free takes NULL. */
    int (*host_alloc)(gm_device *device, size_t bytes, void **out);
    /* The same, but pageable until host_pin, which must come before the first copy and may be called on any thread.
     * The thread that fills the memory first has the system clear its pages, which takes longer than pinning them.
     * Memory that cannot be pinned stays pageable: copies to and from it are slower, no error is reported. */
    int (*host_alloc_pageable)(gm_device *device, size_t bytes, void **out);
    void (*host_pin)(gm_device *device, void *memory);
    void (*host_free)(gm_device *device, void *memory);
    /* Pins memory that other processes address too, and unpins it, of any thread; not charged. Memory that cannot be
     * pinned stays pageable, likewise. */
    void (*host_register)(gm_device *device, void *memory, size_t bytes);
    void (*host_unregister)(gm_device *device, void *memory);

    /* Device memory of another process of this host, whose device need not be in this one's sight. share: says where
     * memory of alloc() lies. open_shared: *memory is the begin of the allocation that another process has named, as
     * queues of this device address it, until close_shared (which takes NULL); its owner frees it later. Where devices
     * cannot share it both succeed with a `why` that is not empty, and *memory is NULL. All three or none. */
    int (*share)(gm_device *device, const void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY]);
    int (*open_shared)(gm_device *device, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY]);
    void (*close_shared)(gm_device *device, void *memory);

    int (*queue_open)(gm_device *device, gm_queue **queue);
    void (*queue_close)(gm_queue *queue);
    int (*queue_sync)(gm_queue *queue); /* waits until the queue is empty; errors of the work in it surface here */

    /* is_timed: event_seconds() may be asked about it. The copies before such an event take longer: a GPU's copy engine
     * ends one before it begins the next. */
    int (*event_open)(gm_device *device, int is_timed, gm_event **event);
    void (*event_close)(gm_event *event);
    int (*event_record)(gm_event *event, gm_queue *queue);
    int (*event_wait)(gm_queue *queue, gm_event *event); /* later work of queue starts after event; the host goes on */
    int (*event_done)(gm_event *event, int *done);       /* asks, does not wait; an event never recorded is done */
    int (*event_sync)(gm_event *event); /* waits until it is done; errors of the work before surface here */
    /* Seconds from one event to another, both timed and done. */
    int (*event_seconds)(gm_event *from, gm_event *to, double *seconds);

    /* rows x width bytes from host to device, or back; the host side should be pinned and must stay until the copy is
     * done. */
    int (*copy_in)(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                   int64_t rows);
    int (*copy_out)(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                    int64_t rows);
    /* The same between two places in device memory, which do not overlap. */
    int (*copy_within)(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                       int64_t rows);
    int (*zero)(gm_queue *queue, void *dst, size_t bytes);

    /* The queue as libraries that put work into it themselves know it, a cudaStream_t (kernels/exchange/nccl.h); NULL:
     * there is no such library. */
    void *(*stream)(gm_queue *queue);

    /* Number `index` of the products that the device supports, of each precision the fastest first; NULL: there are no
     * more. gm_product_find() chooses. */
    const struct gm_product *(*product)(gm_device *device, int index);

    /* The operations: each puts its work into the queue; pointers in a call are to device memory, or as it says. */
#define GM_DEVICE_OP(name, cpu, cuda) int (*name)(gm_queue * queue, const gm_##name##_call *call);
#include "base/device_ops.def"
#undef GM_DEVICE_OP

    const struct gm_measure_ops *measure; /* only for benchmarks; NULL: not supported */
} gm_device_ops;

#ifdef __cplusplus
}
#endif
#endif
