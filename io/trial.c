/* trial.c - ways to read a file, to be timed. Those to write one are in ways.c. */
#define _GNU_SOURCE 1 /* O_DIRECT */
#include "io/trial.h"

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
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/cold.h"
#include "io/crew.h"
#include "io/reader.h"

enum { PAGE = 4096, SOURCE = 256 << 20, LOOKS = 16 };

struct gm_trial {
    gm_read_way way;
    int64_t piece, bytes, count;
    char title[GM_PATH_MAX];
    gm_bytes file;           /* of the raw ways; descriptor -1 otherwise */
    int64_t offset;          /* of what they read, a whole number of pages */
    char *map;               /* while it is mapped */
    char *memory;            /* of GM_READ_MEMORY */
    int64_t memory_pieces;
    gm_dataset dataset;      /* of the ways that read elements */
    gm_reader *reader;
    int64_t rows, cols, piece_rows, piece_cols; /* in elements */
};

const char *gm_read_way_name(gm_read_way way)
{
    static const char *const names[GM_READ_WAYS] = {
        [GM_READ_MEMORY] = "memcpy", [GM_READ_PREAD] = "pread", [GM_READ_MMAP] = "mmap",
        [GM_READ_DIRECT] = "O_DIRECT", [GM_READ_HDF5] = "H5Dread", [GM_READ_READER] = "reader",
    };

    return names[way];
}

/* Memory that was written to: before that, all pages are one and the same. */
static int open_memory(gm_trial *trial, int64_t bytes)
{
    int64_t room = (gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST)) / 2;
    void *memory;
    int status;

    trial->bytes = bytes;
    trial->memory_pieces = gm_max(1, gm_min(gm_min(SOURCE, bytes), room) / trial->piece);
    status = gm_host_alloc((size_t)(trial->memory_pieces * trial->piece), &memory);
    if (!status)
        memset(memory, 1, (size_t)(trial->memory_pieces * trial->piece));
    trial->memory = memory;
    return status;
}

/* From the page on where the data begin; of chunked data the whole file. */
static int open_raw(gm_trial *trial, int64_t bytes, int *possible)
{
    const gm_dataset *dataset = &trial->dataset;
    struct stat st;

    *possible = dataset->direct || dataset->raw_chunks;
    if (!*possible)
        return GM_OK;
    trial->file.fd = open(dataset->data_file, O_RDONLY | O_CLOEXEC | (trial->way == GM_READ_DIRECT ? O_DIRECT : 0));
    if (trial->file.fd < 0 && errno == EINVAL && trial->way == GM_READ_DIRECT) {
        *possible = 0;
        return GM_OK;
    }
    if (trial->file.fd < 0 || fstat(trial->file.fd, &st))
        return gm_fail(GM_EINPUT, "%s: %s cannot be opened: %s", trial->title, dataset->data_file, strerror(errno));
    trial->offset = dataset->direct ? dataset->offset / PAGE * PAGE : 0;
    trial->bytes = gm_min(bytes, st.st_size - trial->offset);
    return GM_OK;
}

/* Pieces of whole rows if a slot holds one, else of parts of one row. */
static int open_reader(gm_trial *trial, int64_t bytes)
{
    int64_t size = (int64_t)gm_dtype_size(trial->dataset.type), unit;

    if (trial->way == GM_READ_HDF5)
        trial->dataset.direct = trial->dataset.raw_chunks = trial->dataset.row_runs = 0;
    gm_dataset_matrix(&trial->dataset, &trial->rows, &trial->cols);
    trial->piece_cols = gm_max(1, gm_min(trial->cols, trial->piece / size));
    trial->piece_rows = gm_max(1, trial->piece / size / trial->piece_cols);
    unit = gm_dataset_row_unit(&trial->dataset);
    if (trial->piece_rows > unit)
        trial->piece_rows -= trial->piece_rows % unit;
    trial->rows = gm_max(gm_min(trial->rows, 1), gm_min(trial->rows, bytes / size / gm_max(trial->cols, 1)));
    trial->bytes = trial->rows * trial->cols * size;
    return gm_reader_open(&trial->dataset, &trial->reader);
}

int gm_trial_open(const gm_dataset *dataset, gm_read_way way, int64_t bytes, int64_t piece, gm_trial **out)
{
    gm_trial *trial = calloc(1, sizeof *trial);
    int status, possible = 1;

    *out = NULL;
    if (!trial)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", dataset->file);
    trial->way = way;
    trial->piece = piece;
    trial->dataset = *dataset;
    gm_dataset_title(dataset, trial->title);
    trial->file = (gm_bytes){-1, GM_EINPUT, trial->title, 0, NULL};
    if (way == GM_READ_MEMORY)
        status = open_memory(trial, bytes);
    else if (way == GM_READ_HDF5 || way == GM_READ_READER)
        status = open_reader(trial, bytes);
    else
        status = open_raw(trial, bytes, &possible);
    trial->count = gm_ceil_div(trial->bytes, piece);
    if (trial->reader)
        trial->count = gm_ceil_div(trial->rows, trial->piece_rows) * gm_ceil_div(trial->cols, trial->piece_cols);
    if (status || !possible)
        gm_trial_close(trial);
    else
        *out = trial;
    return status;
}

void gm_trial_close(gm_trial *trial)
{
    if (!trial)
        return;
    gm_reader_close(trial->reader);
    gm_host_free(trial->memory);
    if (trial->file.fd >= 0)
        close(trial->file.fd);
    free(trial);
}

int64_t gm_trial_bytes(const gm_trial *trial)
{
    return trial->bytes;
}

int64_t gm_trial_pieces(const gm_trial *trial)
{
    return trial->count;
}

/* Of the ways that read elements: where piece index lies. Returns its elements. */
static int64_t place(const gm_trial *trial, int64_t index, int64_t *row, int64_t *rows, int64_t *col, int64_t *cols)
{
    int64_t across = gm_ceil_div(trial->cols, trial->piece_cols);

    *row = index / across * trial->piece_rows;
    *col = index % across * trial->piece_cols;
    *rows = gm_min(trial->piece_rows, trial->rows - *row);
    *cols = gm_min(trial->piece_cols, trial->cols - *col);
    return *rows * *cols;
}

int64_t gm_trial_piece_bytes(const gm_trial *trial, int64_t index)
{
    int64_t row, rows, col, cols;

    if (trial->reader)
        return place(trial, index, &row, &rows, &col, &cols) * (int64_t)gm_dtype_size(trial->dataset.type);
    return gm_min(trial->piece, trial->bytes - index * trial->piece);
}

/* Whole pages, which end behind the file if it does not end with one. */
static int read_direct(const gm_trial *trial, int64_t offset, char *dst, int64_t bytes)
{
    int64_t whole = gm_ceil_div(bytes, PAGE) * PAGE, done = 0;

    while (done < bytes) {
        ssize_t got = pread(trial->file.fd, dst + done, (size_t)(whole - done), offset + done);

        if (got > 0)
            done += got;
        else if (got == 0 || errno != EINTR)
            return gm_fail(GM_EINPUT, "%s: direct reading of %" PRId64 " bytes at offset %" PRId64 " failed: %s", trial->title, bytes - done,
                           offset + done, got == 0 ? "the file ends there" : strerror(errno));
    }
    return GM_OK;
}

int gm_trial_read(gm_trial *trial, int64_t index, void *dst)
{
    int64_t row, rows, col, cols, bytes = gm_trial_piece_bytes(trial, index), offset = index * trial->piece;

    if (trial->memory)
        memcpy(dst, trial->memory + index % trial->memory_pieces * trial->piece, (size_t)bytes);
    else if (trial->map)
        memcpy(dst, trial->map + offset, (size_t)bytes);
    else if (trial->way == GM_READ_DIRECT)
        return read_direct(trial, trial->offset + offset, dst, bytes);
    else if (!trial->reader)
        return gm_bytes_read(&trial->file, trial->offset + offset, dst, (size_t)bytes);
    else {
        place(trial, index, &row, &rows, &col, &cols);
        return gm_reader_read(trial->reader, row, rows, col, cols, dst, (size_t)cols * gm_dtype_size(trial->dataset.type));
    }
    return GM_OK;
}

typedef struct reading {
    gm_trial *trial;
    char *slots;
    double end;
    _Atomic int64_t bytes;
} reading;

static int read_piece(void *context, int thread, int64_t index)
{
    reading *r = context;
    int status;

    if (gm_clock() > r->end)
        return GM_OK;
    status = gm_trial_read(r->trial, index, r->slots + thread * r->trial->piece);
    if (!status)
        atomic_fetch_add(&r->bytes, gm_trial_piece_bytes(r->trial, index));
    return status;
}

int gm_trial_run(gm_trial *trial, int threads, char *slots, double limit, int64_t *bytes, double *seconds)
{
    double start = gm_clock();
    reading r = {.trial = trial, .slots = slots, .end = start + limit};
    int status;

    if (trial->way == GM_READ_MMAP && trial->bytes > 0) {
        trial->map = mmap(NULL, (size_t)trial->bytes, PROT_READ, MAP_SHARED, trial->file.fd, trial->offset);
        if (trial->map == MAP_FAILED) {
            trial->map = NULL;
            return gm_fail(GM_EINPUT, "%s: cannot be mapped: %s", trial->title, strerror(errno));
        }
    }
    status = gm_crew_run(threads, trial->count, read_piece, &r);
    if (trial->map)
        munmap(trial->map, (size_t)trial->bytes);
    trial->map = NULL;
    *seconds = gm_clock() - start;
    *bytes = r.bytes;
    return status;
}

int gm_trial_forget(const gm_dataset *dataset)
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
