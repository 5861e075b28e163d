/* element.h - the rules of one element: byte order, conversion and rounding, the same code for the CPU and for CUDA.
 *
 * An element in memory is a "raw" integer of its size. gm_f64_U8(raw, swap), gm_f32_U8(raw, swap), ... (one pair for each type of
 * dtypes.def) give its value rounded ONCE to the nearest float64 or float32: 64-bit integers do not go to float32 by way of float64. */
#ifndef GM_KERNELS_ELEMENT_H
#define GM_KERNELS_ELEMENT_H

#include <stdint.h>
#include <string.h>

#include "base/both.h"
#include "base/dtype.h"

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

/* binary16 to float, exactly: the bits in float's places are too small by 2^112, denormals as well; the rest is infinity and NaN.
 * Without a branch, so that it makes a vector loop. */
GM_HD float gm_bits_gm_f16(uint16_t bits)
{
    uint32_t magnitude = bits & 0x7fff, sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t scaled = gm_float_bits(gm_bits_float(magnitude << 13) * 0x1p112f);
    return gm_bits_float(sign | scaled | (magnitude >= 0x7c00 ? 0x7f800000 : 0));
}

/* The smallest magnitudes that round to infinity. */
#define GM_F16_OVERFLOW 65520.0
#define GM_F32_OVERFLOW 0x1.ffffffp127

/* float64 to the type of C: to nearest, ties to even, in one step (by way of float32 some values would be rounded twice). */
GM_HD gm_f16 gm_round_gm_f16(double value)
{
    uint64_t bits = gm_double_bits(value), magnitude = bits << 1 >> 1;
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    gm_f16 result;
    if (magnitude > 0x7ff0000000000000) {
        result.bits = (uint16_t)(sign | 0x7e00 | (magnitude >> 42 & 0x3ff)); /* stays NaN, made quiet */
        return result;
    }
    if (gm_bits_double(magnitude) >= GM_F16_OVERFLOW) {
        result.bits = (uint16_t)(sign | 0x7c00);
        return result;
    }
    int exponent = (int)(magnitude >> 52) - 1023;
    if (exponent < -25) { /* below half of the smallest denormal */
        result.bits = sign;
        return result;
    }
    /* Denormals have the exponent -14 and lose the more bits. The hidden bit, and a carry out of the fraction, add one to the
     * exponent field: hence 14 and not 15. */
    int shift = exponent >= -14 ? 42 : 28 - exponent;
    uint64_t significand = (magnitude & 0xfffffffffffff) | 0x10000000000000;
    uint64_t kept = significand >> shift, half = (uint64_t)1 << (shift - 1), lost = significand & (2 * half - 1);
    if (exponent >= -14)
        kept += (uint64_t)(exponent + 14) << 10;
    kept += lost > half || (lost == half && (kept & 1));
    result.bits = (uint16_t)(sign | kept);
    return result;
}

GM_HD float gm_round_float(double value)
{
    return (float)value;
}

GM_HD double gm_round_double(double value)
{
    return value;
}

/* How the value of a raw element reads, by kind. */
#define GM_VALUE_UNSIGNED(to, ctype, raw) ((to)(raw))
#define GM_VALUE_SIGNED(to, ctype, raw) ((to)(ctype)(raw))
#define GM_VALUE_FLOAT(to, ctype, raw) ((to)gm_bits_##ctype(raw))

#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    GM_HD double gm_f64_##id(gm_raw##bytes raw, int swap) \
    { \
        return GM_VALUE_##kind(double, ctype, gm_order##bytes(raw, swap)); \
    } \
    GM_HD float gm_f32_##id(gm_raw##bytes raw, int swap) \
    { \
        return GM_VALUE_##kind(float, ctype, gm_order##bytes(raw, swap)); \
    }
#include "base/dtypes.def"
#undef GM_DTYPE

#ifdef __CUDACC__
/* The same as types, for templates: gm_element_U8::raw, gm_element_U8::read(raw, swap, &value), ... */
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    struct gm_element_##id { \
        typedef gm_raw##bytes raw; \
        static __device__ __forceinline__ void read(raw x, int swap, float *value) { *value = gm_f32_##id(x, swap); } \
        static __device__ __forceinline__ void read(raw x, int swap, double *value) { *value = gm_f64_##id(x, swap); } \
    };
#include "base/dtypes.def"
#undef GM_DTYPE
#endif

#endif
