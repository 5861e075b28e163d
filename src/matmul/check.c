#include "src/matmul/matmul.h"

#include "base/random.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The check of a product (Freivalds' idea, as in the random-vector checks of dense linear algebra libraries): for a
 * block of C with random vectors x along its columns and u along its rows, entries independent and uniform in +-[1, 2),
 *
 *     C x  against  alpha A (B x) + beta C0 x     finds wrong rows,
 *     u'C  against  alpha (u'A) B + beta u'C0     finds wrong columns.
 *
 * Threshold of row i. The error e_ij of each element is bounded by gamma (|A| |B|)_ij <= gamma |A_i| |B_j| (Euclidean
 * norms), plus the rounding of what is stored, and does not depend on x, whose signs are random: so by Hoeffding's
 * inequality |sum_j e_ij x_j| passes sigmas * (sum_j (e_ij x_j)^2)^(1/2) with a probability below 2 exp(-sigmas^2 / 2),
 * 3e-14 a row. What an operand below the normal numbers of its rounded type, or an element of C below those of its
 * type, may be off by is absolute, and enters in the same way. The check's own float64 rounding is added without such
 * help. docs/accuracy.md derives it all. */
static const double sigmas = 8;

double gm_check_vector(int which, int64_t index)
{
    uint64_t z = gm_random_mix(((uint64_t)index * 2 + (uint64_t)which + 1) * GM_RANDOM_STEP);
    double value = 1 + (double)(z >> 12) * 0x1p-52;
    return z & 1 ? -value : value;
}

/* Half the spacing of the smallest numbers; float64: the spacing, its half is no number; integers: sums are exact. */
static double tiny(gm_dtype type)
{
    return gm_dtype_get_kind(type) != GM_FLOAT ? 0 : fmax(gm_dtype_smallest(type) / 2, 0x1p-1074);
}

/* The largest error of an element of C, as an integer is stored: none where alpha, beta and C0 are integers. */
static double rounding_to_integer(const gm_matmul_case *c)
{
    int is_exact = c->alpha == rint(c->alpha) &&
                   (!c->has_c0 || (c->beta == rint(c->beta) && gm_dtype_get_kind(c->operand[GM_C0].type) != GM_FLOAT));
    return gm_dtype_get_kind(c->result) == GM_FLOAT || is_exact ? 0 : 0.5;
}

/* One direction of the check: rows (against x) or columns (against u). */
typedef struct direction {
    int64_t line0, lines, length;                         /* rows and their length, or columns and theirs */
    const double *vector;                                 /* [length]: x or u */
    const double *made, *expected, *added;                /* [lines]: C x, A (B x), C0 x */
    const double *made_sq, *own_sq, *other_sq, *added_sq; /* squares: of C, A, B, C0; other_sq: [length] */
    double inner_sq;                                      /* |(|B| |x|)|^2 */
    int is_plain;                                         /* some units were multiplied in float32 */
} direction;

typedef struct findings {
    gm_deviation passed, failed;
    int64_t bad, checked, skipped, large, small;
    int64_t tiles, tile[GM_SUSPECTS]; /* that bad lines are in: their number, and the first of them by their lines */
} findings;

static void note_bad(const gm_matmul *p, int64_t line, findings *f)
{
    int64_t tile = line / p->plan.tile * p->plan.tile;
    f->bad++;
    if (f->tiles > 0 && f->tiles <= GM_SUSPECTS && f->tile[f->tiles - 1] == tile)
        return;
    if (f->tiles < GM_SUSPECTS)
        f->tile[f->tiles] = tile;
    f->tiles++;
}

static void keep_worst(gm_deviation *worst, const gm_deviation *other)
{
    if (other->ratio > worst->ratio)
        *worst = *other;
}

/* The root of a sum of squares, which may be wide (kernels/matmul/calls.h); of another one, `lost` may be missing. */
static double norm_of(double sum, double lost)
{
    return sum < 0 ? sqrt(-sum) * 0x1p600 : sqrt(sum + lost);
}

/* (sum_j x_j^2 |B_j|^2)^(1/2), and the largest |B_j|. */
static double spread_of(const direction *d, double *largest)
{
    double sum = 0, plain_unit = 1;
    *largest = 0;
    for (int64_t j = 0; j < d->length; j++)
        if (d->other_sq[j] < 0)
            plain_unit = 0x1p-600;
    for (int64_t j = 0; j < d->length; j++) {
        double square = d->other_sq[j] < 0 ? -d->other_sq[j] : d->other_sq[j] * plain_unit * plain_unit;
        sum += d->vector[j] * d->vector[j] * square;
        *largest = fmax(*largest, norm_of(d->other_sq[j], 0));
    }
    return sqrt(sum) / plain_unit;
}

/* The largest error of sum_j e_ij x_j by operands that are off by `step`, as those below the normal numbers of a type
 * are by half their spacing: |e_ij| <= step sqrt(k) (|A_i| + |B_j|) + k step^2. */
static double steps_error(double step, double depth, double norm, double spread, double vector_norm)
{
    return step == 0 ? 0 : step * (sqrt(depth) * (norm * vector_norm + spread) + depth * step * vector_norm);
}

/* May an operand be infinite on the device, and finite in its file? */
static int overflows(const gm_matmul *p, double norm, double other_norm)
{
    double largest = p->product->largest;
    return largest > 0 && (norm >= largest || other_norm >= largest);
}

/* Squares of numbers below 1e-162 are lost: each sum of squares may be too small by this for each of its terms. */
static const double lost = 0x1p-1074;
static const double square_overflow = 0x1p512; /* squares of such numbers are infinite, but on a processor */
static const double square_safe = 0x1p-500;    /* those of larger ones lose nothing */

/* The quantities that all lines of a direction have in common. */
typedef struct limits {
    double alpha, beta, depth, length; /* magnitudes of the factors; k; elements of a line */
    double gamma, own;                 /* errors of an element against |A_i| |B_j|; of the check itself */
    double stored, rounding;           /* of an element as it is stored: relative; of an integer */
    double least, step;                /* absolute errors below the normal numbers: of C; of the operands */
    double vector_norm, inner;         /* |x|, |(|B| |x|)| */
    double spread, sure_spread;        /* (sum_j x_j^2 |B_j|^2)^(1/2): at most; of what the squares show */
    double other_max;                  /* the largest |B_j| */
    int saturates;                     /* C is of integers: where a float becomes infinite */
} limits;

static limits limits_of(const gm_matmul *p, const direction *d)
{
    const gm_matmul_case *c = p->c;
    limits l = {.alpha = fabs(c->alpha),
                .beta = c->has_c0 ? fabs(c->beta) : 0,
                .depth = (double)c->k,
                .length = (double)d->length,
                .gamma = gm_product_error(p->product, c->k, p->plan.leaf, p->plan.leaves, d->is_plain),
                .stored = gm_dtype_roundoff(c->result),
                .rounding = rounding_to_integer(c),
                .step = p->product->smallest / 2,
                .saturates = gm_dtype_get_kind(c->result) != GM_FLOAT};
    double vector_sq = 0;
    for (int64_t j = 0; j < d->length; j++)
        vector_sq += d->vector[j] * d->vector[j];
    l.own = (l.depth + 2 * l.length + 16) * 0x1p-53;
    l.least = tiny(c->result) + l.alpha * l.depth * tiny(gm_precision_get(c->precision)->accumulator);
    l.vector_norm = sqrt(vector_sq);
    l.sure_spread = spread_of(d, &l.other_max);
    l.spread = hypot(l.sure_spread, sqrt(l.depth * lost) * l.vector_norm);
    l.inner = norm_of(d->inner_sq, l.depth * lost);
    return l;
}

/* A line, compared with the expected one. */
typedef struct measure {
    double norm, product;         /* |A_i|; times the largest |B_j| */
    double possible;              /* the largest element that the line of C may have */
    double scale;                 /* what residual and bound are relative to */
    double residual, bound, sure; /* sure: the scale, of what the squares show */
    int is_zero, is_beyond;       /* is_beyond: integers may saturate */
} measure;

static measure measure_line(const gm_matmul *p, const direction *d, const limits *l, int64_t i)
{
    const gm_matmul_case *c = p->c;
    double added = c->has_c0 ? d->added[i] : 0;
    double added_norm = c->has_c0 ? norm_of(d->added_sq[i], l->length * lost) : 0;
    double norm = norm_of(d->own_sq[i], l->depth * lost), made_norm = norm_of(d->made_sq[i], l->length * lost);
    double product = norm * l->other_max, possible = l->alpha * product + l->beta * added_norm;
    double made_most = possible * sqrt(l->length); /* the largest norm that the line of C may have */
    if (isinf(made_norm) && made_most >= square_overflow / 2)
        made_norm = made_most;
    if (norm > square_safe && l->other_max > square_safe && made_norm > 2 * made_most)
        made_norm = 2 * made_most;
    int has_no_squares = d->own_sq[i] == 0 || l->other_max == 0; /* zeros; in float64 elements below 1e-162, too */
    measure m = {.norm = norm, .product = product, .possible = possible};
    m.scale = l->alpha * norm * l->spread + l->beta * added_norm * l->vector_norm;
    m.is_zero = has_no_squares && d->expected[i] == 0 && d->made[i] == 0;
    /* Where squares are lost, the scale is too large, and so is the bound. */
    m.sure = l->alpha * norm_of(d->own_sq[i], 0) * l->sure_spread +
             (c->has_c0 ? l->beta * norm_of(d->added_sq[i], 0) * l->vector_norm : 0);
    m.residual = fabs(d->made[i] - c->alpha * d->expected[i] - c->beta * added);
    m.bound = l->alpha * norm * (sigmas * l->gamma * l->spread + l->own * l->inner) +
              l->beta * added_norm * l->vector_norm * l->own +
              made_norm * (2 * sigmas * l->stored + l->own * l->vector_norm) + sigmas * l->rounding * l->vector_norm +
              l->least * fmin(2 * l->length, sigmas * l->vector_norm) +
              sigmas * l->alpha * steps_error(has_no_squares ? 0 : l->step, l->depth, norm, l->spread, l->vector_norm);
    m.is_beyond = l->saturates && possible > gm_dtype_largest(c->result) + 1;
    return m;
}

/* Does an input or an overflow account for a line without a number that can be checked? */
static int is_accounted_for(const gm_matmul *p, const direction *d, const limits *l, const measure *m, int64_t i)
{
    const gm_matmul_case *c = p->c;
    return m->is_beyond || !isfinite(m->scale) || !isfinite(d->expected[i]) || (c->has_c0 && !isfinite(d->added[i])) ||
           overflows(p, m->norm, l->other_max) ||
           m->product >= gm_dtype_largest(gm_precision_get(c->precision)->accumulator) / 2 ||
           m->possible >= gm_dtype_largest(c->result) / 2;
}

static void check_lines(const gm_matmul *p, const direction *d, findings *f)
{
    const limits l = limits_of(p, d);
    *f = (findings){.passed.ratio = -1, .failed.ratio = -1};
    for (int64_t i = 0; i < d->lines; i++) {
        measure m = measure_line(p, d, &l, i);
        if (!isfinite(m.residual) || !isfinite(m.bound) || m.is_beyond) {
            if (is_accounted_for(p, d, &l, &m, i)) {
                f->skipped++;
                f->large += isfinite(d->made[i]) && !isfinite(m.bound);
                continue;
            }
            m.residual = INFINITY;
            m.bound = m.scale;
        }
        if (m.residual <= m.bound && m.bound >= m.sure && !m.is_zero) { /* a line of zeros would pass as well */
            f->skipped++;
            f->small++;
            continue;
        }
        f->checked++;
        gm_deviation line = {.residual = m.scale > 0 ? m.residual / m.scale : m.residual,
                             .threshold = m.scale > 0 ? m.bound / m.scale : m.bound,
                             .ratio = m.bound > 0      ? m.residual / m.bound
                                      : m.residual > 0 ? INFINITY
                                                       : 0};
        keep_worst(line.ratio > 1 ? &f->failed : &f->passed, &line);
        if (line.ratio > 1)
            note_bad(p, d->line0 + i, f);
    }
}

const gm_verdict gm_verdict_none = {.passed.ratio = -1, .failed.ratio = -1};

static void add_suspect(gm_verdict *verdict, gm_tile tile)
{
    if (verdict->suspects < GM_SUSPECTS)
        verdict->suspect[verdict->suspects] = tile;
    verdict->suspects++;
}

void gm_verdict_add(gm_verdict *v, const gm_verdict *other)
{
    keep_worst(&v->passed, &other->passed);
    keep_worst(&v->failed, &other->failed);
    v->bad_rows += other->bad_rows;
    v->bad_cols += other->bad_cols;
    for (int64_t i = 0; i < gm_min(other->suspects, GM_SUSPECTS); i++)
        add_suspect(v, other->suspect[i]);
    v->suspects += gm_max(other->suspects - GM_SUSPECTS, 0);
    v->repaired += other->repaired;
    v->checked += other->checked;
    v->skipped += other->skipped;
    v->large += other->large;
    v->small += other->small;
    v->nonfinite.nan += other->nonfinite.nan;
    v->nonfinite.inf += other->nonfinite.inf;
    v->nonfinite.overflow += other->nonfinite.overflow;
    for (int s = 0; s < GM_SCHEMES; s++)
        v->schemes[s] += other->schemes[s];
    for (int i = GM_A; i <= GM_B; i++)
        v->underflow[i] |= other->underflow[i];
    v->is_wrong |= other->is_wrong;
}

/* The tiles in which bad rows and bad columns meet. An error that only one direction finds is somewhere along its
 * lines. */
static void add_suspects(const gm_matmul *p, const direction *down, const findings *rows, const direction *across,
                         const findings *cols, gm_verdict *verdict)
{
    int64_t tile = p->plan.tile;
    int64_t rows_of = rows->bad ? rows->tiles : gm_ceil_div(down->lines, tile);
    int64_t cols_of = cols->bad ? cols->tiles : gm_ceil_div(across->lines, tile);
    for (int64_t i = 0; i < rows_of && rows->bad + cols->bad > 0; i++)
        for (int64_t j = 0; j < cols_of; j++) {
            int is_listed = i < GM_SUSPECTS && j < GM_SUSPECTS;
            add_suspect(verdict,
                        (gm_tile){rows->bad && is_listed ? rows->tile[i] : down->line0 + i * tile,
                                  cols->bad && is_listed ? cols->tile[j] : across->line0 + j * tile, p->frame});
        }
}

void gm_check_block(const gm_matmul *p, int64_t row0, int64_t rows, int64_t col0, int64_t cols, const double *sums,
                    gm_verdict *verdict)
{
    const double *sum[GM_SUMS];
    for (int s = 0; s < GM_SUMS; s++)
        sum[s] = sums + gm_sum_offset(s, rows, cols);
    *verdict = gm_verdict_none;
    verdict->nonfinite = *(const gm_nonfinite *)(const void *)sum[GM_SUM_NONFINITE];
    memcpy(verdict->schemes, sum[GM_SUM_SCHEMES], sizeof verdict->schemes);
    if (!p->c->verify)
        return;

    direction by_row = {.line0 = row0,
                        .lines = rows,
                        .length = cols,
                        .vector = p->host_x + (col0 - p->part.col0),
                        .made = sum[GM_SUM_CX],
                        .expected = sum[GM_SUM_AY],
                        .added = sum[GM_SUM_DX],
                        .made_sq = sum[GM_SUM_CC_ROW],
                        .own_sq = sum[GM_SUM_AA],
                        .other_sq = sum[GM_SUM_BB],
                        .added_sq = sum[GM_SUM_DD_ROW],
                        .inner_sq = *sum[GM_SUM_YY],
                        .is_plain = verdict->schemes[GM_SCHEME_F32] > 0};
    direction by_column = {.line0 = col0,
                           .lines = cols,
                           .length = rows,
                           .vector = p->host_u + (row0 - p->part.row0),
                           .made = sum[GM_SUM_UC],
                           .expected = sum[GM_SUM_VB],
                           .added = sum[GM_SUM_UD],
                           .made_sq = sum[GM_SUM_CC_COL],
                           .own_sq = sum[GM_SUM_BB],
                           .other_sq = sum[GM_SUM_AA],
                           .added_sq = sum[GM_SUM_DD_COL],
                           .inner_sq = *sum[GM_SUM_VV],
                           .is_plain = verdict->schemes[GM_SCHEME_F32] > 0};
    findings f[2];
    check_lines(p, &by_row, &f[0]);
    check_lines(p, &by_column, &f[1]);
    for (int i = 0; i < 2; i++) {
        keep_worst(&verdict->passed, &f[i].passed);
        keep_worst(&verdict->failed, &f[i].failed);
        verdict->checked += f[i].checked;
        verdict->skipped += f[i].skipped;
        verdict->large += f[i].large;
        verdict->small += f[i].small;
    }
    verdict->bad_rows = f[0].bad;
    verdict->bad_cols = f[1].bad;
    add_suspects(p, &by_row, &f[0], &by_column, &f[1], verdict);
}

char *gm_tile_format(const gm_matmul_plan *plan, const gm_tile *tile, char *text)
{
    char frame[24] = "";
    if (plan->problem.is_batch)
        snprintf(frame, sizeof frame, "%lld, ", (long long)tile->frame);
    snprintf(text, 96, "[%s%lld:%lld, %lld:%lld]", frame, (long long)tile->row,
             (long long)gm_min(tile->row + plan->tile, plan->problem.m), (long long)tile->col,
             (long long)gm_min(tile->col + plan->tile, plan->problem.n));
    return text;
}

int gm_check_fail(const gm_matmul *p, const gm_verdict *block)
{
    char where[96], count[64] = "tile";
    if (block->suspects > 1)
        snprintf(count, sizeof count, "%lld tiles, the first is", (long long)block->suspects);
    return gm_fail(GM_ECHECK,
                   "the product failed its check%s in %s %s: residual %.3g, limit %.3g; %lld rows and %lld columns are "
                   "wrong",
                   p->is_repair ? " twice" : "", count, gm_tile_format(&p->plan, &block->suspect[0], where),
                   block->failed.residual, block->failed.threshold, (long long)block->bad_rows,
                   (long long)block->bad_cols);
}
