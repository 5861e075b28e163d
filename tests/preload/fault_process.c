/* The calls of memory, threads, processes and messages, and the start of the program. */
#include "tests/preload/fault.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int memory_fails(const char *function, const void *from)
{
    return fault_is_caller(from) && fault_judge(MEMORY, function, from) == FAILS;
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
    if (fault_is_caller(FROM) && fault_judge(THREAD, "pthread_create", FROM) == FAILS) {
        int code = errno;
        errno = before;
        return code;
    }
    return next(thread, attributes, run, argument);
}

WRAP(PROCESS, pid_t, fork, (void), (), fault_is_caller(FROM), -1)
WRAP(PROCESS, int, pipe, (int pair[2]), (pair), fault_is_caller(FROM), -1)
WRAP(PROCESS, int, pipe2, (int pair[2], int flags), (pair, flags), fault_is_caller(FROM), -1)
WRAP(PROCESS, int, socketpair, (int domain, int type, int protocol, int pair[2]), (domain, type, protocol, pair),
     fault_is_caller(FROM), -1)

#define MESSAGE_CALL(name, parameters, arguments) \
    WRAP(MESSAGE, int, name, parameters, arguments, fault_is_caller(FROM), MPI_ERR_OTHER)
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
    fault_begin_at("");
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
    fault_begin_at("init");
    return code;
}
