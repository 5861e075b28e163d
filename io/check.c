/* check.c - can a name become the output? */
#include "io/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/scratch.h"

char *gm_output_folder(const char *path, char *folder)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 1;

    if (length >= GM_PATH_MAX)
        length = GM_PATH_MAX - 1;
    memcpy(folder, slash ? path : ".", length);
    if (slash == path)
        folder[length++] = '/';
    folder[length] = '\0';
    return folder;
}

/* Inputs are told by what they are, not by their names: links lead to them as well. */
static int check_not_input(const char *file, const gm_dataset *inputs, int count)
{
    struct stat st, data;

    if (stat(file, &st))
        return GM_OK;
    for (int i = 0; i < count; i++) {
        int same = inputs[i].device == (uint64_t)st.st_dev && inputs[i].inode == (uint64_t)st.st_ino;

        if (!same && inputs[i].data_file[0] && stat(inputs[i].data_file, &data) == 0)
            same = data.st_dev == st.st_dev && data.st_ino == st.st_ino;
        if (same)
            return gm_fail(GM_EOUTPUT, "%s: is one of the inputs (%s), expected another file", file, inputs[i].file);
    }
    return GM_OK;
}

static int check_replaceable(const char *file, int force)
{
    struct stat st;

    if (lstat(file, &st)) {
        if (errno == ENOENT)
            return GM_OK;
        return gm_fail(GM_EOUTPUT, "%s: cannot be the output: %s", file, strerror(errno));
    }
    if (S_ISDIR(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: is a folder, expected the name of a file", file);
    if (S_ISLNK(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: is a symbolic link, expected the name of the file itself", file);
    if (!S_ISREG(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: is not an ordinary file", file);
    if (!force)
        return gm_fail(GM_EOUTPUT, "%s: exists already, expected a new name or --force", file);
    return GM_OK;
}

static int check_folder(const char *file, int64_t bytes)
{
    char folder[GM_PATH_MAX], needed[GM_SIZE_TEXT], there[GM_SIZE_TEXT];
    struct stat st;
    struct statvfs fs;
    int64_t room;

    gm_output_folder(file, folder);
    if (stat(folder, &st))
        return gm_fail(GM_EOUTPUT, "%s: its folder %s: %s", file, folder, errno == ENOENT ? "does not exist" : strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: %s is not a folder", file, folder);
    if (access(folder, W_OK | X_OK))
        return gm_fail(GM_EOUTPUT, "%s: its folder %s cannot be written: %s", file, folder, strerror(errno));
    if (statvfs(folder, &fs) || fs.f_blocks == 0) /* some network file systems do not tell */
        return GM_OK;
    room = gm_mul_sat((int64_t)fs.f_bavail, (int64_t)fs.f_frsize);
    if (room < bytes)
        return gm_fail(GM_EOUTPUT, "%s: needs %s, but %s has room for %s only", file, gm_size_format(bytes, needed), folder,
                       gm_size_format(room, there));
    return GM_OK;
}

int gm_output_check(const char *file, int force, int64_t bytes, const gm_dataset *inputs, int count)
{
    size_t length = strlen(file);
    int status;

    if (length == 0)
        return gm_fail(GM_EUSAGE, "the output's name is empty");
    if (length > GM_PATH_MAX - 64)
        return gm_fail(GM_EOUTPUT, "%.60s...: the name is too long", file);
    if (file[length - 1] == '/')
        return gm_fail(GM_EOUTPUT, "%s: is the name of a folder, expected that of a file", file);
    status = check_not_input(file, inputs, count);
    if (!status)
        status = check_replaceable(file, force);
    if (!status)
        status = check_folder(file, bytes);
    return status;
}
