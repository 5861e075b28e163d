/* reader.h - reads rectangles of a dataset's matrix (gm_dataset_matrix) from the file to memory.
 * Every rank opens its own; nothing here is collective. */
#ifndef GM_IO_READ_READER_H
#define GM_IO_READ_READER_H

#include "io/dataset.h"

typedef struct gm_reader gm_reader;

/* Opens the file of a record, which is copied, for reading. GM_EINPUT: it is not the file that was described, or is too
 * short for the data. GM_EDEVICE: no memory. *reader is NULL after a failure. */
int gm_reader_open(const gm_dataset *dataset, gm_reader **reader);
void gm_reader_close(gm_reader *reader); /* takes NULL */

/* Host memory that an open reader with the given threads may charge, where `room` bytes may be allocated when it is
 * opened; it works with less, down to one thread's. 0 for datasets that need none. Pure. */
int64_t gm_reader_bytes(const gm_dataset *dataset, int threads, int64_t room);

/* Can several threads read it at the same time? Otherwise libhdf5 reads it, or a source of it, for one after the other.
 */
int gm_reader_is_parallel(const gm_dataset *dataset);

/* Does a read of any part of it cost no more than its bytes? Of chunks a small part costs a whole one. */
int gm_reader_takes_any(const gm_dataset *dataset);

/* Reads elements [row, row + rows) x [col, col + cols) of the matrix to dst, rows pitch bytes apart, in the type and
 * byte order that the record names. Thread-safe: contiguous data by checked pread, chunks decoded by the thread
 * that calls, virtual datasets from their sources, everything else by H5Dread. GM_EINPUT on failure. */
int gm_reader_read(gm_reader *reader, int64_t row, int64_t rows, int64_t col, int64_t cols, void *dst, size_t pitch);

/* Reads elements [first, first + count) in C order of a rectangle of the matrix, whose rows are `cols` elements from
 * (row, col) on, to consecutive elements of dst. Thread-safe; GM_EINPUT. */
int gm_reader_read_part(gm_reader *reader, int64_t row, int64_t col, int64_t cols, int64_t first, int64_t count,
                        void *dst);

/* Reads a box of the selection, count[v] elements from start[v] on in each dimension v of its view, to consecutive
 * elements of dst in C order. Chunks that the box has parts of are decoded once. Thread-safe; GM_EINPUT. */
int gm_reader_read_box(gm_reader *reader, const int64_t *start, const int64_t *count, void *dst);

/* Reads elements [first, first + count) of the selection, in C order, to consecutive elements of dst. Thread-safe;
 * GM_EINPUT. */
int gm_reader_read_range(gm_reader *reader, int64_t first, int64_t count, void *dst);

/* "1.14": the libdeflate that the program was compiled with. text has room for 32 bytes. Returns text. */
char *gm_deflate_version(char *text);

#endif
