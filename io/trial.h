/* trial.h - ways to read a file and to write one, to be timed. For bench; called by one rank.
 *
 * Reading goes piece by piece, each to memory of the caller's. Contiguous data are read where they lie; of chunked data the raw ways (memcpy, pread, mmap and
 * O_DIRECT) read the file's bytes as they are, H5Dread and the reader the elements. */
#ifndef GM_IO_TRIAL_H
#define GM_IO_TRIAL_H

#include "io/output.h"

typedef enum gm_read_way {
    GM_READ_MEMORY, /* no file: from host memory, what the others can come up to */
    GM_READ_PREAD,
    GM_READ_MMAP,
    GM_READ_DIRECT, /* past the page cache */
    GM_READ_HDF5,   /* H5Dread, as a user would call it: one thread */
    GM_READ_READER, /* the program's own (reader.h) */
    GM_READ_WAYS
} gm_read_way;

const char *gm_read_way_name(gm_read_way way);

typedef struct gm_trial gm_trial;

/* Prepares to read up to so many bytes in pieces of `piece` bytes or less; piece is a multiple of 4096 that holds an element. *trial NULL with GM_OK: not possible for
 * this dataset or on this file system. GM_READ_MEMORY allocates what it reads, up to 256 MiB charged to GM_HOST. */
int gm_trial_open(const gm_dataset *dataset, gm_read_way way, int64_t bytes, int64_t piece, gm_trial **trial);
void gm_trial_close(gm_trial *trial); /* takes NULL */

/* What all pieces are, together, and their number. */
int64_t gm_trial_bytes(const gm_trial *trial);
int64_t gm_trial_pieces(const gm_trial *trial);
int64_t gm_trial_piece_bytes(const gm_trial *trial, int64_t index);

/* One piece to dst, which is page-aligned and has room for a piece. Thread-safe. Not for GM_READ_MMAP. */
int gm_trial_read(gm_trial *trial, int64_t index, void *dst);

/* All pieces, by so many threads, thread t to slots + t * piece; none is begun later than `limit` seconds after the start. *bytes: what has been read in
 * *seconds. */
int gm_trial_run(gm_trial *trial, int threads, char *slots, double limit, int64_t *bytes, double *seconds);

/* Empties the page cache of a dataset's file, as far as the system lets us. Returns whether it is empty. */
int gm_trial_forget(const gm_dataset *dataset);

/* One way of writing new files beside `file`. */
typedef struct gm_write_trial {
    gm_way way;
    int files, threads;  /* files: parts, GM_WAY_PLAIN only; threads: up to GM_TRIAL_THREADS take part */
    int64_t blocks;      /* to be written, in all */
    size_t block_bytes;  /* a multiple of 4096 */
    const char *data;    /* page-aligned; thread t writes what is at data + t * stride, again and again */
    size_t stride;
    double limit;        /* seconds: later than that no block is begun */
    int sync;            /* with the flush to the disk */
    int behind;          /* space is allocated beside the writing: the slower of the two counts, not both */
} gm_write_trial;

enum { GM_TRIAL_THREADS = 64 };

/* byte/s; 0, without a message, when it is not possible here or does not work. The files have no names by the time they are written. */
double gm_trial_write(const char *file, const gm_write_trial *trial);

#endif
