/* reduce_columns_cuda.cuh - how threads walk down columns, whatever the type: a thread has one column or some
 * neighbours, and reads rows ahead.
 *
 * COLUMN is what a thread knows of one column's open leaf: raw; LEAVES: 1 where leaves have to be closed where they
 * end, 0 where all is exact and only the end counts; begin(), load(record), take(raw, row), store(want, record). */
#ifndef GM_KERNELS_REDUCE_REDUCE_COLUMNS_CUDA_CUH
#define GM_KERNELS_REDUCE_REDUCE_COLUMNS_CUDA_CUH

#include "kernels/dispatch.cuh"
#include "kernels/reduce/calls.h"
#include "kernels/element.h"

extern "C" int gm_cuda_reduce_columns_whole(
    gm_cuda_stream stream, const gm_reduce_columns_call *call); /* integers: reduce_columns_cuda_whole.cu */

enum {
    COLUMN_THREADS = 128,
    ROWS_AHEAD = 16,        /* rows that a thread loads before it uses them */
    BUSY_THREADS = 1 << 17, /* enough threads for any device: with fewer columns, rows are distributed as well */
    MOST_GROUPS = 32768,    /* groups of rows in one launch */
    WHOLE_GROUPS = 1024     /* the same where every number gives the same result; groups fold one after the other */
};

template <int BYTES>
struct raw_of;
template <>
struct raw_of<1> {
    typedef gm_raw1 type;
};
template <>
struct raw_of<2> {
    typedef gm_raw2 type;
};
template <>
struct raw_of<4> {
    typedef gm_raw4 type;
};
template <>
struct raw_of<8> {
    typedef gm_raw8 type;
};

/* Rows [from, to) of the call for columns [col, col + NEIGHBOURS), which lie in one word. */
template <typename COLUMN, int NEIGHBOURS>
static __device__ __forceinline__ void walk_down(COLUMN *column, const gm_reduce_columns_call &call, int64_t col,
                                                 int64_t from, int64_t to)
{
    const int bytes = sizeof(typename COLUMN::raw);
    typedef typename raw_of<bytes * NEIGHBOURS>::type word;
    const char *at = (const char *)call.src + from * (int64_t)call.pitch + col * bytes;
    for (int64_t row = from; row < to; row += ROWS_AHEAD) {
        word w[ROWS_AHEAD];
#pragma unroll
        for (int a = 0; a < ROWS_AHEAD; a++) {
            if (row + a < to)
                w[a] = __ldcs((const word *)(at + a * (int64_t)call.pitch));
        }
        at += ROWS_AHEAD * (int64_t)call.pitch;
#pragma unroll
        for (int a = 0; a < ROWS_AHEAD; a++) {
            if (row + a < to) {
#pragma unroll
                for (int k = 0; k < NEIGHBOURS; k++)
                    column[k].take(order_raw((typename COLUMN::raw)(w[a] >> (8 * bytes * k)), call.swap),
                                   call.row0 + row + a);
            }
        }
    }
}

/* Adds the open leaf to the total. */
template <typename COLUMN>
static __device__ __forceinline__ void close_leaf(COLUMN *column, unsigned want, gm_total *total)
{
    gm_moments leaf;
    gm_total sum = *total; /* all of it at once: accesses to single fields in global memory would wait one by one */
    column->store(want, &leaf);
    gm_total_add(&sum, &leaf, (gm_dtype_kind)COLUMN::KIND);
    *total = sum;
    column->begin();
}

/* Takes rows [from, to) of the call and closes leaves that end there. */
template <typename COLUMN, int NEIGHBOURS>
static __device__ __forceinline__ void walk_leaves(COLUMN *column, const gm_reduce_columns_call &call, int64_t col,
                                                   int64_t from, int64_t to)
{
    for (int64_t row = from, end; row < to; row = end) {
        end = to;
        if (COLUMN::LEAVES && end > row + GM_LEAF_COLUMN - (call.row0 + row) % GM_LEAF_COLUMN)
            end = row + GM_LEAF_COLUMN - (call.row0 + row) % GM_LEAF_COLUMN;
        walk_down<COLUMN, NEIGHBOURS>(column, call, col, row, end);
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++) {
            if (COLUMN::LEAVES && (call.row0 + end) % GM_LEAF_COLUMN == 0)
                close_leaf(&column[k], call.want, &call.total[col + k]);
        }
    }
}

/* By all threads of a block, neighbours side by side: a record is much longer than what one reads at a time, and pieces
 * may be of a single row. */
static __device__ __forceinline__ void copy_records(gm_moments *to, const gm_moments *from, int records)
{
    const int words = (int)(sizeof(gm_moments) / sizeof(uint4));
    for (int i = threadIdx.x; i < records * words; i += COLUMN_THREADS)
        ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

/* Rows [from, to) of the call, starting with the open records; close: the open leaves are then added to the totals. */
template <typename COLUMN, int NEIGHBOURS>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    walk_columns(gm_reduce_columns_call call, int64_t from, int64_t to, int begin, int close)
{
    const int width = COLUMN_THREADS * NEIGHBOURS;
    __shared__ __align__(16) gm_moments record[width];
    int64_t corner = (int64_t)blockIdx.x * width, col = corner + threadIdx.x * NEIGHBOURS;
    int records = call.cols - corner < width ? (int)(call.cols - corner) : width;
    gm_moments *own = &record[threadIdx.x * NEIGHBOURS];
    COLUMN column[NEIGHBOURS];
    if (!begin)
        copy_records(record, call.open + corner, records);
    __syncthreads();
    if (col < call.cols) {
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++) {
            column[k].begin();
            if (begin)
                gm_total_begin(&call.total[col + k]);
            else
                column[k].load(&own[k]);
        }
        walk_leaves<COLUMN, NEIGHBOURS>(column, call, col, from, to);
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++) {
            if (close)
                close_leaf(&column[k], call.want, &call.total[col + k]);
            column[k].store(call.want, &own[k]);
        }
    }
    __syncthreads();
    copy_records(call.open + corner, record, records);
}

/* Groups of rows in parallel: group g has rows [from + g each, + each) up to `to`; its records are scratch[g]: [cols].
 */
template <typename COLUMN, int NEIGHBOURS>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    walk_groups(gm_reduce_columns_call call, int64_t from, int64_t to, int64_t each)
{
    int64_t col = ((int64_t)blockIdx.x * COLUMN_THREADS + threadIdx.x) * NEIGHBOURS, row = from + blockIdx.y * each;
    COLUMN column[NEIGHBOURS];
    if (col >= call.cols)
        return;
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++)
        column[k].begin();
    walk_down<COLUMN, NEIGHBOURS>(column, call, col, row, row + each < to ? row + each : to);
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++)
        column[k].store(call.want, &call.scratch[blockIdx.y * call.cols + col + k]);
}

/* Adds records of groups to the totals in order. FOLDED threads of a block make totals of FOLDED groups of one column;
 * one thread merges these in order. */
enum { FOLDED = 64 };
template <int KIND>
static __global__ void __launch_bounds__(FOLDED) fold_groups(gm_reduce_columns_call call, int64_t groups)
{
    __shared__ gm_total part[FOLDED];
    int64_t col = blockIdx.x;
    gm_total total;
    if (threadIdx.x == 0)
        total = call.total[col];
    for (int64_t at = 0; at < groups; at += FOLDED) {
        int n = (int)(groups - at < FOLDED ? groups - at : FOLDED);
        if ((int)threadIdx.x < n)
            gm_total_of(&part[threadIdx.x], &call.scratch[(at + threadIdx.x) * call.cols + col], (gm_dtype_kind)KIND);
        __syncthreads();
        for (int g = 0; threadIdx.x == 0 && g < n; g++)
            gm_total_merge(&total, &part[g], (gm_dtype_kind)KIND);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        call.total[col] = total;
}

template <typename COLUMN, int NEIGHBOURS>
static int launch_walk(cudaStream_t stream, const gm_reduce_columns_call *call, int64_t from, int64_t to, int begin,
                       int close)
{
    int64_t threads = call->cols / NEIGHBOURS, blocks = (threads + COLUMN_THREADS - 1) / COLUMN_THREADS;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    walk_columns<COLUMN, NEIGHBOURS><<<(unsigned)blocks, COLUMN_THREADS, 0, stream>>>(*call, from, to, begin, close);
    return cudaGetLastError();
}

/* Rows [from, to) in groups of `each`, as many at once as scratch has room for. */
template <typename COLUMN, int NEIGHBOURS>
static int launch_groups(cudaStream_t stream, const gm_reduce_columns_call *call, int64_t from, int64_t to,
                         int64_t each)
{
    int64_t most = call->scratch_count / call->cols;
    if (most > MOST_GROUPS)
        most = MOST_GROUPS;
    unsigned blocks = (unsigned)((call->cols / NEIGHBOURS + COLUMN_THREADS - 1) / COLUMN_THREADS);
    while (from < to) {
        int64_t groups = (to - from + each - 1) / each, end;
        groups = groups < most ? groups : most;
        end = groups * each < to - from ? from + groups * each : to;
        walk_groups<COLUMN, NEIGHBOURS>
            <<<dim3(blocks, (unsigned)groups), COLUMN_THREADS, 0, stream>>>(*call, from, end, each);
        int error = cudaGetLastError();
        if (error != cudaSuccess)
            return error;
        fold_groups<COLUMN::KIND><<<(unsigned)call->cols, FOLDED, 0, stream>>>(*call, groups);
        error = cudaGetLastError();
        if (error != cudaSuccess)
            return error;
        from = end;
    }
    return cudaSuccess;
}

/* A whole call: rows up to the end of a leaf, groups, remaining rows; or all as rows, if there are many columns. */
template <typename COLUMN, int NEIGHBOURS>
static int launch_columns(cudaStream_t stream, const gm_reduce_columns_call *call)
{
    int64_t head = COLUMN::LEAVES ? (GM_LEAF_COLUMN - call->row0 % GM_LEAF_COLUMN) % GM_LEAF_COLUMN : 0,
            each = GM_LEAF_COLUMN, middle, wanted;
    if (call->cols == 0)
        return cudaSuccess;
    middle = head < call->rows ? (call->rows - head) / GM_LEAF_COLUMN * GM_LEAF_COLUMN : 0;
    wanted = BUSY_THREADS / (call->cols / NEIGHBOURS > 0 ? call->cols / NEIGHBOURS : 1); /* groups */
    if (wanted < 2 || middle < 2 * GM_LEAF_COLUMN || call->scratch == NULL || call->scratch_count < 2 * call->cols)
        return launch_walk<COLUMN, NEIGHBOURS>(stream, call, 0, call->rows, call->begin, call->end);
    if (!COLUMN::LEAVES) { /* groups of the largest length */
        int64_t room = call->scratch_count / call->cols;
        wanted = wanted < room ? wanted : room;
        if (wanted > WHOLE_GROUPS)
            wanted = WHOLE_GROUPS;
        if (middle / wanted > GM_LEAF_COLUMN)
            each = (middle + wanted - 1) / wanted;
    }
    int error = launch_walk<COLUMN, NEIGHBOURS>(stream, call, 0, head, call->begin, !COLUMN::LEAVES);
    if (error == cudaSuccess)
        error = launch_groups<COLUMN, NEIGHBOURS>(stream, call, head, head + middle, each);
    if (error == cudaSuccess && (head + middle < call->rows || call->end))
        error = launch_walk<COLUMN, NEIGHBOURS>(stream, call, head + middle, call->rows, 0, call->end);
    return error;
}

/* Whether words of NEIGHBOURS elements are aligned in every row. */
static inline int fits_words(const gm_reduce_columns_call *call, size_t neighbours)
{
    size_t size = neighbours * gm_dtype_size(call->type);
    return (((size_t)call->src | (call->rows > 1 ? call->pitch : 0)) & (size - 1)) == 0 &&
           (size_t)call->cols % neighbours == 0;
}

#endif
