#include "base/size.h"
#include "kernels/matmul/calls.h"

enum {
    WARP = 32,
    AHEAD = 8,        /* rows that a warp reads at a time, at most */
    LEAST = 32,       /* rows of a part: of fewer, it would write too many sums for what it reads */
    PARTS = 2048,     /* wanted: one for each warp, of which a large device has about as many at a time */
    PARTS_LEAST = 512 /* that are worth it */
};

gm_probe_parts gm_probe_cut(int64_t rows, int64_t cols, int64_t element)
{
    const int64_t least_across = 4; /* of fewer, lanes would have no columns */
    gm_probe_parts p = {.cols = WARP * (element == 1 ? 8 : 16 / element)};
    int64_t most_down = gm_ceil_div(rows, LEAST);
    p.across = gm_ceil_div(cols, p.cols);
    if (p.across < least_across || gm_mul_sat(p.across, most_down) < PARTS_LEAST)
        return p;
    p.rows = gm_max(gm_round_up(gm_ceil_div(gm_mul_sat(rows, p.across), PARTS), AHEAD), LEAST);
    p.down = gm_ceil_div(rows, p.rows);
    /* down * cols, bounded so that it grows with rows and columns: `down` itself does not. */
    int64_t of_columns = gm_min(gm_mul_sat(most_down, cols), gm_add_sat(PARTS * p.cols, cols));
    p.bytes = (size_t)gm_mul_sat(gm_add_sat(gm_mul_sat(p.across, rows), of_columns), GM_PROBE_SUMS * sizeof(double));
    return p;
}
