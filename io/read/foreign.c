/* foreign.c - regions of a dataset by H5Dread in the worker, in pieces that fit the memory which it shares. */
#include "io/read/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "io/describe/filters.h"
#include "io/h5.h"
#include "io/input_vfd.h"
#include "io/read/chunk_check.h"
#include "io/read/external_read.h"
#include "io/type.h"
#include "io/worker.h"

struct gm_foreign {
    const gm_dataset *dataset;
    const char *title;
    int64_t id; /* by which the worker knows it */
};

/* --- In the worker --- */

typedef struct opened {
    int64_t id;
    hid_t file, set, space, type; /* type: in memory */
    int rank;
    int64_t chunk_bytes;       /* in memory; 0: of no chunks */
    gm_chunk_check *check;     /* NULL: of no chunks, or not in one file */
    gm_external *external;     /* NULL: none */
    int64_t dims[GM_RANK_MAX]; /* in the file */
    char title[GM_PATH_MAX];
    struct opened *next;
} opened;

static opened *all; /* under the lock of h5.h */

static void release(opened *o)
{
    gm_external_close(o->external);
    gm_chunk_check_close(o->check);
    gm_h5_close(o->type);
    gm_h5_close(o->space);
    gm_h5_close(o->set);
    gm_h5_close(o->file);
    free(o);
}

static opened **find(int64_t id)
{
    opened **at = &all;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

typedef struct open_call {
    int64_t id;
    gm_dataset dataset;
    char title[GM_PATH_MAX];
} open_call;

/* Chunks that are read in pieces are decoded once if the cache has room for one. By the last argument it drops the one
 * that was used least recently; by 1 it keeps all that were read in part, whatever its size. */
static hid_t access_for(opened *o, const gm_dataset *dataset)
{
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    int64_t bytes = o->chunk_bytes = dataset->layout == GM_CHUNKED ? gm_dataset_chunk_bytes(dataset) : 0;
    if (!bytes)
        return access;
    hsize_t file_bytes = 0;
    H5Fget_filesize(o->file, &file_bytes);
    gm_worker_need_chunk(bytes, (int64_t)file_bytes);
    if (access >= 0 && bytes > 1 << 20 && bytes <= UINT32_MAX)
        H5Pset_chunk_cache(access, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, (size_t)bytes, 0);
    return access;
}

/* Is the dataset still as described? */
static int has_shape(hid_t space, const gm_dataset *dataset)
{
    hsize_t dims[GM_RANK_MAX];
    if (H5Sget_simple_extent_ndims(space) != dataset->rank || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return 0;
    for (int d = 0; d < dataset->rank; d++)
        if ((int64_t)dims[d] < dataset->dims[d])
            return 0;
    return 1;
}

/* Are the chunks? plist: the creation property list. */
static int has_chunks(hid_t plist, const gm_dataset *dataset)
{
    hsize_t chunk[GM_RANK_MAX];
    if (plist < 0 || (H5Pget_layout(plist) == H5D_CHUNKED) != (dataset->layout == GM_CHUNKED))
        return 0;
    if (dataset->layout != GM_CHUNKED)
        return 1;
    int ok = H5Pget_chunk(plist, GM_RANK_MAX, chunk) == dataset->rank;
    for (int d = 0; d < dataset->rank && ok; d++)
        ok = (int64_t)chunk[d] == dataset->chunk[d];
    return ok;
}

static int open_it(opened *o, const gm_dataset *dataset)
{
    char reason[GM_H5_TEXT];
    int status = gm_h5_open(dataset->file, &o->file);
    if (status)
        return status;
    hid_t access = access_for(o, dataset), plist = H5I_INVALID_HID, type = H5I_INVALID_HID;
    if (access >= 0)
        o->set = H5Dopen2(o->file, dataset->name, access);
    if (o->set >= 0)
        o->space = H5Dget_space(o->set);
    if (o->set >= 0)
        plist = H5Dget_create_plist(o->set);
    if (o->set >= 0)
        type = H5Dget_type(o->set);
    if (type >= 0)
        o->type = gm_type_in_memory(type, dataset->type, dataset->swap);
    if (o->space < 0 || o->type < 0)
        status = gm_fail(GM_EINPUT, "%s: cannot be opened: %s", o->title, gm_h5_error(reason));
    else if (!has_shape(o->space, dataset) || !has_chunks(plist, dataset))
        status = gm_fail(GM_EINPUT, "%s: has changed during the run", o->title);
    else if (dataset->layout == GM_CHUNKED && gm_input_reads(o->set))
        status = gm_chunk_check_open(o->set, o->space, plist, dataset, o->title, &o->check);
    if (!status)
        status = gm_external_open(o->set, o->title, &o->external);
    gm_h5_close(type);
    gm_h5_close(plist);
    gm_h5_close(access);
    return status;
}

static int open_there(const void *argument, size_t bytes, gm_reply *reply)
{
    const open_call *call = argument;
    opened *o = malloc(sizeof *o);
    (void)bytes, (void)reply;
    if (!o)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", call->title);
    *o = (opened){.id = call->id, .rank = call->dataset.rank, .next = all};
    memcpy(o->dims, call->dataset.dims, sizeof o->dims);
    o->file = o->set = o->space = o->type = H5I_INVALID_HID;
    memcpy(o->title, call->title, sizeof o->title);
    int status = open_it(o, &call->dataset);
    if (status)
        release(o);
    else
        all = o;
    return status;
}

static int close_there(const void *argument, size_t bytes, gm_reply *reply)
{
    opened **at = find(*(const int64_t *)argument), *o = *at;
    (void)bytes, (void)reply;
    if (o) {
        *at = o->next;
        release(o);
    }
    return GM_OK;
}

typedef struct read_call {
    int64_t id;
    gm_selection part;
} read_call;

static int read_external(const opened *o, const read_call *call, int64_t elements, void *to)
{
    gm_stride dims[GM_RANK_MAX];
    int64_t stride = (int64_t)gm_external_size(o->external), dense = stride, first = 0;
    for (int d = o->rank - 1; d >= 0; d--) {
        first += call->part.start[d] * stride;
        dims[d] = (gm_stride){call->part.count[d], stride * call->part.step[d], dense};
        stride *= o->dims[d];
        dense *= call->part.count[d];
    }
    return gm_external_read(o->external, first, dims, o->rank, elements, o->type, to);
}

/* Memory of the shape of the piece: between different shapes libhdf5 copies element by element. */
static int read_there(const void *argument, size_t bytes, gm_reply *reply)
{
    const read_call *call = argument;
    const opened *o = *find(call->id);
    hsize_t start[GM_RANK_MAX], step[GM_RANK_MAX], count[GM_RANK_MAX], elements = 1;
    char reason[GM_H5_TEXT];
    void *to;
    (void)bytes;
    if (!o)
        return gm_fail(GM_EINPUT, "a dataset cannot be read any more: libhdf5 was started anew");
    for (int d = 0; d < o->rank; d++) {
        start[d] = (hsize_t)call->part.start[d];
        step[d] = (hsize_t)call->part.step[d];
        count[d] = (hsize_t)call->part.count[d];
        elements *= count[d];
    }
    int status = gm_reply_place(reply, elements * H5Tget_size(o->type), &to);
    if (status)
        return status;
    if (o->external)
        return read_external(o, call, (int64_t)elements, to);
    status = o->check ? gm_chunk_check_part(o->check, &call->part) : GM_OK;
    if (status)
        return status;
    memset(to, 0, elements * H5Tget_size(o->type)); /* elements that the file says nothing of */
    gm_worker_allow_chunk(o->chunk_bytes);
    hid_t memory = o->rank ? H5Screate_simple(o->rank, count, NULL) : H5Screate(H5S_SCALAR);
    int ok = memory >= 0;
    if (ok && o->rank > 0)
        ok = H5Sselect_hyperslab(o->space, H5S_SELECT_SET, start, step, count, NULL) >= 0;
    gm_input_reads_elements(1);
    ok = ok && H5Dread(o->set, o->type, memory, o->space, H5P_DEFAULT, to) >= 0;
    gm_input_reads_elements(0);
    if (!ok) {
        gm_h5_error(reason);
        status = gm_fail(
            GM_EINPUT, "%s: reading failed, the file is damaged%s: %s", o->title,
            gm_filters_refuse_valid(o->set) ? ", or has values that HDF5 1.14.5 and 1.14.6 cannot read" : "", reason);
    }
    gm_h5_close(memory);
    return status;
}

/* --- In the rank --- */

int gm_foreign_open(const gm_dataset *dataset, const char *title, gm_foreign **out)
{
    static _Atomic int64_t last;
    gm_foreign *foreign = malloc(sizeof *foreign);
    open_call *call = calloc(1, sizeof *call);
    int status = GM_OK;
    *out = NULL;
    if (!foreign || !call) {
        status = gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    } else {
        *foreign = (gm_foreign){dataset, title, ++last};
        call->id = foreign->id;
        call->dataset = *dataset;
        snprintf(call->title, sizeof call->title, "%s", title);
        status = gm_worker_run(title, open_there, call, sizeof *call, NULL, NULL);
    }
    free(call);
    if (status)
        free(foreign);
    else
        *out = foreign;
    return status;
}

void gm_foreign_close(gm_foreign *foreign)
{
    if (!foreign)
        return;
    int hushed = gm_error_hush(1); /* a worker that has ended has closed it */
    gm_worker_run(foreign->title, close_there, &foreign->id, sizeof foreign->id, NULL, NULL);
    gm_error_hush(hushed);
    free(foreign);
}

/* Chunks that an H5Dread touches: it makes a record of several hundred bytes of each. */
enum { CHUNKS_MAX = 1 << 16 };

/* The most elements in each dimension of pieces that fit: whole chunks if they fit, as many as do. */
static void choose_piece(const gm_dataset *dataset, const gm_region *region, int64_t *piece)
{
    int64_t room = GM_REPLY_PLACE / (int64_t)gm_dtype_size(dataset->type), elements = 1,
            chunks = dataset->layout == GM_CHUNKED ? CHUNKS_MAX : INT64_MAX;
    for (int d = 0; d < dataset->rank; d++) {
        int64_t unit = dataset->layout == GM_CHUNKED ? gm_ceil_div(dataset->chunk[d], region->step[d]) : 1;
        piece[d] = gm_min(region->count[d], unit);
        elements = gm_mul_sat(elements, piece[d]);
    }
    for (int d = 0; d < dataset->rank && elements > room; d++) { /* a part of a chunk */
        int64_t others = 1;
        for (int e = d + 1; e < dataset->rank; e++)
            others = gm_mul_sat(others, piece[e]);
        piece[d] = gm_max(1, room / others);
        elements = gm_mul_sat(piece[d], others);
    }
    for (int d = dataset->rank - 1; d >= 0; d--) { /* more of them, first along the rows */
        int64_t more = gm_min(gm_min(room / elements, chunks), gm_ceil_div(region->count[d], piece[d]));
        elements = elements / piece[d];
        piece[d] = gm_min(region->count[d], piece[d] * more);
        elements *= piece[d];
        chunks /= more;
        if (piece[d] < region->count[d])
            break;
    }
}

/* Elements from the at-th one of the region on, up to a border of chunks. */
static int64_t cut(const gm_dataset *dataset, const gm_region *region, const int64_t *piece, int d, int64_t at)
{
    int64_t left = region->count[d] - at, chunk = dataset->layout == GM_CHUNKED ? dataset->chunk[d] : 1;
    int64_t border = gm_max(1, piece[d] / chunk) * chunk - (region->start[d] + at) % chunk;
    return gm_min(left, region->step[d] == 1 ? gm_min(piece[d], border) : piece[d]);
}

/* Where a piece of the worker's goes. */
typedef struct placing {
    gm_stride dims[GM_RANK_MAX];
    int rank;
    size_t size, bytes, taken;
    char *to;
} placing;

static int place(void *context, const void *data, size_t bytes)
{
    placing *p = context;
    p->taken += bytes;
    if (p->taken != p->bytes) /* it comes as a whole */
        return gm_fail(GM_EINTERNAL, "%zu bytes of a dataset came, expected %zu", p->taken, p->bytes);
    gm_bytes_copy(data, p->dims, p->rank, p->size, p->to);
    return GM_OK;
}

/* The piece at `at` elements from the start of the region. count: its elements. */
static int read_piece(const gm_foreign *foreign, const gm_region *region, const int64_t *at, const int64_t *count,
                      char *dst)
{
    const gm_dataset *dataset = foreign->dataset;
    placing p = {.rank = dataset->rank, .size = gm_dtype_size(dataset->type), .to = dst};
    read_call call = {.id = foreign->id};
    int64_t dense = (int64_t)p.size;
    for (int d = dataset->rank - 1; d >= 0; d--) {
        call.part.start[d] = region->start[d] + at[d] * region->step[d];
        call.part.step[d] = region->step[d];
        call.part.count[d] = count[d];
        p.dims[d] = (gm_stride){count[d], dense, region->memory[d]};
        p.to += at[d] * region->memory[d];
        dense *= count[d];
    }
    p.bytes = (size_t)dense;
    int status = gm_worker_stream(foreign->title, read_there, &call, sizeof call, place, &p);
    if (!status && p.taken != p.bytes)
        status = gm_fail(GM_EINTERNAL, "%s: %zu bytes came, expected %zu", foreign->title, p.taken, p.bytes);
    return status;
}

int gm_foreign_read(const gm_foreign *foreign, const gm_region *region, char *dst)
{
    const gm_dataset *dataset = foreign->dataset;
    int64_t piece[GM_RANK_MAX], at[GM_RANK_MAX] = {0}, count[GM_RANK_MAX];
    int d, status;
    choose_piece(dataset, region, piece);
    do {
        for (d = 0; d < dataset->rank; d++)
            count[d] = cut(dataset, region, piece, d, at[d]);
        status = read_piece(foreign, region, at, count, dst);
        for (d = dataset->rank - 1; d >= 0 && (at[d] += count[d]) == region->count[d]; d--)
            at[d] = 0;
    } while (d >= 0 && !status);
    return status;
}
