/* reader.c - rectangles of a dataset to memory: contiguous data by pread, chunks by chunk_read.h, rows of parts by stripe_read.h,
 * everything else by H5Dread. */
#include "io/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/box.h"
#include "io/bytes.h"
#include "io/chunk_read.h"
#include "io/cold.h"
#include "io/h5.h"
#include "io/stripe_read.h"

struct gm_reader {
    gm_dataset dataset;
    char title[GM_PATH_MAX];
    int (*read)(gm_reader *reader, const gm_box *box, char *dst, size_t pitch);
    int64_t columns_max;     /* of a box that read takes */
    gm_bytes bytes;          /* direct data; fd -1 otherwise */
    gm_chunk_reader *chunks; /* raw chunks; NULL otherwise */
    gm_stripe_reader *stripes; /* rows of parts; NULL otherwise */
    hid_t file, set, space;  /* the others */
    hid_t type;              /* in memory */
};

/* A single H5Dread of more than 2 GiB fails on stock libraries. */
static const int64_t h5_bytes_max = INT64_C(1) << 30;

static int read_direct(gm_reader *reader, const gm_box *box, char *dst, size_t pitch)
{
    const gm_dataset *dataset = &reader->dataset;
    gm_stride dims[GM_RANK_MAX];
    int64_t first = gm_box_strides(dataset, box, pitch, dims);

    return gm_bytes_gather(&reader->bytes, dataset->offset + first, dims, dataset->rank, gm_dtype_size(dataset->type), dst);
}

static int read_chunks(gm_reader *reader, const gm_box *box, char *dst, size_t pitch)
{
    return gm_chunk_reader_read(reader->chunks, box, dst, pitch);
}

static int read_stripes(gm_reader *reader, const gm_box *box, char *dst, size_t pitch)
{
    return gm_stripe_reader_read(reader->stripes, box, dst, pitch);
}

/* Memory of the box's own shape if it has no gaps: between shapes that differ libhdf5 goes element by element. Otherwise rows. */
static hid_t memory_space(const gm_dataset *dataset, const gm_box *box, size_t pitch)
{
    size_t size = gm_dtype_size(dataset->type);
    hsize_t rows = box->row_dim < 0 ? 1 : (hsize_t)box->count[box->row_dim], columns = (hsize_t)box->columns;
    hsize_t room[2] = {rows, rows == 1 ? columns : pitch / size}, from[2] = {0, 0}, part[2] = {rows, columns}, shape[GM_RANK_MAX];
    hid_t memory;

    for (int d = 0; d < dataset->rank; d++)
        shape[d] = (hsize_t)box->count[d];
    if (dataset->rank > 0 && room[1] == columns)
        return H5Screate_simple(dataset->rank, shape, NULL);
    memory = H5Screate_simple(2, room, NULL);
    if (memory >= 0 && H5Sselect_hyperslab(memory, H5S_SELECT_SET, from, NULL, part, NULL) < 0) {
        H5Sclose(memory);
        return H5I_INVALID_HID;
    }
    return memory;
}

/* One H5Dread: a box to rows of memory. */
static int read_h5(gm_reader *reader, const gm_box *box, char *dst, size_t pitch)
{
    const gm_dataset *dataset = &reader->dataset;
    hsize_t start[GM_RANK_MAX], step[GM_RANK_MAX], count[GM_RANK_MAX];
    char reason[GM_H5_TEXT];
    hid_t memory;
    int ok;

    for (int d = 0; d < dataset->rank; d++) {
        start[d] = (hsize_t)box->start[d];
        step[d] = (hsize_t)dataset->selection.step[d];
        count[d] = (hsize_t)box->count[d];
    }
    gm_h5_lock();
    memory = memory_space(dataset, box, pitch);
    ok = memory >= 0;
    if (ok && dataset->rank > 0)
        ok = H5Sselect_hyperslab(reader->space, H5S_SELECT_SET, start, step, count, NULL) >= 0;
    ok = ok && H5Dread(reader->set, reader->type, memory, reader->space, H5P_DEFAULT, dst) >= 0;
    if (!ok)
        gm_fail(GM_EINPUT, "%s: reading failed: %s", reader->title, gm_h5_error(reason));
    if (memory >= 0)
        H5Sclose(memory);
    gm_h5_unlock();
    return ok ? GM_OK : GM_EINPUT;
}

/* Rows of a box in pieces that one H5Dread can take. */
static int read_h5_rows(gm_reader *reader, const gm_box *box, char *dst, size_t pitch)
{
    int64_t size = (int64_t)gm_dtype_size(reader->dataset.type);
    int64_t rows = box->row_dim < 0 ? 1 : box->count[box->row_dim];
    int64_t at_once = pitch % (size_t)size ? 1 : gm_max(1, h5_bytes_max / (box->columns * size));
    int status = GM_OK;

    for (int64_t row = 0; row < rows && !status; row += at_once) {
        gm_box piece = *box;

        if (box->row_dim >= 0) {
            piece.start[box->row_dim] += row * reader->dataset.selection.step[box->row_dim];
            piece.count[box->row_dim] = gm_min(at_once, rows - row);
        }
        status = read_h5(reader, &piece, dst + (size_t)row * pitch, pitch);
    }
    return status;
}

static int open_direct(gm_reader *reader)
{
    const gm_dataset *dataset = &reader->dataset;
    int64_t end = (int64_t)gm_dtype_size(dataset->type);
    struct stat st;

    reader->bytes.fd = open(dataset->data_file, O_RDONLY | O_CLOEXEC);
    if (reader->bytes.fd < 0 || fstat(reader->bytes.fd, &st))
        return gm_fail(GM_EINPUT, "%s: %s cannot be opened: %s", reader->title, dataset->data_file, strerror(errno));
    for (int d = 0; d < dataset->rank; d++)
        end = gm_mul_sat(end, dataset->dims[d]);
    end = gm_add_sat(end, dataset->offset);
    if (dataset->offset < 0 || end > st.st_size)
        return gm_fail(GM_EINPUT, "%s: %s ends at byte %" PRId64 ", expected %" PRId64 ": it is damaged or cut", reader->title,
                       dataset->data_file, (int64_t)st.st_size, end);
    reader->read = read_direct;
    reader->bytes.cold = gm_cold_open(reader->bytes.fd, GM_COLD_CONTEST);
    return GM_OK;
}

/* Leaves it to others when memory does not allow it. */
static int open_chunks(gm_reader *reader)
{
    int status = gm_chunk_reader_open(&reader->dataset, reader->title, &reader->chunks);

    if (reader->chunks)
        reader->read = read_chunks;
    return status;
}

/* The same for parts that are not of the right kind. */
static int open_stripes(gm_reader *reader)
{
    int status = gm_stripe_reader_open(&reader->dataset, reader->title, &reader->stripes);

    if (reader->stripes)
        reader->read = read_stripes;
    return status;
}

static int open_h5(gm_reader *reader)
{
    char reason[GM_H5_TEXT];
    int status;

    gm_h5_lock();
    status = gm_h5_open(reader->dataset.file, &reader->file);
    if (!status) {
        reader->set = H5Dopen2(reader->file, reader->dataset.name, H5P_DEFAULT);
        if (reader->set >= 0)
            reader->space = H5Dget_space(reader->set);
        if (reader->set >= 0)
            reader->type = reader->dataset.swap ? gm_h5_type_swapped(reader->dataset.type) : H5Tcopy(gm_h5_type(reader->dataset.type));
        if (reader->space < 0 || reader->type < 0)
            status = gm_fail(GM_EINPUT, "%s: cannot be opened: %s", reader->title, gm_h5_error(reason));
        else if (H5Sget_simple_extent_ndims(reader->space) != reader->dataset.rank)
            status = gm_fail(GM_EINPUT, "%s: is not the dataset that was found before, expected %d dimensions", reader->title,
                             reader->dataset.rank);
    }
    gm_h5_unlock();
    reader->read = read_h5_rows;
    reader->columns_max = h5_bytes_max / (int64_t)gm_dtype_size(reader->dataset.type);
    return status;
}

int gm_reader_open(const gm_dataset *dataset, gm_reader **out)
{
    gm_reader *reader = calloc(1, sizeof *reader);
    int status = GM_OK;

    *out = NULL;
    if (!reader)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", dataset->file);
    reader->dataset = *dataset;
    gm_dataset_title(dataset, reader->title);
    reader->bytes = (gm_bytes){-1, GM_EINPUT, reader->title, 0, NULL};
    reader->file = reader->set = reader->space = reader->type = H5I_INVALID_HID;
    reader->columns_max = INT64_MAX;
    if (dataset->direct)
        status = open_direct(reader);
    else if (dataset->raw_chunks)
        status = open_chunks(reader);
    else if (dataset->row_runs)
        status = open_stripes(reader);
    if (!status && !reader->read)
        status = open_h5(reader);
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
    gm_cold_close(reader->bytes.cold);
    if (reader->bytes.fd >= 0)
        close(reader->bytes.fd);
    gm_chunk_reader_close(reader->chunks);
    gm_stripe_reader_close(reader->stripes);
    if (reader->file >= 0) {
        gm_h5_lock();
        if (reader->type >= 0)
            H5Tclose(reader->type);
        if (reader->space >= 0)
            H5Sclose(reader->space);
        if (reader->set >= 0)
            H5Dclose(reader->set);
        H5Fclose(reader->file);
        gm_h5_unlock();
    }
    free(reader);
}

int64_t gm_reader_bytes(const gm_dataset *dataset, int threads)
{
    return dataset->raw_chunks ? gm_chunk_reader_bytes(dataset, threads) : dataset->row_runs ? gm_stripe_reader_bytes(dataset) : 0;
}

int gm_reader_is_parallel(const gm_dataset *dataset)
{
    return dataset->direct || dataset->raw_chunks || dataset->row_runs;
}

int gm_reader_read(gm_reader *reader, int64_t row, int64_t rows, int64_t col, int64_t cols, void *dst, size_t pitch)
{
    const gm_dataset *dataset = &reader->dataset;
    int64_t size = (int64_t)gm_dtype_size(dataset->type), all_rows, all_cols;
    int status = GM_OK;
    gm_box box;

    gm_dataset_matrix(dataset, &all_rows, &all_cols);
    if (row < 0 || rows < 0 || rows > all_rows - row || col < 0 || cols < 0 || cols > all_cols - col)
        return gm_fail(GM_EINTERNAL, "%s: rows %" PRId64 "+%" PRId64 ", columns %" PRId64 "+%" PRId64 " lie outside %" PRId64 " x %" PRId64,
                       reader->title, row, rows, col, cols, all_rows, all_cols);
    if (rows > 1 && (int64_t)(pitch / (size_t)size) < cols)
        return gm_fail(GM_EINTERNAL, "%s: rows of %" PRId64 " elements do not fit into a pitch of %zu bytes", reader->title, cols, pitch);
    if (rows == 0)
        return GM_OK;
    for (int64_t at = col, end = col + cols; at < end && !status; at += box.columns) {
        char *to = (char *)dst + (at - col) * size;

        gm_box_next(dataset, row, rows, at, end - at > reader->columns_max ? at + reader->columns_max : end, &box);
        status = reader->read(reader, &box, to, pitch);
    }
    return status;
}

int gm_reader_read_range(gm_reader *reader, int64_t first, int64_t count, void *dst)
{
    int64_t size = (int64_t)gm_dtype_size(reader->dataset.type), rows, columns, end = first + count;
    int status = GM_OK;

    gm_dataset_matrix(&reader->dataset, &rows, &columns);
    while (first < end && !status) {
        int64_t row = first / columns, col = first % columns, cols = gm_min(columns - col, end - first), whole = 1;

        if (cols == columns)
            whole = (end - first) / columns;
        status = gm_reader_read(reader, row, whole, col, cols, dst, (size_t)(cols * size));
        first += whole * cols;
        dst = (char *)dst + whole * cols * size;
    }
    return status;
}
