/* bench cache - loads through the L1 cache (ld.global.ca) and past it (ld.global.cg). Once over a large buffer, a word
 * of 4 bytes a thread: only these bytes count, and a plain read is the limit. And again and again over a window: one
 * for each block, a block on each multiprocessor, which shows the L1 cache; and one for all blocks, which shows the L2
 * cache and memory.
 *
 * The published figures are parts of the bytes on the bus that are used: 100 % aligned by both, 50 % misaligned through
 * L1 and 80 % past it, and scattered over N lines 128 / (N * 128) and 128 / (N * 32), as L1 then filled whole lines. */
#include "base/size.h"
#include "src/bench/lab/lab.h"

#include <stdlib.h>

enum { UNIT = 1 << 20, SAMPLES = 32, MOST_BLOCKS = 256, BLOCKS_OF_4 = 4 /* on a multiprocessor */, PART = 1 << 16 };
static const int64_t own_traffic = 32 << 20 /* bytes that a block reads */, shared_traffic = INT64_C(1) << 30;

typedef struct windows {
    gm_bench_pair pair;
    union {
        gm_load_call load;
        gm_window_call window;
    } calls[GM_LAB_CASES];
    gm_lab_case cases[GM_LAB_CASES];
    int count;
    uint32_t *sums; /* [pair.size / PART]: of the words of each part of src */
} windows;

static int run_read(const gm_lab_case *self, gm_queue *queue)
{
    const windows *w = self->test;
    return w->pair.bench->measure->read(queue, w->pair.src, (size_t)w->pair.size, w->pair.dst);
}

static int run_load(const gm_lab_case *self, gm_queue *queue)
{
    const windows *w = self->test;
    return w->pair.bench->measure->load(queue, self->call);
}

static int run_window(const gm_lab_case *self, gm_queue *queue)
{
    const windows *w = self->test;
    return w->pair.bench->measure->window(queue, self->call);
}

/* Sums from all over. */
static int check_load(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const windows *w = self->test;
    const gm_load_call *c = self->call;
    int64_t sums = c->count / GM_LOAD_SUMMED;
    int status = w->pair.bench->ops->zero(w->pair.bench->queue, w->pair.dst, (size_t)sums * sizeof *c->dst);
    if (!status)
        status = run_load(self, w->pair.bench->queue);
    (void)max_error, (void)mean_error;
    for (int s = 0; s < SAMPLES && !status; s++) {
        int64_t at = s + 1 == SAMPLES ? sums - 1 : (sums - 1) / (SAMPLES - 1) * s;
        uint32_t right = 0, word;
        for (int i = 0; i < GM_LOAD_SUMMED; i++) {
            int64_t t = gm_load_index(at, i), place = c->is_random ? gm_lab_permuted(t, c->words) : t * c->stride;
            gm_bench_pair_source(&w->pair, (c->base + place) * (int64_t)sizeof word, sizeof word, &word);
            right += word;
        }
        status = gm_lab_expect(w->pair.bench, self, c->dst + at, &right, sizeof right, "a sum");
    }
    return status;
}

/* The sum of the words of src in [from, from + bytes): multiples of PART, or within a part. */
static uint32_t sum_of(const windows *w, int64_t from, int64_t bytes)
{
    uint32_t sum = 0, words[GM_LAB_CHUNK / sizeof(uint32_t)];
    if (from % PART == 0 && bytes % PART == 0) {
        for (int64_t part = from / PART; part < (from + bytes) / PART; part++)
            sum += w->sums[part];
        return sum;
    }
    for (int64_t at = from; at < from + bytes; at += (int64_t)sizeof words) {
        gm_bench_pair_source(&w->pair, at, sizeof words, words);
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            sum += words[i];
    }
    return sum;
}

static int check_window(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const windows *w = self->test;
    const gm_window_call *c = self->call;
    gm_bench *bench = w->pair.bench;
    size_t bytes = (size_t)c->blocks * sizeof *c->dst;
    uint32_t(*got)[GM_LAB_WARPS] = malloc(bytes), all = 0;
    int status = got ? bench->ops->zero(bench->queue, c->dst, bytes) : gm_fail(GM_EDEVICE, "no memory for sums");
    if (!status)
        status = run_window(self, bench->queue);
    if (!status)
        status = gm_bench_download(bench, got, c->dst, bytes);
    (void)max_error, (void)mean_error;
    for (int64_t b = 0; b < c->blocks && !status; b++) {
        for (int i = 0; i < GM_LAB_WARPS; i++)
            all += got[b][i];
        if (!c->is_own && b + 1 < c->blocks)
            continue;
        if (all != (uint32_t)c->passes * sum_of(w, c->is_own ? b * c->window : 0, c->window))
            status = gm_fail(GM_ECHECK, "bench %s: %s %s: the sum of block %d is wrong", bench->test, self->variant,
                             self->shape, (int)b);
        all = 0;
    }
    free(got);
    return status;
}

static gm_lab_case *add(windows *w, const char *kernel, const char *variant, int past_l1, double work)
{
    gm_lab_case *c = &w->cases[w->count];
    *c = (gm_lab_case){.kernel = kernel,
                       .test = w,
                       .call = &w->calls[w->count++],
                       .work = work,
                       .unit = &gm_bench_unit_bytes,
                       .cache = GM_CACHE_WARM};
    snprintf(c->variant, sizeof c->variant, "%s, %s", variant, past_l1 ? "past L1" : "through L1");
    return c;
}

static void add_loads(windows *w)
{
    static const struct {
        const char *name;
        int is_random;
        int64_t base, stride;
    } orders[] = {{"aligned", 0, 0, 1},
                  {"misaligned", 0, 1, 1},
                  {"another sector", 0, 0, 8},
                  {"another line", 0, 0, 32},
                  {"random", 1, 0, 8}};
    const gm_bench *bench = w->pair.bench;
    gm_cache_state cache = gm_lab_cache(bench, w->pair.size);
    char size[GM_SIZE_TEXT];
    gm_lab_case *c = add(w, "read", "", 0, (double)w->pair.size);
    snprintf(c->variant, sizeof c->variant, "read");
    c->run = run_read;
    int64_t words = w->pair.size / (int64_t)sizeof(uint32_t), power = gm_lab_power_of_two(words);
    for (int i = 0; i < 2 * (int)(sizeof orders / sizeof orders[0]); i++) {
        int64_t count = ((orders[i / 2].is_random ? power : words - orders[i / 2].base) / orders[i / 2].stride) /
                        GM_LOAD_TILE * GM_LOAD_TILE;
        gm_load_call *call = &w->calls[w->count].load;
        *call = (gm_load_call){.past_l1 = i % 2,
                               .is_random = orders[i / 2].is_random,
                               .count = count,
                               .base = orders[i / 2].base,
                               .stride = orders[i / 2].stride,
                               .words = power,
                               .src = w->pair.src,
                               .dst = w->pair.dst};
        c = add(w, "load", orders[i / 2].name, i % 2, (double)count * sizeof(uint32_t));
        c->run = run_load;
        c->check = check_load;
        c->limit = 1;
    }
    for (int i = 0; i < w->count; i++) {
        w->cases[i].cache = cache;
        w->cases[i].computed = gm_lab_memory_limit(bench, w->pair.size);
        w->cases[i].panel = "loads";
        snprintf(w->cases[i].shape, sizeof w->cases[i].shape, "%s", gm_size_format(w->pair.size, size));
    }
}

/* An odd number of passes, as the sum over an even one says less. */
static void add_window(windows *w, int past_l1, int is_own, int64_t window)
{
    const gm_bench *bench = w->pair.bench;
    const gm_device_info *info = &bench->job->info;
    int64_t units = gm_max(gm_min(info->multiprocessors, MOST_BLOCKS), 1), passes = own_traffic / window | 1;
    gm_window_call *call = &w->calls[w->count].window;
    char size[GM_SIZE_TEXT];
    /* An odd number of blocks: each of them reads other chunks in the next pass, so L1 does not help for long. */
    if (!is_own) {
        units = BLOCKS_OF_4 * units - 1;
        passes = shared_traffic / window | 1;
    }
    *call = (gm_window_call){.past_l1 = past_l1,
                             .is_own = is_own,
                             .blocks = units,
                             .window = window,
                             .passes = passes,
                             .src = w->pair.src,
                             .dst = w->pair.dst};
    double work = (double)window * (double)passes * (is_own ? (double)units : 1);
    gm_lab_case *c = add(w, "window", is_own ? "own" : "common", past_l1, work);
    c->run = run_window;
    c->check = check_window;
    c->computed = gm_lab_l1_limit(bench);
    c->panel = is_own ? "a window for each block" : "a window for all blocks";
    c->x = (double)window;
    c->x_name = "window, bytes";
    snprintf(c->shape, sizeof c->shape, "%s", gm_size_format(window, size));
}

static void add_windows(windows *w)
{
    static const int64_t own[] = {8, 16, 32, 64, 128, 192, 256}; /* KiB */
    for (int past_l1 = 0; past_l1 < 2; past_l1++)
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            if (MOST_BLOCKS * (own[i] << 10) <= w->pair.size)
                add_window(w, past_l1, 1, own[i] << 10);
    for (int past_l1 = 0; past_l1 < 2; past_l1++)
        for (int64_t window = 256 << 10; window <= gm_min(w->pair.size, 512 << 20); window *= 2)
            add_window(w, past_l1, 0, window);
}

static int measure_size(gm_bench *bench, int64_t size)
{
    windows *w = calloc(1, sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    int status = gm_bench_pair_open(bench, size, &w->pair);
    int64_t parts = gm_min(size, 512 << 20) / PART;
    w->sums = calloc((size_t)parts, sizeof *w->sums);
    if (!status && !w->sums)
        status = gm_fail(GM_EDEVICE, "no memory for sums");
#pragma omp parallel for num_threads(bench->job->threads)
    for (int64_t part = 0; part < (status ? 0 : parts); part++) {
        uint32_t sum = 0;
        for (int64_t at = 0; at < PART; at += GM_LAB_CHUNK)
            sum += sum_of(w, part * PART + at, GM_LAB_CHUNK);
        w->sums[part] = sum;
    }
    add_loads(w);
    add_windows(w);
    if (!status)
        status = gm_lab_measure(bench, w->cases, w->count);
    free(w->sums);
    gm_bench_pair_close(&w->pair);
    free(w);
    return status;
}

int gm_bench_caches(gm_bench *bench)
{
    return bench->measure->load && bench->measure->window && bench->measure->read
               ? gm_lab_one_size(bench, UNIT, measure_size)
               : gm_bench_skip(bench, "no load passes its caches");
}
