/* normalize at the speed of the memory, for the usual pairs of types of images: a thread computes a few words at a
 * time, each of as many elements as the larger type has in 16 bytes. src may have any alignment: where its words are
 * not aligned like those of out, two are shifted into one. Elements outside whole words of a row, and words that need
 * more than the plain rules (a marked factor, values that are not finite), are computed one by one. With a sub and a
 * factor for each column, a thread computes one word in each of a few rows. Other calls go to normalize_any_cuda.cu. */
#include <math.h>

#include "kernels/normalize/normalize_words_cuda.cuh"

/* Element (row, col), by all rules. */
template <typename IN, typename OUT, typename REAL>
static __device__ __forceinline__ void normalize_one(const gm_normalize_call &call, const gm_limits<REAL> &limits,
                                                     int64_t row, int64_t col, gm_tally *tally)
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

/* The work of a block, found by measurement on an H200 (docs/performance.md). Rows: 256 threads of five words each;
 * with one word, the atomic additions of the blocks' counts become the limit. Columns: a word in each of a few rows
 * (shape<>), all loaded before the first is computed. A block does not go on to further rows: blocks would drift apart,
 * and the addresses accessed at one time would no longer be close together. */
enum { ROW_THREADS = 256, ROW_EACH = 5, EDGE_ROWS = 2, GROUP = 1 << 19 /* columns */ };

/* The word of a thread: as many elements as the larger type has in 16 bytes. */
template <typename IN, typename OUT, typename REAL>
struct shape {
    typedef typename IN::raw in;
    typedef typename OUT::raw out;
    enum {
        COUNT = 16 / (sizeof(in) > sizeof(out) ? sizeof(in) : sizeof(out)),
        FROM = COUNT * sizeof(in) / 4, /* words of 32 bits */
        TO = COUNT * sizeof(out) / 4,
        THREADS = COUNT > 4 || FROM > TO ? 256 : 128, /* of a block by columns, and its rows */
        ROWS = COUNT == 8       ? 5
               : THREADS == 256 ? 6
                                : 4,
        BLOCKS = (COUNT > 8 ? 512 : 1024) / THREADS /* resident on a multiprocessor, at least */
    };
};

/* Computes elements at .. at + COUNT - 1 of the call from the words x. */
template <typename IN, typename OUT, typename REAL, int STEP>
static __device__ __forceinline__ void normalize_words(const gm_normalize_call &call, const gm_limits<REAL> &limits,
                                                       int64_t at, words<shape<IN, OUT, REAL>::FROM> x, const REAL *sub,
                                                       const REAL *factor, gm_tally *tally)
{
    enum { COUNT = shape<IN, OUT, REAL>::COUNT };
    words<shape<IN, OUT, REAL>::TO> y;
    REAL v[COUNT];
    if (call.swap)
        swap_words<sizeof(typename IN::raw)>(&x);
    if (limits.add != 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            v[i] = times(unpack<IN>::get(x, i), sub[i * STEP], factor[i * STEP]) + limits.add;
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            v[i] = times(unpack<IN>::get(x, i), sub[i * STEP], factor[i * STEP]);
    }
    pack<IN, OUT>::put(&y, v, limits, call.rounding, tally);
    store_words((typename OUT::raw *)call.out + at, y, STEP != 0);
}

/* Whether the words of elements at .. at + COUNT - 1 can be read whole. Shifted ones reach into neighbouring words. */
template <int COUNT>
static __device__ __forceinline__ bool readable(int64_t at, unsigned shift, int64_t total)
{
    return shift == 0 || (at >= COUNT && at + 2 * COUNT <= total);
}

/* One sub and factor for all, or for each row. Blocks (x, y): ROW_EACH * ROW_THREADS words of row y, and of every
 * gridDim.y-th row after it. Words count from the first element of out: a word at the end of a row may have elements of
 * two rows, and each row computes its own. SHIFTS: src is not aligned like out. */
template <typename IN, typename OUT, typename REAL, bool ONE_ROW, bool SHIFTS>
static __global__ void __launch_bounds__(ROW_THREADS)
    normalize_rows(const __grid_constant__ gm_normalize_call call, const __grid_constant__ gm_limits<REAL> limits)
{
    typedef shape<IN, OUT, REAL> S;
    const unsigned shift = SHIFTS ? (unsigned)((uintptr_t)call.src & (4 * S::FROM - 1)) : 0;
    const int64_t total = ONE_ROW ? call.cols : call.rows * call.cols;
    gm_tally tally = {0, 0, 0};
    for (int64_t row = ONE_ROW ? 0 : blockIdx.y; row < (ONE_ROW ? 1 : call.rows); row += ONE_ROW ? 1 : gridDim.y) {
        const int64_t begin = row * call.cols, end = begin + call.cols;
        const int64_t low = (begin / S::COUNT + (int64_t)blockIdx.x * (ROW_EACH * ROW_THREADS)) * S::COUNT,
                      high = low + ROW_EACH * ROW_THREADS * S::COUNT;
        const int64_t first = low + threadIdx.x * S::COUNT;
        const typename S::in *src = (const typename S::in *)call.src;
        const bool inside = low >= begin && low > 0 && high <= end &&
                            high + S::COUNT <= total; /* all words of the block and their neighbours */
        words<S::FROM> x[ROW_EACH], behind = {};
        bool whole[ROW_EACH];
        if (SHIFTS && inside)
            load_rows<S::FROM, ROW_EACH>(x, &behind, (const char *)(src + first), ROW_THREADS * S::COUNT * sizeof *src,
                                         shift);
#pragma unroll
        for (int e = 0; e < ROW_EACH; e++) {
            int64_t at = first + e * (ROW_THREADS * S::COUNT);
            whole[e] = at >= begin && at + S::COUNT <= end && readable<S::COUNT>(at, shift, total);
            if (whole[e] && !(SHIFTS && inside))
                x[e] = load_shifted<S::FROM>((const char *)(src + at), shift);
        }
        const REAL sub = ((const REAL *)call.sub)[row * call.row_step],
                   factor = ((const REAL *)call.factor)[row * call.row_step];
        const bool plain = is_finite(sub) && is_finite(factor);
        if (SHIFTS && inside)
            shift_rows<S::FROM, ROW_EACH>(x, behind, shift);
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
    const uint64_t policy = read_again();
    if ((uintptr_t)(from + col) % 16 == 0 && col >= 0 && col + COUNT <= cols) {
#pragma unroll
        for (int i = 0; i < COUNT; i += EACH)
            load_word_again(to + i, from + col + i, policy);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            to[i] = 0;
            if (col + i >= 0 && col + i < cols)
                load_again(to + i, from + col + i, policy);
        }
    }
}

/* The distribution of a call with a sub and a factor for each column. Rows `period` apart begin at the same offset in a
 * word of out, so that a thread has the same columns in all of them. A block computes a tile, one word per thread, of a
 * few such rows; of narrow rows it has 2^across words, and its other threads have further rows. Consecutive blocks have
 * the tiles of a group, then further rows of them: their sub and factor are in the cache, and their rows are close in
 * memory. */
struct cut {
    unsigned period, across, tiles, group, blocks; /* group: tiles in one; blocks: of a tile */
};

/* How the words of a block are read: whole and aligned, shifted by whole warps, or one by one. */
enum reading { AS_THEY_LIE, SHIFTED, ONE_BY_ONE };

/* The word from column col on, in N rows from `row` on, `period` apart, before row `end`. */
template <typename IN, typename OUT, typename REAL, int N, reading HOW>
static __device__ __forceinline__ void normalize_word(const gm_normalize_call &call, const gm_limits<REAL> &limits,
                                                      int64_t row, int64_t end, unsigned period, int64_t col,
                                                      gm_tally *tally)
{
    typedef shape<IN, OUT, REAL> S;
    const typename S::in *src = (const typename S::in *)call.src;
    const unsigned shift = HOW == AS_THEY_LIE ? 0 : (unsigned)((uintptr_t)src & (4 * S::FROM - 1));
    words<S::FROM> x[N], behind = {};
    bool whole[N];
    if (HOW == SHIFTED)
        load_rows<S::FROM, N>(x, &behind, (const char *)(src + row * call.cols + col),
                              period * call.cols * (int64_t)sizeof *src, shift);
#pragma unroll
    for (int u = 0; u < N; u++) {
        int64_t r = row + u * period, at = r * call.cols + col;
        whole[u] = HOW != ONE_BY_ONE || (r < end && col >= 0 && col + S::COUNT <= call.cols &&
                                         readable<S::COUNT>(at, shift, call.rows * call.cols));
        if (HOW != SHIFTED && whole[u])
            x[u] = load_shifted<S::FROM>((const char *)(src + at), shift);
    }
    REAL sub[S::COUNT], factor[S::COUNT];
    load_scale<S::COUNT>(sub, (const REAL *)call.sub, col, call.cols);
    load_scale<S::COUNT>(factor, (const REAL *)call.factor, col, call.cols);
    if (HOW == SHIFTED)
        shift_rows<S::FROM, N>(x, behind, shift);
    REAL zero = 0; /* infinities and NaN times 0 are NaN */
#pragma unroll
    for (int i = 0; i < S::COUNT; i++)
        zero = fma(sub[i], (REAL)0, fma(factor[i], (REAL)0, zero));
    const bool plain = zero == 0;
    unsigned left = 0; /* rows whose elements are computed one by one */
    if (!plain) {
        left = (1u << N) - 1;
    } else {
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (whole[u])
                normalize_words<IN, OUT, REAL, 1>(call, limits, (row + u * period) * call.cols + col, x[u], sub, factor,
                                                  tally);
            else
                left |= 1u << u;
        }
    }
    for (; left != 0; left &= left - 1) {
        int64_t r = row + (__ffs((int)left) - 1) * (int64_t)period;
        int64_t to = r >= end ? 0 : col + S::COUNT < call.cols ? col + S::COUNT : call.cols;
#pragma unroll 1
        for (int64_t i = col < 0 ? 0 : col; i < to; i++)
            normalize_one<IN, OUT, REAL>(call, limits, r, i, tally);
    }
}

/* NARROW: rows of fewer words than a block has threads. */
template <typename IN, typename OUT, typename REAL, bool NARROW>
static __global__ void __launch_bounds__(shape<IN, OUT, REAL>::THREADS, shape<IN, OUT, REAL>::BLOCKS)
    normalize_columns(const __grid_constant__ gm_normalize_call call, const __grid_constant__ gm_limits<REAL> limits,
                      const cut c)
{
    typedef shape<IN, OUT, REAL> S;
    const unsigned group = blockIdx.x / (c.group * c.blocks), rest = blockIdx.x % (c.group * c.blocks),
                   tile = group * c.group + rest % c.group;
    const unsigned across = NARROW ? 1u << c.across : S::THREADS, side = NARROW ? threadIdx.x >> c.across : 0;
    const unsigned run = rest / c.group * (S::THREADS / across) + side;
    const int64_t start = (int64_t)(run / c.period) * c.period * S::ROWS + run % c.period,
                  last = start + (S::ROWS - 1) * (int64_t)c.period;
    const int64_t begin = (int64_t)tile * across * S::COUNT -
                          start * call.cols % S::COUNT; /* below 0: in the row before */
    const int64_t col = begin + threadIdx.x % across * S::COUNT;
    gm_tally tally = {0, 0, 0};
    const int64_t stop = begin + across * S::COUNT;
    const bool shifts = (uintptr_t)call.src % (4 * S::FROM) != 0,
               whole = !NARROW && begin >= 0 && stop <= call.cols && last < call.rows;
    if (whole && !shifts) {
        normalize_word<IN, OUT, REAL, S::ROWS, AS_THEY_LIE>(call, limits, start, call.rows, c.period, col, &tally);
    } else if (whole && (start > 0 || begin > 0) && (last + 1 < call.rows || stop + S::COUNT <= call.cols)) {
        normalize_word<IN, OUT, REAL, S::ROWS, SHIFTED>(call, limits, start, call.rows, c.period, col, &tally);
    } else if (tile < c.tiles && col < call.cols) {
        const int64_t end = last < call.rows ? last + 1 : call.rows;
#pragma unroll 1
        for (int64_t row = start; row < end; row += EDGE_ROWS * c.period)
            normalize_word<IN, OUT, REAL, EDGE_ROWS, ONE_BY_ONE>(call, limits, row, end, c.period, col, &tally);
    }
    count<S::THREADS>(call.counts, tally);
}

template <typename IN, typename OUT, typename REAL>
static int launch_rows(gm_cuda_stream stream, const gm_normalize_call *call)
{
    typedef shape<IN, OUT, REAL> S;
    const int64_t most = 65535, whole = call->cols % S::COUNT == 0;
    int64_t words = (call->cols + S::COUNT - 1) / S::COUNT + (call->rows > 1 && !whole ? 1 : 0);
    int64_t x = (words + ROW_EACH * ROW_THREADS - 1) / (ROW_EACH * ROW_THREADS),
            y = call->rows < most ? call->rows : most;
    if (x > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    const dim3 blocks((unsigned)x, (unsigned)y);
    const gm_limits<REAL> limits = limits_of<REAL>(call);
    const bool shifts = (uintptr_t)call->src % (4 * S::FROM) != 0;
    if (call->rows == 1 && shifts)
        normalize_rows<IN, OUT, REAL, true, true><<<blocks, ROW_THREADS, 0, stream>>>(*call, limits);
    else if (call->rows == 1)
        normalize_rows<IN, OUT, REAL, true, false><<<blocks, ROW_THREADS, 0, stream>>>(*call, limits);
    else if (shifts)
        normalize_rows<IN, OUT, REAL, false, true><<<blocks, ROW_THREADS, 0, stream>>>(*call, limits);
    else
        normalize_rows<IN, OUT, REAL, false, false><<<blocks, ROW_THREADS, 0, stream>>>(*call, limits);
    return cudaGetLastError();
}

template <typename IN, typename OUT, typename REAL>
static int launch_columns(gm_cuda_stream stream, const gm_normalize_call *call)
{
    typedef shape<IN, OUT, REAL> S;
    cut c = {1, 0, 0, 0, 0};
    while (c.period * call->cols % S::COUNT != 0) /* COUNT is a power of two */
        c.period *= 2;
    int64_t words = (call->cols + S::COUNT - 1) / S::COUNT + (c.period > 1),
            per_class = (call->rows + c.period - 1) / c.period;
    while (1 << c.across < S::THREADS && 1 << c.across < words)
        c.across++;
    const int64_t across = 1 << c.across, tiles = (words + across - 1) / across, most = GROUP / (S::THREADS * S::COUNT),
                  groups = (tiles + most - 1) / most;
    if (tiles > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    const int64_t group = (tiles + groups - 1) / groups, runs = (per_class + S::ROWS - 1) / S::ROWS * c.period,
                  side = S::THREADS / across;
    const int64_t each = (runs + side - 1) / side, blocks = groups * group * each;
    if (blocks > INT32_MAX) /* frames of a few elements */
        return gm_cuda_normalize_any(stream, call);
    c.tiles = (unsigned)tiles;
    c.group = (unsigned)group;
    c.blocks = (unsigned)each;
    if (across < S::THREADS)
        normalize_columns<IN, OUT, REAL, true>
            <<<(unsigned)blocks, S::THREADS, 0, stream>>>(*call, limits_of<REAL>(call), c);
    else
        normalize_columns<IN, OUT, REAL, false>
            <<<(unsigned)blocks, S::THREADS, 0, stream>>>(*call, limits_of<REAL>(call), c);
    return cudaGetLastError();
}

template <typename IN, typename OUT, typename REAL>
static int launch(gm_cuda_stream stream, const gm_normalize_call *call)
{
    return call->col_step ? launch_columns<IN, OUT, REAL>(stream, call) : launch_rows<IN, OUT, REAL>(stream, call);
}

/* Whether a call needs only the plain rules. normalize_any_cuda.cu has the others. */
static bool is_plain(const gm_normalize_call *call)
{
    double least = 0, most = 0, below = (double)call->below, above = (double)call->above;
    float lo = (float)call->lo, hi = (float)call->hi;
    if (call->log || !(fabs(call->add) <= 0x1.fffffep127))
        return false;
    if (call->out_type == GM_DTYPE_U8) {
        most = UINT8_MAX;
    } else if (call->out_type == GM_DTYPE_U16) {
        most = UINT16_MAX;
    } else if (call->out_type == GM_DTYPE_I16) {
        least = INT16_MIN, most = INT16_MAX;
        below = (int16_t)call->below, above = (int16_t)call->above;
    } else if (call->out_type ==
               GM_DTYPE_F32) { /* a limit of 0: for fmaxf() +0 is greater than -0, by the rules they are equal */
        return gm_float_bits(lo) == call->below && gm_float_bits(hi) == call->above && lo <= hi && hi != 0 &&
               call->below != 0x80000000;
    } else {
        return true;
    }
    return call->lo >= least && call->lo <= call->hi && call->hi <= most && call->lo == below && call->hi == above;
}

/* The pairs of types with kernels here, each in one arithmetic. */
static const struct {
    gm_dtype in, out;
    int wide;
    int (*run)(gm_cuda_stream stream, const gm_normalize_call *call);
} pairs[] = {
    {GM_DTYPE_U16, GM_DTYPE_U16, 0, launch<gm_element_U16, gm_target_U16, float>},
    {GM_DTYPE_U16, GM_DTYPE_F32, 0, launch<gm_element_U16, gm_target_F32, float>},
    {GM_DTYPE_U16, GM_DTYPE_U8, 0, launch<gm_element_U16, gm_target_U8, float>},
    {GM_DTYPE_F32, GM_DTYPE_F32, 0, launch<gm_element_F32, gm_target_F32, float>},
    {GM_DTYPE_F32, GM_DTYPE_U16, 0, launch<gm_element_F32, gm_target_U16, float>},
    {GM_DTYPE_F32, GM_DTYPE_U8, 0, launch<gm_element_F32, gm_target_U8, float>},
    {GM_DTYPE_U8, GM_DTYPE_U8, 0, launch<gm_element_U8, gm_target_U8, float>},
    {GM_DTYPE_U8, GM_DTYPE_F32, 0, launch<gm_element_U8, gm_target_F32, float>},
    {GM_DTYPE_I16, GM_DTYPE_I16, 0, launch<gm_element_I16, gm_target_I16, float>},
    {GM_DTYPE_I16, GM_DTYPE_F32, 0, launch<gm_element_I16, gm_target_F32, float>},
    {GM_DTYPE_F64, GM_DTYPE_F64, 1, launch<gm_element_F64, gm_target_F64, double>},
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
        if (call.src_type == pairs[i].in && call.out_type == pairs[i].out && !call.wide == !pairs[i].wide &&
            is_plain(&call))
            return pairs[i].run(stream, &call);
    }
    return gm_cuda_normalize_any(stream, &call);
}
