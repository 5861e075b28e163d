/* bench file: writing new files, by the strategies of io/write/. */
#include "src/bench/file/file.h"

#include "base/log.h"
#include "base/size.h"
#include "io/bench/benchmark.h"

enum { PAGE = GM_FILE_TEST_PAGE };
static const int64_t flushed_most = INT64_C(256) << 20;

typedef struct writing {
    const gm_file_test *test;
    gm_write_benchmark benchmark;
} writing;

static int run_write(void *context, int64_t *bytes, double *seconds)
{
    writing *w = context;
    double rate = gm_write_benchmark_run(w->test->output, &w->benchmark);
    *bytes = rate > 0 ? w->benchmark.blocks * (int64_t)w->benchmark.block_bytes : 0;
    *seconds = rate > 0 ? (double)*bytes / rate : 0;
    return GM_OK;
}

/* One strategy by count[index] threads. parts: a file per thread. */
static int measure(gm_file_test *test, gm_write_strategy strategy, int index, int parts, gm_cache_state cache)
{
    int64_t total = cache == GM_CACHE_COLD ? gm_min(test->write_bytes, flushed_most) : test->write_bytes,
            block = gm_min(test->piece, gm_ceil_div(total, PAGE) * PAGE);
    int threads = (int)gm_min(test->count[index], GM_WRITE_BENCHMARK_THREADS);
    writing w = {test,
                 {.strategy = strategy,
                  .files = parts ? threads : 1,
                  .threads = threads,
                  .blocks = gm_max(gm_ceil_div(total, block), 1),
                  .block_bytes = (size_t)block,
                  .data = test->slots,
                  .stride = (size_t)test->piece,
                  .limit = test->limit_s,
                  .sync = cache == GM_CACHE_COLD}};
    gm_file_row row = {.kind = "write",
                       .strategy = parts ? "parts" : gm_write_strategy_name(strategy),
                       .threads = threads,
                       .cache = cache,
                       .bytes = w.benchmark.blocks * block,
                       .limit = cache == GM_CACHE_WARM ? test->memory_rate[index] : 0,
                       .limit_of = "memcpy",
                       .rival = test->write_rival[cache]};
    double rate = 0;
    int status = gm_file_test_add(test, &row, run_write, &w, &rate);
    if (!status && rate == 0)
        gm_note("bench file: cannot write '%s' beside %s", row.strategy, test->output);
    if (strategy == GM_WRITE_PLAIN && index == 0 && !parts)
        test->write_rival[cache] = rate;
    return status;
}

int gm_file_test_writes(gm_file_test *test, gm_cache_state cache)
{
    int status = GM_OK, last = test->counts - 1;
    for (gm_write_strategy strategy = GM_WRITE_PLAIN; strategy < GM_WRITE_STRATEGIES && !status; strategy++) {
        status = measure(test, strategy, 0, 0, cache);
        if (!status && last > 0)
            status = measure(test, strategy, last, 0, cache);
    }
    return status || last == 0 ? status : measure(test, GM_WRITE_PLAIN, last, 1, cache);
}
