/* external.c - the files of a dataset's external storage. */
#include "io/describe/external.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "base/status.h"
#include "io/dataset.h"

/* The folder that libhdf5 finds external storage in: the working folder, unless the user set another one. Returns
 * whether it is known. */
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
    return snprintf(beside, sizeof beside, "%s/%s", prefix + strlen(origin), name) < GM_PATH_MAX &&
           snprintf(path, GM_PATH_MAX, "%s%s", dirname(master), beside) < GM_PATH_MAX;
}

/* Of all elements, in the file. */
static int64_t stored_bytes(hid_t set)
{
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    int64_t bytes = type >= 0 && space >= 0
                        ? gm_mul_sat((int64_t)H5Tget_size(type), H5Sget_simple_extent_npoints(space))
                        : 0;
    gm_h5_close(space);
    gm_h5_close(type);
    return bytes;
}

int gm_external_get(hid_t set, hid_t plist, int i, const char *title, char *path, int64_t *offset, int64_t *bytes)
{
    char name[GM_PATH_MAX] = "";
    hsize_t size;
    off_t at;
    if (H5Pget_external(plist, (unsigned)i, sizeof name - 1, name, &at, &size) < 0 || !find_storage(set, name, path))
        return gm_fail(GM_EINPUT, "%s: file %d of its external storage cannot be located", title, i);
    *offset = at;
    *bytes = size < INT64_MAX ? (int64_t)size : INT64_MAX;
    return GM_OK;
}

int gm_external_check(hid_t set, hid_t plist, const char *title)
{
    int count = H5Pget_layout(plist) == H5D_CONTIGUOUS ? H5Pget_external_count(plist) : 0, status = GM_OK;
    int64_t left = count > 0 ? stored_bytes(set) : 0, offset = 0, bytes = 0;
    for (int i = 0; i < count && left > 0; i++) {
        char path[GM_PATH_MAX];
        struct stat st;
        status = gm_external_get(set, plist, i, title, path, &offset, &bytes);
        if (status)
            return status;
        int64_t part = gm_min(bytes, left), end = gm_add_sat(offset, part);
        if (stat(path, &st))
            return gm_fail(GM_EINPUT, "%s: its external storage %s: %s", title, path, strerror(errno));
        if (!S_ISREG(st.st_mode))
            return gm_fail(GM_EINPUT, "%s: its external storage %s: is not a regular file", title, path);
        if (st.st_size < end)
            return gm_fail(GM_EINPUT,
                           "%s: its external storage %s ends at byte %" PRId64 ", expected %" PRId64
                           ": it is truncated",
                           title, path, (int64_t)st.st_size, end);
        left -= part;
    }
    return GM_OK;
}
