/* Leaves of segments and columns, bit for bit against their definition in base/statistics.h, element by element: every
 * type, order of bytes, length, start, cut and want; with NaN, infinities, both zeros and denormals. */
#include <float.h>
#include <math.h>

#include "kernels/reduce/calls.h"
#include "tests/kernels/each.h"

enum { RANDOM, SOME_NAN, ALL_NAN, NAN_FIRST, ZEROS, INFINITE, DENORMAL, LARGEST, SMALLEST, PATTERNS };
static const char *const pattern_names[PATTERNS] = {"random",     "some NaN",  "all NaN", "NaN first", "zeros",
                                                    "infinities", "denormals", "largest", "smallest"};
enum { ALL = GM_WANT_SUM | GM_WANT_SQUARES | GM_WANT_SPREAD | GM_WANT_RANGE | GM_WANT_ARG };

static int is_float(gm_dtype type)
{
    return gm_dtype_get_kind(type) == GM_FLOAT;
}

/* An element with these bits (of its type, in the low ones), as a file has it. */
static void put_bits(gm_dtype type, int swap, uint64_t bits, unsigned char *out)
{
    size_t size = gm_dtype_size(type);
    for (size_t i = 0; i < size; i++)
        out[swap ? size - 1 - i : i] = (unsigned char)(bits >> 8 * i);
}

static void make_element(uint64_t *state, gm_dtype type, int swap, int pattern, int64_t i, unsigned char *out)
{
    int width = 8 * (int)gm_dtype_size(type);
    uint64_t all = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1, sign = UINT64_C(1) << (width - 1),
             bits = random_bits(state);
    uint64_t infinity = is_float(type) ? infinity_bits(type) : 0, nan = infinity | infinity >> 1;
    if (!is_float(type)) {
        uint64_t most = gm_dtype_get_kind(type) == GM_SIGNED ? all >> 1 : all,
                 least = gm_dtype_get_kind(type) == GM_SIGNED ? sign : 0;
        put_bits(type, swap,
                 pattern == LARGEST    ? most
                 : pattern == SMALLEST ? least
                 : pattern == ZEROS    ? 0
                                       : bits & all,
                 out);
        return;
    }
    random_element(state, type, swap, out);
    if (pattern == ALL_NAN || (pattern == SOME_NAN && bits % 7 == 0) || (pattern == NAN_FIRST && i < 200))
        put_bits(type, swap, nan | (bits & sign), out);
    else if (pattern == ZEROS)
        put_bits(type, swap, bits & sign, out);
    else if (pattern == INFINITE && bits % 5 == 0)
        put_bits(type, swap, infinity | (bits >> 8 & sign), out);
    else if (pattern == DENORMAL)
        put_bits(type, swap, (bits & (infinity ^ (sign - 1))) | (bits & sign), out);
    else if (pattern == LARGEST || pattern == SMALLEST)
        put_bits(type, swap, (infinity - 1) | (pattern == SMALLEST ? sign : 0), out);
}

/* An element as records have it, by another way than the kernels': widened integer, or bits of float64. */
static uint64_t value_of(gm_dtype type, int swap, const unsigned char *x)
{
    size_t size = gm_dtype_size(type);
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= (uint64_t)x[swap ? size - 1 - i : i] << 8 * i;
    if (gm_dtype_get_kind(type) == GM_SIGNED && size < 8 && bits >> (8 * size - 1))
        bits |= ~((UINT64_C(1) << 8 * size) - 1);
    if (!is_float(type) || size == 8)
        return bits;
    double value = bits_value(type, bits);
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double real_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Does element a come before b as a minimum: smaller, or -0 beside 0? */
static int below(gm_dtype type, uint64_t a, uint64_t b)
{
    double x = real_of(a), y = real_of(b);
    if (is_float(type))
        return x < y || (x == 0 && y == 0 && signbit(x) && !signbit(y));
    return gm_dtype_get_kind(type) == GM_SIGNED ? (int64_t)a < (int64_t)b : a < b;
}

static int equal(gm_dtype type, uint64_t a, uint64_t b)
{
    return is_float(type) ? real_of(a) == real_of(b) : a == b;
}

/* Statistics without an order: counts, extremes, places. index: of element 0 in its segment. */
static void expect_range(gm_dtype type, int swap, unsigned want, const unsigned char *x, size_t stride, int64_t n,
                         int64_t index, gm_moments *m)
{
    gm_moments_begin(m);
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = value_of(type, swap, x + (size_t)i * stride);
        if (is_float(type) && isnan(real_of(v))) {
            m->argnan = m->argnan < 0 ? index + i : m->argnan;
            m->nan++;
            continue;
        }
        if (m->count == 0 || below(type, v, m->min))
            m->min = v;
        if (m->count == 0 || below(type, m->max, v))
            m->max = v;
        m->count++;
    }
    for (int64_t i = n; i-- > 0;) {
        uint64_t v = value_of(type, swap, x + (size_t)i * stride);
        if (m->count > 0 && equal(type, v, m->min))
            m->argmin = index + i;
        if (m->count > 0 && equal(type, v, m->max))
            m->argmax = index + i;
    }
    if (!(want & GM_WANT_RANGE))
        m->min = m->max = 0;
    if (!(want & GM_WANT_ARG))
        m->argmin = m->argmax = m->argnan = -1;
}

static void expect_integers(gm_dtype type, int swap, const unsigned char *x, size_t stride, int64_t n, uint64_t *whole)
{
    unsigned __int128 sum = 0, squares = 0;
    uint64_t top = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = value_of(type, swap, x + (size_t)i * stride);
        int negative = gm_dtype_get_kind(type) == GM_SIGNED && v >> 63;
        unsigned __int128 magnitude = negative ? -v : v, square = magnitude * magnitude;
        sum += negative ? -magnitude : magnitude;
        squares += square;
        top += squares < square;
    }
    whole[0] = (uint64_t)sum;
    whole[1] = (uint64_t)(sum >> 64);
    whole[2] = (uint64_t)squares;
    whole[3] = (uint64_t)(squares >> 64);
    whole[4] = top;
}

/* Sums of floats over so many lanes. any: the shift is the first finite element; else the first that is no NaN, if it
 * is finite. */
static void expect_floats(gm_dtype type, int swap, const unsigned char *x, size_t stride, int64_t n, int lanes, int any,
                          double *real)
{
    double lane[4][GM_LANES] = {{0}}, shift = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = real_of(value_of(type, swap, x + (size_t)i * stride));
        if (isnan(v) || (isinf(v) && any))
            continue;
        shift = isinf(v) ? 0 : v;
        break;
    }
    for (int64_t i = 0; i < n; i++) {
        double v = real_of(value_of(type, swap, x + (size_t)i * stride)), shifted = v - shift;
        int j = (int)(i % lanes);
        if (isnan(v))
            continue;
        lane[0][j] += v;
        lane[1][j] = fma(v, v, lane[1][j]);
        lane[2][j] += shifted;
        lane[3][j] = fma(shifted, shifted, lane[3][j]);
    }
    for (int k = 0; k < 4; k++)
        for (int w = lanes / 2; w > 0; w /= 2)
            for (int j = 0; j < w; j++)
                lane[k][j] += lane[k][j + w];
    real[GM_REAL_SUM] = lane[0][0];
    real[GM_REAL_SQUARES] = lane[1][0];
    real[GM_REAL_SHIFT] = shift;
    real[GM_REAL_SHIFTED_SUM] = lane[2][0];
    real[GM_REAL_SHIFTED_SQUARES] = lane[3][0];
}

static void expect_leaf(gm_dtype type, int swap, unsigned want, const unsigned char *x, size_t stride, int64_t n,
                        int64_t index, int lanes, gm_moments *m)
{
    expect_range(type, swap, want, x, stride, n, index, m);
    if (is_float(type)) {
        expect_floats(type, swap, x, stride, n, lanes, lanes > 1, m->sum.real);
        if (!(want & GM_WANT_SUM))
            m->sum.real[GM_REAL_SUM] = 0;
        if (!(want & GM_WANT_SQUARES))
            m->sum.real[GM_REAL_SQUARES] = 0;
        if (!(want & GM_WANT_SPREAD))
            m->sum.real[GM_REAL_SHIFT] = m->sum.real[GM_REAL_SHIFTED_SUM] = m->sum.real[GM_REAL_SHIFTED_SQUARES] = 0;
    } else {
        expect_integers(type, swap, x, stride, n, m->sum.whole);
        if (!(want & GM_WANT_SUM))
            memset(m->sum.whole, 0, 2 * sizeof m->sum.whole[0]);
        if (!(want & GM_WANT_SQUARES))
            memset(m->sum.whole + 2, 0, 3 * sizeof m->sum.whole[0]);
    }
}

/* All NaN are the same one. */
static void settle(double *real, int count)
{
    for (int i = 0; i < count; i++)
        if (isnan(real[i]))
            real[i] = NAN;
}

static int same_record(gm_dtype type, const gm_moments *got, const gm_moments *expected)
{
    gm_moments a = *got, b = *expected;
    if (is_float(type)) {
        settle(a.sum.real, 5);
        settle(b.sum.real, 5);
        if (a.count == 0) /* the rest is nobody's */
            a.min = a.max = b.min = b.max = 0;
        if (isnan(a.sum.real[GM_REAL_SHIFTED_SUM]) ||
            isinf(a.sum.real[GM_REAL_SHIFTED_SUM])) /* makes all that follows NaN */
            a.sum.real[GM_REAL_SHIFT] = b.sum.real[GM_REAL_SHIFT] = 0;
    }
    return memcmp(&a, &b, sizeof a) == 0;
}

/* One call over leaves [first, first + leaves) of segments of n elements, which begin `start` elements behind an
 * aligned address. */
static int run_rows(bench *b, gm_dtype type, int swap, unsigned want, int pattern, int64_t n, int64_t first,
                    int64_t leaves, int start)
{
    if (!is_due())
        return 1;
    int64_t length = gm_leaf_length(type), per = (n + length - 1) / length, size = (int64_t)gm_dtype_size(type);
    int64_t from = first / per * n + first % per * length, end = first + leaves,
            to = end / per * n + end % per * length;
    unsigned char *x = host_memory((size_t)((to - from + start) * size));
    gm_moments *out = host_memory((size_t)leaves * sizeof *out), expected;
    uint64_t state = (uint64_t)(n * 31 + type);
    int good = 1;
    for (int64_t i = 0; i < to - from + start; i++)
        make_element(&state, type, swap, pattern, (from + i - start) % n % length, x + i * size);
    char *src = lend(b, x, (size_t)((to - from + start) * size));
    void *records = lend(b, NULL, (size_t)leaves * sizeof *out);
    gm_reduce_rows_call call = {.src = src + start * size,
                                .type = type,
                                .swap = swap,
                                .first = first,
                                .leaves = leaves,
                                .segment = n,
                                .want = want,
                                .out = records};
    must(b->ops->reduce_rows(b->queue, &call));
    reclaim(b, records, out, (size_t)leaves * sizeof *out);
    reclaim(b, src, NULL, 0);
    for (int64_t i = 0; i < leaves && good; i++) {
        int64_t leaf = first + i, index = leaf % per * length, at = leaf / per * n + index - from + start;
        expect_leaf(type, swap, want, x + at * size, (size_t)size, n - index < length ? n - index : length, index,
                    GM_LANES, &expected);
        good = same_record(type, &out[i], &expected);
    }
    if (!good)
        tap_diag("%s%s %s, want %u: segments of %lld, leaves %lld + %lld, start %d", gm_dtype_name(type),
                 swap ? " swapped" : "", pattern_names[pattern], want, (long long)n, (long long)first,
                 (long long)leaves, start);
    free(out);
    free(x);
    return good;
}

static void test_rows(bench *b, gm_dtype type)
{
    int64_t leaf = gm_leaf_length(type);
    int64_t lengths[] = {1, 2, 3, 31, 127, 128, 129, 1000, 4097, leaf - 1, leaf, leaf + 1, 2 * leaf + 77};
    int good = 1;
    for (int swap = 0; swap < 2; swap++) {
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            int64_t n = lengths[k], per = (n + leaf - 1) / leaf, segments = n < 200 ? 300 : 2;
            good &= run_rows(b, type, swap, k % 2 ? ALL : ALL & ~GM_WANT_ARG, RANDOM, n, 0, segments * per,
                             (int)(k % 5));
            good &= run_rows(b, type, swap, ALL, SOME_NAN, n, segments * per / 3,
                             segments * per / 2 + 1 - segments * per / 3, (int)k % 3);
        }
    }
    tap_ok(good, "%s rows of %s: lengths, starts, both orders of bytes", b->ops->kind, gm_dtype_name(type));
    good = 1;
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        good &= run_rows(b, type, pattern % 2, ALL, pattern, 3000, 0, 2, pattern % 4);
        good &= run_rows(b, type, pattern % 2, ALL, pattern, leaf + 100, 0, 2, pattern % 4);
    }
    tap_ok(good, "%s rows of %s: NaN, infinities, zeros, denormals, limits", b->ops->kind, gm_dtype_name(type));
    good = 1;
    for (unsigned want = 0; want < 32; want++)
        if (!(want & GM_WANT_ARG) || want & GM_WANT_RANGE)
            good &= run_rows(b, type, (int)want % 2, want, want % 3 ? SOME_NAN : RANDOM, 5000, 0, 1, (int)want % 4);
    tap_ok(good, "%s rows of %s: every want", b->ops->kind, gm_dtype_name(type));
}

static int same_total(gm_dtype type, const gm_total *got, const gm_total *expected)
{
    gm_total a = *got, b = *expected;
    if (is_float(type)) {
        settle(&a.sum.real.sum.high, 8);
        settle(&b.sum.real.sum.high, 8);
        if (a.count == 0)
            a.min = a.max = b.min = b.max = 0;
    } else {
        memset((char *)&a.sum + sizeof a.sum.whole, 0, sizeof a.sum - sizeof a.sum.whole);
        memset((char *)&b.sum + sizeof b.sum.whole, 0, sizeof b.sum - sizeof b.sum.whole);
    }
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Columns in calls of `step` rows, with room for so many partial leaves. */
static int run_columns(bench *b, gm_dtype type, int swap, unsigned want, int pattern, int64_t rows, int64_t cols,
                       int64_t step, int64_t scratch)
{
    if (!is_due())
        return 1;
    int64_t size = (int64_t)gm_dtype_size(type), pitch = (cols + pattern % 3) * size;
    unsigned char *x = host_memory((size_t)(rows * pitch));
    gm_total *out = host_memory((size_t)cols * sizeof *out), expected;
    uint64_t state = (uint64_t)(rows * 37 + cols + type);
    int good = 1;
    for (int64_t i = 0; i < rows * pitch / size; i++)
        make_element(&state, type, swap, pattern, i / (pitch / size), x + i * size);
    char *src = lend(b, x, (size_t)(rows * pitch));
    void *open = lend(b, NULL, (size_t)cols * sizeof(gm_moments)), *total = lend(b, NULL, (size_t)cols * sizeof *out);
    void *room = scratch > 0 ? lend(b, NULL, (size_t)scratch * sizeof(gm_moments)) : NULL;
    for (int64_t row = 0; row < rows; row += step) {
        int64_t n = rows - row < step ? rows - row : step;
        gm_reduce_columns_call call = {.rows = n,
                                       .cols = cols,
                                       .row0 = row,
                                       .src = src + row * pitch,
                                       .pitch = (size_t)pitch,
                                       .type = type,
                                       .swap = swap,
                                       .want = want,
                                       .begin = row == 0,
                                       .end = row + n == rows,
                                       .open = open,
                                       .total = total,
                                       .scratch = room,
                                       .scratch_count = scratch};
        must(b->ops->reduce_columns(b->queue, &call));
    }
    reclaim(b, total, out, (size_t)cols * sizeof *out);
    reclaim(b, open, NULL, 0);
    reclaim(b, src, NULL, 0);
    if (room != NULL)
        reclaim(b, room, NULL, 0);
    for (int64_t k = 0; k < cols && good; k++) {
        gm_total_begin(&expected);
        for (int64_t row = 0; row < rows; row += GM_LEAF_COLUMN) {
            gm_moments m;
            expect_leaf(type, swap, want, x + row * pitch + k * size, (size_t)pitch,
                        rows - row < GM_LEAF_COLUMN ? rows - row : GM_LEAF_COLUMN, row, 1, &m);
            gm_total_add(&expected, &m, gm_dtype_get_kind(type));
        }
        good = same_total(type, &out[k], &expected);
    }
    if (!good)
        tap_diag("%s%s %s, want %u: %lld rows of %lld in steps of %lld, scratch %lld", gm_dtype_name(type),
                 swap ? " swapped" : "", pattern_names[pattern], want, (long long)rows, (long long)cols,
                 (long long)step, (long long)scratch);
    free(out);
    free(x);
    return good;
}

static void test_columns(bench *b, gm_dtype type)
{
    static const struct {
        int64_t rows, cols, step, scratch;
    } cases[] = {{1, 1, 1, 0},        {1, 700, 1, 0},     {63, 5, 63, 0},      {64, 129, 64, 0},
                 {65, 128, 7, 0},     {200, 257, 50, 0},  {200, 31, 1, 40},    {1000, 3, 1000, 0},
                 {1000, 3, 1000, 48}, {5000, 3, 1777, 7}, {9001, 1, 9001, 200}};
    int good = 1;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (int swap = 0; swap < 2; swap++) {
            good &= run_columns(b, type, swap, ALL, RANDOM, cases[k].rows, cases[k].cols, cases[k].step,
                                cases[k].scratch);
            good &= run_columns(b, type, swap, ALL & ~GM_WANT_ARG, SOME_NAN, cases[k].rows, cases[k].cols,
                                cases[k].step, cases[k].scratch);
        }
    tap_ok(good, "%s columns of %s: shapes, cuts, both orders of bytes", b->ops->kind, gm_dtype_name(type));
    good = 1;
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        good &= run_columns(b, type, pattern % 2, ALL, pattern, 300, 37, 90, 0) &
                run_columns(b, type, pattern % 2, ALL, pattern, 300, 2, 300, 9);
    tap_ok(good, "%s columns of %s: NaN, infinities, zeros, denormals, limits", b->ops->kind, gm_dtype_name(type));
    good = 1;
    for (unsigned want = 0; want < 32; want++)
        if (!(want & GM_WANT_ARG) || want & GM_WANT_RANGE)
            good &= run_columns(b, type, (int)want % 2, want, want % 3 ? SOME_NAN : RANDOM, 100, 40, 33, 0);
    tap_ok(good, "%s columns of %s: every want", b->ops->kind, gm_dtype_name(type));
}

static void test_reduce(bench *b)
{
    if (b->ops->reduce_rows == NULL || b->ops->reduce_columns == NULL) {
        tap_skip("not supported by this kind of device", "%s reductions", b->ops->kind);
        return;
    }
    for (int type = 0; type < GM_DTYPES; type++) {
        test_rows(b, (gm_dtype)type);
        test_columns(b, (gm_dtype)type);
    }
}

int main(void)
{
    each_device(test_reduce);
    return tap_done();
}
