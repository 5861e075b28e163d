/* Memory of a CUDA device, and pinned host memory for its copies. */
#include <stdio.h>

#include "base/size.h"
#include "kernels/device_cuda.h"

static int fail_alloc(const gm_device *device, cudaError_t error, size_t bytes)
{
    char asked[GM_SIZE_TEXT], left[GM_SIZE_TEXT], whole[GM_SIZE_TEXT];
    size_t free_bytes, total_bytes;
    if (error != cudaErrorMemoryAllocation || cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        return gm_cuda_check(device, error, "allocating memory");
    cudaGetLastError();
    return gm_fail(GM_EDEVICE, "GPU %d (%s): out of memory: %s asked for, %s of %s free", device->number, device->name,
                   gm_size_format((int64_t)bytes, asked), gm_size_format((int64_t)free_bytes, left),
                   gm_size_format((int64_t)total_bytes, whole));
}

int gm_cuda_alloc(gm_device *device, size_t bytes, void **out)
{
    *out = NULL;
    int status = gm_ledger_charge(&device->memory, bytes);
    if (status != GM_OK)
        return status;
    size_t words = bytes / 16 + (bytes % 16 > 0); /* kernels read whole words of 16 bytes */
    cudaError_t error = cudaMalloc(out, 16 * (words > 0 ? words : 1));
    if (error != cudaSuccess) {
        gm_ledger_release(&device->memory, NULL);
        *out = NULL;
        return fail_alloc(device, error, bytes);
    }
    gm_ledger_place(&device->memory, *out);
    return GM_OK;
}

void gm_cuda_free(gm_device *device, void *memory)
{
    if (memory != NULL) {
        gm_ledger_release(&device->memory, memory);
        cudaFree(memory); /* an error here is of earlier work, and the queues report it */
    }
}

int gm_cuda_host_alloc_pageable(gm_device *device, size_t bytes, void **out)
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

int gm_cuda_host_alloc(gm_device *device, size_t bytes, void **out)
{
    int status = gm_cuda_host_alloc_pageable(device, bytes, out);
    if (status == GM_OK)
        gm_cuda_pages_pin(device, *out);
    return status;
}

void gm_cuda_host_free(gm_device *device, void *memory)
{
    if (memory != NULL) {
        gm_ledger_release(&device->pinned, memory);
        if (!gm_cuda_pages_free(device, memory))
            cudaFreeHost(memory);
    }
}

void gm_cuda_host_register(gm_device *device, void *memory, size_t bytes)
{
    cudaSetDevice(device->index); /* the current device is per thread */
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) != cudaSuccess)
        cudaGetLastError();
}

void gm_cuda_host_unregister(gm_device *device, void *memory)
{
    cudaSetDevice(device->index);
    if (cudaHostUnregister(memory) != cudaSuccess)
        cudaGetLastError(); /* it was not registered, or of earlier work */
}
