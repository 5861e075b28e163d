/* Flip of rows. A thread moves words of 16 bytes: neighbouring threads write neighbouring words of dst. Where rows are
 * whole words at multiples of 16 bytes, each word is one of src; elsewhere it is cut out of two words of src, and a
 * word of dst with the end of a row and the beginning of the next one is put together from both. */
#include "kernels/kernels.h"
#include "kernels/move/calls.h"

enum {
    WORD = 16, /* bytes */
    THREADS = 256,
    CUTTERS = 64,   /* threads of a block that cuts words */
    CUTS = 2,       /* words of such a thread */
    REVERSERS = 20, /* such blocks of a multiprocessor, as many as their registers permit */
    MOVERS = 16     /* the same where rows are not reversed */
};

template <typename T>
static __device__ __forceinline__ uint4 reversed(uint4 word)
{
    enum { ELEMENTS = sizeof(uint4) / sizeof(T) };
    union {
        uint4 word;
        T element[ELEMENTS];
    } in = {word}, out;
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++)
        out.element[i] = in.element[ELEMENTS - 1 - i];
    return out.word;
}

/* --- Rows of whole words --- */

/* [outer][rows][words]. INDEX holds their number. */
template <typename INDEX>
static __global__ void __launch_bounds__(THREADS)
    move_words(const uint4 *src, uint4 *dst, INDEX total, INDEX rows, INDEX words)
{
    for (INDEX k = (INDEX)blockIdx.x * THREADS + threadIdx.x; k < total; k += (INDEX)gridDim.x * THREADS) {
        INDEX row = k / words, word = k - row * words, r = row % rows;
        dst[k] = src[(row - r + (rows - 1 - r)) * words + word];
    }
}

/* [outer][words], of whole words. */
template <typename T, typename INDEX>
static __global__ void __launch_bounds__(THREADS) reverse_words(const uint4 *src, uint4 *dst, INDEX total, INDEX words)
{
    for (INDEX k = (INDEX)blockIdx.x * THREADS + threadIdx.x; k < total; k += (INDEX)gridDim.x * THREADS) {
        INDEX word = k % words;
        dst[k] = reversed<T>(src[k - word + (words - 1 - word)]);
    }
}

/* --- Any rows --- */

/* Rows of `row` bytes, each reversed, or `rows` of them in the opposite order. */
struct flip_of {
    const char *src, *src_end;
    char *dst;
    int64_t row, rows, total; /* total: bytes of all */
    double row_inverse, rows_inverse;
};

/* n / by, which is n * inverse but for a rounding: an integer division of 64 bits would take longer than the rest. */
static __device__ __forceinline__ int64_t divided(int64_t n, int64_t by, double inverse, int64_t *left)
{
    int64_t q = (int64_t)((double)n * inverse), r = n - q * by;
    int64_t less = r < 0, more = r >= by;
    *left = r + (less - more) * by;
    return q + more - less;
}

/* The bytes of src for those from `at` on of row q of dst, and for the 15 after it; at may lie before the row. */
template <bool REVERSE>
static __device__ __forceinline__ const char *source_of(const flip_of &f, int64_t q, int64_t at)
{
    int64_t r;
    if constexpr (REVERSE)
        return f.src + ((q + 1) * f.row - WORD - at);
    divided(q, f.rows, f.rows_inverse, &r);
    return f.src + ((q + f.rows - 1 - 2 * r) * f.row + at);
}

/* Two aligned words with the 16 bytes at p; 0 where src has not both. */
struct pair {
    const char *p;
    uint4 low, high;
    bool there;
};

static __device__ __forceinline__ pair pair_at(const flip_of &f, const char *p)
{
    const char *word = p - (size_t)p % WORD;
    pair x = {p, make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0), word >= f.src && word + 2 * WORD <= f.src_end};
    if (x.there) {
        x.low = __ldg((const uint4 *)word);
        x.high = __ldg((const uint4 *)word + 1);
    }
    return x;
}

/* The 16 bytes from byte `at` (0 to 15, a multiple of the element) of two words on. */
template <typename T>
static __device__ __forceinline__ uint4 shifted(uint4 low, uint4 high, unsigned at)
{
    uint32_t w[6] = {low.x, low.y, low.z, low.w, high.x, high.y};
    if (at & 8) {
        w[0] = low.z;
        w[1] = low.w;
        w[2] = high.x;
        w[3] = high.y;
        w[4] = high.z;
        w[5] = high.w;
    }
    if (sizeof(T) < 8 && (at & 4)) {
#pragma unroll
        for (int i = 0; i < 5; i++)
            w[i] = w[i + 1];
    }
    if (sizeof(T) < 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = __funnelshift_r(w[i], w[i + 1], 8 * (at & 3));
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* The word of dst that a pair has; bytes that src has not are 0. */
template <typename T, bool REVERSE>
static __device__ __forceinline__ uint4 word_of(const flip_of &f, const pair &x)
{
    enum { SIZE = sizeof(T), EACH = WORD / SIZE };
    union {
        uint4 word;
        T element[EACH];
    } all = {make_uint4(0, 0, 0, 0)};
    if (x.there) {
        all.word = shifted<T>(x.low, x.high, (unsigned)((size_t)x.p % WORD));
    } else {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (x.p + i * SIZE >= f.src && x.p + i * SIZE < f.src_end)
                all.element[i] = *(const T *)(x.p + i * SIZE);
    }
    return REVERSE ? reversed<T>(all.word) : all.word;
}

/* n bytes of one word, the others of another one. */
static __device__ __forceinline__ uint4 joined(const uint4 &first, const uint4 &second, int n)
{
    uint32_t a[4] = {first.x, first.y, first.z, first.w}, b[4] = {second.x, second.y, second.z, second.w};
#pragma unroll
    for (int i = 0; i < 4; i++, n -= 4) {
        uint32_t mask = n >= 4 ? ~0u : n > 0 ? (1u << 8 * n) - 1 : 0;
        a[i] = (a[i] & mask) | (b[i] & ~mask);
    }
    return make_uint4(a[0], a[1], a[2], a[3]);
}

/* The word at byte `at` of dst, of rows shorter than a word: it begins at byte `byte` of row q. */
template <typename T, bool REVERSE>
static __device__ __forceinline__ uint4 short_rows(const flip_of &f, int64_t at, int64_t q, int64_t byte)
{
    enum { SIZE = sizeof(T), EACH = WORD / SIZE };
    union {
        uint4 word;
        T element[EACH];
    } all = {make_uint4(0, 0, 0, 0)};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (at + i * SIZE >= 0 && at + i * SIZE < f.total)
            all.element[i] = *(const T *)(source_of<REVERSE>(f, q, byte) + (REVERSE ? WORD - SIZE : 0));
        byte += SIZE;
        if (byte == f.row) {
            byte = 0;
            q++;
        }
    }
    return all.word;
}

template <typename T>
static __device__ __forceinline__ void put(const flip_of &f, int64_t at, uint4 word)
{
    enum { SIZE = sizeof(T), EACH = WORD / SIZE };
    union {
        uint4 word;
        T element[EACH];
    } all = {word};
    if (at >= 0 && at + WORD <= f.total) {
        *(uint4 *)(f.dst + at) = word;
        return;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (at + i * SIZE >= 0 && at + i * SIZE < f.total)
            *(T *)(f.dst + at + i * SIZE) = all.element[i];
}

/* The words of dst are the aligned ones: the first one begins up to 15 bytes before dst. */
template <typename T, bool REVERSE>
static __global__ void __launch_bounds__(CUTTERS, REVERSE ? REVERSERS : MOVERS) cut_words(flip_of f)
{
    int64_t first = ((int64_t)blockIdx.x * (CUTS * CUTTERS) + threadIdx.x) * WORD - (int)((size_t)f.dst % WORD);
    int64_t q[CUTS], byte[CUTS];
    pair x[CUTS];
#pragma unroll
    for (int i = 0; i < CUTS; i++) {
        q[i] = divided(first + i * (CUTTERS * WORD), f.row, f.row_inverse, &byte[i]);
        x[i] = pair_at(f, source_of<REVERSE>(f, q[i], byte[i]));
    }
#pragma unroll
    for (int i = 0; i < CUTS; i++) {
        int64_t at = first + i * (CUTTERS * WORD), left = f.row - byte[i];
        uint4 word = word_of<T, REVERSE>(f, x[i]);
        if (left < WORD && f.row < WORD)
            word = short_rows<T, REVERSE>(f, at, q[i], byte[i]);
        else if (left < WORD)
            word = joined(word, word_of<T, REVERSE>(f, pair_at(f, source_of<REVERSE>(f, q[i] + 1, -left))), (int)left);
        put<T>(f, at, word);
    }
}

/* --- Launches --- */

/* Blocks for one thread a word, as far as a grid goes. */
static unsigned blocks_of(int64_t words)
{
    const int64_t most = INT64_C(1) << 30;
    int64_t blocks = (words + THREADS - 1) / THREADS;
    return (unsigned)(blocks < most ? blocks : most);
}

static void move(cudaStream_t stream, const gm_flip_call *call)
{
    const uint4 *src = (const uint4 *)call->src;
    uint4 *dst = (uint4 *)call->dst;
    int64_t words = call->inner * call->bytes / WORD, total = call->outer * call->rows * words;
    if (total <= INT32_MAX)
        move_words<uint32_t><<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint32_t)total, (uint32_t)call->rows,
                                                                       (uint32_t)words);
    else
        move_words<uint64_t><<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint64_t)total, (uint64_t)call->rows,
                                                                       (uint64_t)words);
}

template <typename T>
static void reverse(cudaStream_t stream, const gm_flip_call *call)
{
    const uint4 *src = (const uint4 *)call->src;
    uint4 *dst = (uint4 *)call->dst;
    int64_t words = call->rows * (int64_t)sizeof(T) / WORD, total = call->outer * words;
    if (total <= INT32_MAX)
        reverse_words<T, uint32_t>
            <<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint32_t)total, (uint32_t)words);
    else
        reverse_words<T, uint64_t>
            <<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint64_t)total, (uint64_t)words);
}

/* T: as many bytes as all places are multiples of; where elements are reversed, one of them. */
template <typename T, bool REVERSE>
static void cut(cudaStream_t stream, const gm_flip_call *call)
{
    int64_t rows = REVERSE ? 1 : call->rows, row = (REVERSE ? call->rows : call->inner) * call->bytes;
    int64_t total = call->outer * rows * row, words = (total + 2 * (WORD - 1)) / WORD;
    flip_of f = {(const char *)call->src,
                 (const char *)call->src + total,
                 (char *)call->dst,
                 row,
                 rows,
                 total,
                 1.0 / (double)row,
                 1.0 / (double)rows};
    cut_words<T, REVERSE><<<(unsigned)((words + CUTS * CUTTERS - 1) / (CUTS * CUTTERS)), CUTTERS, 0, stream>>>(f);
}

template <typename T>
static void flip(cudaStream_t stream, const gm_flip_call *call, int is_reversal, int are_words)
{
    if (is_reversal && are_words)
        reverse<T>(stream, call);
    else if (is_reversal)
        cut<T, true>(stream, call);
    else if (are_words)
        move(stream, call);
    else
        cut<T, false>(stream, call);
}

extern "C" int gm_cuda_flip(gm_cuda_stream stream, const gm_flip_call *call)
{
    int is_reversal = call->inner == 1;
    size_t row = (size_t)((is_reversal ? call->rows : call->inner) * call->bytes);
    size_t places = (size_t)call->src | (size_t)call->dst | row;
    int64_t size = call->bytes;
    if (call->outer == 0 || call->rows == 0 || call->inner == 0)
        return cudaSuccess;
    if (!is_reversal)
        size = (int64_t)(places & (~places + 1)) < 8 ? (int64_t)(places & (~places + 1)) : 8;
    if (size == 1)
        flip<uint8_t>(stream, call, is_reversal, places % WORD == 0);
    else if (size == 2)
        flip<uint16_t>(stream, call, is_reversal, places % WORD == 0);
    else if (size == 4)
        flip<uint32_t>(stream, call, is_reversal, places % WORD == 0);
    else
        flip<uint64_t>(stream, call, is_reversal, places % WORD == 0);
    return cudaGetLastError();
}
