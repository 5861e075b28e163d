/* launch_cuda.cuh - the arithmetic of launches. */
#ifndef GM_KERNELS_MATMUL_LAUNCH_CUDA_CUH
#define GM_KERNELS_MATMUL_LAUNCH_CUDA_CUH

#include <cuda_runtime.h>

#include <stdint.h>

static __host__ __device__ __forceinline__ int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline cudaError_t multiprocessors_of(int *count)
{
    int device;
    cudaError_t error = cudaGetDevice(&device);
    return error == cudaSuccess ? cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device) : error;
}

#endif
