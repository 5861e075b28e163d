/* The cases of bench shared that move elements through shared memory, and those of the carve-out. */
#include "base/size.h"
#include "src/bench/lab/shared.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 8 /* that are compared */, REREADS = 128, WORD = 16 };

static int run_copy(const gm_lab_case *self, gm_queue *queue)
{
    const gm_bench_pair *pair = &((const gm_shared_test *)self->test)->pair;
    return pair->bench->measure->copy(queue, pair->dst, pair->src, (size_t)pair->size);
}

static int run_move(const gm_lab_case *self, gm_queue *queue)
{
    const gm_shared_test *t = self->test;
    return t->pair.bench->measure->shared_move(queue, self->call);
}

static int move_cleared(const gm_lab_case *self)
{
    const gm_bench_pair *pair = &((const gm_shared_test *)self->test)->pair;
    int status = pair->bench->ops->zero(pair->bench->queue, pair->dst, (size_t)pair->size);
    return status ? status : self->run(self, pair->bench->queue);
}

/* Parts of the result, spread over all of it, must be those of src in the opposite order: of `count` elements of
 * `bytes` bytes each, from byte `from` on. */
static int expect_reversed(const gm_lab_case *self, int64_t from, int64_t count, int64_t part, int64_t bytes)
{
    const gm_bench_pair *pair = &((const gm_shared_test *)self->test)->pair;
    char *right = malloc((size_t)(2 * part * bytes)), *source = right + part * bytes;
    int status = right ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the elements to compare");
    for (int64_t i = 0; i < PARTS && !status; i++) {
        int64_t at = from + (count / part - 1) * i / (PARTS - 1) * part * bytes;
        gm_bench_pair_source(pair, at, part * bytes, source);
        for (int64_t e = 0; e < part; e++)
            memcpy(right + e * bytes, source + (part - 1 - e) * bytes, (size_t)bytes);
        status = gm_lab_expect(pair->bench, self, (const char *)pair->dst + at, right, part * bytes, "an element");
    }
    free(right);
    return status;
}

static int check_reversal(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const gm_shared_move_call *c = self->call;
    int status = move_cleared(self);
    (void)max_error, (void)mean_error;
    if (!status)
        status = expect_reversed(self, 0, c->count, GM_SHARED_PART, 4);
    if (!status && c->kind == GM_REVERSE_ARRAYS)
        status = expect_reversed(self, 4 * c->count, c->count, GM_SHARED_PART, 4);
    if (!status && c->kind == GM_REVERSE_ARRAYS)
        status = expect_reversed(self, 8 * c->count, c->count, GM_SHARED_PART, 1);
    return status;
}

/* A case that reads and writes `bytes` bytes of the pair. limit: as of gm_lab_case. */
static gm_lab_case *add_move(gm_shared_test *t, const char *panel, const char *kernel, const char *variant,
                             int64_t bytes, int limit)
{
    char size[GM_SIZE_TEXT];
    gm_lab_case *c = gm_shared_add(t, panel, kernel, variant);
    c->cache = gm_lab_cache(t->pair.bench, 2 * t->pair.size);
    c->work = 2.0 * (double)bytes;
    c->computed = gm_lab_memory_limit(t->pair.bench, 2 * t->pair.size);
    c->limit = limit;
    snprintf(c->shape, sizeof c->shape, "%s", gm_size_format(bytes, size));
    return c;
}

/* Returns the limit of those that follow: the copy. */
static int add_moves(gm_shared_test *t)
{
    static const struct {
        const char *name;
        gm_shared_move_kind kind;
    } moves[] = {{"reverse, not shared", GM_REVERSE_DIRECT},
                 {"reverse, static", GM_REVERSE_STATIC},
                 {"reverse, dynamic", GM_REVERSE_DYNAMIC},
                 {"reverse, three arrays", GM_REVERSE_ARRAYS}};
    add_move(t, "reversal", "copy", "copy", t->pair.size, 0)->run = run_copy;
    int limit = t->count;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        int three = moves[i].kind == GM_REVERSE_ARRAYS;
        int64_t count = t->pair.size / (three ? 9 : 4) / GM_SHARED_PART * GM_SHARED_PART;
        gm_lab_case *c = add_move(t, "reversal", "shared_move", moves[i].name, three ? 9 * count : 4 * count, limit);
        gm_shared_call_of(t, c)->move = (gm_shared_move_call){
            .kind = moves[i].kind, .count = count, .src = t->pair.src, .dst = t->pair.dst};
        c->run = run_move;
        c->check = check_reversal;
    }
    return limit;
}

/* --- The carve-out --- */

static int run_carveout(const gm_lab_case *self, gm_queue *queue)
{
    const gm_shared_test *t = self->test;
    return t->pair.bench->measure->carveout(queue, self->call);
}

static int check_stages(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const gm_carveout_call *c = self->call;
    int status = move_cleared(self);
    int64_t part = GM_CARVEOUT_STAGE / WORD;
    (void)max_error, (void)mean_error;
    return status ? status : expect_reversed(self, 0, part * c->blocks, part, WORD);
}

/* The sums of the last block. The lanes of a warp change places, so that they all sum the same words. */
static int check_windows(const gm_lab_case *self, double *max_error, double *mean_error)
{
    enum { WORDS = GM_CARVEOUT_WINDOW / 4, THREADS = GM_CARVEOUT_THREADS };
    const gm_bench_pair *pair = &((const gm_shared_test *)self->test)->pair;
    const gm_carveout_call *c = self->call;
    int64_t last = c->blocks - 1;
    uint32_t *words = malloc(GM_CARVEOUT_WINDOW), right[THREADS] = {0};
    int status = words ? move_cleared(self) : gm_fail(GM_EDEVICE, "no memory for the elements to compare");
    (void)max_error, (void)mean_error;
    if (!status) {
        gm_bench_pair_source(pair, last * GM_CARVEOUT_WINDOW, GM_CARVEOUT_WINDOW, words);
        for (int i = 0; i < WORDS; i++)
            right[i / 4 % THREADS / 32 * 32] += words[i] * (uint32_t)(REREADS / 32);
        for (int i = 0; i < THREADS; i++)
            right[i] = right[i / 32 * 32];
        status = gm_lab_expect(pair->bench, self, c->out + last * THREADS, right, sizeof right, "a sum");
    }
    free(words);
    return status;
}

/* Each preference of the two kernels: one whose data fit the L1 cache, unless shared memory takes it, and one that
 * needs shared memory for its blocks. */
static void add_carveouts(gm_shared_test *t, int limit)
{
    gm_bench *bench = t->pair.bench;
    for (int stages = 0; stages < 2; stages++)
        for (int percent = 0; percent <= 100; percent += 25) {
            int64_t part = stages ? GM_CARVEOUT_STAGE : GM_CARVEOUT_WINDOW, blocks = t->pair.size / part;
            if (!stages)
                blocks = gm_min(blocks, gm_max(bench->job->info.multiprocessors, 1));
            gm_lab_case *c = add_move(t, stages ? "carve-out, 48 KiB blocks" : "carve-out, 96 KiB again", "carveout",
                                      stages ? "48 KiB in shared memory" : "96 KiB again and again", blocks * part,
                                      stages ? limit : 0);
            gm_shared_call_of(t, c)->carveout = (gm_carveout_call){.stages = stages,
                                                                   .percent = percent,
                                                                   .blocks = (int)blocks,
                                                                   .rounds = REREADS,
                                                                   .src = t->pair.src,
                                                                   .dst = t->pair.dst,
                                                                   .out = t->pair.dst};
            c->run = run_carveout;
            c->check = stages ? check_stages : check_windows;
            if (!stages) {
                c->work *= REREADS / 2.0; /* reads only */
                c->cache = GM_CACHE_WARM;
                c->computed = gm_lab_l1_limit(bench);
            }
            snprintf(c->shape, sizeof c->shape, "%d %% shared", percent);
            c->x = percent + 1;
            c->x_name = "1 + preferred shared memory, percent";
        }
}

void gm_shared_add_moves(gm_shared_test *t)
{
    add_carveouts(t, add_moves(t));
}
