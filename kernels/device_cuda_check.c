/* The check of a CUDA call. */
#include "kernels/device_cuda.h"

int gm_cuda_check(const gm_device *device, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return GM_OK;
    cudaGetLastError(); /* clears the error, which the runtime keeps for the next query */
    return gm_fail(GM_EDEVICE, "GPU %d (%s): %s: %s", device->number, device->name, what, cudaGetErrorString(error));
}
