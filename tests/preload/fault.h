/* fault.h - calls that a preloaded library counts and makes fail: the parts of fault.so.
 *
 *   fault.c            settings, the log, and the verdict on a call
 *   fault_process.c    the calls: memory, threads, processes, messages; the start of the program
 *   fault_files.c      the calls of files */
#ifndef GM_TESTS_PRELOAD_FAULT_H
#define GM_TESTS_PRELOAD_FAULT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stddef.h>

/* Nothing but the calls is seen outside of the library. */
#pragma GCC visibility push(hidden)

/* The kinds of calls, which have their own counts. */
enum {
    READ,
    WRITE,
    OPEN,
    CLOSE,
    SYNC,
    RENAME,
    UNLINK,
    FOLDER,
    STAT,
    SPACE,
    MAP,
    MEMORY,
    THREAD,
    PROCESS,
    MESSAGE,
    ANY_FILE,
    KINDS
};

/* Counts a call, and decides its end: it goes on, fails (errno is set), or moves half of its bytes. from: the address
 * that it returns to. */
enum { GO_ON, FAILS, IS_SHORT };
int fault_judge(int kind, const char *function, const void *from);

/* Is it a call of the objects whose memory, threads and processes count? */
int fault_is_caller(const void *from);

/* Does a file count? By its name, which may be relative to a folder's descriptor, or by its own descriptor. */
int fault_path_counts(int folder, const char *path);
int fault_is_watched(int fd);

/* Notes that a descriptor is of a file that counts (on: 1) or does not, or that it is closed (0, NULL). */
void fault_watch(int fd, int on, const char *path);

/* Calls count from here on, if the settings name this place or a part of this path. */
void fault_begin_at(const char *place);
void fault_arrive(const char *path);

/* The function of this name that would be called without this library; kept: where it is remembered. */
void *fault_next(const char *name, void **kept);
#define NEXT(type, name, parameters) \
    static void *kept_##name;        \
    type(*next) parameters = (type(*) parameters)fault_next(#name, &kept_##name)

#define FROM __builtin_return_address(0)
/* A whole wrapper: of a call that fails with a value and errno, where a condition holds. */
#define WRAP(kind, type, name, parameters, arguments, counts, failure) \
    type name parameters                                               \
    {                                                                  \
        NEXT(type, name, parameters);                                  \
        if ((counts) && fault_judge(kind, #name, FROM) == FAILS)       \
            return failure;                                            \
        return next arguments;                                         \
    }
/* The same function under another name. */
#define ALSO(type, name, parameters, of) type name parameters __attribute__((alias(#of)))

#pragma GCC visibility pop

#endif
