/* bench reduce - what statistics of one large segment cost: ours in one pass, beside a plain read of the same bytes, a copy of half of them (as many
 * bytes read and written), and a library's sum and maximum, one call each. All of them are timed in turn on the same
 * buffer; a row's limit is the plain read.
 *
 * Records of leaves from all over the buffer are compared with the processor's, bit for bit, and the library's results with the total of
 * the records. */
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/kernels.h"
#include "src/bench.h"

#include <math.h>
#include <string.h>

enum {
    UNIT = 1 << 20,  /* sizes are multiples: whole leaves of any type */
    LEAVES = 64,     /* that are compared */
    WIDTH = 512      /* 8-byte words of a row of random numbers */
};
enum { FUSED = GM_WANT_SUM | GM_WANT_SQUARES | GM_WANT_RANGE, ALL = FUSED | GM_WANT_SPREAD, PLACES = ALL | GM_WANT_ARG };

typedef struct reductions {
    gm_bench *bench;
    gm_dtype type;
    int64_t bytes, leaves;
    void *src, *copy;    /* copy: [bytes / 2] */
    gm_moments *records; /* [leaves], device memory, as src */
    void *out, *room;    /* of the rival, and of the read */
    size_t room_bytes;
    gm_dtype filled;     /* what src was last filled with: U64 for all integers */
    uint64_t key;
} reductions;

typedef enum way { OURS, READ, COPY, RIVAL } way;

typedef struct contender {
    const reductions *x;
    way way;
    unsigned want; /* OURS */
    int is_max;    /* RIVAL */
    char name[GM_BENCH_TEXT];
} contender;

static int run_contender(void *context, gm_queue *queue)
{
    const contender *c = context;
    const reductions *x = c->x;
    const gm_measure_ops *measure = x->bench->measure;
    int64_t n = x->bytes / (int64_t)gm_dtype_size(x->type);
    if (c->way == READ)
        return measure->read(queue, x->src, (size_t)x->bytes, x->out);
    if (c->way == COPY)
        return measure->copy(queue, x->copy, x->src, (size_t)x->bytes / 2);
    if (c->way == RIVAL) {
        gm_rival_reduce_call call = {.type = x->type, .is_max = c->is_max, .n = n, .src = x->src, .out = x->out, .room = x->room,
                                     .room_bytes = x->room_bytes};
        return measure->rival_reduce(queue, &call);
    }
    gm_rows_call call = {.src = x->src, .type = x->type, .leaves = x->leaves, .segment = n, .want = c->want, .out = x->records};
    return x->bench->ops->reduce_rows(queue, &call);
}

static int fetch(const reductions *x, void *to, const void *from, size_t bytes)
{
    int status = x->bench->ops->copy_out(x->bench->queue, to, bytes, from, bytes, bytes, 1);
    return status ? status : x->bench->ops->queue_sync(x->bench->queue);
}

/* One record against the processor's, whose bits it must have. */
static int check_leaf(const contender *c, int64_t leaf, const gm_moments *got, void *elements)
{
    const reductions *x = c->x;
    int64_t length = gm_leaf_length(x->type), size = (int64_t)gm_dtype_size(x->type), scale = (int64_t)gm_dtype_size(x->filled) / size;
    gm_moments right;
    gm_rows_call call = {.src = elements, .type = x->type, .first = leaf, .leaves = 1, .segment = x->bytes / size, .want = c->want, .out = &right};
    gm_cpu_random(elements, x->filled, 0, GM_DISTRIBUTION_UNIFORM, x->key, leaf * length / scale, length / scale);
    int status = gm_cpu_reduce_rows(1, &call);
    if (!status && memcmp(got, &right, sizeof right) != 0)
        status = gm_fail(GM_ECHECK, "bench reduce: %s %s: the record of leaf %lld is not the processor's", gm_dtype_name(x->type), c->name,
                         (long long)leaf);
    return status;
}

/* Records anew: leaves from all over, and the total of all. records: pinned, [leaves]. */
static int check_ours(const contender *c, gm_moments *records, gm_total *total)
{
    const reductions *x = c->x;
    void *elements = NULL;
    int status = x->bench->ops->zero(x->bench->queue, x->records, (size_t)x->leaves * sizeof *records);
    if (!status)
        status = run_contender((void *)c, x->bench->queue);
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

/* A library's sum of floats may be rounded anyhow; the rest is exact. */
static int check_rival(const contender *c, const gm_total *total)
{
    const reductions *x = c->x;
    uint64_t word = 0, right = c->is_max ? total->max : total->sum.whole[0];
    size_t size = gm_dtype_size(x->type);
    int is_float = gm_dtype_get_kind(x->type) == GM_FLOAT, wrong;
    int status = run_contender((void *)c, x->bench->queue);
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
    return status ? status : wrong ? gm_fail(GM_ECHECK, "bench reduce: %s %s: a wrong result", gm_dtype_name(x->type), c->name) : GM_OK;
}

/* Who takes part for this type. */
static int choose(const reductions *x, contender contenders[GM_BENCH_SUBJECTS])
{
    const gm_measure_ops *measure = x->bench->measure;
    int count = 0, is_float = gm_dtype_get_kind(x->type) == GM_FLOAT;
    contenders[count++] = (contender){.x = x, .way = OURS, .want = FUSED, .name = "min max sum sumsq"};
    if (is_float)
        contenders[count++] = (contender){.x = x, .way = OURS, .want = ALL, .name = "and var"};
    contenders[count] = (contender){.x = x, .way = OURS, .want = PLACES};
    snprintf(contenders[count].name, sizeof contenders[count].name, "%s", is_float ? "and var arg" : "and arg");
    count++;
    contenders[count++] = (contender){.x = x, .way = READ, .name = "plain read"};
    if (measure->copy)
        contenders[count++] = (contender){.x = x, .way = COPY, .name = "copy of a half"};
    for (int is_max = 0; is_max < 2 && x->room_bytes > 0; is_max++) {
        contender *c = &contenders[count++];
        *c = (contender){.x = x, .way = RIVAL, .is_max = is_max, .name = ""};
        snprintf(c->name, sizeof c->name, "%s %s", measure->rival_reduce_name(), is_max ? "max" : "sum");
    }
    return count;
}

static int add_row(const contender *c, const gm_timing *timing, gm_heat heat, double ceiling, double rival)
{
    const reductions *x = c->x;
    char size[GM_SIZE_TEXT];
    gm_bench_row row = {.test = "reduce", .heat = heat, .timing = *timing, .work = (double)x->bytes, .unit = gm_unit_bytes, .max_error = -1,
                        .mean_error = -1};
    row.limit = c->way == READ ? x->bench->job->info.memory_limit : c->way == COPY ? 0 : ceiling;
    row.rival = c->way == OURS ? rival : 0;
    snprintf(row.variant, sizeof row.variant, "%s", c->name);
    snprintf(row.kernel, sizeof row.kernel, "%s", c->way == OURS ? "reduce-rows" : c->name);
    snprintf(row.shape, sizeof row.shape, "%s %s", gm_dtype_name(x->type), gm_size_format(x->bytes, size));
    return gm_bench_add(x->bench, &row);
}

static int measure_heat(const reductions *x, gm_heat heat, int by_size)
{
    contender contenders[GM_BENCH_SUBJECTS];
    gm_subject subjects[GM_BENCH_SUBJECTS];
    gm_timing timings[GM_BENCH_SUBJECTS];
    double ceiling = 0, rival = 0; /* the faster of its two */
    void *records = NULL;
    gm_total total;
    int count = choose(x, contenders), status;
    for (int i = 0; i < count; i++)
        subjects[i] = (gm_subject){run_contender, &contenders[i]};
    status = gm_bench_time(x->bench, subjects, count, by_size ? GM_WARM : heat, timings); /* large buffers flush the cache themselves */
    if (!status)
        status = x->bench->ops->pin(x->bench->device, (size_t)x->leaves * sizeof(gm_moments), &records);
    for (int i = 0; i < count && !status; i++)
        if (contenders[i].way == OURS)
            status = check_ours(&contenders[i], records, &total);
        else if (contenders[i].way == RIVAL)
            status = check_rival(&contenders[i], &total);
    x->bench->ops->unpin(x->bench->device, records);
    for (int i = 0; i < count && !status; i++) {
        double rate = timings[i].median > 0 ? (double)x->bytes / timings[i].median : 0;
        ceiling = contenders[i].way == READ ? rate : ceiling;
        rival = contenders[i].way == RIVAL ? fmax(rate, rival) : rival;
    }
    for (int i = 0; i < count && !status; i++)
        status = add_row(&contenders[i], &timings[i], heat, ceiling, rival);
    return status;
}

/* x is for one type, and holds no more than the buffers that all types share. */
static int measure_type(reductions *x, gm_dtype type)
{
    gm_bench *bench = x->bench;
    gm_dtype filling = gm_dtype_get_kind(type) == GM_FLOAT ? type : GM_U64;
    int64_t size = (int64_t)gm_dtype_size(type), width = WIDTH * 8 / (int64_t)gm_dtype_size(filling);
    int by_size = x->bytes >= 4 * bench->cache_bytes, status = GM_OK;
    x->type = type;
    x->leaves = gm_ceil_div(x->bytes / size, gm_leaf_length(type));
    if (x->filled != filling) {
        x->key = gm_random_key(1, 3 + (uint64_t)filling);
        status = gm_bench_fill(bench, x->src, filling, x->bytes / (WIDTH * 8), width, width, x->key);
        x->filled = filling;
    }
    x->room_bytes = bench->measure->rival_reduce ? bench->measure->rival_reduce_room(type, x->bytes / size) : 0;
    if (!status && x->room_bytes > 0)
        status = bench->ops->alloc(bench->device, x->room_bytes, &x->room);
    if (!status && x->bytes <= bench->cache_bytes)
        status = measure_heat(x, GM_WARM, 0);
    if (!status && (by_size || bench->measure->flush))
        status = measure_heat(x, GM_COLD, by_size);
    bench->ops->free(bench->device, x->room);
    x->room = NULL;
    return status;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    static const gm_dtype types[] = {GM_U8, GM_I8, GM_U16, GM_I16, GM_U32, GM_I32, GM_U64, GM_I64, GM_F16, GM_F32, GM_F64};
    reductions x = {.bench = bench, .bytes = bytes, .filled = GM_DTYPES};
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
    int64_t sizes[GM_BENCH_SIZES] = {gm_bench_large(bench, UNIT)};
    int count = 1, status = GM_OK;
    if (!bench->ops->reduce_rows || !bench->measure->read) {
        gm_note("bench reduce: not supported on a device of kind %s", bench->ops->kind);
        return GM_OK;
    }
    if (bench->job->options->shapes)
        status = gm_bench_parse_sizes(bench, "reduce", UNIT, sizes, &count);
    for (int i = 0; i < count && !status; i++)
        status = measure_size(bench, sizes[i]);
    return status;
}
