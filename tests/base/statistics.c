/* The folding of records, wide integers and the roundings of statistics, against plain definitions. */
#include "base/statistics.h"

#include <float.h>
#include <stdlib.h>

#include "base/random.h"
#include "tests/tap.h"

static uint64_t state = 5;

static uint64_t random_bits(void)
{
    return gm_random_mix(state += GM_RANDOM_STEP);
}

static double number(const gm_value *v)
{
    double value;
    gm_value_store(v, GM_DTYPE_F64, &value);
    return value;
}

/* The total of n integers with this sum and sum of squares. */
static gm_total integers(uint64_t n, __int128 sum, unsigned __int128 squares, uint64_t squares_top)
{
    gm_total t;
    gm_total_begin(&t);
    t.count = n;
    t.sum.whole[0] = (uint64_t)sum;
    t.sum.whole[1] = (uint64_t)((unsigned __int128)sum >> 64);
    t.sum.whole[2] = (uint64_t)squares;
    t.sum.whole[3] = (uint64_t)(squares >> 64);
    t.sum.whole[4] = squares_top;
    return t;
}

static double statistic(const gm_total *t, gm_dtype type, gm_statistic s)
{
    gm_value v = gm_statistic_get(t, type, s, 0);
    return number(&v);
}

/* Is |q - a / b| at most half a unit in the last place of q? In whole numbers: |2 q b - 2 a| <= ulp b, with q and ulp
 * scaled to integers; small a, b. */
static int is_nearest_ratio(double q, uint64_t a, uint64_t b)
{
    int exponent;
    double fraction = frexp(q, &exponent);
    if (q == 0)
        return a == 0;
    __int128 mantissa = (__int128)ldexp(fraction, 53), difference; /* q = mantissa 2^(exponent - 53) */
    int shift = 53 - exponent;
    if (shift < 0 || shift > 63)
        return 0;
    difference = 2 * mantissa * (__int128)b - (((__int128)a << shift) * 2);
    return (difference < 0 ? -difference : difference) <= (__int128)b;
}

static void test_ratios(void)
{
    int good = 1, tested = 0;
    for (int i = 0; i < 200000; i++) {
        uint64_t n = 1 + random_bits() % 1000000, sum = random_bits() >> (20 + random_bits() % 30);
        if (sum / n == 0 || sum < n)
            continue;
        gm_total t = integers(n, (__int128)sum, 0, 0);
        good = good && is_nearest_ratio(statistic(&t, GM_DTYPE_U32, GM_STAT_MEAN), sum, n);
        tested++;
    }
    tap_ok(good && tested > 10000, "means of integers are rounded once: %d of them", tested);
    good = 1;
    for (int i = 0; i < 100000; i++) { /* halfway between two float64, or one off */
        uint64_t odd = (UINT64_C(1) << 53) + 2 * (random_bits() >> 12) + 1, n = 1 + random_bits() % 100; /* 54 bits */
        int off = (int)(random_bits() % 3) - 1;
        __int128 sum = (__int128)odd * (__int128)n + off;
        double below = (double)(odd - 1), above = (double)(odd + 1); /* even numbers of 54 bits: exact */
        double even = (odd - 1) / 2 % 2 == 0 ? below : above;
        gm_total t = integers(n, -sum, 0, 0);
        good = good && statistic(&t, GM_DTYPE_I64, GM_STAT_MEAN) == -(off < 0 ? below : off > 0 ? above : even);
    }
    tap_ok(good, "means halfway between two float64 go to the even one, and those beside to their side");
}

static void test_roots(void)
{
    int good = 1;
    for (int i = 0; i < 100000; i++) {
        uint64_t root = (UINT64_C(1) << 53) + 2 * (random_bits() >> 12) + 1; /* halfway between two float64 */
        int off = (int)(random_bits() % 3) - 1;
        unsigned __int128 squares = (unsigned __int128)root * root + (unsigned __int128)(__int128)off;
        double below = (double)(root - 1), above = (double)(root + 1), even = (root - 1) / 2 % 2 == 0 ? below : above;
        gm_total t = integers(7, 0, squares, 0);
        good = good && statistic(&t, GM_DTYPE_U64, GM_STAT_NORM) == (off < 0 ? below : off > 0 ? above : even);
    }
    tap_ok(good, "roots halfway between two float64 go to the even one, and those beside to their side");
    gm_total t = integers(3, 0, 0, UINT64_C(1) << 20);
    tap_ok(statistic(&t, GM_DTYPE_U64, GM_STAT_NORM) == 0x1p74, "the root of 2^148");
    t = integers(4, 4 * 5, 4 * 25, 0);
    tap_ok(statistic(&t, GM_DTYPE_U8, GM_STAT_VAR) == 0 && statistic(&t, GM_DTYPE_U8, GM_STAT_STD) == 0,
           "equal integers have no variance");
    t = integers(2, 0, 2 * (unsigned __int128)9, 0); /* -3, 3 */
    tap_ok(statistic(&t, GM_DTYPE_I8, GM_STAT_VAR) == 9 && statistic(&t, GM_DTYPE_I8, GM_STAT_STD) == 3,
           "-3 and 3 have a standard deviation of 3");
    /* 2^63 - 1 and 2^63 - 2, a million times each: 1/4, where float64 sees nothing */
    unsigned __int128 a = ((unsigned __int128)1 << 63) - 1, b = a - 1, squares = 0;
    uint64_t top = 0, words[3] = {0, 0, 0}, add[3];
    for (int i = 0; i < 1000000; i++) {
        squares = a * a;
        add[0] = (uint64_t)squares, add[1] = (uint64_t)(squares >> 64), add[2] = 0;
        gm_words_add(words, add, 3);
        squares = b * b;
        add[0] = (uint64_t)squares, add[1] = (uint64_t)(squares >> 64);
        gm_words_add(words, add, 3);
    }
    top = words[2];
    t = integers(2000000, (__int128)((a + b) * 1000000), (unsigned __int128)words[1] << 64 | words[0], top);
    tap_ok(statistic(&t, GM_DTYPE_I64, GM_STAT_VAR) == 0.25, "variance of large integers that are close together");
}

static int formats(gm_value v, const char *expected)
{
    char text[GM_VALUE_TEXT];
    gm_value_format(&v, text);
    if (strcmp(text, expected) != 0)
        tap_diag("%s, expected %s", text, expected);
    return strcmp(text, expected) == 0;
}

static gm_value real(double value)
{
    return (gm_value){.kind = GM_VALUE_REAL, .real = value};
}

static void test_format(void)
{
    gm_value most = {.kind = GM_VALUE_INTEGER, .words = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    tap_ok(formats(most, "6277101735386680763835789423207666416102355444464034512895"), "192 bits in decimal");
    most.negative = 1;
    tap_ok(formats(most, "-6277101735386680763835789423207666416102355444464034512895"), "and below 0");
    tap_ok(formats((gm_value){.kind = GM_VALUE_INTEGER}, "0") && formats((gm_value){.kind = GM_VALUE_NONE}, "none"),
           "0, and nothing");
    tap_ok(formats(real(0.1), "0.1") && formats(real(-0.0), "-0") && formats(real(1.0 / 3), "0.3333333333333333") &&
               formats(real(5e-324), "5e-324") && formats(real(DBL_MAX), "1.7976931348623157e+308") &&
               formats(real(NAN), "nan") && formats(real(-INFINITY), "-inf"),
           "float64 in the fewest digits");
    int good = 1;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = random_bits(), back;
        double value, read;
        char text[GM_VALUE_TEXT];
        memcpy(&value, &bits, sizeof value);
        gm_value v = real(value);
        read = strtod(gm_value_format(&v, text), NULL);
        memcpy(&back, &read, sizeof back);
        good = good && (value != value || back == bits);
    }
    tap_ok(good, "float64 read back to the same bits");
}

static void test_types(void)
{
    tap_ok(gm_statistic_type(GM_STAT_SUM, GM_DTYPE_U8, INT64_C(1) << 56) == GM_DTYPE_U64 &&
               gm_statistic_type(GM_STAT_SUM, GM_DTYPE_U64, 1) == GM_DTYPE_U64 &&
               gm_statistic_type(GM_STAT_SUM, GM_DTYPE_U64, 2) == GM_DTYPE_F64 &&
               gm_statistic_type(GM_STAT_SUM, GM_DTYPE_I64, 1) == GM_DTYPE_I64 &&
               gm_statistic_type(GM_STAT_SUM, GM_DTYPE_I64, 2) == GM_DTYPE_F64 &&
               gm_statistic_type(GM_STAT_SUM, GM_DTYPE_I8, INT64_C(1) << 56) == GM_DTYPE_I64 &&
               gm_statistic_type(GM_STAT_SUM, GM_DTYPE_I8, (INT64_C(1) << 56) + 1) == GM_DTYPE_F64 &&
               gm_statistic_type(GM_STAT_SUM, GM_DTYPE_F16, 1) == GM_DTYPE_F64,
           "types of sums");
    tap_ok(gm_statistic_type(GM_STAT_SUMSQ, GM_DTYPE_U8, INT64_C(1) << 40) == GM_DTYPE_U64 &&
               gm_statistic_type(GM_STAT_SUMSQ, GM_DTYPE_U32, 1) == GM_DTYPE_U64 &&
               gm_statistic_type(GM_STAT_SUMSQ, GM_DTYPE_U32, 2) == GM_DTYPE_F64 &&
               gm_statistic_type(GM_STAT_SUMSQ, GM_DTYPE_I32, 4) == GM_DTYPE_F64 &&
               gm_statistic_type(GM_STAT_SUMSQ, GM_DTYPE_I32, 3) == GM_DTYPE_U64 &&
               gm_statistic_type(GM_STAT_SUMSQ, GM_DTYPE_I64, 1) == GM_DTYPE_F64,
           "types of sums of squares");
}

/* Every half, through its value. */
static void test_half(void)
{
    int good = 1;
    for (int i = 0; i < 0x10000; i++) {
        int magnitude = i & 0x7fff, fraction = magnitude & 0x3ff, exponent = magnitude >> 10;
        double value = magnitude == 0x7c00 ? INFINITY
                       : exponent          ? ldexp(1024 + fraction, exponent - 25)
                                           : ldexp(fraction, -24);
        gm_value v = real(i & 0x8000 ? -value : value);
        gm_f16 half;
        gm_value_store(&v, GM_DTYPE_F16, &half);
        good = good && (magnitude > 0x7c00 || half.bits == i);
    }
    tap_ok(good, "extremes of f16 are stored with their bits");
}

static gm_moments leaf_of(const double *x, int n)
{
    gm_moments m;
    gm_moments_begin(&m);
    double shift = x[0], min = INFINITY, max = -INFINITY;
    for (int i = 0; i < n; i++) {
        m.sum.real[GM_REAL_SUM] += x[i];
        m.sum.real[GM_REAL_SQUARES] = fma(x[i], x[i], m.sum.real[GM_REAL_SQUARES]);
        m.sum.real[GM_REAL_SHIFTED_SUM] += x[i] - shift;
        m.sum.real[GM_REAL_SHIFTED_SQUARES] = fma(x[i] - shift, x[i] - shift, m.sum.real[GM_REAL_SHIFTED_SQUARES]);
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    m.sum.real[GM_REAL_SHIFT] = shift;
    m.count = (uint64_t)n;
    memcpy(&m.min, &min, sizeof min);
    memcpy(&m.max, &max, sizeof max);
    return m;
}

/* A mean a million times the spread: variance to all but a few of its digits; and a sum that all but vanishes. */
static void test_fold(void)
{
    enum { LEAVES = 1000, EACH = 50 };
    double x[EACH], far = 0;
    long double sum = 0, mean, spread = 0;
    static double all[LEAVES * EACH];
    gm_total t;
    gm_total_begin(&t);
    for (int i = 0; i < LEAVES * EACH; i++) {
        all[i] = 1e6 + ldexp((double)(int64_t)random_bits(), -63) + i * 1e-5;
        sum += all[i];
    }
    mean = sum / (LEAVES * EACH);
    for (int i = 0; i < LEAVES * EACH; i++)
        spread += (all[i] - mean) * (all[i] - mean);
    for (int l = 0; l < LEAVES; l++) {
        memcpy(x, all + l * EACH, sizeof x);
        gm_moments m = leaf_of(x, EACH);
        gm_total_add(&t, &m, GM_FLOAT);
    }
    far = (double)fabsl(statistic(&t, GM_DTYPE_F64, GM_STAT_VAR) / (spread / (LEAVES * EACH)) - 1);
    tap_ok(far < 1e-14, "variance by Chan's formula: off by %.3g", far);
    far = (double)fabsl(statistic(&t, GM_DTYPE_F64, GM_STAT_MEAN) / mean - 1);
    tap_ok(far < 2e-16, "mean: off by %.3g", far);
    gm_total_begin(&t);
    double big[3] = {1e300, 1, -1e300};
    for (int l = 0; l < 3; l++) {
        gm_moments m = leaf_of(&big[l], 1);
        gm_total_add(&t, &m, GM_FLOAT);
    }
    tap_ok(statistic(&t, GM_DTYPE_F64, GM_STAT_SUM) == 0 || statistic(&t, GM_DTYPE_F64, GM_STAT_SUM) == 1,
           "a sum that all but vanishes");
    double infinite[4] = {1, INFINITY, 2, INFINITY};
    gm_total_begin(&t);
    for (int l = 0; l < 4; l++) {
        gm_moments m = leaf_of(&infinite[l], 1);
        gm_total_add(&t, &m, GM_FLOAT);
    }
    tap_ok(statistic(&t, GM_DTYPE_F64, GM_STAT_SUM) == INFINITY &&
               statistic(&t, GM_DTYPE_F64, GM_STAT_MEAN) == INFINITY && isnan(statistic(&t, GM_DTYPE_F64, GM_STAT_VAR)),
           "infinite elements: sum and mean are infinite, the variance is NaN");
}

static void test_extremes(void)
{
    double zeros[4] = {0.0, -0.0, 0.0, -0.0};
    gm_total t;
    gm_total_begin(&t);
    for (int l = 0; l < 4; l++) {
        gm_moments m = leaf_of(&zeros[l], 1);
        memcpy(&m.min, &zeros[l], 8);
        memcpy(&m.max, &zeros[l], 8);
        m.argmin = m.argmax = l;
        gm_total_add(&t, &m, GM_FLOAT);
    }
    tap_ok(signbit(statistic(&t, GM_DTYPE_F64, GM_STAT_MIN)) && !signbit(statistic(&t, GM_DTYPE_F64, GM_STAT_MAX)) &&
               t.argmin == 0 && t.argmax == 0,
           "-0 is the smaller zero, and the first zero is where both are");
    tap_ok(gm_moment_less(GM_SIGNED, (uint64_t)-1, 0) && !gm_moment_less(GM_UNSIGNED, (uint64_t)-1, 0),
           "signed and unsigned integers");
    gm_total_begin(&t);
    gm_value none = gm_statistic_get(&t, GM_DTYPE_I32, GM_STAT_MIN, 0);
    tap_ok(none.kind == GM_VALUE_NONE && isnan(statistic(&t, GM_DTYPE_F32, GM_STAT_MAX)) &&
               isnan(statistic(&t, GM_DTYPE_I32, GM_STAT_MEAN)) && statistic(&t, GM_DTYPE_F32, GM_STAT_SUM) == 0 &&
               statistic(&t, GM_DTYPE_F32, GM_STAT_ARGMAX) == -1,
           "statistics of nothing");
    t.nan = 2;
    t.count = 3;
    t.argnan = 7;
    gm_value mean = gm_statistic_get(&t, GM_DTYPE_F32, GM_STAT_MEAN, 1),
             count = gm_statistic_get(&t, GM_DTYPE_F32, GM_STAT_COUNT, 1);
    gm_value first = gm_statistic_get(&t, GM_DTYPE_F32, GM_STAT_ARGMIN, 1);
    tap_ok(isnan(number(&mean)) && number(&count) == 5 && number(&first) == 7, "NaN that is passed on");
}

int main(void)
{
    test_ratios();
    test_roots();
    test_format();
    test_types();
    test_half();
    test_fold();
    test_extremes();
    return tap_done();
}
