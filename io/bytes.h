/* bytes.h - checked pread and pwrite of any size, dense or strided. Internal to io/. */
#ifndef GM_IO_BYTES_H
#define GM_IO_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that lie in a file of their own. */
typedef struct gm_extent {
    char *path;
    int64_t offset, bytes; /* in the file */
} gm_extent;

/* An open file, and the title and status of its errors. */
typedef struct gm_bytes {
    int fd;
    int code;                /* GM_EINPUT or GM_EOUTPUT */
    const char *title;       /* "FILE:DATASET"; lent */
    int64_t needed;          /* bytes of the whole file, for the message; 0: left out */
    struct gm_cold *cold;    /* for large reads of uncached data (io/cold.h); NULL: all reads are plain */
    const gm_extent *extent; /* to be read only: the bytes of these, one after the other, and none of fd */
    int extents;
} gm_bytes;

/* All of the bytes at offset; a file that ends before them is an error. Thread-safe. */
int gm_bytes_read(const gm_bytes *file, int64_t offset, void *dst, size_t bytes);
int gm_bytes_write(const gm_bytes *file, int64_t offset, const void *src, size_t bytes);

/* Closes a file that was written, after what has led to status; takes -1. An error of earlier writes that the system
 * returns only then is GM_EOUTPUT. Returns status, or without an error there, that of closing. */
int gm_bytes_close(int fd, const char *title, int status);

/* One dimension of a strided copy: count elements, `file` bytes apart in the file and `memory` bytes in memory. */
typedef struct gm_stride {
    int64_t count, file, memory;
} gm_stride;

enum { GM_STRIDES_MAX = 33 };

/* Reads elements of size bytes, with the strides dims (outermost first, at most GM_STRIDES_MAX - 1), in as few requests
 * as is sensible. Elements do not overlap, and the file's strides fall from the outermost dimension to the innermost.
 * Thread-safe. */
int gm_bytes_gather(const gm_bytes *file, int64_t offset, const gm_stride *dims, int rank, size_t size, void *dst);

/* The same from memory: the file strides are those of src, and may be 0. */
void gm_bytes_copy(const void *src, const gm_stride *dims, int rank, size_t size, void *dst);

/* Bytes from the first one on that are contiguous in the file and in memory. */
int64_t gm_bytes_run(const gm_stride *dims, int rank, size_t size);

#endif
