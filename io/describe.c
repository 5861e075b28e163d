/* describe.c - a name on the command line to a record. */
#include "io/describe.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "base/status.h"
#include "io/inspect.h"
#include "io/select.h"

/* Gives the title and what the file holds under a name, for a message; an empty list when that cannot be found out. */
static char *holdings(hid_t file, const char *path, const char *under, char *text)
{
    gm_names names = {0};

    if (gm_inspect_names(file, path, &names) == GM_OK)
        gm_names_words(&names, under, text);
    else
        text[0] = '\0';
    gm_names_free(&names);
    return text;
}

/* Is there a dataset with numbers of that name? *fileno and *address get its identity, for it may have several names. */
static int is_numeric(hid_t file, const char *name, unsigned long *fileno, haddr_t *address)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = set >= 0 ? H5Dget_type(set) : H5I_INVALID_HID;
    H5O_info_t info;
    gm_dtype dtype;
    int exact, swap, numeric;

    numeric = type >= 0 && gm_inspect_type(type, &dtype, &exact, &swap) && H5Oget_info(set, &info) >= 0;
    if (numeric) {
        *fileno = info.fileno;
        *address = info.addr;
    }
    if (type >= 0)
        H5Tclose(type);
    if (set >= 0)
        H5Dclose(set);
    return numeric;
}

/* The only dataset with numbers of a file, to record->name. */
static int find_only(hid_t file, const gm_names *names, gm_dataset *record)
{
    char held[GM_WORDS];
    unsigned long fileno, first_fileno = 0;
    haddr_t address, first_address = 0;
    const char *found = NULL;

    for (int i = 0; i < names->count; i++) {
        if (!is_numeric(file, names->name[i], &fileno, &address))
            continue;
        if (found && (fileno != first_fileno || address != first_address))
            return gm_fail(GM_EINPUT, "%s: several numeric datasets, expected FILE:DATASET to name one%s", record->file,
                           gm_names_words(names, "/", held));
        if (!found) {
            found = names->name[i];
            first_fileno = fileno;
            first_address = address;
        }
    }
    if (!found)
        return gm_fail(GM_EINPUT, "%s: no numeric dataset%s", record->file, gm_names_words(names, "/", held));
    if (strlen(found) >= GM_NAME_MAX)
        return gm_fail(GM_EINPUT, "%s: its dataset's name is longer than %d bytes", record->file, GM_NAME_MAX - 1);
    strcpy(record->name, found);
    return GM_OK;
}

static int find_default(hid_t file, const char *preferred, gm_dataset *record)
{
    gm_names names = {0};
    int status = GM_OK;
    hid_t set;

    if (preferred && (set = H5Dopen2(file, preferred, H5P_DEFAULT)) >= 0) {
        H5Dclose(set);
        snprintf(record->name, sizeof record->name, "%s", preferred);
        return GM_OK;
    }
    status = gm_inspect_names(file, record->file, &names);
    if (!status)
        status = find_only(file, &names, record);
    gm_names_free(&names);
    return status;
}

/* Why a name leads to no object. */
static int fail_missing(hid_t file, const gm_dataset *record, const char *title)
{
    char held[GM_WORDS], reason[GM_H5_TEXT];
    H5L_info_t link;

    gm_h5_error(reason);
    if (H5Lget_info(file, record->name, &link, H5P_DEFAULT) < 0)
        return gm_fail(GM_EINPUT, "%s: no such dataset%s", title, holdings(file, record->file, "/", held));
    if (link.type == H5L_TYPE_HARD)
        return gm_fail(GM_EINPUT, "%s: cannot be opened, the file is damaged, or of a newer HDF5 than this program: %s", title, reason);
    return gm_fail(GM_EINPUT, "%s: is a link to a dataset that is missing: %s", title, reason);
}

static int open_dataset(hid_t file, const gm_dataset *record, const char *title, hid_t *set)
{
    char held[GM_WORDS], under[GM_NAME_MAX + 1];
    hid_t object = H5Oopen(file, record->name, H5P_DEFAULT);

    *set = H5I_INVALID_HID;
    if (object < 0)
        return fail_missing(file, record, title);
    if (H5Iget_type(object) == H5I_DATASET) {
        *set = object;
        return GM_OK;
    }
    snprintf(under, sizeof under, "%s%s", record->name, record->name[1] ? "/" : "");
    if (H5Iget_type(object) == H5I_GROUP)
        gm_fail(GM_EINPUT, "%s: is a group, expected a dataset%s", title, holdings(file, record->file, under, held));
    else
        gm_fail(GM_EINPUT, "%s: is a named type, expected a dataset", title);
    H5Oclose(object);
    return GM_EINPUT;
}

static int take_shape(hid_t set, const char *title, gm_dataset *record)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int status = GM_OK;

    if (space < 0 || (record->rank = H5Sget_simple_extent_dims(space, dims, NULL)) < 0)
        status = gm_fail(GM_EINPUT, "%s: its shape cannot be read, the file is damaged", title);
    else if (H5Sget_simple_extent_type(space) == H5S_NULL)
        status = gm_fail(GM_EINPUT, "%s: has no elements (a null dataspace), expected numbers", title);
    if (space >= 0)
        H5Sclose(space);
    for (int d = 0; d < record->rank && !status; d++) {
        record->dims[d] = (int64_t)dims[d];
        if (dims[d] > INT64_MAX)
            status = gm_fail(GM_EINPUT, "%s: dimension %d has more than 2^63 elements", title, d);
    }
    return status;
}

static int take_type(hid_t set, const char *title, gm_dataset *record, int *exact)
{
    char words[GM_WORDS];
    hid_t type = H5Dget_type(set);
    int64_t bytes;
    int status = GM_OK;

    if (type < 0)
        return gm_fail(GM_EINPUT, "%s: its type cannot be read, the file is damaged", title);
    if (!gm_inspect_type(type, &record->type, exact, &record->swap))
        status = gm_fail(GM_EINPUT, "%s: elements are of type %s, expected integers or floats of up to 64 bits", title,
                         gm_inspect_type_words(type, words));
    H5Tclose(type);
    if (status)
        return status;
    bytes = (int64_t)gm_dtype_size(record->type);
    for (int d = 0; d < record->rank; d++) {
        if (record->dims[d] == 0)
            return GM_OK;
        bytes = gm_mul_sat(bytes, record->dims[d]);
    }
    if (bytes == INT64_MAX)
        return gm_fail(GM_EINPUT, "%s: has more than 2^63 bytes", title);
    return GM_OK;
}

static int describe(hid_t file, gm_dataset *record)
{
    char title[GM_PATH_MAX];
    struct stat st;
    hid_t set;
    int exact = 0, status;

    gm_dataset_title(record, title);
    status = open_dataset(file, record, title, &set);
    if (!status)
        status = take_shape(set, title, record);
    if (!status)
        status = take_type(set, title, record, &exact);
    if (!status)
        status = gm_inspect_storage(set, exact, title, record);
    if (!status)
        status = gm_select(record, record->selected);
    if (set >= 0)
        H5Dclose(set);
    if (!status && !record->direct && !record->raw_chunks && !record->row_runs)
        record->swap = 0; /* libhdf5 delivers in this machine's order */
    if (!status && stat(record->file, &st))
        status = gm_fail(GM_EINPUT, "%s: went away", record->file);
    if (!status) {
        record->device = st.st_dev;
        record->inode = st.st_ino;
    }
    return status;
}

int gm_describe(const char *text, const char *preferred, gm_dataset *record)
{
    hid_t file = H5I_INVALID_HID;
    int status;

    memset(record, 0, sizeof *record); /* all of it: it is sent as bytes */
    status = gm_name_split(text, record->file, record->name, record->selected);
    if (status)
        return status;
    gm_h5_lock();
    status = gm_h5_open(record->file, &file);
    if (!status && !record->name[0])
        status = find_default(file, preferred, record);
    if (!status)
        status = describe(file, record);
    if (file >= 0)
        H5Fclose(file);
    gm_h5_unlock();
    return status;
}
