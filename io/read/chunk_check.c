#include "io/read/chunk_check.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "io/describe/filters.h"
#include "io/read/chunk_find.h"
#include "io/read/decode.h"
#include "io/worker.h"

enum { SEEN = 4096 };

struct gm_chunk_check {
    hid_t set, space;
    const char *title;
    int rank;
    int64_t dims[GM_RANK_MAX], chunk[GM_RANK_MAX];
    size_t element, elements, bits; /* of the type in the file: its bytes, and its precision; of a chunk */
    unsigned options;
    int filters;
    H5Z_filter_t filter[H5Z_MAX_NFILTERS];
    struct libdeflate_decompressor *inflater;
    haddr_t seen[SEEN]; /* addresses, by their hash: a chunk that is read piece by piece is inflated once */
};

/* A chunk, of which some filters are undone. */
typedef struct stored {
    const int64_t *at;
    const hsize_t *offset; /* of its first element */
    size_t bytes;
    char *data; /* NULL: not read */
} stored;

static int fail_chunk(const gm_chunk_check *c, const stored *chunk, size_t expected)
{
    char coordinates[GM_COORDINATES_TEXT];
    return gm_fail(GM_EINPUT, "%s: chunk %s: holds %zu bytes, expected %zu: the file is damaged", c->title,
                   gm_coordinates_format(c->rank, chunk->at, coordinates), chunk->bytes, expected);
}

static int read_stored(const gm_chunk_check *c, stored *chunk, size_t bytes)
{
    char reason[GM_H5_TEXT], coordinates[GM_COORDINATES_TEXT];
    size_t most = 2 * gm_decode_buffer_bytes(c->elements * c->element);
    uint32_t mask;
    if (chunk->data)
        return GM_OK;
    if (bytes > most)
        return fail_chunk(c, chunk, most);
    chunk->data = malloc(gm_max(bytes, 1));
    if (!chunk->data)
        return gm_fail(GM_EDEVICE, "%s: no memory for a chunk of %zu bytes", c->title, bytes);
    gm_input_reads_elements(1);
    int ok = H5Dread_chunk(c->set, H5P_DEFAULT, chunk->offset, &mask, chunk->data) >= 0;
    gm_input_reads_elements(0);
    return ok ? GM_OK
              : gm_fail(GM_EINPUT, "%s: chunk %s: reading failed, the file is damaged: %s", c->title,
                        gm_coordinates_format(c->rank, chunk->at, coordinates), gm_h5_error(reason));
}

/* No filter of libhdf5 makes a chunk much longer. */
static int inflate(gm_chunk_check *c, stored *chunk)
{
    char coordinates[GM_COORDINATES_TEXT];
    size_t room = gm_decode_buffer_bytes(c->elements * c->element), bytes = 0;
    char *to = malloc(room);
    if (!c->inflater)
        c->inflater = libdeflate_alloc_decompressor();
    if (!to || !c->inflater) {
        free(to);
        return gm_fail(GM_EDEVICE, "%s: no memory for a chunk of %zu bytes", c->title, room);
    }
    gm_worker_allow_chunk((int64_t)room);
    int failed = libdeflate_zlib_decompress(c->inflater, chunk->data, chunk->bytes, to, room, &bytes);
    free(chunk->data);
    chunk->data = to;
    chunk->bytes = bytes;
    return failed ? gm_fail(GM_EINPUT, "%s: chunk %s: does not inflate: the file is damaged", c->title,
                            gm_coordinates_format(c->rank, chunk->at, coordinates))
                  : GM_OK;
}

/* Of a filter that packs: the least bytes that it unpacks, by what they say themselves. */
static int check_packed(const gm_chunk_check *c, const stored *chunk, H5Z_filter_t filter)
{
    enum { SCALEOFFSET_HEAD = 21, SZIP_HEAD = 4 }; /* bits of an element first; bytes of the chunk */
    size_t whole = c->elements * c->element, least = filter == H5Z_FILTER_NBIT ? (c->elements * c->bits + 7) / 8 : 0;
    if (filter == H5Z_FILTER_SCALEOFFSET) {
        least = SCALEOFFSET_HEAD;
        size_t bits = chunk->bytes >= least ? gm_decode_word(chunk->data) : 0;
        least += bits <= 8 * c->element ? (c->elements * bits + 7) / 8 : whole;
    } else if (filter == H5Z_FILTER_SZIP) {
        least = SZIP_HEAD;
        if (chunk->bytes >= least && gm_decode_word(chunk->data) < whole)
            return fail_chunk(c, &(stored){.at = chunk->at, .bytes = gm_decode_word(chunk->data)}, whole);
    }
    return chunk->bytes >= least ? GM_OK : fail_chunk(c, chunk, least);
}

/* Undoes the filters from the last one on, as far as they tell a length, up to one that packs. */
static int check_length(gm_chunk_check *c, stored *chunk, uint32_t left_out)
{
    size_t whole = c->elements * c->element, all = chunk->bytes;
    int status = GM_OK;
    for (int i = c->filters - 1; i >= 0 && !status; i--) {
        H5Z_filter_t filter = c->filter[i];
        if (left_out >> i & 1 || filter == H5Z_FILTER_SHUFFLE)
            continue;
        if (filter == H5Z_FILTER_FLETCHER32) {
            if (chunk->bytes < GM_DECODE_SUM)
                return fail_chunk(c, chunk, GM_DECODE_SUM);
            chunk->bytes -= GM_DECODE_SUM;
            continue;
        }
        if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SCALEOFFSET || filter == H5Z_FILTER_SZIP)
            status = read_stored(c, chunk, all);
        if (filter != H5Z_FILTER_DEFLATE)
            return status ? status : check_packed(c, chunk, filter);
        if (!status)
            status = inflate(c, chunk);
    }
    return status || chunk->bytes == whole ? status : fail_chunk(c, chunk, whole);
}

static int check_chunk(gm_chunk_check *c, const int64_t *at)
{
    gm_chunk_place place;
    int status = gm_chunk_find(c->set, c->space, c->title, c->rank, c->chunk, at, &place);
    if (status)
        return status;
    haddr_t *seen = &c->seen[place.at.address * UINT64_C(0x9e3779b97f4a7c15) >> 52];
    if (place.at.address == HADDR_UNDEF || (place.at.address > 0 && *seen == place.at.address))
        return GM_OK;
    stored chunk = {.at = at, .offset = place.offset, .bytes = (size_t)place.at.bytes};
    int is_exempt = c->options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS &&
                    gm_chunk_is_partial(c->rank, c->dims, c->chunk, at);
    status = check_length(c, &chunk, is_exempt ? UINT32_MAX : place.filter_mask);
    free(chunk.data);
    if (!status)
        *seen = place.at.address;
    return status;
}

int gm_chunk_check_part(gm_chunk_check *c, const gm_selection *part)
{
    gm_chunk_walk walk = gm_chunk_walk_begin(c->rank, part->start, part->step, part->count, c->chunk);
    int status = GM_OK;
    do {
        if (gm_selection_meets(part, c->rank, c->chunk, walk.at)) {
            status = check_chunk(c, walk.at);
            gm_worker_progress();
        }
    } while (!status && gm_chunk_walk_next(&walk));
    return status;
}

int gm_chunk_check_open(hid_t set, hid_t space, hid_t plist, const gm_dataset *dataset, const char *title,
                        gm_chunk_check **check)
{
    char reason[GM_H5_TEXT];
    gm_chunk_check *c = *check = calloc(1, sizeof *c);
    if (!c)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    hid_t type = H5Dget_type(set);
    c->set = set;
    c->space = space;
    c->title = title;
    c->rank = dataset->rank;
    memcpy(c->dims, dataset->dims, sizeof c->dims);
    memcpy(c->chunk, dataset->chunk, sizeof c->chunk);
    c->element = H5Tget_size(type);
    c->bits = H5Tget_precision(type);
    c->elements = (size_t)gm_product_sat(dataset->chunk, dataset->rank);
    c->filters = (int)gm_min(H5Pget_nfilters(plist), H5Z_MAX_NFILTERS);
    for (int i = 0; i < c->filters; i++)
        c->filter[i] = gm_filters_id(plist, i);
    gm_h5_close(type);
    int ok = type >= 0 && H5Pget_chunk_opts(plist, &c->options) >= 0;
    return ok ? GM_OK : gm_fail(GM_EINPUT, "%s: cannot be opened: %s", title, gm_h5_error(reason));
}

void gm_chunk_check_close(gm_chunk_check *c)
{
    if (!c)
        return;
    libdeflate_free_decompressor(c->inflater);
    free(c);
}
