/* bench reduce - statistics of one large segment: the program's pass, a plain read of the same bytes, a copy of half of
 * them (the same number of bytes read and written), and a library's sum and maximum, one call each. All are timed in
 * turn on the same buffer; the limit of a row is the plain read.
 *
 * Records of leaves from all over the buffer are compared with the processor's bit for bit, and the library's results
 * with the total of the records. Without --shapes the ladder of sums comes first (reduce_ladder.c). */
#include "base/memory.h"
#include "base/size.h"
#include "kernels/host.h"
#include "kernels/reduce/calls.h"
#include "src/bench/lab/lab.h"

#include <math.h>
#include <string.h>

enum {
    UNIT = 1 << 20, /* sizes are multiples: whole leaves of any type */
    LEAVES = 64,    /* whose records are compared */
    WIDTH = 512     /* 8-byte words of a row of random numbers */
};
enum {
    FUSED = GM_WANT_SUM | GM_WANT_SQUARES | GM_WANT_RANGE,
    ALL = FUSED | GM_WANT_SPREAD,
    PLACES = ALL | GM_WANT_ARG
};

typedef struct buffers {
    gm_bench *bench;
    gm_dtype type;
    int64_t bytes, leaves;
    void *src, *copy;      /* copy: [bytes / 2] */
    gm_moments *records;   /* [leaves], device memory, as src */
    void *out, *workspace; /* the result of the rival and of the read; the workspace of the rival */
    size_t workspace_bytes;
    gm_dtype filled; /* the type of the random numbers in src: U64 for all integers */
    uint64_t key;
} buffers;

typedef enum kind { OURS, READ, COPY, RIVAL } kind;

typedef struct candidate {
    const buffers *x;
    kind kind;
    unsigned want; /* OURS */
    int is_max;    /* RIVAL */
    char name[GM_BENCH_TEXT];
} candidate;

static int run_candidate(void *context, gm_queue *queue)
{
    const candidate *c = context;
    const buffers *x = c->x;
    const gm_measure_ops *measure = x->bench->measure;
    int64_t n = x->bytes / (int64_t)gm_dtype_size(x->type);
    if (c->kind == READ)
        return measure->read(queue, x->src, (size_t)x->bytes, x->out);
    if (c->kind == COPY)
        return measure->copy(queue, x->copy, x->src, (size_t)x->bytes / 2);
    if (c->kind == RIVAL) {
        gm_rival_reduce_call call = {.type = x->type,
                                     .is_max = c->is_max,
                                     .n = n,
                                     .src = x->src,
                                     .out = x->out,
                                     .room = x->workspace,
                                     .room_bytes = x->workspace_bytes};
        return measure->rival_reduce(queue, &call);
    }
    gm_reduce_rows_call call = {
        .src = x->src, .type = x->type, .leaves = x->leaves, .segment = n, .want = c->want, .out = x->records};
    return x->bench->ops->reduce_rows(queue, &call);
}

static int fetch(const buffers *x, void *to, const void *from, size_t bytes)
{
    int status = x->bench->ops->copy_out(x->bench->queue, to, bytes, from, bytes, bytes, 1);
    return status ? status : x->bench->ops->queue_sync(x->bench->queue);
}

/* Compares a record with the processor's bit for bit. */
static int check_leaf(const candidate *c, int64_t leaf, const gm_moments *got, void *elements)
{
    const buffers *x = c->x;
    int64_t length = gm_leaf_length(x->type), size = (int64_t)gm_dtype_size(x->type),
            scale = (int64_t)gm_dtype_size(x->filled) / size;
    gm_moments right;
    gm_reduce_rows_call call = {.src = elements,
                                .type = x->type,
                                .first = leaf,
                                .leaves = 1,
                                .segment = x->bytes / size,
                                .want = c->want,
                                .out = &right};
    gm_cpu_random(elements, x->filled, 0, GM_DISTRIBUTION_UNIFORM, x->key, leaf * length / scale, length / scale);
    int status = gm_cpu_reduce_rows(1, &call);
    if (!status && memcmp(got, &right, sizeof right) != 0)
        status = gm_fail(GM_ECHECK, "bench reduce: %s %s: the record of leaf %lld differs from the processor's",
                         gm_dtype_name(x->type), c->name, (long long)leaf);
    return status;
}

/* Makes all records once more, checks leaves from all over, and adds up the total. records: pinned, [leaves]. */
static int check_ours(const candidate *c, gm_moments *records, gm_total *total)
{
    const buffers *x = c->x;
    void *elements = NULL;
    int status = x->bench->ops->zero(x->bench->queue, x->records, (size_t)x->leaves * sizeof *records);
    if (!status)
        status = run_candidate((void *)c, x->bench->queue);
    if (!status)
        status = fetch(x, records, x->records, (size_t)x->leaves * sizeof *records);
    if (!status)
        status = gm_host_alloc((size_t)gm_leaf_length(x->type) * gm_dtype_size(x->type), &elements);
    for (int64_t i = 0, count = gm_min(LEAVES, x->leaves); i < count && !status; i++) {
        int64_t leaf = i + 1 == count ? x->leaves - 1 : x->leaves / count * i;
        status = check_leaf(c, leaf, &records[leaf], elements);
    }
    gm_total_begin(total);
    for (int64_t i = 0; i < x->leaves && !status; i++)
        gm_total_add(total, &records[i], gm_dtype_get_kind(x->type));
    gm_host_free(elements);
    return status;
}

/* A library may round a sum of floats differently; its other results are exact. */
static int check_rival(const candidate *c, const gm_total *total)
{
    const buffers *x = c->x;
    uint64_t word = 0, right = c->is_max ? total->max : total->sum.whole[0];
    size_t size = gm_dtype_size(x->type);
    int is_float = gm_dtype_get_kind(x->type) == GM_FLOAT, wrong;
    int status = run_candidate((void *)c, x->bench->queue);
    if (!status)
        status = fetch(x, &word, x->out, c->is_max || is_float ? size : sizeof word);
    if (is_float) {
        double got, wanted = c->is_max ? 0 : total->sum.real.sum.high;
        gm_cpu_row_f64(&got, &word, 1, x->type, 0);
        if (c->is_max)
            memcpy(&wanted, &right, sizeof wanted);
        wrong = !(fabs(got - wanted) <= (c->is_max ? 0 : 1e-3 * fabs(wanted)));
    } else {
        wrong = word != right;
    }
    return status  ? status
           : wrong ? gm_fail(GM_ECHECK, "bench reduce: %s %s: a wrong result", gm_dtype_name(x->type), c->name)
                   : GM_OK;
}

/* The candidates for this type. */
static int choose(const buffers *x, candidate candidates[GM_BENCH_CASES])
{
    const gm_measure_ops *measure = x->bench->measure;
    int count = 0, is_float = gm_dtype_get_kind(x->type) == GM_FLOAT;
    candidates[count++] = (candidate){.x = x, .kind = OURS, .want = FUSED, .name = "min max sum sumsq"};
    if (is_float)
        candidates[count++] = (candidate){.x = x, .kind = OURS, .want = ALL, .name = "and var"};
    candidates[count] = (candidate){.x = x, .kind = OURS, .want = PLACES};
    snprintf(candidates[count].name, sizeof candidates[count].name, "%s", is_float ? "and var arg" : "and arg");
    count++;
    candidates[count++] = (candidate){.x = x, .kind = READ, .name = "plain read"};
    if (measure->copy)
        candidates[count++] = (candidate){.x = x, .kind = COPY, .name = "copy of a half"};
    for (int is_max = 0; is_max < 2 && x->workspace_bytes > 0; is_max++) {
        candidate *c = &candidates[count++];
        *c = (candidate){.x = x, .kind = RIVAL, .is_max = is_max, .name = ""};
        snprintf(c->name, sizeof c->name, "%s %s", measure->rival_reduce_name(), is_max ? "max" : "sum");
    }
    return count;
}

static int add_row(const candidate *c, const gm_bench_timing *timing, gm_cache_state cache, double read_rate,
                   double rival_rate)
{
    const buffers *x = c->x;
    char size[GM_SIZE_TEXT];
    gm_bench_row row = gm_bench_row_make(x->bench, c->name, c->kind == OURS ? "reduce-rows" : c->name, cache, timing);
    row.work = (double)x->bytes;
    row.computed = gm_bench_memory_limit(x->bench, cache);
    row.measured = c->kind == OURS || c->kind == RIVAL ? read_rate : 0;
    row.measured_of = "plain read";
    row.rival = c->kind == OURS ? rival_rate : 0;
    snprintf(row.shape, sizeof row.shape, "%s %s", gm_dtype_name(x->type), gm_size_format(x->bytes, size));
    return gm_bench_add(x->bench, &row);
}

static int measure_cache(const buffers *x, gm_bench_cache cache)
{
    candidate candidates[GM_BENCH_CASES];
    gm_bench_case cases[GM_BENCH_CASES];
    gm_bench_timing timings[GM_BENCH_CASES];
    double read_rate = 0, rival_rate = 0; /* of the faster of the two calls of the rival */
    void *records = NULL;
    gm_total total;
    int count = choose(x, candidates), status;
    for (int i = 0; i < count; i++)
        cases[i] = (gm_bench_case){run_candidate, &candidates[i]};
    status = gm_bench_time(x->bench, cases, count, cache.flush, timings);
    if (!status)
        status = x->bench->ops->host_alloc(x->bench->device, (size_t)x->leaves * sizeof(gm_moments), &records);
    for (int i = 0; i < count && !status; i++)
        if (candidates[i].kind == OURS)
            status = check_ours(&candidates[i], records, &total);
        else if (candidates[i].kind == RIVAL)
            status = check_rival(&candidates[i], &total);
    x->bench->ops->host_free(x->bench->device, records);
    for (int i = 0; i < count && !status; i++) {
        double rate = timings[i].median > 0 ? (double)x->bytes / timings[i].median : 0;
        read_rate = candidates[i].kind == READ ? rate : read_rate;
        rival_rate = candidates[i].kind == RIVAL ? fmax(rate, rival_rate) : rival_rate;
    }
    for (int i = 0; i < count && !status; i++)
        status = add_row(&candidates[i], &timings[i], cache.state, read_rate, rival_rate);
    return status;
}

/* x: the buffers that all types share. */
static int measure_type(buffers *x, gm_dtype type)
{
    gm_bench *bench = x->bench;
    gm_dtype filling = gm_dtype_get_kind(type) == GM_FLOAT ? type : GM_DTYPE_U64;
    int64_t size = (int64_t)gm_dtype_size(type), width = WIDTH * 8 / (int64_t)gm_dtype_size(filling);
    gm_bench_cache caches[GM_CACHE_STATES];
    int count = gm_bench_cache_states(bench, x->bytes, x->bytes, caches), status = GM_OK;
    x->type = type;
    x->leaves = gm_ceil_div(x->bytes / size, gm_leaf_length(type));
    if (x->filled != filling) {
        x->key = gm_random_key(1, 3 + (uint64_t)filling);
        status = gm_bench_fill(bench, x->src, filling, x->bytes / (WIDTH * 8), width, width, x->key);
        x->filled = filling;
    }
    x->workspace_bytes = bench->measure->rival_reduce ? bench->measure->rival_reduce_room(type, x->bytes / size) : 0;
    if (!status && x->workspace_bytes > 0)
        status = bench->ops->alloc(bench->device, x->workspace_bytes, &x->workspace);
    for (int i = 0; i < count && !status; i++)
        status = measure_cache(x, caches[i]);
    bench->ops->free(bench->device, x->workspace);
    x->workspace = NULL;
    return status;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    static const gm_dtype types[] = {GM_DTYPE_U8,  GM_DTYPE_I8,   GM_DTYPE_U16, GM_DTYPE_I16,
                                     GM_DTYPE_U32, GM_DTYPE_I32,  GM_DTYPE_U64, GM_DTYPE_I64,
                                     GM_DTYPE_F16, GM_DTYPE_BF16, GM_DTYPE_F32, GM_DTYPE_F64};
    buffers x = {.bench = bench, .bytes = bytes, .filled = GM_DTYPES};
    int64_t leaves = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        leaves = gm_max(leaves, gm_ceil_div(bytes / (int64_t)gm_dtype_size(types[i]), gm_leaf_length(types[i])));
    int status = bench->ops->alloc(bench->device, (size_t)bytes, &x.src);
    if (!status && bench->measure->copy)
        status = bench->ops->alloc(bench->device, (size_t)bytes / 2, &x.copy);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)leaves * sizeof(gm_moments), (void **)&x.records);
    if (!status)
        status = bench->ops->alloc(bench->device, GM_BENCH_TEXT, &x.out);
    for (size_t i = 0; i < sizeof types / sizeof types[0] && !status; i++)
        status = measure_type(&x, types[i]);
    bench->ops->free(bench->device, x.out);
    bench->ops->free(bench->device, x.records);
    bench->ops->free(bench->device, x.copy);
    bench->ops->free(bench->device, x.src);
    return status;
}

int gm_bench_reduce(gm_bench *bench)
{
    if (!bench->ops->reduce_rows || !bench->measure->read)
        return gm_bench_skip(bench, NULL);
    int status = bench->job->options->shapes ? GM_OK : gm_lab_reduce_ladder(bench);
    return status ? status : gm_bench_each_size(bench, UNIT, NULL, 0, measure_size);
}
