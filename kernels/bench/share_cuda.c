/* Memory of other processes' GPUs, by the handles of CUDA's interprocess communication. A handle names the whole
 * allocation: memory of cudaMalloc() that shares its pages with other allocations would be named with them, so callers
 * share allocations of some MiB. */
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

int gm_cuda_share(gm_device *device, void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY])
{
    cudaIpcMemHandle_t handle;
    (void)device;
    memset(shared, 0, sizeof *shared);
    memset(&handle, 0, sizeof handle);
    explain(cudaIpcGetMemHandle(&handle, memory), "cudaIpcGetMemHandle", why);
    memcpy(shared->name, &handle, sizeof handle);
    return GM_OK;
}

int gm_cuda_attach(gm_device *device, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY])
{
    cudaIpcMemHandle_t handle;
    (void)device;
    *memory = NULL;
    memcpy(&handle, shared->name, sizeof handle);
    explain(cudaIpcOpenMemHandle(memory, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle", why);
    if (why[0] != '\0')
        *memory = NULL;
    return GM_OK;
}

void gm_cuda_detach(gm_device *device, void *memory)
{
    (void)device;
    if (memory != NULL && cudaIpcCloseMemHandle(memory) != cudaSuccess)
        cudaGetLastError();
}
