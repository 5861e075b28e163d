/* chunks.h - the table of a dataset's chunks: address and size of each in the file. Internal to io/. */
#ifndef GM_IO_READ_CHUNKS_H
#define GM_IO_READ_CHUNKS_H

#include "io/dataset.h"
#include "io/read/decode.h"

typedef struct gm_chunk {
    int64_t address;      /* in the data file; -1: never written, all elements are the fill value */
    uint32_t bytes;       /* as it is stored */
    uint32_t filter_mask; /* bit i: filter i was not applied */
} gm_chunk;

enum { GM_CHUNK_TABLE_BYTES = sizeof(gm_chunk) }; /* of one chunk */

/* The chunks that a selection touches, from one corner to the other. */
typedef struct gm_chunks {
    gm_pipeline pipeline;
    int rank;
    int64_t first[GM_RANK_MAX], count[GM_RANK_MAX]; /* of chunks, by dimension */
    gm_chunk *chunk;                                /* row-major; charged to GM_HOST */
    int64_t end;                                    /* of the last one in the file */
    size_t buffer_bytes;                            /* of a decoder that holds every one of them, stored and decoded */
    unsigned char fill[8];                          /* the fill value as a reader delivers it */
} gm_chunks;

/* Opens the file of a record with raw_chunks and fills the table. *found: 0 when the table would be too large or there
 * is no memory for it: then H5Dread can read the dataset. GM_EINPUT: no such dataset, or damaged.
 * gm_chunks_free() also after a failure. */
int gm_chunks_find(const gm_dataset *dataset, const char *title, gm_chunks *chunks, int *found);
void gm_chunks_free(gm_chunks *chunks);

/* The place in the table of the chunk with these coordinates, which must be one of its chunks. */
int64_t gm_chunks_index(const gm_chunks *chunks, const int64_t *at);

/* Bytes of the table of a dataset. */
int64_t gm_chunks_bytes(const gm_dataset *dataset);

#endif
