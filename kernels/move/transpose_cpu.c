/* Swap of two axes, tile by tile: the rows of a tile of src are copied to a buffer that the first cache holds, where
 * rows that are a power of two apart in src do not meet, and its columns become runs of dst. */
#include <string.h>

#include "base/size.h"
#include "kernels/move/calls.h"

enum {
    TILE = 64,        /* elements, both ways */
    PAD = 16,         /* bytes after a row of the buffer */
    SEGMENT = 1 << 14 /* bytes of a row of several elements that are moved at a time */
};

/* An axis of extent 1 leaves the others in order: [m][b] or [a][m] are the axes then. */
static void drop_single_axis(gm_transpose_call *c)
{
    if (c->first == 1) {
        c->first = c->middle;
        c->middle = 1;
    } else if (c->second == 1) {
        c->second = c->middle;
        c->middle = 1;
    }
}

gm_transpose_call gm_transpose_simplified(const gm_transpose_call *call)
{
    gm_transpose_call c = *call;
    int64_t row = c.inner * c.bytes;
    size_t places = (size_t)c.src | (size_t)c.dst;
    drop_single_axis(&c);
    if (c.first == 1 || c.second == 1) { /* nothing changes its place */
        c.inner = c.outer * c.first * c.middle * c.second * c.inner;
        c.outer = c.first = c.middle = c.second = 1;
    } else if ((row == 2 || row == 4 || row == 8) && places % (size_t)row == 0) {
        c.inner = 1;
        c.bytes = row;
    }
    return c;
}

/* A matrix [rows][cols], rows src_ld elements apart, becomes [cols][rows], dst_ld apart; at most TILE of each. */
typedef void transpose_tile(char *dst, int64_t dst_ld, const char *src, int64_t src_ld, int64_t rows, int64_t cols);

#define TRANSPOSE_LARGE(type)                                                                                       \
    static void tile_##type(char *dst, int64_t dst_ld, const char *src, int64_t src_ld, int64_t rows, int64_t cols) \
    {                                                                                                               \
        enum { LD = TILE + PAD / sizeof(type) };                                                                    \
        type buffer[TILE * LD];                                                                                     \
        for (int64_t i = 0; i < rows; i++)                                                                          \
            memcpy(buffer + i * LD, src + i * src_ld * (int64_t)sizeof(type), (size_t)cols * sizeof(type));         \
        for (int64_t j = 0; j < cols; j++) {                                                                        \
            type *to = (type *)dst + j * dst_ld;                                                                    \
            for (int64_t i = 0; i < rows; i++)                                                                      \
                to[i] = buffer[i * LD + j];                                                                         \
        }                                                                                                           \
    }
TRANSPOSE_LARGE(uint32_t)
TRANSPOSE_LARGE(uint64_t)

/* Small elements: a shuffle of the upper half of the tile with the lower one, element by element, takes the first bit
 * of an element's number to its end; after one for each bit of its row it stands at [column][row]. The compiler makes
 * vectors of these loops. */
#define SHUFFLE(type)                                                        \
    static void shuffle_##type(type *restrict to, const type *restrict from) \
    {                                                                        \
        for (int i = 0; i < TILE * TILE / 2; i++) {                          \
            to[2 * i] = from[i];                                             \
            to[2 * i + 1] = from[TILE * TILE / 2 + i];                       \
        }                                                                    \
    }
SHUFFLE(uint8_t)
SHUFFLE(uint16_t)

#define TRANSPOSE_SMALL(type)                                                                                       \
    static void tile_##type(char *dst, int64_t dst_ld, const char *src, int64_t src_ld, int64_t rows, int64_t cols) \
    {                                                                                                               \
        type a[TILE * TILE], b[TILE * TILE];                                                                        \
        if (rows < TILE || cols < TILE)                                                                             \
            memset(a, 0, sizeof a);                                                                                 \
        for (int64_t i = 0; i < rows; i++)                                                                          \
            memcpy(a + i * TILE, src + i * src_ld * (int64_t)sizeof(type), (size_t)cols * sizeof(type));            \
        for (int bit = 1; bit < TILE; bit *= 4) {                                                                   \
            shuffle_##type(b, a);                                                                                   \
            shuffle_##type(a, b);                                                                                   \
        }                                                                                                           \
        for (int64_t j = 0; j < cols; j++)                                                                          \
            memcpy(dst + j * dst_ld * (int64_t)sizeof(type), a + j * TILE, (size_t)rows * sizeof(type));            \
    }
TRANSPOSE_SMALL(uint8_t)
TRANSPOSE_SMALL(uint16_t)

static void transpose_elements(int threads, const gm_transpose_call *c)
{
    static transpose_tile *const tile[] = {
        [1] = tile_uint8_t, [2] = tile_uint16_t, [4] = tile_uint32_t, [8] = tile_uint64_t};
    int64_t down = gm_ceil_div(c->first, TILE), along = gm_ceil_div(c->second, TILE), matrices = c->outer * c->middle;
#pragma omp parallel for collapse(3) num_threads(threads) schedule(static)
    for (int64_t k = 0; k < matrices; k++) {
        for (int64_t y = 0; y < down; y++) {
            for (int64_t x = 0; x < along; x++) {
                int64_t o = k / c->middle, m = k % c->middle, a = y * TILE, b = x * TILE;
                int64_t from = ((o * c->first + a) * c->middle + m) * c->second + b;
                int64_t to = ((o * c->second + b) * c->middle + m) * c->first + a;
                tile[c->bytes]((char *)c->dst + to * c->bytes, c->middle * c->first,
                               (const char *)c->src + from * c->bytes, c->middle * c->second,
                               gm_min(TILE, c->first - a), gm_min(TILE, c->second - b));
            }
        }
    }
}

/* Rows of more than one element, each as it is. */
static void transpose_rows(int threads, const gm_transpose_call *c)
{
    int64_t row = c->inner * c->bytes, rows = c->outer * c->second * c->middle * c->first;
    int64_t segments = gm_ceil_div(row, SEGMENT);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
    for (int64_t k = 0; k < rows; k++) {
        for (int64_t s = 0; s < segments; s++) {
            int64_t a = k % c->first, m = k / c->first % c->middle, left = k / c->first / c->middle;
            int64_t b = left % c->second, o = left / c->second, at = s * SEGMENT;
            int64_t from = ((o * c->first + a) * c->middle + m) * c->second + b;
            memcpy((char *)c->dst + k * row + at, (const char *)c->src + from * row + at,
                   (size_t)gm_min(SEGMENT, row - at));
        }
    }
}

int gm_cpu_transpose(int threads, const gm_transpose_call *call)
{
    gm_transpose_call c = gm_transpose_simplified(call);
    if (c.inner == 1)
        transpose_elements(threads, &c);
    else
        transpose_rows(threads, &c);
    return GM_OK;
}
