/* statistics.h - sums, extremes and counts of elements: the records that devices compute, and how they fold.
 *
 * Data are cut into leaves by index; a device computes one gm_moments for each leaf, whose bits depend on the leaf's
 * elements alone. Leaves fold into a gm_total in the order of their index. For integers all results are exact, in any
 * order.
 *
 * A contiguous segment has leaves of gm_leaf_length() elements; GM_NODE of them fold into a node, the nodes into the
 * segment's total. Inside a leaf of floats lane j of GM_LANES sums elements j, j + GM_LANES, ... in this order; then
 * lane j takes lane j + w, for w = 64, 32, ... 1 in turn. A column that lies across rows has leaves of GM_LEAF_COLUMN
 * elements, each summed one by one; they fold into the column's total, without nodes.
 *
 * Sums begin at +0: leaving an element out and adding 0 or -0 give the same bits. */
#ifndef GM_BASE_STATISTICS_H
#define GM_BASE_STATISTICS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/types/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GM_LEAF_FLOAT = 8192,
    GM_LEAF_WHOLE = 65536, /* bytes of integers */
    GM_LEAF_COLUMN = 64,
    GM_LANES = 128,
    GM_NODE = 64 /* leaves */
};

/* Elements of a leaf of a contiguous segment. */
int64_t gm_leaf_length(gm_dtype type);

/* Of one leaf. */
typedef struct gm_moments {
    uint64_t count, nan; /* elements other than NaN; NaN, which are left out of the fields below */
    uint64_t min,
        max; /* values, -0 below +0: integers widened to 64 bits, floats as bits of float64; 0 when count is 0 */
    int64_t argmin, argmax, argnan; /* index inside the segment or column of the first that equals min, max (-0 == +0),
                                       or is NaN; -1: none */
    union {
        double
            real[5]; /* sum of x, of x^2; shift: the leaf's first finite element (of a column: its first other than NaN,
                      * if that is finite), or 0; sum of x - shift, of (x - shift)^2. Squares are added by fma. */
        uint64_t whole[5]; /* sum: 128 bits in two's complement, low word first; then the sum of squares: 192 bits */
    } sum;
} gm_moments;

enum { GM_REAL_SUM, GM_REAL_SQUARES, GM_REAL_SHIFT, GM_REAL_SHIFTED_SUM, GM_REAL_SHIFTED_SQUARES }; /* real[] */
enum { GM_WHOLE_SUM = 0, GM_WHOLE_SQUARES = 2 };                                                    /* whole[] */

/* A sum of two float64, |low| <= ulp(high) / 2; low is 0 when high is not finite. */
typedef struct gm_double2 {
    double high, low;
} gm_double2;

/* Of any number of leaves, in order. */
typedef struct gm_total {
    uint64_t count, nan, min, max;
    int64_t argmin, argmax, argnan;
    union {
        struct {
            gm_double2 sum, squares, mean, spread; /* spread: sum of (x - mean)^2 */
        } real;
        uint64_t whole[5]; /* as in gm_moments */
    } sum;
} gm_total;

GM_HD gm_double2 gm_double2_add(gm_double2 a, gm_double2 b)
{
    gm_double2 sum = {a.high + b.high, 0};
    double part = sum.high - a.high;
    double lost = (a.high - (sum.high - part)) + (b.high - part) + (a.low + b.low);
    double high = sum.high + lost;
    if (!(fabs(high) <= 1.7976931348623157e308)) /* an infinity has no rounding error to correct */
        return sum;
    sum.low = lost - (high - sum.high);
    sum.high = high;
    return sum;
}

GM_HD gm_double2 gm_double2_of(double high, double low)
{
    gm_double2 value = {high, low};
    return value;
}

/* a += b, words of two's complement, lowest first. */
GM_HD void gm_words_add(uint64_t *a, const uint64_t *b, int words)
{
    uint64_t carry = 0;
    for (int i = 0; i < words; i++) {
        uint64_t sum = a[i] + b[i], more = sum + carry;
        carry = (uint64_t)(sum < b[i]) | (uint64_t)(more < carry);
        a[i] = more;
    }
}

/* Order and equality of two values in the form of min and max above: -0 is less than +0, and equal to it. */
GM_HD int gm_moment_less(gm_dtype_kind kind, uint64_t a, uint64_t b)
{
    if (kind == GM_UNSIGNED)
        return a < b;
    if (kind == GM_FLOAT) {
        a = (uint64_t)gm_monotone8(a);
        b = (uint64_t)gm_monotone8(b);
    }
    return (int64_t)a < (int64_t)b;
}

GM_HD int gm_moment_equal(gm_dtype_kind kind, uint64_t a, uint64_t b)
{
    return a == b || (kind == GM_FLOAT && (a | b) << 1 == 0);
}

/* The start of a record, and of a total. */
GM_HD void gm_moments_begin(gm_moments *m)
{
    memset(m, 0, sizeof *m);
    m->argmin = m->argmax = m->argnan = -1;
}

GM_HD void gm_total_begin(gm_total *t)
{
    memset(t, 0, sizeof *t);
    t->argmin = t->argmax = t->argnan = -1;
}

/* Merges the minimum (is_max 0) or maximum of later elements, with its place, into that of earlier ones. Of equal
 * values the first place stays; -0 is the smaller zero. empty: there are no earlier elements. */
GM_HD void gm_extreme_merge(gm_dtype_kind kind, int is_max, int empty, uint64_t *value, int64_t *arg, uint64_t next,
                            int64_t next_arg)
{
    int better = is_max ? gm_moment_less(kind, *value, next) : gm_moment_less(kind, next, *value);
    if (!empty && !better)
        return;
    if (empty || !gm_moment_equal(kind, *value, next))
        *arg = next_arg;
    *value = next;
}

/* Means and spreads of two sets: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm
 * for computing sample variances", COMPSTAT 1982. Both sets have elements. */
GM_HD void gm_total_merge_spread(gm_total *t, const gm_total *next)
{
    double a = (double)t->count, b = (double)next->count, share = b / (a + b);
    double apart = (next->sum.real.mean.high - t->sum.real.mean.high) +
                   (next->sum.real.mean.low - t->sum.real.mean.low);
    t->sum.real.mean = gm_double2_add(t->sum.real.mean, gm_double2_of(apart * share, 0));
    t->sum.real.spread = gm_double2_add(gm_double2_add(t->sum.real.spread, next->sum.real.spread),
                                        gm_double2_of(apart * apart * (a * share), 0));
}

/* Merges next, the total of later elements, into t. */
GM_HD void gm_total_merge(gm_total *t, const gm_total *next, gm_dtype_kind kind)
{
    if (t->argnan < 0)
        t->argnan = next->argnan;
    t->nan += next->nan;
    if (next->count == 0)
        return;
    gm_extreme_merge(kind, 0, t->count == 0, &t->min, &t->argmin, next->min, next->argmin);
    gm_extreme_merge(kind, 1, t->count == 0, &t->max, &t->argmax, next->max, next->argmax);
    if (kind != GM_FLOAT) {
        gm_words_add(t->sum.whole + GM_WHOLE_SUM, next->sum.whole + GM_WHOLE_SUM, 2);
        gm_words_add(t->sum.whole + GM_WHOLE_SQUARES, next->sum.whole + GM_WHOLE_SQUARES, 3);
    } else if (t->count == 0) {
        t->sum = next->sum;
    } else {
        t->sum.real.sum = gm_double2_add(t->sum.real.sum, next->sum.real.sum);
        t->sum.real.squares = gm_double2_add(t->sum.real.squares, next->sum.real.squares);
        gm_total_merge_spread(t, next);
    }
    t->count += next->count;
}

/* The total of one leaf. */
GM_HD void gm_total_of(gm_total *t, const gm_moments *m, gm_dtype_kind kind)
{
    gm_total_begin(t);
    t->count = m->count;
    t->nan = m->nan;
    t->min = m->min;
    t->max = m->max;
    t->argmin = m->argmin;
    t->argmax = m->argmax;
    t->argnan = m->argnan;
    if (kind != GM_FLOAT) {
        for (int i = 0; i < 5; i++)
            t->sum.whole[i] = m->sum.whole[i];
    } else if (m->count > 0) {
        double n = (double)m->count, offset = m->sum.real[GM_REAL_SHIFTED_SUM] / n;
        double spread = fma(-offset, m->sum.real[GM_REAL_SHIFTED_SUM], m->sum.real[GM_REAL_SHIFTED_SQUARES]);
        t->sum.real.sum.high = m->sum.real[GM_REAL_SUM];
        t->sum.real.squares.high = m->sum.real[GM_REAL_SQUARES];
        t->sum.real.mean = gm_double2_add(gm_double2_of(m->sum.real[GM_REAL_SHIFT], 0),
                                          gm_double2_of(offset, fma(-offset, n, m->sum.real[GM_REAL_SHIFTED_SUM]) / n));
        t->sum.real.spread.high = spread < 0 ? 0 : spread;
    }
}

/* One more leaf. */
GM_HD void gm_total_add(gm_total *t, const gm_moments *m, gm_dtype_kind kind)
{
    gm_total leaf;
    gm_total_of(&leaf, m, kind);
    gm_total_merge(t, &leaf, kind);
}

/* --- From a total to statistics. --- */

typedef enum gm_statistic {
    GM_STAT_COUNT,
    GM_STAT_NAN,
    GM_STAT_MIN,
    GM_STAT_MAX,
    GM_STAT_SUM,
    GM_STAT_SUMSQ,
    GM_STAT_MEAN,
    GM_STAT_VAR, /* of the population, as std */
    GM_STAT_STD,
    GM_STAT_NORM, /* square root of sumsq */
    GM_STAT_ARGMIN,
    GM_STAT_ARGMAX,
    GM_STATISTICS /* their number */
} gm_statistic;

const char *gm_statistic_name(gm_statistic statistic);
/* The statistic called name; GM_STATISTICS when there is none. */
gm_statistic gm_statistic_find(const char *name);

/* The parts of a record that a device computes, besides count and nan, which it always does. Other parts stay 0. */
enum {
    GM_WANT_SUM = 1,
    GM_WANT_SQUARES = 2,
    /* floats: GM_REAL_SHIFT, GM_REAL_SHIFTED_SUM, GM_REAL_SHIFTED_SQUARES. Integers ignore it: their variance follows
     * from sum and sumsq. */
    GM_WANT_SPREAD = 4,
    GM_WANT_RANGE = 8, /* min, max */
    GM_WANT_ARG = 16   /* argmin, argmax, argnan; only with GM_WANT_RANGE */
};

/* The parts that a statistic of this type needs: GM_WANT_... */
unsigned gm_statistic_want(gm_statistic statistic, gm_dtype type);

/* An exact integer, a float64, or none: the minimum and the maximum of an empty set of integers. */
typedef struct gm_value {
    enum { GM_VALUE_NONE, GM_VALUE_INTEGER, GM_VALUE_REAL } kind;
    int negative;      /* integer */
    uint64_t words[3]; /* its magnitude, lowest word first */
    double real;
} gm_value;

/* A statistic of elements of a type. Mean, var, std and norm of integers are the exact value rounded once. Of an empty
 * set mean, var, std and, for floats, min and max are NaN; places are -1. propagate: if any element is NaN, count
 * counts all elements, argmin and argmax are the place of the first NaN, and every other statistic except nan is NaN.
 * Otherwise NaN are left out. */
gm_value gm_statistic_get(const gm_total *total, gm_dtype type, gm_statistic statistic, int propagate);

/* The type of a dataset of this statistic, each value over n elements of a type. Integer sums that may exceed 64 bits
 * are F64. */
gm_dtype gm_statistic_type(gm_statistic statistic, gm_dtype type, int64_t n);

/* The value as an element of such a type, rounded to nearest where that is a float. */
void gm_value_store(const gm_value *value, gm_dtype type, void *element);

/* In decimal digits; for a float64 the fewest digits that read back to the same bits. "none" for none. Returns text. */
enum { GM_VALUE_TEXT = 64 };
char *gm_value_format(const gm_value *value, char *text);

#ifdef __cplusplus
}
#endif
#endif
