/* normalize at the speed of the memory, for the pairs of types that images come in: a thread makes one 16-byte word of out at a time. src lies anywhere: where
 * its words are not those of out, two of them are shifted into one. Elements beside whole words of a row, and words that need more than the plain rules
 * (a factor that marks, numbers that are not finite), go one by one. With a sub and a factor for each column a block keeps those of its columns in
 * registers and goes through many rows with them. Everything else is left to normalize_any_cuda.cu. */
#include <math.h>

#include "kernels/normalize_cuda.cuh"

/* Device memory as 32-bit words, N of them at an address that is a multiple of their size. */
template <int N>
struct words {
    uint32_t w[N];
};

template <int N>
static __device__ __forceinline__ words<N> load_words(const char *from)
{
    words<N> x;
    if (N == 1) {
        x.w[0] = *(const uint32_t *)from;
    } else if (N == 2) {
        uint2 y = *(const uint2 *)from;
        x.w[0] = y.x, x.w[N - 1] = y.y;
    } else {
        uint4 y = *(const uint4 *)from;
        x.w[0] = y.x, x.w[1 % N] = y.y, x.w[2 % N] = y.z, x.w[3 % N] = y.w;
    }
    return x;
}

/* N words from an address that lies `shift` bytes behind a multiple of their size: nothing is read that has none of their bytes. */
template <int N>
static __device__ __forceinline__ words<N> load_shifted(const char *from, unsigned shift)
{
    if (shift == 0)
        return load_words<N>(from);
    words<N> low = load_words<N>(from - shift), high = load_words<N>(from - shift + 4 * N), x;
    uint32_t all[2 * N + 1];
#pragma unroll
    for (int i = 0; i < N; i++)
        all[i] = low.w[i], all[N + i] = high.w[i];
    all[2 * N] = 0;
    if (N > 2 && shift & 8) {
#pragma unroll
        for (int i = 0; i < 2 * N - 2; i++)
            all[i] = all[i + 2];
    }
    if (N > 1 && shift & 4) {
#pragma unroll
        for (int i = 0; i < 2 * N - 1; i++)
            all[i] = all[i + 1];
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        x.w[i] = __funnelshift_r(all[i], all[i + 1], 8 * (shift & 3));
    return x;
}

static __device__ __forceinline__ void store_word(void *to, const words<4> &x)
{
    *(uint4 *)to = make_uint4(x.w[0], x.w[1], x.w[2], x.w[3]);
}

/* Elements of 1, 2, 4 or 8 bytes in the other order of bytes. */
template <int SIZE, int N>
static __device__ __forceinline__ void swap_words(words<N> *x)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        x->w[i] = SIZE == 1 ? x->w[i] : __byte_perm(x->w[i], 0, SIZE == 2 ? 0x2301 : 0x0123);
    if (SIZE == 8) {
#pragma unroll
        for (int i = 0; i + 1 < N; i += 2) {
            uint32_t first = x->w[i];
            x->w[i] = x->w[(i + 1) % N], x->w[(i + 1) % N] = first;
        }
    }
}

/* An unsigned number below 2^23 put into the fraction of 2^23 as float, which is then taken away: exact, and cheaper than a conversion. */
static __device__ __forceinline__ float small_number(uint32_t word, unsigned selector)
{
    return __uint_as_float(__byte_perm(word, 0x4b000000, selector)) - 0x1p23f;
}

/* Element i of some words, in this machine's order of bytes; unpack<> of the types that have kernels here. */
template <typename ELEMENT>
struct unpack;

template <>
struct unpack<gm_element_U8> {
    template <int N>
    static __device__ __forceinline__ float get(const words<N> &x, int i) { return small_number(x.w[i / 4], 0x7650 + i % 4); }
};

template <>
struct unpack<gm_element_U16> {
    template <int N>
    static __device__ __forceinline__ float get(const words<N> &x, int i) { return small_number(x.w[i / 2], i % 2 ? 0x7632 : 0x7610); }
};

template <>
struct unpack<gm_element_F32> {
    template <int N>
    static __device__ __forceinline__ float get(const words<N> &x, int i) { return __uint_as_float(x.w[i]); }
};

template <>
struct unpack<gm_element_F64> {
    template <int N>
    static __device__ __forceinline__ double get(const words<N> &x, int i) { return __hiloint2double((int)x.w[2 * i + 1], (int)x.w[2 * i]); }
};

/* Rounds as gm_whole_float does, except that what does not fit an int becomes the nearest one that does: it is clipped all the same. */
static __device__ __forceinline__ int round_to_int(float v, gm_rounding rounding)
{
    return rounding == GM_ROUND_NEAREST_EVEN ? __float2int_rn(v)
           : rounding == GM_ROUND_HALF_UP    ? __float2int_rd(v + 0.5f)
                                             : __float2int_rz(v);
}

/* COUNT values of a thread as one word of out. Integers by the plain rules only: no NaN, and lo and hi are what stands for less and more than they. */
template <typename OUT>
struct pack {
    template <typename REAL, int COUNT>
    static __device__ __forceinline__ words<4> put(const REAL (&v)[COUNT], const gm_limits<REAL> &limits, gm_rounding, gm_tally *tally)
    {
        words<4> x;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            typename OUT::raw raw = stored<OUT>(v[i], false, limits, tally);
            if (sizeof raw == 4) {
                x.w[i] = (uint32_t)raw;
            } else {
                x.w[(2 * i) % 4] = (uint32_t)raw;
                x.w[(2 * i + 1) % 4] = (uint32_t)((uint64_t)raw >> 32);
            }
        }
        return x;
    }
};

template <int COUNT>
static __device__ __forceinline__ words<4> pack_small(const float (&v)[COUNT], const gm_limits<float> &limits, gm_rounding rounding, gm_tally *tally)
{
    int lo = (int)limits.below, hi = (int)limits.above, x[COUNT];
    words<4> out;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        int whole = round_to_int(v[i], rounding);
        x[i] = max(min(whole, hi), lo);
        tally->clipped += x[i] != whole;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (COUNT == 8)
            out.w[i] = __byte_perm((uint32_t)x[(2 * i) % COUNT], (uint32_t)x[(2 * i + 1) % COUNT], 0x5410);
        else
            out.w[i] = __byte_perm(__byte_perm((uint32_t)x[(4 * i) % COUNT], (uint32_t)x[(4 * i + 1) % COUNT], 0x0040),
                                   __byte_perm((uint32_t)x[(4 * i + 2) % COUNT], (uint32_t)x[(4 * i + 3) % COUNT], 0x0040), 0x5410);
    }
    return out;
}

/* The way of rounding is the same for all: a copy of the loop for each. */
template <int COUNT>
static __device__ __forceinline__ words<4> pack_rounded(const float (&v)[COUNT], const gm_limits<float> &limits, gm_rounding rounding, gm_tally *tally)
{
    if (rounding == GM_ROUND_NEAREST_EVEN)
        return pack_small(v, limits, GM_ROUND_NEAREST_EVEN, tally);
    if (rounding == GM_ROUND_HALF_UP)
        return pack_small(v, limits, GM_ROUND_HALF_UP, tally);
    return pack_small(v, limits, GM_ROUND_TRUNCATE, tally);
}

template <>
struct pack<gm_target_U8> {
    static __device__ __forceinline__ words<4> put(const float (&v)[16], const gm_limits<float> &limits, gm_rounding rounding, gm_tally *tally)
    {
        return pack_rounded(v, limits, rounding, tally);
    }
};

template <>
struct pack<gm_target_U16> {
    static __device__ __forceinline__ words<4> put(const float (&v)[8], const gm_limits<float> &limits, gm_rounding rounding, gm_tally *tally)
    {
        return pack_rounded(v, limits, rounding, tally);
    }
};

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

/* How a kernel of these types goes about it. */
template <typename IN, typename OUT, typename REAL>
struct shape {
    typedef typename IN::raw in;
    typedef typename OUT::raw out;
    enum {
        COUNT = 16 / (sizeof(in) > sizeof(out) ? sizeof(in) : sizeof(out)), /* elements of a word of out */
        WORDS = COUNT * sizeof(in) / 4,                                    /* of 32 bits, that they are made of */
        THREADS = 256
    };
};

/* Elements at .. at + COUNT - 1 of the call, made of the words x. */
template <typename IN, typename OUT, typename REAL, int STEP>
static __device__ __forceinline__ void normalize_word(const gm_normalize_call &call, const gm_limits<REAL> &limits, int64_t at,
                                                      words<shape<IN, OUT, REAL>::WORDS> x, const REAL *sub, const REAL *factor, gm_tally *tally)
{
    enum { COUNT = shape<IN, OUT, REAL>::COUNT };
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
    store_word((typename OUT::raw *)call.out + at, pack<OUT>::put(v, limits, call.rounding, tally));
}

/* One sub and factor for all, or for each row. Blocks (x, y): THREADS words of row y, and of the rows gridDim.y further on. Words count from the first
 * element of out: at the borders of rows one may have elements of two, and each of the rows sees to its own. */
template <typename IN, typename OUT, typename REAL>
static __global__ void __launch_bounds__(shape<IN, OUT, REAL>::THREADS) normalize_rows(const __grid_constant__ gm_normalize_call call,
                                                                                           const __grid_constant__ gm_limits<REAL> limits)
{
    typedef shape<IN, OUT, REAL> S;
    const unsigned shift = (unsigned)((uintptr_t)call.src & (4 * S::WORDS - 1));
    const int64_t total = call.rows * call.cols;
    gm_tally tally = {0, 0, 0};
    for (int64_t row = blockIdx.y; row < call.rows; row += gridDim.y) {
        int64_t begin = row * call.cols, end = begin + call.cols;
        int64_t at = (begin / S::COUNT + (int64_t)blockIdx.x * S::THREADS + threadIdx.x) * S::COUNT;
        bool inside = at >= begin && at + S::COUNT <= end && (shift == 0 || (at >= S::COUNT && at + 2 * S::COUNT <= total));
        words<S::WORDS> x;
        if (inside)
            x = load_shifted<S::WORDS>((const char *)((const typename S::in *)call.src + at), shift);
        REAL sub = ((const REAL *)call.sub)[row * call.row_step], factor = ((const REAL *)call.factor)[row * call.row_step];
        if (inside && is_finite(sub) && is_finite(factor)) {
            normalize_word<IN, OUT, REAL, 0>(call, limits, at, x, &sub, &factor, &tally);
        } else {
#pragma unroll 1
            for (int64_t i = at < begin ? begin : at; i < at + S::COUNT && i < end; i++)
                normalize_one<IN, OUT, REAL>(call, limits, row, i - begin, &tally);
        }
    }
    count<S::THREADS>(call.counts, tally);
}

/* A sub and a factor for each column; rows are whole words, in out as in src. Blocks (x, y): THREADS words of the rows from y * walk on. */
template <typename IN, typename OUT, typename REAL, int UNROLL>
static __global__ void __launch_bounds__(shape<IN, OUT, REAL>::THREADS) normalize_columns(const __grid_constant__ gm_normalize_call call,
                                                                                              const __grid_constant__ gm_limits<REAL> limits,
                                                                                              int64_t walk)
{
    typedef shape<IN, OUT, REAL> S;
    const unsigned shift = (unsigned)((uintptr_t)call.src & (4 * S::WORDS - 1));
    const int64_t col = ((int64_t)blockIdx.x * S::THREADS + threadIdx.x) * S::COUNT, total = call.rows * call.cols;
    const int64_t begin = (int64_t)blockIdx.y * walk, end = begin + walk < call.rows ? begin + walk : call.rows;
    gm_tally tally = {0, 0, 0};
    if (col < call.cols) {
        REAL sub[S::COUNT], factor[S::COUNT];
        bool plain = true;
#pragma unroll
        for (int i = 0; i < S::COUNT; i++) {
            sub[i] = ((const REAL *)call.sub)[col + i];
            factor[i] = ((const REAL *)call.factor)[col + i];
            plain = plain && is_finite(sub[i]) && is_finite(factor[i]);
        }
        for (int64_t row = begin; row < end; row += UNROLL) {
            words<S::WORDS> x[UNROLL];
            bool inside[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                int64_t at = (row + u) * call.cols + col;
                inside[u] = row + u < end && plain && (shift == 0 || (at >= S::COUNT && at + 2 * S::COUNT <= total));
                if (inside[u])
                    x[u] = load_shifted<S::WORDS>((const char *)((const typename S::in *)call.src + at), shift);
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                if (inside[u]) {
                    normalize_word<IN, OUT, REAL, 1>(call, limits, (row + u) * call.cols + col, x[u], sub, factor, &tally);
                } else if (row + u < end) {
#pragma unroll 1
                    for (int i = 0; i < S::COUNT; i++)
                        normalize_one<IN, OUT, REAL>(call, limits, row + u, col + i, &tally);
                }
            }
        }
    }
    count<S::THREADS>(call.counts, tally);
}

enum { UNROLL = 2, WALK = 64, BLOCKS_Y = 65535 };

template <typename IN, typename OUT, typename REAL>
static int launch(gm_cuda_stream stream, const gm_normalize_call *call)
{
    typedef shape<IN, OUT, REAL> S;
    int64_t words = (call->cols + S::COUNT - 1) / S::COUNT + (call->cols % S::COUNT != 0 && call->rows > 1 ? 1 : 0), walk = 1;
    int64_t x = (words + S::THREADS - 1) / S::THREADS, y = call->rows < (int64_t)BLOCKS_Y ? call->rows : (int64_t)BLOCKS_Y;
    if (x > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (!call->col_step) {
        normalize_rows<IN, OUT, REAL><<<dim3((unsigned)x, (unsigned)y), S::THREADS, 0, stream>>>(*call, limits_of<REAL>(call));
        return cudaGetLastError();
    }
    if (call->cols % S::COUNT != 0)
        return gm_cuda_normalize_any(stream, call);
    while ((walk < WALK && x * (call->rows / walk) > 16384) || (call->rows + walk - 1) / walk > BLOCKS_Y)
        walk *= 2;
    y = (call->rows + walk - 1) / walk;
    normalize_columns<IN, OUT, REAL, UNROLL><<<dim3((unsigned)x, (unsigned)y), S::THREADS, 0, stream>>>(*call, limits_of<REAL>(call), walk);
    return cudaGetLastError();
}

/* Do integers go by the plain rules, and nothing by a rule that only normalize_any_cuda.cu has? */
static bool is_plain(const gm_normalize_call *call)
{
    double most = call->out_type == GM_U8 ? UINT8_MAX : UINT16_MAX;
    if (call->log || !isfinite(call->add) || fabs(call->add) > 0x1.fffffep127)
        return false;
    if (call->out_type != GM_U8 && call->out_type != GM_U16)
        return true;
    return call->lo >= 0 && call->lo <= call->hi && call->hi <= most && call->lo == (double)call->below && call->hi == (double)call->above;
}

extern "C" int gm_cuda_normalize(gm_cuda_stream stream, const gm_normalize_call *whole_call)
{
    gm_normalize_call call = *whole_call;
    if (call.rows == 0 || call.cols == 0)
        return cudaSuccess;
    if ((uintptr_t)call.src % gm_dtype_size(call.src_type) != 0 || (uintptr_t)call.out % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (call.rows == 1 || (!call.row_step && !call.col_step)) { /* one long row */
        call.cols *= call.rows;
        call.rows = 1;
    }
    if (is_plain(&call)) {
        if (call.src_type == GM_U16 && call.out_type == GM_U16 && !call.wide)
            return launch<gm_element_U16, gm_target_U16, float>(stream, &call);
        if (call.src_type == GM_U16 && call.out_type == GM_F32 && !call.wide)
            return launch<gm_element_U16, gm_target_F32, float>(stream, &call);
        if (call.src_type == GM_F32 && call.out_type == GM_F32 && !call.wide)
            return launch<gm_element_F32, gm_target_F32, float>(stream, &call);
        if (call.src_type == GM_U8 && call.out_type == GM_U8 && !call.wide)
            return launch<gm_element_U8, gm_target_U8, float>(stream, &call);
        if (call.src_type == GM_U8 && call.out_type == GM_F32 && !call.wide)
            return launch<gm_element_U8, gm_target_F32, float>(stream, &call);
        if (call.src_type == GM_F64 && call.out_type == GM_F64 && call.wide)
            return launch<gm_element_F64, gm_target_F64, double>(stream, &call);
    }
    return gm_cuda_normalize_any(stream, &call);
}
