/* stripe_read.c - boxes out of stripes. */
#include "io/stripe_read.h"

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
#include "io/cold.h"
#include "io/stripes.h"

/* Of more stripes, most are tiny, and a read of each is not faster than libhdf5. */
static const int64_t most_stripes = INT64_C(1) << 20;

enum { COLD_FILES = 3 }; /* that a part has open when it is read past the page cache */

struct gm_stripe_reader {
    const gm_dataset *dataset;
    gm_stripes stripes;
    gm_bytes *file; /* of each part, with a title of its own */
};

/* "FILE:DATASET: its part PATH"; NULL: no memory. */
static char *part_title(const char *title, const char *path)
{
    size_t room = strlen(title) + strlen(path) + 16;
    char *text = malloc(room);

    if (text)
        snprintf(text, room, "%s: its part %s", title, path);
    return text;
}

static int open_part(gm_bytes *file, const gm_stripes_part *part, const char *title, int cold)
{
    struct stat st;

    file->title = part_title(title, part->path);
    if (!file->title)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    file->fd = open(part->path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &st))
        return gm_fail(GM_EINPUT, "%s cannot be opened: %s", file->title, strerror(errno));
    if (part->end > st.st_size)
        return gm_fail(GM_EINPUT, "%s ends at byte %" PRId64 ", expected %" PRId64 ": it is damaged or cut", file->title, (int64_t)st.st_size,
                       part->end);
    if (cold)
        file->cold = gm_cold_open(file->fd, GM_COLD_CONTEST);
    return GM_OK;
}

static int open_parts(gm_stripe_reader *reader, const char *title)
{
    const gm_stripes *s = &reader->stripes;
    int status = GM_OK;

    reader->file = calloc((size_t)s->parts, sizeof *reader->file);
    if (!reader->file)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    for (int i = 0; i < s->parts; i++)
        reader->file[i] = (gm_bytes){-1, GM_EINPUT, NULL, 0, NULL};
    for (int i = 0; i < s->parts && !status; i++)
        status = open_part(&reader->file[i], &s->part[i], title, s->parts * COLD_FILES <= s->parts_max);
    return status;
}

int64_t gm_stripe_reader_bytes(const gm_dataset *dataset)
{
    const int64_t overhead = 8192; /* of an allocation */

    return dataset->row_runs > most_stripes ? 0 : dataset->row_runs * (int64_t)sizeof(gm_stripe) + overhead;
}

int gm_stripe_reader_open(const gm_dataset *dataset, const char *title, gm_stripe_reader **out)
{
    gm_stripe_reader *reader;
    int status, found;

    *out = NULL;
    if (gm_stripe_reader_bytes(dataset) == 0)
        return GM_OK;
    reader = calloc(1, sizeof *reader);
    if (!reader)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    reader->dataset = dataset;
    status = gm_stripes_find(dataset, title, &reader->stripes, &found);
    if (!status && found)
        status = open_parts(reader, title);
    if (status || !found)
        gm_stripe_reader_close(reader);
    else
        *out = reader;
    return status;
}

void gm_stripe_reader_close(gm_stripe_reader *reader)
{
    if (!reader)
        return;
    for (int i = 0; i < reader->stripes.parts && reader->file; i++) {
        gm_cold_close(reader->file[i].cold);
        if (reader->file[i].fd >= 0)
            close(reader->file[i].fd);
        free((char *)reader->file[i].title);
    }
    free(reader->file);
    gm_stripes_free(&reader->stripes);
    free(reader);
}

int gm_stripe_reader_read(const gm_stripe_reader *reader, const gm_box *box, char *dst, size_t pitch)
{
    const gm_dataset *dataset = reader->dataset;
    gm_stride dims[GM_RANK_MAX];
    int64_t rows = box->count[0], step = dataset->selection.step[0], row_bytes = reader->stripes.row_bytes, i = 0;
    int64_t first = gm_box_strides(dataset, box, pitch, dims) - box->start[0] * row_bytes; /* byte of a row */
    int status = GM_OK;

    while (i < rows && !status) {
        int64_t row = box->start[0] + i * step;
        const gm_stripe *stripe = gm_stripes_at(&reader->stripes, row);

        dims[0].count = gm_min(rows - i, gm_ceil_div(stripe->row + stripe->rows - row, step));
        status = gm_bytes_gather(&reader->file[stripe->part], stripe->offset + (row - stripe->row) * row_bytes + first, dims, dataset->rank,
                                 gm_dtype_size(dataset->type), dst + i * dims[0].memory);
        i += dims[0].count;
    }
    return status;
}
