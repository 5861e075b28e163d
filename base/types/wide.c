/* Ratios are rounded by way of long double where its own rounding cannot change the result, else bit by bit. */
#include "base/types/wide.h"

#include <float.h>
#include <math.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "long double holds 64-bit integers");

gm_wide gm_wide_of(const uint64_t *words, int count)
{
    gm_wide w = {{0}};
    memcpy(w.word, words, (size_t)count * sizeof *words);
    return w;
}

gm_wide gm_wide_times(const gm_wide *a, const gm_wide *b)
{
    gm_wide product = {{0}};
    for (int i = 0; i < GM_WIDE_WORDS; i++) {
        uint64_t carry = 0;
        for (int j = 0; i + j < GM_WIDE_WORDS; j++) {
            unsigned __int128 sum = (unsigned __int128)a->word[i] * b->word[j] + product.word[i + j] + carry;
            product.word[i + j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
    }
    return product;
}

static int less(const gm_wide *a, const gm_wide *b)
{
    for (int i = GM_WIDE_WORDS; i-- > 0;)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i];
    return 0;
}

void gm_wide_subtract(gm_wide *a, const gm_wide *b)
{
    uint64_t borrow = 0;
    for (int i = 0; i < GM_WIDE_WORDS; i++) {
        uint64_t part = a->word[i] - b->word[i], all = part - borrow;
        borrow = (uint64_t)(a->word[i] < b->word[i]) | (uint64_t)(part < borrow);
        a->word[i] = all;
    }
}

static int bits(const gm_wide *a)
{
    for (int i = GM_WIDE_WORDS; i-- > 0;)
        if (a->word[i])
            return 64 * i + 64 - __builtin_clzll(a->word[i]);
    return 0;
}

static int is_bit(const gm_wide *a, int i)
{
    return i >= 0 && (int)(a->word[i / 64] >> i % 64 & 1);
}

static long double approximate(const gm_wide *a)
{
    long double value = 0;
    for (int i = GM_WIDE_WORDS; i-- > 0;)
        value = value * 0x1p64L + (long double)a->word[i];
    return value;
}

/* Does every value within the error of x, about 2^-60 of it, round to the same float64? */
static int rounds_safely(long double x, double *value)
{
    *value = (double)(x - x * 0x1p-59L);
    return *value == (double)(x + x * 0x1p-59L);
}

/* mantissa 2^exponent to the nearest float64; inexact: the exact value is a little larger. mantissa has more than 54
 * bits. */
static double round_bits(uint64_t mantissa, int inexact, int exponent)
{
    int surplus = 64 - __builtin_clzll(mantissa) - 53;
    uint64_t kept = mantissa >> surplus, half = UINT64_C(1) << (surplus - 1), lost = mantissa & (2 * half - 1);
    kept += lost > half || (lost == half && (inexact || kept & 1));
    return ldexp((double)kept, exponent + surplus);
}

/* Returns the first `digits` bits of a / b, by long division. The last one has weight 2^*exponent; *inexact: more bits
 * follow. even: digits grows by one if that makes the exponent even. a is not 0. */
static unsigned __int128 divide(const gm_wide *a, const gm_wide *b, int digits, int even, int *exponent, int *inexact)
{
    unsigned __int128 quotient = 0;
    gm_wide rest = {{0}};
    int got = 0, at = bits(a) - 1;
    for (;; at--) {
        for (int i = GM_WIDE_WORDS; i-- > 1;)
            rest.word[i] = rest.word[i] << 1 | rest.word[i - 1] >> 63;
        rest.word[0] = rest.word[0] << 1 | (uint64_t)is_bit(a, at);
        int one = !less(&rest, b);
        if (one)
            gm_wide_subtract(&rest, b);
        quotient = quotient << 1 | (unsigned)one;
        got += got > 0 || one;
        if (got >= digits && !(even && at % 2))
            break;
    }
    *exponent = at;
    *inexact = bits(&rest) > 0;
    for (int i = 0; i < at; i++)
        *inexact |= is_bit(a, i);
    return quotient;
}

double gm_wide_ratio(const gm_wide *a, const gm_wide *b)
{
    double value;
    int exponent, inexact;
    if (bits(a) == 0)
        return 0;
    if (rounds_safely(approximate(a) / approximate(b), &value))
        return value;
    uint64_t quotient = (uint64_t)divide(a, b, 60, 0, &exponent, &inexact);
    return round_bits(quotient, inexact, exponent);
}

double gm_wide_root(const gm_wide *a, const gm_wide *b)
{
    double value;
    int exponent, inexact;
    if (bits(a) == 0)
        return 0;
    if (rounds_safely(sqrtl(approximate(a) / approximate(b)), &value))
        return value;
    unsigned __int128 quotient = divide(a, b, 120, 1, &exponent, &inexact);
    uint64_t root = 0;
    for (int i = 60; i >= 0; i--) {
        uint64_t next = root | UINT64_C(1) << i;
        root = (unsigned __int128)next * next <= quotient ? next : root;
    }
    return round_bits(root, inexact || (unsigned __int128)root * root != quotient, exponent / 2);
}
