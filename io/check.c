/* check.c - can a name become the output? */
#include "io/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/inspect.h"
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

/* What may not be an input: a file that would be replaced, and the files in the folder of its parts. Told by what they are, not by their
 * names: links lead to them as well. */
typedef struct replaced {
    struct stat file, folder;
    int has_folder;
} replaced;

static int is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int is_replaced(const replaced *r, const char *path)
{
    char folder[GM_PATH_MAX], *real = realpath(path, NULL);
    struct stat st;
    int found = real && stat(real, &st) == 0 && is_same(&st, &r->file);

    if (real && r->has_folder)
        found = found || (stat(gm_output_folder(real, folder), &st) == 0 && is_same(&st, &r->folder));
    free(real);
    return found;
}

enum { FOUND = -1 };

static int visit_part(void *context, const char *path)
{
    return is_replaced(context, path) ? FOUND : GM_OK;
}

/* Is a virtual input made of it? One that can no longer be walked through fails when it is opened. */
static int has_replaced_part(replaced *r, const gm_dataset *input)
{
    hid_t file = H5I_INVALID_HID, set = H5I_INVALID_HID;
    int status = GM_OK;

    gm_h5_lock();
    if (gm_h5_open(input->file, &file) == GM_OK)
        set = H5Dopen2(file, input->name, H5P_DEFAULT);
    if (set >= 0) {
        status = gm_inspect_parts(set, input->file, visit_part, r);
        H5Dclose(set);
    }
    if (file >= 0)
        H5Fclose(file);
    gm_h5_unlock();
    if (status != FOUND)
        gm_error_clear();
    return status == FOUND;
}

static int check_not_input(const char *file, const gm_dataset *inputs, int count)
{
    char folder[GM_PATH_MAX];
    replaced r = {.has_folder = 0};

    if (count == 0 || stat(file, &r.file))
        return GM_OK;
    if (S_ISREG(r.file.st_mode)) {
        gm_parted_find(file, folder);
        r.has_folder = folder[0] && stat(folder, &r.folder) == 0;
    }
    for (int i = 0; i < count; i++) {
        const gm_dataset *input = &inputs[i];

        if ((input->device == (uint64_t)r.file.st_dev && input->inode == (uint64_t)r.file.st_ino) || is_replaced(&r, input->file)
            || (input->data_file[0] && is_replaced(&r, input->data_file)))
            return gm_fail(GM_EOUTPUT, "%s: is one of the inputs (%s), expected another file", file, input->file);
        if (input->layout == GM_VIRTUAL && has_replaced_part(&r, input))
            return gm_fail(GM_EOUTPUT, "%s: an input (%s) is made of it, expected another file", file, input->file);
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
