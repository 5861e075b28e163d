/* strategy.c - the fastest strategy for contiguous data, found by a probe of the file system. */
#include "io/write/strategy.h"

#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/size.h"
#include "io/write/benchmark.h"

enum { BLOCK = 1 << 19, BLOCKS = 32, ROUNDS = 2, THREADS_MAX = 16 };
static const int64_t probe_min_bytes = INT64_C(256) << 20, parts_min_bytes = INT64_C(4) << 30;
static const double probe_seconds = 0.004, min_speedup = 1.05, min_parts_speedup = 2;

const char *gm_write_strategy_name(gm_write_strategy strategy)
{
    static const char *const names[GM_WRITE_STRATEGIES] = {
        [GM_WRITE_PROBED] = "probed", [GM_WRITE_PLAIN] = "plain",   [GM_WRITE_ALLOCATED] = "allocated",
        [GM_WRITE_MAPPED] = "mapped", [GM_WRITE_DIRECT] = "direct",
    };
    return names[strategy];
}

/* Fills in the record's rates: the best of some rounds, as others use the machine as well and the first access to
 * memory is slow. A strategy that fails, for lack of space or otherwise, has the rate 0, which is no error. */
static void probe(gm_output_record *record, int64_t bytes)
{
    int threads = (int)gm_max(1, gm_min(record->threads / gm_max(record->hosts, 1), THREADS_MAX));
    gm_write_benchmark t = {.files = 1,
                            .threads = threads,
                            .blocks = BLOCKS,
                            .block_bytes = BLOCK,
                            .limit = probe_seconds,
                            .overlap = record->overlap};
    void *block;
    if (gm_host_try(BLOCK, &block)) {
        for (int i = 0; i < BLOCK / 8; i++) /* random, as some file systems compress */
            ((uint64_t *)block)[i] = gm_random_mix((uint64_t)i);
        t.data = block;
        for (int round = 0; round < ROUNDS; round++) {
            t.files = 1;
            for (t.strategy = GM_WRITE_PLAIN; t.strategy < GM_WRITE_STRATEGIES; t.strategy++)
                if (t.strategy <= GM_WRITE_ALLOCATED || record->hosts <= 1)
                    record->rate[t.strategy] = fmax(record->rate[t.strategy], gm_write_benchmark_run(record->file, &t));
            t.strategy = GM_WRITE_PLAIN;
            t.files = threads;
            if (threads > 1 && bytes >= parts_min_bytes)
                record->parts_rate = fmax(record->parts_rate, gm_write_benchmark_run(record->file, &t));
        }
        gm_host_free(block);
    }
}

void gm_strategy_choose(gm_output_record *record, int64_t bytes)
{
    if (record->layout != GM_OUTPUT_PARTS && record->strategy == GM_WRITE_PROBED && bytes >= probe_min_bytes) {
        probe(record, bytes);
        record->strategy = GM_WRITE_PLAIN;
        for (gm_write_strategy strategy = GM_WRITE_PLAIN; strategy < GM_WRITE_STRATEGIES; strategy++)
            if (record->rate[strategy] > min_speedup * record->rate[record->strategy])
                record->strategy = strategy;
        if (record->layout == GM_OUTPUT_AUTO && gm_output_gain(record) >= min_parts_speedup)
            record->layout = GM_OUTPUT_PARTS;
    }
    if (record->layout == GM_OUTPUT_AUTO)
        record->layout = GM_OUTPUT_SINGLE;
    if (record->layout == GM_OUTPUT_PARTS || record->strategy == GM_WRITE_PROBED)
        record->strategy = GM_WRITE_PLAIN;
}

double gm_output_gain(const gm_output_record *record)
{
    return record->rate[record->strategy] > 0 ? record->parts_rate / record->rate[record->strategy] : 0;
}
