/* Swap of two axes, tile by tile through shared memory. Tiles that follow each other lie below each other in src: they
 * write neighbouring parts of the same columns, which become rows of dst. This order was the fastest by far.
 *
 * Where rows and columns begin at multiples of 16 bytes, each thread loads four rows of words of 16 bytes, transposes
 * their elements in registers and stores them in shared memory as parts of columns; the threads then write the columns
 * word by word. Shared memory is addressed so that neither has bank conflicts: word v of column j lies at
 * v ^ (j / EACH) % 8. transpose_cuda.cuh has the kernel for other rows and columns. */
#include "kernels/move/transpose_cuda.cuh"

#include "kernels/move/calls.h"

enum {
    SHORT = 64,  /* bytes of an axis: below them most of a tile would be empty */
    ROWS = 4,    /* that a thread loads */
    MOVERS = 256 /* threads of a block that moves rows */
};

/* --- Aligned rows and columns --- */

static __device__ __forceinline__ uint32_t part_of(const uint4 &word, int i)
{
    return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

template <typename T>
struct tile_of {
    enum {
        EACH = WORD / sizeof(T),                              /* elements of a word */
        HIGH = sizeof(T) == 8 ? 64 : 128 << (sizeof(T) == 1), /* rows of a tile */
        WIDE = sizeof(T) < 4 ? 256 / sizeof(T) : 64,          /* its columns */
        ACROSS = WIDE / EACH,                                 /* words of a row */
        DOWN = HIGH / EACH,                                   /* words of a column */
        THREADS = HIGH / ROWS * ACROSS,                       /* of a tile */
        SIDE = sizeof(T) == 1 ? 8 : 16,                       /* words of a row, of a warp */
        BLOCKS = 1536 / THREADS,                              /* of a multiprocessor */
        BYTES = WIDE * HIGH * sizeof(T)
    };
    static_assert(THREADS % LANES == 0 && ACROSS % SIDE == 0 && DOWN % 8 == 0, "whole warps");
};

/* A word of src, which leaves the L2 cache after those of dst: these are written to memory sooner then, in longer runs,
 * which takes 1 % off the time of a large matrix. */
static __device__ __forceinline__ uint4 load_word(const char *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint4 word;
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(from), "l"(policy));
    return word;
#else
    return __ldg((const uint4 *)from);
#endif
}

/* Puts four rows of the columns from word x on into the tile, as elements of rows 4 * y and on. */
static __device__ __forceinline__ void put_columns(const uint4 *row, int x, int y, uint8_t)
{
    typedef tile_of<uint8_t> t;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t part[ROWS] = {part_of(row[0], i), part_of(row[1], i), part_of(row[2], i), part_of(row[3], i)};
        turn(part, uint8_t());
#pragma unroll
        for (int c = 0; c < 4; c++)
            ((uint32_t *)&tile[(x * t::EACH + 4 * i + c) * t::DOWN + ((y >> 2) ^ (x & 7))])[y & 3] = part[c];
    }
}

static __device__ __forceinline__ void put_columns(const uint4 *row, int x, int y, uint16_t)
{
    typedef tile_of<uint16_t> t;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t high[2] = {part_of(row[0], i), part_of(row[1], i)}, low[2] = {part_of(row[2], i), part_of(row[3], i)};
        turn(high, uint16_t());
        turn(low, uint16_t());
#pragma unroll
        for (int c = 0; c < 2; c++)
            ((uint2 *)&tile[(x * t::EACH + 2 * i + c) * t::DOWN + ((y >> 1) ^ (x & 7))])[y & 1] = make_uint2(high[c],
                                                                                                             low[c]);
    }
}

static __device__ __forceinline__ void put_columns(const uint4 *row, int x, int y, uint32_t)
{
    typedef tile_of<uint32_t> t;
#pragma unroll
    for (int i = 0; i < 4; i++)
        tile[(x * t::EACH + i) * t::DOWN + (y ^ (x & 7))] = make_uint4(part_of(row[0], i), part_of(row[1], i),
                                                                       part_of(row[2], i), part_of(row[3], i));
}

static __device__ __forceinline__ void put_columns(const uint4 *row, int x, int y, uint64_t)
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

template <typename T>
static __global__ void __launch_bounds__(tile_of<T>::THREADS, tile_of<T>::BLOCKS) swap_aligned(swap_of s)
{
    typedef tile_of<T> t;
    enum { STEP = t::THREADS / t::DOWN, UP = t::ACROSS / t::SIDE };
    spot p = spot_of(s);
    int64_t a = p.down * t::HIGH, b = p.along * t::WIDE;
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int high = (int)(s.first - a < t::HIGH ? s.first - a : t::HIGH);
    int wide = (int)(s.second - b < t::WIDE ? s.second - b : t::WIDE);
    int x = lane % t::SIDE + t::SIDE * (warp % UP), y = lane / t::SIDE + LANES / t::SIDE * (warp / UP);
    const char *from = rows_of<T>(s, p) + b * (int)sizeof(T) + x * WORD + (a + y * ROWS) * s.src_step;
    uint4 rows[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++, from += s.src_step)
        rows[r] = y * ROWS + r < high && x * t::EACH < wide ? load_word(from) : make_uint4(0, 0, 0, 0);
    put_columns(rows, x, y, T());
    __syncthreads();
    int j = threadIdx.x / t::DOWN, v = threadIdx.x % t::DOWN;
    char *to = columns_of<T>(s, p) + a * (int)sizeof(T) + (b + j) * s.dst_step + v * WORD;
#pragma unroll
    for (int i = 0; i < t::WIDE / STEP; i++, j += STEP, to += STEP * s.dst_step)
        if (j < wide && v * t::EACH < high)
            *(uint4 *)to = tile[j * t::DOWN + (v ^ (j / t::EACH & 7))];
}

/* --- Rows of elements --- */

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

static divisor divisor_of(int64_t by)
{
    uint32_t bits = 0;
    while (INT64_C(1) << bits < by)
        bits++;
    return {(uint32_t)by, (uint32_t)(((UINT64_C(1) << (31 + bits)) + (uint64_t)by - 1) / (uint64_t)by), 31 + bits};
}

/* Returns 0, and does nothing, where there are too many tiles. */
template <typename KERNEL>
static int launch_tiles(cudaStream_t stream, const gm_transpose_call *c, KERNEL kernel, int64_t down, int64_t along,
                        int threads, int bytes, uint32_t pitch, uint32_t apart)
{
    int64_t matrices = c->outer * c->middle;
    if (down > INT32_MAX || along > INT32_MAX / down || matrices > INT32_MAX / (down * along))
        return 0;
    swap_of s = {(const char *)c->src,
                 (const char *)c->src + matrices * c->first * c->second * c->bytes,
                 (char *)c->dst,
                 c->first,
                 c->second,
                 c->middle * c->second * c->bytes,
                 c->middle * c->first * c->bytes,
                 divisor_of(down * along),
                 divisor_of(down),
                 divisor_of(c->middle),
                 pitch,
                 apart};
    /* An error stays for the caller's cudaGetLastError(). */
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess)
        kernel<<<(unsigned)(down * along * matrices), threads, bytes, stream>>>(s);
    return 1;
}

template <typename T>
static int launch_aligned(cudaStream_t stream, const gm_transpose_call *c)
{
    typedef tile_of<T> t;
    return launch_tiles(stream, c, swap_aligned<T>, tiles_along(c->first, t::HIGH), tiles_along(c->second, t::WIDE),
                        t::THREADS, t::BYTES, 0, 0);
}

template <typename T, typename t, int BLOCKS>
static int launch_any(cudaStream_t stream, const gm_transpose_call *c)
{
    /* Words of a column, wherever it begins in the first of them. */
    int64_t words = tiles_along(c->first * t::SIZE + WORD - t::SIZE, WORD);
    uint32_t pitch = t::WORDS * WORD + t::MARGIN + (uint32_t)(c->middle * c->first * t::SIZE % WORD);
    /* Banks of the columns of neighbouring threads: without this all are one, or two, where this is a multiple of 32.
     */
    uint32_t apart = t::EACH > 1 && t::EACH * pitch % 32 == 0 ? WORD : 0;
    return launch_tiles(stream, c, swap_any<T, t, BLOCKS>, tiles_along(words, t::WORDS),
                        tiles_along(c->second, t::WIDE), t::THREADS, t::MOST, pitch, apart);
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
    size_t places = (size_t)c->src | (size_t)c->dst | (size_t)(c->first * c->bytes) | (size_t)(c->second * c->bytes);
    if (c->inner != 1 || c->first * c->bytes < SHORT || c->second * c->bytes < SHORT)
        return 0;
    if (places % WORD == 0)
        return c->bytes == 1   ? launch_aligned<uint8_t>(stream, c)
               : c->bytes == 2 ? launch_aligned<uint16_t>(stream, c)
               : c->bytes == 4 ? launch_aligned<uint32_t>(stream, c)
                               : launch_aligned<uint64_t>(stream, c);
    return c->bytes == 1   ? launch_any<uint8_t, loose_of<uint8_t, 15, 2, 8>, 2>(stream, c)
           : c->bytes == 2 ? launch_any<uint16_t, loose_of<uint16_t, 31, 2, 8>, 2>(stream, c)
           : c->bytes == 4 ? launch_any<uint32_t, loose_of<uint32_t, 31, 2, 8>, 3>(stream, c)
                           : launch_any<uint64_t, loose_of<uint64_t, 31, 2, 8>, 3>(stream, c);
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
