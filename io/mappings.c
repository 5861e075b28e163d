/* mappings.c - going through the mappings of a virtual dataset. */
#include "io/mappings.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

/* Takes "%%" for "%", as libhdf5 does. Returns 1 when there is a block number ("%b") in the name. */
static int unescape(char *name)
{
    char *to = name;

    for (const char *from = name; *from; from++) {
        if (*from == '%' && *++from != '%')
            return 1;
        *to++ = *from;
    }
    *to = '\0';
    return 0;
}

static int try_path(char *path, const char *folder, const char *name)
{
    int length = folder ? snprintf(path, GM_PATH_MAX, "%s/%s", folder, name) : snprintf(path, GM_PATH_MAX, "%s", name);

    return length < GM_PATH_MAX && access(path, F_OK) == 0;
}

static int try_beside(char *path, const char *master, const char *name)
{
    char *copy = strdup(master);
    int found = copy && try_path(path, dirname(copy), name);

    free(copy);
    return found;
}

/* Where libhdf5 looks for a part: beside the virtual dataset's file, then from the working folder, then beside the file itself if that was
 * found through a symbolic link. A missing absolute name is looked for beside, too. Returns whether it was found. */
static int locate(const char *master, const char *name, char *path)
{
    const char *slash = strrchr(name, '/');
    const char *beside = name[0] == '/' ? slash + 1 : name;
    char *real;
    int found;

    if ((name[0] == '/' && try_path(path, NULL, name)) || try_beside(path, master, beside) || try_path(path, NULL, beside))
        return 1;
    real = realpath(master, NULL);
    found = real && try_beside(path, real, beside);
    free(real);
    return found;
}

/* The file that a part lies in, to map->path. */
static int find_file(hid_t set, const char *title, gm_mapping *map)
{
    char master[GM_PATH_MAX];
    ssize_t length = H5Fget_name(set, master, sizeof master);

    if (length < 0 || length >= GM_PATH_MAX)
        return gm_fail(GM_EINPUT, "%s: the folder of its parts cannot be found out", title);
    if (strcmp(map->file, ".") == 0)
        strcpy(map->path, master);
    else if (!locate(master, map->file, map->path))
        map->path[0] = '\0';
    return GM_OK;
}

static int visit_one(hid_t set, hid_t plist, size_t i, const char *title, gm_mapping_visit *visit, void *context)
{
    gm_mapping map;
    ssize_t file_length = H5Pget_virtual_filename(plist, i, map.file, sizeof map.file);
    ssize_t name_length = H5Pget_virtual_dsetname(plist, i, map.name, sizeof map.name);
    int status = GM_OK;

    map.from = H5Pget_virtual_srcspace(plist, i);
    map.to = H5Pget_virtual_vspace(plist, i);
    if (file_length < 0 || file_length >= GM_PATH_MAX || name_length < 0 || name_length >= GM_NAME_MAX || map.from < 0 || map.to < 0)
        status = gm_fail(GM_EINPUT, "%s: part %zu cannot be found out, or its name is too long", title, i);
    else if (unescape(map.file) || unescape(map.name))
        status = gm_fail(GM_EINPUT, "%s: its parts are named by a pattern (%s:%s), which is not supported yet", title, map.file, map.name);
    if (!status)
        status = find_file(set, title, &map);
    if (!status)
        status = visit(context, set, &map);
    if (map.to >= 0)
        H5Sclose(map.to);
    if (map.from >= 0)
        H5Sclose(map.from);
    return status;
}

int gm_mappings_visit(hid_t set, const char *title, gm_mapping_visit *visit, void *context)
{
    hid_t plist = H5Dget_create_plist(set);
    size_t count = 0;
    int status = GM_OK;

    if (plist < 0)
        return gm_fail(GM_EINPUT, "%s: cannot be read, the file is damaged", title);
    if (H5Pget_layout(plist) == H5D_VIRTUAL && H5Pget_virtual_count(plist, &count) < 0)
        status = gm_fail(GM_EINPUT, "%s: its parts cannot be found out, the file is damaged", title);
    for (size_t i = 0; i < count && !status; i++)
        status = visit_one(set, plist, i, title, visit, context);
    H5Pclose(plist);
    return status;
}

int gm_mapping_open(hid_t set, const gm_mapping *map, const char *title, hid_t *file)
{
    gm_error error;

    *file = H5I_INVALID_HID;
    if (strcmp(map->file, ".") == 0)
        *file = H5Iget_file_id(set);
    else if (map->path[0] && gm_h5_open(map->path, file)) { /* its message follows the name that the user gave */
        gm_error_get(&error);
        gm_error_clear();
        return gm_fail(error.code, "%s: its part %s", title, error.text);
    }
    if (*file < 0)
        return gm_fail(GM_EINPUT, "%s: its part %s:%s is missing: no such file", title, map->file, map->name);
    return GM_OK;
}
