/* write.c - writes rectangles of memory to the output. */
#define _GNU_SOURCE 1 /* O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file/flush.h"
#include "base/file/new_file.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/write/ahead.h"
#include "io/write/parts.h"
#include "io/write/record.h"
#include "io/write/space.h"

/* Whole rows shorter than PACKED are joined in memory to requests of about WINDOW bytes. */
enum { PACKED = 64 * 1024, WINDOW = 256 * 1024, PAGE = 4096 };

/* The files of an output: the HDF5 file, the scratch file, the parts. */
enum { AT_FILE, AT_SCRATCH, AT_PARTS, FILES = AT_PARTS + GM_OUTPUT_PARTS_MAX };

typedef struct target {
    gm_bytes bytes;
    atomic_int dirty; /* written to by this rank */
} target;

struct gm_output {
    gm_output_record record;
    target target[FILES];
    gm_bytes direct; /* AT_FILE by O_DIRECT; descriptor -1: not open */
    char *map;       /* AT_FILE; NULL: not mapped */
    size_t map_bytes;
    gm_space_seen space; /* of AT_FILE */
    gm_ahead *ahead;     /* of parts, until the first write; NULL: none */
};

static const char *path_of(const gm_output_record *record, int file, char *path)
{
    if (file >= AT_PARTS)
        return file - AT_PARTS < record->parts ? gm_parts_path(record, file - AT_PARTS, path) : NULL;
    if (file == AT_SCRATCH)
        return gm_record_has_scratch(record) ? record->raw : NULL;
    return record->temporary;
}

static int open_target(gm_output *output, int file)
{
    char part[GM_PATH_MAX];
    const gm_output_record *record = &output->record;
    const char *path = path_of(record, file, part);
    if (path && (output->target[file].bytes.fd = gm_new_file_open(path, O_RDWR)) < 0)
        return gm_fail(GM_EOUTPUT, "%s: %s cannot be opened for writing: %s", record->file, path, strerror(errno));
    return GM_OK;
}

/* Opens or maps the file once more where the strategy needs it. */
static int open_strategy(gm_output *output)
{
    const gm_output_record *record = &output->record;
    struct stat st;
    if (record->strategy == GM_WRITE_DIRECT &&
        (output->direct.fd = gm_new_file_open(record->temporary, O_WRONLY | O_DIRECT)) < 0)
        return gm_fail(GM_EOUTPUT, "%s: %s cannot be opened for direct writing: %s", record->file, record->temporary,
                       strerror(errno));
    if (record->strategy != GM_WRITE_MAPPED)
        return GM_OK;
    if (fstat(output->target[AT_FILE].bytes.fd, &st))
        return gm_fail(GM_EOUTPUT, "%s: its size cannot be determined: %s", record->file, strerror(errno));
    output->map_bytes = (size_t)gm_max(st.st_size, record->space);
    output->map = mmap(NULL, output->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, output->target[AT_FILE].bytes.fd,
                       0);
    if (output->map == MAP_FAILED) {
        output->map = NULL;
        return gm_fail(GM_EOUTPUT, "%s: cannot be mapped: %s", record->file, strerror(errno));
    }
    return GM_OK;
}

int gm_output_open(const gm_output_record *record, gm_output **out)
{
    gm_output *output = calloc(1, sizeof *output);
    int64_t needed = 0;
    int status = GM_OK;
    *out = NULL;
    if (!output)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", record->file);
    output->record = *record;
    for (int i = 0; i < record->datasets; i++)
        needed = gm_add_sat(needed, gm_record_bytes(&record->dataset[i]));
    pthread_mutex_init(&output->space.checking, NULL);
    output->direct = (gm_bytes){.fd = -1, .code = GM_EOUTPUT, .title = output->record.file, .needed = needed};
    for (int file = 0; file < FILES; file++)
        output->target[file].bytes = output->direct;
    for (int file = 0; file < FILES && !status; file++)
        status = open_target(output, file);
    if (!status)
        status = open_strategy(output);
    if (status)
        gm_output_close(output, NULL);
    else
        *out = output;
    return status;
}

/* A scratch file is temporary: it need not reach the disk. */
static int close_target(gm_output *output, int file, double *sync_seconds)
{
    const char *title = output->record.file;
    const target *t = &output->target[file];
    double start = gm_clock();
    int status = GM_OK;
    if (t->bytes.fd < 0)
        return GM_OK;
    if (output->record.sync && t->dirty && file != AT_SCRATCH) {
        int why = gm_file_flush_stoppable(t->bytes.fd, &status);
        if (why && !status)
            status = gm_fail(GM_EOUTPUT, "%s: flushing to the disk failed: %s", title, strerror(why));
        if (sync_seconds)
            *sync_seconds += gm_clock() - start;
    }
    return gm_bytes_close(t->bytes.fd, title, status);
}

int gm_output_close(gm_output *output, double *sync_seconds)
{
    int status = GM_OK;
    if (!output)
        return GM_OK;
    gm_ahead_end(output->ahead);
    if (output->map && munmap(output->map, output->map_bytes))
        status = gm_fail(GM_EOUTPUT, "%s: unmapping failed: %s", output->record.file, strerror(errno));
    status = gm_bytes_close(output->direct.fd, output->record.file, status);
    for (int file = 0; file < FILES; file++) {
        int closed = close_target(output, file, sync_seconds);
        status = status ? status : closed;
    }
    pthread_mutex_destroy(&output->space.checking);
    free(output);
    return status;
}

void gm_output_allocate_parts(gm_output *output, int index, int of, int threads)
{
    int descriptors[GM_OUTPUT_PARTS_MAX], files = 0;
    for (int part = index; part < output->record.parts; part += of)
        descriptors[files++] = output->target[AT_PARTS + part].bytes.fd;
    output->ahead = gm_ahead_begin(descriptors, files, threads);
}

/* Writes whole pages, if they are aligned in memory as well, by O_DIRECT; the bytes at both ends by the page cache. */
static int write_direct(gm_output *output, int64_t offset, const char *src, size_t bytes)
{
    const gm_bytes *cached = &output->target[AT_FILE].bytes;
    size_t head = gm_min((PAGE - offset % PAGE) % PAGE, (int64_t)bytes), whole = (bytes - head) / PAGE * PAGE;
    if ((uintptr_t)(src + head) % PAGE != 0 || whole == 0)
        return gm_bytes_write(cached, offset, src, bytes);
    int status = gm_bytes_write(cached, offset, src, head);
    if (!status)
        status = gm_bytes_write(&output->direct, offset + (int64_t)head, src + head, whole);
    if (!status)
        status = gm_bytes_write(cached, offset + (int64_t)(head + whole), src + head + whole, bytes - head - whole);
    return status;
}

static int write_dense(gm_output *output, int file, int64_t offset, const char *src, size_t bytes)
{
    if (file == AT_FILE && output->direct.fd >= 0)
        return write_direct(output, offset, src, bytes);
    return gm_bytes_write(&output->target[file].bytes, offset, src, bytes);
}

/* Rows in memory, pitch bytes apart, and in a file, step bytes apart. */
typedef struct rows {
    const char *src;
    size_t pitch, bytes;
    int64_t count, step;
} rows;

static int write_mapped(gm_output *output, int64_t offset, const rows *r)
{
    char *to = output->map + offset;
    int64_t begin = offset / PAGE * PAGE, end = offset + (r->count - 1) * r->step + (int64_t)r->bytes;
    if (offset < 0 || (uint64_t)end > output->map_bytes)
        return gm_fail(GM_EINTERNAL, "%s: %zu bytes at offset %" PRId64 " lie outside the file", output->record.file,
                       r->bytes, offset);
    for (int64_t i = 0; i < r->count; i++)
        memcpy(to + i * r->step, r->src + (size_t)i * r->pitch, r->bytes);
    /* Unmapping all pages of a large mapping at its end takes long: each thread drops those that it has written. The
     * file keeps them. */
    madvise(output->map + begin, (size_t)(end - begin), MADV_DONTNEED);
    return GM_OK;
}

/* Rows that are contiguous in the file but not in memory are joined, then written. */
static int write_packed(gm_output *output, int file, int64_t offset, const rows *r)
{
    int64_t at_once = gm_min(WINDOW / (int64_t)r->bytes, r->count);
    char *window = malloc((size_t)at_once * r->bytes);
    int status = GM_OK;
    if (!window)
        return gm_fail(GM_EDEVICE, "%s: no memory for a buffer of %d bytes", output->record.file, WINDOW);
    for (int64_t row = 0; row < r->count && !status; row += at_once) {
        int64_t count = gm_min(at_once, r->count - row);
        for (int64_t i = 0; i < count; i++)
            memcpy(window + (size_t)i * r->bytes, r->src + (size_t)(row + i) * r->pitch, r->bytes);
        status = write_dense(output, file, offset + row * r->step, window, (size_t)count * r->bytes);
    }
    free(window);
    return status;
}

static int write_rows(gm_output *output, int file, int64_t offset, const rows *r)
{
    int dense = r->step == (int64_t)r->bytes, status = GM_OK;
    atomic_store(&output->target[file].dirty, 1);
    gm_ahead_stop(output->ahead);
    if (file == AT_FILE && output->record.space)
        status = gm_space_wait(&output->record, output->target[file].bytes.fd,
                               offset + (r->count - 1) * r->step + (int64_t)r->bytes, &output->space);
    if (status)
        return status;
    if (file == AT_FILE && output->map)
        return write_mapped(output, offset, r);
    if (r->count == 1 || (dense && r->pitch == r->bytes))
        return write_dense(output, file, offset, r->src, (size_t)r->count * r->bytes);
    if (dense && r->bytes < PACKED)
        return write_packed(output, file, offset, r);
    for (int64_t i = 0; i < r->count && !status; i++)
        status = write_dense(output, file, offset + i * r->step, r->src + (size_t)i * r->pitch, r->bytes);
    return status;
}

/* The place of a row of a dataset: returns the file; *rows gets the number of contiguous rows from it on. */
static int place(const gm_output_record *record, int index, int64_t row, int64_t row_bytes, int64_t *offset,
                 int64_t *rows)
{
    const gm_output_dataset *dataset = &record->dataset[index];
    int64_t stripe = record->stripe[index], number, inside;
    if (!stripe) {
        *offset = record->offset[index] + row * row_bytes;
        *rows = INT64_MAX;
        return dataset->chunked ? AT_SCRATCH : AT_FILE;
    }
    number = row / stripe;
    inside = row % stripe;
    int part = (int)(number % record->parts);
    *offset = record->part_offset[part][index] + (number / record->parts * stripe + inside) * row_bytes;
    *rows = stripe - inside;
    return AT_PARTS + part;
}

int64_t gm_output_row_unit(const gm_output *output, int index)
{
    return gm_max(output->record.stripe[index], 1);
}

int gm_output_write(gm_output *output, int index, int64_t row, int64_t rows, int64_t col, int64_t cols, const void *src,
                    size_t pitch)
{
    const gm_output_record *record = &output->record;
    const gm_output_dataset *dataset = &record->dataset[index >= 0 && index < record->datasets ? index : 0];
    int64_t size = (int64_t)gm_dtype_size(dataset->type), all_rows = dataset->rank ? dataset->dims[0] : 1;
    int64_t all_cols = gm_record_columns(dataset), offset, there;
    struct rows r = {.src = src, .pitch = pitch, .bytes = (size_t)(cols * size), .step = all_cols * size};
    int status = GM_OK;
    if (index < 0 || index >= record->datasets || row < 0 || rows < 0 || rows > all_rows - row || col < 0 || cols < 0 ||
        cols > all_cols - col)
        return gm_fail(GM_EINTERNAL,
                       "%s: rows %" PRId64 "+%" PRId64 ", columns %" PRId64 "+%" PRId64 " lie outside dataset %d",
                       record->file, row, rows, col, cols, index);
    if (cols == 0)
        return GM_OK;
    for (; rows > 0 && !status; rows -= r.count) {
        int file = place(record, index, row, r.step, &offset, &there);
        r.count = gm_min(there, rows);
        status = write_rows(output, file, offset + col * size, &r);
        r.src += (size_t)r.count * pitch;
        row += r.count;
    }
    return status;
}

int gm_output_write_part(gm_output *output, int index, int64_t row, int64_t col, int64_t cols, int64_t first,
                         int64_t count, const void *src)
{
    const gm_output_record *record = &output->record;
    const gm_output_dataset *dataset = &record->dataset[index >= 0 && index < record->datasets ? index : 0];
    int64_t size = (int64_t)gm_dtype_size(dataset->type), end = first + count;
    int status = GM_OK;
    while (first < end && !status) {
        gm_rectangle r = gm_rectangle_next(cols, first, end);
        status = gm_output_write(output, index, row + r.row, r.rows, col + r.col, r.cols, src, (size_t)(r.cols * size));
        first += r.rows * r.cols;
        src = (const char *)src + r.rows * r.cols * size;
    }
    return status;
}

int gm_output_write_range(gm_output *output, int index, int64_t first, int64_t count, const void *src)
{
    const gm_output_record *record = &output->record;
    const gm_output_dataset *dataset = &record->dataset[index >= 0 && index < record->datasets ? index : 0];
    int64_t elements = gm_record_bytes(dataset) / (int64_t)gm_dtype_size(dataset->type);
    if (index < 0 || index >= record->datasets || first < 0 || count < 0 || count > elements - first)
        return gm_fail(GM_EINTERNAL, "%s: elements %" PRId64 "+%" PRId64 " lie outside dataset %d", record->file, first,
                       count, index);
    return gm_output_write_part(output, index, 0, 0, gm_record_columns(dataset), first, count, src);
}
