/* launch_cuda.cuh - launches: their arithmetic, their code, and those that begin before the kernel ahead of them has
 * ended. */
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

/* Has the code of kernels loaded, for which their first launch would wait. */
template <typename... KERNELS>
static inline int load_code(KERNELS *...kernels)
{
    cudaFuncAttributes code;
    for (const void *kernel : {(const void *)kernels...}) {
        cudaError_t error = cudaFuncGetAttributes(&code, kernel);
        if (error != cudaSuccess)
            return error;
    }
    return cudaSuccess;
}

/* A launch of a kernel that calls wait_for_kernel_ahead() first: its blocks may start while the last ones of the kernel
 * ahead are at work, which saves a good part of the start. Code for less than compute capability 9.0 cannot wait, also
 * where a later device runs it, and is launched as any other. */
template <typename... PARAMETERS, typename... ARGUMENTS>
static inline cudaError_t launch_early(void (*kernel)(PARAMETERS...), dim3 blocks, dim3 threads, int shared,
                                       cudaStream_t stream, const ARGUMENTS &...arguments)
{
    cudaFuncAttributes code;
    cudaError_t error = cudaFuncGetAttributes(&code, (const void *)kernel);
    if (error != cudaSuccess)
        return error;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = (size_t)shared;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = code.ptxVersion >= 90;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/* All that kernels ahead have written is there afterwards. The next launch may start early. */
static __device__ __forceinline__ void wait_for_kernel_ahead(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
