/* chunks.c - looking up a dataset's chunks. */
#include "io/read/chunks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/describe/filters.h"
#include "io/h5.h"
#include "io/read/chunk_find.h"
#include "io/worker.h"

/* A look-up takes about two microseconds. Of more chunks, many are unwritten or tiny: then libhdf5 looks up those that
 * are read. */
static const int64_t max_chunks = INT64_C(1) << 23;

/* The grid of chunks that the selection touches. Returns their number. */
static int64_t get_grid(const gm_dataset *dataset, int64_t *first, int64_t *count)
{
    const gm_selection *s = &dataset->selection;
    int64_t chunks = 1;
    for (int d = 0; d < dataset->rank; d++) {
        gm_range along = gm_chunks_of_steps(s->start[d], s->step[d], s->count[d], dataset->chunk[d]);
        first[d] = along.begin;
        count[d] = gm_range_length(along);
        chunks = gm_mul_sat(chunks, count[d]);
    }
    return chunks;
}

int64_t gm_chunks_bytes(const gm_dataset *dataset)
{
    int64_t first[GM_RANK_MAX], count[GM_RANK_MAX];
    return gm_mul_sat(get_grid(dataset, first, count), (int64_t)sizeof(gm_chunk));
}

int64_t gm_chunks_index(const gm_chunks *chunks, const int64_t *at)
{
    int64_t index = 0;
    for (int d = 0; d < chunks->rank; d++)
        index = index * chunks->count[d] + at[d] - chunks->first[d];
    return index;
}

/* The value of elements that were never written; zeros where the file does not define one. */
static int read_fill(hid_t plist, const gm_dataset *dataset, unsigned char *fill)
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
    int is_filled;    /* H5Dread gives a fill value for chunks that were never written */
} found;

/* Is the dataset still as described? Also reads the properties of all chunks. */
static int read_properties(found *f, const gm_dataset *dataset, gm_chunks *chunks)
{
    hsize_t dims[GM_RANK_MAX], chunk[GM_RANK_MAX];
    H5D_fill_time_t time = H5D_FILL_TIME_NEVER;
    hid_t space = f->space = H5Dget_space(f->set), plist = H5Dget_create_plist(f->set);
    int ok = space >= 0 && plist >= 0 && H5Sget_simple_extent_ndims(space) == dataset->rank &&
             H5Pget_layout(plist) == H5D_CHUNKED && H5Sget_simple_extent_dims(space, dims, NULL) == dataset->rank &&
             H5Pget_chunk(plist, GM_RANK_MAX, chunk) == dataset->rank;
    for (int d = 0; d < dataset->rank && ok; d++)
        ok = (int64_t)dims[d] >= dataset->dims[d] && (int64_t)chunk[d] == dataset->chunk[d];
    ok = ok && gm_filters_pipeline(plist, dataset, &chunks->pipeline) && read_fill(plist, dataset, chunks->fill) == 0 &&
         H5Pget_chunk_opts(plist, &f->options) >= 0 && H5Pget_fill_time(plist, &time) >= 0;
    f->is_filled = time != H5D_FILL_TIME_NEVER;
    gm_h5_close(plist);
    return ok;
}

/* Appends a chunk of the table to the reply. */
static int look_up_chunk(const found *f, const gm_dataset *dataset, const char *title, const int64_t *at,
                         gm_chunks *chunks, gm_reply *reply)
{
    char coordinates[GM_COORDINATES_TEXT];
    gm_chunk_place place;
    void *room;
    int damaged, status = gm_reply_place(reply, sizeof(gm_chunk), &room);
    if (status)
        return status;
    gm_chunk *chunk = room;
    *chunk = (gm_chunk){.address = -1};
    if (!gm_selection_meets(&dataset->selection, dataset->rank, dataset->chunk, at))
        return GM_OK;
    status = gm_chunk_find(f->set, f->space, title, dataset->rank, dataset->chunk, at, &place);
    if (status)
        return status;
    chunk->filter_mask = place.filter_mask;
    if (place.at.address == HADDR_UNDEF && f->is_filled &&
        memcmp(place.fill, chunks->fill, gm_dtype_size(dataset->type)) != 0)
        return gm_fail(GM_EINPUT, "%s: chunk %s: is not stored, and is not read as the fill value: the file is damaged",
                       title, gm_coordinates_format(dataset->rank, at, coordinates));
    if (place.at.address == HADDR_UNDEF)
        return GM_OK;
    if (f->options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS &&
        gm_chunk_is_partial(dataset->rank, dataset->dims, dataset->chunk, at))
        chunk->filter_mask = UINT32_MAX;
    damaged = place.at.address > INT64_MAX / 2 || place.at.bytes > UINT32_MAX;
    if (gm_decode_is_plain(&chunks->pipeline, chunk->filter_mask))
        damaged |= place.at.bytes != chunks->pipeline.bytes;
    if (damaged)
        return gm_fail(GM_EINPUT,
                       "%s: chunk %s: %" PRIu64 " bytes at %" PRIu64 ", expected up to %zu: the file is damaged", title,
                       gm_coordinates_format(dataset->rank, at, coordinates), (uint64_t)place.at.bytes,
                       (uint64_t)place.at.address, chunks->pipeline.bytes);
    chunk->address = (int64_t)place.at.address;
    chunk->bytes = (uint32_t)place.at.bytes;
    chunks->end = gm_max(chunks->end, chunk->address + chunk->bytes);
    if (chunks->buffer_bytes < chunk->bytes)
        chunks->buffer_bytes = chunk->bytes;
    return GM_OK;
}

static int look_up_all(const found *f, const gm_dataset *dataset, const char *title, gm_chunks *chunks, gm_reply *reply)
{
    const gm_selection *s = &dataset->selection;
    gm_chunk_walk walk = gm_chunk_walk_begin(dataset->rank, s->start, s->step, s->count, dataset->chunk);
    int status;
    do {
        status = look_up_chunk(f, dataset, title, walk.at, chunks, reply);
        gm_worker_progress();
    } while (!status && gm_chunk_walk_next(&walk));
    return status;
}

/* A request to the worker, which replies the chunks of the table, then *chunks. */
typedef struct request {
    gm_dataset dataset;
    gm_chunks chunks; /* rank, first, count */
    char title[3 * GM_PATH_MAX];
} request;

/* Runs in the worker. */
static int look_up(const void *argument, size_t bytes, gm_reply *reply)
{
    const request *r = argument;
    const gm_dataset *dataset = &r->dataset;
    gm_chunks chunks = r->chunks;
    found f = {H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, 0, 0};
    hsize_t file_bytes;
    char reason[GM_H5_TEXT];
    (void)bytes;
    int status = gm_h5_open(dataset->file, &f.file);
    if (!status) {
        f.set = H5Dopen2(f.file, dataset->name, H5P_DEFAULT);
        if (f.set < 0)
            status = gm_fail(GM_EINPUT, "%s: cannot be opened: %s", r->title, gm_h5_error(reason));
        else if (!read_properties(&f, dataset, &chunks))
            status = gm_fail(GM_EINPUT, "%s: has changed during the run", r->title);
    }
    chunks.buffer_bytes = gm_decode_buffer_bytes(chunks.pipeline.bytes);
    if (!status && H5Fget_filesize(f.file, &file_bytes) >= 0)
        gm_worker_need_chunk((int64_t)chunks.pipeline.bytes, (int64_t)file_bytes);
    if (!status)
        status = look_up_all(&f, dataset, r->title, &chunks, reply);
    gm_h5_close(f.space);
    gm_h5_close(f.set);
    gm_h5_close(f.file);
    return status ? status : gm_reply_add(reply, &chunks, sizeof chunks);
}

/* The reply as it comes. */
typedef struct taking {
    gm_chunks chunks; /* as the worker filled it */
    char *table;
    size_t table_bytes, taken;
} taking;

static int take(void *context, const void *data, size_t bytes)
{
    taking *t = context;
    size_t of_table = t->taken < t->table_bytes ? t->table_bytes - t->taken : 0;
    if (of_table > bytes)
        of_table = bytes;
    if (of_table)
        memcpy(t->table + t->taken, data, of_table);
    t->taken += of_table;
    if (bytes - of_table > t->table_bytes + sizeof t->chunks - t->taken)
        return gm_fail(GM_EINTERNAL, "a table of chunks is longer than expected");
    if (bytes > of_table)
        memcpy((char *)&t->chunks + (t->taken - t->table_bytes), (const char *)data + of_table, bytes - of_table);
    t->taken += bytes - of_table;
    return GM_OK;
}

static int ask(const gm_dataset *dataset, const char *title, gm_chunks *chunks, size_t table_bytes)
{
    taking t = {.table = (char *)chunks->chunk, .table_bytes = table_bytes};
    request *r = calloc(1, sizeof *r);
    if (!r)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    r->dataset = *dataset;
    r->chunks = *chunks;
    snprintf(r->title, sizeof r->title, "%s", title);
    int status = gm_worker_stream(title, look_up, r, sizeof *r, take, &t);
    free(r);
    if (!status && t.taken != table_bytes + sizeof t.chunks)
        status = gm_fail(GM_EINTERNAL, "%s: its table of chunks is incomplete", title);
    if (!status) {
        t.chunks.chunk = chunks->chunk;
        *chunks = t.chunks;
    }
    return status;
}

int gm_chunks_find(const gm_dataset *dataset, const char *title, gm_chunks *chunks, int *found)
{
    int64_t count;
    void *table = NULL;
    *chunks = (gm_chunks){.rank = dataset->rank};
    count = get_grid(dataset, chunks->first, chunks->count);
    *found = count > 0 && count <= max_chunks && gm_host_try((size_t)count * sizeof *chunks->chunk, &table);
    if (!*found)
        return GM_OK;
    chunks->chunk = table;
    return ask(dataset, title, chunks, (size_t)count * sizeof *chunks->chunk);
}

void gm_chunks_free(gm_chunks *chunks)
{
    gm_host_free(chunks->chunk);
    chunks->chunk = NULL;
}
