/* Copies between host and device, or within the device, as a user would write them: no table, no check of each copy. */
#include <cuda_runtime_api.h>

#include "kernels/lab/calls.h"

int gm_cuda_copy_loop(gm_cuda_stream stream, const gm_copy_loop_call *call)
{
    static const enum cudaMemcpyKind kinds[] = {[GM_COPY_IN] = cudaMemcpyHostToDevice,
                                                [GM_COPY_OUT] = cudaMemcpyDeviceToHost,
                                                [GM_COPY_WITHIN] = cudaMemcpyDeviceToDevice};
    cudaError_t error = cudaSuccess;
    for (int64_t i = 0; i < call->count && error == cudaSuccess; i++) {
        error = cudaMemcpyAsync((char *)call->dst + i * call->step, (const char *)call->src + i * call->step,
                                (size_t)call->bytes, kinds[call->way], stream);
        if (call->each_waits && error == cudaSuccess)
            error = cudaStreamSynchronize(stream);
    }
    return error;
}
