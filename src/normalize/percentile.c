/* Exact order statistics by counting: digit by digit of the elements' keys, the highest first, counts give the digit in
 * which the wanted ranks lie. A percentile is interpolated between two of them by NumPy's linear rule. */
#include "src/normalize/normalize.h"

#include "base/size.h"
#include "kernels/normalize/normalize.h"

#include <float.h>
#include <math.h>

enum { LOW, HIGH, ENDS, TARGETS = 2 * ENDS }; /* of each end the rank below and the rank above */

/* The ranks that are searched among the elements of a frame, or of the stack. */
typedef struct search {
    uint64_t count;         /* elements that are not NaN */
    uint64_t rank[TARGETS]; /* among those whose key begins with prefix */
    uint64_t prefix[TARGETS];
    double weight[ENDS];
} search;

typedef struct percentiles {
    gm_normalize *p;
    int level;
    int64_t row, rows;         /* frames of this batch, in the rectangle; 1 row for a stack */
    uint64_t *counts, *prefix; /* device memory: [batch_rows][prefixes][1 << digit], [batch_rows][prefixes] */
    uint64_t *host_counts, *host_prefix;
    search *searches; /* [batch_rows] */
} percentiles;

static int is_framewise(const percentiles *q)
{
    return q->p->c->per == GM_PER_FRAME;
}

static int prefixes_of(const percentiles *q)
{
    return q->level == 0 ? 1 : q->p->plan.prefixes;
}

/* The ranks that NumPy's linear rule wants of n elements. */
static void begin_search(const gm_normalize_case *c, search *s, uint64_t n)
{
    *s = (search){.count = n};
    for (int end = 0; end < ENDS && n > 0; end++) {
        double at = (double)(n - 1) * (c->percent[end] / 100);
        int last = at >= (double)(n - 1);
        uint64_t below = last ? n - 1 : (uint64_t)floor(at);
        s->weight[end] = last ? 0 : at - floor(at);
        s->rank[2 * end] = below;
        s->rank[2 * end + 1] = last ? below : below + 1;
    }
}

/* The different prefixes of a search, in the order in which they occur; returns their number. */
static int different(const search *s, uint64_t *prefix)
{
    int found = 0;
    for (int t = 0; t < TARGETS; t++) {
        int p = 0;
        while (p < found && prefix[p] != s->prefix[t])
            p++;
        prefix[p] = s->prefix[t];
        found += p == found;
    }
    return found;
}

/* One more digit of every target. counts: [prefixes][1 << bits]. */
static void narrow(search *s, const uint64_t *counts, int bits, int prefixes)
{
    uint64_t prefix[TARGETS];
    int found = prefixes == 1 ? 1 : different(s, prefix);
    search before = *s;
    for (int t = 0; t < TARGETS && s->count > 0; t++) {
        int p = 0;
        if (t > 0 && before.rank[t] == before.rank[t - 1] && before.prefix[t] == before.prefix[t - 1]) {
            s->rank[t] = s->rank[t - 1]; /* the same element: usual in short frames */
            s->prefix[t] = s->prefix[t - 1];
            continue;
        }
        while (p + 1 < found && prefix[p] != s->prefix[t])
            p++;
        const uint64_t *from = counts + ((uint64_t)p << bits);
        uint64_t digit = 0;
        while (s->rank[t] >= from[digit])
            s->rank[t] -= from[digit++];
        s->prefix[t] = s->prefix[t] << bits | digit;
    }
}

/* The value of a key. */
static double value_of(gm_dtype type, uint64_t key)
{
    switch (type) {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) \
    case GM_DTYPE_##id:                                \
        return gm_f64_##id(gm_unkey_##id((gm_raw##bytes)key), 0);
#include "base/types/dtypes.def"
#undef GM_DTYPE
    default:
        return 0;
    }
}

/* NumPy's linear rule, in its steps; the difference of integers is exact before it is rounded. */
static double between(const search *s, int end, gm_dtype type)
{
    uint64_t low = s->prefix[2 * end], high = s->prefix[2 * end + 1];
    double a = value_of(type, low), b = value_of(type, high), t = s->weight[end];
    double apart = gm_dtype_get_kind(type) == GM_FLOAT ? b - a : (double)(high - low);
    if (apart > DBL_MAX && !isinf(a) && !isinf(b))
        return a * (1 - t) + b * t;
    return t == 0 ? a : t < 0.5 ? a + apart * t : b - apart * (1 - t);
}

static int set_entry(const percentiles *q, int64_t i, const search *s)
{
    const gm_normalize_case *c = q->p->c;
    if (s->count == 0)
        return gm_normalize_set(q->p, i, NAN, NAN, 1);
    double low = between(s, LOW, c->src.type), high = between(s, HIGH, c->src.type);
    return gm_normalize_set_ends(q->p, i, low, high, high == low ? 0 : high - low);
}

/* --- The pass: counts of one digit --- */

static int next(void *context, gm_piece *piece, int *more)
{
    return gm_normalize_next(context, piece, more, GM_STAGE_COMPUTE, 0);
}

static int count_piece(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_normalize *p = context;
    const percentiles *q = p->pass;
    const gm_dataset *src = &p->c->src;
    int prefixes = prefixes_of(q), bits = p->plan.digit;
    int64_t group = is_framewise(q) ? piece->at_row - q->row : 0;
    gm_histogram_call call = {.rows = piece->rows,
                              .cols = piece->cols,
                              .src = gm_normalize_elements(p, piece, slot),
                              .type = src->type,
                              .swap = src->swap,
                              .shift = 8 * (int)gm_dtype_size(src->type) - (q->level + 1) * bits,
                              .bits = bits,
                              .row_step = is_framewise(q),
                              .prefixes = prefixes,
                              .prefix = q->prefix + group * prefixes,
                              .counts = q->counts + ((group * prefixes) << bits)};
    return p->job->ops->histogram(queue, &call);
}

static void write_prefixes(const percentiles *q)
{
    int prefixes = prefixes_of(q);
    for (int64_t g = 0; g < q->rows; g++) {
        uint64_t *to = q->host_prefix + g * prefixes;
        int found = q->level == 0 ? 1 : different(&q->searches[g], to);
        if (q->level == 0)
            *to = 0;
        for (int p = found; p < prefixes; p++)
            to[p] = UINT64_MAX - (uint64_t)p; /* no prefix of a key: those have fewer bits */
    }
}

/* Counts of the batch at this level to host memory. */
static int run_level(percentiles *q)
{
    gm_normalize *p = q->p;
    const gm_device_ops *ops = p->job->ops;
    gm_queue *queue = gm_stream_in(p->stream);
    int prefixes = prefixes_of(q);
    size_t counts = (size_t)(q->rows * prefixes) * sizeof(uint64_t) << p->plan.digit,
           words = (size_t)(q->rows * prefixes) * sizeof(uint64_t);
    int64_t across = gm_ceil_div(p->plan.cols, p->plan.piece_cols), begin = q->row / p->plan.piece_rows * across;
    gm_program program;
    write_prefixes(q);
    int status = ops->zero(queue, q->counts, counts);
    if (!status && !ops->unified)
        status = ops->copy_in(queue, q->prefix, words, q->host_prefix, words, words, 1);
    if (!status)
        status = ops->queue_sync(queue);
    gm_normalize_begin(p, &program, begin,
                       is_framewise(q) ? begin + gm_ceil_div(q->rows, p->plan.piece_rows) * across
                                       : gm_normalize_pieces(&p->plan));
    program.next = next;
    program.compute = count_piece;
    if (!status)
        status = gm_normalize_run(p, &program, q);
    if (!status && !ops->unified)
        status = ops->copy_out(queue, q->host_counts, counts, q->counts, counts, counts, 1);
    return status ? status : ops->queue_sync(queue);
}

/* One digit more of every search of the batch. */
static void advance(percentiles *q)
{
    const gm_normalize_plan *plan = &q->p->plan;
    int prefixes = prefixes_of(q);
    for (int64_t g = 0; g < q->rows; g++) {
        const uint64_t *counts = q->host_counts + ((g * prefixes) << plan->digit);
        if (q->level == 0) {
            uint64_t n = 0;
            for (int64_t i = 0; i < (int64_t)1 << plan->digit; i++)
                n += counts[i];
            begin_search(q->p->c, &q->searches[g], n);
        }
        narrow(&q->searches[g], counts, plan->digit, prefixes);
    }
}

static int frames(percentiles *q, int64_t *constant)
{
    const gm_normalize_plan *plan = &q->p->plan;
    int status = GM_OK;
    for (q->row = 0; q->row < plan->rows && !status; q->row += q->rows) {
        q->rows = gm_min(plan->batch_rows, plan->rows - q->row);
        for (q->level = 0; q->level < plan->levels && !status; q->level++) {
            status = run_level(q);
            if (!status)
                advance(q);
        }
        for (int64_t g = 0; g < q->rows && !status; g++)
            *constant += set_entry(q, q->row + g, &q->searches[g]);
    }
    return status;
}

/* The counts of all ranks together. Collective. */
static int add_counts_all(percentiles *q)
{
    size_t bins = (size_t)prefixes_of(q) << q->p->plan.digit;
    return gm_job_agree_all(q->p->job, gm_sum_counts_all(q->host_counts, bins));
}

static int stack_all(percentiles *q, int64_t *constant)
{
    const gm_job *job = q->p->job;
    int several = job->ranks->size > 1, status = GM_OK;
    q->rows = 1;
    for (q->level = 0; q->level < q->p->plan.levels && !status; q->level++) {
        status = gm_job_agree_all(job, run_level(q));
        if (!status && several)
            status = add_counts_all(q);
        if (!status && job->ranks->rank == 0)
            advance(q);
        if (!status)
            status = gm_job_agree_all(job, gm_broadcast_all(q->searches, sizeof *q->searches));
    }
    if (!status)
        *constant = set_entry(q, 0, q->searches);
    return status;
}

static int allocate(percentiles *q, gm_pool *pool)
{
    const gm_normalize_plan *plan = &q->p->plan;
    q->searches = gm_pool_host(pool, plan->batch_rows, sizeof *q->searches);
    q->counts = gm_pool_device(pool, plan->count_bytes, 1);
    q->prefix = gm_pool_device(pool, plan->prefix_bytes, 1);
    q->host_counts = pool->ops->unified ? q->counts : gm_pool_pinned(pool, plan->count_bytes, 1);
    q->host_prefix = pool->ops->unified ? q->prefix : gm_pool_pinned(pool, plan->prefix_bytes, 1);
    return pool->status;
}

int gm_normalize_percentiles_all(gm_normalize *p, int64_t *constant)
{
    percentiles q = {.p = p};
    gm_pool pool = {.ops = p->job->ops, .device = p->job->device};
    int status = gm_job_agree_all(p->job, allocate(&q, &pool));
    if (!status && !is_framewise(&q))
        status = stack_all(&q, constant);
    else if (!status)
        status = gm_job_agree_all(p->job, frames(&q, constant));
    if (!status && is_framewise(&q))
        status = gm_job_agree_all(p->job, gm_sum_all(constant));
    gm_pool_release(&pool);
    return status;
}
