/* bench copy - from device memory to device memory: our kernel and what a user would call, in turn. Bytes count twice, read and written.
 *
 * Only buffers several times the cache show the memory: of a smaller copy a part of what was written is still in the cache when the clock stops,
 * however empty it was when the clock started. */
#include "base/log.h"
#include "base/size.h"
#include "kernels/kernels.h"
#include "src/bench.h"

#include <string.h>

enum { BLOCKS = 64, BLOCK = 4096, WORDS = BLOCK / 8 }; /* sizes are multiples of a block */

typedef struct copies {
    gm_bench *bench;
    void *dst, *src;
    int64_t bytes;
    uint64_t key;
} copies;

typedef struct contender {
    const copies *copies;
    gm_copy *copy;
    const char *name;
} contender;

static int run_copy(void *context, gm_queue *queue)
{
    const contender *c = context;
    return c->copy(queue, c->copies->dst, c->copies->src, (size_t)c->copies->bytes);
}

/* Blocks from all over dst, the first and the last among them, against the numbers that src was made of. */
static int check_copy(const contender *c)
{
    const copies *x = c->copies;
    const gm_device_ops *ops = x->bench->ops;
    uint64_t right[WORDS];
    void *got = NULL;
    int status = ops->zero(x->bench->queue, x->dst, (size_t)x->bytes);
    if (!status)
        status = run_copy((void *)c, x->bench->queue);
    if (!status)
        status = ops->pin(x->bench->device, BLOCK, &got);
    for (int i = 0; i < BLOCKS && !status; i++) {
        int64_t at = (x->bytes - BLOCK) / (BLOCKS - 1) * i / BLOCK * BLOCK;
        at = i == BLOCKS - 1 ? x->bytes - BLOCK : at;
        status = ops->copy_out(x->bench->queue, got, BLOCK, (const char *)x->dst + at, BLOCK, BLOCK, 1);
        if (!status)
            status = ops->queue_sync(x->bench->queue);
        gm_cpu_random(right, GM_U64, 0, GM_DISTRIBUTION_UNIFORM, x->key, at / 8, WORDS);
        if (!status && memcmp(got, right, BLOCK) != 0)
            status = gm_fail(GM_ECHECK, "bench copy: %s: wrong bytes in the block at %lld of %lld", c->name, (long long)at, (long long)x->bytes);
    }
    ops->unpin(x->bench->device, got);
    return status;
}

static int measure_heat(copies *x, gm_heat heat, int by_size)
{
    gm_bench *bench = x->bench;
    const gm_measure_ops *measure = bench->measure;
    const contender contenders[2] = {{x, measure->copy, "copy"}, {x, measure->copy_rival, measure->copy_rival_name}};
    gm_subject subjects[2];
    gm_timing timings[2];
    char size[GM_SIZE_TEXT];
    int count = measure->copy_rival ? 2 : 1;
    for (int i = 0; i < count; i++)
        subjects[i] = (gm_subject){run_copy, (void *)&contenders[i]};
    int status = gm_bench_time(bench, subjects, count, by_size ? GM_WARM : heat, timings); /* large buffers flush the cache themselves */
    for (int i = 0; i < count && !status; i++) {
        status = check_copy(&contenders[i]);
        gm_bench_row row = {.test = "copy", .heat = heat, .timing = timings[i], .work = 2.0 * (double)x->bytes, .unit = gm_unit_bytes,
                            .limit = heat == GM_COLD ? bench->job->info.memory_limit : 0, .max_error = -1, .mean_error = -1};
        if (i == 0 && count > 1 && timings[1].median > 0)
            row.rival = row.work / timings[1].median;
        snprintf(row.variant, sizeof row.variant, "%s", contenders[i].name);
        snprintf(row.kernel, sizeof row.kernel, "%s", contenders[i].name);
        snprintf(row.shape, sizeof row.shape, "%s", gm_size_format(x->bytes, size));
        if (!status)
            status = gm_bench_add(bench, &row);
    }
    return status;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    copies x = {.bench = bench, .bytes = bytes, .key = gm_random_key(1, 2)};
    int by_size = 2 * bytes >= 4 * bench->cache_bytes;
    int status = bench->ops->alloc(bench->device, (size_t)bytes, &x.src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)bytes, &x.dst);
    if (!status)
        status = gm_bench_fill(bench, x.src, GM_U64, bytes / BLOCK, WORDS, WORDS, x.key);
    if (!status && 2 * bytes <= bench->cache_bytes)
        status = measure_heat(&x, GM_WARM, 0);
    if (!status && (by_size || bench->measure->flush))
        status = measure_heat(&x, GM_COLD, by_size);
    bench->ops->free(bench->device, x.dst);
    bench->ops->free(bench->device, x.src);
    return status;
}

/* One that fits the cache, a middle one, and large ones, cut down to what may be used. */
static void default_sizes(const gm_bench *bench, int64_t *sizes, int *count)
{
    const int64_t wanted[] = {bench->cache_bytes / 8, INT64_C(64) << 20, INT64_C(1) << 30, INT64_C(4) << 30};
    *count = 0;
    for (int i = 0; i < (bench->ops->unified ? 3 : 4); i++) {
        int64_t size = BLOCK;
        while (2 * size <= wanted[i] && 4 * size <= gm_bench_room(bench))
            size *= 2;
        if (*count == 0 || size > sizes[*count - 1])
            sizes[(*count)++] = size;
    }
}

int gm_bench_copy(gm_bench *bench)
{
    int64_t sizes[GM_BENCH_SIZES];
    int count = 0, status = GM_OK;
    if (!bench->measure->copy) {
        gm_note("bench copy: not supported on a device of kind %s", bench->ops->kind);
        return GM_OK;
    }
    if (bench->job->options->shapes)
        status = gm_bench_parse_sizes(bench, "copy", BLOCK, sizes, &count);
    else
        default_sizes(bench, sizes, &count);
    for (int i = 0; i < count && !status; i++)
        status = measure_size(bench, sizes[i]);
    return status;
}
