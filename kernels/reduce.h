/* reduce.h - the rules of one element in a reduction, for the processor and for devices: the order of floats, and squares of 64-bit integers.
 *
 * The key of a float is its bits as a signed integer of its size, the negative ones turned round: keys order as values do, -0 right below +0. */
#ifndef GM_KERNELS_REDUCE_H
#define GM_KERNELS_REDUCE_H

#include "base/statistics.h"
#include "kernels/element.h"

GM_HD int16_t gm_key2(gm_raw2 raw)
{
    return (int16_t)(raw ^ ((gm_raw2)((int16_t)raw >> 15) & 0x7fff));
}

GM_HD int32_t gm_key4(gm_raw4 raw)
{
    return (int32_t)(raw ^ ((gm_raw4)((int32_t)raw >> 31) & 0x7fffffff));
}

GM_HD int64_t gm_key8(gm_raw8 raw)
{
    return (int64_t)(raw ^ ((gm_raw8)((int64_t)raw >> 63) & INT64_MAX));
}

/* The element that has this key: turning round twice is nothing. */
GM_HD gm_raw2 gm_unkey2(int16_t key) { return (gm_raw2)gm_key2((gm_raw2)key); }
GM_HD gm_raw4 gm_unkey4(int32_t key) { return (gm_raw4)gm_key4((gm_raw4)key); }
GM_HD gm_raw8 gm_unkey8(int64_t key) { return (gm_raw8)gm_key8((gm_raw8)key); }

/* Magnitudes above are NaN. */
#define GM_INFINITE2 0x7c00
#define GM_INFINITE4 0x7f800000
#define GM_INFINITE8 INT64_C(0x7ff0000000000000)

#endif
