/* describe.c - from a name on the command line to a record. */
#include "io/describe/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "io/describe/names.h"
#include "io/describe/select.h"
#include "io/describe/sources_describe.h"
#include "io/describe/storage.h"
#include "io/type.h"
#include "io/worker.h"

/* The datasets of a file under a name, for a message; "" when they cannot be listed. */
static char *holdings(hid_t file, const char *path, const char *under, char *text)
{
    gm_names names = {0};
    if (gm_names_find(file, path, &names) == GM_OK)
        gm_names_format(&names, under, text);
    else
        text[0] = '\0';
    gm_names_free(&names);
    return text;
}

/* Is there a dataset with numbers of that name? *fileno and *address get its identity, for it may have several names.
 */
static int is_numeric(hid_t file, const char *name, unsigned long *fileno, haddr_t *address)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = set >= 0 ? H5Dget_type(set) : H5I_INVALID_HID;
    H5O_info_t info;
    gm_dtype dtype;
    int exact, swap;
    int numeric = type >= 0 && gm_type_find(type, &dtype, &exact, &swap) && H5Oget_info(set, &info) >= 0;
    if (numeric) {
        *fileno = info.fileno;
        *address = info.addr;
    }
    gm_h5_close(type);
    gm_h5_close(set);
    return numeric;
}

/* The only dataset with numbers of a file, to record->name. */
static int find_only(hid_t file, const gm_names *names, gm_dataset *record)
{
    char held[GM_H5_TEXT];
    unsigned long fileno, first_fileno = 0;
    haddr_t address, first_address = 0;
    const char *found = NULL;
    int others = 0;
    gm_names numeric = {.name = calloc((size_t)names->count + 1, sizeof *numeric.name)}; /* lent */
    if (!numeric.name)
        return gm_fail(GM_EDEVICE, "%s: no memory for the names of its datasets", record->file);
    for (int i = 0; i < names->count; i++) {
        if (!is_numeric(file, names->name[i], &fileno, &address))
            continue;
        numeric.name[numeric.count++] = names->name[i];
        if (!found) {
            found = names->name[i];
            first_fileno = fileno;
            first_address = address;
        }
        others += fileno != first_fileno || address != first_address;
    }
    if (others)
        gm_fail(GM_EINPUT, "%s: several numeric datasets, expected FILE:DATASET to name one%s", record->file,
                gm_names_format(&numeric, "/", held));
    free(numeric.name);
    if (others)
        return GM_EINPUT;
    if (!found) /* datasets of other kinds tell what the file is */
        return gm_fail(GM_EINPUT, "%s: no numeric dataset%s", record->file, gm_names_format(names, "/", held));
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
    status = gm_names_find(file, record->file, &names);
    if (!status)
        status = find_only(file, &names, record);
    gm_names_free(&names);
    return status;
}

/* Why a name leads to no object. */
static int fail_missing(hid_t file, const gm_dataset *record, const char *title)
{
    char held[GM_H5_TEXT], reason[GM_H5_TEXT];
    H5L_info_t link;
    gm_h5_error(reason);
    if (H5Lget_info(file, record->name, &link, H5P_DEFAULT) < 0)
        return gm_fail(GM_EINPUT, "%s: no such dataset%s", title, holdings(file, record->file, "/", held));
    if (link.type == H5L_TYPE_HARD)
        return gm_fail(GM_EINPUT, "%s: cannot be opened, the file is damaged, or of a newer HDF5 than this program: %s",
                       title, reason);
    return gm_fail(GM_EINPUT, "%s: is a link to a dataset that is missing: %s", title, reason);
}

static int open_dataset(hid_t file, const gm_dataset *record, const char *title, hid_t *set)
{
    char held[GM_H5_TEXT], under[GM_NAME_MAX + 1];
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

static int read_shape(hid_t set, const char *title, gm_dataset *record)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int status = GM_OK;
    if (space < 0 || (record->rank = H5Sget_simple_extent_dims(space, dims, NULL)) < 0)
        status = gm_fail(GM_EINPUT, "%s: its shape cannot be read, the file is damaged", title);
    else if (H5Sget_simple_extent_type(space) == H5S_NULL)
        status = gm_fail(GM_EINPUT, "%s: has no elements (a null dataspace), expected numbers", title);
    gm_h5_close(space);
    for (int d = 0; d < record->rank && !status; d++) {
        record->dims[d] = (int64_t)dims[d];
        if (dims[d] > INT64_MAX)
            status = gm_fail(GM_EINPUT, "%s: dimension %d has more than 2^63 elements", title, d);
    }
    return status;
}

static int read_type(hid_t set, const char *title, gm_dataset *record, int *exact)
{
    char words[GM_H5_TEXT];
    hid_t type = H5Dget_type(set);
    int status = GM_OK;
    if (type < 0)
        return gm_fail(GM_EINPUT, "%s: its type cannot be read, the file is damaged", title);
    if (!gm_type_find(type, &record->type, exact, &record->swap))
        status = gm_fail(GM_EINPUT, "%s: elements are of type %s, expected integers or floats of up to 64 bits", title,
                         gm_type_format(type, words));
    H5Tclose(type);
    if (status)
        return status;
    if (gm_mul_sat((int64_t)gm_dtype_size(record->type), gm_product_sat(record->dims, record->rank)) == INT64_MAX)
        return gm_fail(GM_EINPUT, "%s: has more than 2^63 bytes", title);
    return GM_OK;
}

/* Under the lock. The record goes to the reply, and then the mappings of a virtual dataset: to open one of many
 * mappings again takes seconds. */
static int describe(hid_t file, gm_dataset *record, gm_reply *reply)
{
    char title[GM_PATH_MAX];
    hid_t set;
    int exact = 0, status;
    gm_dataset_title(record, title);
    status = open_dataset(file, record, title, &set);
    if (!status)
        status = read_shape(set, title, record);
    if (!status)
        status = read_type(set, title, record, &exact);
    if (!status)
        status = gm_storage_find(set, exact, title, record);
    if (!status)
        status = gm_select(record, record->selected);
    if (!status)
        status = gm_reply_add(reply, record, sizeof *record);
    if (!status && record->layout == GM_VIRTUAL)
        status = gm_mappings_put(set, record->type, title, reply);
    gm_h5_close(set);
    return status;
}

/* Which files they are; the named one was looked at before it was opened. */
static int identify(const gm_identity *identity, const char *title, gm_dataset *record)
{
    record->identity = *identity;
    record->device = identity->device;
    record->inode = identity->inode;
    if (strcmp(record->data_file, record->file) == 0)
        record->data_identity = *identity;
    else if (record->data_file[0]) {
        int failed = gm_identity_take(record->data_file, &record->data_identity);
        if (failed)
            return gm_fail(GM_EINPUT, "%s: %s: %s", title, record->data_file, strerror(failed));
    }
    return GM_OK;
}

/* "/grid[0]": the name of a dataset if there is one, and no dataset "/grid". */
static void take_whole_name(hid_t file, gm_dataset *record)
{
    char whole[GM_NAME_MAX];
    int length = snprintf(whole, sizeof whole, "%s%s", record->name, record->selected);
    if (!record->selected[0] || length >= (int)sizeof whole || H5Lexists(file, record->name, H5P_DEFAULT) > 0 ||
        H5Lexists(file, whole, H5P_DEFAULT) <= 0)
        return;
    strcpy(record->name, whole);
    record->selected[0] = '\0';
}

/* A request to the worker: a record with its names, the preferred one ("": none). It replies the record, and the
 * mappings of a virtual one. */
typedef struct request {
    gm_dataset record;
    char preferred[GM_NAME_MAX];
} request;

/* Runs in the worker. */
static int describe_there(const void *argument, size_t bytes, gm_reply *reply)
{
    const request *r = argument;
    gm_dataset *record = malloc(sizeof *record);
    hid_t file = H5I_INVALID_HID;
    (void)bytes;
    if (!record)
        return gm_fail(GM_EDEVICE, "%s: no memory to describe it", r->record.file);
    memcpy(record, &r->record, sizeof *record); /* all of it: it is sent as bytes */
    int status = gm_h5_open(record->file, &file);
    if (!status && record->name[0])
        take_whole_name(file, record);
    else if (!status)
        status = find_default(file, r->preferred[0] ? r->preferred : NULL, record);
    if (!status)
        status = describe(file, record, reply);
    gm_h5_close(file);
    free(record);
    return status;
}

/* *reply begins with the record, and is freed by the caller. */
static int ask(const char *preferred, gm_dataset *record, void **reply, size_t *bytes)
{
    request *r = calloc(1, sizeof *r);
    *reply = NULL;
    if (!r)
        return gm_fail(GM_EDEVICE, "%s: no memory to describe it", record->file);
    memcpy(&r->record, record, sizeof *record);
    snprintf(r->preferred, sizeof r->preferred, "%s", preferred ? preferred : "");
    int status = gm_worker_run(record->file, describe_there, r, sizeof *r, reply, bytes);
    if (!status)
        memcpy(record, *reply, sizeof *record);
    free(r);
    return status;
}

/* Of a virtual dataset, or with external storage. mappings: the rest of the reply. */
static int describe_sources(gm_dataset *record, const char *title, const char *mappings, size_t bytes)
{
    gm_mappings m;
    if (record->layout != GM_VIRTUAL)
        return record->external ? gm_sources_describe(record, title, NULL) : GM_OK;
    int status = gm_mappings_parse(mappings, bytes, title, &m);
    return status ? status : gm_sources_describe(record, title, &m);
}

int gm_describe(const char *text, const char *preferred, gm_dataset *record)
{
    char title[GM_PATH_MAX];
    gm_identity identity;
    void *reply;
    size_t bytes = 0;
    memset(record, 0, sizeof *record);
    int status = gm_name_split(text, record->file, record->name, record->selected);
    if (status)
        return status;
    if (gm_identity_take(record->file, &identity))
        identity = (gm_identity){.host = 0}; /* opening it fails as well, and says why */
    status = ask(preferred, record, &reply, &bytes);
    gm_dataset_title(record, title);
    if (!status)
        status = identify(&identity, title, record);
    if (!status)
        status = describe_sources(record, title, (const char *)reply + sizeof *record, bytes - sizeof *record);
    free(reply);
    return status;
}
