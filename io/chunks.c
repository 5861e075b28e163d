/* chunks.c - looking up a dataset's chunks. */
#include "io/chunks.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/chunk_vfd.h"
#include "io/inspect.h"

/* A look-up takes about two microseconds. Of more chunks, many are not written or tiny, and libhdf5 is asked for what is really read. */
static const int64_t most_chunks = INT64_C(1) << 23;

/* The grid of chunks that the selection touches. Returns their number. */
static int64_t take_grid(const gm_dataset *dataset, int64_t *first, int64_t *count)
{
    const gm_selection *s = &dataset->selection;
    int64_t chunks = 1;

    for (int d = 0; d < dataset->rank; d++) {
        first[d] = s->start[d] / dataset->chunk[d];
        count[d] = s->count[d] ? (s->start[d] + (s->count[d] - 1) * s->step[d]) / dataset->chunk[d] - first[d] + 1 : 0;
        chunks = gm_mul_sat(chunks, count[d]);
    }
    return chunks;
}

int64_t gm_chunks_bytes(const gm_dataset *dataset)
{
    int64_t first[GM_RANK_MAX], count[GM_RANK_MAX];

    return gm_mul_sat(take_grid(dataset, first, count), (int64_t)sizeof(gm_chunk));
}

int64_t gm_chunks_index(const gm_chunks *chunks, const int64_t *at)
{
    int64_t index = 0;

    for (int d = 0; d < chunks->rank; d++)
        index = index * chunks->count[d] + at[d] - chunks->first[d];
    return index;
}

/* The value of elements that were never written; zeros where the file leaves it open. */
static int take_fill(hid_t plist, const gm_dataset *dataset, unsigned char *fill)
{
    size_t size = gm_dtype_size(dataset->type);
    H5D_fill_value_t defined;

    memset(fill, 0, size);
    if (H5Pfill_value_defined(plist, &defined) < 0)
        return 1;
    if (defined == H5D_FILL_VALUE_UNDEFINED)
        return 0;
    if (H5Pget_fill_value(plist, gm_h5_type(dataset->type), fill) < 0)
        return 1;
    for (size_t i = 0; dataset->swap && i < size / 2; i++) {
        unsigned char byte = fill[i];

        fill[i] = fill[size - 1 - i];
        fill[size - 1 - i] = byte;
    }
    return 0;
}

/* An open dataset. */
typedef struct found {
    hid_t file, set, space;
    unsigned options; /* of its chunks */
} found;

/* Does the dataset still look as the record says? Also takes what is known of all chunks. */
static int take_properties(found *f, const gm_dataset *dataset, gm_chunks *chunks)
{
    hsize_t dims[GM_RANK_MAX], chunk[GM_RANK_MAX];
    hid_t space = f->space = H5Dget_space(f->set), plist = H5Dget_create_plist(f->set);
    int ok = space >= 0 && plist >= 0 && H5Sget_simple_extent_ndims(space) == dataset->rank && H5Pget_layout(plist) == H5D_CHUNKED
             && H5Sget_simple_extent_dims(space, dims, NULL) == dataset->rank && H5Pget_chunk(plist, GM_RANK_MAX, chunk) == dataset->rank;

    for (int d = 0; d < dataset->rank && ok; d++)
        ok = (int64_t)dims[d] >= dataset->dims[d] && (int64_t)chunk[d] == dataset->chunk[d];
    ok = ok && gm_inspect_pipeline(plist, dataset, &chunks->pipeline) && take_fill(plist, dataset, chunks->fill) == 0
         && H5Pget_chunk_opts(plist, &f->options) >= 0;
    if (plist >= 0)
        H5Pclose(plist);
    return ok;
}

/* Chunks at the edge are stored in full, but may be exempt from filters. */
static int is_partial(const gm_dataset *dataset, const int64_t *at)
{
    for (int d = 0; d < dataset->rank; d++)
        if ((at[d] + 1) * dataset->chunk[d] > dataset->dims[d])
            return 1;
    return 0;
}

static int take_chunk(const found *f, const gm_dataset *dataset, const char *title, const int64_t *at, gm_chunks *chunks)
{
    gm_chunk *chunk = &chunks->chunk[gm_chunks_index(chunks, at)];
    char reason[GM_H5_TEXT], coordinates[GM_COORDINATES_TEXT];
    hsize_t offset[GM_RANK_MAX];
    gm_chunk_place place;
    int damaged;

    for (int d = 0; d < dataset->rank; d++)
        offset[d] = (hsize_t)(at[d] * dataset->chunk[d]);
    if (gm_chunk_vfd_find(f->set, f->space, offset, &place))
        return gm_fail(GM_EINPUT, "%s: chunk %s: cannot be found, the file is damaged: %s", title,
                       gm_coordinates_format(dataset->rank, at, coordinates), gm_h5_error(reason));
    *chunk = (gm_chunk){-1, 0, place.skipped};
    if (place.address == HADDR_UNDEF)
        return GM_OK;
    if (f->options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS && is_partial(dataset, at))
        chunk->skipped = UINT32_MAX;
    damaged = place.address > INT64_MAX / 2 || place.bytes > UINT32_MAX;
    if (gm_decode_is_plain(&chunks->pipeline, chunk->skipped))
        damaged |= place.bytes != chunks->pipeline.bytes;
    if (damaged)
        return gm_fail(GM_EINPUT, "%s: chunk %s: %" PRIu64 " bytes at %" PRIu64 ", expected up to %zu: the file is damaged", title,
                       gm_coordinates_format(dataset->rank, at, coordinates), (uint64_t)place.bytes, (uint64_t)place.address,
                       chunks->pipeline.bytes);
    chunk->address = (int64_t)place.address;
    chunk->bytes = (uint32_t)place.bytes;
    chunks->end = gm_max(chunks->end, chunk->address + chunk->bytes);
    if (chunks->room < chunk->bytes)
        chunks->room = chunk->bytes;
    return GM_OK;
}

static int take_all(const found *f, const gm_dataset *dataset, const char *title, gm_chunks *chunks)
{
    int64_t at[GM_RANK_MAX];
    int status = GM_OK, d = dataset->rank;

    memcpy(at, chunks->first, sizeof at);
    while (d >= 0 && !status) {
        status = take_chunk(f, dataset, title, at, chunks);
        for (d = dataset->rank - 1; d >= 0 && ++at[d] == chunks->first[d] + chunks->count[d]; d--)
            at[d] = chunks->first[d];
    }
    return status;
}

/* Under the lock. */
static int look_up(const gm_dataset *dataset, const char *title, gm_chunks *chunks)
{
    found f = {H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, 0};
    hid_t access = gm_chunk_vfd_access();
    char reason[GM_H5_TEXT];
    int status = gm_h5_open_by(dataset->file, access, &f.file);

    if (!status) {
        f.set = H5Dopen2(f.file, dataset->name, H5P_DEFAULT);
        if (f.set < 0)
            status = gm_fail(GM_EINPUT, "%s: cannot be opened: %s", title, gm_h5_error(reason));
        else if (!take_properties(&f, dataset, chunks))
            status = gm_fail(GM_EINPUT, "%s: is not the dataset that was found before", title);
    }
    chunks->room = gm_decode_room(chunks->pipeline.bytes);
    if (!status)
        status = take_all(&f, dataset, title, chunks);
    if (f.space >= 0)
        H5Sclose(f.space);
    if (f.set >= 0)
        H5Dclose(f.set);
    if (f.file >= 0)
        H5Fclose(f.file);
    if (access >= 0)
        H5Pclose(access);
    return status;
}

int gm_chunks_find(const gm_dataset *dataset, const char *title, gm_chunks *chunks, int *found)
{
    int64_t count;
    void *table = NULL;
    int status;

    *chunks = (gm_chunks){.rank = dataset->rank};
    count = take_grid(dataset, chunks->first, chunks->count);
    *found = count > 0 && count <= most_chunks && gm_host_try((size_t)count * sizeof *chunks->chunk, &table);
    if (!*found)
        return GM_OK;
    chunks->chunk = table;
    gm_h5_lock();
    status = look_up(dataset, title, chunks);
    gm_h5_unlock();
    return status;
}

void gm_chunks_free(gm_chunks *chunks)
{
    gm_host_free(chunks->chunk);
    chunks->chunk = NULL;
}
