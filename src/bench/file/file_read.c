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
    piece->bytes = bytes_of(r, piece, piece->rows);
    r->next += piece->rows;
    r->done += piece->bytes;
    return GM_OK;
}

static int read_slot(void *context, const gm_piece *piece, gm_share share, void *host)
{
    reading *r = context;
    int status = GM_OK;
    int64_t at, end;
    for (gm_share_cut(share, 0, piece->rows, 1, &at, &end); at < end && !status; at++)
        status = gm_read_benchmark_read(r->benchmark, piece->row + at, (char *)host + bytes_of(r, piece, at));
    return status;
}

static int slot_to_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    reading *r = context;
    size_t n = (size_t)piece->bytes;
    return r->test->bench->ops->copy_in(in, slot->device, n, slot->host, n, n, 1);
}

static int run_ring(reading *r, int64_t *bytes, double *seconds)
{
    gm_program program = {.context = r, .next = next_piece, .read = read_slot, .to_device = slot_to_device};
    gm_phase_times times = {0};
    double from = gm_clock();
    r->next = r->done = 0;
    r->end = from + r->test->limit_s;
    int status = gm_stream_run(r->stream, &program, &times);
    *seconds = gm_clock() - from;
    *bytes = r->done;
    return status;
}

static int run_read(void *context, int64_t *bytes, double *seconds)
{
    reading *r = context;
    const gm_file_test *test = r->test;
    if (r->cache == GM_CACHE_COLD)
        gm_read_benchmark_evict(&test->dataset);
    return r->stream ? run_ring(r, bytes, seconds)
                     : gm_read_benchmark_run(r->benchmark, r->threads, test->slots, test->limit_s, bytes, seconds);
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
    *rate = 0;
    r.readers = ring ? gm_ring_readers(test->piece, gm_reader_is_parallel(&test->dataset) ? units : 1, r.threads) : 1;
    int64_t piece = test->piece / r.readers / PAGE * PAGE;
    int status = gm_read_benchmark_open(&test->dataset, strategy, test->read_bytes, piece, &r.benchmark);
    if (status || !r.benchmark || gm_read_benchmark_bytes(r.benchmark) == 0)
        goto out;
    if (ring)
        status = open_ring(&r);
    gm_file_row row = make_row(&r, strategy, index, ring);
    if (strategy == GM_READ_MEMORY) {
        row.kind = "memory";
        row.limit = row.rival = 0;
    }
    if (!status)
        status = gm_file_test_add(test, &row, run_read, &r, rate);
    if (status == GM_EINPUT && strategy == GM_READ_DIRECT) { /* some file systems open a file so and fail to read */
        gm_error_clear();
        gm_note("bench file: O_DIRECT does not work with %s", test->dataset.data_file);
        status = GM_OK;
    }
out:
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

int gm_file_test_warm_up(gm_file_test *test)
{
    gm_read_benchmark *benchmark;
    int64_t bytes;
    double seconds;
    int threads = test->count[test->counts - 1];
    int status = gm_read_benchmark_open(&test->dataset, GM_READ_PREAD, test->read_bytes, test->piece, &benchmark);
    if (!status && benchmark) {
        status = gm_read_benchmark_run(benchmark, threads, test->slots, warm_up_s, &bytes, &seconds);
        if (!status && bytes < gm_read_benchmark_bytes(benchmark))
            test->read_bytes = gm_max(bytes, test->piece);
    }
    gm_read_benchmark_close(benchmark);
    return status;
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
