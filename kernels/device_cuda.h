/* device_cuda.h - shared by the files of the CUDA device. */
#ifndef GM_KERNELS_DEVICE_CUDA_H
#define GM_KERNELS_DEVICE_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/bench/launch.h"
#include "kernels/ledger.h"

struct gm_device {
    int index;  /* CUDA's, in this process */
    int number; /* a person's */
    char name[256];
    cudaUUID_t uuid;
    size_t pitch_max; /* bytes, of a copy of rows */
    int has_hopper;   /* its own instructions, and code that uses them */
    gm_ledger memory, pinned;
    struct gm_cuda_pages *pages; /* host memory of pages_cuda.c */
    struct gm_cuda_rival *rival; /* NULL: not open */
};

struct gm_queue {
    gm_device *device;
    cudaStream_t stream;
    gm_cuda_gate *gate; /* pinned; NULL: never held */
    unsigned holds;     /* number of holds */
};

struct gm_event {
    gm_device *device;
    cudaEvent_t event;
};

/* GM_OK, or fails with a message that names the device, `what` and the error. */
int gm_cuda_check(const gm_device *device, cudaError_t error, const char *what);

/* device_cuda_info.c: entries of the table, as those of the two files below */
int gm_cuda_describe(gm_device *device, gm_device_info *info);

/* device_cuda_memory.c */
int gm_cuda_alloc(gm_device *device, size_t bytes, void **out);
void gm_cuda_free(gm_device *device, void *memory);
int gm_cuda_host_alloc_pageable(gm_device *device, size_t bytes, void **out);
int gm_cuda_host_alloc(gm_device *device, size_t bytes, void **out);
void gm_cuda_host_free(gm_device *device, void *memory);
void gm_cuda_host_register(gm_device *device, void *memory, size_t bytes);
void gm_cuda_host_unregister(gm_device *device, void *memory);

/* device_cuda_queue.c */
int gm_cuda_queue_open(gm_device *device, gm_queue **out);
void gm_cuda_queue_close(gm_queue *queue);
int gm_cuda_queue_sync(gm_queue *queue);
void *gm_cuda_queue_stream(gm_queue *queue);
int gm_cuda_event_open(gm_device *device, int is_timed, gm_event **out);
void gm_cuda_event_close(gm_event *event);
int gm_cuda_event_record(gm_event *event, gm_queue *queue);
int gm_cuda_event_wait(gm_queue *queue, gm_event *event);
int gm_cuda_event_done(gm_event *event, int *done);
int gm_cuda_event_sync(gm_event *event);
int gm_cuda_event_seconds(gm_event *from, gm_event *to, double *seconds);
int gm_cuda_copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                    int64_t rows);
int gm_cuda_copy_out(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                     int64_t rows);
int gm_cuda_copy_within(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                        int64_t rows);
int gm_cuda_zero(gm_queue *queue, void *dst, size_t bytes);

/* pages_cuda.c: host memory of huge pages, not pinned yet and not charged; NULL, without a message, where the system
 * has none or the memory is too small to gain from it. */
void *gm_cuda_pages_alloc(gm_device *device, size_t bytes);
/* Pins memory of gm_cuda_pages_alloc(), if the driver can; other memory, and pinned memory, stays as it is. */
void gm_cuda_pages_pin(gm_device *device, void *memory);
/* Frees it; returns whether it was such memory. */
int gm_cuda_pages_free(gm_device *device, void *memory);

extern const gm_measure_ops gm_cuda_measure;

/* exchange/share_cuda.c: entries of the table */
int gm_cuda_share(gm_device *device, const void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY]);
int gm_cuda_open_shared(gm_device *device, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY]);
void gm_cuda_close_shared(gm_device *device, void *memory);

/* bench/rival_cuda.c: cuBLAS, as entries of gm_measure_ops */
const char *gm_cuda_rival(gm_device *device, const char **absence);
const gm_rival_product *gm_cuda_rival_of(gm_precision precision);
int gm_cuda_rival_product(gm_queue *queue, const gm_gemm_call *call, int *refused);
void gm_cuda_rival_close(struct gm_cuda_rival *rival); /* takes NULL */

#endif
