#include "base/file/text_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/leftover.h"
#include "base/file/new_file.h"
#include "base/status.h"

static const char signature[] = "\211HDF\r\n\032\n";
enum { SIGNATURE = sizeof signature - 1, SIGNATURE_LAST = 1 << 30 };

/* Opens an existing file for reading, if it is a regular one. Returns NULL if not. */
static FILE *open_regular(const char *name)
{
    struct stat st;
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "rb") : NULL;
    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* Is it an HDF5 file? Its signature may follow a user block. */
static int is_hdf5(const char *name)
{
    char found[SIGNATURE];
    FILE *file = open_regular(name);
    int holds = 0;
    for (long at = 0; file && !holds && at <= SIGNATURE_LAST && fseek(file, at, SEEK_SET) == 0 &&
                      fread(found, sizeof found, 1, file) == 1;
         at = at ? 2 * at : 512)
        holds = memcmp(found, signature, sizeof found) == 0;
    if (file)
        fclose(file);
    return holds;
}

/* The last character that is not white space, of a file that begins as `kind`; '\0' for any other file, or one that is
 * not text. */
static int last_of_kind(FILE *file, const char *kind)
{
    int c, last = '\0';
    while ((c = getc(file)) != EOF) {
        if (c == '\0')
            return '\0';
        if (isspace(c))
            continue;
        if (*kind && c != (unsigned char)*kind++)
            return '\0';
        last = c;
    }
    return *kind ? '\0' : last;
}

static int is_of_kind(const char *name, const char *kind)
{
    FILE *file = open_regular(name);
    int last = file ? last_of_kind(file, kind) : '\0';
    if (file)
        fclose(file);
    return last && (kind[0] != '{' || last == '}');
}

static int fail(const gm_text_file *t, int why)
{
    const char *name = strcmp(t->name, "-") == 0 ? "standard output" : t->name;
    return gm_fail(GM_EOUTPUT, "%s: cannot be written: %s", name, strerror(why));
}

static int open_standard(gm_text_file *t)
{
    static int is_taken;
    if (is_taken)
        return gm_fail(GM_EUSAGE, "standard output (-) is named twice, expected once");
    int mode = fcntl(STDOUT_FILENO, F_GETFL); /* for reading: closed, and /dev/null since */
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
        return gm_fail(GM_EOUTPUT, "standard output: %s", strerror(EBADF));
    if (fflush(stdout) || (t->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return gm_fail(GM_EOUTPUT, "standard output: %s", strerror(errno));
    is_taken = 1;
    return GM_OK;
}

static int open_new(gm_text_file *t)
{
    struct stat st;
    t->exists = lstat(t->name, &st) == 0;
    int is_ours = t->exists && is_of_kind(t->name, t->kind);
    int status = gm_new_file_check(t->name, t->force || is_ours, NULL);
    if (!status && t->exists && is_hdf5(t->name))
        status = gm_fail(GM_EOUTPUT, "%s: is an HDF5 file, expected the name of a new file", t->name);
    if (status)
        return status;
    gm_leftovers_clean(t->name);
    t->fd = gm_new_file_create(t->name, "txt", 1, t->temporary);
    return t->fd < 0 ? GM_EOUTPUT : GM_OK;
}

int gm_text_open(gm_text_file *t, const char *name, int force, const char *kind)
{
    *t = (gm_text_file){.name = name, .kind = kind, .fd = -1, .force = force};
    if (!name)
        return GM_OK;
    int status = strcmp(name, "-") == 0 ? open_standard(t) : open_new(t);
    if (status)
        return status;
    /* The stream is closed before the file gets its name: some errors come only then. */
    int copy = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
    t->stream = copy < 0 ? NULL : fdopen(copy, "w");
    if (t->stream)
        return GM_OK;
    status = fail(t, errno);
    if (copy >= 0)
        close(copy);
    gm_text_discard(t);
    return status;
}

int gm_text_is_at_stake(const gm_text_file *t)
{
    return t->stream && t->exists;
}

int gm_text_check(gm_text_file *t, const gm_file_list *list, const char *other)
{
    if (!t->stream || !t->temporary[0])
        return GM_OK;
    int status = gm_file_list_refuse(list, t->name, t->name);
    if (!status && other && gm_path_same(t->name, other))
        status = gm_fail(GM_EOUTPUT, "%s: is the name of another new file of this run, expected one for each", t->name);
    t->is_checked = status == GM_OK;
    if (status)
        gm_text_discard(t);
    return status;
}

int gm_text_may_publish(const gm_text_file *t)
{
    struct stat st;
    return !t->temporary[0] || t->is_checked || lstat(t->name, &st) || is_of_kind(t->name, t->kind);
}

int gm_text_publish(gm_text_file *t, int failed)
{
    char replaced[GM_PATH_MAX];
    int why = failed ? errno : 0, status = GM_OK;
    if (fclose(t->stream) && !why)
        why = errno;
    t->stream = NULL;
    if (failed || why)
        status = fail(t, why ? why : EIO);
    if (!status && t->temporary[0]) {
        status = gm_new_file_publish(t->name, t->fd, t->temporary, t->force || is_of_kind(t->name, t->kind), replaced);
        if (!status && replaced[0])
            unlink(replaced);
        if (!status)
            t->temporary[0] = '\0';
    }
    gm_text_discard(t);
    return status;
}

void gm_text_discard(gm_text_file *t)
{
    if (!t->name)
        return;
    if (t->stream)
        fclose(t->stream);
    gm_new_file_discard(t->fd, t->temporary);
    *t = (gm_text_file){.name = t->name, .kind = t->kind, .fd = -1, .force = t->force};
}
