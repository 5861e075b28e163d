/* Products of a matrix with vectors, in float64. Rows and columns have separate kernels without atomic additions: one
 * block computes each sum in an order that depends on the shape of the matrix alone, so that the bits are always the
 * same. A call for both reads the matrix twice, unless it has work space (probe_both_cuda.cuh).
 *
 * The memory is the limit: a thread reads whole vectors of elements, several of them before it uses the first, and an
 * element costs a conversion and three fused operations, whatever is asked for. */
#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/launch_cuda.cuh"
#include "kernels/matmul/probe_both_cuda.cuh"
#include "kernels/matmul/probe_cuda.cuh"

enum {
    SUMS = 3,         /* with a vector, of magnitudes, of squares */
    CHUNK = 2048,     /* elements of p that are in shared memory at a time */
    ROW_BLOCKS = 512, /* wanted, to fill any device: if rows are few, several warps share each */
    COLUMN_BLOCKS = 256
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
    int aligned; /* rows begin at borders of vectors */
    int across;  /* rows: warps that share a row; columns: lanes beside each other, the others have other rows */
} half_call;

static_assert(sizeof(half_call) <= 128, "a parameter that stays out of local memory");

static_assert(CHUNK % (BLOCK_WARPS * 256) == 0, "a chunk of p has the same number of spans for each warp");

/* Row 0 of this block's matrix. */
template <typename ELEMENT>
static __device__ __forceinline__ const char *matrix_of(const half_call &call)
{
    return (const char *)call.m + blockIdx.y * call.next_m;
}

/* The vector of this block's matrix; NULL: none is asked for. */
static __device__ __forceinline__ const double *vector_of(const half_call &call)
{
    return call.vector != NULL ? call.vector + blockIdx.y * call.next_vector : NULL;
}

/* Fused by name: elsewhere the compiler fuses nothing. */
static __device__ __forceinline__ void add_terms(double sum[SUMS], double x, double y)
{
    sum[0] = fma(x, y, sum[0]);
    sum[1] = fma(fabs(x), fabs(y), sum[1]);
    sum[2] = fma(x, x, sum[2]);
}

static __device__ __forceinline__ double *output(const half_call &call, int which)
{
    double *out = which == 0 ? call.sum : which == 1 ? call.sum_abs : call.sum_sq;
    return out != NULL ? out + blockIdx.y * call.next_sum : NULL;
}

/* The sum of a value over the lanes of a warp, in lane 0. */
static __device__ __forceinline__ double warp_sum(double value)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

/* `fill` elements of p from `first` on; 0 after the last one. */
static __device__ __forceinline__ void read_chunk(double *to, const double *p, int64_t first, int64_t cols, int fill)
{
    for (int k = threadIdx.x; k < fill; k += BLOCK)
        to[k] = p != NULL && first + k < cols ? __ldg(p + first + k) : 0;
}

/* Adds the terms of a span of ROWS rows. row: these rows at this lane's first element, of which cols are left. */
template <typename ELEMENT>
static __device__ __forceinline__ void add_span(const half_call &call, const char *const row[], int64_t left,
                                                const double *p, double sum[][SUMS])
{
    typedef gm_access<ELEMENT> access;
    const int next = access::LENGTH * LANES, lane = threadIdx.x % LANES;
    typename access::vector x[access::ROWS][access::VECTORS];
    if (call.aligned && left + lane * access::LENGTH >= access::SPAN) { /* the same for the warp */
#pragma unroll
        for (int r = 0; r < access::ROWS; r++) {
#pragma unroll
            for (int v = 0; v < access::VECTORS; v++)
                access::read(&x[r][v], (const typename ELEMENT::raw *)row[r] + v * next);
        }
    } else {
#pragma unroll
        for (int r = 0; r < access::ROWS; r++) {
#pragma unroll
            for (int v = 0; v < access::VECTORS; v++)
                access::read_some(&x[r][v], (const typename ELEMENT::raw *)row[r] + v * next, left - v * next);
        }
    }
#pragma unroll
    for (int v = 0; v < access::VECTORS; v++) {
#pragma unroll
        for (int k = 0; k < access::LENGTH; k++) {
            double y = p[v * next + k];
#pragma unroll
            for (int r = 0; r < access::ROWS; r++) {
                double value;
                ELEMENT::read(x[r][v].part[k], call.swap, &value);
                add_terms(sum[r], value, y);
            }
        }
    }
}

/* A warp has ROWS rows, or a part of their spans. */
template <typename ELEMENT>
static __global__ void __launch_bounds__(BLOCK, 2) probe_rows(const half_call call)
{
    typedef gm_access<ELEMENT> access;
    const int ROWS = access::ROWS, SPAN = access::SPAN;
    __shared__ __align__(16) double chunk[2][CHUNK];
    __shared__ double part[BLOCK_WARPS][ROWS][SUMS];
    const double *vector = vector_of(call);
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, at = lane * access::LENGTH;
    const int column = warp % call.across, groups = BLOCK_WARPS / call.across;
    for (int64_t i0 = (int64_t)blockIdx.x * groups * ROWS; i0 < call.rows; i0 += (int64_t)gridDim.x * groups * ROWS) {
        const char *row[ROWS];
        double sum[ROWS][SUMS] = {{0}};
#pragma unroll
        for (int r = 0; r < ROWS; r++) { /* after the last row: the last one again, unused */
            int64_t i = i0 + warp / call.across * ROWS + r;
            row[r] = matrix_of<ELEMENT>(call) + (i < call.rows ? i : call.rows - 1) * call.pitch +
                     (column * SPAN + at) * access::SIZE;
        }
        int buffer = 0; /* two by turns: a warp that is ahead does not overwrite what others read */
        for (int64_t j0 = 0; j0 < call.cols; j0 += CHUNK, buffer ^= 1) {
            int64_t left = call.cols - j0;
            int fill = left < CHUNK ? ((int)left + SPAN - 1) / SPAN * SPAN : CHUNK;
            read_chunk(chunk[buffer], vector, j0, call.cols, fill);
            __syncthreads();
            for (int j = column * SPAN; j < fill; j += call.across * SPAN) {
                add_span<ELEMENT>(call, row, left - j - at, chunk[buffer] + j + at, sum);
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    row[r] += call.across * SPAN * access::SIZE;
            }
        }
#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            if (output(call, s) == NULL)
                continue;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                double total = warp_sum(sum[r][s]);
                if (lane == 0)
                    part[warp][r][s] = total;
            }
        }
        __syncthreads();
        if (threadIdx.x < groups * ROWS * SUMS) {
            int i = threadIdx.x / SUMS, s = threadIdx.x % SUMS, first = i / ROWS * call.across;
            double *out = output(call, s), total = 0;
            if (out != NULL && i0 + i < call.rows) {
                for (int w = first; w < first + call.across; w++)
                    total += part[w][i % ROWS][s];
                out[i0 + i] += total;
            }
        }
        __syncthreads();
    }
}

/* This thread's sums of LENGTH columns from j on, over the rows `first`, first + groups, ... */
template <typename ELEMENT>
static __device__ __forceinline__ void sum_columns(const half_call &call, int64_t j, int first, int groups,
                                                   double sum[][SUMS])
{
    typedef gm_access<ELEMENT> access;
    const int AHEAD = access::AHEAD;
    const double *vector = vector_of(call);
    const char *row = matrix_of<ELEMENT>(call) + first * call.pitch + j * access::SIZE;
    const size_t next = groups * call.pitch;
    const int64_t left = call.cols - j;
    const int whole = call.aligned && left >= access::LENGTH;
    for (int64_t i = first; i < call.rows; i += AHEAD * groups, row += AHEAD * next) {
        typename access::vector x[AHEAD];
        double q[AHEAD];
        if (whole && i + (AHEAD - 1) * groups < call.rows) {
#pragma unroll
            for (int a = 0; a < AHEAD; a++) {
                access::read(&x[a], (const typename ELEMENT::raw *)(row + a * next));
                q[a] = vector != NULL ? __ldg(vector + i + a * groups) : 0;
            }
        } else {
#pragma unroll
            for (int a = 0; a < AHEAD; a++) { /* after the last row: zeros */
                int is_row = i + a * groups < call.rows;
                access::read_some(&x[a], (const typename ELEMENT::raw *)(row + a * next), is_row ? left : 0);
                q[a] = vector != NULL && is_row ? __ldg(vector + i + a * groups) : 0;
            }
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
#pragma unroll
            for (int k = 0; k < access::LENGTH; k++) {
                double value;
                ELEMENT::read(x[a].part[k], call.swap, &value);
                add_terms(sum[k], value, q[a]);
            }
        }
    }
}

/* A block has the columns of `across` lanes beside each other; its other lanes and warps share their rows. */
template <typename ELEMENT>
static __global__ void __launch_bounds__(BLOCK, 2) probe_columns(const half_call call)
{
    const int LENGTH = gm_access<ELEMENT>::LENGTH;
    __shared__ double part[BLOCK_WARPS][LANES * LENGTH];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, column = lane % call.across;
    const int beside = LANES / call.across, width = call.across * LENGTH;
    for (int64_t j0 = (int64_t)blockIdx.x * width; j0 < call.cols; j0 += (int64_t)gridDim.x * width) {
        double sum[LENGTH][SUMS] = {{0}};
        sum_columns<ELEMENT>(call, j0 + column * LENGTH, warp * beside + lane / call.across, BLOCK_WARPS * beside, sum);
        __syncwarp();
#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            double *out = output(call, s);
            if (out == NULL) /* the same for the block */
                continue;
#pragma unroll
            for (int k = 0; k < LENGTH; k++) {
                double total = sum[k][s];
                for (int step = call.across; step < LANES; step *= 2)
                    total += __shfl_xor_sync(0xffffffff, total, step);
                if (lane < call.across)
                    part[warp][column * LENGTH + k] = total;
            }
            __syncthreads();
            if (threadIdx.x < width && j0 + threadIdx.x < call.cols) {
                double total = 0;
                for (int w = 0; w < BLOCK_WARPS; w++)
                    total += part[w][threadIdx.x];
                out[j0 + threadIdx.x] += total;
            }
            __syncthreads();
        }
    }
}

static_assert(LANES * 8 <= BLOCK, "a thread for each column of a block");

static unsigned grid_of(int64_t length, int64_t each)
{
    return (unsigned)gm_min(gm_ceil_div(length, each), 1 << 20); /* each block goes on to further rows or columns */
}

/* Warps that share a row: only a row that is long enough, and if there are few. No function of the batch, which changes
 * no bits. */
template <typename ELEMENT>
static int warps_across(int64_t rows, int64_t cols)
{
    typedef gm_access<ELEMENT> access;
    int across = 1;
    while (across < BLOCK_WARPS && across * access::SPAN < cols &&
           gm_ceil_div(rows, BLOCK_WARPS / across * access::ROWS) < ROW_BLOCKS)
        across *= 2;
    return across;
}

/* Lanes beside each other: those that the columns need, but fewer, down to 32 bytes, if there would be few blocks and
 * rows enough for the other lanes. */
template <typename ELEMENT>
static int lanes_across(int64_t rows, int64_t cols)
{
    typedef gm_access<ELEMENT> access;
    int across = LANES;
    while (across > 1 && across / 2 * access::LENGTH >= cols)
        across /= 2;
    while (across * access::BYTES > 32 && gm_ceil_div(cols, across * access::LENGTH) < COLUMN_BLOCKS &&
           2 * (LANES / across) * BLOCK_WARPS * access::AHEAD <= rows)
        across /= 2;
    return across;
}

template <typename ELEMENT>
static int launch(cudaStream_t stream, const gm_probe_call *c, unsigned batch)
{
    typedef gm_access<ELEMENT> access;
    const int aligned = (((size_t)c->m | c->pitch | (batch > 1 ? c->next_m : 0)) & (access::BYTES - 1)) == 0;
    if (takes_both<ELEMENT>(c))
        return launch_both<ELEMENT>(stream, c, aligned);
    if (c->r != NULL || c->r_abs != NULL || c->r_sq != NULL) {
        const half_call rows = {
            c->rows,  c->cols, c->m,      c->pitch,  c->next_m, c->p,    c->r,
            c->r_abs, c->r_sq, c->next_p, c->next_r, c->swap,   aligned, warps_across<ELEMENT>(c->rows, c->cols)};
        dim3 grid(grid_of(c->rows, BLOCK_WARPS / rows.across * access::ROWS), batch);
        probe_rows<ELEMENT><<<grid, BLOCK, 0, stream>>>(rows);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess)
            return error;
    }
    if (c->s != NULL || c->s_abs != NULL || c->s_sq != NULL) {
        const half_call columns = {
            c->rows,  c->cols, c->m,      c->pitch,  c->next_m, c->q,    c->s,
            c->s_abs, c->s_sq, c->next_q, c->next_s, c->swap,   aligned, lanes_across<ELEMENT>(c->rows, c->cols)};
        probe_columns<ELEMENT>
            <<<dim3(grid_of(c->cols, columns.across * access::LENGTH), batch), BLOCK, 0, stream>>>(columns);
    }
    return cudaGetLastError();
}

extern "C" int gm_cuda_probe(gm_cuda_stream stream, const gm_probe_call *call)
{
    if (call->rows == 0 || call->cols == 0)
        return dispatch(call->type, [&](auto element) {
            using type = decltype(element);
            return load_code(probe_rows<type>, probe_columns<type>, probe_both<type>, add_probe_parts);
        });
    if (call->batch > GM_BATCH_MOST)
        return cudaErrorInvalidConfiguration;
    if (misaligned(call->m, call->pitch, call->type) || misaligned(call->m, call->next_m, call->type))
        return cudaErrorMisalignedAddress;
    unsigned batch = call->batch > 1 ? (unsigned)call->batch : 1;
    return dispatch(call->type, [&](auto element) { return launch<decltype(element)>(stream, call, batch); });
}
