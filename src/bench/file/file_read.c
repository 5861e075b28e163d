/* bench file: reading, by the strategies of io/bench/benchmark.h and through the streaming ring. */
#include "src/bench/file/file.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "io/bench/benchmark.h"
#include "io/read/reader.h"
#include "src/stream/ring_plan.h"
#include "src/stream/stream.h"

enum { PAGE = GM_FILE_TEST_PAGE };
static const double warm_up_s = 10;

typedef struct reading {
    const gm_file_test *test;
    gm_read_benchmark *benchmark;
    int threads;
    gm_cache_state cache;
    gm_stream *stream; /* NULL: to slots without a ring */
    int readers;       /* threads that read into one slot of the ring, each a piece of the benchmark at a time */
    int64_t next, done;
    double end;
} reading;

/* This rank's share of the pieces. */
static void cut(const gm_bench *bench, gm_read_benchmark *benchmark)
{
    gm_read_benchmark_cut(benchmark, bench->job->ranks->rank, bench->job->ranks->size);
}

/* The first `count` pieces of the benchmark in a slot. They are contiguous there. */
static int64_t bytes_of(const reading *r, const gm_piece *piece, int64_t count)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += gm_read_benchmark_piece_bytes(r->benchmark, piece->row + i);
    return bytes;
}

static int next_piece(void *context, gm_piece *piece, int *more)
{
    reading *r = context;
    int64_t left = gm_read_benchmark_pieces(r->benchmark) - r->next;
    *more = left > 0 && gm_clock() < r->end;
    if (!*more)
        return GM_OK;
    *piece = (gm_piece){.row = r->next, .rows = gm_min(r->readers, left), .stages = GM_STAGE_READ};
    if (r->test->staging)
        piece->stages |= GM_STAGE_TO_DEVICE;
    piece->readers = r->readers;
    piece->bytes = piece->in = bytes_of(r, piece, piece->rows);
    piece->in_unit = 1;
    r->next += piece->rows;
    r->done += piece->bytes;
    return GM_OK;
}

/* A piece of the benchmark is read with the part that has its first byte. */
static int read_slot(void *context, const gm_piece *piece, gm_range part, void *to)
{
    reading *r = context;
    int status = GM_OK;
    for (int64_t i = 0, at = 0; i < piece->rows && !status; i++) {
        if (at >= part.begin && at < part.end)
            status = gm_read_benchmark_read(r->benchmark, piece->row + i, (char *)to + (at - part.begin));
        at += gm_read_benchmark_piece_bytes(r->benchmark, piece->row + i);
    }
    return status;
}

static int run_ring(reading *r, int64_t *bytes)
{
    gm_program program = {.context = r, .next = next_piece, .read = read_slot};
    gm_phase_times times = {0};
    r->next = r->done = 0;
    r->end = gm_clock() + r->test->limit_s;
    int status = gm_stream_run(r->stream, &program, &times);
    *bytes = r->done;
    return status;
}

/* A rank of each host empties the page cache. */
static int prepare_read(void *context)
{
    reading *r = context;
    if (r->cache == GM_CACHE_COLD && r->test->bench->job->ranks->local_rank == 0)
        gm_read_benchmark_evict(&r->test->dataset);
    return GM_OK;
}

static int run_read(void *context, gm_team_share *share)
{
    reading *r = context;
    int64_t bytes = 0;
    double seconds;
    int status = r->stream ? run_ring(r, &bytes)
                           : gm_read_benchmark_run(r->benchmark, r->threads, r->test->slots, r->test->limit_s, &bytes,
                                                   &seconds);
    share->work = (double)bytes;
    return status;
}

static int open_ring(reading *r)
{
    const gm_bench *bench = r->test->bench;
    gm_stream_setup setup = {.ops = bench->ops,
                             .device = bench->device,
                             .piece = r->test->piece,
                             .depth = gm_ceil_div(r->threads, r->readers) + GM_FILE_TEST_MORE_SLOTS,
                             .threads = r->threads};
    return gm_stream_open(&setup, &r->stream);
}

/* The row of a strategy that reads the dataset. */
static gm_file_row make_row(const reading *r, gm_read_strategy strategy, int count, int ring)
{
    const gm_file_test *test = r->test;
    gm_file_row row = {.kind = !ring           ? "read"
                               : test->staging ? "device"
                                               : "ring",
                       .strategy = gm_read_strategy_name(strategy),
                       .threads = r->threads,
                       .cache = r->cache,
                       .bytes = gm_read_benchmark_bytes(r->benchmark),
                       .rival = test->read_rival[r->cache]};
    if (r->cache == GM_CACHE_WARM && strategy != GM_READ_DIRECT) {
        int sends = ring && test->staging;
        row.limit = sends ? test->to_device_rate : test->memory_rate[count];
        row.limit_of = sends ? "copy to device" : "memcpy";
    }
    return row;
}

/* One strategy by count[index] threads. ring: through the streaming ring, and to the device if it has memory of its
 * own. *rate: byte/s; 0: not possible here. */
static int measure(gm_file_test *test, gm_read_strategy strategy, int index, gm_cache_state cache, int ring,
                   double *rate)
{
    reading r = {.test = test, .threads = test->count[index], .cache = cache};
    int64_t units = test->dataset.layout == GM_CHUNKED ? 1 : test->piece / PAGE; /* one thread decodes a chunk */
    const gm_job *job = test->bench->job;
    const gm_team_work work = {.prepare = prepare_read, .run = run_read, .context = &r};
    int64_t possible = 0;
    *rate = 0;
    r.readers = ring ? gm_ring_readers(test->piece, gm_reader_is_parallel(&test->dataset) ? units : 1, r.threads) : 1;
    int64_t piece = test->piece / r.readers / PAGE * PAGE;
    int status = gm_read_benchmark_open(&test->dataset, strategy, test->read_bytes, piece, &r.benchmark);
    gm_file_row row = {.kind = ""};
    if (!status && r.benchmark) {
        row = make_row(&r, strategy, index, ring);
        possible = row.bytes > 0;
        cut(test->bench, r.benchmark);
        if (ring)
            status = open_ring(&r);
    }
    if (strategy == GM_READ_MEMORY) {
        row.kind = "memory";
        row.limit = row.rival = 0;
    }
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_min_all(&possible));
    if (!status && possible)
        status = gm_file_test_add(test, &row, &work, rate);
    if (status == GM_EINPUT && strategy == GM_READ_DIRECT) { /* some file systems open a file so and fail to read */
        gm_error_clear();
        gm_note("bench file: O_DIRECT does not work with %s", test->dataset.data_file);
        status = GM_OK;
    }
    gm_stream_close(r.stream);
    gm_read_benchmark_close(r.benchmark);
    return status;
}

int gm_file_test_memory(gm_file_test *test)
{
    int status = GM_OK;
    for (int c = 0; c < test->counts && !status; c++)
        status = measure(test, GM_READ_MEMORY, c, GM_CACHE_WARM, 0, &test->memory_rate[c]);
    return status;
}

/* Reads the bytes once, each rank its share. *bytes: those that were read by all. */
static int read_once_all(gm_file_test *test, int64_t *bytes)
{
    const gm_job *job = test->bench->job;
    gm_read_benchmark *benchmark = NULL;
    double seconds;
    int64_t done = 0;
    int threads = test->count[test->counts - 1];
    int status = gm_read_benchmark_open(&test->dataset, GM_READ_PREAD, test->read_bytes, test->piece, &benchmark);
    *bytes = test->read_bytes;
    int64_t all = !status && benchmark ? gm_read_benchmark_bytes(benchmark) : 0;
    if (benchmark) {
        cut(test->bench, benchmark);
        status = gm_read_benchmark_run(benchmark, threads, test->slots, warm_up_s, &done, &seconds);
    }
    gm_read_benchmark_close(benchmark);
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_sum_all(&done));
    if (!status && done < all)
        *bytes = done;
    return status;
}

/* Data that are left for less time are shared otherwise, and so read once more. */
int gm_file_test_warm_up(gm_file_test *test)
{
    int64_t bytes = 0;
    int status = read_once_all(test, &bytes);
    if (status || bytes >= test->read_bytes)
        return status;
    test->read_bytes = gm_max(bytes, test->piece);
    return test->bench->job->ranks->size > 1 ? read_once_all(test, &bytes) : GM_OK;
}

int gm_file_test_reads(gm_file_test *test, gm_cache_state cache)
{
    static const gm_read_strategy order[] = {GM_READ_PREAD, GM_READ_MMAP, GM_READ_DIRECT, GM_READ_READER};
    double rate;
    int status = measure(test, GM_READ_HDF5, 0, cache, 0, &test->read_rival[cache]), last = test->counts - 1;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        for (int c = 0; c <= last && !status; c++)
            if (c == 0 || c == last || order[i] == GM_READ_PREAD)
                status = measure(test, order[i], c, cache, 0, &rate);
    for (int c = 0; c <= last && !status; c++)
        if (c == 0 || c == last)
            status = measure(test, GM_READ_READER, c, cache, 1, &rate);
    return status;
}
