/* plain.c - regions of a dataset to memory. */
#include "io/read/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/cold.h"
#include "io/read/chunk_read.h"
#include "io/read/foreign.h"

struct gm_plain {
    gm_dataset dataset;
    char title[GM_PATH_MAX];
    int (*read)(gm_plain *plain, const gm_region *region, char *dst);
    gm_bytes bytes;          /* direct data; fd -1 otherwise */
    gm_chunk_reader *chunks; /* raw chunks; NULL otherwise */
    gm_foreign *foreign;     /* the others */
};

static int read_direct(gm_plain *plain, const gm_region *region, char *dst)
{
    const gm_dataset *dataset = &plain->dataset;
    gm_stride dims[GM_RANK_MAX];
    int64_t first = gm_region_strides(dataset, region, dims);
    return gm_bytes_gather(&plain->bytes, dataset->offset + first, dims, dataset->rank, gm_dtype_size(dataset->type),
                           dst);
}

static int open_direct(gm_plain *plain)
{
    const gm_dataset *dataset = &plain->dataset;
    int64_t end = gm_mul_sat((int64_t)gm_dtype_size(dataset->type), gm_product_sat(dataset->dims, dataset->rank));
    struct stat st;
    plain->bytes.fd = open(dataset->data_file, O_RDONLY | O_CLOEXEC);
    if (plain->bytes.fd < 0 || fstat(plain->bytes.fd, &st))
        return gm_fail(GM_EINPUT, "%s: %s cannot be opened: %s", plain->title, dataset->data_file, strerror(errno));
    end = gm_add_sat(end, dataset->offset);
    if (dataset->offset < 0 || end > st.st_size)
        return gm_fail(GM_EINPUT, "%s: %s ends at byte %" PRId64 ", expected %" PRId64 ": it is damaged or truncated",
                       plain->title, dataset->data_file, (int64_t)st.st_size, end);
    plain->read = read_direct;
    plain->bytes.cold = gm_cold_open(plain->bytes.fd, GM_COLD_PROBE);
    return gm_identity_check_open(&dataset->data_identity, plain->bytes.fd, dataset->data_file, plain->title);
}

static int read_chunks(gm_plain *plain, const gm_region *region, char *dst)
{
    return gm_chunk_reader_read(plain->chunks, region, dst);
}

/* Does nothing when memory does not allow it. */
static int open_chunks(gm_plain *plain)
{
    int status = gm_chunk_reader_open(&plain->dataset, plain->title, &plain->chunks);
    if (plain->chunks)
        plain->read = read_chunks;
    return status;
}

static int read_foreign(gm_plain *plain, const gm_region *region, char *dst)
{
    return gm_foreign_read(plain->foreign, region, dst);
}

static int open_foreign(gm_plain *plain)
{
    plain->read = read_foreign;
    return gm_foreign_open(&plain->dataset, plain->title, &plain->foreign);
}

int gm_plain_open(const gm_dataset *dataset, const char *title, gm_plain **out)
{
    gm_plain *plain = calloc(1, sizeof *plain);
    int status = GM_OK;
    *out = NULL;
    if (!plain)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    plain->dataset = *dataset;
    snprintf(plain->title, sizeof plain->title, "%s", title);
    plain->bytes = (gm_bytes){.fd = -1, .code = GM_EINPUT, .title = plain->title};
    if (dataset->direct)
        status = open_direct(plain);
    else if (dataset->raw_chunks)
        status = open_chunks(plain);
    if (!status && !plain->read)
        status = open_foreign(plain);
    if (!status && !dataset->direct)
        status = gm_dataset_check(dataset, title); /* after it was opened by its name, as libhdf5 has the descriptor */
    if (status)
        gm_plain_close(plain);
    else
        *out = plain;
    return status;
}

void gm_plain_close(gm_plain *plain)
{
    if (!plain)
        return;
    gm_cold_close(plain->bytes.cold);
    if (plain->bytes.fd >= 0)
        close(plain->bytes.fd);
    gm_chunk_reader_close(plain->chunks);
    gm_foreign_close(plain->foreign);
    free(plain);
}

int64_t gm_plain_bytes(void)
{
    return (int64_t)sizeof(gm_plain);
}

int gm_plain_read(gm_plain *plain, const gm_region *region, char *dst)
{
    for (int d = 0; d < plain->dataset.rank; d++)
        if (region->count[d] == 0)
            return GM_OK;
    return plain->read(plain, region, dst);
}
