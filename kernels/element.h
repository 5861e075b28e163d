/* element.h - one element: byte order and conversion, the same code for the CPU and for CUDA.
 *
 * An element in memory is a "raw" integer of its size. gm_f64_U8(raw, swap), gm_f32_U8(raw, swap), ... (one pair for
 * each type of dtypes.def) give its value rounded ONCE to the nearest float64 or float32: 64-bit integers do not go to
 * float32 by way of float64. */
#ifndef GM_KERNELS_ELEMENT_H
#define GM_KERNELS_ELEMENT_H

#include <stdint.h>
#include <string.h>

#include "base/types/dtype.h"

typedef uint8_t gm_raw1;
typedef uint16_t gm_raw2;
typedef uint32_t gm_raw4;
typedef uint64_t gm_raw8;

GM_HD gm_raw1 gm_order1(gm_raw1 raw, int swap)
{
    (void)swap;
    return raw;
}

GM_HD gm_raw2 gm_order2(gm_raw2 raw, int swap)
{
    return swap ? (gm_raw2)(raw << 8 | raw >> 8) : raw;
}

GM_HD gm_raw4 gm_order4(gm_raw4 raw, int swap)
{
    return swap ? raw << 24 | (raw & 0xff00) << 8 | (raw >> 8 & 0xff00) | raw >> 24 : raw;
}

GM_HD gm_raw8 gm_order8(gm_raw8 raw, int swap)
{
    return swap ? (gm_raw8)gm_order4((gm_raw4)raw, 1) << 32 | gm_order4((gm_raw4)(raw >> 32), 1) : raw;
}

/* The value of a raw element, by kind. */
#define GM_VALUE_UNSIGNED(to, ctype, raw) ((to)(raw))
#define GM_VALUE_SIGNED(to, ctype, raw) ((to)(ctype)(raw))
#define GM_VALUE_FLOAT(to, ctype, raw) ((to)gm_bits_##ctype(raw))

#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                     \
    GM_HD double gm_f64_##id(gm_raw##bytes raw, int swap)                  \
    {                                                                      \
        return GM_VALUE_##kind(double, ctype, gm_order##bytes(raw, swap)); \
    }                                                                      \
    GM_HD float gm_f32_##id(gm_raw##bytes raw, int swap)                   \
    {                                                                      \
        return GM_VALUE_##kind(float, ctype, gm_order##bytes(raw, swap));  \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

#endif
