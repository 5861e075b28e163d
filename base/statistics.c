/* Statistics of totals. Those of integers are ratios, and roots of ratios, of integers of up to 256 bits, each rounded
 * once. */
#include "base/statistics.h"

#include "base/text/words.h"
#include "base/types/wide.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

int64_t gm_leaf_length(gm_dtype type)
{
    return gm_dtype_get_kind(type) == GM_FLOAT ? GM_LEAF_FLOAT : GM_LEAF_WHOLE / (int64_t)gm_dtype_size(type);
}

static const char *const names[GM_STATISTICS] = {
    [GM_STAT_COUNT] = "count", [GM_STAT_NAN] = "nan",     [GM_STAT_MIN] = "min",       [GM_STAT_MAX] = "max",
    [GM_STAT_SUM] = "sum",     [GM_STAT_SUMSQ] = "sumsq", [GM_STAT_MEAN] = "mean",     [GM_STAT_VAR] = "var",
    [GM_STAT_STD] = "std",     [GM_STAT_NORM] = "norm",   [GM_STAT_ARGMIN] = "argmin", [GM_STAT_ARGMAX] = "argmax",
};

const char *gm_statistic_name(gm_statistic statistic)
{
    return names[statistic];
}

gm_statistic gm_statistic_find(const char *name)
{
    int index = gm_word_index(names, GM_STATISTICS, name);
    return index < 0 ? GM_STATISTICS : (gm_statistic)index;
}

unsigned gm_statistic_want(gm_statistic statistic, gm_dtype type)
{
    static const unsigned wants[GM_STATISTICS] = {
        [GM_STAT_MIN] = GM_WANT_RANGE,
        [GM_STAT_MAX] = GM_WANT_RANGE,
        [GM_STAT_SUM] = GM_WANT_SUM,
        [GM_STAT_SUMSQ] = GM_WANT_SQUARES,
        [GM_STAT_MEAN] = GM_WANT_SUM,
        [GM_STAT_VAR] = GM_WANT_SPREAD,
        [GM_STAT_STD] = GM_WANT_SPREAD,
        [GM_STAT_NORM] = GM_WANT_SQUARES,
        [GM_STAT_ARGMIN] = GM_WANT_RANGE | GM_WANT_ARG,
        [GM_STAT_ARGMAX] = GM_WANT_RANGE | GM_WANT_ARG,
    };
    int is_float = gm_dtype_get_kind(type) == GM_FLOAT;
    if (wants[statistic] == GM_WANT_SPREAD && !is_float)
        return GM_WANT_SUM | GM_WANT_SQUARES;
    if (wants[statistic] == GM_WANT_SUM && is_float)
        return GM_WANT_SUM | GM_WANT_RANGE; /* for infinities: see of_infinities() */
    return wants[statistic];
}

/* Changes the sign, in two's complement. */
static void negate(uint64_t *words, int count)
{
    uint64_t one = 1;
    for (int i = 0; i < count; i++) {
        words[i] = ~words[i] + one;
        one = one && words[i] == 0;
    }
}

static gm_value real(double value)
{
    return (gm_value){.kind = GM_VALUE_REAL, .real = value == value ? value : (double)NAN};
}

static gm_value whole(uint64_t magnitude, int negative)
{
    return (gm_value){.kind = GM_VALUE_INTEGER, .negative = negative, .words = {magnitude}};
}

static gm_value place(int64_t index)
{
    return index < 0 ? whole(1, 1) : whole((uint64_t)index, 0);
}

static gm_value extreme(const gm_total *t, gm_dtype_kind kind, uint64_t bits_of)
{
    if (t->count == 0)
        return kind == GM_FLOAT ? real(NAN) : (gm_value){.kind = GM_VALUE_NONE};
    if (kind == GM_FLOAT)
        return real(gm_bits_double(bits_of));
    int negative = kind == GM_SIGNED && bits_of >> 63;
    return whole(negative ? -bits_of : bits_of, negative);
}

/* (high + low) / n. */
static double mean_of(gm_double2 sum, double n)
{
    double quotient = sum.high / n;
    if (!(fabs(quotient) <= DBL_MAX))
        return quotient;
    return quotient + (fma(-quotient, n, sum.high) + sum.low) / n;
}

/* Infinities among the elements decide their sum, whatever became of partial sums that overflow; 0 if there are none.
 */
static double of_infinities(const gm_total *t)
{
    double least = gm_bits_double(t->min), most = gm_bits_double(t->max);
    return (isinf(least) ? least : 0) + (isinf(most) ? most : 0);
}

static gm_value of_floats(const gm_total *t, gm_statistic statistic)
{
    double n = (double)t->count, squares = t->sum.real.squares.high, infinite = of_infinities(t);
    if (infinite != 0 && (statistic == GM_STAT_SUM || statistic == GM_STAT_MEAN))
        return real(infinite);
    switch (statistic) {
    case GM_STAT_SUM:
        return real(t->sum.real.sum.high);
    case GM_STAT_SUMSQ:
        return real(squares);
    case GM_STAT_MEAN:
        return real(t->count ? mean_of(t->sum.real.sum, n) : NAN);
    case GM_STAT_VAR:
        return real(t->count ? mean_of(t->sum.real.spread, n) : NAN);
    case GM_STAT_STD:
        return real(t->count ? sqrt(mean_of(t->sum.real.spread, n)) : NAN);
    default:
        return real(sqrt(squares));
    }
}

static gm_value of_integers(const gm_total *t, gm_dtype_kind kind, gm_statistic statistic)
{
    static const gm_wide one = {{1}};
    gm_value sum = {.kind = GM_VALUE_INTEGER, .words = {t->sum.whole[0], t->sum.whole[1]}},
             squares = {.kind = GM_VALUE_INTEGER};
    sum.negative = kind == GM_SIGNED && sum.words[1] >> 63;
    if (sum.negative)
        negate(sum.words, 2);
    memcpy(squares.words, t->sum.whole + GM_WHOLE_SQUARES, sizeof squares.words);
    gm_wide n = gm_wide_of(&t->count, 1), wide_sum = gm_wide_of(sum.words, 2),
            wide_squares = gm_wide_of(squares.words, 3);
    if (statistic == GM_STAT_SUM)
        return sum;
    if (statistic == GM_STAT_SUMSQ)
        return squares;
    if (statistic == GM_STAT_NORM)
        return real(gm_wide_root(&wide_squares, &one));
    if (t->count == 0)
        return real(NAN);
    if (statistic == GM_STAT_MEAN)
        return real((sum.negative ? -1 : 1) * gm_wide_ratio(&wide_sum, &n));
    gm_wide spread = gm_wide_times(&n, &wide_squares), square = gm_wide_times(&wide_sum, &wide_sum),
            n_square = gm_wide_times(&n, &n);
    gm_wide_subtract(&spread, &square);
    return real(statistic == GM_STAT_VAR ? gm_wide_ratio(&spread, &n_square) : gm_wide_root(&spread, &n_square));
}

gm_value gm_statistic_get(const gm_total *t, gm_dtype type, gm_statistic statistic, int propagate)
{
    gm_dtype_kind kind = gm_dtype_get_kind(type);
    int spoilt = propagate && t->nan > 0;
    switch (statistic) {
    case GM_STAT_COUNT:
        return whole(t->count + (spoilt ? t->nan : 0), 0);
    case GM_STAT_NAN:
        return whole(t->nan, 0);
    case GM_STAT_ARGMIN:
        return place(spoilt ? t->argnan : t->argmin);
    case GM_STAT_ARGMAX:
        return place(spoilt ? t->argnan : t->argmax);
    default:
        break;
    }
    if (spoilt)
        return real(NAN);
    if (statistic == GM_STAT_MIN || statistic == GM_STAT_MAX)
        return extreme(t, kind, statistic == GM_STAT_MIN ? t->min : t->max);
    return kind == GM_FLOAT ? of_floats(t, statistic) : of_integers(t, kind, statistic);
}

gm_dtype gm_statistic_type(gm_statistic statistic, gm_dtype type, int64_t n)
{
    gm_dtype_kind kind = gm_dtype_get_kind(type);
    unsigned width = 8 * (unsigned)gm_dtype_size(type) -
                     (kind == GM_SIGNED); /* magnitudes are below 2^width, or that itself */
    unsigned __int128 count = (unsigned __int128)(n > 0 ? n : 0), limit = (unsigned __int128)1 << 64;
    unsigned __int128 most = ((unsigned __int128)1 << width) - (kind == GM_UNSIGNED);
    switch (statistic) {
    case GM_STAT_COUNT:
    case GM_STAT_NAN:
        return GM_DTYPE_U64;
    case GM_STAT_MIN:
    case GM_STAT_MAX:
        return type;
    case GM_STAT_ARGMIN:
    case GM_STAT_ARGMAX:
        return GM_DTYPE_I64;
    case GM_STAT_SUM:
        if (kind == GM_SIGNED && count * most <= limit / 2)
            return GM_DTYPE_I64;
        return kind == GM_UNSIGNED && count * most < limit ? GM_DTYPE_U64 : GM_DTYPE_F64;
    case GM_STAT_SUMSQ:
        if (kind == GM_FLOAT || (count > 0 && most * most > (limit - 1) / count))
            return GM_DTYPE_F64;
        return GM_DTYPE_U64;
    default:
        return GM_DTYPE_F64;
    }
}

/* As float64, to nearest. */
static double as_real(const gm_value *value)
{
    static const gm_wide one = {{1}};
    gm_wide magnitude = gm_wide_of(value->words, 3);
    if (value->kind == GM_VALUE_REAL)
        return value->real;
    return value->kind == GM_VALUE_NONE ? (double)NAN : (value->negative ? -1 : 1) * gm_wide_ratio(&magnitude, &one);
}

/* One function a type. An integer is the low word of the value, in two's complement. */
#define STORED_UNSIGNED(ctype) (ctype) integer
#define STORED_SIGNED(ctype) (ctype) integer
#define STORED_FLOAT(ctype) gm_round_##ctype(real)
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                   \
    static void store_##id(uint64_t integer, double real, void *element) \
    {                                                                    \
        ctype stored = STORED_##kind(ctype);                             \
        (void)integer;                                                   \
        (void)real;                                                      \
        memcpy(element, &stored, sizeof stored);                         \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

void gm_value_store(const gm_value *value, gm_dtype type, void *element)
{
    static void (*const store[GM_DTYPES])(uint64_t integer, double real, void *element) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) store_##id,
#include "base/types/dtypes.def"
#undef GM_DTYPE
    };
    uint64_t integer = value->negative ? -value->words[0] : value->words[0];
    store[type](integer, gm_dtype_get_kind(type) == GM_FLOAT ? as_real(value) : 0, element);
}

static char *format_real(double value, char *text)
{
    if (value != value)
        return strcpy(text, "nan");
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, GM_VALUE_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

char *gm_value_format(const gm_value *value, char *text)
{
    uint64_t words[3] = {value->words[0], value->words[1], value->words[2]};
    char digits[GM_VALUE_TEXT];
    int at = GM_VALUE_TEXT - 1;
    if (value->kind == GM_VALUE_NONE)
        return strcpy(text, "none");
    if (value->kind == GM_VALUE_REAL)
        return format_real(value->real, text);
    digits[at] = '\0';
    do {
        unsigned __int128 rest = 0;
        for (int i = 3; i-- > 0;) {
            rest = rest << 64 | words[i];
            words[i] = (uint64_t)(rest / 10);
            rest %= 10;
        }
        digits[--at] = (char)('0' + (int)rest);
    } while (words[0] | words[1] | words[2]);
    if (value->negative)
        digits[--at] = '-';
    return strcpy(text, digits + at);
}
