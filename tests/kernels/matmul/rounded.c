/* Products that round: the bits of acc are those of the sums in float64, each rounded once, for all transpositions,
 * edges, batches and leaves side by side. Sums that float32 does not hold are counted as overflow. */
#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "tests/kernels/each.h"

enum { LEAF = 256, GUARD = 3, FRAMES = 3, PARTS = 4 };
static const float guard = 12345;

typedef struct problem {
    bench *b;
    const gm_product *product;
    gm_product_call call; /* acc: [batch][m][ldacc] on the device, float64 or float32; NULL until it is multiplied */
} problem;

static int64_t frames_of(const problem *p)
{
    return gm_max(p->call.batch, 1);
}

/* A matrix of each frame, the last element of which is large: the last element of C is beyond float32. */
static void *operand(problem *p, int64_t rows, int64_t cols, int64_t *ld, int64_t *next, uint64_t seed)
{
    int64_t unit = 16 / (int64_t)gm_dtype_size(p->product->operand);
    *ld = gm_round_up(cols, unit);
    *next = rows * *ld;
    int64_t count = frames_of(p) * *next;
    size_t bytes = (size_t)count * gm_dtype_size(p->product->operand);
    void *host = host_memory(bytes), *device;
    for (int64_t i = 0; i < count; i++) {
        int is_last = i % *next == (rows - 1) * *ld + cols - 1;
        double value = is_last ? 3e19 : (float)random_real(&seed);
        if (p->product->operand == GM_DTYPE_F64)
            ((double *)host)[i] = value;
        else
            ((float *)host)[i] = (float)value;
    }
    device = lend(p->b, host, bytes);
    free(host);
    return device;
}

static problem problem_make(bench *b, const gm_product *product, int64_t m, int64_t n, int64_t k, int transposes,
                            int64_t batch)
{
    problem p = {b, product, {.m = m, .n = n, .k = k, .leaf = LEAF, .tile = product->tile, .batch = batch}};
    gm_product_call *c = &p.call;
    c->transpose_a = transposes & 1;
    c->transpose_b = transposes >> 1;
    c->a = operand(&p, c->transpose_a ? k : m, c->transpose_a ? m : k, &c->lda, &c->next_a, 1);
    c->b = operand(&p, c->transpose_b ? n : k, c->transpose_b ? k : n, &c->ldb, &c->next_b, 2);
    c->ldacc = n + GUARD;
    c->next_acc = m * c->ldacc + 1;
    c->tile_count = product->wants_tiles;
    return p;
}

static void problem_free(problem *p)
{
    p->b->ops->free(p->b->device, (void *)(uintptr_t)p->call.a);
    p->b->ops->free(p->b->device, (void *)(uintptr_t)p->call.b);
}

static int64_t elements(const problem *p)
{
    return frames_of(p) * p->call.next_acc;
}

/* acc on the host, of the given type, with the guard wherever the product has no element. The caller frees it. */
static void *multiply(problem *p, gm_dtype type, int64_t parts, gm_nonfinite *count)
{
    const gm_product *product = p->product;
    gm_product_call call = p->call;
    size_t accumulator = gm_dtype_size(product->accumulator), bytes = (size_t)elements(p) * gm_dtype_size(type);
    void *host = host_memory(bytes), *counts = lend(p->b, NULL, sizeof *count);
    for (int64_t i = 0; i < elements(p); i++) {
        if (type == GM_DTYPE_F64)
            ((double *)host)[i] = (double)guard;
        else
            ((float *)host)[i] = guard;
    }
    call.acc = lend(p->b, host, bytes);
    call.tiles = lend(p->b, NULL, (size_t)(call.tile_count * call.tile * call.tile) * accumulator + 1);
    call.part_count = parts;
    call.parts = lend(p->b, NULL, (size_t)(parts * call.next_acc) * accumulator + 1);
    call.rounded = type == product->accumulator ? NULL : counts;
    must(product->run(p->b->queue, &call));
    reclaim(p->b, call.parts, NULL, 0);
    reclaim(p->b, call.tiles, NULL, 0);
    reclaim(p->b, counts, count, sizeof *count);
    reclaim(p->b, call.acc, host, bytes);
    return host;
}

/* Has the rounded product the bits of the other one, and the count of what became infinite? */
static int is_rounded(problem *p, int64_t parts)
{
    gm_nonfinite none, count;
    double *sums = multiply(p, p->product->accumulator, parts, &none);
    float *rounded = multiply(p, GM_DTYPE_F32, parts, &count);
    uint64_t over = 0;
    int same = 1;
    for (int64_t i = 0; i < elements(p); i++) {
        float expected = (float)sums[i];
        over += isinf(expected) && !isinf(sums[i]);
        same = same && memcmp(&expected, &rounded[i], sizeof expected) == 0;
    }
    free(sums);
    free(rounded);
    return same && over == (uint64_t)frames_of(p) && count.overflow == over && count.inf == 0 - over && count.nan == 0;
}

static void test_product(bench *b, const gm_product *product)
{
    static const struct {
        int64_t m, n, k;
    } shapes[] = {{1, 1, 1},      {2, 3, 5},      {63, 65, 64},    {64, 64, 63},    {127, 130, 100},
                  {300, 77, 256}, {33, 512, 128}, {900, 1100, 40}, {1000, 700, 256}};
    const size_t large = 2, all = sizeof shapes / sizeof *shapes; /* the last ones, which valgrind takes minutes for */
    const size_t count = getenv("GPUMEM_TEST_MEMCHECK") ? all - large : all;
    for (int transposes = 0; transposes < 4; transposes++) {
        int alone = 1, batches = 1, sides = 1;
        for (size_t i = 0; i < count; i++)
            for (int64_t batch = 1; batch <= FRAMES; batch += FRAMES - 1) {
                problem p = problem_make(b, product, shapes[i].m, shapes[i].n, shapes[i].k, transposes, batch);
                *(batch > 1 ? &batches : &alone) &= is_rounded(&p, 0);
                problem_free(&p);
            }
        tap_ok(alone, "%s %s transposes %d: sums are rounded once", b->ops->kind, product->kernel, transposes);
        tap_ok(batches, "%s %s transposes %d: so are those of a batch", b->ops->kind, product->kernel, transposes);
        for (int64_t k = 2 * LEAF; k <= PARTS * LEAF && product->leaf.few; k += LEAF - 6) {
            problem p = problem_make(b, product, 130, 67, k, transposes, 1);
            sides &= is_rounded(&p, PARTS);
            problem_free(&p);
        }
        if (product->leaf.few)
            tap_ok(sides, "%s %s transposes %d: and those of leaves side by side", b->ops->kind, product->kernel,
                   transposes);
    }
}

/* Several leaves one after the other: their sum is not there before the last one. */
static void test_refusal(bench *b, const gm_product *product)
{
    problem p = problem_make(b, product, 10, 10, 2 * LEAF, 0, 1);
    gm_nonfinite count;
    gm_product_call call = p.call;
    call.acc = lend(b, NULL, (size_t)elements(&p) * sizeof(double));
    call.rounded = lend(b, NULL, sizeof count);
    int status = product->run(b->queue, &call);
    reclaim(b, call.acc, NULL, 0);
    reclaim(b, call.rounded, &count, sizeof count);
    tap_ok(status != GM_OK && count.overflow == 0, "%s %s: leaves that are not side by side are refused", b->ops->kind,
           product->kernel);
    gm_error_clear();
    problem_free(&p);
}

static void test_products(bench *b)
{
    const gm_product *product;
    int rounding = 0;
    for (int i = 0; (product = b->ops->product(b->device, i)) != NULL; i++) {
        if (!product->rounds)
            continue;
        rounding++;
        test_product(b, product);
        test_refusal(b, product);
    }
    tap_ok(rounding > 0, "%s: %d products round", b->ops->kind, rounding);
}

int main(void)
{
    each_device(test_products);
    return tap_done();
}
