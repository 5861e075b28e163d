/* Products of a matrix with vectors, in float64. Rows and columns have separate kernels without atomic additions: one
 * block computes each sum in an order that depends on the shape and the alignment of the matrix alone, so that the bits
 * are always the same. Where all rows begin at multiples of 16 bytes, a thread reads four elements at once, or two of 8
 * bytes. A call for both reads the matrix twice. */
#include "kernels/dispatch.cuh"
#include "kernels/elementwise_cuda.cuh"
#include "kernels/matmul/calls.h"

enum {
    SUMS = 3,        /* with a vector, of magnitudes, of squares */
    WORD = 16,       /* bytes: alignment */
    MOST_ROWS = 4,   /* rows of a block at a time, for which an element of p is read once */
    FEW_ROWS = 1024, /* with less, blocks of MOST_ROWS would be too few for a device: they take one row */
    ROW_THREADS = 256,
    COLUMN_WARPS = 16,  /* warps that share the rows of a strip of columns, one or some for each lane */
    COLUMN_AHEAD = 8,   /* rows of a column that are read before they are used */
    COLUMN_STRIPS = 128 /* enough for a device, so that lanes have some columns */
};

/* A call as one of the kernels gets it: the sums over rows, with p, or over columns, with q. A parameter of more than
 * 128 bytes would be kept in local memory. */
typedef struct half_call {
    int64_t rows, cols;
    const void *m;
    size_t pitch, next_m;
    const double *vector;
    double *sum, *sum_abs, *sum_sq;
    int64_t next_vector, next_sum;
    int swap;
} half_call;

static_assert(sizeof(half_call) <= 128, "a parameter that stays out of local memory");

/* Elements side by side that a thread reads at once. */
template <typename ELEMENT, int COUNT>
struct __align__(COUNT * sizeof(typename ELEMENT::raw)) word
{
    typename ELEMENT::raw v[COUNT];
};

template <typename ELEMENT>
static __device__ __forceinline__ const typename ELEMENT::raw *row_of(const half_call &call, int64_t i)
{
    return (const typename ELEMENT::raw *)((const char *)call.m + blockIdx.y * call.next_m + i * call.pitch);
}

/* The vector of this block's matrix; NULL: none is asked for. */
static __device__ __forceinline__ const double *vector_of(const half_call &call)
{
    return call.vector != NULL ? call.vector + blockIdx.y * call.next_vector : NULL;
}

static __device__ __forceinline__ void add_terms(double sum[SUMS], double x, double y)
{
    sum[0] += x * y;
    sum[1] += fabs(x) * fabs(y);
    sum[2] += x * x;
}

static __device__ __forceinline__ void add_out(const half_call &call, int which, int64_t at, double sum)
{
    double *out = which == 0 ? call.sum : which == 1 ? call.sum_abs : call.sum_sq;
    if (out != NULL)
        out[blockIdx.y * call.next_sum + at] += sum;
}

/* The sum of a value over the lanes of a warp, in lane 0. */
static __device__ __forceinline__ double warp_sum(double value)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

/* Adds elements [COUNT at, COUNT (at + 1)) of some rows to their sums. */
template <typename ELEMENT, int COUNT, int ROWS>
static __device__ __forceinline__ void add_words(const half_call &call, const double *vector,
                                                 const typename ELEMENT::raw *const (&row)[ROWS], int64_t at,
                                                 double (&sum)[ROWS][SUMS])
{
    word<ELEMENT, COUNT> raw[ROWS];
    double p[COUNT];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        raw[r] = ((const word<ELEMENT, COUNT> *)row[r])[at];
#pragma unroll
    for (int e = 0; e < COUNT; e++)
        p[e] = vector != NULL ? vector[at * COUNT + e] : 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
            double x;
            ELEMENT::read(raw[r].v[e], call.swap, &x);
            add_terms(sum[r], x, p[e]);
        }
    }
}

template <typename ELEMENT, int COUNT, int ROWS>
static __global__ void __launch_bounds__(ROW_THREADS, 2) probe_rows(const half_call call)
{
    const double *vector = vector_of(call);
    __shared__ double part[ROW_THREADS / LANES][ROWS][SUMS];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int64_t words = call.cols / COUNT;
    for (int64_t i0 = (int64_t)blockIdx.x * ROWS; i0 < call.rows; i0 += (int64_t)gridDim.x * ROWS) {
        const typename ELEMENT::raw *row[ROWS];
        double sum[ROWS][SUMS] = {{0}};
#pragma unroll
        for (int r = 0; r < ROWS; r++) { /* after the last row: the last one again, unused */
            row[r] = row_of<ELEMENT>(call, i0 + r < call.rows ? i0 + r : call.rows - 1);
        }
#pragma unroll(COUNT > 1 ? 2 : 4)
        for (int64_t j = threadIdx.x; j < words; j += ROW_THREADS)
            add_words<ELEMENT, COUNT>(call, vector, row, j, sum);
        if (COUNT > 1 && words * COUNT + threadIdx.x < call.cols)
            add_words<ELEMENT, 1>(call, vector, row, words * COUNT + threadIdx.x, sum);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int s = 0; s < SUMS; s++) {
                double total = warp_sum(sum[r][s]);
                if (lane == 0)
                    part[warp][r][s] = total;
            }
        }
        __syncthreads();
        if (threadIdx.x < ROWS * SUMS) {
            int r = threadIdx.x / SUMS, s = threadIdx.x % SUMS;
            double total = 0;
            for (int w = 0; w < ROW_THREADS / LANES; w++)
                total += part[w][r][s];
            if (i0 + r < call.rows)
                add_out(call, s, i0 + r, total);
        }
        __syncthreads();
    }
}

/* This thread's sums of COUNT columns from j on over the rows of its warp: warp, warp + COLUMN_WARPS, ... */
template <typename ELEMENT, int COUNT>
static __device__ __forceinline__ void sum_columns(const half_call &call, int64_t j, int warp,
                                                   double (&sum)[COUNT][SUMS])
{
    const double *vector = vector_of(call);
    for (int64_t i0 = warp; i0 < call.rows; i0 += COLUMN_AHEAD * COLUMN_WARPS) {
        word<ELEMENT, COUNT> raw[COLUMN_AHEAD];
        double q[COLUMN_AHEAD];
#pragma unroll
        for (int a = 0; a < COLUMN_AHEAD; a++) {
            int64_t i = i0 + a * COLUMN_WARPS;
            if (i < call.rows) {
                raw[a] = *(const word<ELEMENT, COUNT> *)(row_of<ELEMENT>(call, i) + j);
                q[a] = vector != NULL ? vector[i] : 0;
            }
        }
#pragma unroll
        for (int a = 0; a < COLUMN_AHEAD; a++) {
            if (i0 + a * COLUMN_WARPS < call.rows) {
#pragma unroll
                for (int e = 0; e < COUNT; e++) {
                    double x;
                    ELEMENT::read(raw[a].v[e], call.swap, &x);
                    add_terms(sum[e], x, q[a]);
                }
            }
        }
    }
}

/* COUNT > 1: call.cols is a multiple of it. */
template <typename ELEMENT, int COUNT>
static __global__ void __launch_bounds__(COLUMN_WARPS *LANES) probe_columns(const half_call call)
{
    __shared__ double part[SUMS][COLUMN_WARPS][LANES];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    for (int64_t j0 = (int64_t)blockIdx.x * LANES * COUNT; j0 < call.cols; j0 += (int64_t)gridDim.x * LANES * COUNT) {
        const int64_t j = j0 + lane * COUNT;
        double sum[COUNT][SUMS] = {{0}};
        if (j < call.cols)
            sum_columns<ELEMENT, COUNT>(call, j, warp, sum);
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
#pragma unroll
            for (int s = 0; s < SUMS; s++)
                part[s][warp][lane] = sum[e][s];
            __syncthreads();
            if (warp < SUMS && j < call.cols) {
                double total = 0;
                for (int w = 0; w < COLUMN_WARPS; w++)
                    total += part[warp][w][lane];
                add_out(call, warp, j + e, total);
            }
            __syncthreads();
        }
    }
}

static unsigned blocks_for(int64_t length, int64_t each)
{
    const int64_t most = 1 << 20; /* each block goes on to further rows or columns */
    int64_t blocks = (length + each - 1) / each;
    return (unsigned)(blocks < most ? blocks : most);
}

template <typename ELEMENT, int COUNT, int ROWS>
static cudaError_t launch_rows(cudaStream_t stream, const half_call &call, unsigned batch)
{
    probe_rows<ELEMENT, COUNT, ROWS><<<dim3(blocks_for(call.rows, ROWS), batch), ROW_THREADS, 0, stream>>>(call);
    return cudaGetLastError();
}

template <typename ELEMENT, int COUNT>
static cudaError_t launch_columns(cudaStream_t stream, const half_call &call, unsigned batch)
{
    probe_columns<ELEMENT, COUNT>
        <<<dim3(blocks_for(call.cols, LANES * COUNT), batch), COLUMN_WARPS * LANES, 0, stream>>>(call);
    return cudaGetLastError();
}

template <typename ELEMENT>
static int launch(cudaStream_t stream, const gm_probe_call *c, unsigned batch)
{
    enum { OF_WORD = WORD / (int)sizeof(typename ELEMENT::raw), COUNT = OF_WORD < 4 ? OF_WORD : 4 };
    const half_call rows = {c->rows, c->cols,  c->m,    c->pitch,  c->next_m, c->p,
                            c->r,    c->r_abs, c->r_sq, c->next_p, c->next_r, c->swap};
    const half_call columns = {c->rows, c->cols,  c->m,    c->pitch,  c->next_m, c->q,
                               c->s,    c->s_abs, c->s_sq, c->next_q, c->next_s, c->swap};
    bool words = ((uintptr_t)c->m | c->pitch | c->next_m) % WORD == 0;
    bool strips = words && c->cols % COUNT == 0 && c->cols / (LANES * COUNT) >= COLUMN_STRIPS;
    cudaError_t error = cudaSuccess;

    if (c->r != NULL || c->r_abs != NULL || c->r_sq != NULL)
        error = !words               ? launch_rows<ELEMENT, 1, MOST_ROWS>(stream, rows, batch)
                : c->rows < FEW_ROWS ? launch_rows<ELEMENT, COUNT, 1>(stream, rows, batch)
                                     : launch_rows<ELEMENT, COUNT, MOST_ROWS>(stream, rows, batch);
    if (error == cudaSuccess && (c->s != NULL || c->s_abs != NULL || c->s_sq != NULL))
        error = strips ? launch_columns<ELEMENT, COUNT>(stream, columns, batch)
                       : launch_columns<ELEMENT, 1>(stream, columns, batch);
    return error;
}

extern "C" int gm_cuda_probe(gm_cuda_stream stream, const gm_probe_call *call)
{
    if (call->rows == 0 || call->cols == 0)
        return cudaSuccess;
    if (call->batch > GM_BATCH_MOST)
        return cudaErrorInvalidConfiguration;
    if (misaligned(call->m, call->pitch, call->type) || misaligned(call->m, call->next_m, call->type))
        return cudaErrorMisalignedAddress;
    unsigned batch = call->batch > 1 ? (unsigned)call->batch : 1;
    return dispatch(call->type, [&](auto element) { return launch<decltype(element)>(stream, call, batch); });
}
