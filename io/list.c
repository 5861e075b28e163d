/* list.c - what a file holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/describe.h"
#include "io/inspect.h"

/* A link may lead to nothing; then it is listed too, so that somebody sees it. */
static int is_listed(hid_t group, const char *name, const H5L_info_t *link)
{
    H5O_info_t info;

    if (link->type != H5L_TYPE_HARD && H5Oexists_by_name(group, name, H5P_DEFAULT) <= 0)
        return 1;
    return H5Oget_info_by_name(group, name, &info, H5P_DEFAULT) < 0 || info.type == H5O_TYPE_DATASET;
}

static herr_t take_name(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    gm_names *names = context;
    size_t bytes = strlen(name) + 2;

    if (!is_listed(group, name, link))
        return 0;
    if (names->count == names->room) {
        int room = names->room ? 2 * names->room : 64;
        char **more = realloc(names->name, (size_t)room * sizeof *more);

        if (!more)
            return -1;
        names->name = more;
        names->room = room;
    }
    names->name[names->count] = malloc(bytes);
    if (!names->name[names->count])
        return -1;
    snprintf(names->name[names->count++], bytes, "/%s", name);
    return 0;
}

int gm_inspect_names(hid_t file, const char *title, gm_names *names)
{
    char reason[GM_H5_TEXT];

    if (H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, take_name, names) < 0)
        return gm_fail(GM_EINPUT, "%s: what it holds cannot be listed, the file is damaged: %s", title, gm_h5_error(reason));
    return GM_OK;
}

void gm_names_free(gm_names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    memset(names, 0, sizeof *names);
}

char *gm_names_words(const gm_names *names, const char *under, char *text)
{
    enum { SHOWN = 10 };
    int matches = 0, shown = 0, used = 0;

    text[0] = '\0';
    for (int i = 0; i < names->count; i++) {
        int length = (int)strlen(names->name[i]);

        if (strncmp(names->name[i], under, strlen(under)) != 0)
            continue;
        if (matches++ >= SHOWN || used + length + 48 > GM_WORDS)
            continue;
        used += snprintf(text + used, (size_t)(GM_WORDS - used), "%s%s", shown++ ? ", " : "; it holds ", names->name[i]);
    }
    if (matches == 0)
        strcpy(text, "; it holds no dataset");
    else if (matches > shown)
        snprintf(text + used, (size_t)(GM_WORDS - used), "%s%d more", shown ? " and " : "; it holds ", matches - shown);
    return text;
}

/* An entry's words and numbers, as far as they can be found out. */
typedef struct words {
    char type[GM_WORDS], storage[GM_WORDS];
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
    if (space >= 0)
        H5Sclose(space);
}

static void fill_entry(hid_t file, const char *name, gm_listing *entry, words *room)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = set >= 0 ? H5Dget_type(set) : H5I_INVALID_HID;
    int exact, swap;
    gm_dtype dtype;

    *entry = (gm_listing){.name = name, .type = room->type, .dims = room->dims, .storage = room->storage};
    strcpy(room->type, "cannot be read");
    if (type >= 0) {
        gm_inspect_type_words(type, room->type);
        entry->numeric = gm_inspect_type(type, &dtype, &exact, &swap);
        gm_inspect_storage_words(set, room->storage);
        fill_shape(set, entry, room);
    } else {
        gm_h5_error(room->storage);
    }
    if (type >= 0)
        H5Tclose(type);
    if (set >= 0)
        H5Dclose(set);
}

int gm_list(const char *path, gm_listing_visit *visit, void *context)
{
    gm_names names = {0};
    hid_t file = H5I_INVALID_HID;
    words *room = malloc(sizeof *room);
    int status;

    if (!room)
        return gm_fail(GM_EDEVICE, "%s: no memory to list it", path);
    gm_h5_lock();
    status = gm_h5_open(path, &file);
    if (!status)
        status = gm_inspect_names(file, path, &names);
    for (int i = 0; i < names.count && !status; i++) {
        gm_listing entry;

        fill_entry(file, names.name[i], &entry, room);
        gm_h5_unlock(); /* the visitor may use this room */
        status = visit(context, &entry);
        gm_h5_lock();
    }
    if (file >= 0)
        H5Fclose(file);
    gm_h5_unlock();
    gm_names_free(&names);
    free(room);
    return status;
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
