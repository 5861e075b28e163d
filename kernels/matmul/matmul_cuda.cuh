/* matmul_cuda.cuh - the common parts of the CUDA product kernels: order of tiles, asynchronous copies, fold, launch. */
#ifndef GM_KERNELS_MATMUL_MATMUL_CUDA_CUH
#define GM_KERNELS_MATMUL_MATMUL_CUDA_CUH

#include <cuda_runtime.h>

#include "kernels/matmul/calls.h"
#include "kernels/matmul/parts_cuda.cuh"

/* A call as the kernels get it. They have it in registers and constants as long as it has 128 bytes or less; of a
 * longer parameter the compiler keeps a copy in local memory, and spills. */
typedef struct kernel_call {
    int64_t m, n, k;
    const void *a;
    int64_t lda;
    const void *b;
    int64_t ldb;
    void *acc;
    int64_t ldacc, leaf;
    int64_t next_a, next_b, next_acc;
    int64_t last_k; /* of the last product of a batch */
    gm_nonfinite *rounded;
    int accumulate;
} kernel_call;

static_assert(sizeof(kernel_call) <= 128, "a parameter that stays out of local memory");

/* Rows of tiles that neighbouring blocks share, so that the panels of all blocks in flight stay in the L2 cache. */
enum { BAND = 12 };

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Starts a copy of 0 to 16, or 0 to 4, bytes to shared memory, padded with zeros. Memory after these bytes is not read.
 */
static __device__ __forceinline__ void copy16(uint32_t dst, const void *src, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes));
}

static __device__ __forceinline__ void copy4(uint32_t dst, const void *src, int bytes)
{
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"(bytes));
}

/* Closes this thread's group of copies. */
static __device__ __forceinline__ void copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING groups of each thread's copies are pending. The block then sees all completed copies. */
template <int PENDING>
static __device__ __forceinline__ void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
    __syncthreads();
}

static __device__ __forceinline__ int clamp(int64_t x, int high)
{
    return x < 0 ? 0 : x > high ? high : (int)x;
}

/* A tile of C, as its first row and column: down a band of tile rows, then to the next column. */
static __device__ __forceinline__ void find_tile(uint32_t tile, int64_t m, int64_t n, int tile_m, int tile_n,
                                                 int64_t *row, int64_t *col)
{
    uint32_t tiles_m = (uint32_t)divide_up(m, tile_m), tiles_n = (uint32_t)divide_up(n, tile_n);
    uint32_t first = tile / (BAND * tiles_n) * BAND, rest = tile - first * tiles_n;
    uint32_t rows = tiles_m - first < BAND ? tiles_m - first : BAND;

    *row = (int64_t)(first + rest % rows) * tile_m;
    *col = (int64_t)(rest / rows) * tile_n;
}

/* Folds a thread's elements of ROWS rows of C, COUNT groups of 16 bytes in each, STRIDE elements apart: stores them
 * (add == 0), or adds them to C. All loads come before the first addition, so that their latencies overlap. */
template <int STRIDE, typename T, int ROWS, int COUNT, int WIDTH>
static __device__ __forceinline__ void fold_wide(T *const (&c)[ROWS], bool add, T (&v)[ROWS][COUNT][WIDTH])
{
    struct __align__(16) pack
    {
        T v[WIDTH];
    };
    pack group[ROWS][COUNT];

    if (add)
#pragma unroll
        for (int i = 0; i < ROWS * COUNT; i++)
            group[i / COUNT][i % COUNT] = *(const pack *)(c[i / COUNT] + i % COUNT * STRIDE);
#pragma unroll
    for (int i = 0; i < ROWS * COUNT; i++) {
#pragma unroll
        for (int e = 0; e < WIDTH; e++) {
            T *g = &group[i / COUNT][i % COUNT].v[e], x = v[i / COUNT][i % COUNT][e];
            *g = add ? *g + x : x;
        }
        *(pack *)(c[i / COUNT] + i % COUNT * STRIDE) = group[i / COUNT][i % COUNT];
    }
}

/* The same for one row, which has `left` elements from c on and may lie at any multiple of an element. */
template <int STRIDE, typename T, int COUNT, int WIDTH>
static __device__ __forceinline__ void fold_narrow(T *c, int64_t left, bool add, const T (&v)[COUNT][WIDTH])
{
#pragma unroll
    for (int i = 0; i < COUNT * WIDTH; i++) {
        int at = i / WIDTH * STRIDE + i % WIDTH;
        if (at < left)
            c[at] = add ? c[at] + v[i / WIDTH][i % WIDTH] : v[i / WIDTH][i % WIDTH];
    }
}

/* Whether the rows of acc lie at multiples of 16 bytes. */
template <bool BATCH>
static __device__ __forceinline__ bool fold_aligned(const kernel_call &call, size_t size)
{
    return (((uintptr_t)call.acc | (uintptr_t)(BATCH ? call.ldacc | call.next_acc : call.ldacc) * size) & 15) == 0;
}

/* Of the product of this block in a batch, blockIdx.y: A or B, which lie `next` elements apart, or acc. The kernels are
 * compiled without a batch too: their registers are scarce. */
template <bool BATCH, typename T>
static __device__ __forceinline__ const void *operand_of(const void *first, int64_t next)
{
    return BATCH ? (const T *)first + blockIdx.y * next : first;
}

template <bool BATCH, typename T>
static __device__ __forceinline__ T *acc_of(const kernel_call &call)
{
    return BATCH ? (T *)call.acc + blockIdx.y * call.next_acc : (T *)call.acc;
}

template <bool BATCH>
static __device__ __forceinline__ int64_t k_of(const kernel_call &call)
{
    return BATCH && blockIdx.y == gridDim.y - 1 ? call.last_k : call.k;
}

static kernel_call kernel_call_of(const gm_product_call *call)
{
    kernel_call k = {call->m,        call->n,   call->k,       call->a,         call->lda,    call->b,
                     call->ldb,      call->acc, call->ldacc,   call->leaf,      call->next_a, call->next_b,
                     call->next_acc, call->k,   call->rounded, call->accumulate};
    return k;
}

/* Products of a batch, or leaves, that a launch computes side by side. */
static inline int64_t products_beside(const gm_product_call *call)
{
    int64_t leaves = divide_up(call->k, call->leaf);
    int64_t beside = call->batch > 1 ? call->batch : leaves < call->part_count ? leaves : call->part_count;
    return beside > 1 ? beside : 1;
}

/* `count` leaves from leaf `first` on, side by side as a batch whose products lie apart in the parts. T: operands. */
template <typename T>
static kernel_call kernel_call_of_leaves(const gm_product_call *call, int64_t first, int64_t count)
{
    int64_t left = call->k - (first + count - 1) * call->leaf;
    kernel_call k = kernel_call_of(call);
    k.next_a = call->transpose_a ? call->leaf * call->lda : call->leaf;
    k.next_b = call->transpose_b ? call->leaf : call->leaf * call->ldb;
    k.a = (const T *)call->a + first * k.next_a;
    k.b = (const T *)call->b + first * k.next_b;
    k.last_k = left < call->leaf ? left : call->leaf;
    k.k = count == 1 ? k.last_k : call->leaf;
    k.acc = call->parts;
    k.next_acc = call->m * call->ldacc;
    k.rounded = NULL;
    k.accumulate = 0;
    return k;
}

/* A product on tiles of tile_m x tile_n with shared bytes of shared memory, by one of eight kernels,
 * [batch][transpose_a][transpose_b]; T: operands, ACC: accumulators. gathers: several blocks fit a multiprocessor. */
typedef void product_kernel(const kernel_call call);

template <typename T, typename ACC>
struct product_launch {
    product_kernel *kernels[2][2][2];
    int tile_m, tile_n, threads, shared;
    bool gathers;

    int64_t tiles(const kernel_call &k) const
    {
        return divide_up(k.m, tile_m) * divide_up(k.n, tile_n);
    }

    /* Are there about as many blocks as multiprocessors? If they begin early, they go where the kernel ahead leaves
     * room: several to one multiprocessor, and none to another. */
    static bool fill_once(int64_t blocks, int multiprocessors)
    {
        return blocks > multiprocessors / 2 && blocks <= 2 * multiprocessors;
    }

    cudaError_t launch(cudaStream_t stream, const gm_product_call *call, const kernel_call &k, int64_t batch) const
    {
        product_kernel *kernel = kernels[batch > 1][call->transpose_a != 0][call->transpose_b != 0];
        dim3 blocks((unsigned)tiles(k), (unsigned)batch);
        int multiprocessors = 0;
        cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
        if (error == cudaSuccess && gathers)
            error = multiprocessors_of(&multiprocessors);
        if (error != cudaSuccess)
            return error;
        if (!gathers || !fill_once(tiles(k) * batch, multiprocessors))
            return launch_early(kernel, blocks, threads, shared, stream, k);
        kernel<<<blocks, threads, shared, stream>>>(k);
        return cudaGetLastError();
    }

    /* Leaves from `first` on side by side, and then their sum. */
    cudaError_t fold(cudaStream_t stream, const gm_product_call *call, int64_t first, int64_t count) const
    {
        const kernel_call k = kernel_call_of_leaves<T>(call, first, count);
        cudaError_t error = launch(stream, call, k, count);
        if (error != cudaSuccess)
            return error;
        return fold_parts<ACC>(stream, call, count, call->accumulate || first > 0);
    }

    int run(gm_cuda_stream stream, const gm_product_call *call) const
    {
        const kernel_call k = kernel_call_of(call);
        int64_t batch = call->batch > 1 ? call->batch : 1, leaves = divide_up(call->k, call->leaf);
        int64_t parts = call->part_count;
        cudaError_t error = cudaSuccess;

        if (tiles(k) == 0 || (call->k == 0 && call->accumulate))
            return cudaSuccess;
        if (tiles(k) > INT32_MAX || batch > GM_BATCH_MOST || parts > GM_BATCH_MOST)
            return cudaErrorInvalidConfiguration;
        if (call->rounded && (call->accumulate || leaves > (batch > 1 || parts < 2 ? 1 : parts)))
            return cudaErrorInvalidValue;
        if (batch > 1 || parts < 2 || leaves < 2)
            return launch(stream, call, k, batch);
        for (int64_t first = 0; first < leaves && error == cudaSuccess; first += parts)
            error = fold(stream, call, first, leaves - first < parts ? leaves - first : parts);
        return error;
    }
};

#endif
