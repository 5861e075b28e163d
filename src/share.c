#include "src/share.h"

#include "base/size.h"

static int64_t border(int index, int of, int64_t first, int64_t count, int64_t unit)
{
    int64_t at = first + count / of * index + count % of * index / of;
    return index == of ? first + count : gm_max(first, at - at % unit);
}

void gm_share_cut(gm_share share, int64_t first, int64_t count, int64_t unit, int64_t *begin, int64_t *end)
{
    *begin = border(share.index, share.of, first, count, unit);
    *end = border(share.index + 1, share.of, first, count, unit);
}
