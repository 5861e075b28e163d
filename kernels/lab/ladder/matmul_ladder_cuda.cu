/* The steps to a fast product. All but the first use compensated summation: the rounding error of each addition goes
 * into the next one. W. Kahan, "Further remarks on reducing truncation errors", Comm. ACM 8 (1965) 40,
 * doi:10.1145/363707.363723. */
#include <cuda_runtime.h>

#include "kernels/lab/ladder/ladders.h"

enum { SIDE = GM_MATMUL_LADDER_SIDE, THREADS = 256 /* of a block for a row */ };

struct plain {
    float sum = 0;
    __device__ __forceinline__ void add(float product)
    {
        sum += product;
    }
};

struct compensated {
    float sum = 0, lost = 0;
    __device__ __forceinline__ void add(float product)
    {
        float term = product - lost, next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
};

/* A thread computes one element of C, from global memory. */
template <typename SUM>
static __global__ void __launch_bounds__(SIDE *SIDE) multiply_elements(gm_gemm_call call)
{
    int64_t i = (int64_t)blockIdx.y * SIDE + threadIdx.y, j = (int64_t)blockIdx.x * SIDE + threadIdx.x;
    const float *a = (const float *)call.a + i * call.lda, *b = (const float *)call.b + j;
    SUM sum;
    if (i >= call.m || j >= call.n)
        return;
    for (int64_t l = 0; l < call.k; l++)
        sum.add(a[l] * b[l * call.ldb]);
    ((float *)call.c)[i * call.ldc + j] = sum.sum;
}

/* A block computes a row of C. The row of A is in shared memory. */
static __global__ void __launch_bounds__(THREADS) multiply_row(gm_gemm_call call)
{
    extern __shared__ float row[]; /* [k] */
    const float *a = (const float *)call.a + blockIdx.x * call.lda;
    float *c = (float *)call.c + blockIdx.x * call.ldc;
    for (int64_t l = threadIdx.x; l < call.k; l += THREADS)
        row[l] = a[l];
    __syncthreads();
    for (int64_t j = threadIdx.x; j < call.n; j += THREADS) {
        const float *b = (const float *)call.b + j;
        compensated sum;
        for (int64_t l = 0; l < call.k; l++)
            sum.add(row[l] * b[l * call.ldb]);
        c[j] = sum.sum;
    }
}

/* A block computes a tile of C out of tiles of A and B in shared memory. BOUNDS: elements outside count as 0. */
template <bool BOUNDS>
static __global__ void __launch_bounds__(SIDE *SIDE) multiply_tiles(gm_gemm_call call)
{
    __shared__ float tile_a[SIDE][SIDE], tile_b[SIDE][SIDE];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t i = (int64_t)blockIdx.y * SIDE + y, j = (int64_t)blockIdx.x * SIDE + x;
    const float *a = (const float *)call.a + i * call.lda + x, *b = (const float *)call.b + y * call.ldb + j;
    compensated sum;
    for (int64_t l = 0; l < call.k; l += SIDE) {
        tile_a[y][x] = !BOUNDS || (i < call.m && l + x < call.k) ? a[l] : 0;
        tile_b[y][x] = !BOUNDS || (l + y < call.k && j < call.n) ? b[l * call.ldb] : 0;
        __syncthreads();
#pragma unroll
        for (int s = 0; s < SIDE; s++)
            sum.add(tile_a[y][s] * tile_b[s][x]);
        __syncthreads();
    }
    if (!BOUNDS || (i < call.m && j < call.n))
        ((float *)call.c)[i * call.ldc + j] = sum.sum;
}

static int launch_row(cudaStream_t stream, const gm_gemm_call *g)
{
    if (g->m > INT32_MAX || g->k > GM_MATMUL_LADDER_ROW)
        return cudaErrorInvalidConfiguration;
    multiply_row<<<(unsigned)g->m, THREADS, (size_t)g->k * sizeof(float), stream>>>(*g);
    return cudaGetLastError();
}

static int launch_tiles(cudaStream_t stream, const gm_gemm_call *g, void (*kernel)(gm_gemm_call))
{
    int64_t rows = (g->m + SIDE - 1) / SIDE, cols = (g->n + SIDE - 1) / SIDE;
    if (rows > UINT16_MAX || cols > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    kernel<<<dim3((unsigned)cols, (unsigned)rows), dim3(SIDE, SIDE), 0, stream>>>(*g);
    return cudaGetLastError();
}

extern "C" int gm_cuda_matmul_ladder(gm_cuda_stream stream, const gm_matmul_ladder_call *call)
{
    static void (*const kernels[GM_MATMUL_LADDER_STAGES])(gm_gemm_call) = {
        multiply_elements<plain>, multiply_elements<compensated>, NULL, multiply_tiles<true>, multiply_tiles<false>};
    const gm_gemm_call *g = &call->gemm;
    if (g->type != GM_DTYPE_F32)
        return cudaErrorInvalidValue;
    if (call->stage == GM_MATMUL_LADDER_WHOLE_TILES && (g->m % SIDE || g->n % SIDE || g->k % SIDE))
        return cudaErrorInvalidValue;
    return kernels[call->stage] ? launch_tiles(stream, g, kernels[call->stage]) : launch_row(stream, g);
}
