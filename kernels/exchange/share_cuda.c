/* Memory of other processes' GPUs, by the handles of CUDA's interprocess communication (cudaIpcGetMemHandle). A handle
 * names the whole allocation, and what shares its pages: CUDA puts allocations of less than 2 MiB side by side. */
#include <stdio.h>
#include <string.h>

#include "kernels/device_cuda.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) <= GM_SHARED_NAME, "gm_shared_memory has room for a handle");

/* Devices that cannot reach each other, and systems without such handles, are no failure. */
static void explain(cudaError_t error, const char *call, char why[GM_SHARED_WHY])
{
    why[0] = '\0';
    if (error == cudaSuccess)
        return;
    cudaGetLastError();
    snprintf(why, GM_SHARED_WHY, "%s: %s", call, cudaGetErrorString(error));
}

int gm_cuda_share(gm_device *device, const void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY])
{
    cudaIpcMemHandle_t handle;
    gm_allocation of = gm_ledger_find(&device->memory, memory);
    memset(shared, 0, sizeof *shared);
    memset(&handle, 0, sizeof handle);
    if (of.memory == NULL)
        return gm_fail(GM_EINTERNAL, "memory that is to be shared is none of GPU %d", device->number);
    shared->number = of.number;
    shared->offset = (const char *)memory - (const char *)of.memory;
    explain(cudaIpcGetMemHandle(&handle, of.memory), "cudaIpcGetMemHandle", why);
    memcpy(shared->name, &handle, sizeof handle);
    return GM_OK;
}

int gm_cuda_open_shared(gm_device *device, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY])
{
    cudaIpcMemHandle_t handle;
    cudaSetDevice(device->index); /* the current device is per thread */
    *memory = NULL;
    memcpy(&handle, shared->name, sizeof handle);
    explain(cudaIpcOpenMemHandle(memory, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle", why);
    if (why[0] != '\0')
        *memory = NULL;
    return GM_OK;
}

void gm_cuda_close_shared(gm_device *device, void *memory)
{
    cudaSetDevice(device->index);
    if (memory != NULL && cudaIpcCloseMemHandle(memory) != cudaSuccess)
        cudaGetLastError();
}
