/* Launches of an empty kernel, and a kernel that computes for as long as the caller asks. */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

static __global__ void empty()
{
}

/* As a user would write it: no table, no check of each launch. */
extern "C" int gm_cuda_launches(gm_cuda_stream stream, const gm_launches_call *call)
{
    for (int64_t i = 0; i < call->count; i++) {
        empty<<<call->blocks, call->threads, 0, stream>>>();
        if (call->each_waits)
            cudaStreamSynchronize(stream);
    }
    return cudaGetLastError();
}

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS) xorshift(uint32_t *data, int64_t count, int steps)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        uint32_t x = data[i];
        for (int s = 0; s < steps; s++)
            x = gm_lab_xorshift(x);
        data[i] = x;
    }
}

extern "C" int gm_cuda_xorshift(gm_cuda_stream stream, const gm_xorshift_call *call)
{
    int64_t blocks = (call->count + THREADS - 1) / THREADS;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (blocks == 0)
        return cudaSuccess;
    xorshift<<<(unsigned)blocks, THREADS, 0, stream>>>(call->data, call->count, call->steps);
    return cudaGetLastError();
}
