/* The table of a CUDA device for benchmarks. */
#include "kernels/device_cuda.h"
#include "kernels/lab/lab_ops.h"

static int cuda_hold(gm_queue *queue)
{
    if (queue->gate == NULL) {
        void *gate = NULL;
        int status = gm_cuda_check(queue->device, cudaHostAlloc(&gate, sizeof *queue->gate, cudaHostAllocMapped),
                                   "allocating pinned host memory");
        if (status != GM_OK)
            return status;
        queue->gate = gate;
        *queue->gate = (gm_cuda_gate){0};
    }
    return gm_cuda_check(queue->device,
                         (cudaError_t)gm_cuda_hold(queue->stream, queue->gate, ++queue->holds, GM_HOLD_SECONDS),
                         "kernel hold");
}

static int cuda_release(gm_queue *queue, int *held)
{
    *held = __atomic_load_n(&queue->gate->expired, __ATOMIC_ACQUIRE) != queue->holds;
    __atomic_store_n(&queue->gate->released, queue->holds, __ATOMIC_RELEASE);
    return GM_OK;
}

static int cuda_flush(gm_queue *queue, const void *buffer, size_t bytes)
{
    return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_flush(queue->stream, buffer, bytes), "kernel flush");
}

static int cuda_copy(gm_queue *queue, void *dst, const void *src, size_t bytes)
{
    return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_copy(queue->stream, dst, src, bytes), "kernel copy");
}

static int cuda_copy_rival(gm_queue *queue, void *dst, const void *src, size_t bytes)
{
    return gm_cuda_check(queue->device, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, queue->stream),
                         "copying on the GPU");
}

static int cuda_read(gm_queue *queue, const void *src, size_t bytes, void *sink)
{
    return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_read(queue->stream, src, bytes, sink), "kernel read");
}

static int cuda_rival_reduce(gm_queue *queue, const gm_rival_reduce_call *call)
{
    return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_rival_reduce(queue->stream, call), "reduction by CUB");
}

static int cuda_rival_round(gm_queue *queue, const gm_rival_round_call *call)
{
    return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_rival_round(queue->stream, call), "kernel round");
}

/* The functions of the laboratory as entries of the table. */
#define RUN_NONE(name)
#define RUN_CUDA(name)                                                                                          \
    static int run_##name(gm_queue *queue, const struct gm_##name##_call *call)                                 \
    {                                                                                                           \
        return gm_cuda_check(queue->device, (cudaError_t)gm_cuda_##name(queue->stream, call), "kernel " #name); \
    }
#define GM_LAB_OP(name, cpu, cuda) RUN_##cuda(name)
#include "kernels/lab/lab_ops.def"
#undef GM_LAB_OP

#define ENTRY_NONE(name)
#define ENTRY_CUDA(name) .name = run_##name,

const gm_measure_ops gm_cuda_measure = {
    .hold = cuda_hold,
    .release = cuda_release,
    .flush = cuda_flush,
    .copy = cuda_copy,
    .copy_rival = cuda_copy_rival,
    .copy_rival_name = "cudaMemcpyAsync",
    .read = cuda_read,
    .rival_reduce_name = gm_cuda_rival_reduce_name,
    .rival_reduce_room = gm_cuda_rival_reduce_room,
    .rival_reduce = cuda_rival_reduce,
    .rival = gm_cuda_rival,
    .rival_of = gm_cuda_rival_of,
    .rival_round = cuda_rival_round,
    .rival_product = gm_cuda_rival_product,
#define GM_LAB_OP(name, cpu, cuda) ENTRY_##cuda(name)
#include "kernels/lab/lab_ops.def"
#undef GM_LAB_OP
};
