/* pack.c - from the scratch file into chunks. */
#include "io/pack.h"

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/scratch.h"

/* A block: so many elements in each dimension, a multiple of the chunk's or the whole dimension; as many of the last dimensions whole as the
 * budget allows. Returns its elements. */
static int64_t choose_block(const gm_output_dataset *dataset, int64_t budget, int64_t *block)
{
    int64_t elements = 1;

    for (int d = 0; d < dataset->rank; d++) {
        block[d] = dataset->chunked ? dataset->chunk[d] : 1;
        elements *= block[d];
    }
    for (int d = dataset->rank - 1; d >= 0; d--) {
        int64_t chunks = gm_max(1, gm_min(budget / elements, gm_ceil_div(dataset->dims[d], block[d])));
        int64_t rest = elements / block[d];

        block[d] = gm_min(chunks * block[d], dataset->dims[d]);
        elements = rest * block[d];
    }
    return elements;
}

/* What the cap of the host memory leaves, within reason. */
static int64_t choose_budget(int64_t size)
{
    int64_t room = gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST) - 8192; /* a page before the buffer, and rounding */

    return gm_max(1, gm_min(room, INT64_C(64) << 20) / size);
}

typedef struct packing {
    hid_t set, type, space; /* space: of the dataset */
    const gm_output_dataset *dataset;
    gm_bytes raw;
    int64_t offset;
    void *buffer;
} packing;

/* One block that begins at start. */
static int pack_block(packing *p, const hsize_t *start, const hsize_t *count)
{
    const gm_output_dataset *dataset = p->dataset;
    int64_t size = (int64_t)gm_dtype_size(dataset->type), stride = size, memory = size, offset = p->offset;
    gm_stride dims[GM_RANK_MAX];
    char reason[GM_H5_TEXT];
    hid_t space;
    int status, ok;

    for (int d = dataset->rank - 1; d >= 0; d--) {
        dims[d] = (gm_stride){(int64_t)count[d], stride, memory};
        offset += (int64_t)start[d] * stride;
        stride *= dataset->dims[d];
        memory *= (int64_t)count[d];
    }
    status = gm_bytes_gather(&p->raw, offset, dims, dataset->rank, (size_t)size, p->buffer);
    if (status)
        return status;
    space = dataset->rank ? H5Screate_simple(dataset->rank, count, NULL) : H5Screate(H5S_SCALAR);
    ok = space >= 0 && (dataset->rank == 0 || H5Sselect_hyperslab(p->space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0)
         && H5Dwrite(p->set, p->type, space, p->space, H5P_DEFAULT, p->buffer) >= 0;
    if (!ok)
        gm_fail(GM_EOUTPUT, "%s: writing chunks failed: %s", p->raw.title, gm_h5_error(reason));
    if (space >= 0)
        H5Sclose(space);
    return ok ? GM_OK : GM_EOUTPUT;
}

static int pack_blocks(packing *p, const int64_t *block)
{
    const gm_output_dataset *dataset = p->dataset;
    hsize_t start[GM_RANK_MAX] = {0}, count[GM_RANK_MAX];
    int status = GM_OK, d = 0;

    while (d >= 0 && !status) {
        for (d = 0; d < dataset->rank; d++)
            count[d] = (hsize_t)gm_min(block[d], dataset->dims[d] - (int64_t)start[d]);
        status = pack_block(p, start, count);
        for (d = dataset->rank - 1; d >= 0; d--) { /* the next block */
            start[d] += (hsize_t)block[d];
            if ((int64_t)start[d] < dataset->dims[d])
                break;
            start[d] = 0;
        }
    }
    return status;
}

int gm_pack_dataset(hid_t set, const gm_output_dataset *dataset, int raw, int64_t offset, const char *title)
{
    packing p = {set, gm_output_type(dataset), H5Dget_space(set), dataset, {raw, GM_EOUTPUT, title, 0}, offset, NULL};
    int64_t size = (int64_t)gm_dtype_size(dataset->type), block[GM_RANK_MAX];
    char reason[GM_H5_TEXT];
    int status = GM_OK;

    if (p.type < 0 || p.space < 0)
        status = gm_fail(GM_EOUTPUT, "%s: cannot be written: %s", title, gm_h5_error(reason));
    if (!status && gm_output_bytes(dataset) > 0) {
        status = gm_host_alloc((size_t)(choose_block(dataset, choose_budget(size), block) * size), &p.buffer);
        if (!status)
            status = pack_blocks(&p, block);
        gm_host_free(p.buffer);
    }
    if (p.space >= 0)
        H5Sclose(p.space);
    if (p.type >= 0)
        H5Tclose(p.type);
    return status;
}
