/* float.h - formats of floats: their special values, their order and their conversions, the same code for the CPU and
 * for CUDA.
 *
 * A format is given by its bytes and its digits (bits of significand, the leading one included): from the top a sign
 * bit, 8 bytes - digits bits of biased exponent, digits - 1 bits of fraction. Infinities, NaN and subnormals are coded
 * as in IEEE 754. */
#ifndef GM_BASE_FLOAT_H
#define GM_BASE_FLOAT_H

#include <stdint.h>
#include <string.h>

#include "base/both.h"

GM_HD float gm_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

GM_HD uint32_t gm_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

GM_HD double gm_bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

GM_HD uint64_t gm_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* --- Special values of a format --- */

/* The exponent of 1. */
GM_HD_INLINE int gm_format_bias(int bytes, int digits)
{
    return (1 << (8 * bytes - digits - 1)) - 1;
}

/* Bits of +infinity. Magnitudes above it are NaN. */
GM_HD_INLINE uint64_t gm_format_infinity(int bytes, int digits)
{
    return (((uint64_t)1 << (8 * bytes - digits)) - 1) << (digits - 1);
}

/* Bits of the quiet NaN without payload. */
GM_HD_INLINE uint64_t gm_format_nan(int bytes, int digits)
{
    return gm_format_infinity(bytes, digits) | (uint64_t)1 << (digits - 2);
}

/* The smallest magnitude that rounds to infinity: half a unit of the last place above the largest number. Infinity for
 * float64. */
GM_HD_INLINE double gm_format_overflow(int bytes, int digits)
{
    uint64_t exponent = (uint64_t)(1023 + gm_format_bias(bytes, digits));
    uint64_t ones = (((uint64_t)1 << digits) - 1) << (digits < 53 ? 52 - digits : 0);
    return gm_bits_double(digits < 53 ? exponent << 52 | ones : 0x7ff0000000000000);
}

/* --- The order of floats --- */

/* The bits of a float as an integer in two's complement, in the order of the values: -0 right below +0, NaN beyond the
 * infinities of their sign. One function for each size; each is its own inverse. */
GM_HD int16_t gm_monotone2(uint16_t bits)
{
    return (int16_t)(bits ^ ((uint16_t)((int16_t)bits >> 15) & 0x7fff));
}

GM_HD int32_t gm_monotone4(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) & 0x7fffffff));
}

GM_HD int64_t gm_monotone8(uint64_t bits)
{
    return (int64_t)(bits ^ ((uint64_t)((int64_t)bits >> 63) & INT64_MAX));
}

/* --- Conversions of a format that fits float32 --- */

/* Its bits to float32, exactly. In float32's places they are too small by a power of 2, subnormals as well; infinity
 * and NaN take the exponent of their own. Without a branch, so that loops of it vectorize. */
GM_HD_INLINE float gm_format_unpack(uint32_t bits, int bytes, int digits)
{
    uint32_t top = (uint32_t)1 << (8 * bytes - 1), magnitude = bits & (top - 1);
    uint32_t sign = (bits & top) << (32 - 8 * bytes), infinity = (uint32_t)gm_format_infinity(bytes, digits);
    float power = gm_bits_float((uint32_t)(254 - gm_format_bias(bytes, digits)) << 23);
    uint32_t scaled = gm_float_bits(gm_bits_float(magnitude << (24 - digits)) * power);
    return gm_bits_float(sign | scaled | (magnitude >= infinity ? 0x7f800000 : 0));
}

/* The nearest value to a float64, ties to even, as its bits. In one step: by way of float32 some values would be
 * rounded twice. NaN becomes quiet and keeps its sign and the top of its payload. */
GM_HD_INLINE uint64_t gm_format_pack(double value, int bytes, int digits)
{
    const int bias = gm_format_bias(bytes, digits), narrower = 53 - digits;
    uint64_t bits = gm_double_bits(value), magnitude = bits << 1 >> 1, sign = bits >> 63 << (8 * bytes - 1);
    if (magnitude > 0x7ff0000000000000)
        return sign | gm_format_nan(bytes, digits) | (magnitude >> narrower & (((uint64_t)1 << (digits - 1)) - 1));
    if (gm_bits_double(magnitude) >= gm_format_overflow(bytes, digits))
        return sign | gm_format_infinity(bytes, digits);
    int above = (int)(magnitude >> 52) - 1023 - (1 - bias); /* the exponent, from that of the smallest normal number */
    if (above < -digits)                                    /* below half of the smallest subnormal */
        return sign;
    /* The lower the exponent of a subnormal, the more bits it loses. The hidden bit, and a carry out of the fraction,
     * add one to the exponent field: hence `above` and not `above` + 1. */
    int shift = above >= 0 ? narrower : narrower - above;
    uint64_t significand = (magnitude & 0xfffffffffffff) | 0x10000000000000;
    uint64_t kept = significand >> shift, half = (uint64_t)1 << (shift - 1), lost = significand & (2 * half - 1);
    if (above >= 0)
        kept += (uint64_t)above << (digits - 1);
    kept += lost > half || (lost == half && (kept & 1));
    return sign | kept;
}

/* --- By C type: its bits, the value of bits, a float64 rounded once to it --- */

/* A format that C has no type for. */
#define GM_PACKED_FLOAT(ctype, raw, digits)                               \
    typedef struct ctype {                                                \
        raw bits;                                                         \
    } ctype;                                                              \
    GM_HD raw gm_raw_##ctype(ctype x)                                     \
    {                                                                     \
        return x.bits;                                                    \
    }                                                                     \
    GM_HD float gm_bits_##ctype(raw bits)                                 \
    {                                                                     \
        return gm_format_unpack(bits, (int)sizeof(raw), digits);          \
    }                                                                     \
    GM_HD ctype gm_round_##ctype(double value)                            \
    {                                                                     \
        ctype x = {(raw)gm_format_pack(value, (int)sizeof(raw), digits)}; \
        return x;                                                         \
    }
GM_PACKED_FLOAT(gm_f16, uint16_t, 11) /* IEEE 754 binary16 */

GM_HD uint32_t gm_raw_float(float x)
{
    return gm_float_bits(x);
}

GM_HD uint64_t gm_raw_double(double x)
{
    return gm_double_bits(x);
}

GM_HD float gm_round_float(double value)
{
    return (float)value;
}

GM_HD double gm_round_double(double value)
{
    return value;
}

#endif
