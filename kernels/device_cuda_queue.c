/* Queues and events of a CUDA device, which are streams and events of CUDA; copies. */
#include <stdlib.h>
#include <time.h>

#include "kernels/device_cuda.h"

/* Between two questions after an event. */
static const struct timespec nap = {0, 5000};

int gm_cuda_queue_open(gm_device *device, gm_queue **out)
{
    *out = NULL;
    gm_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return gm_fail(GM_EDEVICE, "no memory for a queue");
    queue->device = device;
    int status = gm_cuda_check(device, cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking),
                               "opening a stream");
    if (status != GM_OK) {
        free(queue);
        return status;
    }
    *out = queue;
    return GM_OK;
}

void gm_cuda_queue_close(gm_queue *queue)
{
    if (queue != NULL) {
        cudaStreamDestroy(queue->stream);
        cudaFreeHost(queue->gate);
        free(queue);
    }
}

int gm_cuda_queue_sync(gm_queue *queue)
{
    return gm_cuda_check(queue->device, cudaStreamSynchronize(queue->stream), "work in a stream");
}

void *gm_cuda_queue_stream(gm_queue *queue)
{
    return queue->stream;
}

int gm_cuda_event_open(gm_device *device, int is_timed, gm_event **out)
{
    *out = NULL;
    gm_event *event = malloc(sizeof *event);
    if (event == NULL)
        return gm_fail(GM_EDEVICE, "no memory for an event");
    event->device = device;
    unsigned flags = is_timed ? cudaEventDefault : cudaEventDisableTiming;
    int status = gm_cuda_check(device, cudaEventCreateWithFlags(&event->event, flags), "making an event");
    if (status != GM_OK) {
        free(event);
        return status;
    }
    *out = event;
    return GM_OK;
}

void gm_cuda_event_close(gm_event *event)
{
    if (event != NULL) {
        cudaEventDestroy(event->event);
        free(event);
    }
}

int gm_cuda_event_record(gm_event *event, gm_queue *queue)
{
    return gm_cuda_check(event->device, cudaEventRecord(event->event, queue->stream), "recording an event");
}

int gm_cuda_event_wait(gm_queue *queue, gm_event *event)
{
    return gm_cuda_check(queue->device, cudaStreamWaitEvent(queue->stream, event->event, 0),
                         "waiting for an event in a stream");
}

int gm_cuda_event_done(gm_event *event, int *done)
{
    cudaError_t error = cudaEventQuery(event->event);
    *done = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return GM_OK;
    }
    return gm_cuda_check(event->device, error, "work before an event");
}

/* The thread leaves the processor to those that read and write. cudaEventBlockingSync would do that as well, but
 * interrupts the processor whenever such an event is done. */
int gm_cuda_event_sync(gm_event *event)
{
    int done, status = gm_cuda_event_done(event, &done);
    while (!status && !done) {
        nanosleep(&nap, NULL);
        status = gm_cuda_event_done(event, &done);
    }
    return status;
}

int gm_cuda_event_seconds(gm_event *from, gm_event *to, double *seconds)
{
    float milliseconds = 0;
    int status = gm_cuda_check(from->device, cudaEventElapsedTime(&milliseconds, from->event, to->event),
                               "timing two events");
    *seconds = 1e-3 * (double)milliseconds;
    return status;
}

static int copy(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                int64_t rows, enum cudaMemcpyKind kind)
{
    const char *what = kind == cudaMemcpyHostToDevice   ? "copying to the GPU"
                       : kind == cudaMemcpyDeviceToHost ? "copying from the GPU"
                                                        : "copying on the GPU";
    if (width == 0 || rows == 0)
        return GM_OK;
    if (rows == 1 || (dst_pitch == width && src_pitch == width))
        return gm_cuda_check(queue->device, cudaMemcpyAsync(dst, src, width * (size_t)rows, kind, queue->stream), what);
    if (dst_pitch <= queue->device->pitch_max && src_pitch <= queue->device->pitch_max)
        return gm_cuda_check(
            queue->device, cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, (size_t)rows, kind, queue->stream),
            what);
    /* Rows further apart than the largest pitch of CUDA (2 GiB), so there are few. */
    int status = GM_OK;
    for (size_t i = 0; i < (size_t)rows && status == GM_OK; i++) {
        const char *from = (const char *)src + i * src_pitch;
        status = gm_cuda_check(queue->device,
                               cudaMemcpyAsync((char *)dst + i * dst_pitch, from, width, kind, queue->stream), what);
    }
    return status;
}

int gm_cuda_copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                    int64_t rows)
{
    return copy(queue, dst, dst_pitch, src, src_pitch, width, rows, cudaMemcpyHostToDevice);
}

int gm_cuda_copy_out(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                     int64_t rows)
{
    return copy(queue, dst, dst_pitch, src, src_pitch, width, rows, cudaMemcpyDeviceToHost);
}

int gm_cuda_copy_within(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                        int64_t rows)
{
    return copy(queue, dst, dst_pitch, src, src_pitch, width, rows, cudaMemcpyDeviceToDevice);
}

int gm_cuda_zero(gm_queue *queue, void *dst, size_t bytes)
{
    return gm_cuda_check(queue->device, cudaMemsetAsync(dst, 0, bytes, queue->stream), "clearing memory");
}
