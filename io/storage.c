/* storage.c - how a dataset is stored: layout, filters, and whether its bytes can be taken as they lie. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "io/inspect.h"
#include "io/rows.h"

typedef struct filter {
    H5Z_filter_t id;
    char name[80];
    size_t parameters;
    unsigned first;
} filter;

static int get_filter(hid_t plist, unsigned index, filter *out)
{
    unsigned values[16] = {0}, flags;
    size_t count = 16;

    out->name[0] = '\0';
    out->id = H5Pget_filter2(plist, index, &flags, &count, values, sizeof out->name, out->name, NULL);
    out->name[sizeof out->name - 1] = '\0';
    out->parameters = count;
    out->first = values[0];
    return out->id >= 0;
}

static void filter_words(const filter *it, char *text, size_t room)
{
    static const struct {
        H5Z_filter_t id;
        const char *word;
    } known[] = {{H5Z_FILTER_SHUFFLE, "shuffle"}, {H5Z_FILTER_FLETCHER32, "fletcher32"}, {H5Z_FILTER_SZIP, "szip"},
                 {H5Z_FILTER_NBIT, "nbit"},       {H5Z_FILTER_SCALEOFFSET, "scaleoffset"}};

    if (it->id == H5Z_FILTER_DEFLATE) {
        snprintf(text, room, "deflate %u", it->first);
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].id == it->id) {
            snprintf(text, room, "%s", known[i].word);
            return;
        }
    }
    snprintf(text, room, "%s (filter %d%s)", it->name[0] ? it->name : "unnamed", (int)it->id,
             H5Zfilter_avail(it->id) > 0 ? "" : ", not installed");
}

static void chunk_words(hid_t plist, char *text)
{
    hsize_t chunk[H5S_MAX_RANK];
    int rank = H5Pget_chunk(plist, H5S_MAX_RANK, chunk), used = snprintf(text, GM_WORDS, "chunked ");

    for (int d = 0; d < rank && used < GM_WORDS; d++)
        used += snprintf(text + used, (size_t)(GM_WORDS - used), "%s%" PRIu64, d ? "x" : "", (uint64_t)chunk[d]);
    for (int i = 0; i < H5Pget_nfilters(plist) && used < GM_WORDS; i++) {
        filter it;

        if (!get_filter(plist, (unsigned)i, &it))
            break;
        used += snprintf(text + used, (size_t)(GM_WORDS - used), ", ");
        if (used < GM_WORDS) {
            filter_words(&it, text + used, (size_t)(GM_WORDS - used));
            used += (int)strlen(text + used);
        }
    }
}

char *gm_inspect_storage_words(hid_t set, char *text)
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
    if (plist >= 0)
        H5Pclose(plist);
    return text;
}

/* Layout to ours; 0 when there is none. */
static int take_layout(hid_t plist, gm_dataset *record)
{
    static const struct {
        H5D_layout_t theirs;
        gm_layout ours;
    } layouts[] = {{H5D_COMPACT, GM_COMPACT}, {H5D_CONTIGUOUS, GM_CONTIGUOUS}, {H5D_CHUNKED, GM_CHUNKED}, {H5D_VIRTUAL, GM_VIRTUAL}};
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

int gm_inspect_filters(hid_t plist, const char *title, int *count)
{
    *count = H5Pget_nfilters(plist);
    for (int i = 0; i < *count; i++) {
        filter it;

        if (!get_filter(plist, (unsigned)i, &it))
            return gm_fail(GM_EINPUT, "%s: its filters cannot be read, the file is damaged", title);
        if (H5Zfilter_avail(it.id) <= 0)
            return gm_fail(GM_EINPUT, "%s: needs the HDF5 filter %d (%s), which is not installed: see HDF5_PLUGIN_PATH", title, (int)it.id,
                           it.name[0] ? it.name : "unnamed");
    }
    return GM_OK;
}

/* Is the dataset's file read by the plain POSIX driver? (An external link may have brought another one.) */
static int is_posix(hid_t set)
{
    hid_t file = H5Iget_file_id(set), access = file >= 0 ? H5Fget_access_plist(file) : H5I_INVALID_HID;
    int posix = access >= 0 && H5Pget_driver(access) == H5FD_SEC2;

    if (access >= 0)
        H5Pclose(access);
    if (file >= 0)
        H5Fclose(file);
    return posix;
}

int gm_inspect_pipeline(hid_t plist, const gm_dataset *record, gm_pipeline *pipeline)
{
    static const struct {
        H5Z_filter_t id;
        gm_filter_kind kind;
        size_t parameters;
    } known[] = {{H5Z_FILTER_DEFLATE, GM_FILTER_DEFLATE, 1},
                 {H5Z_FILTER_SHUFFLE, GM_FILTER_SHUFFLE, 1},
                 {H5Z_FILTER_FLETCHER32, GM_FILTER_FLETCHER32, 0}};
    int64_t bytes = (int64_t)gm_dtype_size(record->type);
    int deflates = 0;

    *pipeline = (gm_pipeline){.count = H5Pget_nfilters(plist)};
    for (int d = 0; d < record->rank; d++)
        bytes = gm_mul_sat(bytes, record->chunk[d]);
    pipeline->bytes = (size_t)bytes;
    if (pipeline->count < 0 || pipeline->count > GM_FILTERS_MAX || bytes > UINT32_MAX)
        return 0;
    for (int i = 0; i < pipeline->count; i++) {
        size_t k = 0;
        filter it;

        if (!get_filter(plist, (unsigned)i, &it))
            return 0;
        while (k < sizeof known / sizeof known[0] && known[k].id != it.id)
            k++;
        if (k == sizeof known / sizeof known[0] || it.parameters != known[k].parameters)
            return 0;
        pipeline->filter[i] = (gm_filter){known[k].kind, gm_max(it.first, 1)};
        deflates += it.id == H5Z_FILTER_DEFLATE;
    }
    return deflates <= 1;
}

/* The file that holds the data: after external links, not the one that the user named. */
static int take_data_file(hid_t set, gm_dataset *record)
{
    ssize_t length = H5Fget_name(set, record->data_file, GM_PATH_MAX);

    if (length > 0 && length < GM_PATH_MAX)
        return 1;
    record->data_file[0] = '\0';
    return 0;
}

static void find_raw_chunks(hid_t set, hid_t plist, gm_dataset *record)
{
    gm_pipeline pipeline;

    record->raw_chunks = record->layout == GM_CHUNKED && is_posix(set) && gm_inspect_pipeline(plist, record, &pipeline)
                         && take_data_file(set, record);
}

static void find_direct(hid_t set, hid_t plist, gm_dataset *record)
{
    H5D_space_status_t allocated = H5D_SPACE_STATUS_ERROR;
    haddr_t offset;

    if (record->layout != GM_CONTIGUOUS || H5Pget_external_count(plist) > 0 || !is_posix(set))
        return;
    /* A place for data that were never written is undefined, but with a user block that is added to it and looks like a place. */
    if (H5Dget_storage_size(set) == 0 || H5Dget_space_status(set, &allocated) < 0 || allocated != H5D_SPACE_STATUS_ALLOCATED)
        return;
    offset = H5Dget_offset(set); /* with the user block */
    record->direct = offset != HADDR_UNDEF && offset <= INT64_MAX && take_data_file(set, record);
    if (record->direct)
        record->offset = (int64_t)offset;
}

int gm_inspect_storage(hid_t set, int exact, const char *title, gm_dataset *record)
{
    hid_t plist = H5Dget_create_plist(set);
    int status = GM_OK;

    if (plist < 0 || !take_layout(plist, record))
        status = gm_fail(GM_EINPUT, "%s: is stored in a layout that is not known", title);
    if (!status)
        status = gm_inspect_filters(plist, title, &record->filters);
    if (!status && record->layout == GM_VIRTUAL)
        status = gm_inspect_parts(set, title, NULL, NULL);
    if (!status && record->layout == GM_CONTIGUOUS && H5Pget_external_count(plist) > 0)
        status = gm_inspect_external(set, plist, title);
    if (!status && exact) {
        find_direct(set, plist, record);
        find_raw_chunks(set, plist, record);
    }
    if (!status && exact && record->layout == GM_VIRTUAL)
        status = gm_rows_count(set, title, record, &record->row_runs);
    if (plist >= 0)
        H5Pclose(plist);
    return status;
}
