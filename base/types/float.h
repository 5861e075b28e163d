/* float.h - formats of floats: their special values, their order and their conversions, the same code for the CPU and
 * for CUDA.
 *
 * A format is given by its bytes and its digits (bits of significand, the leading one included): from the top a sign
 * bit, 8 bytes - digits bits of biased exponent, digits - 1 bits of fraction. Infinities, NaN and subnormals are coded
 * as in IEEE 754. */
#ifndef GM_BASE_TYPES_FLOAT_H
#define GM_BASE_TYPES_FLOAT_H

#include <math.h>
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

/* A float rounded to nearest, ties to even, to one whose last `bits` bits are 0. */
GM_HD_INLINE float gm_float_without(int bits, float value)
{
    uint32_t word = gm_float_bits(value), last = (uint32_t)1 << bits;
    uint32_t rounded = (word + (last / 2 - 1) + (word >> bits & 1)) & ~(last - 1);
    return value == value ? gm_bits_float(rounded) : value;
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

/* Is it a number below the normal numbers of float32, and none of float32? */
GM_HD_INLINE int gm_float_underflows(double value)
{
    return value > -0x1p-126 && value < 0x1p-126 && (double)(float)value != value;
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

/* Bits of a number as float32: rounded to nearest, but to the neighbour whose last bit is 1 if float32 does not hold
 * it. To round that to 22 bits or fewer is to round the number once: no tie is made, and none is lost. */
GM_HD_INLINE uint32_t gm_odd_float(double value)
{
    float nearest = (float)value;
    double apart = value < 0 ? (double)nearest - value : value - (double)nearest; /* of magnitudes */
    uint32_t bits = gm_float_bits(nearest), even = ~bits & 1;
    return apart > 0 ? bits + even : apart < 0 ? bits - even : bits;
}

/* A NaN of float64: it becomes quiet and keeps its sign and the top of its payload. */
GM_HD_INLINE uint32_t gm_format_pack_nan(double value, int bytes, int digits)
{
    uint64_t bits = gm_double_bits(value);
    uint32_t payload = (uint32_t)(bits >> (53 - digits)) & (((uint32_t)1 << (digits - 1)) - 1);
    return (uint32_t)(bits >> 63) << (8 * bytes - 1) | (uint32_t)gm_format_nan(bytes, digits) | payload;
}

/* The nearest value to a float64, ties to even, as its bits: rounded once, as values that go by way of the nearest
 * float32 are not. NaN becomes quiet and keeps its sign and the top of its payload. Words have 32 bits, as a GPU has no
 * others: kernels with two formats in words of 64 take half as many registers again. */
GM_HD_INLINE uint32_t gm_format_pack(double value, int bytes, int digits)
{
    const int bias = gm_format_bias(bytes, digits), narrower = 24 - digits;
    const uint32_t infinity = (uint32_t)gm_format_infinity(bytes, digits), one = (uint32_t)1 << 23;
    const uint32_t less = (127 - (uint32_t)bias) * one, last = (uint32_t)(128 - bias + narrower) * one;
    uint32_t odd = gm_odd_float(value), magnitude = odd & 0x7fffffff, sign = odd >> 31 << (8 * bytes - 1);
    /* A carry out of the fraction adds one to the exponent. Numbers that are too large come out above infinity. */
    uint32_t wide = magnitude - less;
    uint32_t normal = (wide + (((uint32_t)1 << (narrower - 1)) - 1) + (wide >> narrower & 1)) >> narrower;
    /* The last bit of a subnormal number has the place of that of a power of 2, to which it is added. */
    uint32_t subnormal = gm_float_bits(gm_bits_float(magnitude) + gm_bits_float(last)) - last;
    uint32_t number = magnitude < less + one ? subnormal : normal;
    return value == value ? sign | (number > infinity ? infinity : number) : gm_format_pack_nan(value, bytes, digits);
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
GM_PACKED_FLOAT(gm_bf16, uint16_t, 8) /* bfloat16: the upper half of a float */

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

/* The same, to *rounded. Returns 1 if a finite value has become infinite. */
GM_HD int gm_round_overflows(double value, float *rounded)
{
    *rounded = gm_round_float(value);
    return isinf(*rounded) && !isinf(value);
}

GM_HD double gm_round_double(double value)
{
    return value;
}

#endif
