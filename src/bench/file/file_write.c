/* bench file: writing new files, by the strategies of io/write/. */
#include "src/bench/file/file.h"

#include "base/log.h"
#include "base/range.h"
#include "base/size.h"
#include "io/bench/benchmark.h"

enum { PAGE = GM_FILE_TEST_PAGE };
static const int64_t flushed_most = INT64_C(256) << 20;
static const double write_s = 5; /* of a file that is then read */

/* Whose files are written. */
typedef enum sharing { ONE_FILE, FILE_OF_RANK, FILE_OF_THREAD } sharing;

typedef struct writing {
    const gm_file_test *test;
    gm_write_benchmark benchmark;
    int is_shared;     /* by several ranks */
    int is_read;       /* once, which is what counts */
    gm_write_run *run; /* NULL: not possible */
} writing;

/* The name of the file of rank 0; "": there is none. */
typedef struct shared_name {
    char text[GM_PATH_MAX];
} shared_name;

/* The others open the file of rank 0; then it needs no name. Collective. */
static int open_shared_all(writing *w)
{
    const gm_job *job = w->test->bench->job;
    int is_first = job->ranks->rank == 0;
    shared_name name = {""};
    if (is_first)
        w->run = gm_write_run_open(w->test->output, &w->benchmark, NULL, !w->test->named);
    if (w->run)
        snprintf(name.text, sizeof name.text, "%s", gm_write_run_name(w->run));
    int status = gm_broadcast_all(&name, sizeof name);
    if (!is_first && name.text[0])
        w->run = gm_write_run_open(w->test->output, &w->benchmark, name.text, 0);
    int64_t opened = w->run != NULL;
    if (!status)
        status = gm_min_all(&opened);
    if (is_first && w->run)
        gm_write_run_hide(w->run);
    return status;
}

static int prepare_write(void *context)
{
    writing *w = context;
    w->run = NULL;
    if (w->is_shared)
        return open_shared_all(w);
    w->run = gm_write_run_open(w->test->output, &w->benchmark, NULL, 1);
    if (w->run)
        gm_write_run_hide(w->run);
    return GM_OK;
}

/* Writes all of it before the time counts. */
static int prepare_read(void *context)
{
    writing *w = context;
    double allocated;
    int status = prepare_write(context);
    if (!status && w->run && gm_write_run_write(w->run, &allocated) == 0 && w->benchmark.blocks > 0) {
        gm_write_run_close(w->run);
        w->run = NULL;
    }
    return status;
}

static int run_write(void *context, gm_team_share *share)
{
    writing *w = context;
    int64_t bytes = 0;
    if (w->run)
        bytes = w->is_read ? gm_write_run_read(w->run, w->test->slots) : gm_write_run_write(w->run, &share->before);
    share->work = (double)bytes;
    share->is_impossible = bytes == 0 && w->benchmark.blocks > 0;
    return GM_OK;
}

static void finish_write(void *context)
{
    writing *w = context;
    gm_write_run_close(w->run);
    w->run = NULL;
}

/* One strategy by count[index] threads of each rank. is_read: the first reading of what it has written. */
static int measure(gm_file_test *test, gm_write_strategy strategy, int index, sharing files, gm_cache_state cache,
                   int is_read)
{
    const gm_ranks *ranks = test->bench->job->ranks;
    int64_t total = cache == GM_CACHE_COLD ? gm_min(test->write_bytes, flushed_most) : test->write_bytes,
            block = gm_min(test->piece, gm_ceil_div(gm_ceil_div(total, ranks->size), PAGE) * PAGE),
            blocks = gm_max(gm_ceil_div(total, block), 1);
    gm_range own = gm_range_split(blocks, 1, ranks->size, ranks->rank);
    int threads = test->count[index], is_shared = files == ONE_FILE;
    writing w = {test,
                 {.strategy = strategy,
                  .files = files == FILE_OF_THREAD ? threads : 1,
                  .threads = threads,
                  .blocks = gm_range_length(own),
                  .before = is_shared ? own.begin : 0,
                  .all = is_shared ? blocks : 0,
                  .block_bytes = (size_t)block,
                  .data = test->slots,
                  .stride = (size_t)test->piece,
                  .limit = is_read ? write_s : test->limit_s,
                  .sync = cache == GM_CACHE_COLD},
                 .is_shared = is_shared && ranks->size > 1,
                 .is_read = is_read};
    const gm_team_work work = {
        .prepare = is_read ? prepare_read : prepare_write, .run = run_write, .finish = finish_write, .context = &w};
    gm_file_row row = {.kind = is_read ? "first read" : "write",
                       .strategy = is_read                   ? "pread"
                                   : files == FILE_OF_THREAD ? "parts"
                                   : files == FILE_OF_RANK   ? "per rank"
                                                             : gm_write_strategy_name(strategy),
                       .threads = threads,
                       .cache = cache,
                       .bytes = blocks * block,
                       .limit = cache == GM_CACHE_WARM ? test->memory_rate[index] : 0,
                       .limit_of = "memcpy",
                       .rival = is_read ? 0 : test->write_rival[cache]};
    double rate = 0;
    int status = gm_file_test_add(test, &row, &work, &rate);
    if (!status && rate == 0)
        gm_note("bench file: cannot write '%s' beside %s", row.strategy, test->output);
    if (strategy == GM_WRITE_PLAIN && index == 0 && is_shared && !is_read)
        test->write_rival[cache] = rate;
    return status;
}

int gm_file_test_writes(gm_file_test *test, gm_cache_state cache)
{
    int status = GM_OK, last = test->counts - 1;
    for (gm_write_strategy strategy = GM_WRITE_PLAIN; strategy < GM_WRITE_STRATEGIES && !status; strategy++) {
        status = measure(test, strategy, 0, ONE_FILE, cache, 0);
        if (!status && last > 0)
            status = measure(test, strategy, last, ONE_FILE, cache, 0);
    }
    for (int c = 0; c <= last && test->bench->job->ranks->size > 1 && !status; c++)
        if (c == 0 || c == last)
            status = measure(test, GM_WRITE_PLAIN, c, FILE_OF_RANK, cache, 0);
    return status || last == 0 ? status : measure(test, GM_WRITE_PLAIN, last, FILE_OF_THREAD, cache, 0);
}

int gm_file_test_first_reads(gm_file_test *test)
{
    int last = test->counts - 1;
    int status = measure(test, GM_WRITE_PLAIN, 0, ONE_FILE, GM_CACHE_WARM, 1);
    return status || last == 0 ? status : measure(test, GM_WRITE_PLAIN, last, ONE_FILE, GM_CACHE_WARM, 1);
}
