/* fault.c - a library to preload: fails, delays or shortens chosen calls of the program on a chosen rank, or counts
 * them.
 *
 *   LD_PRELOAD=.../fault.so GPUMEM_FAULT=write:3:1:ENOSPC gpumem-run ...     the third write on rank 1 finds no space
 *
 *   - GPUMEM_FAULT: faults, separated by commas: KIND:N[:RANK[:ACTION]]
 *     - KIND: a name of `kinds`; "file": all calls of files
 *     - N: the call, counted from 1 on each rank; N+: from there on; N-M: from there to M; *: each
 *     - RANK: by default "*": every rank
 *     - ACTION: an errno by name or number (by default that of the kind); short: half of the bytes; delay=MS; kill:
 *       SIGKILL to the rank instead of the call; signal=N: the signal, then the call
 *   - GPUMEM_FAULT_CALLERS: whose memory, threads and processes count: parts of library names, separated by commas;
 *     "any". By default "program": the loader, libmpi, hwloc and others are spared
 *   - GPUMEM_FAULT_UNDER: the folder of the files that count, whoever calls (by default the working folder)
 *   - GPUMEM_FAULT_FROM: calls count from here on: "init": MPI has started; else: a file with this in its path is
 *     opened. By default they count from main() on, after the constructors of CUDA's runtime
 *   - GPUMEM_FAULT_LOG: each rank writes to FILE.RANK what was struck, "struck KIND N FUNCTION at OBJECT+OFFSET of
 *     PATH", and at its end how many calls there were, "count KIND N"
 *
 * Children of a fork count with their parent, which gets their signals. Calls of this library itself do not count:
 * they are system calls. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "open and open64 are the same function");

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

static const struct {
    const char *name;
    int is_file, code;
} kinds[KINDS] = {
    [READ] = {"read", 1, EIO},      /* read, pread, readv, preadv2, fread */
    [WRITE] = {"write", 1, EIO},    /* write, pwrite, writev, pwritev2, fflush */
    [OPEN] = {"open", 1, EMFILE},   /* open, openat, creat, fopen */
    [CLOSE] = {"close", 1, EIO},    /* close, fclose: the descriptor is closed all the same */
    [SYNC] = {"sync", 1, EIO},      /* fsync, fdatasync, sync_file_range */
    [RENAME] = {"rename", 1, EIO},  /* rename, renameat, renameat2, link, linkat, symlink */
    [UNLINK] = {"unlink", 1, EIO},  /* unlink, unlinkat, rmdir */
    [FOLDER] = {"folder", 1, EIO},  /* mkdir, mkdirat, opendir */
    [STAT] = {"stat", 1, EIO},      /* stat, fstat, lstat, fstatat, statx */
    [SPACE] = {"space", 1, ENOSPC}, /* ftruncate, truncate, fallocate, posix_fallocate */
    [MAP] = {"mmap", 1, ENOMEM},    /* mmap of a file, or of memory by one of the callers */
    [MEMORY] =
        {"malloc", 0,
         ENOMEM}, /* malloc, calloc, realloc, reallocarray, aligned_alloc, posix_memalign, memalign, strdup, strndup */
    [THREAD] = {"thread", 0, EAGAIN}, /* pthread_create */
    [PROCESS] = {"fork", 0, EAGAIN},  /* fork, pipe, pipe2, socketpair */
    [MESSAGE] = {"mpi", 0, EIO},      /* the calls of MPI that need other ranks: MPI_ERR_OTHER, and nothing is done */
    [ANY_FILE] = {"file", 1, EIO},
};

enum action { FAIL, SHORTEN, DELAY, KILL, SIGNAL };
enum { GO_ON, FAILS, IS_SHORT };

static struct fault {
    int kind, rank; /* rank -1: every one */
    long from, to;  /* calls, counted from 1 */
    enum action action;
    int value; /* errno, milliseconds or number of the signal */
} faults[8];

enum { DESCRIPTORS = 1 << 16, OBJECTS = 16, NAMES = 256, PATH = 4096 };

static int fault_count, rank, any_caller, ready;
static pid_t owner;
static struct {
    uintptr_t begin, end;
} callers[OBJECTS];
static int caller_count;
static char under[PATH], log_path[PATH], from_path[PATH];
static int relative_counts;                /* the working folder lies in `under` */
static char names[NAMES][256];             /* of descriptors, for the log */
static unsigned char watched[DESCRIPTORS]; /* a file that counts */
static struct shared {                     /* with children */
    atomic_int begun;
    atomic_long calls[KINDS];
} * shared;

/* --- The functions behind these --- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void *next_of(const char *name, void **kept)
{
    if (!*kept)
        *kept = dlsym(RTLD_NEXT, name);
    if (!*kept)
        abort();
    return *kept;
}

/* A pointer to the function of this name that would be called without this library. */
#define NEXT(type, name, parameters) \
    static void *kept_##name;        \
    type(*next) parameters = (type(*) parameters)next_of(#name, &kept_##name)

/* --- Settings --- */

static int code_of(const char *name)
{
    static const struct {
        const char *name;
        int code;
    } codes[] = {
        {"EIO", EIO},       {"ENOSPC", ENOSPC},        {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE},
        {"EINTR", EINTR},   {"EAGAIN", EAGAIN},        {"EACCES", EACCES}, {"EPERM", EPERM},   {"EROFS", EROFS},
        {"EDQUOT", EDQUOT}, {"ENOENT", ENOENT},        {"ESTALE", ESTALE}, {"EEXIST", EEXIST}, {"EINVAL", EINVAL},
        {"EFBIG", EFBIG},   {"EOPNOTSUPP", EOPNOTSUPP}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(name, codes[i].name) == 0)
            return codes[i].code;
    return atoi(name);
}

static void say(const char *text)
{
    (void)!syscall(SYS_write, 2, text, strlen(text));
}

static void reject(const char *text)
{
    say("fault.so: not understood: ");
    say(text);
    say("\n");
    _exit(99);
}

static int kind_of(const char *name)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (strcmp(name, kinds[kind].name) == 0)
            return kind;
    reject(name);
    return -1;
}

static void read_action(const char *text, struct fault *fault)
{
    *fault = (struct fault){fault->kind, fault->rank, fault->from, fault->to, FAIL, kinds[fault->kind].code};
    if (!text || !*text)
        return;
    if (strcmp(text, "short") == 0)
        fault->action = SHORTEN;
    else if (strcmp(text, "kill") == 0)
        fault->action = KILL;
    else if (strncmp(text, "delay=", 6) == 0)
        fault->action = DELAY, fault->value = atoi(text + 6);
    else if (strncmp(text, "signal=", 7) == 0)
        fault->action = SIGNAL, fault->value = atoi(text + 7);
    else if ((fault->value = code_of(text)) <= 0)
        reject(text);
}

static void read_fault(char *text)
{
    char *word[4] = {0};
    for (int i = 0; i < 4 && text; i++)
        word[i] = strsep(&text, ":");
    if (!word[1] || text || fault_count == (int)(sizeof faults / sizeof faults[0]))
        reject(word[0]);
    struct fault *fault = &faults[fault_count++];
    char *rest = word[1];
    fault->kind = kind_of(word[0]);
    fault->from = fault->to = strtol(rest, &rest, 10);
    if (*rest == '+' || *rest == '*')
        fault->to = INT32_MAX;
    else if (*rest == '-')
        fault->to = atol(rest + 1);
    fault->rank = word[2] && *word[2] && *word[2] != '*' ? atoi(word[2]) : -1;
    read_action(word[3], fault);
}

/* Notes the memory of an object whose calls count. */
static int note_object(struct dl_phdr_info *info, size_t size, void *names)
{
    (void)size;
    static char copy[PATH];
    const char *path = info->dlpi_name, *name = *path ? strrchr(path, '/') ? strrchr(path, '/') + 1 : path : "program";
    snprintf(copy, sizeof copy, "%s", (const char *)names);
    for (char *at = copy, *word; (word = strsep(&at, ","));) {
        if (!*word || !strstr(name, word))
            continue;
        for (int i = 0; i < info->dlpi_phnum && caller_count < OBJECTS; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
                callers[caller_count].begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                callers[caller_count].end = callers[caller_count].begin + info->dlpi_phdr[i].p_memsz;
                caller_count++;
            }
    }
    return 0;
}

/* A file without a name is opened by that of a descriptor. */
static int is_under(const char *path)
{
    static __thread char target[PATH];
    size_t length = strlen(under);
    if (strncmp(path, "/proc/", 6) == 0) {
        long bytes = syscall(SYS_readlink, path, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        path = target;
    }
    return strncmp(path, under, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
    static char text[PATH];
    char folder[PATH] = "";
    if (strcmp(program_invocation_short_name, setting("GPUMEM_FAULT_PROGRAM", "gpumem-run")) != 0)
        return;
    if (!getcwd(folder, sizeof folder))
        folder[0] = '\0';
    owner = getpid();
    rank = atoi(setting("OMPI_COMM_WORLD_RANK", setting("PMIX_RANK", setting("PMI_RANK", "0"))));
    snprintf(under, sizeof under, "%s", setting("GPUMEM_FAULT_UNDER", folder));
    snprintf(from_path, sizeof from_path, "%s", setting("GPUMEM_FAULT_FROM", ""));
    if (getenv("GPUMEM_FAULT_LOG"))
        snprintf(log_path, sizeof log_path, "%s.%d", getenv("GPUMEM_FAULT_LOG"), rank);
    relative_counts = is_under(folder);
    const char *names = setting("GPUMEM_FAULT_CALLERS", "program");
    any_caller = strcmp(names, "any") == 0;
    dl_iterate_phdr(note_object, (void *)(uintptr_t)names);
    snprintf(text, sizeof text, "%s", setting("GPUMEM_FAULT", ""));
    for (char *at = text, *word; (word = strsep(&at, ","));)
        if (*word)
            read_fault(word);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ready = shared != MAP_FAILED;
}

/* --- The log --- */

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (!log_path[0])
        return;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    long file = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file >= 0) {
        (void)!syscall(SYS_write, file, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
        syscall(SYS_close, file);
    }
}

__attribute__((destructor)) static void end(void)
{
    if (ready && getpid() == owner)
        for (int kind = 0; kind < KINDS; kind++)
            note("count %s %ld\n", kinds[kind].name, atomic_load(&shared->calls[kind]));
}

/* --- A call --- */

/* The file of the call, by name or descriptor, for the log. The model: no allocation at the first access. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    const char *path;
    int fd;
} about;

static const struct fault *fault_for(int kind, long call)
{
    for (int i = 0; i < fault_count; i++) {
        const struct fault *f = &faults[i];
        if (f->kind == kind && (f->rank < 0 || f->rank == rank) && call >= f->from && call <= f->to)
            return f;
    }
    return NULL;
}

static int strike(const struct fault *fault, long call, const char *function, const void *from)
{
    Dl_info where = {0};
    dladdr(from, &where);
    const char *object = where.dli_fname ? where.dli_fname : "?";
    const char *path = about.path ? about.path : about.fd >= 0 && about.fd < NAMES ? names[about.fd] : "?";
    note("struck %s %ld %s at %s+0x%lx of %s\n", kinds[fault->kind].name, call, function, object,
         (unsigned long)((uintptr_t)from - (uintptr_t)where.dli_fbase), path);
    if (fault->action == KILL || fault->action == SIGNAL)
        kill(owner, fault->action == KILL ? SIGKILL : fault->value);
    if (fault->action == KILL)
        raise(SIGKILL);
    if (fault->action == DELAY)
        nanosleep(&(struct timespec){fault->value / 1000, fault->value % 1000 * 1000000L}, NULL);
    if (fault->action == FAIL)
        errno = fault->value;
    return fault->action == FAIL ? FAILS : fault->action == SHORTEN ? IS_SHORT : GO_ON;
}

/* Counts a call, and says what is to become of it; FAILS: errno is set. */
static int judge(int kind, const char *function, const void *from)
{
    int verdict = GO_ON, before = errno;
    if (!ready || !atomic_load(&shared->begun))
        return GO_ON;
    long call = atomic_fetch_add(&shared->calls[kind], 1) + 1;
    long of_file = kinds[kind].is_file ? atomic_fetch_add(&shared->calls[ANY_FILE], 1) + 1 : 0;
    const struct fault *fault = fault_for(kind, call);
    if (fault)
        verdict = strike(fault, call, function, from);
    else if (of_file && (fault = fault_for(ANY_FILE, of_file)))
        verdict = strike(fault, of_file, function, from);
    if (verdict != FAILS)
        errno = before;
    return verdict;
}

static int is_caller(const void *from)
{
    uintptr_t at = (uintptr_t)from;
    about.path = "memory";
    int found = any_caller;
    for (int i = 0; ready && !found && i < caller_count; i++)
        found = at >= callers[i].begin && at < callers[i].end;
    return ready && found;
}

static int is_watched(int fd)
{
    about.path = NULL;
    about.fd = fd;
    return fd >= 0 && fd < DESCRIPTORS && watched[fd];
}

static int path_counts(int folder, const char *path)
{
    if (!ready || !path)
        return 0;
    about.path = path;
    return *path == '/' ? is_under(path) : folder == AT_FDCWD ? relative_counts : watched[folder & (DESCRIPTORS - 1)];
}

static void watch(int fd, int on, const char *path)
{
    if (fd >= 0 && fd < NAMES && on)
        snprintf(names[fd], sizeof names[fd], "%s", path);
    if (fd >= 0 && fd < DESCRIPTORS)
        watched[fd] = (unsigned char)on;
}

static void arrive(const char *path)
{
    if (ready && from_path[0] && path && strstr(path, from_path))
        atomic_store(&shared->begun, 1);
}

#define FROM __builtin_return_address(0)
/* A whole wrapper: of a call that fails with a value and errno, where a condition holds. */
#define WRAP(kind, type, name, parameters, arguments, counts, failure) \
    type name parameters                                               \
    {                                                                  \
        NEXT(type, name, parameters);                                  \
        if ((counts) && judge(kind, #name, FROM) == FAILS)             \
            return failure;                                            \
        return next arguments;                                         \
    }
/* The same function under another name. */
#define ALSO(type, name, parameters, of) type name parameters __attribute__((alias(#of)))

/* --- Memory, threads, processes --- */

static int memory_fails(const char *function, const void *from)
{
    return is_caller(from) && judge(MEMORY, function, from) == FAILS;
}

void *malloc(size_t size)
{
    return memory_fails("malloc", FROM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return memory_fails("calloc", FROM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return memory_fails("realloc", FROM) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memory_fails("aligned_alloc", FROM) ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
    return memory_fails("memalign", FROM) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **address, size_t alignment, size_t size)
{
    void *memory = memory_fails("posix_memalign", FROM) ? NULL : __libc_memalign(alignment, size);
    if (!memory)
        return errno;
    *address = memory;
    return 0;
}

static char *copy_text(const char *text, size_t length)
{
    char *copy = __libc_malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

#undef strdup
#undef strndup
char *strdup(const char *text)
{
    return memory_fails("strdup", FROM) ? NULL : copy_text(text, strlen(text));
}

char *strndup(const char *text, size_t most)
{
    return memory_fails("strndup", FROM) ? NULL : copy_text(text, strnlen(text, most));
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    NEXT(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *));
    int before = errno;
    if (is_caller(FROM) && judge(THREAD, "pthread_create", FROM) == FAILS) {
        int code = errno;
        errno = before;
        return code;
    }
    return next(thread, attributes, run, argument);
}

WRAP(PROCESS, pid_t, fork, (void), (), is_caller(FROM), -1)
WRAP(PROCESS, int, pipe, (int pair[2]), (pair), is_caller(FROM), -1)
WRAP(PROCESS, int, pipe2, (int pair[2], int flags), (pair, flags), is_caller(FROM), -1)
WRAP(PROCESS, int, socketpair, (int domain, int type, int protocol, int pair[2]), (domain, type, protocol, pair),
     is_caller(FROM), -1)

#define MESSAGE_CALL(name, parameters, arguments) \
    WRAP(MESSAGE, int, name, parameters, arguments, is_caller(FROM), MPI_ERR_OTHER)
MESSAGE_CALL(MPI_Iallreduce,
             (const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request),
             (in, out, n, type, op, comm, request))
MESSAGE_CALL(MPI_Ibcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),
             (data, n, type, root, comm, request))
MESSAGE_CALL(MPI_Igather,
             (const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to, int root, MPI_Comm comm,
              MPI_Request *request),
             (in, n, type, out, m, to, root, comm, request))
MESSAGE_CALL(MPI_Isend,
             (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
             (data, n, type, to, tag, comm, request))
MESSAGE_CALL(MPI_Irecv, (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
             (data, n, type, from, tag, comm, request))
MESSAGE_CALL(MPI_Bcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm), (data, n, type, root, comm))
MESSAGE_CALL(MPI_Allreduce, (const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
             (in, out, n, type, op, comm))
MESSAGE_CALL(MPI_Allgather,
             (const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to, MPI_Comm comm),
             (in, n, type, out, m, to, comm))
MESSAGE_CALL(MPI_Exscan, (const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
             (in, out, n, type, op, comm))
MESSAGE_CALL(MPI_Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *made),
             (comm, kind, key, info, made))

typedef int main_function(int argc, char **argv, char **environment);
static main_function *program_main;

static int counted_main(int argc, char **argv, char **environment)
{
    if (ready && !from_path[0])
        atomic_store(&shared->begun, 1);
    return program_main(argc, argv, environment);
}

/* The caller of main(). */
int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*end_loader)(void), void *stack)
{
    NEXT(int, __libc_start_main,
         (main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *));
    program_main = main;
    return next(counted_main, argc, argv, init, fini, end_loader, stack);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    NEXT(int, MPI_Init_thread, (int *, char ***, int, int *));
    int code = next(argc, argv, required, provided);
    if (ready && strcmp(from_path, "init") == 0)
        atomic_store(&shared->begun, 1);
    return code;
}

/* --- Open, close --- */

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

static int open_it(const char *name, const void *from, int folder, const char *path, int flags, mode_t mode)
{
    int counts = path_counts(folder, path);
    arrive(path);
    if (counts && judge(OPEN, name, from) == FAILS)
        return -1;
    NEXT(int, openat, (int, const char *, int, ...));
    int fd = next(folder, path, flags, mode);
    watch(fd, counts, path);
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
    int counts = path_counts(AT_FDCWD, path);
    arrive(path);
    if (counts && judge(OPEN, "fopen", FROM) == FAILS)
        return NULL;
    FILE *file = next(path, mode);
    if (file)
        watch(fileno(file), counts, path);
    return file;
}

ALSO(FILE *, fopen64, (const char *, const char *), fopen);

int close(int fd)
{
    NEXT(int, close, (int));
    int counts = is_watched(fd), fails = counts && judge(CLOSE, "close", FROM) == FAILS, code = errno;
    watch(fd, 0, NULL);
    int result = next(fd);
    errno = fails ? code : errno;
    return fails ? -1 : result;
}

int fclose(FILE *file)
{
    NEXT(int, fclose, (FILE *));
    int fd = fileno(file), counts = is_watched(fd), fails = counts && judge(CLOSE, "fclose", FROM) == FAILS,
        code = errno;
    watch(fd, 0, NULL);
    int result = next(file);
    errno = fails ? code : errno;
    return fails ? EOF : result;
}

/* --- Bytes --- */

/* Of a call that moves `count` bytes: 0: it fails; else the bytes that it may move. */
static int may_move(int kind, const char *name, const void *from, int fd, size_t *count)
{
    int verdict = is_watched(fd) ? judge(kind, name, from) : GO_ON;
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
     is_watched(fileno(file)), 0)
WRAP(WRITE, int, fflush, (FILE * file), (file), file &&is_watched(fileno(file)), EOF)

/* --- The rest of the file system --- */

WRAP(SYNC, int, fsync, (int fd), (fd), is_watched(fd), -1)
WRAP(SYNC, int, fdatasync, (int fd), (fd), is_watched(fd), -1)
WRAP(SYNC, int, sync_file_range, (int fd, off_t at, off_t count, unsigned flags), (fd, at, count, flags),
     is_watched(fd), -1)

#define BOTH(a, from, b, to) (path_counts(a, from) || path_counts(b, to))
WRAP(RENAME, int, rename, (const char *from, const char *to), (from, to), BOTH(AT_FDCWD, from, AT_FDCWD, to), -1)
WRAP(RENAME, int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), BOTH(a, from, b, to),
     -1)
WRAP(RENAME, int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags),
     BOTH(a, from, b, to), -1)
WRAP(RENAME, int, link, (const char *from, const char *to), (from, to), BOTH(AT_FDCWD, from, AT_FDCWD, to), -1)
WRAP(RENAME, int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags),
     BOTH(a, from, b, to), -1)
WRAP(RENAME, int, symlink, (const char *from, const char *to), (from, to), path_counts(AT_FDCWD, to), -1)
WRAP(UNLINK, int, unlink, (const char *path), (path), path_counts(AT_FDCWD, path), -1)
WRAP(UNLINK, int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), path_counts(folder, path),
     -1)
WRAP(UNLINK, int, rmdir, (const char *path), (path), path_counts(AT_FDCWD, path), -1)
WRAP(FOLDER, int, mkdir, (const char *path, mode_t mode), (path, mode), path_counts(AT_FDCWD, path), -1)
WRAP(FOLDER, int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), path_counts(folder, path),
     -1)
WRAP(FOLDER, DIR *, opendir, (const char *path), (path), path_counts(AT_FDCWD, path), NULL)
WRAP(STAT, int, stat, (const char *path, struct stat *to), (path, to), path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, lstat, (const char *path, struct stat *to), (path, to), path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, fstat, (int fd, struct stat *to), (fd, to), is_watched(fd), -1)
WRAP(STAT, int, stat64, (const char *path, struct stat64 *to), (path, to), path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, lstat64, (const char *path, struct stat64 *to), (path, to), path_counts(AT_FDCWD, path), -1)
WRAP(STAT, int, fstat64, (int fd, struct stat64 *to), (fd, to), is_watched(fd), -1)
WRAP(STAT, int, fstatat, (int folder, const char *path, struct stat *to, int flags), (folder, path, to, flags),
     *path ? path_counts(folder, path) : is_watched(folder), -1)
WRAP(STAT, int, statx, (int folder, const char *path, int flags, unsigned mask, struct statx *to),
     (folder, path, flags, mask, to), *path ? path_counts(folder, path) : is_watched(folder), -1)
WRAP(SPACE, int, ftruncate, (int fd, off_t size), (fd, size), is_watched(fd), -1)
WRAP(SPACE, int, truncate, (const char *path, off_t size), (path, size), path_counts(AT_FDCWD, path), -1)
WRAP(SPACE, int, fallocate, (int fd, int mode, off_t at, off_t count), (fd, mode, at, count), is_watched(fd), -1)
WRAP(SPACE, int, posix_fallocate, (int fd, off_t at, off_t count), (fd, at, count), is_watched(fd), errno)
WRAP(MAP, void *, mmap, (void *at, size_t size, int access, int flags, int fd, off_t from),
     (at, size, access, flags, fd, from), fd >= 0 ? is_watched(fd) : is_caller(FROM), MAP_FAILED)
ALSO(int, ftruncate64, (int, off_t), ftruncate);
ALSO(int, truncate64, (const char *, off_t), truncate);
ALSO(int, fallocate64, (int, int, off_t, off_t), fallocate);
ALSO(int, posix_fallocate64, (int, off_t, off_t), posix_fallocate);
ALSO(void *, mmap64, (void *, size_t, int, int, int, off_t), mmap);
