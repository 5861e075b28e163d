#include "base/tiling.h"

#include "base/size.h"

#include <math.h>

enum {
    LEAF_UNIT = 64, /* leaves are multiples of it */
    TILE_UNIT = 64,
    TILE_LEAST = 128,
    TILES_WANTED = 8, /* along each side of C: enough for threads and ranks to share */
    SIDE = 64,        /* rows and columns of C that a warp or two of a device make */
};

int64_t gm_tiling_leaf(const gm_leaf_kind *kind, int64_t m, int64_t n, int64_t k)
{
    /* The rounding errors of a sum in leaves of length L grow like sqrt(L^2/k + k/L). 8 sqrt(k) keeps the first term at
     * 64, and k^(2/3) balances both where k is large. The largest error, L + k/L, is least for sqrt(k). */
    double length = fmax(8 * sqrt((double)k), cbrt((double)k) * cbrt((double)k));
    int64_t usual = gm_max(kind->least, gm_round_up((int64_t)ceil(length), LEAF_UNIT));
    if (!kind->few)
        return usual;
    int64_t blocks = gm_mul_sat(gm_ceil_div(m, SIDE), gm_ceil_div(n, SIDE));
    int64_t even = gm_ceil_div(gm_mul_sat(gm_min(blocks, kind->blocks), k), kind->blocks);
    int64_t shortest = gm_max(kind->few, gm_round_up((int64_t)ceil(sqrt((double)k)), LEAF_UNIT));
    return gm_min(usual, gm_max(shortest, gm_round_up(even, LEAF_UNIT)));
}

/* Small enough for threads and ranks to share a small C, large enough for the kernel. */
int64_t gm_tiling_tile(int64_t m, int64_t n, int64_t max_tile)
{
    double side = sqrt((double)m * (double)n) / TILES_WANTED;
    int64_t tile = gm_round_up((int64_t)side, TILE_UNIT);
    return gm_min(gm_max(tile, TILE_LEAST), max_tile);
}

int64_t gm_tiling_ld(int64_t elements, int64_t element_bytes)
{
    return gm_round_up(elements, GM_TILING_ROW_ALIGN / element_bytes);
}
