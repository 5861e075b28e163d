/* attributes.c - copies attributes of an input to an output. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text/escape.h"
#include "io/bytes.h"
#include "io/worker.h"
#include "io/write/output_vfd.h"
#include "io/write/record.h"

typedef enum outcome { COPIED, NOT_STORED, NOT_READ } outcome;

/* References point into the other file. */
static int can_be_copied(hid_t type)
{
    return H5Tget_class(type) != H5T_REFERENCE && H5Tdetect_class(type, H5T_REFERENCE) <= 0;
}

/* Copies the value without conversion; with axes, the labels of these. Returns what could be done with it; sets *status
 * if there is no memory for it. */
static outcome copy_value(hid_t from, hid_t to, hid_t type, hid_t space, const gm_axes *axes, int *status)
{
    hssize_t elements = H5Sget_simple_extent_npoints(space);
    size_t size = H5Tget_size(type);
    if (elements <= 0 || size == 0)
        return elements == 0 || H5Sget_simple_extent_type(space) == H5S_NULL ? COPIED : NOT_READ;
    int labels = axes ? axes->rank : 0;
    char *value = calloc((size_t)(elements + labels), size), *written = value;
    if (!value)
        *status = gm_fail(GM_EDEVICE, "no memory for an attribute of %lld bytes",
                          (long long)elements * (long long)size);
    outcome end = value && H5Aread(from, type, value) >= 0 ? COPIED : NOT_READ;
    if (end == COPIED && labels)
        written = value + (size_t)elements * size;
    for (int k = 0; k < labels && end == COPIED; k++)
        memcpy(written + (size_t)k * size, value + (size_t)axes->from[k] * size, size);
    if (end == COPIED && (to < 0 || H5Awrite(to, type, written) < 0))
        end = NOT_STORED;
    if (value &&
        (H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0 || H5Tdetect_class(type, H5T_STRING) > 0))
        H5Dvlen_reclaim(type, space, H5P_DEFAULT,
                        value); /* frees text of variable length, in compounds too; ignores other text */
    free(value);
    return end;
}

typedef struct copying {
    hid_t to;
    const gm_axes *axes; /* NULL: labels stay as they are */
    int rank;            /* of the dataset of the input */
    int skipped, status;
    char first[GM_NAME_MAX];  /* the name of the first that was skipped */
    char unread[GM_NAME_MAX]; /* of one that cannot be read, which ends the copying */
} copying;

/* Does it label each dimension of the input, as H5DSset_label and h5py write it? */
static int is_labels(const char *name, hid_t type, hid_t space, int rank)
{
    return strcmp(name, "DIMENSION_LABELS") == 0 && H5Tget_class(type) == H5T_STRING &&
           H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_npoints(space) == rank;
}

/* Copies an attribute that can be copied; of labels, those of the output's axes. */
static outcome copy_it(copying *c, const char *name, hid_t from, hid_t type, hid_t space)
{
    const gm_axes *axes = c->axes && is_labels(name, type, space, c->rank) ? c->axes : NULL;
    hsize_t labels = axes ? (hsize_t)axes->rank : 0;
    if (axes && axes->rank == 0)
        return NOT_STORED;
    hid_t shape = axes ? H5Screate_simple(1, &labels, NULL) : H5Scopy(space);
    hid_t to = H5Acreate2(c->to, name, type, shape, H5P_DEFAULT, H5P_DEFAULT);
    outcome end = copy_value(from, to, type, space, axes, &c->status);
    end = end == COPIED && to < 0 ? NOT_STORED : end;
    gm_h5_close(to);
    gm_h5_close(shape);
    if (to >= 0 && end != COPIED)
        H5Adelete(c->to, name);
    return end;
}

static herr_t copy_attribute(hid_t set, const char *name, const H5A_info_t *info, void *context)
{
    copying *c = context;
    hid_t from = H5Aopen(set, name, H5P_DEFAULT), stored = H5I_INVALID_HID, type = H5I_INVALID_HID,
          space = H5I_INVALID_HID;
    outcome end = NOT_READ;
    (void)info;
    if (from >= 0) {
        stored = H5Aget_type(from);
        space = H5Aget_space(from);
    }
    if (stored >= 0)
        type = H5Tcopy(stored); /* transient: it may be a named type of the other file */
    if (type >= 0 && space >= 0)
        end = can_be_copied(type) ? copy_it(c, name, from, type, space) : NOT_STORED;
    if (end == NOT_STORED && c->skipped++ == 0)
        gm_escape_cut(name, c->first, sizeof c->first);
    if (end == NOT_READ)
        gm_escape_cut(name, c->unread, sizeof c->unread);
    gm_h5_close(space);
    gm_h5_close(type);
    gm_h5_close(stored);
    gm_h5_close(from);
    return end == NOT_READ ? -1 : 0;
}

/* Copies the attributes of a dataset as far as they can be copied. Returns 0 when they cannot be visited. */
static int copy_all(hid_t set, copying *c)
{
    hsize_t at = 0;
    return H5Aiterate2(set, H5_INDEX_NAME, H5_ITER_INC, &at, copy_attribute, c) >= 0;
}

/* Access to a file in memory: a new one, or an image of one. */
static hid_t memory_access(const void *image, size_t bytes)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    return gm_h5_ready(access, access >= 0 && H5Pset_fapl_core(access, 1 << 16, 0) >= 0 &&
                                   (!image || H5Pset_file_image(access, (void *)image, bytes) >= 0));
}

static int reply_image(hid_t file, gm_reply *reply)
{
    ssize_t bytes = H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(file, NULL, 0);
    void *image = bytes > 0 ? malloc((size_t)bytes) : NULL;
    int status = image && H5Fget_file_image(file, image, (size_t)bytes) == bytes
                     ? gm_reply_add(reply, image, (size_t)bytes)
                     : gm_fail(GM_EDEVICE, "no memory for the attributes of an input");
    free(image);
    return status;
}

/* Runs in the worker; the argument is the record of the input. Replies what could not be copied (struct copying), then
 * an HDF5 file whose root group has the attributes. */
static int collect(const void *argument, size_t bytes, gm_reply *reply)
{
    const gm_dataset *from = argument;
    copying c = {.to = H5I_INVALID_HID};
    hid_t in = H5I_INVALID_HID, set = H5I_INVALID_HID, access = H5I_INVALID_HID, file = H5I_INVALID_HID;
    char reason[GM_H5_TEXT], title[GM_PATH_MAX];
    (void)bytes;
    int status = gm_h5_open(from->file, &in);
    if (!status)
        set = H5Dopen2(in, from->name, H5P_DEFAULT);
    if (set >= 0 && (access = memory_access(NULL, 0)) >= 0)
        file = H5Fcreate("attributes", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0)
        c.to = H5Gopen2(file, "/", H5P_DEFAULT);
    if (!status && (c.to < 0 || !copy_all(set, &c)))
        status = c.status      ? c.status
                 : c.unread[0] ? gm_fail(GM_EINPUT, "%s: its attribute '%s' cannot be read, the file is damaged",
                                         gm_dataset_title(from, title), c.unread)
                               : gm_fail(GM_EINPUT, "%s: its attributes cannot be read, the file is damaged: %s",
                                         gm_dataset_title(from, title), gm_h5_error(reason));
    gm_h5_close(c.to);
    if (!status)
        status = gm_reply_add(reply, &c, sizeof c);
    if (!status)
        status = reply_image(file, reply);
    gm_h5_close(file);
    gm_h5_close(access);
    gm_h5_close(set);
    gm_h5_close(in);
    return status;
}

/* Under the lock. Writes the attributes of the root group of an HDF5 file in memory; fd: of the output. */
static int write_all(const gm_output_record *record, int index, int fd, const void *image, size_t bytes, copying *c)
{
    hid_t access = memory_access(image, bytes), in = H5I_INVALID_HID, from = H5I_INVALID_HID;
    char reason[GM_H5_TEXT];
    gm_output_vfd *out;
    int status = gm_output_vfd_open(fd, record->file, &out);
    if (access >= 0)
        in = H5Fopen("attributes", H5F_ACC_RDONLY, access);
    if (in >= 0)
        from = H5Gopen2(in, "/", H5P_DEFAULT);
    if (out)
        c->to = H5Dopen2(gm_output_vfd_id(out), record->dataset[index].name, H5P_DEFAULT);
    if (!status && (from < 0 || c->to < 0 || !copy_all(from, c)))
        status = c->status ? c->status
                           : gm_fail(GM_EOUTPUT, "%s: the attributes of the input cannot be copied: %s", record->file,
                                     gm_h5_error(reason));
    gm_h5_close(c->to);
    gm_h5_close(from);
    gm_h5_close(in);
    gm_h5_close(access);
    return gm_output_vfd_close(out, status);
}

int gm_output_copy_attributes(const gm_output_record *record, int index, const gm_dataset *from, const gm_axes *axes,
                              int *skipped, char *first)
{
    char title[GM_PATH_MAX];
    copying c;
    void *found;
    size_t bytes;
    int status = gm_worker_run(gm_dataset_title(from, title), collect, from, sizeof *from, &found, &bytes);
    *skipped = 0;
    if (status)
        return status;
    memcpy(&c, found, sizeof c); /* goes on counting */
    c.axes = axes;
    c.rank = from->rank;
    int fd = gm_record_reopen(record);
    gm_h5_lock();
    status = fd < 0 ? GM_EOUTPUT : write_all(record, index, fd, (char *)found + sizeof c, bytes - sizeof c, &c);
    gm_h5_unlock();
    status = gm_bytes_close(fd, record->file, status);
    free(found);
    *skipped = c.skipped;
    memcpy(first, c.first, sizeof c.first);
    return status;
}
