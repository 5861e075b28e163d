#include "src/stream/share.h"

#include "base/size.h"

gm_range gm_share_cut(gm_share share, int64_t from, int64_t count, int64_t unit)
{
    int64_t before = from % unit;
    gm_range range = gm_range_split(before + count, unit, share.of, share.index);
    return (gm_range){gm_max(range.begin - before, 0), gm_max(range.end - before, 0)};
}
