/* Copies by blocks of any size, and by few or many threads on each multiprocessor. */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

/* A thread for each element. */
template <typename T>
static __global__ void copy_once(const T *src, T *dst, int64_t count)
{
    int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        dst[at] = src[at];
}

/* A thread has one load under way and goes on to its next element. */
template <typename T>
static __global__ void copy_loop(const T *src, T *dst, int64_t count)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
#pragma unroll 1
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step)
        dst[at] = src[at];
}

typedef struct launch_plan {
    const void *kernel;
    int64_t blocks;
    size_t shared; /* dynamic shared memory of a block, bytes */
} launch_plan;

/* The dynamic shared memory with which so many blocks fit a multiprocessor and no more. The system takes 1 KiB for each
 * block, and rounds up by less than as much. */
static cudaError_t plan_shared(int blocks, size_t *shared)
{
    int device, all, most;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess)
        return error;
    int bytes = all / blocks / 1024 * 1024 - 1024;
    *shared = (size_t)(bytes > most ? most : bytes > 0 ? bytes : 0);
    return cudaSuccess;
}

static cudaError_t plan(const gm_occupancy_call *c, launch_plan *p)
{
    static const void *const kernels[2][2] = {{(const void *)copy_once<unsigned>, (const void *)copy_once<uint4>},
                                              {(const void *)copy_loop<unsigned>, (const void *)copy_loop<uint4>}};
    cudaError_t error = cudaSuccess;
    *p = {};
    p->kernel = kernels[c->blocks > 0][c->bytes == 16];
    p->blocks = c->blocks > 0 ? c->blocks : (c->count + c->threads - 1) / c->threads;
    if (p->blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (c->blocks == 0)
        return cudaSuccess;
    error = plan_shared(c->resident, &p->shared);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(p->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)p->shared);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(p->kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    return error;
}

extern "C" int gm_cuda_occupancy(gm_cuda_stream stream, const gm_occupancy_call *call)
{
    launch_plan p;
    int64_t count = call->count;
    void *arguments[] = {(void *)&call->src, (void *)&call->dst, &count};
    cudaError_t error = plan(call, &p);
    if (error == cudaSuccess && call->fit != NULL)
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(call->fit, p.kernel, call->threads, p.shared);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(p.kernel, dim3((unsigned)p.blocks), dim3((unsigned)call->threads), arguments, p.shared,
                                 stream);
    return error;
}
