/* bench copy - from device memory to device memory: the program's kernel and the call that a user would choose. Bytes
 * count twice, as read and as written.
 *
 * Only buffers several times the cache show the speed of memory: of a smaller copy a part of the written bytes is still
 * in the cache when the time ends. */
#include "base/size.h"
#include "kernels/host.h"
#include "src/bench/bench.h"

#include <string.h>

enum { BLOCKS = 64, BLOCK = 4096, WORDS = BLOCK / 8 }; /* sizes are multiples of a block */

typedef struct copies {
    gm_bench *bench;
    void *dst, *src;
    int64_t bytes;
    uint64_t key;
} copies;

typedef struct candidate {
    const copies *copies;
    gm_copy *copy;
    const char *name;
} candidate;

static int run_copy(void *context, gm_queue *queue)
{
    const candidate *c = context;
    return c->copy(queue, c->copies->dst, c->copies->src, (size_t)c->copies->bytes);
}

/* Compares blocks from all over dst, the first and the last among them, with the random numbers in src. */
static int check_copy(const candidate *c)
{
    const copies *x = c->copies;
    const gm_device_ops *ops = x->bench->ops;
    uint64_t right[WORDS];
    void *got = NULL;
    int status = ops->zero(x->bench->queue, x->dst, (size_t)x->bytes);
    if (!status)
        status = run_copy((void *)c, x->bench->queue);
    if (!status)
        status = ops->host_alloc(x->bench->device, BLOCK, &got);
    for (int i = 0; i < BLOCKS && !status; i++) {
        int64_t at = (x->bytes - BLOCK) / (BLOCKS - 1) * i / BLOCK * BLOCK;
        at = i == BLOCKS - 1 ? x->bytes - BLOCK : at;
        status = ops->copy_out(x->bench->queue, got, BLOCK, (const char *)x->dst + at, BLOCK, BLOCK, 1);
        if (!status)
            status = ops->queue_sync(x->bench->queue);
        gm_cpu_random(right, GM_DTYPE_U64, 0, GM_DISTRIBUTION_UNIFORM, x->key, at / 8, WORDS);
        if (!status && memcmp(got, right, BLOCK) != 0)
            status = gm_fail(GM_ECHECK, "bench copy: %s: wrong bytes in the block at offset %lld of %lld", c->name,
                             (long long)at, (long long)x->bytes);
    }
    ops->host_free(x->bench->device, got);
    return status;
}

static int measure_cache(copies *x, gm_bench_cache cache)
{
    gm_bench *bench = x->bench;
    const gm_measure_ops *measure = bench->measure;
    const candidate candidates[2] = {{x, measure->copy, "copy"}, {x, measure->copy_rival, measure->copy_rival_name}};
    gm_bench_case cases[2];
    gm_bench_timing timings[2];
    int count = measure->copy_rival ? 2 : 1;
    for (int i = 0; i < count; i++)
        cases[i] = (gm_bench_case){run_copy, (void *)&candidates[i]};
    int status = gm_bench_time(bench, cases, count, cache.flush, timings);
    for (int i = 0; i < count && !status; i++) {
        const char *name = candidates[i].name;
        gm_bench_row row = gm_bench_row_make(bench, name, name, cache.state, &timings[i]);
        row.work = 2.0 * (double)x->bytes;
        row.computed = gm_bench_memory_limit(bench, cache.state);
        if (i == 0 && count > 1 && timings[1].median > 0)
            row.rival = row.work / timings[1].median;
        row.x = (double)x->bytes;
        row.x_name = "bytes";
        gm_size_format(x->bytes, row.shape);
        status = check_copy(&candidates[i]);
        if (!status)
            status = gm_bench_add(bench, &row);
    }
    return status;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    copies x = {.bench = bench, .bytes = bytes, .key = gm_random_key(1, 2)};
    gm_bench_cache caches[GM_CACHE_STATES];
    int count = gm_bench_cache_states(bench, 2 * bytes, 2 * bytes, caches);
    int status = bench->ops->alloc(bench->device, (size_t)bytes, &x.src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)bytes, &x.dst);
    if (!status)
        status = gm_bench_fill(bench, x.src, GM_DTYPE_U64, bytes / BLOCK, WORDS, WORDS, x.key);
    for (int i = 0; i < count && !status; i++)
        status = measure_cache(&x, caches[i]);
    bench->ops->free(bench->device, x.dst);
    bench->ops->free(bench->device, x.src);
    return status;
}

int gm_bench_copy(gm_bench *bench)
{
    /* One that fits the cache, a medium one, and large ones, cut down to the memory that is left. */
    const int64_t wanted[] = {bench->cache_bytes / 8, INT64_C(64) << 20, gm_bench_wanted(bench, INT64_C(1) << 30),
                              gm_bench_wanted(bench, INT64_C(4) << 30)};
    int64_t sizes[sizeof wanted / sizeof wanted[0]];
    int count = 0;
    if (!bench->measure->copy)
        return gm_bench_skip(bench, NULL);
    for (int i = 0; i < (bench->ops->unified ? 3 : 4); i++) {
        int64_t size = BLOCK;
        while (2 * size <= wanted[i] && 4 * size <= gm_bench_room(bench))
            size *= 2;
        if (count == 0 || size > sizes[count - 1])
            sizes[count++] = size;
    }
    return gm_bench_each_size(bench, BLOCK, sizes, count, measure_size);
}
