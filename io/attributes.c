/* attributes.c - what a dataset says about itself, from an input to an output. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "io/output.h"
#include "io/scratch.h"

/* References lead into the other file. */
static int can_be_copied(hid_t type)
{
    return H5Tget_class(type) != H5T_REFERENCE && H5Tdetect_class(type, H5T_REFERENCE) <= 0;
}

/* The value in the form that the file has: nothing is converted. */
static int copy_value(hid_t from, hid_t to, hid_t type, hid_t space)
{
    hssize_t elements = H5Sget_simple_extent_npoints(space);
    size_t size = H5Tget_size(type);
    void *value;
    int ok;

    if (elements <= 0 || size == 0)
        return elements == 0 || H5Sget_simple_extent_type(space) == H5S_NULL;
    value = calloc((size_t)elements, size);
    ok = value && H5Aread(from, type, value) >= 0 && H5Awrite(to, type, value) >= 0;
    if (value && (H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0 || H5Tdetect_class(type, H5T_STRING) > 0))
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, value); /* looks for text of variable length, in compounds too; leaves other text alone */
    free(value);
    return ok;
}

typedef struct copying {
    hid_t to;
    int skipped;
    char first[GM_NAME_MAX]; /* the name of the first that was skipped */
} copying;

static herr_t copy_attribute(hid_t set, const char *name, const H5A_info_t *info, void *context)
{
    copying *c = context;
    hid_t from = H5Aopen(set, name, H5P_DEFAULT), stored = H5I_INVALID_HID, type = H5I_INVALID_HID, space = H5I_INVALID_HID, to = H5I_INVALID_HID;
    int ok = from >= 0;

    (void)info;
    if (ok)
        stored = H5Aget_type(from);
    if (stored >= 0)
        type = H5Tcopy(stored); /* not a named type of the other file */
    if (ok)
        space = H5Aget_space(from);
    ok = type >= 0 && space >= 0 && can_be_copied(type);
    if (ok)
        to = H5Acreate2(c->to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ok = to >= 0 && copy_value(from, to, type, space);
    if (to >= 0)
        H5Aclose(to);
    if (to >= 0 && !ok)
        H5Adelete(c->to, name);
    if (!ok && c->skipped++ == 0)
        strncpy(c->first, name, sizeof c->first - 1);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (stored >= 0)
        H5Tclose(stored);
    if (from >= 0)
        H5Aclose(from);
    return 0;
}

int gm_output_copy_attributes(const gm_output_record *record, int index, const gm_dataset *from, int *skipped, char *first)
{
    copying c = {.to = H5I_INVALID_HID};
    char reason[GM_H5_TEXT], title[GM_PATH_MAX];
    hid_t access, in = H5I_INVALID_HID, out = H5I_INVALID_HID, set = H5I_INVALID_HID;
    hsize_t at = 0;
    int status;

    gm_h5_lock();
    status = gm_h5_open(from->file, &in);
    access = gm_h5_access();
    if (!status && access >= 0)
        out = H5Fopen(record->temporary, H5F_ACC_RDWR, access);
    if (out >= 0) {
        set = H5Dopen2(in, from->name, H5P_DEFAULT);
        c.to = H5Dopen2(out, record->dataset[index].name, H5P_DEFAULT);
    }
    if (!status && (set < 0 || c.to < 0 || H5Aiterate2(set, H5_INDEX_NAME, H5_ITER_INC, &at, copy_attribute, &c) < 0))
        status = gm_fail(GM_EOUTPUT, "%s: the attributes of %s cannot be copied: %s", record->file, gm_dataset_title(from, title), gm_h5_error(reason));
    if (c.to >= 0)
        H5Dclose(c.to);
    if (set >= 0)
        H5Dclose(set);
    if (out >= 0 && H5Fclose(out) < 0 && !status)
        status = gm_fail(GM_EOUTPUT, "%s: closing failed: %s", record->file, gm_h5_error(reason));
    if (access >= 0)
        H5Pclose(access);
    if (in >= 0)
        H5Fclose(in);
    gm_h5_unlock();
    *skipped = c.skipped;
    memcpy(first, c.first, sizeof c.first);
    return status;
}
