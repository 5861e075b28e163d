/* The calls of files. */
#include "tests/preload/fault.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "open and open64 are the same function");

/* --- Open, close --- */

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

static int open_it(const char *name, const void *from, int folder, const char *path, int flags, mode_t mode)
{
    int counts = fault_path_counts(folder, path);
    fault_arrive(path);
    if (counts && fault_judge(OPEN, name, from) == FAILS)
        return -1;
    NEXT(int, openat, (int, const char *, int, ...));
    int fd = next(folder, path, flags, mode);
    fault_watch(fd, counts, path);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_it("open", FROM, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_it("openat", FROM, folder, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
    return open_it("creat", FROM, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open_it("open", FROM, AT_FDCWD, path, flags, 0);
}

int __openat_2(int folder, const char *path, int flags);
int __openat_2(int folder, const char *path, int flags)
{
    return open_it("openat", FROM, folder, path, flags, 0);
}

ALSO(int, open64, (const char *, int, ...), open);
ALSO(int, openat64, (int, const char *, int, ...), openat);
ALSO(int, creat64, (const char *, mode_t), creat);
ALSO(int, __open64_2, (const char *, int), __open_2);
ALSO(int, __openat64_2, (int, const char *, int), __openat_2);

FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE *, fopen, (const char *, const char *));
    int counts = fault_path_counts(AT_FDCWD, path);
    fault_arrive(path);
    if (counts && fault_judge(OPEN, "fopen", FROM) == FAILS)
        return NULL;
    FILE *file = next(path, mode);
    if (file)
        fault_watch(fileno(file), counts, path);
    return file;
}

ALSO(FILE *, fopen64, (const char *, const char *), fopen);

int close(int fd)
{
    NEXT(int, close, (int));
    int counts = fault_is_watched(fd), fails = counts && fault_judge(CLOSE, "close", FROM) == FAILS, code = errno;
    fault_watch(fd, 0, NULL);
    int result = next(fd);
    errno = fails ? code : errno;
    return fails ? -1 : result;
}

int fclose(FILE *file)
{
    NEXT(int, fclose, (FILE *));
    int fd = fileno(file), counts = fault_is_watched(fd), fails = counts && fault_judge(CLOSE, "fclose", FROM) == FAILS,
        code = errno;
    fault_watch(fd, 0, NULL);
    int result = next(file);
    errno = fails ? code : errno;
    return fails ? EOF : result;
}

/* --- Bytes --- */

/* Of a call that moves `count` bytes: 0: it fails; else the bytes that it may move. */
static int may_move(int kind, const char *name, const void *from, int fd, size_t *count)
{
    int verdict = fault_is_watched(fd) ? fault_judge(kind, name, from) : GO_ON;
    if (verdict == IS_SHORT)
        *count -= *count / 2;
    return verdict != FAILS;
}

#define MOVE(kind, name, parameters, arguments)                               \
    ssize_t name parameters                                                   \
    {                                                                         \
        NEXT(ssize_t, name, parameters);                                      \
        return may_move(kind, #name, FROM, fd, &count) ? next arguments : -1; \
    }

MOVE(READ, read, (int fd, void *data, size_t count), (fd, data, count))
MOVE(READ, pread, (int fd, void *data, size_t count, off_t at), (fd, data, count, at))
MOVE(WRITE, write, (int fd, const void *data, size_t count), (fd, data, count))
MOVE(WRITE, pwrite, (int fd, const void *data, size_t count, off_t at), (fd, data, count, at))
ALSO(ssize_t, pread64, (int, void *, size_t, off_t), pread);
ALSO(ssize_t, pwrite64, (int, const void *, size_t, off_t), pwrite);

ssize_t __read_chk(int fd, void *data, size_t count, size_t room);
ssize_t __pread_chk(int fd, void *data, size_t count, off_t at, size_t room);
MOVE(READ, __read_chk, (int fd, void *data, size_t count, size_t room), (fd, data, count, room))
MOVE(READ, __pread_chk, (int fd, void *data, size_t count, off_t at, size_t room), (fd, data, count, at, room))
ALSO(ssize_t, __pread64_chk, (int, void *, size_t, off_t, size_t), __pread_chk);

/* Vectors: a short one moves the first half of its first part. */
#define MOVE_VECTOR(kind, name, parameters, arguments)        \
    ssize_t name parameters                                   \
    {                                                         \
        NEXT(ssize_t, name, parameters);                      \
        struct iovec first = parts[0];                        \
        size_t before = first.iov_len;                        \
        if (!may_move(kind, #name, FROM, fd, &first.iov_len)) \
            return -1;                                        \
        if (first.iov_len != before)                          \
            parts = &first, count = 1;                        \
        return next arguments;                                \
    }

MOVE_VECTOR(READ, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
MOVE_VECTOR(READ, preadv, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
MOVE_VECTOR(READ, preadv2, (int fd, const struct iovec *parts, int count, off_t at, int flags),
            (fd, parts, count, at, flags))
MOVE_VECTOR(WRITE, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
MOVE_VECTOR(WRITE, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
MOVE_VECTOR(WRITE, pwritev2, (int fd, const struct iovec *parts, int count, off_t at, int flags),
            (fd, parts, count, at, flags))
ALSO(ssize_t, preadv64, (int, const struct iovec *, int, off_t), preadv);
ALSO(ssize_t, preadv64v2, (int, const struct iovec *, int, off_t, int), preadv2);
ALSO(ssize_t, pwritev64, (int, const struct iovec *, int, off_t), pwritev);
ALSO(ssize_t, pwritev64v2, (int, const struct iovec *, int, off_t, int), pwritev2);

WRAP(READ, size_t, fread, (void *data, size_t size, size_t count, FILE *file), (data, size, count, file),
     fault_is_watched(fileno(file)), 0)
WRAP(WRITE, int, fflush, (FILE * file), (file), file &&fault_is_watched(fileno(file)), EOF)

/* --- The rest of the file system --- */

WRAP(SYNC, int, fsync, (int fd), (fd), fault_is_watched(fd), -1)
WRAP(SYNC, int, fdatasync, (int fd), (fd), fault_is_watched(fd), -1)
WRAP(SYNC, int, sync_file_range, (int fd, off_t at, off_t count, unsigned flags), (fd, at, count, flags),
     fault_is_watched(fd), -1)

#define BOTH(a, from, b, to) (fault_path_counts(a, from) || fault_path_counts(b, to))
WRAP(RENAME, int, rename, (const char *from, const char *to), (from, to), BOTH(AT_FDCWD, from, AT_FDCWD, to), -1)
WRAP(RENAME, int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), BOTH(a, from, b, to),
     -1)
WRAP(RENAME, int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags),
     BOTH(a, from, b, to), -1)
WRAP(RENAME, int, link, (const char *from, const char *to), (from, to), BOTH(AT_FDCWD, from, AT_FDCWD, to), -1)
WRAP(RENAME, int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags),
     BOTH(a, from, b, to), -1)
WRAP(RENAME, int, symlink, (const char *from, const char *to), (from, to), fault_path_counts(AT_FDCWD, to), -1)
WRAP(UNLINK, int, unlink, (const char *path), (path), fault_path_counts(AT_FDCWD, path), -1)
WRAP(UNLINK, int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags),
     fault_path_counts(folder, path), -1)
WRAP(UNLINK, int, rmdir, (const char *path), (path), fault_path_counts(AT_FDCWD, path), -1)
WRAP(FOLDER, int, mkdir, (const char *path, mode_t mode), (path, mode), fault_path_counts(AT_FDCWD, path), -1)
WRAP(FOLDER, int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode),
     fault_path_counts(folder, path), -1)
WRAP(FOLDER, DIR *, opendir, (const char *path), (path), fault_path_counts(AT_FDCWD, path), NULL)
WRAP(STAT, int, stat, (const char *path, struct stat *to), (path, to), fault_path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, lstat, (const char *path, struct stat *to), (path, to), fault_path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, fstat, (int fd, struct stat *to), (fd, to), fault_is_watched(fd), -1)
WRAP(STAT, int, stat64, (const char *path, struct stat64 *to), (path, to), fault_path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, lstat64, (const char *path, struct stat64 *to), (path, to), fault_path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, fstat64, (int fd, struct stat64 *to), (fd, to), fault_is_watched(fd), -1)
WRAP(STAT, int, fstatat, (int folder, const char *path, struct stat *to, int flags), (folder, path, to, flags),
     *path ? fault_path_counts(folder, path) : fault_is_watched(folder), -1)
WRAP(STAT, int, statx, (int folder, const char *path, int flags, unsigned mask, struct statx *to),
     (folder, path, flags, mask, to), *path ? fault_path_counts(folder, path) : fault_is_watched(folder), -1)
WRAP(SPACE, int, ftruncate, (int fd, off_t size), (fd, size), fault_is_watched(fd), -1)
WRAP(SPACE, int, truncate, (const char *path, off_t size), (path, size), fault_path_counts(AT_FDCWD, path), -1)
WRAP(SPACE, int, fallocate, (int fd, int mode, off_t at, off_t count), (fd, mode, at, count), fault_is_watched(fd), -1)
WRAP(SPACE, int, posix_fallocate, (int fd, off_t at, off_t count), (fd, at, count), fault_is_watched(fd), errno)
WRAP(MAP, void *, mmap, (void *at, size_t size, int access, int flags, int fd, off_t from),
     (at, size, access, flags, fd, from), fd >= 0 ? fault_is_watched(fd) : fault_is_caller(FROM), MAP_FAILED)
ALSO(int, ftruncate64, (int, off_t), ftruncate);
ALSO(int, truncate64, (const char *, off_t), truncate);
ALSO(int, fallocate64, (int, int, off_t, off_t), fallocate);
ALSO(int, posix_fallocate64, (int, off_t, off_t), posix_fallocate);
ALSO(void *, mmap64, (void *, size_t, int, int, int, off_t), mmap);
