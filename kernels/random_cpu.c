/* Random elements of every type, from the random bits or the normal number of their index. */
#include <math.h>

#include "kernels/element.h"
#include "kernels/host.h"

#define TWO_TO(power) __builtin_ldexp(1.0, power)

/* Floats take as many bits as their significand has, so that every value is a multiple of 2^-bits and none rounds up
 * to 1. */
#define UNIFORM_UNSIGNED(ctype, bytes, digits, bits) ((ctype)((bits) >> (64 - 8 * (bytes))))
#define UNIFORM_SIGNED(ctype, bytes, digits, bits) UNIFORM_UNSIGNED(ctype, bytes, digits, bits)
#define UNIFORM_FLOAT(ctype, bytes, digits, bits) \
    gm_round_##ctype((double)((bits) >> (64 - (digits))) * TWO_TO(-(digits)))

#define INTEGERS_UNSIGNED(ctype, bytes, digits, bits) ((ctype)(((bits) >> 32) * 10 >> 32))
#define INTEGERS_SIGNED(ctype, bytes, digits, bits) INTEGERS_UNSIGNED(ctype, bytes, digits, bits)
#define INTEGERS_FLOAT(ctype, bytes, digits, bits) gm_round_##ctype((double)(((bits) >> 32) * 10 >> 32))

/* z of N(0, 1) to an integer in [low, low + 2^(8 bytes)), low being 0 or minus half of that. */
static uint64_t whole(double z, int bytes, int is_signed)
{
    double low = is_signed ? -TWO_TO(8 * bytes - 1) : 0, high = low + TWO_TO(8 * bytes);
    double value = rint(0.5 * low + 0.5 * high + TWO_TO(8 * bytes - 3) * z);
    uint64_t top = UINT64_MAX >> (64 - 8 * bytes) >> is_signed;
    if (value >= high)
        return top;
    if (value < low)
        return is_signed ? ~top : 0;
    return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}

#define NORMAL_UNSIGNED(ctype, bytes, digits, z) ((ctype)whole(z, bytes, 0))
#define NORMAL_SIGNED(ctype, bytes, digits, z) ((ctype)whole(z, bytes, 1))
#define NORMAL_FLOAT(ctype, bytes, digits, z) gm_round_##ctype(z)

#define FILL(distribution, source, id, ctype, kind, bytes, digits)                                         \
    static void distribution##_##id(void *dst, int swap, uint64_t key, int64_t first, int64_t n)           \
    {                                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                  \
            ctype value = distribution##_##kind(ctype, bytes, digits, source(key, (uint64_t)(first + i))); \
            gm_raw##bytes raw;                                                                             \
            memcpy(&raw, &value, bytes);                                                                   \
            raw = gm_order##bytes(raw, swap);                                                              \
            memcpy((char *)dst + i * bytes, &raw, bytes);                                                  \
        }                                                                                                  \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)             \
    FILL(UNIFORM, gm_random_bits, id, ctype, kind, bytes, digits)  \
    FILL(NORMAL, gm_random_normal, id, ctype, kind, bytes, digits) \
    FILL(INTEGERS, gm_random_bits, id, ctype, kind, bytes, digits)
#include "base/types/dtypes.def"
#undef GM_DTYPE

static void (*const fills[GM_DTYPES][GM_DISTRIBUTIONS])(void *dst, int swap, uint64_t key, int64_t first, int64_t n) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) \
    {[GM_DISTRIBUTION_UNIFORM] = UNIFORM_##id,         \
     [GM_DISTRIBUTION_NORMAL] = NORMAL_##id,           \
     [GM_DISTRIBUTION_INTEGERS] = INTEGERS_##id},
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

void gm_cpu_random(void *dst, gm_dtype type, int swap, gm_distribution distribution, uint64_t key, int64_t first,
                   int64_t n)
{
    fills[type][distribution](dst, swap, key, first, n);
}
