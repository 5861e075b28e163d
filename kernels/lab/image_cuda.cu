/* Steps of images: by a texture object, whose units clamp, filter and convert, and by loads. A thread has a pixel. */
#include <cuda_runtime.h>

#include "kernels/lab/kinds.h"

enum { LONG = 32, SHORT = 8 };

typedef struct image {
    int width, height;
    float right, below;
    cudaTextureObject_t texture;
    const void *src;
    void *dst;
} image;

template <bool BY_TEXTURE>
static __device__ __forceinline__ unsigned sum_at(const image &m, int x, int y)
{
    unsigned sum = 0;
#pragma unroll
    for (int dy = -1; dy <= 1; dy++) {
#pragma unroll
        for (int dx = -1; dx <= 1; dx++) {
            if (BY_TEXTURE) {
                sum += tex2D<unsigned>(m.texture, (float)(x + dx) + 0.5f, (float)(y + dy) + 0.5f);
            } else {
                int column = min(max(x + dx, 0), m.width - 1), row = min(max(y + dy, 0), m.height - 1);
                sum += ((const uint32_t *)m.src)[(int64_t)row * m.width + column];
            }
        }
    }
    return sum;
}

template <bool BY_TEXTURE>
static __device__ __forceinline__ float between(const image &m, int x, int y)
{
    if (BY_TEXTURE)
        return tex2D<float>(m.texture, (float)x + 0.5f + m.right, (float)y + 0.5f + m.below);
    const float *row = (const float *)m.src + (int64_t)y * m.width;
    const float *next = y + 1 < m.height ? row + m.width : row;
    int beside = min(x + 1, m.width - 1);
    float above = __fmaf_rn(m.right, row[beside] - row[x], row[x]);
    return __fmaf_rn(m.below, __fmaf_rn(m.right, next[beside] - next[x], next[x]) - above, above);
}

template <bool BY_TEXTURE>
static __device__ __forceinline__ float4 unpacked(const image &m, int x, int y)
{
    if (BY_TEXTURE)
        return tex2D<float4>(m.texture, (float)x + 0.5f, (float)y + 0.5f);
    const float unit = 1 / 255.0f;
    uchar4 c = ((const uchar4 *)m.src)[(int64_t)y * m.width + x];
    return make_float4((float)c.x * unit, (float)c.y * unit, (float)c.z * unit, (float)c.w * unit);
}

template <gm_image_step STEP, bool BY_TEXTURE>
static __global__ void __launch_bounds__(LONG *SHORT) step(image m, bool is_turned)
{
    int x = is_turned ? blockIdx.x * SHORT + threadIdx.y : blockIdx.x * LONG + threadIdx.x;
    int y = is_turned ? blockIdx.y * LONG + threadIdx.x : blockIdx.y * SHORT + threadIdx.y;
    int64_t at = (int64_t)y * m.width + x;
    if (STEP == GM_IMAGE_SUM)
        ((uint32_t *)m.dst)[at] = sum_at<BY_TEXTURE>(m, x, y);
    else if (STEP == GM_IMAGE_BILINEAR)
        ((float *)m.dst)[at] = between<BY_TEXTURE>(m, x, y);
    else
        ((float4 *)m.dst)[at] = unpacked<BY_TEXTURE>(m, x, y);
}

extern "C" int gm_cuda_image(gm_cuda_stream stream, const gm_image_call *call)
{
    static void (*const steps[GM_IMAGE_STEPS][2])(image m, bool is_turned) = {
        {step<GM_IMAGE_SUM, false>, step<GM_IMAGE_SUM, true>},
        {step<GM_IMAGE_BILINEAR, false>, step<GM_IMAGE_BILINEAR, true>},
        {step<GM_IMAGE_UNPACK, false>, step<GM_IMAGE_UNPACK, true>}};
    int64_t across = call->width / (call->is_turned ? SHORT : LONG),
            down = call->height / (call->is_turned ? LONG : SHORT);
    if (call->width % LONG != 0 || call->height % LONG != 0 || across < 1 || across > INT32_MAX / LONG || down < 1 ||
        down > 65535)
        return cudaErrorInvalidConfiguration;
    image m = {(int)call->width, (int)call->height, call->right, call->below, call->texture, call->src, call->dst};
    steps[call->step][call->by_texture != 0]<<<dim3((unsigned)across, (unsigned)down), dim3(LONG, SHORT), 0, stream>>>(
        m, call->is_turned != 0);
    return cudaGetLastError();
}
