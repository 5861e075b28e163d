/* output.c - creating the temporary file of an output, and opening it for writing. */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/scratch.h"

enum { PAGE = 4096, ALIGN_FROM = 256 * 1024 }; /* data of this size and more begin at a page of the file */

int gm_output_has_scratch(const gm_output_record *record)
{
    return strcmp(record->raw, record->temporary) != 0;
}

int64_t gm_output_bytes(const gm_output_dataset *dataset)
{
    int64_t bytes = (int64_t)gm_dtype_size(dataset->type);

    for (int d = 0; d < dataset->rank; d++)
        if (dataset->dims[d] == 0)
            return 0;
    for (int d = 0; d < dataset->rank; d++)
        bytes = gm_mul_sat(bytes, dataset->dims[d]);
    return bytes;
}

hid_t gm_output_type(const gm_output_dataset *dataset)
{
    H5T_order_t order = dataset->big_endian ? H5T_ORDER_BE : H5T_ORDER_LE;
    hid_t type = H5Tcopy(gm_h5_type(dataset->type));

    if (type >= 0 && H5Tset_order(type, order) < 0) {
        H5Tclose(type);
        type = H5I_INVALID_HID;
    }
    return type;
}

void gm_output_choose_chunk(gm_output_dataset *dataset)
{
    int64_t left = (INT64_C(1) << 20) / (int64_t)gm_dtype_size(dataset->type);

    /* Whole rows, whole frames, as long as they fit: slices are cut along the first dimension. */
    dataset->chunked = 1;
    for (int d = dataset->rank - 1; d >= 0; d--) {
        dataset->chunk[d] = gm_max(1, gm_min(dataset->dims[d], left));
        left /= dataset->chunk[d];
    }
}

/* Brings what was asked for into a form that libhdf5 takes: no chunks for nothing, none larger than the dataset. */
static int settle(const char *file, gm_output_dataset *dataset)
{
    int64_t bytes = gm_output_bytes(dataset), chunk = (int64_t)gm_dtype_size(dataset->type);

    if (bytes == INT64_MAX)
        return gm_fail(GM_EOUTPUT, "%s:%s: would have more than 2^63 bytes", file, dataset->name);
    if (dataset->rank == 0 || bytes == 0)
        dataset->chunked = dataset->deflate = dataset->shuffle = 0;
    if ((dataset->deflate || dataset->shuffle) && !dataset->chunked)
        gm_output_choose_chunk(dataset);
    for (int d = 0; d < dataset->rank && dataset->chunked; d++) {
        if (dataset->chunk[d] < 1)
            return gm_fail(GM_EUSAGE, "%s:%s: chunks of %" PRId64 " elements along dimension %d, expected 1 or more", file, dataset->name,
                           dataset->chunk[d], d);
        dataset->chunk[d] = gm_min(dataset->chunk[d], dataset->dims[d]);
        chunk = gm_mul_sat(chunk, dataset->chunk[d]);
    }
    if (chunk > UINT32_MAX)
        return gm_fail(GM_EUSAGE, "%s:%s: chunks of %" PRId64 " bytes, expected less than 4 GiB", file, dataset->name, chunk);
    return GM_OK;
}

/* A new empty file beside the final one, with the permissions that any new file gets; its name to path. */
static int claim(const char *file, const char *suffix, char *path)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    int fd = -1;

    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        uint64_t random = 0;

        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
            random = (uint64_t)(gm_clock() * 1e9) + (uint64_t)attempt;
        if (snprintf(path, GM_PATH_MAX, "%.*s.%.200s.%ld-%012" PRIx64 ".%s", (int)(base - file), file, base, (long)getpid(),
                     random & UINT64_C(0xffffffffffff), suffix)
            >= GM_PATH_MAX) {
            errno = ENAMETOOLONG;
            break;
        }
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        path[0] = '\0';
        return gm_fail(GM_EOUTPUT, "%s: no file can be made in its folder: %s", file, strerror(errno));
    }
    close(fd);
    return GM_OK;
}

static hid_t make_plist(const gm_output_dataset *dataset)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[GM_RANK_MAX];
    int ok = plist >= 0 && H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0 && H5Pset_obj_track_times(plist, 0) >= 0;

    for (int d = 0; d < dataset->rank; d++)
        chunk[d] = (hsize_t)dataset->chunk[d];
    if (!dataset->chunked) /* the place is known and nothing is written to it: that is for the writers */
        ok = ok && H5Pset_layout(plist, H5D_CONTIGUOUS) >= 0 && H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0;
    else
        ok = ok && H5Pset_chunk(plist, dataset->rank, chunk) >= 0;
    if (dataset->shuffle)
        ok = ok && H5Pset_shuffle(plist) >= 0;
    if (dataset->deflate)
        ok = ok && H5Pset_deflate(plist, (unsigned)dataset->deflate) >= 0;
    if (!ok && plist >= 0) {
        H5Pclose(plist);
        plist = H5I_INVALID_HID;
    }
    return plist;
}

static hid_t make_space(const gm_output_dataset *dataset)
{
    hsize_t dims[GM_RANK_MAX];

    for (int d = 0; d < dataset->rank; d++)
        dims[d] = (hsize_t)dataset->dims[d];
    return dataset->rank ? H5Screate_simple(dataset->rank, dims, NULL) : H5Screate(H5S_SCALAR);
}

/* Creates one dataset; *offset gets where its data lie in the file. */
static int create_dataset(hid_t file, const gm_output_record *record, const gm_output_dataset *dataset, int64_t *offset)
{
    char reason[GM_H5_TEXT];
    hid_t links = H5Pcreate(H5P_LINK_CREATE), plist = make_plist(dataset), space = make_space(dataset), type = gm_output_type(dataset);
    hid_t set = H5I_INVALID_HID;
    haddr_t at = 0;
    int ok = links >= 0 && plist >= 0 && space >= 0 && type >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0
             && H5Pset_char_encoding(links, H5T_CSET_UTF8) >= 0;

    if (ok)
        set = H5Dcreate2(file, dataset->name, type, space, links, plist, H5P_DEFAULT);
    ok = set >= 0;
    if (ok && !dataset->chunked && gm_output_bytes(dataset) > 0) {
        at = H5Dget_offset(set);
        ok = at != HADDR_UNDEF;
    }
    *offset = ok ? (int64_t)at : 0;
    if (!ok)
        gm_fail(GM_EOUTPUT, "%s:%s: cannot be created: %s", record->file, dataset->name, gm_h5_error(reason));
    if (set >= 0)
        H5Dclose(set);
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    if (plist >= 0)
        H5Pclose(plist);
    if (links >= 0)
        H5Pclose(links);
    return ok ? GM_OK : GM_EOUTPUT;
}

/* Makes the HDF5 file of the temporary name, which was claimed before. */
static int create_file(gm_output_record *record)
{
    char reason[GM_H5_TEXT];
    hid_t access, file = H5I_INVALID_HID;
    int status = GM_OK;

    gm_h5_lock();
    access = gm_h5_access();
    if (access >= 0 && H5Pset_alignment(access, ALIGN_FROM, PAGE) >= 0)
        file = H5Fcreate(record->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file < 0)
        status = gm_fail(GM_EOUTPUT, "%s: cannot be created: %s", record->file, gm_h5_error(reason));
    for (int i = 0; i < record->datasets && !status; i++)
        status = create_dataset(file, record, &record->dataset[i], &record->offset[i]);
    if (file >= 0 && H5Fclose(file) < 0)
        status = gm_fail(GM_EOUTPUT, "%s: cannot be created: %s", record->file, gm_h5_error(reason));
    if (access >= 0)
        H5Pclose(access);
    gm_h5_unlock();
    return status;
}

/* The file for the writers' bytes: all datasets, one after the other. */
static int create_scratch(gm_output_record *record)
{
    int64_t end = 0;
    int status = claim(record->file, "raw", record->raw);

    for (int i = 0; i < record->datasets; i++) {
        record->offset[i] = end;
        end = gm_mul_sat(gm_ceil_div(gm_add_sat(end, gm_output_bytes(&record->dataset[i])), PAGE), PAGE);
    }
    if (!status && truncate(record->raw, end))
        status = gm_fail(GM_EOUTPUT, "%s: its scratch file of %" PRId64 " bytes cannot be made: %s", record->file, end, strerror(errno));
    return status;
}

int gm_output_create(gm_output_record *record)
{
    int scratch = 0, status = GM_OK;

    record->temporary[0] = record->raw[0] = '\0';
    if (record->datasets < 0 || record->datasets > GM_OUTPUT_DATASETS)
        return gm_fail(GM_EINTERNAL, "%s: %d datasets, expected at most %d", record->file, record->datasets, GM_OUTPUT_DATASETS);
    for (int i = 0; i < record->datasets && !status; i++) {
        status = settle(record->file, &record->dataset[i]);
        scratch = scratch || record->dataset[i].chunked;
    }
    if (!status)
        status = claim(record->file, "tmp", record->temporary);
    if (!status)
        status = create_file(record);
    if (!status && scratch)
        status = create_scratch(record);
    else if (!status)
        memcpy(record->raw, record->temporary, sizeof record->raw);
    if (status)
        gm_output_discard(record);
    return status;
}

void gm_output_discard(const gm_output_record *record)
{
    if (record->temporary[0])
        unlink(record->temporary);
    if (record->raw[0])
        unlink(record->raw);
}
