/* bench shared - shared memory: its banks, over the stride of each width, by broadcast and by columns of a tile;
 * elements that change places through it; how much of the L1 cache it takes. */
#include "base/size.h"
#include "src/bench/lab/shared.h"

#include <stdlib.h>

enum {
    BANKS = 32, /* of 4 bytes each, for the 32 lanes of a warp */
    BLOCK = GM_SHARED_THREADS,
    LOADS = 16 * 1024, /* of a thread, over the passes that a load takes */
};
static const int64_t least = INT64_C(32) << 20; /* bytes of a buffer */

static const struct {
    const char *name;
    int bytes, loads;
} reads[GM_SHARED_READS] = {[GM_SHARED_U8] = {"u8", 1, GM_SHARED_LOADS},
                            [GM_SHARED_U16] = {"u16", 2, GM_SHARED_LOADS},
                            [GM_SHARED_U32] = {"u32", 4, GM_SHARED_LOADS},
                            [GM_SHARED_U64] = {"u64", 8, GM_SHARED_LOADS},
                            [GM_SHARED_U128] = {"u128", 16, GM_SHARED_LOADS},
                            [GM_SHARED_COLUMNS] = {"columns of [32][32]", 4, GM_SHARED_TILE},
                            [GM_SHARED_PADDED_COLUMNS] = {"columns of [32][33]", 4, GM_SHARED_TILE}};

/* The words that the bank with most of them must give: passes of a load of one warp. Lanes with the same word share it.
 */
static int passes_of(int bytes, int stride, int share)
{
    char seen[GM_SHARED_WORDS] = {0};
    int words[BANKS] = {0}, passes = 0;
    for (int lane = 0; lane < 32; lane++)
        for (int at = lane / share * stride * bytes, end = at + bytes; at < end; at += (int)gm_min(bytes, 4)) {
            int bank = at / 4 % BANKS;
            words[bank] += !seen[at / 4];
            seen[at / 4] = 1;
            passes = (int)gm_max(passes, words[bank]);
        }
    return passes;
}

static int run_read(const gm_lab_case *self, gm_queue *queue)
{
    const gm_shared_test *t = self->test;
    return t->pair.bench->measure->shared_read(queue, self->call);
}

/* The sum that a lane makes in a round. */
static uint32_t round_sum(const gm_shared_read_call *c, int lane)
{
    uint32_t sum = 0;
    int bytes = reads[c->kind].bytes;
    for (int u = 0; u < reads[c->kind].loads; u++) {
        int at = lane / c->share * c->stride * bytes + u * GM_SHARED_ROW;
        if (c->kind >= GM_SHARED_COLUMNS)
            at = 4 * (lane * GM_SHARED_TILE + u);
        uint32_t word = gm_shared_word((uint32_t)at / 4) >> at % 4 * 8;
        sum += bytes == 1 ? word & 0xff : bytes == 2 ? word & 0xffff : word;
        for (int more = 4; more < bytes; more += 4)
            sum += gm_shared_word((uint32_t)(at + more) / 4);
    }
    return sum;
}

static int check_read(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const gm_shared_test *t = self->test;
    const gm_shared_read_call *c = self->call;
    gm_bench *bench = t->pair.bench;
    uint32_t right[BLOCK];
    int status = bench->ops->zero(bench->queue, c->out, (size_t)c->blocks * sizeof right);
    if (!status)
        status = run_read(self, bench->queue);
    (void)max_error, (void)mean_error;
    for (int i = 0; i < BLOCK; i++)
        right[i] = (uint32_t)c->rounds * round_sum(c, i % 32);
    return status ? status
                  : gm_lab_expect(bench, self, c->out + (int64_t)(c->blocks - 1) * BLOCK, right, sizeof right, "a sum");
}

static gm_lab_case *add_read(gm_shared_test *t, const char *panel, gm_shared_kind kind, int stride, int share)
{
    const gm_bench *bench = t->pair.bench;
    gm_lab_case *c = gm_shared_add(t, panel, "shared_read", reads[kind].name);
    int passes = passes_of(reads[kind].bytes, stride, share);
    gm_shared_read_call *call = &gm_shared_call_of(t, c)->read;
    *call = (gm_shared_read_call){.kind = kind,
                                  .stride = stride,
                                  .share = share,
                                  .rounds = LOADS / reads[kind].loads / passes,
                                  .blocks = (int)gm_max(bench->job->info.multiprocessors, 1),
                                  .out = t->pair.dst};
    c->run = run_read;
    c->check = check_read;
    c->work = (double)call->blocks * BLOCK * call->rounds * reads[kind].loads * reads[kind].bytes;
    c->computed = gm_lab_l1_limit(bench);
    snprintf(c->shape, sizeof c->shape, "by %d, %d pass%s", stride, passes, passes > 1 ? "es" : "");
    return c;
}

static void add_strides(gm_shared_test *t)
{
    for (int kind = GM_SHARED_U8; kind <= GM_SHARED_U128; kind++)
        for (int stride = 1; stride <= GM_SHARED_STRIDE; stride++) {
            gm_lab_case *c = add_read(t, "stride", (gm_shared_kind)kind, stride, 1);
            c->x = stride;
            c->x_name = "stride, words of each width";
        }
}

/* Words that several lanes read: each is loaded once, and all lanes get it. */
static void add_shares(gm_shared_test *t)
{
    static const struct {
        const char *name;
        int share;
    } shares[] = {{"each its own word", 1},
                  {"multicast to 2", 2},
                  {"multicast to 4", 4},
                  {"multicast to 8", 8},
                  {"broadcast", 32}};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        gm_lab_case *c = add_read(t, "broadcast", GM_SHARED_U32, 1, shares[i].share);
        snprintf(c->variant, sizeof c->variant, "%s", shares[i].name);
        snprintf(c->shape, sizeof c->shape, "u32, 1 pass");
    }
    add_read(t, "columns", GM_SHARED_COLUMNS, GM_SHARED_TILE, 1);
    add_read(t, "columns", GM_SHARED_PADDED_COLUMNS, GM_SHARED_TILE + 1, 1);
}

static int measure_all(gm_bench *bench, gm_shared_test *t)
{
    int status = gm_bench_pair_open(bench, gm_lab_size(bench), &t->pair);
    if (!status) {
        add_strides(t);
        add_shares(t);
        gm_shared_add_moves(t);
        status = gm_lab_measure(bench, t->cases, t->count);
    }
    gm_bench_pair_close(&t->pair);
    return status;
}

int gm_bench_shared(gm_bench *bench)
{
    if (!bench->measure->shared_read || !bench->measure->copy)
        return gm_bench_skip(bench, "it has no shared memory");
    if (bench->job->options->shapes)
        return gm_fail(GM_EUSAGE, "--shapes: bench shared has no shapes");
    if (gm_lab_size(bench) < least)
        return gm_bench_skip(bench, "less than 80 MiB of its memory are free");
    gm_shared_test *t = calloc(1, sizeof *t);
    int status = t ? measure_all(bench, t) : gm_fail(GM_EDEVICE, "no memory for the cases");
    free(t);
    return status;
}
