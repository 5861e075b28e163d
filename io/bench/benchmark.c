/* benchmark.c - times strategies of reading a file. Those of writing are in io/write/strategy.c. */
#define _GNU_SOURCE 1 /* O_DIRECT */
#include "io/bench/benchmark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/range.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/cold.h"
#include "io/parallel_for.h"
#include "io/read/reader.h"

enum { PAGE = 4096, SOURCE = 256 << 20, LOOKS = 16 }; /* LOOKS: places of the file whose pages are looked up */

struct gm_read_benchmark {
    gm_read_strategy strategy;
    int64_t piece, bytes;
    gm_range kept; /* pieces */
    char title[GM_PATH_MAX];
    gm_bytes file;  /* of the raw strategies; descriptor -1 otherwise */
    int64_t offset; /* in the file, of the first byte they read; a multiple of the page size */
    char *map;      /* while it is mapped */
    char *memory;   /* of GM_READ_MEMORY */
    int64_t memory_pieces;
    gm_dataset dataset; /* of the strategies that read elements */
    gm_reader *reader;
    int64_t rows, cols, piece_rows, piece_cols; /* in elements */
};

const char *gm_read_strategy_name(gm_read_strategy strategy)
{
    static const char *const names[GM_READ_STRATEGIES] = {
        [GM_READ_MEMORY] = "memcpy",   [GM_READ_PREAD] = "pread",  [GM_READ_MMAP] = "mmap",
        [GM_READ_DIRECT] = "O_DIRECT", [GM_READ_HDF5] = "H5Dread", [GM_READ_READER] = "reader",
    };
    return names[strategy];
}

/* The memory is written first: until then all its pages are the zero page. */
static int open_memory(gm_read_benchmark *benchmark, int64_t bytes)
{
    int64_t room = (gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST)) / 2;
    void *memory;
    benchmark->bytes = bytes;
    benchmark->memory_pieces = gm_max(1, gm_min(gm_min(SOURCE, bytes), room) / benchmark->piece);
    int status = gm_host_alloc((size_t)(benchmark->memory_pieces * benchmark->piece), &memory);
    if (!status)
        memset(memory, 1, (size_t)(benchmark->memory_pieces * benchmark->piece));
    benchmark->memory = memory;
    return status;
}

/* From the page in which the data begin; of chunked data the whole file. */
static int open_raw(gm_read_benchmark *benchmark, int64_t bytes, int *possible)
{
    const gm_dataset *dataset = &benchmark->dataset;
    struct stat st;
    *possible = dataset->direct || dataset->raw_chunks;
    if (!*possible)
        return GM_OK;
    benchmark->file.fd = open(dataset->data_file,
                              O_RDONLY | O_CLOEXEC | (benchmark->strategy == GM_READ_DIRECT ? O_DIRECT : 0));
    if (benchmark->file.fd < 0 && errno == EINVAL && benchmark->strategy == GM_READ_DIRECT) {
        *possible = 0;
        return GM_OK;
    }
    if (benchmark->file.fd < 0 || fstat(benchmark->file.fd, &st))
        return gm_fail(GM_EINPUT, "%s: cannot open %s: %s", benchmark->title, dataset->data_file, strerror(errno));
    benchmark->offset = dataset->direct ? dataset->offset / PAGE * PAGE : 0;
    benchmark->bytes = gm_min(bytes, st.st_size - benchmark->offset);
    return GM_OK;
}

/* Pieces of whole rows if a piece holds a row, else parts of one row. */
static int open_reader(gm_read_benchmark *benchmark, int64_t bytes)
{
    int64_t size = (int64_t)gm_dtype_size(benchmark->dataset.type), unit;
    if (benchmark->strategy == GM_READ_HDF5)
        benchmark->dataset.direct = benchmark->dataset.raw_chunks = 0;
    gm_dataset_matrix(&benchmark->dataset, &benchmark->rows, &benchmark->cols);
    benchmark->piece_cols = gm_max(1, gm_min(benchmark->cols, benchmark->piece / size));
    benchmark->piece_rows = gm_max(1, benchmark->piece / size / benchmark->piece_cols);
    unit = gm_dataset_row_unit(&benchmark->dataset);
    if (benchmark->piece_rows > unit)
        benchmark->piece_rows -= benchmark->piece_rows % unit;
    benchmark->rows = gm_max(gm_min(benchmark->rows, 1),
                             gm_min(benchmark->rows, bytes / size / gm_max(benchmark->cols, 1)));
    benchmark->bytes = benchmark->rows * benchmark->cols * size;
    return gm_reader_open(&benchmark->dataset, &benchmark->reader);
}

int gm_read_benchmark_open(const gm_dataset *dataset, gm_read_strategy strategy, int64_t bytes, int64_t piece,
                           gm_read_benchmark **out)
{
    gm_read_benchmark *benchmark = calloc(1, sizeof *benchmark);
    int status = GM_OK, possible = 1;
    *out = NULL;
    if (!benchmark)
        return gm_fail(GM_EDEVICE, "%s: no memory for a read benchmark", dataset->file);
    benchmark->strategy = strategy;
    benchmark->piece = piece;
    benchmark->dataset = *dataset;
    gm_dataset_title(dataset, benchmark->title);
    benchmark->file = (gm_bytes){.fd = -1, .code = GM_EINPUT, .title = benchmark->title};
    if (strategy == GM_READ_MEMORY)
        status = open_memory(benchmark, bytes);
    else if (strategy == GM_READ_HDF5 && dataset->layout == GM_VIRTUAL)
        possible = 0;
    else if (strategy == GM_READ_HDF5 || strategy == GM_READ_READER)
        status = open_reader(benchmark, bytes);
    else
        status = open_raw(benchmark, bytes, &possible);
    benchmark->kept.end = gm_ceil_div(benchmark->bytes, piece);
    if (benchmark->reader)
        benchmark->kept.end = gm_ceil_div(benchmark->rows, benchmark->piece_rows) *
                              gm_ceil_div(benchmark->cols, benchmark->piece_cols);
    if (status || !possible)
        gm_read_benchmark_close(benchmark);
    else
        *out = benchmark;
    return status;
}

void gm_read_benchmark_close(gm_read_benchmark *benchmark)
{
    if (!benchmark)
        return;
    gm_reader_close(benchmark->reader);
    gm_host_free(benchmark->memory);
    if (benchmark->file.fd >= 0)
        close(benchmark->file.fd);
    free(benchmark);
}

int64_t gm_read_benchmark_pieces(const gm_read_benchmark *benchmark)
{
    return gm_range_length(benchmark->kept);
}

int64_t gm_read_benchmark_bytes(const gm_read_benchmark *benchmark)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < gm_read_benchmark_pieces(benchmark); i++)
        bytes += gm_read_benchmark_piece_bytes(benchmark, i);
    return bytes;
}

void gm_read_benchmark_cut(gm_read_benchmark *benchmark, int index, int of)
{
    benchmark->kept = gm_range_split(gm_read_benchmark_pieces(benchmark), 1, of, index);
}

/* The rectangle of a piece of the dataset, for the strategies that read elements. Returns its number of elements. */
static int64_t place(const gm_read_benchmark *benchmark, int64_t index, int64_t *row, int64_t *rows, int64_t *col,
                     int64_t *cols)
{
    int64_t across = gm_ceil_div(benchmark->cols, benchmark->piece_cols);
    *row = index / across * benchmark->piece_rows;
    *col = index % across * benchmark->piece_cols;
    *rows = gm_min(benchmark->piece_rows, benchmark->rows - *row);
    *cols = gm_min(benchmark->piece_cols, benchmark->cols - *col);
    return *rows * *cols;
}

int64_t gm_read_benchmark_piece_bytes(const gm_read_benchmark *benchmark, int64_t index)
{
    int64_t row, rows, col, cols;
    index += benchmark->kept.begin;
    if (benchmark->reader)
        return place(benchmark, index, &row, &rows, &col, &cols) * (int64_t)gm_dtype_size(benchmark->dataset.type);
    return gm_min(benchmark->piece, benchmark->bytes - index * benchmark->piece);
}

/* Whole pages: the last one may extend past the end of the file. */
static int read_direct(const gm_read_benchmark *benchmark, int64_t offset, char *dst, int64_t bytes)
{
    int64_t whole = gm_ceil_div(bytes, PAGE) * PAGE, done = 0;
    while (done < bytes) {
        ssize_t got = pread(benchmark->file.fd, dst + done, (size_t)(whole - done), offset + done);
        if (got > 0)
            done += got;
        else if (got == 0 || errno != EINTR)
            return gm_fail(GM_EINPUT, "%s: cannot read %" PRId64 " bytes at offset %" PRId64 " with O_DIRECT: %s",
                           benchmark->title, bytes - done, offset + done, got == 0 ? "end of file" : strerror(errno));
    }
    return GM_OK;
}

/* Where the pieces that are kept begin in the file. */
static int64_t kept_offset(const gm_read_benchmark *benchmark)
{
    return benchmark->offset + benchmark->kept.begin * benchmark->piece;
}

int gm_read_benchmark_read(gm_read_benchmark *benchmark, int64_t index, void *dst)
{
    int64_t row, rows, col, cols, bytes = gm_read_benchmark_piece_bytes(benchmark, index),
                                  offset = index * benchmark->piece; /* in what is kept */
    if (benchmark->memory)
        memcpy(dst, benchmark->memory + index % benchmark->memory_pieces * benchmark->piece, (size_t)bytes);
    else if (benchmark->map)
        memcpy(dst, benchmark->map + offset, (size_t)bytes);
    else if (benchmark->strategy == GM_READ_DIRECT)
        return read_direct(benchmark, kept_offset(benchmark) + offset, dst, bytes);
    else if (!benchmark->reader)
        return gm_bytes_read(&benchmark->file, kept_offset(benchmark) + offset, dst, (size_t)bytes);
    else {
        place(benchmark, benchmark->kept.begin + index, &row, &rows, &col, &cols);
        return gm_reader_read(benchmark->reader, row, rows, col, cols, dst,
                              (size_t)cols * gm_dtype_size(benchmark->dataset.type));
    }
    return GM_OK;
}

typedef struct reading {
    gm_read_benchmark *benchmark;
    char *slots;
    double end;
    _Atomic int64_t bytes;
} reading;

static int read_piece(void *context, int thread, int64_t index)
{
    reading *r = context;
    if (gm_clock() > r->end)
        return GM_OK;
    int status = gm_read_benchmark_read(r->benchmark, index, r->slots + thread * r->benchmark->piece);
    if (!status)
        atomic_fetch_add(&r->bytes, gm_read_benchmark_piece_bytes(r->benchmark, index));
    return status;
}

int gm_read_benchmark_run(gm_read_benchmark *benchmark, int threads, char *slots, double limit, int64_t *bytes,
                          double *seconds)
{
    double start = gm_clock();
    reading r = {.benchmark = benchmark, .slots = slots, .end = start + limit};
    size_t mapped = benchmark->strategy == GM_READ_MMAP ? (size_t)gm_read_benchmark_bytes(benchmark) : 0;
    if (mapped > 0) {
        benchmark->map = mmap(NULL, mapped, PROT_READ, MAP_SHARED, benchmark->file.fd, kept_offset(benchmark));
        if (benchmark->map == MAP_FAILED) {
            benchmark->map = NULL;
            return gm_fail(GM_EINPUT, "%s: cannot map the file: %s", benchmark->title, strerror(errno));
        }
    }
    int status = gm_parallel_for(threads, gm_read_benchmark_pieces(benchmark), read_piece, &r);
    if (benchmark->map)
        munmap(benchmark->map, mapped);
    benchmark->map = NULL;
    *seconds = gm_clock() - start;
    *bytes = r.bytes;
    return status;
}

int gm_read_benchmark_evict(const gm_dataset *dataset)
{
    int fd = dataset->direct || dataset->raw_chunks ? open(dataset->data_file, O_RDONLY | O_CLOEXEC) : -1, missing = 0;
    gm_cold *cold = NULL;
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0)
        cold = gm_cold_open(fd, GM_COLD_DIRECT);
    for (int i = 0; i < LOOKS && cold; i++)
        missing += gm_cold_look(cold, st.st_size / LOOKS * i, (size_t)gm_max(st.st_size / LOOKS, PAGE));
    gm_cold_close(cold);
    if (fd >= 0)
        close(fd);
    return missing > LOOKS / 2;
}
