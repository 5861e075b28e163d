#include "src/stream/share.h"

#include "base/range.h"
#include "base/size.h"

void gm_share_cut(gm_share share, int64_t first, int64_t count, int64_t unit, int64_t *begin, int64_t *end)
{
    int64_t base = first - first % unit;
    gm_range range = gm_range_split(first + count - base, unit, share.of, share.index);
    *begin = gm_max(first, base + range.begin);
    *end = gm_max(first, base + range.end);
}
