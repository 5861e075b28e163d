/* normalize at the speed of the memory, for the pairs of types that images come in: a thread makes a few words at a time, each of as many elements as the larger
 * type has in 16 bytes. src lies anywhere: where its words are not those of out, two of them are shifted into one. Elements beside whole words of a row,
 * and words that need more than the plain rules (a factor that marks, numbers that are not finite), go one by one. With a sub and a factor for each column
 * a block keeps those of its columns in registers and goes through many rows with them. Everything else is left to normalize_any_cuda.cu. */
#include <math.h>

#include "kernels/normalize_words_cuda.cuh"

/* Element (row, col) by all the rules. */
template <typename IN, typename OUT, typename REAL>
static __device__ __forceinline__ void normalize_one(const gm_normalize_call &call, const gm_limits<REAL> &limits, int64_t row, int64_t col,
                                                     gm_tally *tally)
{
    int64_t at = row * call.cols + col, from = row * call.row_step + col * call.col_step;
    REAL p, factor = ((const REAL *)call.factor)[from];
    IN::read(((const typename IN::raw *)call.src)[at], call.swap, &p);
    REAL v = scaled(p, ((const REAL *)call.sub)[from], factor, limits.add);
    v = OUT::whole() ? whole(v, call.rounding) : v;
    ((typename OUT::raw *)call.out)[at] = stored<OUT>(v, p == p && factor != factor, limits, tally);
}

static __device__ __forceinline__ bool is_finite(float x)
{
    return fabsf(x) <= 0x1.fffffep127f;
}

static __device__ __forceinline__ bool is_finite(double x)
{
    return fabs(x) <= 0x1.fffffffffffffp1023;
}

/* What a block takes, found by trying on an H200: of 256 threads, four words each, u16 to u16 runs at 0.97 of a copy, u16 to f32 at 0.96, f32 to f32 at 0.97 to
 * 0.98; one word each 0.76, as the counts of so many blocks queue up; two words of 512 threads 0.92 to 0.99. By columns u16 to u16 runs at 0.92, u16 to f32 at
 * 0.91, f32 to f32 at 0.94; a ring of cp.async in shared memory instead of registers 0.63 to 0.90. */
enum { ROW_THREADS = 256, ROW_EACH = 4, COLUMN_THREADS = 128, UNROLL = 2, WALK = 16, GROUP = 64, LONG_WALK = 128, LARGE_GROUP = 4096 };

/* What a thread makes at a time: as many elements as the larger of their types has in 16 bytes. */
template <typename IN, typename OUT, typename REAL>
struct shape {
    typedef typename IN::raw in;
    typedef typename OUT::raw out;
    enum {
        COUNT = 16 / (sizeof(in) > sizeof(out) ? sizeof(in) : sizeof(out)),
        FROM = COUNT * sizeof(in) / 4, /* words of 32 bits */
        TO = COUNT * sizeof(out) / 4,
        MANY = COUNT > 4 /* columns: few blocks have room on a processor, and what they subtract and multiply by takes long to load */
    };
};

/* Elements at .. at + COUNT - 1 of the call, made of the words x. */
template <typename IN, typename OUT, typename REAL, int STEP>
static __device__ __forceinline__ void normalize_words(const gm_normalize_call &call, const gm_limits<REAL> &limits, int64_t at,
                                                       words<shape<IN, OUT, REAL>::FROM> x, const REAL *sub, const REAL *factor, gm_tally *tally)
{
    enum { COUNT = shape<IN, OUT, REAL>::COUNT };
    words<shape<IN, OUT, REAL>::TO> y;
    REAL v[COUNT];
    if (call.swap)
        swap_words<sizeof(typename IN::raw)>(&x);
    if (limits.add != 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            v[i] = (unpack<IN>::get(x, i) - sub[i * STEP]) * factor[i * STEP] + limits.add;
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            v[i] = (unpack<IN>::get(x, i) - sub[i * STEP]) * factor[i * STEP];
    }
    pack<IN, OUT>::put(&y, v, limits, call.rounding, tally);
    store_words((typename OUT::raw *)call.out + at, y);
}

/* May the words of elements at .. at + COUNT - 1 be read whole? Shifted ones reach into the words beside them. */
template <int COUNT>
static __device__ __forceinline__ bool readable(int64_t at, unsigned shift, int64_t total)
{
    return shift == 0 || (at >= COUNT && at + 2 * COUNT <= total);
}

/* One sub and factor for all, or for each row. Blocks (x, y): ROW_EACH * ROW_THREADS words of row y, and of the rows gridDim.y further on. Words count from the
 * first element of out: at the borders of rows one may have elements of two, and each of the rows sees to its own. */
template <typename IN, typename OUT, typename REAL, bool ONE_ROW>
static __global__ void __launch_bounds__(ROW_THREADS) normalize_rows(const __grid_constant__ gm_normalize_call call,
                                                                     const __grid_constant__ gm_limits<REAL> limits)
{
    typedef shape<IN, OUT, REAL> S;
    const unsigned shift = (unsigned)((uintptr_t)call.src & (4 * S::FROM - 1));
    const int64_t total = ONE_ROW ? call.cols : call.rows * call.cols;
    gm_tally tally = {0, 0, 0};
    for (int64_t row = ONE_ROW ? 0 : blockIdx.y; row < (ONE_ROW ? 1 : call.rows); row += ONE_ROW ? 1 : gridDim.y) {
        const int64_t begin = row * call.cols, end = begin + call.cols;
        const int64_t first = (begin / S::COUNT + (int64_t)blockIdx.x * (ROW_EACH * ROW_THREADS) + threadIdx.x) * S::COUNT;
        words<S::FROM> x[ROW_EACH];
        bool whole[ROW_EACH];
#pragma unroll
        for (int e = 0; e < ROW_EACH; e++) {
            int64_t at = first + e * (ROW_THREADS * S::COUNT);
            whole[e] = at >= begin && at + S::COUNT <= end && readable<S::COUNT>(at, shift, total);
            if (whole[e])
                x[e] = load_shifted<S::FROM>((const char *)((const typename S::in *)call.src + at), shift);
        }
        const REAL sub = ((const REAL *)call.sub)[row * call.row_step], factor = ((const REAL *)call.factor)[row * call.row_step];
        const bool plain = is_finite(sub) && is_finite(factor);
#pragma unroll
        for (int e = 0; e < ROW_EACH; e++) {
            int64_t at = first + e * (ROW_THREADS * S::COUNT);
            if (whole[e] && plain) {
                normalize_words<IN, OUT, REAL, 0>(call, limits, at, x[e], &sub, &factor, &tally);
            } else {
#pragma unroll 1
                for (int64_t i = at < begin ? begin : at; i < at + S::COUNT && i < end; i++)
                    normalize_one<IN, OUT, REAL>(call, limits, row, i - begin, &tally);
            }
        }
    }
    count<ROW_THREADS>(call.counts, tally);
}

/* Numbers [col, col + COUNT) of a row of cols; 0 outside. */
template <int COUNT, typename REAL>
static __device__ __forceinline__ void load_scale(REAL *to, const REAL *from, int64_t col, int64_t cols)
{
    enum { EACH = 16 / sizeof(REAL) };
    static_assert(COUNT % EACH == 0, "numbers are loaded by whole words");
    if ((uintptr_t)(from + col) % 16 == 0 && col >= 0 && col + COUNT <= cols) {
        union {
            uint4 word;
            REAL each[EACH];
        } x;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            if (i % EACH == 0)
                x.word = *(const uint4 *)(from + col + i);
            to[i] = x.each[i % EACH];
        }
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            to[i] = col + i >= 0 && col + i < cols ? from[col + i] : 0;
    }
}

/* The words of one thread in UNROLL rows. */
template <int N>
struct row_words {
    words<N> x[UNROLL];
    bool whole[UNROLL]; /* read; else there is no such row, or its elements go one by one */
};

template <typename S>
static __device__ __forceinline__ void load_rows(row_words<S::FROM> *w, const gm_normalize_call &call, int64_t row, int64_t end, int64_t period, int64_t col,
                                                 bool plain)
{
    const unsigned shift = (unsigned)((uintptr_t)call.src & (4 * S::FROM - 1));
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        int64_t at = (row + u * period) * call.cols + col;
        w->whole[u] = row + u * period < end && plain && readable<S::COUNT>(at, shift, call.rows * call.cols);
        if (w->whole[u])
            w->x[u] = load_shifted<S::FROM>((const char *)((const typename S::in *)call.src + at), shift);
    }
}

/* How the work of a call with a sub and a factor for each column is cut. Rows `period` apart begin at the same place in a word of out, so that a thread has the
 * same columns in all of them: a block goes through `walk` such rows with COLUMN_THREADS words, a tile. Blocks that follow each other have the tiles of a
 * group, then further rows of them: what they read of sub and factor is in the cache, and what they read of rows is near. */
struct cut {
    unsigned period, walk, tiles, group, runs; /* group: tiles in one; runs: blocks that a tile takes */
};

template <typename IN, typename OUT, typename REAL>
static __global__ void __launch_bounds__(COLUMN_THREADS) normalize_columns(const __grid_constant__ gm_normalize_call call,
                                                                           const __grid_constant__ gm_limits<REAL> limits, const cut c)
{
    typedef shape<IN, OUT, REAL> S;
    const unsigned group = blockIdx.x / (c.group * c.runs), rest = blockIdx.x % (c.group * c.runs), run = rest / c.group;
    const unsigned tile = group * c.group + rest % c.group;
    const int64_t start = (int64_t)(run / c.period) * c.period * c.walk + run % c.period, step = (int64_t)UNROLL * c.period;
    const int64_t last = start + (int64_t)c.period * (c.walk - 1), end = last < call.rows ? last + 1 : call.rows;
    const int64_t col = ((int64_t)tile * COLUMN_THREADS + threadIdx.x) * S::COUNT - start * call.cols % S::COUNT; /* below 0: begins in the row before */
    gm_tally tally = {0, 0, 0};
    if (tile < c.tiles && col < call.cols) {
        REAL sub[S::COUNT], factor[S::COUNT];
        bool plain = col >= 0 && col + S::COUNT <= call.cols;
        load_scale<S::COUNT>(sub, (const REAL *)call.sub, col, call.cols);
        load_scale<S::COUNT>(factor, (const REAL *)call.factor, col, call.cols);
#pragma unroll
        for (int i = 0; i < S::COUNT; i++)
            plain = plain && is_finite(sub[i]) && is_finite(factor[i]);
        row_words<S::FROM> here, next;
        if (S::MANY)
            load_rows<S>(&next, call, start, end, c.period, col, plain);
        for (int64_t row = start; row < end; row += step) {
            if (S::MANY) { /* the next ones are on their way while these are made */
                here = next;
                load_rows<S>(&next, call, row + step, end, c.period, col, plain);
            } else {
                load_rows<S>(&here, call, row, end, c.period, col, plain);
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                if (here.whole[u]) {
                    normalize_words<IN, OUT, REAL, 1>(call, limits, (row + u * c.period) * call.cols + col, here.x[u], sub, factor, &tally);
                } else if (row + u * c.period < end) {
#pragma unroll 1
                    for (int64_t i = col < 0 ? 0 : col; i < col + S::COUNT && i < call.cols; i++)
                        normalize_one<IN, OUT, REAL>(call, limits, row + u * c.period, i, &tally);
                }
            }
        }
    }
    count<COLUMN_THREADS>(call.counts, tally);
}

template <typename IN, typename OUT, typename REAL>
static int launch_rows(gm_cuda_stream stream, const gm_normalize_call *call)
{
    typedef shape<IN, OUT, REAL> S;
    const int64_t most = 65535, whole = call->cols % S::COUNT == 0;
    int64_t words = (call->cols + S::COUNT - 1) / S::COUNT + (call->rows > 1 && !whole ? 1 : 0);
    int64_t x = (words + ROW_EACH * ROW_THREADS - 1) / (ROW_EACH * ROW_THREADS), y = call->rows < most ? call->rows : most;
    if (x > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (call->rows == 1)
        normalize_rows<IN, OUT, REAL, true><<<(unsigned)x, ROW_THREADS, 0, stream>>>(*call, limits_of<REAL>(call));
    else
        normalize_rows<IN, OUT, REAL, false><<<dim3((unsigned)x, (unsigned)y), ROW_THREADS, 0, stream>>>(*call, limits_of<REAL>(call));
    return cudaGetLastError();
}

template <typename IN, typename OUT, typename REAL>
static int launch_columns(gm_cuda_stream stream, const gm_normalize_call *call)
{
    typedef shape<IN, OUT, REAL> S;
    cut c = {1, S::MANY ? LONG_WALK : WALK, 0, S::MANY ? LARGE_GROUP : GROUP, 0};
    while (c.period * call->cols % S::COUNT != 0) /* COUNT is a power of two */
        c.period *= 2;
    int64_t words = (call->cols + S::COUNT - 1) / S::COUNT + (c.period > 1), tiles = (words + COLUMN_THREADS - 1) / COLUMN_THREADS;
    int64_t per_class = (call->rows + c.period - 1) / c.period;
    if (tiles > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    c.group = tiles < c.group ? (unsigned)tiles : c.group;
    c.walk = per_class < c.walk ? (unsigned)per_class : c.walk;
    int64_t runs = (per_class + c.walk - 1) / c.walk * c.period, blocks = (tiles + c.group - 1) / c.group * c.group * runs;
    if (blocks > INT32_MAX) /* frames of a few elements */
        return gm_cuda_normalize_any(stream, call);
    c.tiles = (unsigned)tiles;
    c.runs = (unsigned)runs;
    normalize_columns<IN, OUT, REAL><<<(unsigned)blocks, COLUMN_THREADS, 0, stream>>>(*call, limits_of<REAL>(call), c);
    return cudaGetLastError();
}

template <typename IN, typename OUT, typename REAL>
static int launch(gm_cuda_stream stream, const gm_normalize_call *call)
{
    return call->col_step ? launch_columns<IN, OUT, REAL>(stream, call) : launch_rows<IN, OUT, REAL>(stream, call);
}

/* Does a call go by the plain rules? Of the others normalize_any_cuda.cu knows. */
static bool is_plain(const gm_normalize_call *call)
{
    double least = 0, most = 0, below = (double)call->below, above = (double)call->above;
    float lo = (float)call->lo, hi = (float)call->hi;
    if (call->log || !(fabs(call->add) <= 0x1.fffffep127))
        return false;
    if (call->out_type == GM_U8) {
        most = UINT8_MAX;
    } else if (call->out_type == GM_U16) {
        most = UINT16_MAX;
    } else if (call->out_type == GM_I16) {
        least = INT16_MIN, most = INT16_MAX;
        below = (int16_t)call->below, above = (int16_t)call->above;
    } else if (call->out_type == GM_F32) { /* a limit of 0: the maximum takes +0 for more than -0, where the rules take them for equal */
        return gm_float_bits(lo) == call->below && gm_float_bits(hi) == call->above && lo <= hi && hi != 0 && call->below != 0x80000000;
    } else {
        return true;
    }
    return call->lo >= least && call->lo <= call->hi && call->hi <= most && call->lo == below && call->hi == above;
}

/* Pairs that have kernels here, all of one arithmetic. */
static const struct {
    gm_dtype in, out;
    int wide;
    int (*run)(gm_cuda_stream stream, const gm_normalize_call *call);
} pairs[] = {
    {GM_U16, GM_U16, 0, launch<gm_element_U16, gm_target_U16, float>}, {GM_U16, GM_F32, 0, launch<gm_element_U16, gm_target_F32, float>},
    {GM_U16, GM_U8, 0, launch<gm_element_U16, gm_target_U8, float>},   {GM_F32, GM_F32, 0, launch<gm_element_F32, gm_target_F32, float>},
    {GM_F32, GM_U16, 0, launch<gm_element_F32, gm_target_U16, float>}, {GM_F32, GM_U8, 0, launch<gm_element_F32, gm_target_U8, float>},
    {GM_U8, GM_U8, 0, launch<gm_element_U8, gm_target_U8, float>},     {GM_U8, GM_F32, 0, launch<gm_element_U8, gm_target_F32, float>},
    {GM_I16, GM_I16, 0, launch<gm_element_I16, gm_target_I16, float>}, {GM_I16, GM_F32, 0, launch<gm_element_I16, gm_target_F32, float>},
    {GM_F64, GM_F64, 1, launch<gm_element_F64, gm_target_F64, double>},
};

extern "C" int gm_cuda_normalize(gm_cuda_stream stream, const gm_normalize_call *whole_call)
{
    gm_normalize_call call = *whole_call;
    if (call.rows == 0 || call.cols == 0)
        return cudaSuccess;
    if ((uintptr_t)call.src % gm_dtype_size(call.src_type) != 0 || (uintptr_t)call.out % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (!call.row_step && !call.col_step) { /* one long row */
        call.cols *= call.rows;
        call.rows = 1;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (call.src_type == pairs[i].in && call.out_type == pairs[i].out && !call.wide == !pairs[i].wide && is_plain(&call))
            return pairs[i].run(stream, &call);
    }
    return gm_cuda_normalize_any(stream, &call);
}
