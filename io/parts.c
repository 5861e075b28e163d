/* parts.c - datasets whose elements lie in other files, virtual ones and those with external storage: is all of it there? */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/inspect.h"

enum { DEPTH_MAX = 8 }; /* of virtual datasets made of virtual datasets */

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

/* One mapping of a virtual dataset: where its elements come from, and go to. */
typedef struct mapping {
    char file[GM_PATH_MAX], name[GM_NAME_MAX];
    hid_t from, to; /* selections in the part and in the virtual dataset */
} mapping;

static int has_whole(hid_t space, hid_t to)
{
    hssize_t taken = H5Sget_select_npoints(to);

    return taken < 0 || taken <= H5Sget_simple_extent_npoints(space);
}

static int has_bounds(hid_t space, hid_t from)
{
    hsize_t dims[H5S_MAX_RANK], first[H5S_MAX_RANK], last[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, NULL), enough = 1;

    if (H5Sget_select_bounds(from, first, last) < 0) /* unlimited: as much as there is */
        return 1;
    for (int d = 0; d < rank; d++)
        enough = enough && (last[d] < dims[d] || last[d] >= H5S_UNLIMITED - 1);
    return enough;
}

/* Does the part have the elements that are taken from it? A selection of everything is kept without a shape. */
static int is_large_enough(hid_t set, const mapping *map)
{
    hid_t space = H5Dget_space(set);
    int enough = space >= 0;

    if (enough && H5Sget_select_type(map->from) == H5S_SEL_ALL)
        enough = has_whole(space, map->to);
    else if (enough && H5Sget_simple_extent_ndims(map->from) == H5Sget_simple_extent_ndims(space))
        enough = has_bounds(space, map->from);
    if (space >= 0)
        H5Sclose(space);
    return enough;
}

/* What goes through the parts: the dataset's name for messages, and who wants to see their files, if anybody does. */
typedef struct walk {
    const char *title;
    gm_inspect_visit *visit;
    void *context;
} walk;

static int check_parts(hid_t set, const walk *w, int depth);

/* Are the filters of a part and the files of its external storage there? */
static int check_storage(hid_t set, const char *path, const mapping *map, const walk *w)
{
    char title[2 * GM_PATH_MAX + GM_NAME_MAX + 16];
    hid_t plist = H5Dget_create_plist(set);
    int filters, status;

    snprintf(title, sizeof title, "%s: its part %s:%s", w->title, path, map->name);
    status = plist < 0 ? gm_fail(GM_EINPUT, "%s: cannot be read, the file is damaged", title) : gm_inspect_filters(plist, title, &filters);
    if (!status)
        status = gm_inspect_external(set, plist, title);
    if (plist >= 0)
        H5Pclose(plist);
    return status;
}

/* A part in an open file. */
static int check_part(hid_t file, const char *path, const mapping *map, const walk *w, int depth)
{
    hid_t set = H5Dopen2(file, map->name, H5P_DEFAULT);
    int status = GM_OK;

    if (set < 0)
        return gm_fail(GM_EINPUT, "%s: its part %s:%s is missing", w->title, path, map->name);
    if (!is_large_enough(set, map))
        status = gm_fail(GM_EINPUT, "%s: its part %s:%s is smaller than what is taken from it", w->title, path, map->name);
    if (!status)
        status = check_storage(set, path, map, w);
    if (!status)
        status = check_parts(set, w, depth + 1);
    H5Dclose(set);
    return status;
}

/* The file of a part cannot be opened: its message follows the name that the user gave. */
static int fail_part(const walk *w)
{
    gm_error error;

    gm_error_get(&error);
    gm_error_clear();
    return gm_fail(error.code, "%s: its part %s", w->title, error.text);
}

/* The part of a mapping of a virtual dataset. */
static int check_source(hid_t set, const mapping *map, const walk *w, int depth)
{
    char master[GM_PATH_MAX], path[GM_PATH_MAX];
    hid_t source = H5I_INVALID_HID;
    ssize_t length = H5Fget_name(set, master, sizeof master);
    int status = GM_OK;

    if (length < 0 || length >= GM_PATH_MAX)
        return gm_fail(GM_EINPUT, "%s: the folder of its parts cannot be found out", w->title);
    if (strcmp(map->file, ".") == 0) {
        strcpy(path, master);
        source = H5Iget_file_id(set);
    } else if (locate(master, map->file, path)) {
        status = gm_h5_open(path, &source);
        if (status)
            return fail_part(w);
    }
    if (!status && source < 0)
        status = gm_fail(GM_EINPUT, "%s: its part %s:%s is missing: no such file", w->title, map->file, map->name);
    if (!status && w->visit)
        status = w->visit(w->context, path);
    if (!status)
        status = check_part(source, path, map, w, depth);
    if (source >= 0)
        H5Fclose(source);
    return status;
}

static int check_mapping(hid_t set, hid_t plist, size_t i, const walk *w, int depth)
{
    mapping map;
    ssize_t file_length = H5Pget_virtual_filename(plist, i, map.file, sizeof map.file);
    ssize_t name_length = H5Pget_virtual_dsetname(plist, i, map.name, sizeof map.name);
    int status = GM_OK;

    map.from = H5Pget_virtual_srcspace(plist, i);
    map.to = H5Pget_virtual_vspace(plist, i);
    if (file_length < 0 || file_length >= GM_PATH_MAX || name_length < 0 || name_length >= GM_NAME_MAX || map.from < 0 || map.to < 0)
        status = gm_fail(GM_EINPUT, "%s: part %zu cannot be found out, or its name is too long", w->title, i);
    else if (unescape(map.file) || unescape(map.name))
        status = gm_fail(GM_EINPUT, "%s: its parts are named by a pattern (%s:%s), which is not supported yet", w->title, map.file, map.name);
    if (!status)
        status = check_source(set, &map, w, depth);
    if (map.to >= 0)
        H5Sclose(map.to);
    if (map.from >= 0)
        H5Sclose(map.from);
    return status;
}

static int check_parts(hid_t set, const walk *w, int depth)
{
    hid_t plist = H5Dget_create_plist(set);
    size_t count = 0;
    int status = GM_OK;

    if (plist < 0)
        return gm_fail(GM_EINPUT, "%s: cannot be read, the file is damaged", w->title);
    if (H5Pget_layout(plist) == H5D_VIRTUAL && H5Pget_virtual_count(plist, &count) < 0)
        status = gm_fail(GM_EINPUT, "%s: its parts cannot be found out, the file is damaged", w->title);
    if (!status && count && depth > DEPTH_MAX)
        status = gm_fail(GM_EINPUT, "%s: is made of virtual datasets more than %d deep", w->title, DEPTH_MAX);
    for (size_t i = 0; i < count && !status; i++)
        status = check_mapping(set, plist, i, w, depth);
    H5Pclose(plist);
    return status;
}

int gm_inspect_parts(hid_t set, const char *title, gm_inspect_visit *visit, void *context)
{
    return check_parts(set, &(walk){title, visit, context}, 0);
}

/* The folder that libhdf5 finds external storage in: the working folder, unless the user set another one. Returns whether it is known. */
static int find_storage(hid_t set, const char *name, char *path)
{
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX"), *origin = "${ORIGIN}";
    char master[GM_PATH_MAX], beside[GM_PATH_MAX];

    if (name[0] == '/' || !prefix || !prefix[0])
        return snprintf(path, GM_PATH_MAX, "%s", name) < GM_PATH_MAX;
    if (strncmp(prefix, origin, strlen(origin)) != 0)
        return snprintf(path, GM_PATH_MAX, "%s/%s", prefix, name) < GM_PATH_MAX;
    if (H5Fget_name(set, master, sizeof master) < 0)
        return 0;
    return snprintf(beside, sizeof beside, "%s/%s", prefix + strlen(origin), name) < GM_PATH_MAX
           && snprintf(path, GM_PATH_MAX, "%s%s", dirname(master), beside) < GM_PATH_MAX;
}

/* Of all elements, in the file. */
static int64_t stored_bytes(hid_t set)
{
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    int64_t bytes = type >= 0 && space >= 0 ? gm_mul_sat((int64_t)H5Tget_size(type), H5Sget_simple_extent_npoints(space)) : 0;

    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return bytes;
}

int gm_inspect_external(hid_t set, hid_t plist, const char *title)
{
    int count = H5Pget_layout(plist) == H5D_CONTIGUOUS ? H5Pget_external_count(plist) : 0;
    int64_t bytes = count > 0 ? stored_bytes(set) : 0;

    for (int i = 0; i < count && bytes > 0; i++) {
        char name[GM_PATH_MAX] = "", path[GM_PATH_MAX];
        hsize_t size;
        off_t offset;
        struct stat st;
        int64_t part, end;

        if (H5Pget_external(plist, (unsigned)i, sizeof name - 1, name, &offset, &size) < 0 || !find_storage(set, name, path))
            return gm_fail(GM_EINPUT, "%s: file %d of its external storage cannot be found out", title, i);
        part = size < (hsize_t)bytes ? (int64_t)size : bytes;
        end = gm_add_sat(offset, part);
        if (stat(path, &st))
            return gm_fail(GM_EINPUT, "%s: its external storage %s: %s", title, path, strerror(errno));
        if (st.st_size < end)
            return gm_fail(GM_EINPUT, "%s: its external storage %s ends at byte %" PRId64 ", expected %" PRId64 ": it is cut", title, path,
                           (int64_t)st.st_size, end);
        bytes -= part;
    }
    return GM_OK;
}
