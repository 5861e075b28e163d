#include "base/range.h"

#include "base/size.h"

gm_range gm_range_split(int64_t count, int64_t unit, int64_t shares, int64_t index)
{
    int64_t units = gm_ceil_div(count, unit), each = units / shares, larger = units % shares;
    int64_t first = each * index + gm_min(index, larger), end = first + each + (index < larger);
    return (gm_range){gm_min(gm_mul_sat(first, unit), count), gm_min(gm_mul_sat(end, unit), count)};
}

gm_range gm_range_overlap(gm_range a, gm_range b)
{
    gm_range common = {gm_max(a.begin, b.begin), gm_min(a.end, b.end)};
    common.end = gm_max(common.begin, common.end);
    return common;
}

gm_rectangle gm_rectangle_next(int64_t columns, int64_t at, int64_t end)
{
    gm_rectangle r = {.row = at / columns, .rows = 1, .col = at % columns};
    r.cols = gm_min(columns - r.col, end - at);
    if (r.cols == columns)
        r.rows = (end - at) / columns;
    return r;
}
