/* Swap of two axes. A block moves a tile of 32 KiB: each thread loads four rows of a word of 16 bytes, transposes these
 * elements in registers and stores them in shared memory as parts of columns; the threads then write the columns word
 * by word. Shared memory is addressed so that neither has bank conflicts: word v of column j lies at v ^ (j / EACH)
 * % 8.
 *
 * Rows that do not begin at multiples of 16 bytes are loaded as pairs of aligned words, which are shifted; so are the
 * columns on their way out, but for the elements before their first whole word and after the last one. */
#include "kernels/kernels.h"
#include "kernels/move/calls.h"

enum {
    WORD = 16,     /* bytes */
    ROWS = 4,      /* that a thread loads */
    THREADS = 512, /* of a tile */
    STRIP = 16,    /* tiles side by side that follow each other: both sides stay in few pages of memory */
    SHORT = 64,    /* bytes of an axis: below them most of a tile would be empty */
    MOVERS = 256   /* threads of a block that moves rows */
};

template <typename T>
struct tile_of {
    enum {
        EACH = WORD / sizeof(T),                     /* elements of a word */
        HIGH = sizeof(T) == 8 ? 64 : 128,            /* rows of a tile */
        WIDE = sizeof(T) < 4 ? 256 / sizeof(T) : 64, /* its columns */
        ACROSS = WIDE / EACH,                        /* words of a row */
        DOWN = HIGH / EACH                           /* words of a column */
    };
    static_assert(HIGH / ROWS * ACROSS == THREADS, "one word of four rows for each thread");
};

/* [outer][first][middle][second] becomes [outer][second][middle][first]. */
struct swap_of {
    const char *src, *src_end;
    char *dst;
    int64_t first, second;
    uint32_t middle;
    uint32_t down, along; /* tiles of a matrix first x second */
};

/* --- Elements in registers --- */

/* x[r]: row r of four columns of one byte. Becomes x[c]: column c of four rows. */
static __device__ __forceinline__ void turn_bytes(uint32_t *x)
{
    uint32_t low01 = __byte_perm(x[0], x[1], 0x5140), low23 = __byte_perm(x[2], x[3], 0x5140);
    uint32_t high01 = __byte_perm(x[0], x[1], 0x7362), high23 = __byte_perm(x[2], x[3], 0x7362);
    x[0] = __byte_perm(low01, low23, 0x5410);
    x[1] = __byte_perm(low01, low23, 0x7632);
    x[2] = __byte_perm(high01, high23, 0x5410);
    x[3] = __byte_perm(high01, high23, 0x7632);
}

static __device__ __forceinline__ uint32_t part_of(const uint4 &word, int i)
{
    return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

/* Puts four rows of the columns from word x on into the tile, as elements of rows 4 * y and on. */
static __device__ __forceinline__ void put_columns(uint4 *tile, const uint4 *row, int x, int y, uint8_t)
{
    typedef tile_of<uint8_t> t;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t part[ROWS] = {part_of(row[0], i), part_of(row[1], i), part_of(row[2], i), part_of(row[3], i)};
        turn_bytes(part);
#pragma unroll
        for (int c = 0; c < 4; c++)
            ((uint32_t *)&tile[(x * t::EACH + 4 * i + c) * t::DOWN + ((y >> 2) ^ (x & 7))])[y & 3] = part[c];
    }
}

static __device__ __forceinline__ void put_columns(uint4 *tile, const uint4 *row, int x, int y, uint16_t)
{
    typedef tile_of<uint16_t> t;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t part[ROWS] = {part_of(row[0], i), part_of(row[1], i), part_of(row[2], i), part_of(row[3], i)};
        int at = (x * t::EACH + 2 * i) * t::DOWN + ((y >> 1) ^ (x & 7));
        ((uint2 *)&tile[at])[y & 1] = make_uint2(__byte_perm(part[0], part[1], 0x5410),
                                                 __byte_perm(part[2], part[3], 0x5410));
        ((uint2 *)&tile[at + t::DOWN])[y & 1] = make_uint2(__byte_perm(part[0], part[1], 0x7632),
                                                           __byte_perm(part[2], part[3], 0x7632));
    }
}

static __device__ __forceinline__ void put_columns(uint4 *tile, const uint4 *row, int x, int y, uint32_t)
{
    typedef tile_of<uint32_t> t;
#pragma unroll
    for (int i = 0; i < 4; i++)
        tile[(x * t::EACH + i) * t::DOWN + (y ^ (x & 7))] = make_uint4(part_of(row[0], i), part_of(row[1], i),
                                                                       part_of(row[2], i), part_of(row[3], i));
}

static __device__ __forceinline__ void put_columns(uint4 *tile, const uint4 *row, int x, int y, uint64_t)
{
    typedef tile_of<uint64_t> t;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            tile[(x * t::EACH + i) * t::DOWN + ((2 * y + h) ^ (x & 7))] = make_uint4(
                part_of(row[2 * h], 2 * i), part_of(row[2 * h], 2 * i + 1), part_of(row[2 * h + 1], 2 * i),
                part_of(row[2 * h + 1], 2 * i + 1));
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

/* --- Loads --- */

/* A word of four rows, step bytes apart; those of `rows` are there, each with `bytes` bytes from `from` on. */
template <typename T>
static __device__ __forceinline__ void load_edge(uint4 *row, const char *from, int64_t step, int rows, int bytes)
{
    for (int r = 0; r < ROWS; r++) {
        union {
            uint4 word;
            T element[tile_of<T>::EACH];
        } all = {make_uint4(0, 0, 0, 0)};
#pragma unroll
        for (int i = 0; i < tile_of<T>::EACH; i++)
            if (r < rows && i * (int)sizeof(T) < bytes)
                all.element[i] = *(const T *)(from + r * step + i * (int)sizeof(T));
        row[r] = all.word;
    }
}

static __device__ __forceinline__ void load_aligned(uint4 *row, const char *from, int64_t step, int64_t rows,
                                                    int64_t columns)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        row[r] = r < rows && columns > 0 ? __ldg((const uint4 *)(from + r * step)) : make_uint4(0, 0, 0, 0);
}

template <typename T>
static __device__ __forceinline__ void load_any(uint4 *row, const swap_of &s, const char *from, int64_t step,
                                                int64_t rows, int64_t bytes)
{
    unsigned at[ROWS];
    const uint4 *pair[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        at[r] = (unsigned)(size_t)(from + r * step) % WORD;
        pair[r] = (const uint4 *)(from + r * step - at[r]);
    }
    if (rows < ROWS || bytes < WORD || (const char *)pair[0] < s.src || (const char *)(pair[3] + 2) > s.src_end) {
        load_edge<T>(row, from, step, rows > 0 ? (int)(rows < ROWS ? rows : ROWS) : 0,
                     bytes > 0 ? (int)(bytes < WORD ? bytes : WORD) : 0);
        return;
    }
    uint4 low[ROWS], high[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        low[r] = __ldg(pair[r]);
        high[r] = __ldg(pair[r] + 1);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        row[r] = shifted<T>(low[r], high[r], at[r]);
}

/* --- Stores --- */

/* Word v of column j of a tile. */
template <typename T>
static __device__ __forceinline__ const uint4 &word_of(const uint4 *tile, int j, int v)
{
    return tile[j * tile_of<T>::DOWN + (v ^ (j / tile_of<T>::EACH & 7))];
}

/* Columns to `to`, step bytes apart, bytes of each. */
template <typename T>
static __device__ __forceinline__ void store_aligned(const uint4 *tile, char *to, int64_t step, int columns, int bytes)
{
    enum { DOWN = tile_of<T>::DOWN, WORDS = tile_of<T>::WIDE * DOWN / THREADS };
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        int k = i * THREADS + (int)threadIdx.x, j = k / DOWN, v = k % DOWN;
        if (j < columns && v * WORD < bytes)
            *(uint4 *)(to + j * step + v * WORD) = word_of<T>(tile, j, v);
    }
}

template <typename T>
static __device__ __forceinline__ void store_any(const uint4 *tile, char *to, int64_t step, int columns, int bytes)
{
    enum { SIZE = sizeof(T), EACH = tile_of<T>::EACH, DOWN = tile_of<T>::DOWN, WIDE = tile_of<T>::WIDE };
#pragma unroll
    for (int i = 0; i < WIDE * DOWN / THREADS; i++) {
        int k = i * THREADS + (int)threadIdx.x, j = k / DOWN, v = k % DOWN;
        char *column = to + j * step;
        int head = (int)(-(size_t)column % WORD);
        if (j < columns && head + (v + 1) * WORD <= bytes)
            *(uint4 *)(column + head + v * WORD) = shifted<T>(
                word_of<T>(tile, j, v), word_of<T>(tile, j, v + 1 < DOWN ? v + 1 : v), (unsigned)head);
    }
    for (int k = (int)threadIdx.x; k < columns * EACH; k += THREADS) {
        int j = k / EACH;
        char *column = to + j * step;
        int head = (int)(-(size_t)column % WORD);
        head = head < bytes ? head : bytes;
        int tail = head + (bytes - head) / WORD * WORD;
        for (int at = k % EACH * SIZE; at < head + bytes - tail; at += WORD) {
            int byte = at < head ? at : tail + at - head;
            const uint4 &word = word_of<T>(tile, j, byte / WORD);
            *(T *)(column + byte) = *(const T *)((const char *)&word + byte % WORD);
        }
    }
}

/* --- Kernels --- */

template <typename T, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, ALIGNED ? 3 : 2) swap_tiles(swap_of s)
{
    typedef tile_of<T> t;
    enum { SIZE = sizeof(T) };
    __shared__ uint4 tile[t::WIDE * t::DOWN];
    uint32_t matrix = blockIdx.x / (s.down * s.along), place = blockIdx.x - matrix * (s.down * s.along);
    uint32_t strip = place / (STRIP * s.down), left = place - strip * (STRIP * s.down);
    uint32_t width = s.along - strip * STRIP < STRIP ? s.along - strip * STRIP : STRIP;
    int64_t a = (int64_t)(left / width) * t::HIGH, b = (int64_t)(strip * STRIP + left % width) * t::WIDE;
    int64_t o = matrix / s.middle, m = matrix % s.middle;
    int64_t src_step = s.middle * s.second * SIZE, dst_step = s.middle * s.first * SIZE;
    /* A warp has 8 words of 16 rows. */
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int x = (lane & 7) + 8 * (warp % (t::ACROSS / 8)), y = (lane >> 3) + 4 * (warp / (t::ACROSS / 8));
    int64_t row = a + y * ROWS, column = b + x * t::EACH;
    uint4 rows[ROWS];
    const char *from = s.src + ((o * s.first * s.middle + m) * s.second + column) * SIZE + row * src_step;
    if constexpr (ALIGNED)
        load_aligned(rows, from, src_step, s.first - row, s.second - column);
    else
        load_any<T>(rows, s, from, src_step, s.first - row, (s.second - column) * SIZE);
    put_columns(tile, rows, x, y, T());
    __syncthreads();
    char *to = s.dst + ((o * s.second * s.middle + m) * s.first + a) * SIZE + b * dst_step;
    int columns = (int)(s.second - b < t::WIDE ? s.second - b : t::WIDE);
    int bytes = (int)(s.first - a < t::HIGH ? s.first - a : t::HIGH) * SIZE;
    if constexpr (ALIGNED)
        store_aligned<T>(tile, to, dst_step, columns, bytes);
    else
        store_any<T>(tile, to, dst_step, columns, bytes);
}

/* [outer][second][middle][first][words] of dst, each word from its place in src. INDEX holds their number. */
template <typename W, typename INDEX>
static __global__ void __launch_bounds__(MOVERS)
    swap_words(const W *src, W *dst, INDEX total, INDEX first, INDEX middle, INDEX second, INDEX words)
{
    for (INDEX k = (INDEX)blockIdx.x * MOVERS + threadIdx.x; k < total; k += (INDEX)gridDim.x * MOVERS) {
        INDEX row = k / words, word = k - row * words, r = row / first, a = row - r * first;
        INDEX q = r / middle, m = r - q * middle, o = q / second, b = q - o * second;
        dst[k] = src[(((o * first + a) * middle + m) * second + b) * words + word];
    }
}

/* --- Launches --- */

static int64_t tiles_along(int64_t extent, int64_t side)
{
    return (extent + side - 1) / side;
}

/* Returns 0, and does nothing, where there are too many tiles. */
template <typename T>
static int launch_tiles(cudaStream_t stream, const gm_transpose_call *c)
{
    int64_t down = tiles_along(c->first, tile_of<T>::HIGH), along = tiles_along(c->second, tile_of<T>::WIDE);
    int64_t size = (int64_t)sizeof(T), matrices = c->outer * c->middle;
    size_t places = (size_t)c->src | (size_t)c->dst | (size_t)(c->first * size) | (size_t)(c->second * size);
    swap_of s = {(const char *)c->src,
                 (const char *)c->src + matrices * c->first * c->second * size,
                 (char *)c->dst,
                 c->first,
                 c->second,
                 (uint32_t)c->middle,
                 (uint32_t)down,
                 (uint32_t)along};
    if (down > INT32_MAX / STRIP || along > INT32_MAX / STRIP || down * along > INT32_MAX / STRIP / matrices)
        return 0;
    unsigned blocks = (unsigned)(down * along * matrices);
    if (places % WORD == 0)
        swap_tiles<T, true><<<blocks, THREADS, 0, stream>>>(s);
    else
        swap_tiles<T, false><<<blocks, THREADS, 0, stream>>>(s);
    return 1;
}

template <typename W>
static void move_words(cudaStream_t stream, const gm_transpose_call *c)
{
    const int64_t most = INT64_C(1) << 30;
    int64_t words = c->inner * c->bytes / (int64_t)sizeof(W);
    int64_t total = c->outer * c->first * c->middle * c->second * words, blocks = tiles_along(total, MOVERS);
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    if (total <= INT32_MAX)
        swap_words<W, uint32_t><<<grid, MOVERS, 0, stream>>>((const W *)c->src, (W *)c->dst, (uint32_t)total,
                                                             (uint32_t)c->first, (uint32_t)c->middle,
                                                             (uint32_t)c->second, (uint32_t)words);
    else
        swap_words<W, uint64_t><<<grid, MOVERS, 0, stream>>>((const W *)c->src, (W *)c->dst, (uint64_t)total,
                                                             (uint64_t)c->first, (uint64_t)c->middle,
                                                             (uint64_t)c->second, (uint64_t)words);
}

static int move_tiles(cudaStream_t stream, const gm_transpose_call *c)
{
    if (c->inner != 1 || c->first * c->bytes < SHORT || c->second * c->bytes < SHORT)
        return 0;
    return c->bytes == 1   ? launch_tiles<uint8_t>(stream, c)
           : c->bytes == 2 ? launch_tiles<uint16_t>(stream, c)
           : c->bytes == 4 ? launch_tiles<uint32_t>(stream, c)
                           : launch_tiles<uint64_t>(stream, c);
}

extern "C" int gm_cuda_transpose(gm_cuda_stream stream, const gm_transpose_call *call)
{
    gm_transpose_call c = gm_transpose_simplified(call);
    size_t places = (size_t)c.src | (size_t)c.dst | (size_t)(c.inner * c.bytes);
    if (c.outer == 0 || c.first == 0 || c.middle == 0 || c.second == 0 || c.inner == 0 || move_tiles(stream, &c))
        return cudaGetLastError();
    if (places % 16 == 0)
        move_words<uint4>(stream, &c);
    else if (places % 8 == 0)
        move_words<uint64_t>(stream, &c);
    else if (places % 4 == 0)
        move_words<uint32_t>(stream, &c);
    else if (places % 2 == 0)
        move_words<uint16_t>(stream, &c);
    else
        move_words<uint8_t>(stream, &c);
    return cudaGetLastError();
}
