/* probe_both_cuda.cuh - sums over rows and over columns by one pass over the matrix. A warp has some rows of some
 * columns (gm_probe_cut) and leaves its sums in the work space; a second kernel adds them up in their order. */
#ifndef GM_KERNELS_MATMUL_PROBE_BOTH_CUDA_CUH
#define GM_KERNELS_MATMUL_PROBE_BOTH_CUDA_CUH

#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/probe_cuda.cuh"

/* Of a line: x: with a vector; y: of magnitudes or of squares. */
typedef double2 line_sums;

static_assert(sizeof(line_sums) == GM_PROBE_SUMS * sizeof(double), "the sums that the work space is for");

typedef struct both_call {
    int64_t rows, cols;
    const void *m;
    size_t pitch;
    const double *p, *q;
    line_sums *of_rows, *of_columns; /* [across][rows], [down][cols] */
    int64_t part_rows;
    int across, down;
    int swap;
    int aligned; /* rows begin at borders of vectors */
    int row_magnitudes, column_magnitudes;
} both_call;

static_assert(sizeof(both_call) <= 128, "a parameter that stays out of local memory");

/* The sum over the lanes of value number lane / (LANES / COUNT): each step halves the values that a lane has. */
template <int COUNT>
static __device__ __forceinline__ double sum_lanes(double value[])
{
    const int lane = threadIdx.x % LANES;
    int step = LANES / 2;
#pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2, step /= 2) {
#pragma unroll
        for (int i = 0; i < half; i++) {
            double kept = lane & step ? value[i + half] : value[i], given = lane & step ? value[i] : value[i + half];
            value[i] = kept + __shfl_xor_sync(0xffffffff, given, step);
        }
    }
#pragma unroll
    for (; step > 0; step /= 2)
        value[0] += __shfl_xor_sync(0xffffffff, value[0], step);
    return value[0];
}

template <typename ELEMENT>
static __global__ void __launch_bounds__(BLOCK, 2) probe_both(const both_call call)
{
    typedef gm_access<ELEMENT> access;
    const int LENGTH = access::LENGTH, AHEAD = access::AHEAD, SHARE = LANES / AHEAD;
    const int lane = threadIdx.x % LANES;
    const int64_t part = (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / LANES;
    const int64_t across = part % call.across, down = part / call.across;
    if (down >= call.down)
        return;
    const int64_t j = (across * LANES + lane) * LENGTH, left = call.cols - j;
    const int64_t first = down * call.part_rows, end = min(first + call.part_rows, call.rows);
    const int whole = call.aligned && left >= LENGTH;
    const char *row = (const char *)call.m + first * call.pitch + j * access::SIZE;
    double p[LENGTH], of_column[LENGTH][2] = {{0}};
#pragma unroll
    for (int k = 0; k < LENGTH; k++)
        p[k] = k < left ? __ldg(call.p + j + k) : 0;
    for (int64_t i = first; i < end; i += AHEAD, row += AHEAD * call.pitch) {
        typename access::vector x[AHEAD];
        double q[AHEAD], sum[AHEAD], second[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
            q[a] = i + a < end ? __ldg(call.q + i + a) : 0;
        if (whole && i + AHEAD <= end) {
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
                access::read(&x[a], (const typename ELEMENT::raw *)(row + a * call.pitch));
        } else {
#pragma unroll
            for (int a = 0; a < AHEAD; a++) /* after the last row: zeros */
                access::read_some(&x[a], (const typename ELEMENT::raw *)(row + a * call.pitch), i + a < end ? left : 0);
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            sum[a] = second[a] = 0;
#pragma unroll
            for (int k = 0; k < LENGTH; k++) {
                double value, size;
                ELEMENT::read(x[a].part[k], call.swap, &value);
                size = fabs(value);
                sum[a] = fma(value, p[k], sum[a]);
                second[a] = fma(size, call.row_magnitudes ? fabs(p[k]) : size, second[a]);
                of_column[k][0] = fma(value, q[a], of_column[k][0]);
                of_column[k][1] = fma(size, call.column_magnitudes ? fabs(q[a]) : size, of_column[k][1]);
            }
        }
        line_sums total = {sum_lanes<AHEAD>(sum), sum_lanes<AHEAD>(second)};
        int64_t at = i + lane / SHARE;
        if (lane % SHARE == 0 && at < end)
            call.of_rows[across * call.rows + at] = total;
    }
#pragma unroll
    for (int k = 0; k < LENGTH; k++)
        if (k < left)
            call.of_columns[down * call.cols + j + k] = line_sums{of_column[k][0], of_column[k][1]};
}

/* The sums of the parts of some lines, and what they are added to. */
typedef struct part_sums {
    const line_sums *parts; /* [count][lines] */
    int count;
    int64_t lines;
    double *sum, *second; /* second: may be NULL */
} part_sums;

/* A block has LANES rows or, if its y is 1, columns; its warps share their parts. */
static __global__ void __launch_bounds__(BLOCK) add_probe_parts(const part_sums rows, const part_sums columns)
{
    __shared__ line_sums shared[BLOCK_WARPS][LANES];
    const bool by_row = blockIdx.y == 0; /* members one by one: a choice of structs would be in local memory */
    const line_sums *parts = by_row ? rows.parts : columns.parts;
    const int count = by_row ? rows.count : columns.count;
    const int64_t lines = by_row ? rows.lines : columns.lines;
    double *sum = by_row ? rows.sum : columns.sum, *second = by_row ? rows.second : columns.second;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int64_t line = (int64_t)blockIdx.x * LANES + lane;
    line_sums total = {0, 0};
#pragma unroll 4
    for (int c = warp; c < count && line < lines; c += BLOCK_WARPS) {
        line_sums part = parts[c * lines + line];
        total.x += part.x;
        total.y += part.y;
    }
    shared[warp][lane] = total;
    __syncthreads();
    if (warp > 0 || line >= lines)
        return;
    for (int w = 1; w < BLOCK_WARPS; w++) {
        total.x += shared[w][lane].x;
        total.y += shared[w][lane].y;
    }
    sum[line] += total.x;
    if (second != NULL)
        second[line] += total.y;
}

/* Is the call one for this pass, by what it asks for and by its work space? */
template <typename ELEMENT>
static int takes_both(const gm_probe_call *c)
{
    typedef gm_access<ELEMENT> access;
    const gm_probe_parts parts = gm_probe_cut(c->rows, c->cols, access::SIZE);
    return c->r != NULL && c->s != NULL && (c->r_abs == NULL || c->r_sq == NULL) &&
           (c->s_abs == NULL || c->s_sq == NULL) && c->batch <= 1 && parts.bytes > 0 && parts.bytes <= c->work_bytes &&
           parts.cols == LANES * access::LENGTH;
}

template <typename ELEMENT>
static int launch_both(cudaStream_t stream, const gm_probe_call *c, int aligned)
{
    const gm_probe_parts parts = gm_probe_cut(c->rows, c->cols, gm_access<ELEMENT>::SIZE);
    const int across = (int)parts.across, down = (int)parts.down;
    line_sums *of_rows = (line_sums *)c->work, *of_columns = of_rows + parts.across * c->rows;
    const both_call call = {c->rows, c->cols, c->m,       c->pitch,         c->p,
                            c->q,    of_rows, of_columns, parts.rows,       across,
                            down,    c->swap, aligned,    c->r_abs != NULL, c->s_abs != NULL};
    const part_sums rows = {of_rows, across, c->rows, c->r, c->r_abs != NULL ? c->r_abs : c->r_sq};
    const part_sums columns = {of_columns, down, c->cols, c->s, c->s_abs != NULL ? c->s_abs : c->s_sq};
    probe_both<ELEMENT><<<(unsigned)gm_ceil_div(parts.across * parts.down, BLOCK_WARPS), BLOCK, 0, stream>>>(call);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        return error;
    add_probe_parts<<<dim3((unsigned)gm_ceil_div(gm_max(c->rows, c->cols), LANES), 2), BLOCK, 0, stream>>>(rows,
                                                                                                           columns);
    return cudaGetLastError();
}

#endif
