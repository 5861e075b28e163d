/* Random numbers: pinned bits, distributions of every type, the same elements whatever the pieces. */
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "kernels/host.h"
#include "tests/tap.h"

enum { COUNT = 200000 };

static double value_of(const unsigned char *element, gm_dtype type, int swap)
{
    double value = 0;
    gm_cpu_row_f64(&value, element, 1, type, swap);
    return value;
}

/* Bits are part of the format: a seed must mean the same data in every version. Values from an implementation of its
 * own, in Python. */
static void test_pinned(void)
{
    static const struct {
        uint64_t seed, dataset, index, bits;
    } pinned[] = {
        {1, 0, 0, UINT64_C(0xf4860271cda2452f)},
        {1, 0, 1, UINT64_C(0x1cca7f1dbf6efe96)},
        {1, 1, 0, UINT64_C(0xbd05ad73ba411232)},
        {0, 0, 0, UINT64_C(0xf010feb7ed05a885)},
        {2, 0, 123456789, UINT64_C(0x973587bdf15b59d9)},
        {INT64_MAX, 1, UINT64_C(1) << 40, UINT64_C(0x0c9b63de094ebf84)},
    };
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++)
        tap_ok(gm_random_bits(gm_random_key(pinned[i].seed, pinned[i].dataset), pinned[i].index) == pinned[i].bits,
               "seed %llu, dataset %llu, element %llu", (unsigned long long)pinned[i].seed,
               (unsigned long long)pinned[i].dataset, (unsigned long long)pinned[i].index);
}

/* Every bit of seed, dataset and index changes about half of the bits. */
static void test_avalanche(void)
{
    for (int which = 0; which < 3; which++) {
        double least = 64, most = 0;
        for (int bit = 0; bit < 62; bit++) {
            int64_t changed = 0;
            for (uint64_t i = 0; i < 1000; i++) {
                uint64_t flip = UINT64_C(1) << bit, a = gm_random_bits(gm_random_key(i, 1), 2 * i);
                uint64_t key = gm_random_key(which == 0 ? i ^ flip : i, which == 1 ? 1 ^ flip : 1);
                changed += __builtin_popcountll(a ^ gm_random_bits(key, which == 2 ? (2 * i) ^ flip : 2 * i));
            }
            least = fmin(least, (double)changed / 1000);
            most = fmax(most, (double)changed / 1000);
        }
        tap_ok(least > 31 && most < 33, "avalanche of %s: %.2f to %.2f bits",
               which == 0   ? "seed"
               : which == 1 ? "dataset"
                            : "index",
               least, most);
    }
}

static void moments(const unsigned char *data, gm_dtype type, double *mean, double *deviation, double *low,
                    double *high)
{
    double sum = 0, squares = 0;
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < COUNT; i++) {
        double v = value_of(data + (size_t)i * gm_dtype_size(type), type, 0);
        sum += v;
        squares += v * v;
        *low = fmin(*low, v);
        *high = fmax(*high, v);
    }
    *mean = sum / COUNT;
    *deviation = sqrt(squares / COUNT - *mean * *mean);
}

/* Mean and deviation within six standard errors or so; limits of the type. */
static void test_distributions(gm_dtype type, unsigned char *data)
{
    int is_float = gm_dtype_get_kind(type) == GM_FLOAT, is_signed = gm_dtype_get_kind(type) == GM_SIGNED;
    double range = is_float ? 1 : ldexp(1, 8 * (int)gm_dtype_size(type)), middle = is_signed ? 0 : range / 2;
    double mean, deviation, low, high;
    uint64_t key = gm_random_key(7, 0);

    gm_cpu_random(data, type, 0, GM_DISTRIBUTION_UNIFORM, key, 0, COUNT);
    moments(data, type, &mean, &deviation, &low, &high);
    tap_ok(fabs(mean - middle + (is_float ? 0 : 0.5)) < 0.004 * range && fabs(deviation / range - 0.288675) < 0.002 &&
               low >= middle - range / 2 && low < middle - 0.49 * range && high > middle + 0.49 * range &&
               high < middle + range / 2 + !is_float,
           "%s uniform: mean %g, deviation %g, %g to %g", gm_dtype_name(type), mean, deviation, low, high);

    double unit = is_float ? 1 : range / 8;
    gm_cpu_random(data, type, 0, GM_DISTRIBUTION_NORMAL, key, 0, COUNT);
    moments(data, type, &mean, &deviation, &low, &high);
    tap_ok(fabs(mean - (is_float ? 0 : middle)) < 0.015 * unit && fabs(deviation / unit - 1) < 0.01,
           "%s normal: mean %g, deviation %g, %g to %g", gm_dtype_name(type), mean, deviation, low, high);
    if (!is_float)
        tap_ok(low == middle - range / 2 && high == (double)(middle + range / 2 - (range < 1e15)),
               "%s normal: saturated at %g and %g", gm_dtype_name(type), low, high);

    gm_cpu_random(data, type, 0, GM_DISTRIBUTION_INTEGERS, key, 0, COUNT);
    moments(data, type, &mean, &deviation, &low, &high);
    int64_t whole = 0;
    for (int i = 0; i < COUNT; i++) {
        double v = value_of(data + (size_t)i * gm_dtype_size(type), type, 0);
        whole += v == floor(v);
    }
    tap_ok(whole == COUNT && low == 0 && high == 9 && fabs(mean - 4.5) < 0.04, "%s integers: mean %g, %g to %g",
           gm_dtype_name(type), mean, low, high);
}

/* In odd pieces, in either order of bytes. */
static void test_pieces(gm_dtype type, unsigned char *data, unsigned char *other)
{
    size_t size = gm_dtype_size(type);
    uint64_t key = gm_random_key(1, 1);
    for (int d = 0; d < GM_DISTRIBUTIONS; d++) {
        int64_t bad = 0, big = INT64_C(1) << 40; /* far beyond 2^32 elements */
        gm_cpu_random(data, type, 0, (gm_distribution)d, key, big, 10007);
        for (int64_t at = 0; at < 10007; at += 333)
            gm_cpu_random(other + (size_t)at * size, type, 1, (gm_distribution)d, key, big + at,
                          at + 333 < 10007 ? 333 : 10007 - at);
        for (size_t i = 0; i < 10007 * size; i++)
            bad += data[i] != other[i / size * size + (size - 1 - i % size)];
        tap_ok(bad == 0, "%s, distribution %d, in pieces and swapped", gm_dtype_name(type), d);
    }
}

int main(void)
{
    unsigned char *data = malloc(COUNT * 8), *other = malloc(COUNT * 8);
    if (!data || !other)
        return 99;
    test_pinned();
    test_avalanche();
    for (int type = 0; type < GM_DTYPES; type++) {
        test_distributions((gm_dtype)type, data);
        test_pieces((gm_dtype)type, data, other);
    }
    free(data);
    free(other);
    return tap_done();
}
