/* Texture objects over device memory, and pinned host memory as kernels see it. Nothing here is put into the stream. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "kernels/lab/kinds.h"

int gm_cuda_texture_open(gm_cuda_stream stream, const gm_texture_open_call *call)
{
    static const struct {
        struct cudaChannelFormatDesc format;
        int bytes;
        enum cudaTextureReadMode read;
        enum cudaTextureFilterMode filter;
    } texels[GM_TEXELS] = {
        [GM_TEXEL_U32] = {{32, 0, 0, 0, cudaChannelFormatKindUnsigned},
                          4,
                          cudaReadModeElementType,
                          cudaFilterModePoint},
        [GM_TEXEL_U32X4] = {{32, 32, 32, 32, cudaChannelFormatKindUnsigned},
                            16,
                            cudaReadModeElementType,
                            cudaFilterModePoint},
        [GM_TEXEL_F32] = {{32, 0, 0, 0, cudaChannelFormatKindFloat}, 4, cudaReadModeElementType, cudaFilterModeLinear},
        [GM_TEXEL_RGBA8] = {
            {8, 8, 8, 8, cudaChannelFormatKindUnsigned}, 4, cudaReadModeNormalizedFloat, cudaFilterModePoint}};
    struct cudaResourceDesc memory;
    struct cudaTextureDesc how;
    cudaTextureObject_t texture = 0;
    size_t line = (size_t)call->width * (size_t)texels[call->texel].bytes;
    (void)stream;
    memset(&memory, 0, sizeof memory);
    memset(&how, 0, sizeof how);
    if (call->height == 0) {
        memory.resType = cudaResourceTypeLinear;
        memory.res.linear.devPtr = (void *)call->src;
        memory.res.linear.desc = texels[call->texel].format;
        memory.res.linear.sizeInBytes = line;
    } else {
        memory.resType = cudaResourceTypePitch2D;
        memory.res.pitch2D.devPtr = (void *)call->src;
        memory.res.pitch2D.desc = texels[call->texel].format;
        memory.res.pitch2D.width = (size_t)call->width;
        memory.res.pitch2D.height = (size_t)call->height;
        memory.res.pitch2D.pitchInBytes = line;
    }
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    how.filterMode = call->height == 0 ? cudaFilterModePoint : texels[call->texel].filter;
    how.readMode = texels[call->texel].read;
    cudaError_t error = cudaCreateTextureObject(&texture, &memory, &how, NULL);
    *call->texture = error == cudaSuccess ? texture : 0;
    return error;
}

int gm_cuda_texture_close(gm_cuda_stream stream, const gm_texture_close_call *call)
{
    (void)stream;
    return call->texture != 0 ? cudaDestroyTextureObject(call->texture) : cudaSuccess;
}

int gm_cuda_mapped(gm_cuda_stream stream, const gm_mapped_call *call)
{
    struct cudaPointerAttributes seen;
    cudaError_t error = cudaPointerGetAttributes(&seen, call->host);
    (void)stream;
    *call->device = error == cudaSuccess && seen.type == cudaMemoryTypeHost ? seen.devicePointer : NULL;
    return error;
}
