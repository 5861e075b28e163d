/* decode.h - decodes a stored chunk without libhdf5. Internal to io/. */
#ifndef GM_IO_READ_DECODE_H
#define GM_IO_READ_DECODE_H

#include "io/describe/filters.h"

/* The decompressor and the buffers of one thread. */
typedef struct gm_decoder {
    struct libdeflate_decompressor *inflater; /* NULL where no chunk is deflated */
    char *buffer[2]; /* gm_decode_buffer_bytes() bytes each, or more for a chunk that is longer; lent */
} gm_decoder;

/* Are all filters left out of a chunk? Bit i of filter_mask: filter i was not applied (as H5Dread_chunk). */
int gm_decode_is_plain(const gm_pipeline *pipeline, uint32_t filter_mask);

/* Bytes of a buffer for chunks of chunk_bytes, and the number of buffers that a pipeline needs. */
size_t gm_decode_buffer_bytes(size_t chunk_bytes);
int gm_decode_buffers(const gm_pipeline *pipeline);

enum { GM_DECODE_WHY = 160, GM_DECODE_SUM = 4 /* bytes that fletcher32 appends to the data */ };

/* The little-endian 32-bit number that begins there. */
uint32_t gm_decode_word(const char *data);

/* Undoes the filters of a chunk whose stored bytes are in decoder->buffer[0]. *data: its elements, pipeline->bytes of
 * them, in target if that is not NULL (pipeline->bytes long), else in one of the buffers. Returns 0, or 1 with the
 * reason in why [GM_DECODE_WHY]. */
int gm_decode(const gm_pipeline *pipeline, uint32_t filter_mask, const gm_decoder *decoder, size_t stored, char *target,
              const char **data, char *why);

#endif
