/* Items in a layout: a thread visits one item, in the loads and stores that the compiler makes of its type. */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

enum { THREADS = 256, SHARE = GM_LAYOUT_STAGE / THREADS /* vectors of a thread */, WORD = sizeof(float4) };

struct vector {
    float x, y, z;
};

struct __align__(16) aligned_vector
{
    float x, y, z;
};

struct fields {
    float x[GM_LAYOUT_FIELDS];
};

struct __align__(16) aligned_fields
{
    float x[GM_LAYOUT_FIELDS];
};

/* The visitors: of item i of count. */

template <typename T>
struct copy_item {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        (void)count;
        ((T *)dst)[i] = ((const T *)src)[i];
    }
};

struct field_of_structs {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        (void)count;
        ((fields *)dst)[i].x[GM_LAYOUT_FIELD] = ((const fields *)src)[i].x[GM_LAYOUT_FIELD] + 1;
    }
};

struct field_of_array {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        (void)count;
        ((float *)dst)[i] = ((const float *)src)[i] + 1;
    }
};

template <typename T>
struct all_of_structs {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        T item = ((const T *)src)[i];
        (void)count;
#pragma unroll
        for (int f = 0; f < GM_LAYOUT_FIELDS; f++)
            item.x[f] += 1;
        ((T *)dst)[i] = item;
    }
};

struct all_of_arrays {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        float x[GM_LAYOUT_FIELDS];
#pragma unroll
        for (int f = 0; f < GM_LAYOUT_FIELDS; f++)
            x[f] = ((const float *)src)[f * count + i];
#pragma unroll
        for (int f = 0; f < GM_LAYOUT_FIELDS; f++)
            ((float *)dst)[f * count + i] = x[f] + 1;
    }
};

struct mixed_words {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        const uint4 *word = (const uint4 *)src;
        uint4 a = word[i], b = word[count + i], c = word[2 * count + i];
        ((uint4 *)dst)[i] = make_uint4(a.x ^ b.x ^ c.x, a.y ^ b.y ^ c.y, a.z ^ b.z ^ c.z, a.w ^ b.w ^ c.w);
    }
};

static __device__ __forceinline__ float squared(float x, float y, float z)
{
    return x * x + y * y + z * z;
}

template <typename T>
struct length_of_vectors {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        T v = ((const T *)src)[i];
        (void)count;
        ((float *)dst)[i] = squared(v.x, v.y, v.z);
    }
};

struct length_of_arrays {
    static __device__ __forceinline__ void visit(const void *src, void *dst, int64_t i, int64_t count)
    {
        const float *x = (const float *)src;
        ((float *)dst)[i] = squared(x[i], x[count + i], x[2 * count + i]);
    }
};

template <typename VISITOR>
static __global__ void __launch_bounds__(THREADS) visit_items(const void *src, void *dst, int64_t count)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        VISITOR::visit(src, dst, i, count);
}

/* A block takes GM_LAYOUT_STAGE vectors as words of 16 bytes; a thread takes its floats out of shared memory. There the
 * threads of a warp are on 32 banks: 3 and 32 have no common divisor. */
static __global__ void __launch_bounds__(THREADS) lengths_staged(const float4 *src, float *dst)
{
    __shared__ float4 stage[3 * GM_LAYOUT_STAGE * sizeof(float) / WORD];
    const float *x = (const float *)stage;
    src += blockIdx.x * (int64_t)(sizeof stage / WORD);
    dst += blockIdx.x * (int64_t)GM_LAYOUT_STAGE;
#pragma unroll
    for (int w = 0; w < (int)(sizeof stage / WORD / THREADS); w++)
        stage[w * THREADS + threadIdx.x] = src[w * THREADS + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int s = 0; s < SHARE; s++) {
        int i = s * THREADS + threadIdx.x;
        dst[i] = squared(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
    }
}

template <typename VISITOR>
static int launch(cudaStream_t stream, const gm_layout_call *c)
{
    int64_t blocks = (c->count + THREADS - 1) / THREADS;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    visit_items<VISITOR><<<(unsigned)blocks, THREADS, 0, stream>>>(c->src, c->dst, c->count);
    return cudaGetLastError();
}

static int launch_staged(cudaStream_t stream, const gm_layout_call *c)
{
    int64_t blocks = c->count / GM_LAYOUT_STAGE;
    if (c->count % GM_LAYOUT_STAGE != 0)
        return cudaErrorInvalidValue;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    lengths_staged<<<(unsigned)blocks, THREADS, 0, stream>>>((const float4 *)c->src, (float *)c->dst);
    return cudaGetLastError();
}

extern "C" int gm_cuda_layout(gm_cuda_stream stream, const gm_layout_call *call)
{
    static int (*const launches[GM_LAYOUT_KINDS])(cudaStream_t stream,
                                                  const gm_layout_call *c) = {launch<copy_item<float>>,
                                                                              launch<copy_item<float2>>,
                                                                              launch<copy_item<vector>>,
                                                                              launch<copy_item<aligned_vector>>,
                                                                              launch<copy_item<float4>>,
                                                                              launch<field_of_structs>,
                                                                              launch<field_of_array>,
                                                                              launch<all_of_structs<fields>>,
                                                                              launch<all_of_structs<aligned_fields>>,
                                                                              launch<all_of_arrays>,
                                                                              launch<mixed_words>,
                                                                              launch<length_of_vectors<vector>>,
                                                                              launch<length_of_vectors<aligned_vector>>,
                                                                              launch<length_of_arrays>,
                                                                              launch_staged};
    return call->count > 0 ? launches[call->kind](stream, call) : (int)cudaSuccess;
}
