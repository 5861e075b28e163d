/* output.c - creating the temporary file of an output, and opening it for writing. */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/status.h"
#include "io/pack.h"
#include "io/scratch.h"

enum { PAGE = 4096, ALIGN_FROM = 256 * 1024 }; /* data of this size and more begin at a page of the file */

int gm_output_has_scratch(const gm_output_record *record)
{
    return record->raw[0] != '\0';
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

int64_t gm_output_columns(const gm_output_dataset *dataset)
{
    int64_t columns = 1;

    for (int d = 1; d < dataset->rank; d++)
        columns = gm_mul_sat(columns, dataset->dims[d]);
    return columns;
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

uint64_t gm_output_id(void)
{
    static atomic_uint calls;
    uint64_t random = 0;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = ((uint64_t)(gm_clock() * 1e9) << 8) + atomic_fetch_add(&calls, 1);
    return random & UINT64_C(0xffffffffffff);
}

int gm_output_claim(const char *file, const char *suffix, char *path)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    int fd = -1;

    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        if (snprintf(path, GM_PATH_MAX, "%.*s.%.200s.%ld-%012" PRIx64 ".%s", (int)(base - file), file, base, (long)getpid(),
                     gm_output_id(), suffix)
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
        gm_fail(GM_EOUTPUT, "%s: no file can be made in its folder: %s", file, strerror(errno));
    }
    return fd;
}

/* How a dataset is stored. virtual: its index in the record if it lies in parts, else -1. */
static hid_t make_plist(const gm_output_record *record, const gm_output_dataset *dataset, int virtual)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[GM_RANK_MAX];
    int ok = plist >= 0 && H5Pset_obj_track_times(plist, 0) >= 0;

    for (int d = 0; d < dataset->rank; d++)
        chunk[d] = (hsize_t)dataset->chunk[d];
    if (virtual >= 0)
        ok = ok && gm_parted_map(plist, record, virtual);
    else
        ok = ok && H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0;
    if (dataset->chunked)
        ok = ok && H5Pset_chunk(plist, dataset->rank, chunk) >= 0;
    else if (virtual < 0) /* the place is known and nothing is written to it: that is for the writers */
        ok = ok && H5Pset_layout(plist, H5D_CONTIGUOUS) >= 0 && H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0;
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

/* Creates one dataset; virtual: as for make_plist(). *offset gets where its data lie in the file, if that is known. */
static int create_dataset(hid_t file, const gm_output_record *record, const gm_output_dataset *dataset, int virtual, int64_t *offset)
{
    char reason[GM_H5_TEXT];
    hid_t links = H5Pcreate(H5P_LINK_CREATE), plist = make_plist(record, dataset, virtual), space = make_space(dataset), type = gm_output_type(dataset);
    hid_t set = H5I_INVALID_HID;
    haddr_t at = 0;
    int ok = links >= 0 && plist >= 0 && space >= 0 && type >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0
             && H5Pset_char_encoding(links, H5T_CSET_UTF8) >= 0;

    if (ok)
        set = H5Dcreate2(file, dataset->name, type, space, links, plist, H5P_DEFAULT);
    ok = set >= 0;
    if (ok && !dataset->chunked && virtual < 0 && gm_output_bytes(dataset) > 0) {
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

/* The datasets of the file itself (part -1), or what a part has of those that are dealt to parts. */
static int create_datasets(hid_t file, gm_output_record *record, int part)
{
    int status = GM_OK;

    for (int i = 0; i < record->datasets && !status; i++) {
        gm_output_dataset dataset = record->dataset[i];

        if (part < 0) {
            status = create_dataset(file, record, &dataset, record->stripe[i] ? i : -1, &record->offset[i]);
        } else if ((dataset.dims[0] = gm_parted_rows(record, i, part)) > 0) {
            status = create_dataset(file, record, &dataset, -1, &record->part_offset[part][i]);
        }
    }
    return status;
}

/* Makes the HDF5 file of the temporary name, which was claimed before (part -1), or that of a part. */
static int create_file(gm_output_record *record, int part)
{
    char reason[GM_H5_TEXT], path[GM_PATH_MAX];
    hid_t access, file = H5I_INVALID_HID;
    int status = GM_OK;

    gm_h5_lock();
    access = gm_h5_access();
    if (access >= 0 && H5Pset_alignment(access, ALIGN_FROM, PAGE) >= 0)
        file = H5Fcreate(part < 0 ? record->temporary : gm_parted_path(record, part, path), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file < 0)
        status = gm_fail(GM_EOUTPUT, "%s: cannot be created: %s", record->file, gm_h5_error(reason));
    if (!status)
        status = create_datasets(file, record, part);
    if (!status && part < 0 && record->parts && !gm_parted_mark(file, record))
        status = gm_fail(GM_EOUTPUT, "%s: the folder of its parts cannot be noted: %s", record->file, gm_h5_error(reason));
    if (file >= 0 && H5Fclose(file) < 0)
        status = gm_fail(GM_EOUTPUT, "%s: cannot be created: %s", record->file, gm_h5_error(reason));
    if (access >= 0)
        H5Pclose(access);
    gm_h5_unlock();
    return status;
}

/* The file for the elements of chunked datasets, one after the other. */
static int create_scratch(gm_output_record *record)
{
    int64_t end = 0;
    int fd = gm_output_claim(record->file, "raw", record->raw), status = fd < 0 ? GM_EOUTPUT : GM_OK;

    for (int i = 0; i < record->datasets; i++) {
        if (!record->dataset[i].chunked)
            continue;
        record->offset[i] = end;
        end = gm_mul_sat(gm_ceil_div(gm_add_sat(end, gm_output_bytes(&record->dataset[i])), PAGE), PAGE);
    }
    if (!status && ftruncate(fd, end))
        status = gm_fail(GM_EOUTPUT, "%s: its scratch file of %" PRId64 " bytes cannot be made: %s", record->file, end, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

/* Checks what was asked for. *chunked: is there a chunked dataset?; *bytes: of the contiguous ones. */
static int settle_all(gm_output_record *record, int *chunked, int64_t *bytes)
{
    int status = GM_OK;

    *chunked = 0;
    *bytes = 0;
    if (record->datasets < 0 || record->datasets > GM_OUTPUT_DATASETS)
        return gm_fail(GM_EINTERNAL, "%s: %d datasets, expected at most %d", record->file, record->datasets, GM_OUTPUT_DATASETS);
    for (int i = 0; i < record->datasets && !status; i++) {
        status = settle(record->file, &record->dataset[i]);
        *chunked = *chunked || record->dataset[i].chunked;
        *bytes = gm_add_sat(*bytes, record->dataset[i].chunked ? 0 : gm_output_bytes(&record->dataset[i]));
    }
    if (!status && *chunked && record->layout == GM_OUTPUT_PARTED)
        status = gm_fail(GM_EUSAGE, "%s: an output in parts takes no chunks and no compression, expected the layout single", record->file);
    if (*chunked)
        record->layout = GM_OUTPUT_SINGLE;
    return status;
}

int gm_output_create(gm_output_record *record)
{
    int64_t bytes;
    int chunked, fd = -1, status;

    record->temporary[0] = record->raw[0] = record->folder[0] = '\0';
    record->parts = 0;
    status = settle_all(record, &chunked, &bytes);
    if (!status)
        status = (fd = gm_output_claim(record->file, "tmp", record->temporary)) < 0 ? GM_EOUTPUT : GM_OK;
    if (!status) {
        gm_ways_choose(record, bytes);
        status = gm_parted_plan(record);
    }
    for (int part = 0; part < record->parts && !status; part++)
        status = gm_parted_copy(record, part) ? GM_OK : create_file(record, part);
    if (!status)
        status = create_file(record, -1);
    if (!status && chunked)
        status = create_scratch(record);
    if (!status)
        status = gm_space_prepare(record, fd);
    if (fd >= 0)
        close(fd);
    if (status)
        gm_output_discard(record);
    return status;
}

void gm_output_discard(const gm_output_record *record)
{
    if (record->temporary[0])
        unlink(record->temporary);
    gm_pack_discard(record);
    gm_parted_remove(record->folder);
}
