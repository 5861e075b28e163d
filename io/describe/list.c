/* list.c - lists the datasets of a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/describe/describe.h"
#include "io/describe/names.h"
#include "io/describe/storage.h"
#include "io/type.h"
#include "io/worker.h"

/* An entry's words and numbers, as far as they can be found out. */
typedef struct words {
    char type[GM_H5_TEXT], storage[GM_H5_TEXT];
    int64_t dims[H5S_MAX_RANK];
} words;

static void fill_shape(hid_t set, gm_listing *entry, words *room)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = space >= 0 ? H5Sget_simple_extent_dims(space, dims, NULL) : 0;
    if (space >= 0 && H5Sget_simple_extent_type(space) == H5S_NULL) {
        strcpy(room->storage, "no elements (null dataspace)");
        entry->numeric = 0;
    }
    for (int d = 0; d < rank; d++)
        room->dims[d] = (int64_t)dims[d];
    entry->rank = rank > 0 ? rank : 0;
    gm_h5_close(space);
}

static void fill_entry(hid_t file, const char *name, gm_listing *entry, words *room)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = set >= 0 ? H5Dget_type(set) : H5I_INVALID_HID;
    int exact, swap;
    gm_dtype dtype;
    *entry = (gm_listing){.name = name, .type = room->type, .dims = room->dims, .storage = room->storage};
    strcpy(room->type, "cannot be read");
    if (type >= 0) {
        gm_type_format(type, room->type);
        entry->numeric = gm_type_find(type, &dtype, &exact, &swap);
        gm_storage_format(set, room->storage);
        fill_shape(set, entry, room);
    } else {
        gm_h5_error(room->storage);
    }
    gm_h5_close(type);
    gm_h5_close(set);
}

/* An entry as the worker replies it: this, then its name, type and storage, each with its final NUL. */
typedef struct line {
    int rank, numeric;
    int64_t dims[H5S_MAX_RANK];
} line;

static int reply_entry(const gm_listing *entry, gm_reply *reply)
{
    line it = {.rank = entry->rank, .numeric = entry->numeric};
    memcpy(it.dims, entry->dims, (size_t)entry->rank * sizeof *it.dims);
    int status = gm_reply_add(reply, &it, sizeof it);
    if (!status)
        status = gm_reply_add(reply, entry->name, strlen(entry->name) + 1);
    if (!status)
        status = gm_reply_add(reply, entry->type, strlen(entry->type) + 1);
    return status ? status : gm_reply_add(reply, entry->storage, strlen(entry->storage) + 1);
}

/* Runs in the worker; the argument is the name of the file. */
static int list_there(const void *argument, size_t bytes, gm_reply *reply)
{
    const char *path = argument;
    gm_names names = {0};
    hid_t file = H5I_INVALID_HID;
    words *room = malloc(sizeof *room);
    (void)bytes;
    if (!room)
        return gm_fail(GM_EDEVICE, "%s: no memory to list it", path);
    int status = gm_h5_open(path, &file);
    if (!status)
        status = gm_names_find(file, path, &names);
    for (int i = 0; i < names.count && !status; i++) {
        gm_listing entry;
        fill_entry(file, names.name[i], &entry, room);
        status = reply_entry(&entry, reply);
        gm_worker_progress();
    }
    gm_h5_close(file);
    gm_names_free(&names);
    free(room);
    return status;
}

int gm_list(const char *path, gm_listing_visit *visit, void *context)
{
    void *found;
    size_t bytes;
    int status = gm_worker_run(path, list_there, path, strlen(path) + 1, &found, &bytes);
    const char *at = found, *end = at ? at + bytes : at;
    while (at < end && !status) {
        gm_listing entry;
        line it;
        memcpy(&it, at, sizeof it);
        entry = (gm_listing){.rank = it.rank, .dims = it.dims, .numeric = it.numeric};
        entry.name = at + sizeof it;
        entry.type = entry.name + strlen(entry.name) + 1;
        entry.storage = entry.type + strlen(entry.type) + 1;
        at = entry.storage + strlen(entry.storage) + 1;
        status = visit(context, &entry);
    }
    free(found);
    return status;
}

void gm_hdf5_start(void)
{
    gm_h5_lock();
    H5open();
    gm_h5_unlock();
}

char *gm_hdf5_version(char *text)
{
    unsigned major = 0, minor = 0, release = 0;
    gm_h5_lock();
    H5get_libversion(&major, &minor, &release);
    gm_h5_unlock();
    snprintf(text, 32, "%u.%u.%u", major, minor, release);
    return text;
}
