#include "base/tiling.h"

#include "base/size.h"

#include <math.h>

enum {
    LEAF_UNIT = 64, /* leaves are multiples of it */
    TILE_UNIT = 64,
    TILE_LEAST = 128,
    TILES_WANTED = 8, /* along each side of C: enough for threads and ranks to share */
};

int64_t gm_tiling_leaf(int64_t least, int64_t k)
{
    /* The rounding errors of a sum in leaves of length L grow like sqrt(L^2/k + k/L). 8 sqrt(k) keeps the first term at
     * 64, and k^(2/3) balances both where k is large. */
    double length = fmax(8 * sqrt((double)k), cbrt((double)k) * cbrt((double)k));
    return gm_max(least, gm_round_up((int64_t)ceil(length), LEAF_UNIT));
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
