/* reader.h - slices in: rectangles of a dataset's matrix (gm_dataset_matrix) from the file to memory.
 * Every rank opens its own; nothing here is collective. */
#ifndef GM_IO_READER_H
#define GM_IO_READER_H

#include "io/dataset.h"

typedef struct gm_reader gm_reader;

/* Opens the file of a record for reading. Also checks that the file is long enough for the data (a cut file: GM_EINPUT). */
int gm_reader_open(const gm_dataset *dataset, gm_reader **reader);
void gm_reader_close(gm_reader *reader); /* takes NULL */

/* Host memory that an open reader and so many threads in it may take beside the caller's; they make do with less, down to one thread's. 0 for what
 * needs none. */
int64_t gm_reader_bytes(const gm_dataset *dataset, int threads);

/* Do several threads read it at the same time? Otherwise one after the other, under libhdf5's lock. */
int gm_reader_is_parallel(const gm_dataset *dataset);

/* Reads elements [row, row + rows) x [col, col + cols) of the matrix to dst, rows pitch bytes apart, in the type and byte order that the
 * record names. Thread-safe: contiguous data, and rows of contiguous parts, by checked pread, chunks decoded by the thread that calls, everything else by H5Dread
 * under one lock. GM_EINPUT on failure. */
int gm_reader_read(gm_reader *reader, int64_t row, int64_t rows, int64_t col, int64_t cols, void *dst, size_t pitch);

/* Reads elements [first, first + count) of what is selected, in C order, to dst, one behind the other. Thread-safe; GM_EINPUT. */
int gm_reader_read_range(gm_reader *reader, int64_t first, int64_t count, void *dst);

#endif
