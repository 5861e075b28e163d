/* bench memory - each kind of memory. The bandwidth: windows that blocks read again and again, a block on each
 * multiprocessor, 16 bytes a thread at once (constant memory: 4); memory beyond the caches once. The limit is a plain
 * read, or the 128 bytes that a multiprocessor takes in a clock; bytes count as threads get them, so a word of constant
 * memory that a warp reads counts 32 times. The latency: one thread follows a chain of addresses; a step of local
 * memory includes the addition of its address. And images, by textures and by loads. */
#include "base/size.h"
#include "kernels/host.h"
#include "src/bench/lab/host.h"
#include "src/bench/lab/lab.h"

#include <stdlib.h>

enum { UNIT = 1 << 20, CASES = 24, MOST_BLOCKS = 256, LINE = 128 /* bytes between places of a chain */ };
enum { L1_WINDOW = 64 << 10, L2_WINDOW = 128 << 10, NEAR = 8 << 10 /* bytes of a chain in L1 */ };
static const int64_t far = 512 << 20, far_chain = 256 << 20, l2_chain = 1 << 20;
static const int64_t host_sizes[] = {32 << 20, 1 << 20}; /* all systems can pin the smaller one */

typedef struct item {
    gm_window_call window;
    gm_space_call space;
    gm_chase_call chase;
    int64_t scale; /* of the links of the chain */
} item;

typedef struct memories {
    gm_bench_pair pair;
    void *host, *mapped; /* pinned host memory, and as kernels see it */
    int64_t host_bytes, blocks;
    uint64_t textures[2]; /* of the windows, and of a chain */
    uint32_t constants[2 * GM_LAB_CONSTANTS];
    int64_t used; /* bytes of pair.dst: chains */
    item items[CASES];
    gm_lab_case cases[CASES];
    int count;
} memories;

static int run_read(const gm_lab_case *self, gm_queue *queue)
{
    const memories *m = self->test;
    return m->pair.bench->measure->read(queue, m->pair.src, (size_t)m->pair.size, m->pair.dst);
}

static int run_window(const gm_lab_case *self, gm_queue *queue)
{
    const memories *m = self->test;
    return m->pair.bench->measure->window(queue, &((const item *)self->call)->window);
}

static int run_space(const gm_lab_case *self, gm_queue *queue)
{
    const memories *m = self->test;
    return m->pair.bench->measure->space(queue, &((const item *)self->call)->space);
}

static int run_chase(const gm_lab_case *self, gm_queue *queue)
{
    const memories *m = self->test;
    return m->pair.bench->measure->chase(queue, &((const item *)self->call)->chase);
}

/* The sum of the words [from, from + bytes) of the pair's source, bytes: multiples of GM_LAB_CHUNK. */
static uint32_t source_sum(const memories *m, int64_t from, int64_t bytes)
{
    uint32_t sum = 0;
#pragma omp parallel for num_threads(m->pair.bench->job->threads) reduction(+ : sum)
    for (int64_t at = 0; at < bytes; at += GM_LAB_CHUNK) {
        uint32_t words[GM_LAB_CHUNK / sizeof(uint32_t)];
        gm_bench_pair_source(&m->pair, from + at, sizeof words, words);
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            sum += words[i];
    }
    return sum;
}

/* Adds up the sums of each block, or of all, and compares them with those of their windows. fixed: all blocks have this
 * sum. */
static int check_sums(const gm_lab_case *self, uint32_t (*dst)[GM_LAB_WARPS], int64_t blocks, int64_t passes,
                      int64_t window, int is_own, const uint32_t *fixed)
{
    const memories *m = self->test;
    gm_bench *bench = m->pair.bench;
    size_t bytes = (size_t)blocks * sizeof *dst;
    uint32_t(*got)[GM_LAB_WARPS] = malloc(bytes), all = 0;
    int status = got ? bench->ops->zero(bench->queue, dst, bytes) : gm_fail(GM_EDEVICE, "no memory for sums");
    if (!status)
        status = self->run(self, bench->queue);
    if (!status)
        status = gm_bench_download(bench, got, dst, bytes);
    for (int64_t b = 0; b < blocks && !status; b++) {
        for (int i = 0; i < GM_LAB_WARPS; i++)
            all += got[b][i];
        if (!is_own && b + 1 < blocks)
            continue;
        if (all != (uint32_t)passes * (fixed ? *fixed : source_sum(m, is_own ? b * window : 0, window)))
            status = gm_fail(GM_ECHECK, "bench %s: %s %s: the sum of block %d is wrong", bench->test, self->variant,
                             self->shape, (int)b);
        all = 0;
    }
    free(got);
    return status;
}

static int check_window(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const memories *m = self->test;
    const gm_window_call *c = &((const item *)self->call)->window;
    uint32_t sum = 0;
    (void)max_error, (void)mean_error;
    for (int64_t i = 0; c->src == m->mapped && i < m->host_bytes / (int64_t)sizeof sum; i++)
        sum += ((const uint32_t *)m->host)[i];
    return check_sums(self, c->dst, c->blocks, c->passes, c->window, c->is_own, c->src == m->mapped ? &sum : NULL);
}

static int64_t window_of(gm_space space)
{
    return space == GM_SPACE_LOCAL     ? (int64_t)GM_LAB_LOCAL_CHUNKS * GM_LAB_CHUNK
           : space == GM_SPACE_SHARED  ? (int64_t)GM_LAB_SHARED_CHUNKS * GM_LAB_CHUNK
           : space == GM_SPACE_TEXTURE ? (int64_t)GM_LAB_TEXTURE_CHUNKS * GM_LAB_CHUNK
                                       : GM_LAB_CONSTANTS * (int64_t)sizeof(uint32_t);
}

static int check_space(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const memories *m = self->test;
    const gm_space_call *c = &((const item *)self->call)->space;
    uint32_t sum = 0;
    (void)max_error, (void)mean_error;
    for (int i = 0; i < GM_LAB_CONSTANTS; i++)
        sum += m->constants[i];
    sum *= 32 * GM_LAB_WARPS; /* each thread reads them all */
    return check_sums(self, c->dst, c->blocks, c->passes, window_of(c->space), 1,
                      c->space == GM_SPACE_CONSTANT ? &sum : NULL);
}

/* Where the chain is after the steps of a call from its begin. */
static int check_chase(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const memories *m = self->test;
    const item *i = self->call;
    gm_bench *bench = m->pair.bench;
    uint64_t right = (uint64_t)(gm_lab_permuted(i->chase.steps & (i->chase.count - 1), i->chase.count) * i->scale);
    int status = bench->ops->zero(bench->queue, i->chase.state, sizeof right);
    if (!status)
        status = run_chase(self, bench->queue);
    (void)max_error, (void)mean_error;
    return status ? status : gm_lab_expect(bench, self, i->chase.state, &right, sizeof right, "the end of the chain");
}

/* A case of bandwidth, of `bytes` bytes in each of its windows. */
static gm_lab_case *add(memories *m, const char *variant, int64_t bytes, double work)
{
    gm_lab_case *c = &m->cases[m->count];
    char size[GM_SIZE_TEXT];
    *c = (gm_lab_case){.test = m,
                       .call = &m->items[m->count++],
                       .work = work,
                       .unit = &gm_bench_unit_bytes,
                       .cache = GM_CACHE_WARM,
                       .computed = gm_lab_l1_limit(m->pair.bench),
                       .panel = "bandwidth"};
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    snprintf(c->shape, sizeof c->shape, "%s", gm_size_format(bytes, size));
    return c;
}

/* An odd number of passes, as the sum over an even one says less. */
static gm_lab_case *add_window(memories *m, const char *variant, int past_l1, int is_own, int64_t window,
                               int64_t passes)
{
    gm_window_call *call = &m->items[m->count].window;
    int64_t blocks = is_own ? m->blocks : gm_min(4 * m->blocks, window / GM_LAB_CHUNK);
    *call = (gm_window_call){.past_l1 = past_l1,
                             .is_own = is_own,
                             .blocks = blocks,
                             .window = window,
                             .passes = passes,
                             .src = m->pair.src,
                             .dst = m->pair.dst};
    gm_lab_case *c = add(m, variant, window, (double)window * (double)passes * (is_own ? (double)blocks : 1));
    c->kernel = "window";
    c->run = run_window;
    c->check = check_window;
    return c;
}

static gm_lab_case *add_space(memories *m, const char *variant, gm_space space, int is_divergent, int64_t passes)
{
    gm_space_call *call = &m->items[m->count].space;
    int64_t threads = space == GM_SPACE_CONSTANT ? 32 * GM_LAB_WARPS : 1; /* that read the whole window */
    *call = (gm_space_call){.space = space,
                            .is_divergent = is_divergent,
                            .blocks = m->blocks,
                            .passes = passes,
                            .texture = m->textures[0],
                            .src = m->pair.src,
                            .dst = m->pair.dst};
    gm_lab_case *c = add(m, variant, window_of(space), (double)(window_of(space) * threads * passes * m->blocks));
    c->kernel = "space";
    c->run = run_space;
    c->check = check_space;
    if (space == GM_SPACE_CONSTANT) /* its width is not documented */
        c->computed = 0;
    return c;
}

static void add_bandwidths(memories *m)
{
    gm_bench *bench = m->pair.bench;
    gm_cache_state cache = gm_lab_cache(bench, m->pair.size);
    gm_lab_case *c = add(m, "read", m->pair.size, (double)m->pair.size);
    c->kernel = "read";
    c->run = run_read;
    c->cache = cache;
    c->computed = gm_lab_memory_limit(bench, m->pair.size);
    if (!bench->measure->window)
        return;
    int64_t window = gm_min(m->pair.size, far);
    c = add_window(m, "global", 1, 0, window, 1);
    c->cache = gm_lab_cache(bench, window);
    c->computed = gm_lab_memory_limit(bench, window);
    c->limit = 1;
    add_window(m, "L2", 1, 1, L2_WINDOW, 127);
    add_window(m, "L1", 0, 1, L1_WINDOW, 511);
    add_space(m, "local", GM_SPACE_LOCAL, 0, 255);
    add_space(m, "shared", GM_SPACE_SHARED, 0, 1023);
    add_space(m, "constant, one word", GM_SPACE_CONSTANT, 0, 63);
    add_space(m, "constant, 32 words", GM_SPACE_CONSTANT, 1, 3);
    add_space(m, "texture", GM_SPACE_TEXTURE, 0, 255);
    c = add_window(m, "host", 1, 0, m->host_bytes, 1);
    c->computed = 0;
    m->items[m->count - 1].window.src = m->mapped;
}

/* Makes a chain of `bytes` bytes in the part of dst that is not used yet, or at `place`, and adds its case. stride 0:
 * of the spaces that hold links of 4 bytes one after the other. */
static int add_chain(memories *m, const char *variant, gm_space space, int64_t bytes, int64_t stride, int64_t steps,
                     void *place)
{
    gm_bench *bench = m->pair.bench;
    item *i = &m->items[m->count];
    char name[GM_BENCH_TEXT], *dst = place ? place : (char *)m->pair.dst + m->used;
    int is_pointer = space == GM_SPACE_GLOBAL || space == GM_SPACE_L1, width = is_pointer ? 8 : 4;
    stride = stride > 0 ? stride : width;
    gm_chain_call chain = {.count = bytes / stride,
                           .stride = stride,
                           .scale = space == GM_SPACE_TEXTURE ? stride / width : stride,
                           .base = is_pointer ? (uint64_t)(uintptr_t)dst : 0,
                           .bytes = width,
                           .dst = dst};
    m->used += place ? 0 : bytes;
    i->scale = chain.scale;
    i->chase = (gm_chase_call){.space = space,
                               .count = chain.count,
                               .stride = stride,
                               .steps = steps,
                               .texture = m->textures[1],
                               .src = dst,
                               .state = (uint64_t *)((char *)m->pair.dst + m->pair.size) - CASES + m->count};
    snprintf(name, sizeof name, "%s, latency", variant);
    gm_lab_case *c = add(m, name, bytes, (double)steps);
    c->kernel = "chase";
    c->run = run_chase;
    c->check = check_chase;
    c->unit = &gm_bench_unit_latency;
    c->computed = 0;
    c->panel = "latency";
    /* Each call goes on where the last one ended: a chain longer than the cache is always cold. */
    c->cache = space == GM_SPACE_GLOBAL ? gm_lab_cache(bench, bytes) : GM_CACHE_WARM;
    int status = bench->ops->zero(bench->queue, i->chase.state, sizeof *i->chase.state);
    return status ? status : bench->measure->chain(bench->queue, &chain);
}

/* The chains of the caches are made last, so that they are cached and the long one is not. */
static int add_latencies(memories *m)
{
    const int64_t steps = 16384;
    gm_bench *bench = m->pair.bench;
    int64_t size = m->pair.size;
    int status = add_chain(m, "global", GM_SPACE_GLOBAL, gm_lab_power_of_two(gm_min(size / 2, far_chain)), LINE, 512,
                           NULL);
    if (!status && bench->measure->flush)
        status = bench->measure->flush(bench->queue, bench->flush, bench->flush_bytes);
    if (!status && bench->measure->window)
        status = add_chain(m, "L2", GM_SPACE_GLOBAL, gm_lab_power_of_two(gm_min(size / 8, l2_chain)), LINE, 8192,
                           NULL); /* all of it in a call */
    if (!status)
        status = add_chain(m, "L1", GM_SPACE_L1, NEAR, LINE, steps, NULL);
    if (status || !bench->measure->window)
        return status;
    gm_texture_open_call texture = {.texel = GM_TEXEL_U32,
                                    .width = NEAR / 4,
                                    .src = (const char *)m->pair.dst + m->used,
                                    .texture = &m->textures[1]};
    status = bench->measure->texture_open(bench->queue, &texture);
    if (!status)
        status = add_chain(m, "texture", GM_SPACE_TEXTURE, NEAR, LINE, steps, NULL);
    if (!status)
        status = add_chain(m, "local", GM_SPACE_LOCAL, 4 * GM_LAB_LOCAL_LINKS, 0, steps, NULL);
    if (!status)
        status = add_chain(m, "shared", GM_SPACE_SHARED, 4 * GM_LAB_SHARED_LINKS, 0, steps, NULL);
    if (!status)
        status = add_chain(m, "constant", GM_SPACE_CONSTANT, 4 * GM_LAB_CONSTANTS, 0, steps, NULL);
    if (!status)
        status = add_chain(m, "host", GM_SPACE_GLOBAL, m->host_bytes, LINE, 128, m->mapped);
    return status;
}

/* Pinned memory, with random words, that kernels can read: where large memory cannot be pinned, less. */
static int open_host(memories *m)
{
    gm_bench *bench = m->pair.bench;
    int status = GM_OK;
    for (size_t i = 0; i < sizeof host_sizes / sizeof host_sizes[0] && !m->mapped && !status; i++) {
        if (host_sizes[i] > gm_lab_host_room(bench) && i + 1 < sizeof host_sizes / sizeof host_sizes[0])
            continue;
        bench->ops->host_free(bench->device, m->host);
        m->host_bytes = host_sizes[i];
        status = bench->ops->host_alloc(bench->device, (size_t)m->host_bytes, &m->host);
        gm_mapped_call mapped = {m->host, &m->mapped};
        if (!status)
            status = bench->measure->mapped(bench->queue, &mapped);
    }
    if (!status && !m->mapped)
        status = gm_fail(GM_EDEVICE, "bench %s: kernels cannot read pinned host memory", bench->test);
    if (!status)
        gm_cpu_random(m->host, GM_DTYPE_U64, 0, GM_DISTRIBUTION_UNIFORM, gm_random_key(1, 4), 0, m->host_bytes / 8);
    return status;
}

/* All but the pair that only a GPU has. */
static int open_spaces(memories *m)
{
    gm_bench *bench = m->pair.bench;
    gm_texture_open_call texture = {.texel = GM_TEXEL_U32X4,
                                    .width = m->blocks * window_of(GM_SPACE_TEXTURE) / 16,
                                    .src = m->pair.src,
                                    .texture = &m->textures[0]};
    gm_chain_call chain = {
        .count = GM_LAB_CONSTANTS, .stride = 4, .scale = 4, .bytes = 4, .dst = m->constants + GM_LAB_CONSTANTS};
    gm_constants_call constants = {m->pair.dst};
    gm_bench_pair_source(&m->pair, 0, GM_LAB_CONSTANTS * (int64_t)sizeof m->constants[0], m->constants);
    int status = gm_cpu_chain(1, &chain);
    if (!status)
        status = gm_bench_upload(bench, m->pair.dst, m->constants, sizeof m->constants);
    if (!status)
        status = bench->measure->constants(bench->queue, &constants);
    if (!status)
        status = open_host(m);
    return status ? status : bench->measure->texture_open(bench->queue, &texture);
}

static void close_memories(memories *m)
{
    gm_bench *bench = m->pair.bench;
    for (int i = 0; i < 2 && bench->measure->texture_close; i++)
        bench->measure->texture_close(bench->queue, &(gm_texture_close_call){m->textures[i]});
    bench->ops->host_free(bench->device, m->host);
    gm_bench_pair_close(&m->pair);
    free(m);
}

static int measure_size(gm_bench *bench, int64_t size)
{
    memories *m = calloc(1, sizeof *m);
    if (!m)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    int status = gm_bench_pair_open(bench, size, &m->pair);
    m->blocks = gm_max(1, gm_min(gm_min(bench->job->info.multiprocessors, MOST_BLOCKS), size / L2_WINDOW));
    if (!status && bench->measure->window)
        status = open_spaces(m);
    add_bandwidths(m);
    if (!status)
        status = gm_lab_measure(bench, m->cases, m->count);
    if (!status && bench->measure->image)
        status = gm_lab_measure_images(&m->pair);
    m->count = 0;
    if (!status)
        status = add_latencies(m);
    if (!status)
        status = gm_lab_measure(bench, m->cases, m->count);
    int synced = bench->ops->queue_sync(bench->queue); /* chains may still be made */
    close_memories(m);
    return status ? status : synced;
}

int gm_bench_memory(gm_bench *bench)
{
    return bench->measure->read && bench->measure->chain && bench->measure->chase
               ? gm_lab_one_size(bench, UNIT, measure_size)
               : gm_bench_skip(bench, NULL);
}
