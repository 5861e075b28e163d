/* stripes.c - looking up the rows of a virtual dataset in its parts. */
#include "io/stripes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/inspect.h"
#include "io/rows.h"

enum { NOT_STRIPES = -1 }; /* ends the walk without an error */

/* What is found out while going through the mappings. */
typedef struct finding {
    const gm_dataset *dataset;
    const char *title;
    gm_stripes *stripes;
    int64_t room;                 /* of the table */
    hid_t file[GM_STRIPES_PARTS]; /* of the parts */
    int last;                     /* the part that was looked at last, */
    gm_dataset source;            /* and what was found in it */
} finding;

/* The file of a mapping; one more when it is new. Mappings of one file often follow each other. */
static int take_part(finding *f, hid_t set, const gm_mapping *map, int *part)
{
    gm_stripes *stripes = f->stripes;
    int status;

    *part = f->last;
    if (*part >= 0 && strcmp(stripes->part[*part].path, map->path) == 0)
        return GM_OK;
    for (*part = 0; *part < stripes->parts; ++*part)
        if (strcmp(stripes->part[*part].path, map->path) == 0)
            return GM_OK;
    if (stripes->parts == stripes->parts_max)
        return NOT_STRIPES;
    status = gm_mapping_open(set, map, f->title, &f->file[*part]);
    if (status)
        return status;
    stripes->part[*part] = (gm_stripes_part){strdup(map->path), 0};
    stripes->parts++;
    return stripes->part[*part].path ? GM_OK : gm_fail(GM_EDEVICE, "%s: no memory to open it", f->title);
}

static int take_shape(hid_t set, gm_dataset *source)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int ok = space >= 0 && (source->rank = H5Sget_simple_extent_dims(space, dims, NULL)) >= 0;

    for (int d = 0; d < source->rank && ok; d++) {
        source->dims[d] = (int64_t)dims[d];
        ok = dims[d] <= INT64_MAX;
    }
    if (space >= 0)
        H5Sclose(space);
    return ok;
}

/* Are the elements of an open dataset, bit for bit, what the reader of the virtual one delivers? */
static int has_type(hid_t set, const gm_dataset *dataset)
{
    hid_t type = H5Dget_type(set);
    int exact = 0, swap = 0, same;
    gm_dtype found;

    same = type >= 0 && gm_inspect_type(type, &found, &exact, &swap) && exact && found == dataset->type && swap == dataset->swap;
    if (type >= 0)
        H5Tclose(type);
    return same;
}

/* Is the dataset of a mapping contiguous, and of the very same type? */
static int look_at(finding *f, const gm_mapping *map, int part)
{
    gm_stripes_part *p = &f->stripes->part[part];
    gm_dataset *source = &f->source;
    char title[2 * GM_PATH_MAX + GM_NAME_MAX + 16];
    int64_t end = (int64_t)gm_dtype_size(f->dataset->type);
    int status = GM_OK;
    hid_t set;

    if (f->last == part && strcmp(source->name, map->name) == 0)
        return GM_OK;
    set = H5Dopen2(f->file[part], map->name, H5P_DEFAULT);
    if (set < 0)
        return gm_fail(GM_EINPUT, "%s: its part %s:%s is missing", f->title, map->path, map->name);
    memset(source, 0, sizeof *source);
    strcpy(source->name, map->name);
    source->type = f->dataset->type;
    snprintf(title, sizeof title, "%s: its part %s:%s", f->title, map->path, map->name);
    if (!has_type(set, f->dataset) || !take_shape(set, source))
        status = NOT_STRIPES;
    if (!status)
        status = gm_inspect_storage(set, 1, title, source);
    H5Dclose(set);
    if (!status && (!source->direct || strcmp(source->data_file, p->path) != 0)) /* it may be a link to yet another file */
        status = NOT_STRIPES;
    if (status)
        return status;
    for (int d = 0; d < source->rank; d++)
        end = gm_mul_sat(end, source->dims[d]);
    p->end = gm_max(p->end, gm_add_sat(end, source->offset));
    f->last = part;
    return GM_OK;
}

/* Puts a stripe into the table, or makes the last one longer. */
static int put_stripe(finding *f, const gm_stripe *next)
{
    gm_stripes *s = f->stripes;
    gm_stripe *last = s->count ? &s->stripe[s->count - 1] : NULL;

    if (last && last->part == next->part && last->row + last->rows == next->row && last->offset + last->rows * s->row_bytes == next->offset)
        last->rows += next->rows;
    else if (s->count < f->room)
        s->stripe[s->count++] = *next;
    else
        return NOT_STRIPES;
    return GM_OK;
}

static int take_mapping(void *context, hid_t set, const gm_mapping *map)
{
    finding *f = context;
    int64_t size = (int64_t)gm_dtype_size(f->dataset->type);
    gm_row_walk walk;
    gm_row_run run;
    int part, status = take_part(f, set, map, &part);

    if (!status)
        status = look_at(f, map, part);
    if (!status && !gm_rows_begin(map, f->dataset, f->source.rank, f->source.dims, &walk))
        status = NOT_STRIPES;
    while (!status && gm_rows_next(&walk, &run))
        status = put_stripe(f, &(gm_stripe){run.row, run.rows, f->source.offset + run.element * size, part});
    return status;
}

static int compare(const void *a, const void *b)
{
    int64_t x = ((const gm_stripe *)a)->row, y = ((const gm_stripe *)b)->row;

    return (x > y) - (x < y);
}

/* Puts the stripes in order. Returns whether every row is in exactly one. */
static int sort(gm_stripes *s, int64_t rows)
{
    int64_t row = 0, i;

    for (i = 1; i < s->count && s->stripe[i - 1].row < s->stripe[i].row; i++)
        ;
    if (i < s->count)
        qsort(s->stripe, (size_t)s->count, sizeof *s->stripe, compare);
    for (i = 0; i < s->count && s->stripe[i].row == row; i++)
        row += s->stripe[i].rows;
    return i == s->count && row == rows;
}

/* Does the dataset still look as the record says? */
static int is_same(hid_t set, const gm_dataset *dataset)
{
    gm_dataset now = {0};
    int same = take_shape(set, &now) && now.rank == dataset->rank && has_type(set, dataset);

    for (int d = 0; d < now.rank && same; d++)
        same = now.dims[d] == dataset->dims[d];
    return same;
}

/* Under the lock. */
static int look_up(finding *f)
{
    const gm_dataset *dataset = f->dataset;
    char reason[GM_H5_TEXT];
    hid_t file, set = H5I_INVALID_HID;
    int status = gm_h5_open(dataset->file, &file);

    if (!status) {
        set = H5Dopen2(file, dataset->name, H5P_DEFAULT);
        if (set < 0)
            status = gm_fail(GM_EINPUT, "%s: cannot be opened: %s", f->title, gm_h5_error(reason));
        else if (!is_same(set, dataset))
            status = gm_fail(GM_EINPUT, "%s: is not the dataset that was found before", f->title);
    }
    if (!status)
        status = gm_mappings_visit(set, f->title, take_mapping, f);
    for (int i = 0; i < f->stripes->parts; i++)
        H5Fclose(f->file[i]);
    if (set >= 0)
        H5Dclose(set);
    if (file >= 0)
        H5Fclose(file);
    return status;
}

/* A folder of the user's for parts comes before all others: libhdf5 knows it. */
static int has_prefix(void)
{
    const char *prefix = getenv("HDF5_VDS_PREFIX");

    return prefix && prefix[0];
}

int gm_stripes_find(const gm_dataset *dataset, const char *title, gm_stripes *stripes, int *found)
{
    long files = sysconf(_SC_OPEN_MAX);
    finding *f = NULL;
    void *table = NULL;
    int status = GM_OK;

    *found = 0;
    *stripes = (gm_stripes){.parts_max = files < 0 ? GM_STRIPES_PARTS : (int)gm_min(files / 4, GM_STRIPES_PARTS)};
    if (has_prefix() || !gm_host_try((size_t)dataset->row_runs * sizeof *stripes->stripe, &table))
        return GM_OK;
    stripes->stripe = table;
    stripes->part = calloc(GM_STRIPES_PARTS, sizeof *stripes->part);
    f = malloc(sizeof *f);
    if (!f || !stripes->part)
        status = gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    if (!status) {
        f->dataset = dataset;
        f->title = title;
        f->stripes = stripes;
        f->room = dataset->row_runs;
        f->last = -1;
        stripes->row_bytes = gm_mul_sat(gm_rows_columns(dataset), (int64_t)gm_dtype_size(dataset->type));
        gm_h5_lock();
        status = look_up(f);
        gm_h5_unlock();
        *found = !status && sort(stripes, dataset->dims[0]);
    }
    free(f);
    return status == NOT_STRIPES ? GM_OK : status;
}

void gm_stripes_free(gm_stripes *stripes)
{
    for (int i = 0; i < stripes->parts; i++)
        free(stripes->part[i].path);
    free(stripes->part);
    gm_host_free(stripes->stripe);
    *stripes = (gm_stripes){0};
}

const gm_stripe *gm_stripes_at(const gm_stripes *stripes, int64_t row)
{
    int64_t low = 0, high = stripes->count;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if (stripes->stripe[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    return &stripes->stripe[low];
}
