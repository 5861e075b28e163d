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
#include "tests/preload/fault.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

int fault_judge(int kind, const char *function, const void *from)
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

int fault_is_caller(const void *from)
{
    uintptr_t at = (uintptr_t)from;
    about.path = "memory";
    int found = any_caller;
    for (int i = 0; ready && !found && i < caller_count; i++)
        found = at >= callers[i].begin && at < callers[i].end;
    return ready && found;
}

int fault_is_watched(int fd)
{
    about.path = NULL;
    about.fd = fd;
    return fd >= 0 && fd < DESCRIPTORS && watched[fd];
}

int fault_path_counts(int folder, const char *path)
{
    if (!ready || !path)
        return 0;
    about.path = path;
    return *path == '/' ? is_under(path) : folder == AT_FDCWD ? relative_counts : watched[folder & (DESCRIPTORS - 1)];
}

void fault_watch(int fd, int on, const char *path)
{
    if (fd >= 0 && fd < NAMES && on)
        snprintf(names[fd], sizeof names[fd], "%s", path);
    if (fd >= 0 && fd < DESCRIPTORS)
        watched[fd] = (unsigned char)on;
}

void fault_begin_at(const char *place)
{
    if (ready && strcmp(from_path, place) == 0)
        atomic_store(&shared->begun, 1);
}

void fault_arrive(const char *path)
{
    if (ready && from_path[0] && path && strstr(path, from_path))
        atomic_store(&shared->begun, 1);
}

void *fault_next(const char *name, void **kept)
{
    if (!*kept)
        *kept = dlsym(RTLD_NEXT, name);
    if (!*kept)
        abort();
    return *kept;
}
