/* create.c - creates the temporary file of an output, its parts and its scratch file; removes them. */
#include "io/write/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/folder.h"
#include "base/file/leftover.h"
#include "base/file/new_file.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/h5.h"
#include "io/write/output_vfd.h"
#include "io/write/pack.h"
#include "io/write/parts.h"
#include "io/write/record.h"
#include "io/write/space.h"
#include "io/write/strategy.h"

enum { PAGE = 4096 };

void gm_output_choose_chunk(gm_output_dataset *dataset)
{
    int64_t left = (INT64_C(1) << 20) / (int64_t)gm_dtype_size(dataset->type);
    /* Whole rows, whole frames, as far as they fit: pieces are cut along the first dimension. */
    dataset->chunked = 1;
    for (int d = dataset->rank - 1; d >= 0; d--) {
        dataset->chunk[d] = gm_max(1, gm_min(dataset->dims[d], left));
        left /= dataset->chunk[d];
    }
}

/* Adjusts a request to what libhdf5 accepts: no chunks of empty datasets, none larger than the dataset. */
static int adjust(const char *file, gm_output_dataset *dataset)
{
    int64_t bytes = gm_record_bytes(dataset), chunk = (int64_t)gm_dtype_size(dataset->type);
    if (bytes == INT64_MAX)
        return gm_fail(GM_EOUTPUT, "%s:%s: would have more than 2^63 bytes", file, dataset->name);
    if (dataset->rank == 0 || bytes == 0)
        dataset->chunked = dataset->deflate = dataset->shuffle = 0;
    if ((dataset->deflate || dataset->shuffle) && !dataset->chunked)
        gm_output_choose_chunk(dataset);
    for (int d = 0; d < dataset->rank && dataset->chunked; d++) {
        if (dataset->chunk[d] < 1)
            return gm_fail(GM_EUSAGE, "%s:%s: chunks of %" PRId64 " elements along dimension %d, expected 1 or more",
                           file, dataset->name, dataset->chunk[d], d);
        dataset->chunk[d] = gm_min(dataset->chunk[d], dataset->dims[d]);
        chunk = gm_mul_sat(chunk, dataset->chunk[d]);
    }
    if (chunk > UINT32_MAX)
        return gm_fail(GM_EUSAGE, "%s:%s: chunks of %" PRId64 " bytes, expected less than 4 GiB", file, dataset->name,
                       chunk);
    return GM_OK;
}

/* The creation property list of a dataset. virtual: its index in the record if it is in parts, else -1. */
static hid_t make_plist(const gm_output_record *record, const gm_output_dataset *dataset, int virtual)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[GM_RANK_MAX];
    int ok = plist >= 0 && H5Pset_obj_track_times(plist, 0) >= 0;
    for (int d = 0; d < dataset->rank; d++)
        chunk[d] = (hsize_t)dataset->chunk[d];
    if (virtual >= 0)
        ok = ok && gm_parts_map(plist, record, virtual);
    else
        ok = ok && H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0;
    if (dataset->chunked)
        ok = ok && H5Pset_chunk(plist, dataset->rank, chunk) >= 0;
    else if (virtual < 0) /* its offset is known, and libhdf5 writes nothing to it: the ranks do */
        ok = ok && H5Pset_layout(plist, H5D_CONTIGUOUS) >= 0 && H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0;
    if (dataset->shuffle)
        ok = ok && H5Pset_shuffle(plist) >= 0;
    if (dataset->deflate)
        ok = ok && H5Pset_deflate(plist, (unsigned)dataset->deflate) >= 0;
    return gm_h5_ready(plist, ok);
}

static hid_t make_space(const gm_output_dataset *dataset)
{
    hsize_t dims[GM_RANK_MAX];
    for (int d = 0; d < dataset->rank; d++)
        dims[d] = (hsize_t)dataset->dims[d];
    return dataset->rank ? H5Screate_simple(dataset->rank, dims, NULL) : H5Screate(H5S_SCALAR);
}

/* Creates one dataset; virtual: as for make_plist(). *offset gets the offset of its data in the file, if known. */
static int create_dataset(hid_t file, const gm_output_record *record, const gm_output_dataset *dataset, int virtual,
                          int64_t *offset)
{
    char reason[GM_H5_TEXT];
    hid_t links = H5Pcreate(H5P_LINK_CREATE), plist = make_plist(record, dataset, virtual), space = make_space(dataset),
          type = gm_record_type(dataset);
    hid_t set = H5I_INVALID_HID;
    haddr_t at = 0;
    int ok = links >= 0 && plist >= 0 && space >= 0 && type >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0 &&
             H5Pset_char_encoding(links, H5T_CSET_UTF8) >= 0;
    if (ok)
        set = H5Dcreate2(file, dataset->name, type, space, links, plist, H5P_DEFAULT);
    ok = set >= 0;
    if (ok && !dataset->chunked && virtual < 0 && gm_record_bytes(dataset) > 0) {
        at = H5Dget_offset(set);
        ok = at != HADDR_UNDEF;
    }
    *offset = ok ? (int64_t)at : 0;
    if (!ok)
        gm_fail(GM_EOUTPUT, "%s:%s: cannot be created: %s", record->file, dataset->name, gm_h5_error(reason));
    gm_h5_close(set);
    gm_h5_close(type);
    gm_h5_close(space);
    gm_h5_close(plist);
    gm_h5_close(links);
    return ok ? GM_OK : GM_EOUTPUT;
}

/* Creates the datasets of the file itself (part -1), or those of a part. */
static int create_datasets(hid_t file, gm_output_record *record, int part)
{
    int status = GM_OK;
    for (int i = 0; i < record->datasets && !status; i++) {
        gm_output_dataset dataset = record->dataset[i];
        if (part < 0) {
            status = create_dataset(file, record, &dataset, record->stripe[i] ? i : -1, &record->offset[i]);
        } else if ((dataset.dims[0] = gm_parts_rows(record, i, part)) > 0) {
            status = create_dataset(file, record, &dataset, -1, &record->part_offset[part][i]);
        }
    }
    return status;
}

/* Makes an HDF5 file of an empty one: the file itself (part -1), or a part. */
static int fill_file(int fd, gm_output_record *record, int part)
{
    char reason[GM_H5_TEXT];
    gm_output_vfd *file;
    gm_h5_lock();
    int status = gm_output_vfd_create(fd, record->file, &file);
    if (!status)
        status = create_datasets(gm_output_vfd_id(file), record, part);
    if (!status && part < 0 && record->parts && !gm_parts_mark(gm_output_vfd_id(file), record))
        status = gm_fail(GM_EOUTPUT, "%s: cannot store the name of the folder of its parts: %s", record->file,
                         gm_h5_error(reason));
    status = gm_output_vfd_close(file, status);
    gm_h5_unlock();
    return status;
}

static int create_part(gm_output_record *record, int part)
{
    char path[GM_PATH_MAX];
    int fd = open(gm_parts_path(record, part, path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return gm_fail(GM_EOUTPUT, "%s: %s cannot be created: %s", record->file, path, strerror(errno));
    return gm_bytes_close(fd, record->file, fill_file(fd, record, part));
}

/* Creates the file for the elements of chunked datasets, one dataset after the other. */
static int create_scratch(gm_output_record *record)
{
    int64_t end = 0;
    int fd = gm_new_file_create(record->file, "raw", !record->named, record->raw);
    int status = fd < 0 ? GM_EOUTPUT : GM_OK;
    record->raw_descriptor = fd;
    if (!status && !gm_leftover_name(record->file, "spool", record->spool))
        status = gm_fail(GM_EOUTPUT, "%s: the name is too long", record->file);
    for (int i = 0; i < record->datasets; i++) {
        if (!record->dataset[i].chunked)
            continue;
        record->offset[i] = end;
        end = gm_mul_sat(gm_ceil_div(gm_add_sat(end, gm_record_bytes(&record->dataset[i])), PAGE), PAGE);
    }
    if (!status && ftruncate(fd, end))
        status = gm_fail(GM_EOUTPUT, "%s: cannot create a scratch file of %" PRId64 " bytes: %s", record->file, end,
                         strerror(errno));
    return status;
}

/* Checks and adjusts all datasets. *chunked: is there a chunked one? *bytes: of the contiguous ones. */
static int adjust_all(gm_output_record *record, int *chunked, int64_t *bytes)
{
    int status = GM_OK;
    *chunked = 0;
    *bytes = 0;
    if (record->datasets < 0 || record->datasets > GM_OUTPUT_DATASETS)
        return gm_fail(GM_EINTERNAL, "%s: %d datasets, expected at most %d", record->file, record->datasets,
                       GM_OUTPUT_DATASETS);
    for (int i = 0; i < record->datasets && !status; i++) {
        status = adjust(record->file, &record->dataset[i]);
        *chunked = *chunked || record->dataset[i].chunked;
        *bytes = gm_add_sat(*bytes, record->dataset[i].chunked ? 0 : gm_record_bytes(&record->dataset[i]));
    }
    if (!status && *chunked && record->layout == GM_OUTPUT_PARTS)
        status = gm_fail(GM_EUSAGE,
                         "%s: an output in parts takes no chunks and no compression, expected the layout single",
                         record->file);
    if (*chunked)
        record->layout = GM_OUTPUT_SINGLE;
    return status;
}

int gm_output_create(gm_output_record *record)
{
    int64_t bytes;
    int chunked, status;
    record->temporary[0] = record->raw[0] = record->spool[0] = record->folder[0] = '\0';
    record->descriptor = record->raw_descriptor = -1;
    record->parts = 0;
    status = adjust_all(record, &chunked, &bytes);
    if (!status)
        record->descriptor = gm_new_file_create(record->file, "tmp", !record->named, record->temporary);
    if (!status && record->descriptor < 0)
        status = GM_EOUTPUT;
    if (!status) {
        gm_strategy_choose(record, bytes);
        status = gm_parts_plan(record);
    }
    for (int part = 0; part < record->parts && !status; part++)
        status = gm_parts_copy(record, part) ? GM_OK : create_part(record, part);
    if (!status)
        status = fill_file(record->descriptor, record, -1);
    if (!status && chunked)
        status = create_scratch(record);
    if (!status)
        status = gm_space_prepare(record, record->descriptor);
    if (status)
        gm_output_discard(record);
    return status;
}

void gm_output_discard(gm_output_record *record)
{
    gm_pack_discard(record);
    if (!record->temporary[0]) /* it has its final name, and so have its parts; or there is none */
        return;
    gm_new_file_discard(record->descriptor, record->temporary);
    record->descriptor = -1;
    record->temporary[0] = '\0';
    gm_folder_remove(record->folder);
}
