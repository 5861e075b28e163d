/* normalize.h - the rules of one element of normalize and of its histograms, the same code for the CPU and for CUDA.
 * Multiply and add do not fuse: the build sets -ffp-contract=off and -fmad=false.
 *
 * For REAL of float and double, and ID of every type of dtypes.def:
 *   gm_times_REAL(p, sub, factor)               (p - sub) * factor
 *   gm_scaled_REAL(p, sub, factor, add)         the value of element p: that, plus add
 *   gm_whole_REAL(v, rounding)                  rounded to an integer
 *   gm_store_REAL_ID(v, lo, hi, below, above)   as an element of that type: raw, native byte order; for an integer
 *                                               type v is rounded already
 *   gm_clips_REAL_ID(v, lo, hi)                 whether that counts as clipped
 *   gm_key_ID(raw, swap), gm_nan_ID(raw, swap)  the key that orders elements; whether it is NaN
 *   gm_unkey_ID(key)                            the element of a key, raw, native byte order
 *
 * An element whose factor is NaN (marked) takes none of this: it is `marked`, or what gm_store_REAL_ID makes of NaN if
 * it is NaN itself. */
#ifndef GM_KERNELS_NORMALIZE_NORMALIZE_H
#define GM_KERNELS_NORMALIZE_NORMALIZE_H

#include "kernels/element.h"
#include "kernels/normalize/calls.h"

/* Rounding in operations that every vector unit has: below 2^52 (2^23) the sum with that number has no bits left for a
 * fraction, and larger numbers have none. Zeros lose their sign, which integers do not have. */
#define GM_NEAREST(real, limit)                                            \
    GM_HD real gm_nearest_##real(real v)                                   \
    {                                                                      \
        real large = v < 0 ? -(limit) : (limit);                           \
        return ((v < (limit)) & (v > -(limit))) ? (v + large) - large : v; \
    }
GM_NEAREST(float, 0x1p23f)
GM_NEAREST(double, 0x1p52)
#undef GM_NEAREST

#define GM_WHOLE(real)                                            \
    GM_HD real gm_floor_##real(real v)                            \
    {                                                             \
        real r = gm_nearest_##real(v);                            \
        return r > v ? r - 1 : r;                                 \
    }                                                             \
    GM_HD real gm_whole_##real(real v, gm_rounding rounding)      \
    {                                                             \
        if (rounding == GM_ROUND_NEAREST_EVEN)                    \
            return gm_nearest_##real(v);                          \
        if (rounding == GM_ROUND_HALF_UP)                         \
            return gm_floor_##real(v + (real)0.5);                \
        return v < 0 ? -gm_floor_##real(-v) : gm_floor_##real(v); \
    }
GM_WHOLE(float)
GM_WHOLE(double)
#undef GM_WHOLE

#ifdef __CUDACC__
/* gm_whole_float as one instruction of the device, which saturates at the limits of int; such values are clipped
 * anyway. */
static __device__ __forceinline__ int gm_whole_int(float v, gm_rounding rounding)
{
    return rounding == GM_ROUND_NEAREST_EVEN ? __float2int_rn(v)
           : rounding == GM_ROUND_HALF_UP    ? __float2int_rd(v + 0.5f)
                                             : __float2int_rz(v);
}
#endif

GM_HD float gm_times_float(float p, float sub, float factor)
{
    return (p - sub) * factor;
}

/* A difference that overflows is taken of halves. */
GM_HD double gm_times_double(double p, double sub, double factor)
{
    double d = p - sub;
    return d - d == 0 ? d * factor : (p * 0.5 - sub * 0.5) * (factor * 2);
}

#define GM_SCALED(real)                                                  \
    GM_HD real gm_scaled_##real(real p, real sub, real factor, real add) \
    {                                                                    \
        real v = gm_times_##real(p, sub, factor);                        \
        return add != 0 ? v + add : v;                                   \
    }
GM_SCALED(float)
GM_SCALED(double)
#undef GM_SCALED

/* -ln v, within 2 units of the last place, in operations that give the same bits everywhere (no library promises that):
 * v = 2^k m, m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.1716, by its series up to
 * s^21. */
GM_HD double gm_minus_log(double v)
{
    const double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45; /* 42 bits: k times it is exact */
    int k = 0;
    if (!(v > 0))
        return v == 0 ? gm_bits_double(0x7ff0000000000000) : gm_bits_double(0x7ff8000000000000);
    if (v > 0x1.fffffffffffffp1023)
        return -v;
    if (v < 0x1p-1022) {
        v *= 0x1p54;
        k = -54;
    }
    uint64_t bits = gm_double_bits(v), fraction = bits & 0xfffffffffffff;
    int upper = fraction > 0x6a09e667f3bcc; /* of sqrt(2) */
    k += (int)(bits >> 52) - 1023 + upper;
    double f = gm_bits_double((uint64_t)(1023 - upper) << 52 | fraction) - 1, s = f / (f + 2), z = s * s;
    double series = 1.0 / 21;
    series = series * z + 1.0 / 19;
    series = series * z + 1.0 / 17;
    series = series * z + 1.0 / 15;
    series = series * z + 1.0 / 13;
    series = series * z + 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    double low = s * (2 * z * series) + k * ln2_low;
    return 0 - (k * ln2_high + (2 * s + low)); /* of 1: +0 */
}

/* Finite, and as large as the limit. */
GM_HD int gm_reaches(double v, double limit)
{
    int above = v >= limit, below = v <= -limit, finite = v - v == 0;
    return (above | below) & finite;
}

/* By kind: the element between the limits, the element for NaN, and whether a value overflows. Where another value
 * takes the place of an integer's value, that is made 0 before its conversion: it may not fit. */
#define GM_INNER_UNSIGNED(ctype, bytes, v) (gm_raw##bytes)(ctype)(v)
#define GM_INNER_SIGNED(ctype, bytes, v) (gm_raw##bytes)(ctype)(v)
#define GM_INNER_FLOAT(ctype, bytes, v) gm_raw_##ctype(gm_round_##ctype((double)(v)))
#define GM_NO_NUMBER_UNSIGNED(bytes, digits) 0
#define GM_NO_NUMBER_SIGNED(bytes, digits) 0
#define GM_NO_NUMBER_FLOAT(bytes, digits) gm_format_nan(bytes, digits)
#define GM_OVERFLOWS_UNSIGNED(bytes, digits, v) 0
#define GM_OVERFLOWS_SIGNED(bytes, digits, v) 0
/* Finite, and infinite in the type of out. A type with the digits of v has its range too. */
#define GM_OVERFLOWS_FLOAT(bytes, digits, v)                 \
    ((digits) >= (sizeof(v) == sizeof(double) ? 53 : 24) ? 0 \
                                                         : gm_reaches((double)(v), gm_format_overflow(bytes, digits)))

#define GM_STORE(real, id, ctype, kind, bytes, digits)                                                             \
    GM_HD gm_raw##bytes gm_store_##real##_##id(real v, real lo, real hi, gm_raw##bytes below, gm_raw##bytes above) \
    {                                                                                                              \
        real inside = ((v > lo) & (v < hi)) ? v : 0;                                                               \
        gm_raw##bytes raw = GM_INNER_##kind(ctype, bytes, inside);                                                 \
        raw = v <= lo ? below : raw;                                                                               \
        raw = v >= hi ? above : raw;                                                                               \
        return v != v ? (gm_raw##bytes)GM_NO_NUMBER_##kind(bytes, digits) : raw;                                   \
    }                                                                                                              \
    GM_HD int gm_clips_##real##_##id(real v, real lo, real hi)                                                     \
    {                                                                                                              \
        return (v < lo) | (v > hi) | GM_OVERFLOWS_##kind(bytes, digits, v);                                        \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) \
    GM_STORE(float, id, ctype, kind, bytes, digits) GM_STORE(double, id, ctype, kind, bytes, digits)
#include "base/types/dtypes.def"
#undef GM_DTYPE
#undef GM_STORE

/* Keys, unsigned: integers in two's complement with the sign bit inverted, floats as the integers of their order. */
#define GM_TOP(bytes) ((gm_raw##bytes)((gm_raw##bytes)1 << (8 * (bytes)-1)))
#define GM_KEY_UNSIGNED(bytes, raw) (raw)
#define GM_KEY_SIGNED(bytes, raw) (gm_raw##bytes)((raw) ^ GM_TOP(bytes))
#define GM_KEY_FLOAT(bytes, raw) GM_KEY_SIGNED(bytes, (gm_raw##bytes)gm_monotone##bytes(raw))
#define GM_UNKEY_UNSIGNED(bytes, key) (key)
#define GM_UNKEY_SIGNED(bytes, key) (gm_raw##bytes)((key) ^ GM_TOP(bytes))
#define GM_UNKEY_FLOAT(bytes, key) (gm_raw##bytes) gm_monotone##bytes(GM_UNKEY_SIGNED(bytes, key))
#define GM_NAN_UNSIGNED(bytes, digits, raw) ((void)(raw), 0)
#define GM_NAN_SIGNED(bytes, digits, raw) ((void)(raw), 0)
#define GM_NAN_FLOAT(bytes, digits, raw) \
    ((gm_raw##bytes)((raw) & ~GM_TOP(bytes)) > (gm_raw##bytes)gm_format_infinity(bytes, digits))

#define GM_DTYPE(id, name, ctype, kind, bytes, digits)           \
    GM_HD gm_raw##bytes gm_key_##id(gm_raw##bytes raw, int swap) \
    {                                                            \
        gm_raw##bytes plain = gm_order##bytes(raw, swap);        \
        return GM_KEY_##kind(bytes, plain);                      \
    }                                                            \
    GM_HD int gm_nan_##id(gm_raw##bytes raw, int swap)           \
    {                                                            \
        gm_raw##bytes plain = gm_order##bytes(raw, swap);        \
        return GM_NAN_##kind(bytes, digits, plain);              \
    }                                                            \
    GM_HD gm_raw##bytes gm_unkey_##id(gm_raw##bytes key)         \
    {                                                            \
        return GM_UNKEY_##kind(bytes, key);                      \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

#endif
