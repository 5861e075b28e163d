/* decode.c - the inverse of deflate, shuffle and fletcher32, as the HDF5 File Format Specification, section IV.A.2.l,
 * defines them. */
#include "io/read/decode.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

/* A chunk between two filters. */
typedef struct chunk {
    const gm_pipeline *pipeline;
    const gm_decoder *decoder;
    const char *data;
    size_t bytes;
    char *why;
} chunk;

static int is_applied(uint32_t filter_mask, int filter)
{
    return !(filter_mask >> filter & 1);
}

int gm_decode_is_plain(const gm_pipeline *pipeline, uint32_t filter_mask)
{
    for (int i = 0; i < pipeline->count; i++)
        if (is_applied(filter_mask, i))
            return 0;
    return 1;
}

/* Deflate may make a chunk longer: libhdf5 allows 0.1 % and some bytes. */
size_t gm_decode_buffer_bytes(size_t chunk_bytes)
{
    return chunk_bytes + chunk_bytes / 512 + 4096;
}

/* The sum of J. Fletcher, "An Arithmetic Checksum for Serial Transmissions", IEEE Trans. Commun. 30 (1982), over 16-bit
 * big-endian words modulo 65535, where 0 is written as 65535 unless all words are 0. An odd last byte is the high half
 * of a word. */
static uint32_t fletcher32(const unsigned char *data, size_t bytes)
{
    enum { BLOCK = 1 << 20 }; /* words until the sums are reduced; more could overflow */
    uint64_t a = 0, b = 0;

    for (size_t words = bytes / 2; words;) {
        size_t block = words < BLOCK ? words : BLOCK;
        for (size_t i = 0; i < block; i++) {
            a += (uint32_t)data[2 * i] << 8 | data[2 * i + 1];
            b += a;
        }
        data += 2 * block;
        words -= block;
        a = a ? (a - 1) % 65535 + 1 : 0;
        b = b ? (b - 1) % 65535 + 1 : 0;
    }
    if (bytes % 2) {
        a += (uint32_t)*data << 8;
        b += a;
        a = a ? (a - 1) % 65535 + 1 : 0;
        b = b ? (b - 1) % 65535 + 1 : 0;
    }
    return (uint32_t)(b << 16 | a);
}

uint32_t gm_decode_word(const char *data)
{
    const unsigned char *byte = (const unsigned char *)data;
    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

static int check_sum(chunk *c, const gm_filter *filter, char *to, size_t bytes)
{
    uint32_t swapped;
    (void)filter, (void)to, (void)bytes;
    if (c->bytes < GM_DECODE_SUM) {
        snprintf(c->why, GM_DECODE_WHY, "holds %zu bytes, expected a checksum", c->bytes);
        return 1;
    }
    c->bytes -= GM_DECODE_SUM;
    uint32_t stored = gm_decode_word(c->data + c->bytes);
    uint32_t computed = fletcher32((const unsigned char *)c->data, c->bytes);
    /* HDF5 before 1.6.3 swapped the bytes of each half on little-endian machines. */
    swapped = (computed & 0x00ff00ffu) << 8 | (computed >> 8 & 0x00ff00ffu);
    if (stored == computed || stored == swapped)
        return 0;
    snprintf(c->why, GM_DECODE_WHY,
             "checksum is wrong, expected %08" PRIx32 ", found %08" PRIx32 ": the file is damaged", stored, computed);
    return 1;
}

static int inflate(chunk *c, const gm_filter *filter, char *to, size_t bytes)
{
    static const char *const reasons[] = {
        [LIBDEFLATE_BAD_DATA] = "does not inflate",
        [LIBDEFLATE_SHORT_OUTPUT] = "inflates to less than a chunk",
        [LIBDEFLATE_INSUFFICIENT_SPACE] = "inflates to more than a chunk",
    };
    enum libdeflate_result result = libdeflate_zlib_decompress(c->decoder->inflater, c->data, c->bytes, to, bytes,
                                                               NULL);
    (void)filter;
    if (result != LIBDEFLATE_SUCCESS) {
        snprintf(c->why, GM_DECODE_WHY, "%s (%zu bytes to %zu): the file is damaged", reasons[result], c->bytes, bytes);
        return 1;
    }
    c->bytes = bytes;
    return 0;
}

/* Byte b of element i is src[b * count + i]; bytes after the last whole element are not shuffled. */
static int unshuffle(chunk *c, const gm_filter *filter, char *to, size_t bytes)
{
    const char *restrict src = c->data;
    char *restrict dst = to;
    size_t count = bytes / filter->unit, whole = count * filter->unit;

#define UNSHUFFLE(unit)                                 \
    case unit:                                          \
        for (size_t i = 0; i < count; i++)              \
            for (size_t b = 0; b < unit; b++)           \
                dst[i * unit + b] = src[b * count + i]; \
        break
    switch (filter->unit) { /* a constant size compiles to vector shuffles */
        UNSHUFFLE(2);
        UNSHUFFLE(4);
        UNSHUFFLE(8);
    default:
        for (size_t b = 0; b < filter->unit; b++)
            for (size_t i = 0; i < count; i++)
                dst[i * filter->unit + b] = src[b * count + i];
    }
#undef UNSHUFFLE
    memcpy(dst + whole, src + whole, bytes - whole);
    return 0;
}

/* moves: the result, of `bytes` bytes, goes to another buffer. */
static const struct {
    int (*undo)(chunk *c, const gm_filter *filter, char *to, size_t bytes);
    int moves;
} kinds[] = {
    [GM_FILTER_DEFLATE] = {inflate, 1},
    [GM_FILTER_SHUFFLE] = {unshuffle, 1},
    [GM_FILTER_FLETCHER32] = {check_sum, 0},
};

int gm_decode_buffers(const gm_pipeline *pipeline)
{
    int buffers = 1;
    for (int i = 0; i < pipeline->count; i++)
        if (kinds[pipeline->filter[i].kind].moves)
            buffers = 2;
    return buffers;
}

/* Is filter i the last one to be undone among those that move? */
static int is_last_move(const gm_pipeline *pipeline, uint32_t filter_mask, int i)
{
    for (int j = 0; j < i; j++)
        if (is_applied(filter_mask, j) && kinds[pipeline->filter[j].kind].moves)
            return 0;
    return 1;
}

/* Bytes that a filter was given when the chunk was written, if no deflate preceded it. */
static size_t bytes_before(const gm_pipeline *pipeline, uint32_t filter_mask, int i)
{
    size_t bytes = pipeline->bytes;
    for (int j = 0; j < i; j++)
        if (is_applied(filter_mask, j) && pipeline->filter[j].kind == GM_FILTER_FLETCHER32)
            bytes += GM_DECODE_SUM;
    return bytes;
}

int gm_decode(const gm_pipeline *pipeline, uint32_t filter_mask, const gm_decoder *decoder, size_t stored, char *target,
              const char **data, char *why)
{
    chunk c = {pipeline, decoder, decoder->buffer[0], stored, why};
    int free_buffer = 1;
    for (int i = pipeline->count - 1; i >= 0; i--) {
        const gm_filter *filter = &pipeline->filter[i];
        size_t bytes = filter->kind == GM_FILTER_DEFLATE ? bytes_before(pipeline, filter_mask, i) : c.bytes;
        char *to = NULL;
        if (!is_applied(filter_mask, i))
            continue;
        if (kinds[filter->kind].moves)
            to = target && is_last_move(pipeline, filter_mask, i) && bytes <= pipeline->bytes
                     ? target
                     : decoder->buffer[free_buffer];
        if (kinds[filter->kind].undo(&c, filter, to, bytes))
            return 1;
        if (to) {
            c.data = to;
            free_buffer = !free_buffer;
        }
    }
    if (c.bytes != pipeline->bytes) {
        snprintf(why, GM_DECODE_WHY, "holds %zu bytes, expected %zu: the file is damaged", c.bytes, pipeline->bytes);
        return 1;
    }
    if (target && c.data != target) {
        memcpy(target, c.data, c.bytes);
        c.data = target;
    }
    *data = c.data;
    return 0;
}
