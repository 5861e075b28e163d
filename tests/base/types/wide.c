/* Wide integers: products and differences against 128 bits, ratios and roots at and beside the middle of two float64.
 */
#include "base/types/wide.h"

#include <math.h>

#include "base/random.h"
#include "tests/tap.h"

enum { TIMES = 2000 };

static uint64_t state = 3;

static uint64_t random_bits(void)
{
    return gm_random_mix(state += GM_RANDOM_STEP);
}

static gm_wide of(unsigned __int128 value)
{
    uint64_t words[2] = {(uint64_t)value, (uint64_t)(value >> 64)};
    return gm_wide_of(words, 2);
}

static int equal(const gm_wide *a, const gm_wide *b)
{
    for (int i = 0; i < GM_WIDE_WORDS; i++)
        if (a->word[i] != b->word[i])
            return 0;
    return 1;
}

static gm_wide times(gm_wide a, gm_wide b)
{
    return gm_wide_times(&a, &b);
}

static gm_wide minus(gm_wide a, gm_wide b)
{
    gm_wide_subtract(&a, &b);
    return a;
}

static double ratio(gm_wide a, gm_wide b)
{
    return gm_wide_ratio(&a, &b);
}

static double root(gm_wide a, gm_wide b)
{
    return gm_wide_root(&a, &b);
}

static void test_integers(void)
{
    const unsigned __int128 ones = ~(unsigned __int128)0;
    int same = 1, undone = 1;
    for (int i = 0; i < TIMES; i++) {
        uint64_t a = random_bits() >> i % 64, b = random_bits() >> i / 64 % 64;
        gm_wide product = times(of(a), of(b)), expected = of((unsigned __int128)a * b), zero = of(0);
        same = same && equal(&product, &expected);
        product = minus(product, expected);
        undone = undone && equal(&product, &zero);
    }
    tap_ok(same, "products of 64-bit numbers");
    tap_ok(undone, "a number less itself is 0");
    gm_wide square = times(of(ones), of(ones)), expected = {{1, 0, UINT64_MAX - 1, UINT64_MAX}};
    tap_ok(equal(&square, &expected), "the square of 2^128 - 1");
    gm_wide power = times(square, of(ones)), less = minus(power, of(1));
    tap_ok(power.word[5] == UINT64_MAX && less.word[0] == power.word[0] - 1, "the cube of 2^128 - 1 fills all words");
    gm_wide one = {{0, 0, 0, 1}}, borrowed = minus(one, of(1)), all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    tap_ok(equal(&borrowed, &all), "a difference borrows through all words");
}

/* q + 1/2 for an integer q of 53 bits lies in the middle of two float64: as ratio and root, and 1 of a far larger
 * numerator to either side. */
static void test_middles(void)
{
    int ratios[3] = {1, 1, 1}, roots[3] = {1, 1, 1};
    for (int i = 0; i < TIMES; i++) {
        uint64_t q = (random_bits() >> 11 | UINT64_C(1) << 52), even = q + q % 2;
        unsigned __int128 any = (unsigned __int128)random_bits() << 62 | random_bits(), b = any >> i % 120 | 1;
        gm_wide twice = times(of(b), of(2)), middle = times(of(b), of(2 * q + 1));
        gm_wide four = times(of(b), of(4)), square = times(middle, of(2 * q + 1));
        ratios[0] = ratios[0] && ratio(middle, twice) == (double)even;
        ratios[1] = ratios[1] && ratio(minus(middle, of(1)), twice) == (double)q;
        roots[0] = roots[0] && root(square, four) == (double)even;
        roots[1] = roots[1] && root(minus(square, of(1)), four) == (double)q;
        /* Doubled, they are even: setting the lowest bit adds 1. */
        gm_wide above = times(middle, of(2)), above_square = times(square, of(2));
        above.word[0] |= 1;
        above_square.word[0] |= 1;
        ratios[2] = ratios[2] && ratio(above, times(twice, of(2))) == (double)(q + 1);
        roots[2] = roots[2] && root(above_square, times(four, of(2))) == (double)(q + 1);
    }
    tap_ok(ratios[0], "ratios in the middle of two float64 round to even");
    tap_ok(ratios[1] && ratios[2], "ratios beside the middle round to the nearest");
    tap_ok(roots[0], "roots in the middle of two float64 round to even");
    tap_ok(roots[1] && roots[2], "roots beside the middle round to the nearest");
}

static void test_simple(void)
{
    gm_wide large = {{0, 0, 0, 0, 1}};
    tap_ok(ratio(of(0), of(7)) == 0 && root(of(0), of(7)) == 0, "0 is 0");
    tap_ok(ratio(of(1), of(3)) == 1.0 / 3 && root(of(2), of(1)) == sqrt(2.0), "1/3 and the root of 2");
    tap_ok(ratio(large, of(1)) == 0x1p256 && root(large, of(1)) == 0x1p128, "2^256 and its root");
    tap_ok(ratio(of(1), large) == 0x1p-256 && root(of(1), large) == 0x1p-128, "2^-256 and its root");
}

int main(void)
{
    test_integers();
    test_middles();
    test_simple();
    return tap_done();
}
