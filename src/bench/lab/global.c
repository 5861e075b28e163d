/* bench global - elements of global memory are read, incremented and written: of each type; in each order; by a
 * matrix's rows and columns; and over alignment, stride and width. A copy is the limit: bytes count as read and as
 * written, those between the elements do not count. */
#include "base/size.h"
#include "src/bench/lab/lab.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 128, LINE = 16384 /* bytes of a row of the matrix */, WORD = 16 };

typedef struct walks {
    gm_bench_pair pair;
    gm_walk_call calls[GM_LAB_CASES];
    gm_lab_case cases[GM_LAB_CASES];
    int count;
} walks;

static const char *const type_names[GM_WALK_TYPES] = {
    [GM_WALK_U8] = "u8",       [GM_WALK_U16] = "u16", [GM_WALK_U32] = "u32", [GM_WALK_U64] = "u64",
    [GM_WALK_U32X4] = "u32x4", [GM_WALK_F32] = "f32", [GM_WALK_F64] = "f64"};

static int run_copy(const gm_lab_case *self, gm_queue *queue)
{
    const walks *w = self->test;
    return w->pair.bench->measure->copy(queue, w->pair.dst, w->pair.src, (size_t)w->pair.size);
}

static int run_walk(const gm_lab_case *self, gm_queue *queue)
{
    const walks *w = self->test;
    return w->pair.bench->measure->walk(queue, self->call);
}

/* x + 1 in the type. */
static void increment(gm_walk_type type, void *x)
{
    gm_walk_call one = {.type = type, .count = 1, .stride = 1, .cols = 1, .src = x, .dst = x};
    gm_cpu_walk(1, &one);
}

static int is_nan(gm_walk_type type, const void *x)
{
    return type == GM_WALK_F32 ? isnan(*(const float *)x) : type == GM_WALK_F64 && isnan(*(const double *)x);
}

/* Elements from all over, and that the bytes after each are as they were: zero. */
static int check_walk(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const walks *w = self->test;
    const gm_walk_call *c = self->call;
    gm_bench *bench = w->pair.bench;
    int64_t bytes = gm_walk_bytes(c->type);
    int status = bench->ops->zero(bench->queue, w->pair.dst, (size_t)w->pair.size);
    if (!status)
        status = run_walk(self, bench->queue);
    (void)max_error, (void)mean_error;
    for (int i = 0; i < SAMPLES && !status; i++) {
        _Alignas(WORD) char right[2 * WORD] = {0};
        uint32_t t = i + 1 == SAMPLES ? c->count - 1 : (c->count - 1) / (SAMPLES - 1) * (uint32_t)i;
        int64_t at = c->base + c->stride * gm_walk_place(c->order, t, c->count, c->cols);
        gm_bench_pair_source(&w->pair, at * bytes, bytes, right);
        increment(c->type, right);
        if (is_nan(c->type, right)) /* one of many: its bits differ between devices */
            continue;
        status = gm_lab_expect(bench, self, (const char *)w->pair.dst + at * bytes, right,
                               c->stride > 1 ? 2 * bytes : bytes, "an element");
    }
    return status;
}

/* Adds a case whose limit is the copy. The elements that fit the buffers are visited; at random a power of two. */
static gm_lab_case *add(walks *w, const char *variant, gm_walk_order order, gm_walk_type type, int64_t base,
                        int64_t stride)
{
    const gm_bench *bench = w->pair.bench;
    int64_t bytes = gm_walk_bytes(type), reach = order == GM_WALK_HALF_IDLE ? 2 * stride : stride;
    int64_t count = gm_min(w->pair.size / bytes, INT64_C(1) << 31) / reach; /* places have 32 bits */
    gm_cache_state cache = gm_lab_cache(bench, 2 * w->pair.size);
    char size[GM_SIZE_TEXT];
    if (base > 0)
        count -= gm_ceil_div(base, reach) + 1;
    if (order == GM_WALK_RANDOM)
        count = gm_lab_power_of_two(count);
    gm_walk_call *call = &w->calls[w->count];
    gm_lab_case *c = &w->cases[w->count++];
    *call = (gm_walk_call){.order = order,
                           .type = type,
                           .count = (uint32_t)count,
                           .base = (uint32_t)base,
                           .stride = (uint32_t)stride,
                           .cols = (uint32_t)(LINE / bytes),
                           .src = w->pair.src,
                           .dst = w->pair.dst};
    *c = (gm_lab_case){.kernel = "walk",
                       .run = run_walk,
                       .check = check_walk,
                       .test = w,
                       .call = call,
                       .work = 2.0 * (double)(count * bytes),
                       .unit = &gm_bench_unit_bytes,
                       .cache = cache,
                       .computed = gm_lab_memory_limit(bench, 2 * w->pair.size),
                       .limit = 1};
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    snprintf(c->shape, sizeof c->shape, "%s %s", type_names[type], gm_size_format(count * bytes, size));
    return c;
}

static void add_copy(walks *w)
{
    gm_lab_case *c = add(w, "copy", GM_WALK_CONSECUTIVE, GM_WALK_U32X4, 0, 1);
    c->kernel = "copy";
    c->run = run_copy;
    c->check = NULL;
    c->limit = 0;
    c->panel = "types";
}

static void add_types(walks *w)
{
    static const gm_walk_type types[] = {GM_WALK_U8, GM_WALK_U32, GM_WALK_F32, GM_WALK_F64, GM_WALK_U32X4};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        add(w, "increment", GM_WALK_CONSECUTIVE, types[i], 0, 1)->panel = "types";
        add(w, "increment, misaligned", GM_WALK_CONSECUTIVE, types[i], 1, 1)->panel = "types";
    }
}

static void add_orders(walks *w)
{
    static const struct {
        const char *name;
        gm_walk_order order;
        int64_t base, stride;
    } orders[] = {{"consecutive", GM_WALK_CONSECUTIVE, 0, 1},    {"half idle", GM_WALK_HALF_IDLE, 0, 1},
                  {"permuted", GM_WALK_PERMUTED, 0, 1},          {"misaligned", GM_WALK_CONSECUTIVE, 1, 1},
                  {"strided by 32", GM_WALK_CONSECUTIVE, 0, 32}, {"matrix by rows", GM_WALK_CONSECUTIVE, 0, 1},
                  {"matrix by columns", GM_WALK_COLUMNS, 0, 1},  {"random", GM_WALK_RANDOM, 0, 1}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        add(w, orders[i].name, orders[i].order, GM_WALK_U32, orders[i].base, orders[i].stride)->panel = "orders";
}

/* Of each width: first elements 0 to 16, strides 1 to 32. */
static void add_map(walks *w)
{
    static const gm_walk_type widths[] = {GM_WALK_U8, GM_WALK_U16, GM_WALK_U32, GM_WALK_U64, GM_WALK_U32X4};
    static const char *const panels[] = {"1 byte", "2 bytes", "4 bytes", "8 bytes", "16 bytes"};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (int base = 0; base <= 16; base = base ? 2 * base : 1)
            for (int stride = 1; stride <= 32; stride *= 2) {
                char variant[GM_BENCH_TEXT];
                snprintf(variant, sizeof variant, "from %d by %d", base, stride);
                gm_lab_case *c = add(w, variant, GM_WALK_CONSECUTIVE, widths[i], base, stride);
                c->panel = panels[i];
                c->x = stride;
                c->x_name = "stride, elements";
                c->y = base + 1;
                c->y_name = "first element, counted from 1";
            }
}

static int measure_size(gm_bench *bench, int64_t size)
{
    walks *w = calloc(1, sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    int status = gm_bench_pair_open(bench, size, &w->pair);
    add_copy(w);
    add_types(w);
    add_orders(w);
    add_map(w);
    if (!status)
        status = gm_lab_measure(bench, w->cases, w->count);
    gm_bench_pair_close(&w->pair);
    free(w);
    return status;
}

int gm_bench_global(gm_bench *bench)
{
    int64_t size = gm_lab_size(bench);
    return bench->measure->walk && bench->measure->copy
               ? gm_bench_each_size(bench, GM_BENCH_PAIR_UNIT, &size, 1, measure_size)
               : gm_bench_skip(bench, NULL);
}
