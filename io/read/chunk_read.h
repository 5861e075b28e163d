/* chunk_read.h - reads boxes of a chunked dataset; the calling thread decodes. Internal to io/. */
#ifndef GM_IO_READ_CHUNK_READ_H
#define GM_IO_READ_CHUNK_READ_H

#include "io/box.h"

typedef struct gm_chunk_reader gm_chunk_reader;

/* For a record with raw_chunks; dataset and title are lent until it is closed. *out is NULL, with GM_OK, when memory
 * does not allow it: then H5Dread can read the dataset. The table of chunks and one entry of the chunk pool are charged
 * to GM_HOST, and one more entry for each thread that reads at the same time, as far as the cap allows. GM_EINPUT as
 * gm_reader_open(). */
int gm_chunk_reader_open(const gm_dataset *dataset, const char *title, gm_chunk_reader **out);
void gm_chunk_reader_close(gm_chunk_reader *reader); /* takes NULL */

/* Bytes that are charged for the given threads, where `room` bytes may be allocated; 0 when even one would take more
 * than a quarter of them: then H5Dread reads the dataset as well. Pure. */
int64_t gm_chunk_reader_bytes(const gm_dataset *dataset, int threads, int64_t room);

/* The same for a table of table_bytes bytes, and chunks of chunk_bytes bytes. */
int64_t gm_chunk_reader_estimate(int64_t table_bytes, int64_t chunk_bytes, int filtered, int threads, int64_t room);

/* Reads a region. Thread-safe. GM_EINPUT, naming the chunk. */
int gm_chunk_reader_read(gm_chunk_reader *reader, const gm_region *region, char *dst);

#endif
