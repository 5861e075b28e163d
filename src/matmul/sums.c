#include "src/matmul/sums.h"

#include "base/size.h"
#include "kernels/matmul/calls.h"

/* Doubles of each sum: for a row, for a column, and those of neither. */
static const struct {
    int64_t row, col, alone;
} lengths[GM_SUMS] = {
    [GM_SUM_AY] = {.row = 1},
    [GM_SUM_AA] = {.row = 1},
    [GM_SUM_VB] = {.col = 1},
    [GM_SUM_BB] = {.col = 1},
    [GM_SUM_YY] = {.alone = 1},
    [GM_SUM_VV] = {.alone = 1},
    [GM_SUM_SCHEMES] = {.alone = GM_SCHEMES},
    [GM_SUM_CX] = {.row = 1},
    [GM_SUM_CC_ROW] = {.row = 1},
    [GM_SUM_UC] = {.col = 1},
    [GM_SUM_CC_COL] = {.col = 1},
    [GM_SUM_DX] = {.row = 1},
    [GM_SUM_DD_ROW] = {.row = 1},
    [GM_SUM_UD] = {.col = 1},
    [GM_SUM_DD_COL] = {.col = 1},
    [GM_SUM_NONFINITE] = {.alone = sizeof(gm_nonfinite) / sizeof(double)},
};

int64_t gm_sum_offset(gm_sum sum, int64_t rows, int64_t cols)
{
    int64_t offset = 0;
    for (int s = 0; s < (int)sum; s++) {
        int64_t lines = gm_add_sat(gm_mul_sat(lengths[s].row, rows), gm_mul_sat(lengths[s].col, cols));
        offset = gm_add_sat(offset, gm_add_sat(lines, lengths[s].alone));
    }
    return offset;
}
