/* patch.c - the axes that two selections share, and the walk over a patch. */
#include "io/virtual/patch.h"

#include <string.h>

#include "base/size.h"
#include "base/status.h"

/* --- Selections --- */

int64_t gm_slab_elements(const gm_slab *slab)
{
    int64_t elements = 1;
    for (int d = 0; d < slab->rank; d++)
        if (slab->count[d] == 0 || slab->block[d] == 0)
            return 0;
    for (int d = 0; d < slab->rank; d++)
        elements = gm_mul_sat(elements, gm_mul_sat(slab->count[d], slab->block[d]));
    return elements;
}

int64_t gm_slab_last(const gm_slab *slab, int d)
{
    int64_t blocks = slab->count[d] > 1 ? gm_mul_sat(slab->count[d] - 1, slab->stride[d]) : 0;
    return gm_add_sat(gm_add_sat(slab->start[d], blocks), slab->block[d] - 1);
}

/* One direction of one selection. */
typedef struct side {
    int64_t count, step;
    int dim;
} side;

static int add_side(side *sides, int n, int64_t count, int64_t step, int d)
{
    if (count > 1)
        sides[n++] = (side){count, step, d};
    return n;
}

static int find_sides(const gm_slab *slab, side *sides)
{
    int n = 0;
    for (int d = 0; d < slab->rank; d++) {
        int64_t count = slab->count[d], block = slab->block[d];
        if (count > 1 && slab->stride[d] == block) {
            n = add_side(sides, n, count * block, 1, d);
        } else {
            n = add_side(sides, n, count, slab->stride[d], d);
            n = add_side(sides, n, block, 1, d);
        }
    }
    return n;
}

/* From the innermost direction on, the shorter one is an axis, and divides the longer one. */
int gm_slab_axes(const gm_slab *to, const gm_slab *from, gm_axis *axes)
{
    side a[2 * GM_RANK_MAX], b[2 * GM_RANK_MAX];
    int i = find_sides(to, a) - 1, j = find_sides(from, b) - 1, n = 0;
    while (i >= 0 && j >= 0) {
        int64_t count = gm_min(a[i].count, b[j].count);
        if (a[i].count % count || b[j].count % count)
            return -1;
        axes[n++] = (gm_axis){count, a[i].step, b[j].step, a[i].dim, b[j].dim};
        a[i] = (side){a[i].count / count, a[i].step * count, a[i].dim};
        b[j] = (side){b[j].count / count, b[j].step * count, b[j].dim};
        i -= a[i].count == 1;
        j -= b[j].count == 1;
    }
    for (int k = 0; k < n / 2; k++) {
        gm_axis other = axes[k];
        axes[k] = axes[n - 1 - k];
        axes[n - 1 - k] = other;
    }
    return n;
}

/* --- Numbers that are negative as well --- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* a * b modulo m, without overflow. 0 <= a < m. */
static int64_t multiply_modulo(int64_t a, int64_t b, int64_t m)
{
    uint64_t sum = 0, power = (uint64_t)a, modulus = (uint64_t)m;
    for (uint64_t left = (uint64_t)b; left; left /= 2) {
        if (left % 2)
            sum = (sum + power) % modulus;
        power = 2 * power % modulus;
    }
    return (int64_t)sum;
}

/* The greatest common divisor of a and m; *inverse: x with x * a / gcd = 1 modulo m / gcd. */
static int64_t find_gcd(int64_t a, int64_t m, int64_t *inverse)
{
    int64_t r0 = m, r1 = a, x0 = 0, x1 = 1;
    while (r1) {
        int64_t q = r0 / r1, r2 = r0 - q * r1, x2 = x0 - q * x1;
        r0 = r1;
        r1 = r2;
        x0 = x1;
        x1 = x2;
    }
    int64_t modulus = m / r0;
    *inverse = modulus == 1 ? 0 : (x0 % modulus + modulus) % modulus;
    return r0;
}

/* --- The walk --- */

typedef struct walk {
    const gm_patch *patch;
    const gm_region *region;
    gm_spans_visit *visit;
    void *context;
    gm_spans out;
} walk;

/* How far the axes inside axis a reach in its dimension; 0: it is the last one there. */
static int64_t reach_inside(const gm_patch *p, int a)
{
    int64_t reach = 0;
    for (int i = a + 1; i < p->axes && p->axis[i].to_dim == p->axis[a].to_dim; i++)
        reach += (p->axis[i].count - 1) * p->axis[i].to_step;
    return reach;
}

static int step(walk *w, int a, int64_t offset);

/* Elements first, first + every, ... (count of them) of axis a, each with what lies inside it; offset: in the
 * dimension, of the first one. */
static int step_along(walk *w, int a, int64_t first, int64_t every, int64_t count, int64_t memory, int64_t offset)
{
    const gm_axis *axis = &w->patch->axis[a];
    int spans = w->out.spans;
    w->out.start[axis->from_dim] += first * axis->from_step;
    if (count > 1)
        w->out.span[w->out.spans++] = (gm_span){count, every * axis->from_step, memory, axis->from_dim};
    int status = step(w, a + 1, offset);
    w->out.spans = spans;
    w->out.start[axis->from_dim] -= first * axis->from_step;
    return status;
}

/* The last axis of a dimension: k * to_step = lowest + j * region step, for j and k inside. */
static int step_last(walk *w, int a, int64_t lowest)
{
    const gm_axis *axis = &w->patch->axis[a];
    const gm_region *r = w->region;
    int d = axis->to_dim;
    int64_t inverse, to_step = axis->to_step, region_step = r->step[d];
    int64_t gcd = find_gcd(to_step % region_step ? to_step % region_step : region_step, region_step, &inverse);
    if (lowest % gcd)
        return GM_OK;
    int64_t every = region_step / gcd, highest = lowest + (r->count[d] - 1) * region_step;
    int64_t target = (lowest / gcd % every + every) % every;
    int64_t residue = multiply_modulo(target, inverse, every);
    int64_t k = gm_max(0, ceil_div(lowest, to_step)), last = gm_min(axis->count - 1, floor_div(highest, to_step));
    k += (residue - k % every + every) % every;
    if (k > last)
        return GM_OK;
    int64_t memory = (k * to_step - lowest) / region_step * r->memory[d];
    w->out.memory += memory;
    int status = step_along(w, a, k, every, (last - k) / every + 1, every * to_step / region_step * r->memory[d], 0);
    w->out.memory -= memory;
    return status;
}

/* An axis with others inside it in its dimension: together where they lie in the region as a whole, else one by one. */
static int step_outer(walk *w, int a, int64_t offset, int64_t lowest, int64_t reach)
{
    const gm_axis *axis = &w->patch->axis[a];
    const gm_region *r = w->region;
    int d = axis->to_dim, status = GM_OK;
    int64_t to_step = axis->to_step, highest = lowest + (r->count[d] - 1) * r->step[d];
    int64_t first = gm_max(0, ceil_div(lowest - reach, to_step)),
            last = gm_min(axis->count - 1, floor_div(highest, to_step));
    int64_t whole = gm_max(first, ceil_div(lowest, to_step)),
            whole_last = gm_min(last, floor_div(highest - reach, to_step));
    int groups = r->step[d] == 1 && w->out.spans < GM_SPANS_MAX - GM_RANK_MAX;
    for (int64_t k = first, count; k <= last && !status; k += count) {
        count = groups && k == whole && whole <= whole_last ? whole_last - whole + 1 : 1;
        status = step_along(w, a, k, 1, count, to_step * r->memory[d], offset + k * to_step);
    }
    return status;
}

/* The axes from a on; offset: of the axes before, in the dimension of a. */
static int step(walk *w, int a, int64_t offset)
{
    const gm_patch *p = w->patch;
    if (a == p->axes)
        return w->visit(w->context, &w->out);
    int d = p->axis[a].to_dim;
    if (a > 0 && p->axis[a - 1].to_dim != d)
        offset = 0;
    int64_t lowest = w->region->start[d] - p->to[d] - offset, reach = reach_inside(p, a);
    return reach ? step_outer(w, a, offset, lowest, reach) : step_last(w, a, lowest);
}

/* Is the region beside the patch? Otherwise also places the dimensions in which the patch has one index only. */
static int is_beside(walk *w)
{
    const gm_patch *p = w->patch;
    const gm_region *r = w->region;
    for (int d = 0; d < p->to_rank; d++) {
        int64_t first = r->start[d], last = first + (r->count[d] - 1) * r->step[d];
        if (r->count[d] == 0 || first > p->last[d] || last < p->to[d])
            return 1;
        if (p->last[d] == p->to[d]) {
            if ((p->to[d] - first) % r->step[d])
                return 1;
            w->out.memory += (p->to[d] - first) / r->step[d] * r->memory[d];
        }
    }
    return 0;
}

int gm_patch_walk(const gm_patch *patch, const gm_region *region, gm_spans_visit *visit, void *context)
{
    walk w = {.patch = patch, .region = region, .visit = visit, .context = context};
    if (is_beside(&w))
        return GM_OK;
    memcpy(w.out.start, patch->from, (size_t)patch->from_rank * sizeof *patch->from);
    return step(&w, 0, 0);
}

/* --- Spans as regions --- */

/* The spans from s on, of which those that come first in a dimension further in are already in the region. */
typedef struct splitting {
    const gm_spans *spans;
    gm_region_visit *visit;
    void *context;
    gm_region region;
    unsigned char loops[GM_SPANS_MAX]; /* this span is walked over, as one further in has its dimension */
} splitting;

static int split(splitting *s, int at, int64_t memory)
{
    int status = GM_OK;
    while (at < s->spans->spans && !s->loops[at])
        at++;
    if (at == s->spans->spans)
        return s->visit(s->context, &s->region, memory);
    const gm_span *span = &s->spans->span[at];
    int64_t start = s->region.start[span->dim];
    for (int64_t i = 0; i < span->count && !status; i++) {
        s->region.start[span->dim] = start + i * span->step;
        status = split(s, at + 1, memory + i * span->memory);
    }
    s->region.start[span->dim] = start;
    return status;
}

int gm_spans_regions(const gm_spans *spans, int rank, gm_region_visit *visit, void *context)
{
    splitting s = {.spans = spans, .visit = visit, .context = context};
    for (int d = 0; d < rank; d++) {
        s.region.start[d] = spans->start[d];
        s.region.step[d] = s.region.count[d] = 1;
    }
    for (int i = spans->spans - 1; i >= 0; i--) {
        const gm_span *span = &spans->span[i];
        s.loops[i] = s.region.count[span->dim] > 1;
        if (!s.loops[i]) {
            s.region.step[span->dim] = span->step;
            s.region.count[span->dim] = span->count;
            s.region.memory[span->dim] = span->memory;
        }
    }
    return split(&s, 0, spans->memory);
}

/* --- Two patches --- */

/* The first and the last axis of a patch in a dimension. Returns their number. */
static int find_axes(const gm_patch *p, int d, const gm_axis **outer, const gm_axis **inner)
{
    int n = 0;
    for (int a = 0; a < p->axes; a++) {
        if (p->axis[a].to_dim != d)
            continue;
        if (n++ == 0)
            *outer = &p->axis[a];
        *inner = &p->axis[a];
    }
    return n;
}

/* The period of a patch in a dimension, and the elements at its start that lie in it at most. */
static int64_t find_period(const gm_patch *p, int d, int64_t *block)
{
    const gm_axis *outer = NULL, *inner = NULL;
    int n = find_axes(p, d, &outer, &inner);
    int64_t period = n > 1 || (n == 1 && outer->to_step > 1) ? outer->to_step : 0;
    *block = period ? p->last[d] - p->to[d] - (outer->count - 1) * outer->to_step + 1 : p->last[d] - p->to[d] + 1;
    return period;
}

/* In a dimension that both repeat with the same period, or one with a period and the other in one block. */
static int is_apart_in(const gm_patch *a, const gm_patch *b, int d)
{
    int64_t a_block, b_block, a_period = find_period(a, d, &a_block), b_period = find_period(b, d, &b_block),
                              period = gm_max(a_period, b_period);
    if (a->last[d] < b->to[d] || b->last[d] < a->to[d])
        return 1;
    if (!period || (a_period && b_period && a_period != b_period))
        return 0;
    int64_t shift = ((b->to[d] - a->to[d]) % period + period) % period;
    return shift >= a_block && shift + b_block <= period;
}

int gm_patch_is_apart(const gm_patch *a, const gm_patch *b)
{
    for (int d = 0; d < a->to_rank; d++)
        if (is_apart_in(a, b, d))
            return 1;
    return 0;
}
