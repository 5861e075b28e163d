/* reader.c - rectangles of a dataset to memory. */
#include "io/read/reader.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/range.h"
#include "base/status.h"
#include "io/box.h"
#include "io/read/chunk_read.h"
#include "io/read/plain.h"
#include "io/read/virtual_read.h"
#include "io/virtual/sources.h"

struct gm_reader {
    gm_dataset dataset;
    char title[GM_PATH_MAX];
    gm_plain *plain;
    gm_virtual *sources; /* virtual datasets; NULL otherwise */
};

int gm_reader_open(const gm_dataset *dataset, gm_reader **out)
{
    gm_reader *reader = calloc(1, sizeof *reader);
    int status = GM_OK;
    *out = NULL;
    if (!reader)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", dataset->file);
    reader->dataset = *dataset;
    gm_dataset_title(dataset, reader->title);
    if (dataset->layout == GM_VIRTUAL)
        status = gm_virtual_open(&reader->dataset, reader->title, &reader->sources);
    else
        status = gm_plain_open(dataset, reader->title, &reader->plain);
    if (!status && dataset->external)
        status = gm_sources_check(dataset);
    if (status)
        gm_reader_close(reader);
    else
        *out = reader;
    return status;
}

void gm_reader_close(gm_reader *reader)
{
    if (!reader)
        return;
    gm_virtual_close(reader->sources);
    gm_plain_close(reader->plain);
    free(reader);
}

int64_t gm_reader_bytes(const gm_dataset *dataset, int threads, int64_t room)
{
    return dataset->layout == GM_VIRTUAL ? gm_virtual_bytes(dataset, threads, room)
           : dataset->raw_chunks         ? gm_chunk_reader_bytes(dataset, threads, room)
                                         : 0;
}

int gm_reader_is_parallel(const gm_dataset *dataset)
{
    return dataset->layout == GM_VIRTUAL ? !dataset->serial_sources : dataset->direct || dataset->raw_chunks;
}

int gm_reader_takes_any(const gm_dataset *dataset)
{
    return dataset->layout == GM_VIRTUAL ? !dataset->serial_sources && !dataset->chunked_sources : dataset->direct;
}

static int read_region(gm_reader *reader, const gm_region *region, char *dst)
{
    return reader->sources ? gm_virtual_read(reader->sources, region, dst) : gm_plain_read(reader->plain, region, dst);
}

int gm_reader_read(gm_reader *reader, int64_t row, int64_t rows, int64_t col, int64_t cols, void *dst, size_t pitch)
{
    const gm_dataset *dataset = &reader->dataset;
    int64_t size = (int64_t)gm_dtype_size(dataset->type), all_rows, all_cols;
    int status = GM_OK;
    gm_region region;
    gm_box box;
    gm_dataset_matrix(dataset, &all_rows, &all_cols);
    if (row < 0 || rows < 0 || rows > all_rows - row || col < 0 || cols < 0 || cols > all_cols - col)
        return gm_fail(GM_EINTERNAL,
                       "%s: rows %" PRId64 "+%" PRId64 ", columns %" PRId64 "+%" PRId64 " lie outside %" PRId64
                       " x %" PRId64,
                       reader->title, row, rows, col, cols, all_rows, all_cols);
    if (rows > 1 && (int64_t)(pitch / (size_t)size) < cols)
        return gm_fail(GM_EINTERNAL, "%s: rows of %" PRId64 " elements do not fit into a pitch of %zu bytes",
                       reader->title, cols, pitch);
    if (rows == 0)
        return GM_OK;
    for (int64_t at = col, end = col + cols; at < end && !status; at += box.columns) {
        char *to = (char *)dst + (at - col) * size;
        gm_box_next(dataset, row, rows, at, end, &box);
        gm_box_region(dataset, &box, pitch, &region);
        status = read_region(reader, &region, to);
    }
    return status;
}

int gm_reader_read_box(gm_reader *reader, const int64_t *start, const int64_t *count, void *dst)
{
    gm_region region;
    if (!gm_box_view(&reader->dataset, start, count, &region))
        return gm_fail(GM_EINTERNAL, "%s: a box lies outside the selection", reader->title);
    return read_region(reader, &region, dst);
}

int gm_reader_read_part(gm_reader *reader, int64_t row, int64_t col, int64_t cols, int64_t first, int64_t count,
                        void *dst)
{
    int64_t size = (int64_t)gm_dtype_size(reader->dataset.type), end = first + count;
    int status = GM_OK;
    while (first < end && !status) {
        gm_rectangle r = gm_rectangle_next(cols, first, end);
        status = gm_reader_read(reader, row + r.row, r.rows, col + r.col, r.cols, dst, (size_t)(r.cols * size));
        first += r.rows * r.cols;
        dst = (char *)dst + r.rows * r.cols * size;
    }
    return status;
}

int gm_reader_read_range(gm_reader *reader, int64_t first, int64_t count, void *dst)
{
    int64_t rows, columns;
    gm_dataset_matrix(&reader->dataset, &rows, &columns);
    return gm_reader_read_part(reader, 0, 0, columns, first, count, dst);
}

char *gm_deflate_version(char *text)
{
    snprintf(text, 32, "%s", LIBDEFLATE_VERSION_STRING);
    return text;
}
