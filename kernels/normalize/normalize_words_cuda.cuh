/* normalize_words_cuda.cuh - words of 16 bytes or less for normalize: from and to memory, and to and from numbers. */
#ifndef GM_KERNELS_NORMALIZE_NORMALIZE_WORDS_CUDA_CUH
#define GM_KERNELS_NORMALIZE_NORMALIZE_WORDS_CUDA_CUH

#include "kernels/normalize/normalize_cuda.cuh"

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

/* N words that begin `shift` bytes, 1 to 4 * N - 1, after the start of low; high: the words that follow low. */
template <int N>
static __device__ __forceinline__ words<N> shift_words(const words<N> &low, const words<N> &high, unsigned shift)
{
    words<N> x;
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

/* N words from an address that is `shift` bytes above a multiple of their size. Only words with bytes of theirs are
 * read. */
template <int N>
static __device__ __forceinline__ words<N> load_shifted(const char *from, unsigned shift)
{
    if (shift == 0)
        return load_words<N>(from);
    return shift_words<N>(load_words<N>(from - shift), load_words<N>(from - shift + 4 * N), shift);
}

/* The same for ROWS addresses, `pitch` bytes apart, of every thread of a warp, whose words follow each other. Two
 * steps, so that other loads can start between them: load_rows() loads the words around the addresses to x, and lane r
 * the words after the warp's words of row r to `behind`; in shift_rows() each thread gets the words after its own from
 * the next lane. */
template <int N, int ROWS>
static __device__ __forceinline__ void load_rows(words<N> *x, words<N> *behind, const char *from, int64_t pitch,
                                                 unsigned shift)
{
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int u = 0; u < ROWS; u++)
        x[u] = load_words<N>(from - shift + u * pitch);
    if (lane < ROWS)
        *behind = load_words<N>(from - shift + (32 - lane) * (4 * N) + lane * pitch);
}

template <int N, int ROWS>
static __device__ __forceinline__ void shift_rows(words<N> *x, const words<N> &behind, unsigned shift)
{
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
        words<N> high;
#pragma unroll
        for (int i = 0; i < N; i++) {
            uint32_t next = __shfl_down_sync(~0u, x[u].w[i], 1), last = __shfl_sync(~0u, behind.w[i], u);
            high.w[i] = threadIdx.x % 32 == 31 ? last : next;
        }
        x[u] = shift_words<N>(x[u], high, shift);
    }
}

template <typename WORD>
static __device__ __forceinline__ void store_word(WORD *to, WORD x, bool streams)
{
    if (streams)
        __stcs(to, x);
    else
        *to = x;
}

/* streams: the words leave the L2 cache first. */
template <int N>
static __device__ __forceinline__ void store_words(void *to, const words<N> &x, bool streams)
{
    if (N == 1)
        store_word((uint32_t *)to, x.w[0], streams);
    else if (N == 2)
        store_word((uint2 *)to, make_uint2(x.w[0], x.w[N - 1]), streams);
    else
        store_word((uint4 *)to, make_uint4(x.w[0], x.w[1 % N], x.w[2 % N], x.w[3 % N]), streams);
}

/* For numbers that further rows use again: they leave the L2 cache last, so that images do not evict them. */
static __device__ __forceinline__ uint64_t read_again(void)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

static __device__ __forceinline__ void load_again(float *to, const float *from, uint64_t policy)
{
    asm volatile("ld.global.nc.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(*to) : "l"(from), "l"(policy));
}

static __device__ __forceinline__ void load_again(double *to, const double *from, uint64_t policy)
{
    asm volatile("ld.global.nc.L2::cache_hint.f64 %0, [%1], %2;" : "=d"(*to) : "l"(from), "l"(policy));
}

/* 16 bytes of numbers. */
static __device__ __forceinline__ void load_word_again(float *to, const float *from, uint64_t policy)
{
    asm volatile("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "l"(from), "l"(policy));
}

static __device__ __forceinline__ void load_word_again(double *to, const double *from, uint64_t policy)
{
    asm volatile("ld.global.nc.L2::cache_hint.v2.f64 {%0, %1}, [%2], %3;"
                 : "=d"(to[0]), "=d"(to[1])
                 : "l"(from), "l"(policy));
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

/* An unsigned number below 2^23, put into the fraction of the float 2^23, which is then subtracted: exact, and cheaper
 * than a conversion. */
static __device__ __forceinline__ float small_number(uint32_t word, unsigned selector)
{
    return __uint_as_float(__byte_perm(word, 0x4b000000, selector)) - 0x1p23f;
}

/* Element i of some words, in this machine's order of bytes; unpack<> of the types that have kernels here. */
template <typename ELEMENT>
struct unpack;

template <>
struct unpack<gm_element_U8> {
    static const bool nans = false;
    template <int N>
    static __device__ __forceinline__ float get(const words<N> &x, int i)
    {
        return small_number(x.w[i / 4], 0x7650 + i % 4);
    }
};

template <>
struct unpack<gm_element_U16> {
    static const bool nans = false;
    template <int N>
    static __device__ __forceinline__ float get(const words<N> &x, int i)
    {
        return small_number(x.w[i / 2], i % 2 ? 0x7632 : 0x7610);
    }
};

template <>
struct unpack<gm_element_I16> {
    static const bool nans = false;
    template <int N>
    static __device__ __forceinline__ float get(const words<N> &x, int i)
    {
        return small_number(x.w[i / 2] ^ 0x80008000, i % 2 ? 0x7632 : 0x7610) - 0x1p15f;
    }
};

template <>
struct unpack<gm_element_F32> {
    static const bool nans = true;
    template <int N>
    static __device__ __forceinline__ float get(const words<N> &x, int i)
    {
        return __uint_as_float(x.w[i]);
    }
};

template <>
struct unpack<gm_element_F64> {
    static const bool nans = true;
    template <int N>
    static __device__ __forceinline__ double get(const words<N> &x, int i)
    {
        return __hiloint2double((int)x.w[2 * i + 1], (int)x.w[2 * i]);
    }
};

/* COUNT values of a thread as words of out. Small integers and float only by the plain rules: values below lo become
 * lo, values above hi become hi, and IN says whether there may be NaN. */
template <typename IN, typename OUT>
struct pack {
    template <typename REAL, int COUNT, int N>
    static __device__ __forceinline__ void put(words<N> *out, const REAL (&v)[COUNT], const gm_limits<REAL> &limits,
                                               gm_rounding, gm_tally *tally)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            typename OUT::raw raw = stored<OUT>(v[i], false, limits, tally);
            if (sizeof raw == 4) {
                out->w[i % N] = (uint32_t)raw;
            } else {
                out->w[(2 * i) % N] = (uint32_t)raw;
                out->w[(2 * i + 1) % N] = (uint32_t)((uint64_t)raw >> 32);
            }
        }
    }
};

/* *count += a != b, in two instructions: the compiler makes three. */
static __device__ __forceinline__ void count_different(int a, int b, unsigned *count)
{
    asm("{\n\t.reg .pred differ;\n\tsetp.ne.s32 differ, %1, %2;\n\t@differ add.u32 %0, %0, 1;\n\t}"
        : "+r"(*count)
        : "r"(a), "r"(b));
}

template <bool NANS, int BYTES, int COUNT, int N>
static __device__ __forceinline__ void pack_small(words<N> *out, const float (&v)[COUNT], int lo, int hi,
                                                  gm_rounding rounding, gm_tally *tally)
{
    uint32_t x[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        int whole = gm_whole_int(v[i], rounding), kept = max(min(whole, hi), lo); /* whole is 0 for NaN */
        if (NANS) {
            kept = v[i] != v[i] ? 0 : kept;
            tally->nan += v[i] != v[i];
        }
        count_different(kept, whole, &tally->clipped);
        x[i] = (uint32_t)kept;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (BYTES == 2)
            out->w[i] = __byte_perm(x[(2 * i) % COUNT], x[(2 * i + 1) % COUNT], 0x5410);
        else
            out->w[i] = __byte_perm(__byte_perm(x[(4 * i) % COUNT], x[(4 * i + 1) % COUNT], 0x0040),
                                    __byte_perm(x[(4 * i + 2) % COUNT], x[(4 * i + 3) % COUNT], 0x0040), 0x5410);
    }
}

/* float by the plain rules. */
template <typename IN>
struct pack<IN, gm_target_F32> {
    static __device__ __forceinline__ void put(words<4> *out, const float (&v)[4], const gm_limits<float> &limits,
                                               gm_rounding, gm_tally *tally)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float kept = fminf(fmaxf(v[i], limits.lo), limits.hi);
            if (unpack<IN>::nans && v[i] != v[i]) {
                out->w[i] = gm_store_float_F32(v[i], 0, 0, 0, 0);
                tally->nan++;
            } else {
                out->w[i] = __float_as_uint(kept);
                tally->clipped += kept != v[i];
            }
        }
    }
};

/* The rounding is the same for all values: a copy of the loop for each. */
template <typename IN, typename INTEGER>
struct pack_rounded {
    template <int COUNT, int N>
    static __device__ __forceinline__ void put(words<N> *out, const float (&v)[COUNT], const gm_limits<float> &limits,
                                               gm_rounding rounding, gm_tally *tally)
    {
        const bool nans = unpack<IN>::nans;
        int lo = (INTEGER)limits.below, hi = (INTEGER)limits.above;
        if (rounding == GM_ROUND_NEAREST_EVEN)
            pack_small<nans, sizeof(INTEGER)>(out, v, lo, hi, GM_ROUND_NEAREST_EVEN, tally);
        else if (rounding == GM_ROUND_HALF_UP)
            pack_small<nans, sizeof(INTEGER)>(out, v, lo, hi, GM_ROUND_HALF_UP, tally);
        else
            pack_small<nans, sizeof(INTEGER)>(out, v, lo, hi, GM_ROUND_TRUNCATE, tally);
    }
};

template <typename IN>
struct pack<IN, gm_target_U8> : pack_rounded<IN, uint8_t> {
};
template <typename IN>
struct pack<IN, gm_target_U16> : pack_rounded<IN, uint16_t> {
};
template <typename IN>
struct pack<IN, gm_target_I16> : pack_rounded<IN, int16_t> {
};

#endif
