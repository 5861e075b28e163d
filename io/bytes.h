/* bytes.h - checked pread and pwrite of any size, dense or strided. Internal to io/. */
#ifndef GM_IO_BYTES_H
#define GM_IO_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* An open file and what to say and return when it fails. */
typedef struct gm_bytes {
    int fd;
    int code;          /* GM_EINPUT or GM_EOUTPUT */
    const char *title; /* "FILE:DATASET"; lent */
    int64_t needed;    /* bytes that the whole file takes, for the message; 0: not said */
    struct gm_cold *cold; /* for large reads of what is not in memory (io/cold.h); NULL: all reads are plain */
} gm_bytes;

/* All of the bytes at offset; a file that ends before them is an error. Thread-safe. */
int gm_bytes_read(const gm_bytes *file, int64_t offset, void *dst, size_t bytes);
int gm_bytes_write(const gm_bytes *file, int64_t offset, const void *src, size_t bytes);

/* One dimension of a strided copy: count steps, so many bytes apart in the file and in memory. */
typedef struct gm_stride {
    int64_t count, file, memory;
} gm_stride;

enum { GM_STRIDES_MAX = 33 };

/* Reads elements of size bytes that lie in the file and in memory as dims (outermost first, at most GM_STRIDES_MAX - 1) say, in as few
 * requests as is sensible. Elements do not overlap, and the file's strides fall from the outermost dimension to the innermost. Thread-safe. */
int gm_bytes_gather(const gm_bytes *file, int64_t offset, const gm_stride *dims, int rank, size_t size, void *dst);

/* The same from memory: strides called file are those of src, and may be 0. */
void gm_bytes_copy(const void *src, const gm_stride *dims, int rank, size_t size, void *dst);

/* Bytes that lie without a gap in the file and in memory, from the first on. */
int64_t gm_bytes_run(const gm_stride *dims, int rank, size_t size);

#endif
