#define _GNU_SOURCE 1 /* O_TMPFILE, renameat2, memfd_create */
#include "base/file/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/file/flush.h"
#include "base/file/leftover.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text/escape.h"

enum { ATTEMPTS = 100, DESCRIPTOR_TEXT = 64 };
static const char proc[] = "/proc/";

/* --- The name --- */

static int check_folder(const char *file)
{
    char folder[GM_PATH_MAX];
    struct stat st;
    gm_path_folder(file, folder);
    int why = stat(folder, &st) ? errno : 0;
    if (why == ENOENT)
        return gm_fail(GM_EOUTPUT, "%s: the folder %s does not exist", file, folder);
    if (why)
        return gm_fail(GM_EOUTPUT, "%s: the folder %s cannot be opened: %s", file, folder, strerror(why));
    if (!S_ISDIR(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: %s is not a folder", file, folder);
    if (access(folder, W_OK | X_OK))
        return gm_fail(GM_EOUTPUT, "%s: the folder %s cannot be written: %s", file, folder, strerror(errno));
    return GM_OK;
}

/* Refuses all but a regular file; *exists: is there one? */
static int check_kind(const char *file, int *exists)
{
    struct stat st;
    *exists = 0;
    if (lstat(file, &st))
        return errno == ENOENT ? GM_OK : gm_fail(GM_EOUTPUT, "%s: cannot be written: %s", file, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: is a folder, expected the name of a file", file);
    if (S_ISLNK(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: is a symbolic link, expected the name of the file itself", file);
    if (!S_ISREG(st.st_mode))
        return gm_fail(GM_EOUTPUT, "%s: is not a regular file", file);
    *exists = 1;
    return GM_OK;
}

int gm_new_file_check(const char *file, int force, int (*is_ours)(const char *file))
{
    size_t length = strlen(file);
    int exists;
    if (length == 0)
        return gm_fail(GM_EUSAGE, "the output's name is empty");
    if (length > GM_PATH_MAX - 2 * GM_STEM_MAX)
        return gm_fail(GM_EOUTPUT, "%.*s...: the name is too long", (int)gm_escape_fit(file, 60), file);
    if (file[length - 1] == '/')
        return gm_fail(GM_EOUTPUT, "%s: is the name of a folder, expected that of a file", file);
    int status = check_kind(file, &exists);
    if (!status && exists && !force && !(is_ours && is_ours(file)))
        status = gm_fail(GM_EOUTPUT, "%s: exists already, expected a new name or --force", file);
    return status ? status : check_folder(file);
}

/* --- The temporary file --- */

int gm_new_file_has_name(const char *temporary)
{
    return temporary[0] && strncmp(temporary, proc, strlen(proc)) != 0;
}

static void name_descriptor(int fd, char *path)
{
    snprintf(path, DESCRIPTOR_TEXT, "%s%ld/fd/%d", proc, (long)getpid(), fd);
}

/* File systems on which a file without a name can be given one later. */
static int takes_nameless(int fd)
{
    static const long types[] = {TMPFS_MAGIC, EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC};
    struct statfs fs;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && fstatfs(fd, &fs) == 0; i++)
        if ((unsigned long)fs.f_type == (unsigned long)types[i])
            return 1;
    return 0;
}

/* Returns a descriptor; -1 when there is no such file here. */
static int create_nameless(const char *file, char *temporary)
{
    char folder[GM_PATH_MAX];
    struct stat st, seen;
    int fd = open(gm_path_folder(file, folder), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    name_descriptor(fd, temporary);
    if (takes_nameless(fd) && fstat(fd, &st) == 0 && stat(temporary, &seen) == 0 && st.st_dev == seen.st_dev &&
        st.st_ino == seen.st_ino)
        return fd;
    close(fd);
    return -1;
}

static int create_named(const char *file, const char *kind, char *temporary)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        errno = ENAMETOOLONG;
        int fd = gm_leftover_name(file, kind, temporary)
                     ? open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)
                     : -1;
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int gm_new_file_create(const char *file, const char *kind, int nameless, char *temporary)
{
    int fd = nameless ? create_nameless(file, temporary) : -1;
    if (fd < 0)
        fd = create_named(file, kind, temporary);
    if (fd < 0) {
        temporary[0] = '\0';
        gm_fail(GM_EOUTPUT, "%s: cannot create a file in its folder: %s", file, strerror(errno));
    }
    return fd;
}

int gm_new_file_open(const char *temporary, int flags)
{
    return open(temporary, flags | O_CLOEXEC | (gm_new_file_has_name(temporary) ? O_NOFOLLOW : 0));
}

void gm_new_file_discard(int fd, const char *temporary)
{
    if (gm_new_file_has_name(temporary))
        unlink(temporary);
    if (fd >= 0)
        close(fd);
}

/* --- The final name --- */

int gm_new_file_link(int fd, const char *temporary, const char *path)
{
    char own[DESCRIPTOR_TEXT];
    if (gm_new_file_has_name(temporary))
        return link(temporary, path) ? errno : 0;
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? errno : 0;
}

/* Renames a file to a name that nothing has. Not every file system can promise that. */
static int rename_new(const char *from, const char *to)
{
    struct stat st;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (lstat(to, &st) == 0)
        return EEXIST;
    return rename(from, to) ? errno : 0;
}

/* Gives the file a name that nothing has. Returns 0 or an errno. */
static int publish_new(const char *file, int fd, const char *temporary)
{
    int why = gm_new_file_link(fd, temporary, file);
    if (why == 0 && gm_new_file_has_name(temporary))
        unlink(temporary);
    if (why == 0 || why == EEXIST || !gm_new_file_has_name(temporary))
        return why;
    return rename_new(temporary, file); /* not every file system has links */
}

/* Puts the file called `from` in the place of `file`. The file that was there is called *replaced then, also when
 * another process has replaced it at the same time. Returns 0 or an errno. */
static int exchange(const char *from, const char *file, char *replaced)
{
    struct stat st;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, file, RENAME_EXCHANGE) == 0) {
        if (lstat(from, &st) == 0 && !S_ISREG(st.st_mode)) {
            renameat2(AT_FDCWD, from, AT_FDCWD, file, RENAME_EXCHANGE);
            return EEXIST;
        }
        strcpy(replaced, from);
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (lstat(file, &st))
        return errno;
    if (!S_ISREG(st.st_mode))
        return EEXIST;
    if (!gm_leftover_name(file, "old", replaced) || link(file, replaced))
        replaced[0] = '\0';
    if (rename(from, file) == 0)
        return 0;
    int why = errno;
    if (replaced[0])
        unlink(replaced);
    replaced[0] = '\0';
    return why;
}

/* Replaces what has the name, or takes the name if nothing has it any more. Returns 0 or an errno. */
static int publish_over(const char *file, int fd, const char *temporary, char *replaced)
{
    char beside[GM_PATH_MAX];
    int why = 0, has_link = !gm_new_file_has_name(temporary);
    if (!has_link)
        strcpy(beside, temporary);
    else if (!gm_leftover_name(file, "tmp", beside))
        return ENAMETOOLONG;
    else if ((why = gm_new_file_link(fd, temporary, beside)))
        return why;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        why = exchange(beside, file, replaced);
        if (why == ENOENT)
            why = rename_new(beside, file);
        else
            break;
        if (why != EEXIST)
            break;
    }
    if (why && has_link)
        unlink(beside);
    return why;
}

int gm_new_file_publish(const char *file, int fd, const char *temporary, int force, char *replaced)
{
    replaced[0] = '\0';
    int why = publish_new(file, fd, temporary);
    if (why == EEXIST && force)
        why = publish_over(file, fd, temporary, replaced);
    if (why == EEXIST)
        return gm_fail(GM_EOUTPUT, "%s: was created by another process meanwhile, expected a new name or --force",
                       file);
    return why ? gm_fail(GM_EOUTPUT, "%s: the finished file cannot be given its name: %s", file, strerror(why)) : GM_OK;
}

int gm_new_file_flush_folder(const char *file)
{
    char folder[GM_PATH_MAX];
    int fd = open(gm_path_folder(file, folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int why = fd < 0 ? errno : gm_file_flush(fd);
    if (fd >= 0)
        close(fd);
    if (why == EIO)
        return gm_fail(GM_EOUTPUT, "%s: is complete, but flushing its folder to the disk failed: %s", file,
                       strerror(why));
    if (why && why != EINVAL) /* EINVAL: a file system that does not flush folders */
        gm_warn("%s: is complete, but its folder cannot be flushed to the disk: %s", file, strerror(why));
    return GM_OK;
}

/* --- Other processes of this host --- */

int gm_file_probe_make(gm_file_probe *probe)
{
    int fd = memfd_create("gpumem-probe", MFD_CLOEXEC);
    probe->id = gm_path_id();
    probe->path[0] = '\0';
    if (fd >= 0 && pwrite(fd, &probe->id, sizeof probe->id, 0) == sizeof probe->id)
        name_descriptor(fd, probe->path);
    return fd;
}

int gm_file_probe_try(const gm_file_probe *probe)
{
    uint64_t id = 0;
    int fd = probe->path[0] ? open(probe->path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
    int same = fd >= 0 && pread(fd, &id, sizeof id, 0) == sizeof id && id == probe->id;
    if (fd >= 0)
        close(fd);
    return same;
}
