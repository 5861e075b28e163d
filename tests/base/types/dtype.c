/* The traits of element types against those of C; the order, the values and the rounding of floats against arithmetic.
 */
#include "base/types/dtype.h"

#include <float.h>
#include <math.h>

#include "base/random.h"
#include "tests/tap.h"

/* Of a float type: the value of bits, the bits of a value rounded to it, and the order as 64-bit integers. */
typedef struct format {
    gm_dtype type;
    double (*value)(uint64_t bits);
    uint64_t (*round)(double value);
    int64_t (*order)(uint64_t bits);
} format;

#define raw_1 uint8_t
#define raw_2 uint16_t
#define raw_4 uint32_t
#define raw_8 uint64_t
#define FORMAT_UNSIGNED(id, ctype, bytes)
#define FORMAT_SIGNED(id, ctype, bytes)
#define FORMAT_FLOAT(id, ctype, bytes)                     \
    static double value_##id(uint64_t bits)                \
    {                                                      \
        return (double)gm_bits_##ctype((raw_##bytes)bits); \
    }                                                      \
    static uint64_t round_##id(double value)               \
    {                                                      \
        return gm_raw_##ctype(gm_round_##ctype(value));    \
    }                                                      \
    static int64_t order_##id(uint64_t bits)               \
    {                                                      \
        return gm_monotone##bytes((raw_##bytes)bits);      \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) FORMAT_##kind(id, ctype, bytes)
#include "base/types/dtypes.def"
#undef GM_DTYPE

static const format formats[] = {
#define ENTRY_UNSIGNED(id)
#define ENTRY_SIGNED(id)
#define ENTRY_FLOAT(id) {GM_DTYPE_##id, value_##id, round_##id, order_##id},
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) ENTRY_##kind(id)
#include "base/types/dtypes.def"
#undef GM_DTYPE
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* The value of bits by arithmetic. */
static double value_of(gm_dtype type, uint64_t bits)
{
    int fraction = gm_dtype_digits(type) - 1, exponents = 8 * (int)gm_dtype_size(type) - 1 - fraction;
    int top = (1 << exponents) - 1, exponent = (int)(bits >> fraction) & top;
    double part = ldexp((double)(bits & ((UINT64_C(1) << fraction) - 1)), -fraction), value;
    if (exponent == top)
        value = part == 0 ? (double)INFINITY : (double)NAN;
    else
        value = exponent ? ldexp(1 + part, exponent - top / 2) : ldexp(part, 1 - top / 2);
    return bits >> (fraction + exponents) & 1 ? -value : value;
}

static void test_names(void)
{
    char text[GM_DTYPE_LIST_TEXT];
    for (int i = 0; i < GM_DTYPES; i++)
        tap_ok(gm_dtype_find(gm_dtype_name((gm_dtype)i)) == (gm_dtype)i, "%s is found", gm_dtype_name((gm_dtype)i));
    tap_ok(gm_dtype_find("f99") == GM_DTYPES && gm_dtype_find("float") == GM_DTYPES &&
               gm_dtype_find("float3") == GM_DTYPES && gm_dtype_find("bfloat32") == GM_DTYPES &&
               gm_dtype_find("uint8_t") == GM_DTYPES,
           "names of no type are not found");
    tap_ok(gm_dtype_find("uint8") == GM_DTYPE_U8 && gm_dtype_find("int64") == GM_DTYPE_I64 &&
               gm_dtype_find("float16") == GM_DTYPE_F16 && gm_dtype_find("bfloat16") == GM_DTYPE_BF16 &&
               gm_dtype_find("float64") == GM_DTYPE_F64,
           "NumPy's names");
    tap_ok(strcmp(gm_dtype_list(GM_SIGNED, text), "i8, i16, i32 or i64") == 0, "signed: %s", text);
    tap_ok(strncmp(gm_dtype_list(-1, text), "u8, u16, ", 9) == 0 && strstr(text, " or f64"), "all: %s", text);
}

/* Of integers by their C type. */
static void test_integers(void)
{
#define LARGEST_UNSIGNED(ctype) ((double)(ctype)-1)
#define LARGEST_SIGNED(ctype) ((double)(ctype)(((uint64_t)1 << (8 * sizeof(ctype) - 1)) - 1))
#define LARGEST_FLOAT(ctype) 0
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                                                              \
    if (GM_##kind != GM_FLOAT)                                                                                      \
        tap_ok(gm_dtype_largest(GM_DTYPE_##id) == LARGEST_##kind(ctype) && gm_dtype_roundoff(GM_DTYPE_##id) == 0 && \
                   gm_dtype_smallest(GM_DTYPE_##id) == 1 && gm_dtype_size(GM_DTYPE_##id) == sizeof(ctype),          \
               "%s: traits of the C type", name);
#include "base/types/dtypes.def"
#undef GM_DTYPE
}

static int has_traits(gm_dtype type, int digits, double roundoff, double smallest, double largest, double overflow)
{
    return gm_dtype_digits(type) == digits && gm_dtype_roundoff(type) == roundoff &&
           gm_dtype_smallest(type) == smallest && gm_dtype_largest(type) == largest &&
           gm_dtype_overflow(type) == overflow;
}

static void test_floats(void)
{
    tap_ok(has_traits(GM_DTYPE_F16, 11, 0x1p-11, 0x1p-24, 65504, 65520), "f16: traits of binary16");
    tap_ok(has_traits(GM_DTYPE_BF16, 8, 0x1p-8, 0x1p-133, 0x1.fep127, 0x1.ffp127), "bf16: traits of bfloat16");
    tap_ok(has_traits(GM_DTYPE_F32, FLT_MANT_DIG, FLT_EPSILON / 2, FLT_TRUE_MIN, FLT_MAX, 0x1.ffffffp127),
           "f32: traits of float");
    tap_ok(has_traits(GM_DTYPE_F64, DBL_MANT_DIG, DBL_EPSILON / 2, DBL_TRUE_MIN, DBL_MAX, INFINITY),
           "f64: traits of double");
}

/* Patterns to try: all of a type of 16 bits, else the edges of both signs and random ones. */
static uint64_t pattern(const format *f, int i)
{
    int bytes = (int)gm_dtype_size(f->type);
    uint64_t infinity = gm_format_infinity(bytes, gm_dtype_digits(f->type)), sign = (uint64_t)1 << (8 * bytes - 1);
    uint64_t least = infinity & ~(infinity << 1); /* the smallest normal number */
    const uint64_t edges[] = {0, 1, 2, least - 1, least, least + 1, infinity - 1, infinity, infinity + 1, sign - 1};
    if (bytes == 2)
        return (uint64_t)i;
    if (i < 20)
        return edges[i / 2] | (i % 2 ? sign : 0);
    return gm_random_mix((uint64_t)i) >> (64 - 8 * bytes);
}

/* Values, round trips and the order of neighbours among all patterns. */
static void test_patterns(const format *f)
{
    enum { PATTERNS = 65536, APART = 61 };
    int64_t values = 0, trips = 0, order = 0, inverse = 0, nans = 0;
    uint64_t infinity = gm_format_infinity((int)gm_dtype_size(f->type), gm_dtype_digits(f->type));
    uint64_t sign = (uint64_t)1 << (8 * gm_dtype_size(f->type) - 1);
    for (int i = 0; i < PATTERNS; i++) {
        uint64_t bits = pattern(f, i);
        double value = f->value(bits), expected = value_of(f->type, bits);
        int64_t at = f->order(bits);
        values += !(value == expected ? signbit(value) == signbit(expected) : isnan(value) && isnan(expected));
        trips += isnan(expected) ? !isnan(f->value(f->round(value))) : f->round(value) != bits;
        inverse += (f->order((uint64_t)at) ^ (int64_t)bits) << (64 - 8 * gm_dtype_size(f->type)) != 0;
        nans += isnan(expected) != (at > f->order(infinity) || at < f->order(infinity | sign));
        for (int j = i % APART; j < PATTERNS && !isnan(expected); j += 7 * APART) {
            uint64_t other = pattern(f, j);
            double y = f->value(other);
            int below = expected < y || (expected == y && signbit(expected) && !signbit(y));
            order += !isnan(y) && (at < f->order(other)) != below;
        }
    }
    const char *name = gm_dtype_name(f->type);
    tap_ok(values == 0, "%s: values of bits, %lld wrong", name, (long long)values);
    tap_ok(trips == 0, "%s: values to bits, %lld wrong", name, (long long)trips);
    tap_ok(order == 0, "%s: order, subnormals, both zeros and infinities included, %lld wrong", name, (long long)order);
    tap_ok(nans == 0, "%s: NaN lie outside the infinities, %lld wrong", name, (long long)nans);
    tap_ok(inverse == 0, "%s: the order is its own inverse, %lld wrong", name, (long long)inverse);
}

/* NaN of a packed type become quiet. */
static void test_nan(const format *f)
{
    const uint64_t sign = 0x8000, infinity = gm_format_infinity(2, gm_dtype_digits(f->type));
    const uint64_t quiet = infinity ^ gm_format_nan(2, gm_dtype_digits(f->type));
    int64_t wrong = 0;
    for (uint64_t bits = 0; bits <= 0xffff; bits++)
        wrong += (bits & ~sign) > infinity && f->round(f->value(bits)) != (bits | quiet);
    tap_ok(wrong == 0, "%s: NaN keep sign and payload, %lld wrong", gm_dtype_name(f->type), (long long)wrong);
}

/* Numbers of a packed type, the middle of each with the next one, and the numbers beside the middle. */
static void test_rounding(const format *f)
{
    uint64_t infinity = gm_format_infinity((int)gm_dtype_size(f->type), gm_dtype_digits(f->type));
    double largest = gm_dtype_largest(f->type), overflow = gm_dtype_overflow(f->type);
    int64_t wrong = 0, by_float = 0;
    for (uint64_t bits = 0; bits + 1 < infinity; bits++) {
        double middle = (value_of(f->type, bits) + value_of(f->type, bits + 1)) / 2;
        wrong += f->round(middle) != bits + bits % 2;
        wrong += f->round(nextafter(middle, 0)) != bits || f->round(nextafter(middle, INFINITY)) != bits + 1;
        wrong += f->round(-nextafter(middle, INFINITY)) != ((bits + 1) | 0x8000);
        by_float += f->round((float)nextafter(middle, INFINITY)) != bits + 1;
    }
    tap_ok(by_float > 0, "%s: by way of float32 %lld numbers are rounded twice", gm_dtype_name(f->type),
           (long long)by_float);
    tap_ok(wrong == 0, "%s: rounds to nearest, ties to even, %lld wrong", gm_dtype_name(f->type), (long long)wrong);
    tap_ok(f->round(largest) == infinity - 1 && f->round(nextafter(overflow, 0)) == infinity - 1 &&
               f->round(overflow) == infinity && f->round(2 * overflow) == infinity && f->round(FLT_MAX) == infinity &&
               f->round(DBL_MAX) == infinity && f->round(INFINITY) == infinity,
           "%s: overflow", gm_dtype_name(f->type));
}

static void test_ends(void)
{
    static const struct {
        gm_dtype type;
        double low, high;
    } cases[] = {{GM_DTYPE_U8, -1, 256},
                 {GM_DTYPE_I8, -129, 128},
                 {GM_DTYPE_I32, -2147483649.0, 2147483648.0},
                 {GM_DTYPE_F16, -65520, 65520}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double low, high;
        gm_dtype_ends(cases[i].type, &low, &high);
        tap_ok(low == cases[i].low && high == cases[i].high, "the ends of %s: %g and %g", gm_dtype_name(cases[i].type),
               low, high);
    }
}

int main(void)
{
    test_names();
    test_integers();
    test_floats();
    for (int i = 0; i < FORMATS; i++) {
        test_patterns(&formats[i]);
        if (gm_dtype_size(formats[i].type) == 2) {
            test_nan(&formats[i]);
            test_rounding(&formats[i]);
        }
    }
    test_ends();
    return tap_done();
}
