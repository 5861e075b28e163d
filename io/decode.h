/* decode.h - a chunk as it is stored to its elements, without libhdf5. Internal to io/; nothing of HDF5's own is seen here. */
#ifndef GM_IO_DECODE_H
#define GM_IO_DECODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum gm_filter_kind { GM_FILTER_DEFLATE, GM_FILTER_SHUFFLE, GM_FILTER_FLETCHER32 } gm_filter_kind;

typedef struct gm_filter {
    gm_filter_kind kind;
    size_t unit; /* shuffle: bytes of an element */
} gm_filter;

enum { GM_FILTERS_MAX = 8 };

/* What was done to a chunk of so many bytes when it was written, in that order. At most one deflate. */
typedef struct gm_pipeline {
    int count;
    gm_filter filter[GM_FILTERS_MAX];
    size_t bytes;
} gm_pipeline;

/* What one thread decodes with. */
typedef struct gm_decoder {
    struct libdeflate_decompressor *inflater; /* NULL where no chunk is deflated */
    char *room[2];                            /* gm_decode_room() bytes each, or more for a chunk that is longer; lent */
} gm_decoder;

/* Were none of the filters applied to a chunk? Bit i of skipped: filter i was left out of it. */
int gm_decode_is_plain(const gm_pipeline *pipeline, uint32_t skipped);

/* Bytes of a room for chunks of so many bytes, and how many rooms a pipeline needs. */
size_t gm_decode_room(size_t chunk_bytes);
int gm_decode_rooms(const gm_pipeline *pipeline);

enum { GM_DECODE_WHY = 160 };

/* Undoes the filters of a chunk whose stored bytes are in decoder->room[0]. *data: its elements, pipeline->bytes of them; they are in target if
 * that is not NULL (room for pipeline->bytes), else in one of the rooms. Returns 0, or 1 with the reason in why [GM_DECODE_WHY]. */
int gm_decode(const gm_pipeline *pipeline, uint32_t skipped, const gm_decoder *decoder, size_t stored, char *target, const char **data,
              char *why);

#endif
