/* matmul_cuda.cuh - what the CUDA product kernels share: the order of the tiles, asynchronous copies, the fold, the launch. */
#ifndef GM_KERNELS_MATMUL_CUDA_CUH
#define GM_KERNELS_MATMUL_CUDA_CUH

#include <cuda_runtime.h>

#include "kernels/kernels.h"

/* Rows of tiles that neighbouring blocks share, so that the panels of all blocks in flight stay in the L2 cache. */
enum { BAND = 12 };

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Copies bytes (0 to 16, or 0 to 4) to shared memory and fills the rest with zeros; what lies behind the bytes is not read. */
static __device__ __forceinline__ void copy16(uint32_t dst, const void *src, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void copy4(uint32_t dst, const void *src, int bytes)
{
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's groups of copies are under way. */
template <int PENDING>
static __device__ __forceinline__ void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

static __device__ __forceinline__ int clamp(int64_t x, int high)
{
    return x < 0 ? 0 : x > high ? high : (int)x;
}

static __host__ __device__ __forceinline__ int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The tile of this block, as its first row and column: down a band of tile rows, then to the next column. */
static __device__ __forceinline__ void find_tile(const gm_product_call &call, int bm, int bn, int64_t *row, int64_t *col)
{
    uint32_t tiles_m = (uint32_t)divide_up(call.m, bm), tiles_n = (uint32_t)divide_up(call.n, bn);
    uint32_t first = blockIdx.x / (BAND * tiles_n) * BAND, rest = blockIdx.x - first * tiles_n;
    uint32_t rows = tiles_m - first < BAND ? tiles_m - first : BAND;

    *row = (int64_t)(first + rest % rows) * bm;
    *col = (int64_t)(rest / rows) * bn;
}

/* COUNT groups of four neighbours in a row of acc, STRIDE apart: stored (add == 0), or added to what is there. */
template <int STRIDE, typename T, int COUNT>
static __device__ __forceinline__ void fold_wide(T *c, bool add, T (&v)[COUNT][4])
{
    enum { PACK = 16 / sizeof(T), PACKS = 4 / PACK };
    struct __align__(16) pack {
        T v[PACK];
    };
    pack old[COUNT][PACKS];

    if (add) {
#pragma unroll
        for (int i = 0; i < COUNT * PACKS; i++)
            old[i / PACKS][i % PACKS] = ((const pack *)(c + i / PACKS * STRIDE))[i % PACKS];
#pragma unroll
        for (int i = 0; i < COUNT * 4; i++)
            v[i / 4][i % 4] = old[i / 4][i % 4 / PACK].v[i % PACK] + v[i / 4][i % 4];
    }
#pragma unroll
    for (int i = 0; i < COUNT * 4; i++)
        old[i / 4][i % 4 / PACK].v[i % PACK] = v[i / 4][i % 4];
#pragma unroll
    for (int i = 0; i < COUNT * PACKS; i++)
        ((pack *)(c + i / PACKS * STRIDE))[i % PACKS] = old[i / PACKS][i % PACKS];
}

/* The same where acc ends after left columns, or does not take 16-byte accesses. */
template <int STRIDE, typename T, int COUNT>
static __device__ __forceinline__ void fold_narrow(T *c, int64_t left, bool add, T (&v)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < COUNT * 4; i++) {
        int at = i / 4 * STRIDE + i % 4;
        if (at < left)
            c[at] = add ? c[at] + v[i / 4][i % 4] : v[i / 4][i % 4];
    }
}

/* Whether the rows of acc take 16-byte accesses. */
static __device__ __forceinline__ bool fold_aligned(const gm_product_call &call, size_t size)
{
    return (((uintptr_t)call.acc | (uintptr_t)call.ldacc * size) & 15) == 0;
}

/* Launches one of four kernels, [transpose_a][transpose_b], on tiles of bm x bn. */
typedef void product_kernel(const gm_product_call call);

static int launch_product(product_kernel *const (&kernels)[2][2], int bm, int bn, int threads, size_t shared,
                          gm_cuda_stream stream, const gm_product_call *call)
{
    product_kernel *kernel = kernels[call->transpose_a != 0][call->transpose_b != 0];
    int64_t tiles = divide_up(call->m, bm) * divide_up(call->n, bn);
    cudaError_t error;

    if (tiles == 0 || (call->k == 0 && call->accumulate))
        return cudaSuccess;
    if (tiles > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (error != cudaSuccess)
        return error;
    kernel<<<(unsigned)tiles, threads, shared, stream>>>(*call);
    return cudaGetLastError();
}

#endif
