/* Operations that move elements, beside a copy of as many bytes. */
#include "src/bench/operations/moves.h"

#include "base/size.h"

#include <string.h>

enum { BLOCKS = 64, BLOCK = 4096 /* bytes of the result that are checked together */ };

int gm_bench_each_move_size(gm_bench *bench, int (*measure)(gm_bench *bench, int64_t bytes))
{
    const int64_t wanted = gm_bench_wanted(bench, INT64_C(8) << 30);
    int64_t size = GM_BENCH_PAIR_UNIT;
    while (2 * size <= wanted && 5 * size <= gm_bench_room(bench))
        size *= 2;
    return gm_bench_each_size(bench, GM_BENCH_PAIR_UNIT, &size, 1, measure);
}

typedef struct candidate {
    const gm_bench_pair *pair;
    const gm_bench_move *move;
} candidate;

static int run_move(void *context, gm_queue *queue)
{
    const candidate *c = context;
    return c->move->run(c->move, queue, c->pair->dst, c->pair->src);
}

static int run_copy(void *context, gm_queue *queue)
{
    const candidate *c = context;
    return c->pair->bench->measure->copy(queue, c->pair->dst, c->pair->src,
                                         (size_t)(c->move->elements * c->move->bytes));
}

/* Compares elements [at, at + count) of the result, which fill a block at most. */
static int check_block(const candidate *c, int64_t at, int64_t count)
{
    const gm_bench_move *move = c->move;
    char got[BLOCK], right[BLOCK];
    int status = gm_bench_download(c->pair->bench, got, (const char *)c->pair->dst + at * move->bytes,
                                   (size_t)(count * move->bytes));
    for (int64_t i = 0; i < count && !status; i++) {
        gm_bench_pair_source(c->pair, move->origin(move, at + i) * move->bytes, move->bytes, right);
        if (memcmp(got + i * move->bytes, right, (size_t)move->bytes) != 0)
            status = gm_fail(GM_ECHECK, "bench %s: %s: element %lld of %s is wrong", c->pair->bench->test,
                             move->variant, (long long)(at + i), move->shape);
    }
    return status;
}

/* Moves once more and checks blocks from all over the result, its first and its last elements among them. */
static int check(const candidate *c)
{
    const gm_bench *bench = c->pair->bench;
    int64_t n = c->move->elements, block = gm_min(n, BLOCK / c->move->bytes);
    int status = bench->ops->zero(bench->queue, c->pair->dst, (size_t)(n * c->move->bytes));
    if (!status)
        status = run_move((void *)c, bench->queue);
    for (int i = 0; i < BLOCKS && !status; i++)
        status = check_block(c, i == BLOCKS - 1 ? n - block : (n - block) / (BLOCKS - 1) * i, block);
    return status;
}

static int measure_cache(const candidate *c, gm_bench_cache cache)
{
    gm_bench *bench = c->pair->bench;
    gm_bench_case cases[2] = {{run_move, (void *)c}, {run_copy, (void *)c}};
    gm_bench_timing timings[2];
    double bytes = 2.0 * (double)(c->move->elements * c->move->bytes);
    int status = gm_bench_time(bench, cases, 2, cache.flush, timings);
    if (!status)
        status = check(c);
    if (status)
        return status;
    gm_bench_row row = gm_bench_row_make(bench, c->move->variant, bench->test, cache.state, &timings[0]);
    row.work = bytes + (double)c->move->more;
    row.computed = gm_bench_memory_limit(bench, cache.state);
    row.measured = timings[1].median > 0 ? bytes / timings[1].median : 0;
    row.measured_of = "copy";
    memcpy(row.shape, c->move->shape, sizeof row.shape);
    return gm_bench_add(bench, &row);
}

int gm_bench_moves_measure(const gm_bench_pair *pair, const gm_bench_move *move)
{
    gm_bench_cache caches[GM_CACHE_STATES];
    candidate c = {pair, move};
    int64_t bytes = move->elements * move->bytes;
    int count = gm_bench_cache_states(pair->bench, 2 * bytes, 2 * bytes, caches), status = GM_OK;
    for (int i = 0; i < count && !status; i++)
        status = measure_cache(&c, caches[i]);
    return status;
}
