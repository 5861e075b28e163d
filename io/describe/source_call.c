/* source_call.c - from the name of a source to what it is. */
#include "io/describe/source_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/describe/external.h"
#include "io/describe/select.h"
#include "io/describe/storage.h"
#include "io/type.h"
#include "io/worker.h"

typedef struct ask {
    int count, is_part;
    gm_dtype type;
    char title[GM_PATH_MAX];
    gm_source_name name[];
} ask;

enum { TITLE = 2 * GM_PATH_MAX + GM_NAME_MAX + 32 };

static int read_shape(hid_t set, const char *title, gm_dataset *record)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int ok = space >= 0 && H5Sget_simple_extent_type(space) != H5S_NULL &&
             (record->rank = H5Sget_simple_extent_dims(space, dims, NULL)) >= 0;
    for (int d = 0; d < record->rank && ok; d++) {
        record->dims[d] = (int64_t)dims[d];
        ok = dims[d] <= INT64_MAX;
    }
    gm_h5_close(space);
    return ok ? GM_OK : gm_fail(GM_EINPUT, "%s: its shape cannot be read, or it has no elements", title);
}

/* Can libhdf5 deliver elements of this type as the type wanted? */
static int converts(hid_t type, gm_dtype wanted)
{
    H5T_cdata_t *data;
    return H5Tfind(type, gm_h5_type(wanted), &data) != NULL;
}

static int read_type(hid_t set, gm_dtype wanted, const char *title, gm_source_found *found)
{
    char words[GM_H5_TEXT];
    hid_t type = H5Dget_type(set);
    int status = GM_OK;
    if (type < 0)
        return gm_fail(GM_EINPUT, "%s: its type cannot be read, the file is damaged", title);
    if (!gm_type_find(type, &found->record.type, &found->exact, &found->record.swap)) {
        found->record.type = wanted;
        found->exact = 0;
    }
    if ((!found->exact || found->record.type != wanted) && !converts(type, wanted))
        status = gm_fail(GM_EINPUT, "%s: its elements are of type %s, expected one that converts to %s", title,
                         gm_type_format(type, words), gm_dtype_name(wanted));
    H5Tclose(type);
    return status;
}

/* Before the data are looked at. */
static int identify(const char *path, const char *title, gm_identity *identity)
{
    int failed = gm_identity_take(path, identity);
    return failed ? gm_fail(GM_EINPUT, "%s: %s: %s", title, path, strerror(failed)) : GM_OK;
}

/* The files of external storage, to the reply. */
static int put_external(hid_t set, int count, const char *title, gm_reply *reply)
{
    hid_t plist = H5Dget_create_plist(set);
    int status = plist < 0 ? gm_fail(GM_EINPUT, "%s: cannot be read, the file is damaged", title) : GM_OK;
    for (int i = 0; i < count && !status; i++) {
        gm_source_external file = {.path = ""};
        int64_t offset, bytes;
        status = gm_external_get(set, plist, i, title, file.path, &offset, &bytes);
        if (!status)
            status = identify(file.path, title, &file.identity);
        if (!status)
            status = gm_reply_add(reply, &file, sizeof file);
    }
    gm_h5_close(plist);
    return status;
}

/* An open dataset. */
static int describe(hid_t set, gm_dtype wanted, const char *title, gm_source_found *found)
{
    gm_dataset *record = &found->record;
    int status = read_shape(set, title, record);
    if (!status)
        status = read_type(set, wanted, title, found);
    if (!status)
        status = gm_storage_find(set, found->exact, title, record);
    if (!status)
        status = gm_select(record, "");
    if (status)
        return status;
    if (!record->data_file[0])
        return gm_fail(GM_EINPUT, "%s: the name of its file cannot be read", title);
    if (strcmp(record->data_file, record->file) == 0)
        record->data_identity = record->identity;
    else
        status = identify(record->data_file, title, &record->data_identity);
    return status;
}

/* The source in a file that is open. */
static int put_source(hid_t file, const gm_source_name *name, const gm_identity *identity, const ask *a,
                      gm_source_found *found, gm_reply *reply)
{
    char title[TITLE];
    hid_t set = H5Dopen2(file, name->name, H5P_DEFAULT);
    if (set < 0)
        return gm_fail(GM_EINPUT, "%s: its part %s:%s is missing", a->title, name->file, name->name);
    memset(found, 0, sizeof *found);
    strcpy(found->record.file, name->file);
    strcpy(found->record.name, name->name);
    found->record.identity = *identity;
    snprintf(title, sizeof title, "%s", a->title);
    if (a->is_part)
        snprintf(title, sizeof title, "%s: its part %s:%s", a->title, name->file, name->name);
    int status = describe(set, a->type, title, found);
    if (!status)
        status = gm_reply_add(reply, found, sizeof *found);
    if (!status)
        status = put_external(set, found->record.external, title, reply);
    H5Dclose(set);
    return status;
}

/* The message of a file that cannot be opened, after the name that the user gave. */
static int open_file(const ask *a, const char *path, hid_t *file)
{
    gm_error error;
    int status = gm_h5_open(path, file);
    if (!status || !a->is_part)
        return status;
    gm_error_get(&error);
    gm_error_clear();
    return gm_fail(error.code, "%s: its part %s", a->title, error.text);
}

static int put_all(const ask *a, gm_source_found *found, gm_reply *reply)
{
    hid_t file = H5I_INVALID_HID;
    gm_identity identity;
    int status = GM_OK;
    for (int i = 0; i < a->count && !status; i++) {
        const char *path = a->name[i].file;
        if (i == 0 || strcmp(path, a->name[i - 1].file) != 0) {
            gm_h5_close(file);
            file = H5I_INVALID_HID;
            if (gm_identity_take(path, &identity))
                identity = (gm_identity){.host = 0}; /* opening it fails as well, and says why */
            status = open_file(a, path, &file);
        }
        if (!status)
            status = put_source(file, &a->name[i], &identity, a, found, reply);
        gm_worker_progress();
    }
    gm_h5_close(file);
    return status;
}

static int call(const void *argument, size_t bytes, gm_reply *reply)
{
    ask *a = malloc(bytes); /* the argument is lost when the reply begins */
    gm_source_found *found = malloc(sizeof *found);
    int status = a && found ? GM_OK : gm_fail(GM_EDEVICE, "no memory to describe the parts of a dataset");
    if (!status) {
        memcpy(a, argument, bytes);
        status = put_all(a, found, reply);
    }
    free(found);
    free(a);
    return status;
}

/* Has the reply what it should? */
static int is_complete(const char *at, const char *end, int count)
{
    int i = 0;
    for (; i < count && end - at >= (ptrdiff_t)sizeof(gm_source_found); i++) {
        const gm_dataset *r = &((const gm_source_found *)(const void *)at)->record;
        at += sizeof(gm_source_found);
        if (r->external < 0 || r->rank < 0 || r->rank > GM_RANK_MAX ||
            (end - at) / (ptrdiff_t)sizeof(gm_source_external) < r->external)
            return 0;
        at += (size_t)r->external * sizeof(gm_source_external);
    }
    return i == count && at == end;
}

int gm_source_call(const gm_source_name *names, int count, gm_dtype type, const char *title, int is_part, void **reply,
                   const char **end)
{
    size_t bytes = sizeof(ask) + (size_t)count * sizeof *names, replied = 0;
    ask *a = calloc(1, bytes);
    *reply = NULL;
    if (!a)
        return gm_fail(GM_EDEVICE, "%s: no memory to describe it", title);
    a->count = count;
    a->is_part = is_part;
    a->type = type;
    snprintf(a->title, sizeof a->title, "%s", title);
    memcpy(a->name, names, (size_t)count * sizeof *names);
    int status = gm_worker_run(title, call, a, bytes, reply, &replied);
    free(a);
    if (!status && !is_complete(*reply, (const char *)*reply + replied, count))
        status = gm_fail(GM_EINPUT, "%s: its parts cannot be read, the file is damaged", title);
    if (!status) {
        *end = (const char *)*reply + replied;
        return GM_OK;
    }
    free(*reply);
    *reply = NULL;
    return status;
}
