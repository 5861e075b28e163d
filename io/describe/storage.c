/* storage.c - layout and filters of a dataset, and whether its bytes can be read without libhdf5. */
#include "io/describe/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "io/describe/external.h"
#include "io/describe/filters.h"
#include "io/input_vfd.h"

static void chunk_words(hid_t plist, char *text)
{
    hsize_t chunk[H5S_MAX_RANK];
    int rank = H5Pget_chunk(plist, H5S_MAX_RANK, chunk), used = snprintf(text, GM_H5_TEXT, "chunked ");
    for (int d = 0; d < rank && used < GM_H5_TEXT; d++)
        used += snprintf(text + used, (size_t)(GM_H5_TEXT - used), "%s%" PRIu64, d ? "x" : "", (uint64_t)chunk[d]);
    if (used < GM_H5_TEXT)
        gm_filters_format(plist, text + used, (size_t)(GM_H5_TEXT - used));
}

char *gm_storage_format(hid_t set, char *text)
{
    hid_t plist = H5Dget_create_plist(set);
    switch (plist >= 0 ? H5Pget_layout(plist) : H5D_LAYOUT_ERROR) {
    case H5D_COMPACT:
        strcpy(text, "compact");
        break;
    case H5D_CONTIGUOUS:
        strcpy(text, H5Pget_external_count(plist) > 0 ? "external" : "contiguous");
        break;
    case H5D_CHUNKED:
        chunk_words(plist, text);
        break;
    case H5D_VIRTUAL:
        strcpy(text, "virtual");
        break;
    default:
        strcpy(text, "unknown layout");
    }
    gm_h5_close(plist);
    return text;
}

/* Fills layout and chunk; returns 0 for an unknown layout. */
static int read_layout(hid_t plist, gm_dataset *record)
{
    static const struct {
        H5D_layout_t theirs;
        gm_layout ours;
    } layouts[] = {{H5D_COMPACT, GM_COMPACT},
                   {H5D_CONTIGUOUS, GM_CONTIGUOUS},
                   {H5D_CHUNKED, GM_CHUNKED},
                   {H5D_VIRTUAL, GM_VIRTUAL}};
    H5D_layout_t layout = H5Pget_layout(plist);
    hsize_t chunk[GM_RANK_MAX];

    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (layouts[i].theirs != layout)
            continue;
        record->layout = layouts[i].ours;
        if (layout == H5D_CHUNKED) {
            if (H5Pget_chunk(plist, GM_RANK_MAX, chunk) != record->rank)
                return 0;
            for (int d = 0; d < record->rank; d++)
                record->chunk[d] = (int64_t)chunk[d];
        }
        return 1;
    }
    return 0;
}

/* The file that holds the dataset: after external links, not the one that the user named. */
static void read_data_file(hid_t set, gm_dataset *record)
{
    ssize_t length = H5Fget_name(set, record->data_file, GM_PATH_MAX);
    if (length < 0 || length >= GM_PATH_MAX)
        record->data_file[0] = '\0';
}

static void find_raw_chunks(hid_t set, hid_t plist, gm_dataset *record)
{
    gm_pipeline pipeline;
    record->raw_chunks = record->layout == GM_CHUNKED && gm_input_reads(set) &&
                         gm_filters_pipeline(plist, record, &pipeline) && record->data_file[0];
}

/* Reads the element at index by H5Dread. Returns whether it did, and from address, if it read the file for it. */
static int lies_at(hid_t set, hid_t type, const gm_dataset *record, const hsize_t *index, haddr_t address)
{
    static const hsize_t ones[GM_RANK_MAX] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    };
    gm_input_place read = {HADDR_UNDEF, 0};
    hid_t space = H5Dget_space(set), one = H5Screate(H5S_SCALAR);
    char element[16];
    gm_input_watch(&read);
    int ok = space >= 0 && one >= 0 &&
             (record->rank == 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, index, NULL, ones, NULL) >= 0) &&
             H5Dread(set, type, one, space, H5P_DEFAULT, element) >= 0;
    gm_input_watch(NULL);
    gm_h5_close(one);
    gm_h5_close(space);
    return ok && (read.address == HADDR_UNDEF || read.address == address);
}

/* Do the elements lie where H5Dget_offset says? Its user block may be another one than libhdf5 reads by, and they may
 * lie beyond what it takes for the file. */
static int is_there(hid_t set, const gm_dataset *record, haddr_t offset)
{
    hsize_t first[GM_RANK_MAX] = {0}, last[GM_RANK_MAX];
    hid_t type = H5Dget_type(set);
    haddr_t bytes = H5Tget_size(type);
    int ok = type >= 0 && bytes <= 8, empty = 0;
    for (int d = 0; d < record->rank; d++) {
        empty |= record->dims[d] == 0;
        last[d] = (hsize_t)record->dims[d] - 1;
        bytes *= (haddr_t)record->dims[d];
    }
    ok = ok && (empty || (lies_at(set, type, record, first, offset) &&
                          lies_at(set, type, record, last, offset + bytes - H5Tget_size(type))));
    gm_h5_close(type);
    return ok;
}

static void find_direct(hid_t set, hid_t plist, gm_dataset *record)
{
    H5D_space_status_t allocated = H5D_SPACE_STATUS_ERROR;
    haddr_t offset;
    if (record->layout != GM_CONTIGUOUS || H5Pget_external_count(plist) > 0 || !gm_input_reads(set))
        return;
    /* The offset of data that were never written is undefined; with a user block, which is added to it, it looks
     * defined. */
    if (H5Dget_storage_size(set) == 0 || H5Dget_space_status(set, &allocated) < 0 ||
        allocated != H5D_SPACE_STATUS_ALLOCATED)
        return;
    offset = H5Dget_offset(set); /* with the user block */
    if (offset == HADDR_UNDEF || offset > INT64_MAX || !is_there(set, record, offset))
        return; /* H5Dread reads them, or says what is wrong */
    record->direct = record->data_file[0] != 0;
    if (record->direct)
        record->offset = (int64_t)offset;
}

/* Bytes of the file that libhdf5 takes for allocated, the user block included; 0 when that is not known. */
static haddr_t allocated_bytes(hid_t set)
{
    hid_t file = H5Iget_file_id(set);
    haddr_t end;
    int known = file >= 0 && H5Fget_eoa(file, &end) >= 0;
    gm_h5_close(file);
    return known ? end : 0;
}

/* Of damaged data that are stored as less than all elements libhdf5 reads what lies after them. */
static int check_stored(hid_t set, hid_t plist, size_t type_bytes, const char *title, const gm_dataset *record)
{
    int64_t bytes = gm_mul_sat((int64_t)type_bytes, gm_product_sat(record->dims, record->rank));
    hsize_t stored = H5Dget_storage_size(set);
    int never_written = record->layout == GM_CONTIGUOUS && stored == 0;
    if (never_written || H5Pget_external_count(plist) > 0)
        return GM_OK;
    if ((record->layout == GM_COMPACT || record->layout == GM_CONTIGUOUS) && stored < (hsize_t)bytes)
        return gm_fail(GM_EINPUT, "%s: is stored in %" PRIu64 " bytes, expected %" PRId64 ": the file is damaged",
                       title, (uint64_t)stored, bytes);
    haddr_t at = record->layout == GM_CONTIGUOUS ? H5Dget_offset(set) : HADDR_UNDEF, end = allocated_bytes(set);
    if (at != HADDR_UNDEF && (at > end || (haddr_t)bytes > end - at))
        return gm_fail(GM_EINPUT,
                       "%s: %" PRId64 " bytes at %" PRIu64 " of a file that ends at %" PRIu64 ": the file is damaged",
                       title, bytes, (uint64_t)at, (uint64_t)end);
    return GM_OK;
}

/* Of a number, all bits lie in its bytes. */
static int is_sound(hid_t type)
{
    enum { BYTES_MOST = 64 };
    size_t bits = 8 * H5Tget_size(type), sign, exponent_at, exponent, mantissa_at, mantissa;
    if (bits == 0 || bits > 8 * BYTES_MOST || H5Tget_offset(type) < 0 ||
        (size_t)H5Tget_offset(type) + H5Tget_precision(type) > bits)
        return 0;
    return H5Tget_class(type) != H5T_FLOAT ||
           (H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) >= 0 && sign < bits &&
            exponent_at < bits && exponent <= bits - exponent_at && mantissa_at < bits &&
            mantissa <= bits - mantissa_at);
}

/* Do the sizes that the file gives fit each other? */
static int check_sizes(hid_t set, hid_t plist, const char *title, const gm_dataset *record)
{
    hid_t type = H5Dget_type(set);
    int status = type >= 0 && is_sound(type)
                     ? check_stored(set, plist, H5Tget_size(type), title, record)
                     : gm_fail(GM_EINPUT, "%s: its type has bits beyond its bytes: the file is damaged", title);
    if (!status)
        status = gm_filters_check_parameters(plist, title, type);
    gm_h5_close(type);
    return status;
}

int gm_storage_find(hid_t set, int exact, const char *title, gm_dataset *record)
{
    hid_t plist = H5Dget_create_plist(set);
    int status = GM_OK;
    if (plist < 0 || !read_layout(plist, record))
        status = gm_fail(GM_EINPUT, "%s: has an unknown storage layout", title);
    if (!status)
        status = gm_filters_check(plist, title, &record->filters);
    if (!status)
        status = check_sizes(set, plist, title, record);
    if (!status && record->layout == GM_CONTIGUOUS && (record->external = H5Pget_external_count(plist)) > 0)
        status = gm_external_check(set, plist, title);
    if (!status)
        read_data_file(set, record);
    if (!status && exact) {
        find_direct(set, plist, record);
        find_raw_chunks(set, plist, record);
    }
    gm_h5_close(plist);
    return status;
}
