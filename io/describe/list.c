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

/* The words of an entry, as far as they can be found out. */
typedef struct words {
    char type[GM_H5_TEXT], shape[GM_SHAPE_TEXT], storage[GM_H5_TEXT];
} words;

static int fill_shape(hid_t set, gm_listing *entry, words *room)
{
    hsize_t theirs[H5S_MAX_RANK];
    int64_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = space >= 0 ? H5Sget_simple_extent_dims(space, theirs, NULL) : -1;
    for (int d = 0; d < rank; d++)
        dims[d] = (int64_t)theirs[d];
    if (rank >= 0)
        gm_shape_format(rank, dims, room->shape);
    if (rank == 0 && H5Sget_simple_extent_type(space) == H5S_NULL) {
        strcpy(room->shape, "null");
        strcpy(room->storage, "no elements (null dataspace)");
        entry->numeric = 0;
    }
    gm_h5_close(space);
    return rank >= 0;
}

/* Returns 0 where libhdf5 fails: the reason is that of its last call. */
static int fill_words(hid_t set, gm_listing *entry, words *room)
{
    int exact, swap;
    gm_dtype dtype;
    hid_t type = set >= 0 ? H5Dget_type(set) : H5I_INVALID_HID;
    if (type < 0)
        return 0;
    gm_type_format(type, room->type);
    entry->numeric = gm_type_find(type, &dtype, &exact, &swap);
    gm_h5_close(type);
    gm_storage_format(set, room->storage);
    return fill_shape(set, entry, room);
}

static void fill_entry(hid_t file, const char *name, gm_listing *entry, words *room)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    *entry = (gm_listing){.name = name, .type = room->type, .shape = room->shape, .storage = room->storage};
    if (!fill_words(set, entry, room)) {
        gm_h5_error(room->storage);
        strcpy(room->type, "unreadable");
        strcpy(room->shape, "-");
        entry->numeric = 0;
    }
    gm_h5_close(set);
}

/* An entry as the worker replies it: is it numeric?, then its words, each with its final NUL. */
static int reply_entry(const gm_listing *entry, gm_reply *reply)
{
    const char *const words[] = {entry->name, entry->type, entry->shape, entry->storage};
    int status = gm_reply_add(reply, &entry->numeric, sizeof entry->numeric);
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !status; i++)
        status = gm_reply_add(reply, words[i], strlen(words[i]) + 1);
    return status;
}

/* Goes beyond the next word of a reply, and returns it. */
static const char *take_word(const char **at)
{
    const char *word = *at;
    *at += strlen(word) + 1;
    return word;
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
        memcpy(&entry.numeric, at, sizeof entry.numeric);
        at += sizeof entry.numeric;
        entry.name = take_word(&at);
        entry.type = take_word(&at);
        entry.shape = take_word(&at);
        entry.storage = take_word(&at);
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
