/* bench layout - items in memory: of 4 to 16 bytes; structs of eight floats against arrays of their fields; the squared
 * lengths of vectors in four layouts. Useful bytes count, those that a layout moves besides do not. The limit is a
 * copy, and for lengths, which read three times what they write, a kernel that does the same with words of 16 bytes. */
#include "base/random.h"
#include "base/size.h"
#include "kernels/host.h"
#include "src/bench/lab/lab.h"

#include <stdlib.h>

enum { SAMPLES = 48, ROW = 4096 /* bytes */, ITEM = 48 /* bytes of an item at most */ };

/* Where an item lies: in pieces of some bytes, which lie together, or in an array for each. */
typedef struct place {
    int pieces, bytes, is_arrays;
} place;

typedef struct variant {
    const char *name, *panel;
    gm_layout_kind kind;
    place in, out;
    int right;         /* bytes of a piece of the result that are compared */
    int reads, writes; /* useful bytes of an item */
    int share;         /* bytes of a buffer to an item */
} variant;

#define SIZES "sizes of elements"
#define STRUCTS "structs and arrays"
#define LENGTHS "squared lengths"
static const variant variants[] = {
    {"4 bytes", SIZES, GM_LAYOUT_COPY_4, {1, 4, 0}, {1, 4, 0}, 4, 4, 4, 4},
    {"8 bytes", SIZES, GM_LAYOUT_COPY_8, {1, 8, 0}, {1, 8, 0}, 8, 8, 8, 8},
    {"12 bytes", SIZES, GM_LAYOUT_COPY_12, {1, 12, 0}, {1, 12, 0}, 12, 12, 12, 16},
    {"12 in 16 bytes", SIZES, GM_LAYOUT_COPY_12_IN_16, {1, 16, 0}, {1, 16, 0}, 12, 12, 12, 16},
    {"16 bytes", SIZES, GM_LAYOUT_COPY_16, {1, 16, 0}, {1, 16, 0}, 16, 16, 16, 16},
    {"one field, structs", STRUCTS, GM_LAYOUT_FIELD_STRUCTS, {1, 32, 0}, {1, 32, 0}, 32, 4, 4, 32},
    {"one field, array", STRUCTS, GM_LAYOUT_FIELD_ARRAY, {1, 4, 0}, {1, 4, 0}, 4, 4, 4, 4},
    {"all, structs", STRUCTS, GM_LAYOUT_STRUCTS, {1, 32, 0}, {1, 32, 0}, 32, 32, 32, 32},
    {"all, aligned structs", STRUCTS, GM_LAYOUT_STRUCTS_ALIGNED, {1, 32, 0}, {1, 32, 0}, 32, 32, 32, 32},
    {"all, arrays", STRUCTS, GM_LAYOUT_ARRAYS, {8, 4, 1}, {8, 4, 1}, 4, 32, 32, 32},
    {"three words to one", LENGTHS, GM_LAYOUT_MIXED, {3, 16, 1}, {1, 16, 0}, 16, 48, 16, 64},
    {"structs", LENGTHS, GM_LAYOUT_LENGTHS, {1, 12, 0}, {1, 4, 0}, 4, 12, 4, 16},
    {"aligned structs", LENGTHS, GM_LAYOUT_LENGTHS_ALIGNED, {1, 16, 0}, {1, 4, 0}, 4, 12, 4, 16},
    {"three arrays", LENGTHS, GM_LAYOUT_LENGTHS_ARRAYS, {3, 4, 1}, {1, 4, 0}, 4, 12, 4, 16},
    {"through shared memory", LENGTHS, GM_LAYOUT_LENGTHS_STAGED, {1, 12, 0}, {1, 4, 0}, 4, 12, 4, 16},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

typedef struct layouts {
    gm_bench *bench;
    int64_t size; /* of a buffer */
    uint64_t key; /* of src: random float32 */
    void *src, *dst;
    gm_layout_call calls[VARIANTS];
    gm_lab_case cases[1 + VARIANTS]; /* the copy, the variants */
} layouts;

static int run_copy(const gm_lab_case *self, gm_queue *queue)
{
    const layouts *l = self->test;
    return l->bench->measure->copy(queue, l->dst, l->src, (size_t)l->size);
}

static int run_layout(const gm_lab_case *self, gm_queue *queue)
{
    const layouts *l = self->test;
    return l->bench->measure->layout(queue, self->call);
}

/* The byte where a piece of item i begins. */
static int64_t piece_at(const place *p, int piece, int64_t i, int64_t count)
{
    return (p->is_arrays ? piece * count + i : i * p->pieces + piece) * p->bytes;
}

/* Compares item i with the processor's, and that the bytes around a field are as they were: zero. */
static int check_item(const gm_lab_case *self, int64_t i)
{
    const layouts *l = self->test;
    const gm_layout_call *c = self->call;
    const variant *v = &variants[c - l->calls];
    float item[ITEM / sizeof(float)], right[ITEM / sizeof(float)] = {0};
    gm_layout_call one = {.kind = c->kind, .count = 1, .src = item, .dst = right};
    int status = GM_OK;
    for (int p = 0; p < v->in.pieces; p++)
        gm_cpu_random((char *)item + p * v->in.bytes, GM_DTYPE_F32, 0, GM_DISTRIBUTION_UNIFORM, l->key,
                      piece_at(&v->in, p, i, c->count) / (int64_t)sizeof(float), v->in.bytes / (int)sizeof(float));
    gm_cpu_layout(1, &one);
    for (int p = 0; p < v->out.pieces && !status; p++)
        status = gm_lab_expect(l->bench, self, (const char *)l->dst + piece_at(&v->out, p, i, c->count),
                               (const char *)right + p * v->out.bytes, v->right, "an item");
    return status;
}

static int check_layout(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const layouts *l = self->test;
    const gm_layout_call *c = self->call;
    int status = l->bench->ops->zero(l->bench->queue, l->dst, (size_t)l->size);
    if (!status)
        status = run_layout(self, l->bench->queue);
    (void)max_error, (void)mean_error;
    for (int i = 0; i < SAMPLES && !status; i++)
        status = check_item(self, i + 1 == SAMPLES ? c->count - 1 : (c->count - 1) / (SAMPLES - 1) * i);
    return status;
}

/* Case 0 is the copy, case 1 + v the variant v. */
static void make_cases(layouts *l)
{
    gm_cache_state cache = gm_lab_cache(l->bench, 2 * l->size);
    l->cases[0] = (gm_lab_case){.variant = "copy",
                                .kernel = "copy",
                                .run = run_copy,
                                .test = l,
                                .work = 2.0 * (double)l->size,
                                .unit = &gm_bench_unit_bytes,
                                .cache = cache,
                                .computed = gm_lab_memory_limit(l->bench, 2 * l->size),
                                .panel = SIZES};
    gm_size_format(l->size, l->cases[0].shape);
    for (int v = 0, mixed = 0; v < VARIANTS; v++) {
        const variant *s = &variants[v];
        gm_lab_case *c = &l->cases[1 + v];
        char size[GM_SIZE_TEXT];
        int64_t touched = l->size / s->share * (s->in.pieces * s->in.bytes + s->out.pieces * s->out.bytes);
        l->calls[v] = (gm_layout_call){.kind = s->kind, .count = l->size / s->share, .src = l->src, .dst = l->dst};
        *c = l->cases[0];
        c->kernel = "layout";
        c->run = run_layout;
        c->check = check_layout;
        c->call = &l->calls[v];
        c->work = (double)l->calls[v].count * (s->reads + s->writes);
        c->cache = gm_lab_cache(l->bench, touched);
        c->computed = gm_lab_memory_limit(l->bench, touched);
        c->panel = s->panel;
        mixed = s->kind == GM_LAYOUT_MIXED ? 2 + v : mixed;
        c->limit = s->kind < GM_LAYOUT_MIXED ? 1 : s->kind == GM_LAYOUT_MIXED ? 0 : mixed;
        snprintf(c->variant, sizeof c->variant, "%s", s->name);
        snprintf(c->shape, sizeof c->shape, "%s of %d B", gm_size_format(l->calls[v].count * s->reads, size), s->reads);
    }
}

static int measure_size(gm_bench *bench, int64_t size)
{
    layouts *l = calloc(1, sizeof *l);
    if (!l)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    l->bench = bench;
    l->size = size;
    l->key = gm_random_key(1, 2);
    int status = bench->ops->alloc(bench->device, (size_t)size, &l->src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)size, &l->dst);
    if (!status)
        status = gm_bench_fill(bench, l->src, GM_DTYPE_F32, size / ROW, ROW / (int)sizeof(float),
                               ROW / (int)sizeof(float), l->key);
    make_cases(l);
    if (!status)
        status = gm_lab_measure(bench, l->cases, 1 + VARIANTS);
    bench->ops->free(bench->device, l->dst);
    bench->ops->free(bench->device, l->src);
    free(l);
    return status;
}

int gm_bench_layout(gm_bench *bench)
{
    int64_t size = gm_lab_size(bench);
    return bench->measure->layout && bench->measure->copy
               ? gm_bench_each_size(bench, GM_BENCH_PAIR_UNIT, &size, 1, measure_size)
               : gm_bench_skip(bench, NULL);
}
