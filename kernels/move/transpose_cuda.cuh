/* transpose_cuda.cuh - the swap of two axes by tiles: what all kernels share, and the one for rows and columns that
 * begin anywhere.
 *
 * There a tile is an equal number of aligned words of each column, wherever in the column these words begin: it is
 * written in whole words but for the first one and the last one of the matrix. In shared memory columns lie as far
 * apart, modulo 16 bytes, as in dst, so words that are aligned there are aligned here. Elements of 4 and 8 bytes go
 * there one by one; of smaller ones blocks of 4 bytes both ways, transposed in registers and shifted to their places in
 * the columns. */
#ifndef GM_KERNELS_MOVE_TRANSPOSE_CUDA_CUH
#define GM_KERNELS_MOVE_TRANSPOSE_CUDA_CUH

#include "kernels/kernels.h"

enum {
    WORD = 16, /* bytes */
    LANES = 32 /* threads of a warp */
};

/* n / by for n < 2^31: a division in each thread would take longer than the rest. */
struct divisor {
    uint32_t by, factor, shift;
};

/* [outer][first][middle][second] becomes [outer][second][middle][first]. */
struct swap_of {
    const char *src, *src_end;
    char *dst;
    int64_t first, second;
    int64_t src_step, dst_step;  /* bytes from a row to the next one, from a column to the next one */
    divisor tiles, down, middle; /* of a matrix first x second, of its columns; matrices side by side */
    uint32_t pitch, apart; /* bytes of a column in shared memory; those between the columns of two threads, besides */
};

/* The matrix of a block, and its tile. */
struct spot {
    int64_t outer, middle, down, along;
};

static __device__ __forceinline__ uint32_t divided(uint32_t n, const divisor &d)
{
    return (uint32_t)((uint64_t)n * d.factor >> d.shift);
}

static __device__ __forceinline__ spot spot_of(const swap_of &s)
{
    uint32_t matrix = divided(blockIdx.x, s.tiles), tile = blockIdx.x - matrix * s.tiles.by;
    uint32_t along = divided(tile, s.down), outer = divided(matrix, s.middle);
    return {outer, matrix - outer * s.middle.by, tile - along * s.down.by, along};
}

/* The first row of a matrix in src, and its first column in dst. */
template <typename T>
static __device__ __forceinline__ const char *rows_of(const swap_of &s, const spot &p)
{
    return s.src + (p.outer * s.first * s.middle.by + p.middle) * s.second * (int)sizeof(T);
}

template <typename T>
static __device__ __forceinline__ char *columns_of(const swap_of &s, const spot &p)
{
    return s.dst + (p.outer * s.second * s.middle.by + p.middle) * s.first * (int)sizeof(T);
}

extern __shared__ uint4 tile[];

/* --- Elements in registers --- */

/* x[r]: row r of four columns of one byte. Becomes x[c]: column c of four rows. */
static __device__ __forceinline__ void turn(uint32_t *x, uint8_t)
{
    uint32_t low01 = __byte_perm(x[0], x[1], 0x5140), low23 = __byte_perm(x[2], x[3], 0x5140);
    uint32_t high01 = __byte_perm(x[0], x[1], 0x7362), high23 = __byte_perm(x[2], x[3], 0x7362);
    x[0] = __byte_perm(low01, low23, 0x5410);
    x[1] = __byte_perm(low01, low23, 0x7632);
    x[2] = __byte_perm(high01, high23, 0x5410);
    x[3] = __byte_perm(high01, high23, 0x7632);
}

/* x[r]: row r of two columns of two bytes. Becomes x[c]: column c of two rows. */
static __device__ __forceinline__ void turn(uint32_t *x, uint16_t)
{
    uint32_t left = __byte_perm(x[0], x[1], 0x5410);
    x[1] = __byte_perm(x[0], x[1], 0x7632);
    x[0] = left;
}

/* --- Tiles of any rows and columns --- */

/* A tile is N words of each column, and one word of rows more before them: that far a column's words may begin before
 * those of another one. SIDE warps lie side by side, RUNS below each other. */
template <typename T, int N, int SIDE, int RUNS>
struct loose_of {
    enum {
        SIZE = sizeof(T),
        WORDS = N,
        BELOW = RUNS,
        PART = SIZE == 8 ? 8 : 4,            /* bytes of a column that a thread stores at a time */
        EACH = PART / SIZE,                  /* their elements; columns of a thread */
        USED = SIZE < 4 ? LANES - 1 : LANES, /* lanes with columns of their own */
        THREADS = LANES * SIDE * RUNS,
        HIGH = (N + 1) * WORD / SIZE,                                       /* rows */
        WIDE = USED * EACH * SIDE,                                          /* columns */
        STEP = THREADS / (N + 1),                                           /* columns that are written at a time */
        MARGIN = 2 * WORD,                                                  /* of a column in shared memory */
        MOST = (WIDE + 1) * (N * WORD + MARGIN + WORD) + WIDE / EACH * WORD /* bytes of shared memory */
    };
    static_assert(STEP * (N + 1) == THREADS && STEP % EACH == 0 && HIGH % (EACH * RUNS * SIDE) == 0, "whole parts");
};

/* The rows and columns of a tile that exist: rows from low on, below high; columns below wide. */
struct limits {
    int low, high, wide;
};

/* Elements of 4 or 8 bytes. Lane 0 of a warp loads elements at multiples of 128 or 256 bytes: a load is one request to
 * memory for each 128 bytes there, and two elsewhere. Lanes whose elements would lie before a row of the tile load
 * those at its end in place of them. to: the place of row 0 of column 0. */
template <typename T, typename t>
static __device__ __forceinline__ void fill_large(const swap_of &s, const char *corner, int to, limits l)
{
    enum { SIZE = sizeof(T), MINE = t::HIGH * LANES / t::THREADS, LOADS = t::WIDE / LANES };
    static_assert((t::WIDE & (t::WIDE - 1)) == 0, "columns are counted modulo their number");
    int row = (int)threadIdx.x / LANES * MINE;
    const char *from = corner + row * s.src_step;
    T element[MINE][LOADS];
    unsigned column[MINE];
#pragma unroll
    for (int r = 0; r < MINE; r++, from += s.src_step) {
        bool there = row + r >= l.low && row + r < l.high;
        column[r] = threadIdx.x % LANES - (unsigned)(size_t)from / SIZE % LANES;
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            unsigned j = (column[r] + k * LANES) % t::WIDE;
            element[r][k] = there && j < (unsigned)l.wide ? __ldg((const T *)from + j) : 0;
        }
    }
#pragma unroll
    for (int r = 0; r < MINE; r++)
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            unsigned j = (column[r] + k * LANES) % t::WIDE;
            *(T *)((char *)tile + to + j * s.pitch + (row + r) * SIZE) = element[r][k];
        }
}

/* Whether src has all 4 bytes at p. */
static __device__ __forceinline__ bool has_four(const swap_of &s, const char *p)
{
    return p >= s.src && p + 4 <= s.src_end;
}

/* Those of the 4 bytes at p that src has. */
template <typename T>
static __device__ __forceinline__ uint32_t some_of_four(const swap_of &s, const char *p)
{
    uint32_t bytes = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i += (int)sizeof(T))
        if (p + i >= s.src && p + i < s.src_end)
            bytes |= (uint32_t)__ldg((const T *)(p + i)) << 8 * i;
    return bytes;
}

/* Elements of 1 or 2 bytes. A thread loads the aligned 4 bytes with the first one of its columns, and has the next four
 * from the next thread: the last one of a warp has no columns. It puts blocks of 4 bytes both ways; since 4 aligned
 * bytes of a column in shared memory are of two blocks, it begins with the block before its first one. */
template <typename T, typename t, bool WHOLE>
static __device__ __forceinline__ void fill_small(const swap_of &s, const char *corner, int to, limits l)
{
    enum { EACH = t::EACH, RUN = t::HIGH / t::BELOW, BLOCKS = RUN / EACH + 1, ASIDE = t::WIDE / t::USED / EACH };
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int j = (warp % ASIDE * t::USED + lane) * EACH, row = warp / ASIDE * RUN - EACH;
    const char *from = corner + j * (int)sizeof(T) + row * s.src_step;
    uint32_t block[BLOCKS][EACH], past[EACH];
#pragma unroll
    for (int i = 0; i < BLOCKS; i++)
#pragma unroll
        for (int r = 0; r < EACH; r++, from += s.src_step) {
            past[r] = (uint32_t)(size_t)from & 3; /* the same in all blocks: each is 4 bytes high */
            bool there = WHOLE || (row + i * EACH + r >= l.low && row + i * EACH + r < l.high);
            bool all = WHOLE || (there && has_four(s, from - past[r]));
            block[i][r] = all ? __ldg((const uint32_t *)(from - past[r])) : 0;
            if (!WHOLE && there && !all)
                block[i][r] = some_of_four<T>(s, from - past[r]);
        }
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
#pragma unroll
        for (int r = 0; r < EACH; r++)
            block[i][r] = __funnelshift_r(block[i][r], __shfl_down_sync(~0u, block[i][r], 1), 8 * past[r]);
        turn(block[i], T());
    }
    if (lane == t::USED)
        return;
#pragma unroll
    for (int c = 0; c < EACH; c++) {
        uint32_t place = to + (j + c) * s.pitch + j / EACH * s.apart + (row + EACH) * (int)sizeof(T);
        uint32_t *part = (uint32_t *)((char *)tile + place / 4 * 4);
#pragma unroll
        for (int i = 1; i < BLOCKS; i++)
            part[i - 1] = __funnelshift_l(block[i - 1][c], block[i][c], 8 * (place % 4));
    }
}

/* Word v of columns j and on. to: column 0 of the tile; from: its place in shared memory; before, left: bytes of a
 * column before the tile and from there on, or many. */
template <typename T, typename t>
static __device__ __forceinline__ void store_columns(const swap_of &s, char *to, uint32_t from, int before, int left,
                                                     int wide)
{
    enum { SIZE = sizeof(T) };
    int j = threadIdx.x / (t::WORDS + 1), at = threadIdx.x % (t::WORDS + 1) * WORD;
    from += j * s.pitch + j / t::EACH * s.apart;
    to += j * s.dst_step;
    for (int end = at < t::WORDS * WORD ? wide : 0; j < end; j += t::STEP, to += t::STEP * s.dst_step) {
        int place = at - (int)((size_t)to % WORD);
        const char *word = (const char *)tile + from / WORD * WORD + at;
        if (before + place >= 0 && place + WORD <= left)
            *(uint4 *)(to + place) = *(const uint4 *)word;
        else
            for (int i = 0; i < WORD; i += SIZE)
                if (before + place + i >= 0 && place + i < left)
                    *(T *)(to + place + i) = *(const T *)(word + i);
        from += t::STEP * s.pitch + t::STEP / t::EACH * s.apart;
    }
}

template <typename T, typename t, int BLOCKS>
static __global__ void __launch_bounds__(t::THREADS, BLOCKS) swap_any(swap_of s)
{
    enum { SIZE = sizeof(T), EACH = WORD / SIZE };
    spot p = spot_of(s);
    int64_t a = p.down * (t::WORDS * EACH), row = a - EACH, b = p.along * t::WIDE;
    limits l = {row < t::EACH ? (int)-row : -t::EACH, (int)(s.first - row < t::HIGH ? s.first - row : t::HIGH),
                (int)(s.second - b < t::WIDE ? s.second - b : t::WIDE)};
    const char *corner = rows_of<T>(s, p) + b * SIZE + row * s.src_step;
    char *to = columns_of<T>(s, p) + a * SIZE + b * s.dst_step;
    int place = t::MARGIN + (int)((size_t)to % WORD);
    if constexpr (SIZE >= 4)
        fill_large<T, t>(s, corner, place - WORD, l);
    else if (l.low == -t::EACH && l.high == t::HIGH && corner - t::EACH * s.src_step - 4 >= s.src &&
             corner + (t::HIGH - 1) * s.src_step + t::WIDE * SIZE + 8 <= s.src_end)
        fill_small<T, t, true>(s, corner, place - WORD, l);
    else
        fill_small<T, t, false>(s, corner, place - WORD, l);
    __syncthreads();
    store_columns<T, t>(s, to, place, a > 0 ? WORD : 0, (int)((s.first - a < t::HIGH ? s.first - a : t::HIGH) * SIZE),
                        l.wide);
}

#endif
