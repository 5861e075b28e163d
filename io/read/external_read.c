/* external_read.c - elements of external storage, read without libhdf5. */
#include "io/read/external_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/path.h"
#include "base/status.h"
#include "io/describe/external.h"
#include "io/h5.h"

struct gm_external {
    gm_bytes bytes;
    gm_extent *extent;
    hid_t type; /* in the files */
    size_t size;
};

static int add_extent(gm_external *x, hid_t set, hid_t plist, int i)
{
    char path[GM_PATH_MAX];
    gm_extent *extent = &x->extent[i];
    int status = gm_external_get(set, plist, i, x->bytes.title, path, &extent->offset, &extent->bytes);
    if (!status && !(extent->path = strdup(path)))
        status = gm_fail(GM_EDEVICE, "%s: no memory for its external storage", x->bytes.title);
    x->bytes.extents += !status;
    return status;
}

static int open_extents(gm_external *x, hid_t set, hid_t plist, int count)
{
    int status = GM_OK;
    x->extent = calloc((size_t)count, sizeof *x->extent);
    x->type = H5Dget_type(set);
    x->size = x->type >= 0 ? H5Tget_size(x->type) : 0;
    if (!x->extent)
        return gm_fail(GM_EDEVICE, "%s: no memory for its external storage", x->bytes.title);
    if (x->size == 0)
        return gm_fail(GM_EINPUT, "%s: cannot be read, the file is damaged", x->bytes.title);
    for (int i = 0; i < count && !status; i++)
        status = add_extent(x, set, plist, i);
    x->bytes.extent = x->extent;
    return status;
}

int gm_external_open(hid_t set, const char *title, gm_external **out)
{
    hid_t plist = H5Dget_create_plist(set);
    int count = plist >= 0 && H5Pget_layout(plist) == H5D_CONTIGUOUS ? H5Pget_external_count(plist) : 0;
    int status = plist >= 0 ? GM_OK : gm_fail(GM_EINPUT, "%s: cannot be read, the file is damaged", title);
    gm_external *x = NULL;
    *out = NULL;
    if (count > 0 && !(x = calloc(1, sizeof *x)))
        status = gm_fail(GM_EDEVICE, "%s: no memory for its external storage", title);
    if (x) {
        x->bytes = (gm_bytes){.fd = -1, .code = GM_EINPUT, .title = title};
        x->type = H5I_INVALID_HID;
        status = open_extents(x, set, plist, count);
    }
    gm_h5_close(plist);
    if (status)
        gm_external_close(x);
    else
        *out = x;
    return status;
}

void gm_external_close(gm_external *x)
{
    if (!x)
        return;
    for (int i = 0; i < x->bytes.extents; i++)
        free(x->extent[i].path);
    free(x->extent);
    gm_h5_close(x->type);
    free(x);
}

size_t gm_external_size(const gm_external *x)
{
    return x->size;
}

int gm_external_read(const gm_external *x, int64_t first, const gm_stride *dims, int rank, int64_t elements, hid_t type,
                     void *to)
{
    char reason[GM_H5_TEXT];
    size_t size = H5Tget_size(type), bytes = (size_t)elements * size;
    void *room = x->size > size ? malloc((size_t)elements * x->size) : to; /* libhdf5 converts in place */
    if (!room)
        return gm_fail(GM_EDEVICE, "%s: no memory to convert %lld elements", x->bytes.title, (long long)elements);
    int status = gm_bytes_gather(&x->bytes, first, dims, rank, x->size, room);
    if (!status && H5Tconvert(x->type, type, (size_t)elements, room, NULL, H5P_DEFAULT) < 0)
        status = gm_fail(GM_EINPUT, "%s: its elements cannot be converted: %s", x->bytes.title, gm_h5_error(reason));
    if (room != to) {
        if (!status)
            memcpy(to, room, bytes);
        free(room);
    }
    return status;
}
