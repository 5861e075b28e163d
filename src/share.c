#include "src/share.h"

#include "base/size.h"

/* Bytes that a thread reads at memory speed with what it costs to give them to it out of sight. */
static const int64_t worth_a_thread = 2 << 20;

int gm_share_count(int64_t bytes, int64_t units, int threads)
{
    return (int)gm_max(1, gm_min(gm_min(threads, units), (bytes + worth_a_thread / 2) / worth_a_thread));
}

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
