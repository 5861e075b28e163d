/* chunk_read.h - boxes of a chunked dataset, decoded by whoever asks. Internal to io/. */
#ifndef GM_IO_CHUNK_READ_H
#define GM_IO_CHUNK_READ_H

#include "io/box.h"

typedef struct gm_chunk_reader gm_chunk_reader;

/* For a record with raw_chunks; dataset and title are lent until it is closed. *out is NULL, with GM_OK, when memory does not allow it:
 * then H5Dread can do it. The table of chunks and one place to decode at are charged to GM_HOST, and a place more for each thread that
 * reads at the same time, as far as the cap allows. GM_EINPUT as gm_reader_open(). */
int gm_chunk_reader_open(const gm_dataset *dataset, const char *title, gm_chunk_reader **out);
void gm_chunk_reader_close(gm_chunk_reader *reader); /* takes NULL */

/* Bytes that are charged for so many threads; 0 when not even one would leave three quarters of GM_HOST to others: then it is H5Dread as well. */
int64_t gm_chunk_reader_bytes(const gm_dataset *dataset, int threads);

/* Reads a box, rows pitch bytes apart. Thread-safe. GM_EINPUT, naming the chunk. */
int gm_chunk_reader_read(gm_chunk_reader *reader, const gm_box *box, char *dst, size_t pitch);

#endif
