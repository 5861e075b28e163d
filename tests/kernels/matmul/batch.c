/* Products and probes of a batch against the same ones alone: the same bits, and nothing else is written. */
#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "tests/kernels/each.h"

/* PAD: elements after a row and after a product that must stay as they are. */
enum { BATCH = 5, PAD = 16, LEAF = 128, GUARD = 1 << 16 };

/* BATCH operands or results, each of rows x ld elements and PAD more, of random numbers. */
typedef struct stack {
    int64_t rows, ld, next;
    size_t size, bytes;
    void *host, *device;
} stack;

static stack stack_make(bench *b, int64_t rows, int64_t cols, gm_dtype type)
{
    int64_t ld = gm_round_up(cols, 16) + PAD;
    stack s = {.rows = rows, .ld = ld, .next = rows * ld + 2 * PAD, .size = gm_dtype_size(type)};
    uint64_t state = 11;
    s.bytes = (size_t)(BATCH * s.next) * s.size;
    s.host = host_memory(s.bytes);
    for (int64_t i = 0; i < BATCH * s.next; i++)
        random_element(&state, type, 0, (unsigned char *)s.host + (size_t)i * s.size);
    s.device = lend(b, s.host, s.bytes);
    return s;
}

static void stack_free(bench *b, stack *s)
{
    reclaim(b, s->device, NULL, 0);
    free(s->host);
}

static const void *at(const stack *s, int64_t index)
{
    return (const char *)s->device + (size_t)(index * s->next) * s->size;
}

/* The work space of an operand of so many lines, and GUARD bytes after it that must stay as they are. */
typedef struct room {
    size_t bytes;
    unsigned char *host;
    void *device;
} room;

static room room_make(bench *b, const gm_product *product, int64_t lines, int64_t k)
{
    room r = {.bytes = gm_split_lay(&product->work, lines, k, LEAF, 0).bytes};
    r.host = host_memory(r.bytes + GUARD);
    memset(r.host, 0xa5, r.bytes + GUARD);
    r.device = lend(b, r.host, r.bytes + GUARD);
    return r;
}

static int room_free(bench *b, room *r)
{
    int intact = 1;
    reclaim(b, r->device, r->host, r->bytes + GUARD);
    for (size_t i = r->bytes; i < r->bytes + GUARD; i++)
        intact = intact && r->host[i] == 0xa5;
    free(r->host);
    return intact;
}

/* Runs the call on a copy of acc, as one batch or product by product; returns what is in acc then. */
static char *multiply(bench *b, const gm_product *product, gm_product_call call, const stack *acc, int together)
{
    char *host = host_memory(acc->bytes), *device = lend(b, acc->host, acc->bytes);
    const char *a_base = call.a, *b_base = call.b;
    size_t operand = gm_dtype_size(product->operand);
    call.acc = device;
    call.batch = together ? BATCH : 0;
    if (together)
        must(product->run(b->queue, &call));
    for (int64_t i = 0; i < BATCH && !together; i++) {
        call.a = a_base + (size_t)(i * call.next_a) * operand;
        call.b = b_base + (size_t)(i * call.next_b) * operand;
        call.acc = device + (size_t)(i * acc->next) * acc->size;
        must(product->run(b->queue, &call));
    }
    reclaim(b, device, host, acc->bytes);
    return host;
}

static void test_product(bench *b, const gm_product *product, int64_t m, int64_t n, int64_t k)
{
    int same = 1, intact = 1, count = 0;
    int64_t tile_count = 2 * product->wants_tiles;
    size_t bytes = (size_t)(tile_count * product->tile * product->tile) * gm_dtype_size(product->accumulator);
    void *tiles_host = host_memory(bytes), *tiles = lend(b, tiles_host, bytes);
    for (int way = 0; way < 32; way += getenv("GPUMEM_TEST_MEMCHECK") ? 11 : 1) {
        if (!is_due())
            continue;
        int ta = way & 1, tb = way >> 1 & 1, shared = way >> 2 & 3;
        stack a = stack_make(b, ta ? k : m, ta ? m : k, product->operand);
        stack o = stack_make(b, tb ? n : k, tb ? k : n, product->operand);
        stack acc = stack_make(b, m, n, product->accumulator);
        room rooms[] = {room_make(b, product, shared & 1 ? m : BATCH * m, k),
                        room_make(b, product, shared & 2 ? n : BATCH * n, k)};
        gm_product_call call = {.m = m,
                                .n = n,
                                .k = k,
                                .transpose_a = ta,
                                .transpose_b = tb,
                                .a = at(&a, 0),
                                .lda = a.ld,
                                .b = at(&o, 0),
                                .ldb = o.ld,
                                .ldacc = acc.ld,
                                .leaf = LEAF,
                                .tile = product->tile,
                                .tiles = tiles,
                                .tile_count = tile_count,
                                .work = {rooms[0].device, rooms[1].device},
                                .accumulate = way >> 4,
                                .next_a = shared & 1 ? 0 : a.next,
                                .next_b = shared & 2 ? 0 : o.next,
                                .next_acc = acc.next};
        char *one = multiply(b, product, call, &acc, 0), *all = multiply(b, product, call, &acc, 1);
        same &= memcmp(one, all, acc.bytes) == 0;
        count++;
        for (int i = 0; i < 2; i++)
            intact &= room_free(b, &rooms[i]);
        free(one);
        free(all);
        stack_free(b, &a);
        stack_free(b, &o);
        stack_free(b, &acc);
    }
    reclaim(b, tiles, NULL, 0);
    free(tiles_host);
    tap_ok(same && intact, "%s %s, %d batches of %lld x %lld x %lld: the bits of each product alone", b->ops->kind,
           product->kernel, count, (long long)m, (long long)n, (long long)k);
}

/* All six outputs, [BATCH][2 PAD more than they need] each. */
static double *probe(bench *b, gm_probe_call call, int64_t next, int together)
{
    size_t bytes = (size_t)(6 * BATCH * next) * sizeof(double);
    double *host = host_memory(bytes), *device;
    for (int64_t i = 0; i < 6 * BATCH * next; i++)
        host[i] = (double)i;
    device = lend(b, host, bytes);
    double **out[] = {&call.r, &call.r_abs, &call.r_sq, &call.s, &call.s_abs, &call.s_sq};
    const gm_probe_call first = call;
    call.batch = together ? BATCH : 1;
    for (int64_t i = 0; i < (together ? 1 : BATCH); i++) {
        call.m = (const char *)first.m + (size_t)i * call.next_m;
        call.p = first.p + i * call.next_p;
        call.q = first.q + i * call.next_q;
        for (int o = 0; o < 6; o++)
            *out[o] = o == 4 ? NULL : device + (o * BATCH + i) * next;
        must(b->ops->probe(b->queue, &call));
    }
    reclaim(b, device, host, bytes);
    return host;
}

static void test_probe(bench *b, int64_t rows, int64_t cols)
{
    stack m = stack_make(b, rows, cols, GM_DTYPE_F32), vectors = stack_make(b, 2, rows + cols, GM_DTYPE_F64);
    int64_t next = gm_max(rows, cols) + PAD;
    gm_probe_call call = {.rows = rows,
                          .cols = cols,
                          .m = m.device,
                          .pitch = (size_t)m.ld * m.size,
                          .type = GM_DTYPE_F32,
                          .p = at(&vectors, 0),
                          .q = at(&vectors, 1),
                          .next_m = (size_t)m.next * m.size,
                          .next_p = 3,
                          .next_q = 0,
                          .next_r = next,
                          .next_s = next};
    double *one = probe(b, call, next, 0), *all = probe(b, call, next, 1);
    tap_ok(memcmp(one, all, (size_t)(6 * BATCH * next) * sizeof(double)) == 0,
           "%s a probe of %d matrices of %lld x %lld: the bits of each alone", b->ops->kind, BATCH, (long long)rows,
           (long long)cols);
    free(one);
    free(all);
    stack_free(b, &m);
    stack_free(b, &vectors);
}

static void test_batches(bench *b)
{
    static const int64_t shapes[][3] = {{64, 64, 64}, {1, 1, 1}, {3, 70, 300}, {200, 130, 129}, {128, 256, 0}};
    const gm_product *product;
    for (int i = 0; (product = b->ops->product(b->device, i)) != NULL; i++)
        for (int s = 0; s < 5 && product->batches; s++)
            test_product(b, product, shapes[s][0], shapes[s][1], shapes[s][2]);
    test_probe(b, 64, 64);
    test_probe(b, 1, 700);
    test_probe(b, 300, 3);
}

int main(void)
{
    each_device(test_batches);
    return tap_done();
}
