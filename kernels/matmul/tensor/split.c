#include "kernels/matmul/tensor/split.h"

#include "base/size.h"

enum { ALIGN = 256, WIDE_PLANES = 3, WIDE_ELEMENT = 2 };

/* The place of `count` elements of `size` bytes after what is there. */
static size_t place(size_t *bytes, int64_t count, int64_t size)
{
    size_t at = *bytes;
    *bytes = (size_t)gm_round_up(gm_min(gm_add_sat((int64_t)at, gm_mul_sat(count, size)), INT64_MAX - ALIGN), ALIGN);
    return at;
}

gm_split_layout gm_split_lay(const gm_split_kind *kind, int64_t outer, int64_t k, int64_t leaf, int64_t parts)
{
    int64_t beside = gm_mul_sat(gm_max(parts, 1), leaf);
    gm_split_layout s = {.outer = outer,
                         .pitch = gm_round_up(k, GM_SPLIT_K),
                         .wide_pitch = gm_round_up(gm_min(k, beside), GM_SPLIT_K),
                         .leaves = gm_ceil_div(k, leaf),
                         .groups = gm_ceil_div(outer, GM_SPLIT_GROUP)};
    if (!kind->planes)
        return s;
    s.planes = place(&s.bytes, gm_mul_sat(gm_mul_sat(outer, s.pitch), kind->planes), kind->element);
    if (!kind->schemes)
        return s;
    int64_t lines = gm_mul_sat(s.leaves, outer);
    s.wide = place(&s.bytes, gm_mul_sat(gm_mul_sat(outer, s.wide_pitch), WIDE_PLANES), WIDE_ELEMENT);
    s.largest = place(&s.bytes, lines, sizeof(uint32_t));
    s.least = place(&s.bytes, lines, sizeof(uint32_t));
    s.scale[GM_SCHEME_F16] = place(&s.bytes, lines, sizeof(int16_t));
    s.scale[GM_SCHEME_BF16] = place(&s.bytes, lines, sizeof(int16_t));
    s.scheme = place(&s.bytes, gm_mul_sat(s.leaves, s.groups), sizeof(uint8_t));
    s.count = place(&s.bytes, gm_mul_sat(s.leaves, GM_SCHEMES), sizeof(uint32_t));
    s.all = place(&s.bytes, GM_SCHEMES, sizeof(uint32_t));
    return s;
}
