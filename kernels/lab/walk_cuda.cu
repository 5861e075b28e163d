/* Elements in an order: a thread visits one element, as its index says, with a load and a store of the element's size.
 */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

enum { THREADS = 256 };

template <typename T>
static __device__ __forceinline__ T incremented(T x)
{
    return (T)(x + 1);
}

static __device__ __forceinline__ uint4 incremented(uint4 x)
{
    return make_uint4(x.x + 1, x.y + 1, x.z + 1, x.w + 1);
}

template <typename T, gm_walk_order ORDER>
static __global__ void __launch_bounds__(THREADS)
    walk(const T *src, T *dst, uint32_t count, uint32_t base, uint32_t stride, uint32_t cols)
{
    uint32_t t = blockIdx.x * THREADS + threadIdx.x;
    if (ORDER == GM_WALK_HALF_IDLE) {
        if (t % 2 != 0)
            return;
        t /= 2;
    }
    if (t < count) {
        uint32_t at = base + stride * gm_walk_place(ORDER, t, count, cols);
        dst[at] = incremented(src[at]);
    }
}

template <typename T, gm_walk_order ORDER>
static int launch(cudaStream_t stream, const gm_walk_call *c)
{
    int64_t threads = ORDER == GM_WALK_HALF_IDLE ? 2 * (int64_t)c->count : c->count;
    int64_t blocks = (threads + THREADS - 1) / THREADS;
    if (threads > UINT32_MAX - THREADS)
        return cudaErrorInvalidConfiguration;
    walk<T, ORDER><<<(unsigned)blocks, THREADS, 0, stream>>>((const T *)c->src, (T *)c->dst, c->count, c->base,
                                                             c->stride, c->cols);
    return cudaGetLastError();
}

template <typename T>
static int launch_order(cudaStream_t stream, const gm_walk_call *c)
{
    return c->order == GM_WALK_HALF_IDLE  ? launch<T, GM_WALK_HALF_IDLE>(stream, c)
           : c->order == GM_WALK_PERMUTED ? launch<T, GM_WALK_PERMUTED>(stream, c)
           : c->order == GM_WALK_COLUMNS  ? launch<T, GM_WALK_COLUMNS>(stream, c)
           : c->order == GM_WALK_RANDOM   ? launch<T, GM_WALK_RANDOM>(stream, c)
                                          : launch<T, GM_WALK_CONSECUTIVE>(stream, c);
}

extern "C" int gm_cuda_walk(gm_cuda_stream stream, const gm_walk_call *call)
{
    static int (*const launches[GM_WALK_TYPES])(cudaStream_t stream, const gm_walk_call *c) = {
        launch_order<uint8_t>, launch_order<uint16_t>, launch_order<uint32_t>, launch_order<uint64_t>,
        launch_order<uint4>,   launch_order<float>,    launch_order<double>};
    if (call->count == 0)
        return cudaSuccess;
    return launches[call->type](stream, call);
}
