/* parts.c - datasets whose elements lie in other files, virtual ones and those with external storage: is all of it there? */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "base/status.h"
#include "io/inspect.h"
#include "io/mappings.h"

enum { DEPTH_MAX = 8 }; /* of virtual datasets made of virtual datasets */

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
static int is_large_enough(hid_t set, const gm_mapping *map)
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
static int check_storage(hid_t set, const char *path, const gm_mapping *map, const walk *w)
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
static int check_part(hid_t file, const char *path, const gm_mapping *map, const walk *w, int depth)
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

/* A level of virtual datasets made of virtual datasets. */
typedef struct level {
    const walk *walk;
    int depth;
} level;

/* The part of a mapping of a virtual dataset. */
static int check_mapping(void *context, hid_t set, const gm_mapping *map)
{
    const level *l = context;
    const walk *w = l->walk;
    hid_t source;
    int status;

    if (l->depth > DEPTH_MAX)
        return gm_fail(GM_EINPUT, "%s: is made of virtual datasets more than %d deep", w->title, DEPTH_MAX);
    status = gm_mapping_open(set, map, w->title, &source);
    if (!status && w->visit)
        status = w->visit(w->context, map->path);
    if (!status)
        status = check_part(source, map->path, map, w, l->depth);
    if (source >= 0)
        H5Fclose(source);
    return status;
}

static int check_parts(hid_t set, const walk *w, int depth)
{
    return gm_mappings_visit(set, w->title, check_mapping, &(level){w, depth});
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
