#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include "kernels/blas/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/kernels.h"

void gm_blas_restart(char **argv)
{
#if defined(GM_BLAS_OPENBLAS)
    enum { ON_POSIX_THREADS = 1 };
    static const char name[] = "OPENBLAS_NUM_THREADS";
    const char *threads = getenv(name);
    if (openblas_get_parallel() != ON_POSIX_THREADS || !gm_memory_is_limited() ||
        (threads && strcmp(threads, "1") == 0))
        return;
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1); /* its base name is the process's name */
    if (length < 0 || setenv(name, "1", 1) != 0 || setenv("MALLOC_ARENA_MAX", "1", 0) != 0)
        return;
    program[length] = '\0';
    execv(program, argv);
#else
    (void)argv;
#endif
}

int gm_blas_room(int callers, int own)
{
#if defined(GM_BLAS_OPENBLAS)
    static const size_t buffer = 128 << 20; /* on x86-64 */
    static int most_callers, most_own;
    int found = most_callers + most_own;
    most_callers = callers > most_callers ? callers : most_callers;
    most_own = own > most_own ? own : most_own;
    int threads = most_callers + most_own;
    if (threads > found && !gm_memory_has_room((size_t)(threads - found) * buffer))
        return gm_fail(GM_EDEVICE,
                       "the limit of address space (ulimit -v) has no room for the buffers of OpenBLAS, %d x 128 MiB",
                       threads);
#else
    (void)callers;
    (void)own;
#endif
    return GM_OK;
}

void gm_blas_threads(int threads)
{
#if defined(GM_BLAS_OPENBLAS)
    int before = omp_get_max_threads();
    openblas_set_num_threads(threads);
    omp_set_num_threads(before);
#elif defined(GM_BLAS_BLIS)
    bli_thread_set_num_threads(threads);
#else
    /* Debian's libblas is an alternative, and may be OpenBLAS, which then takes the threads that it likes. */
    void (*set)(int);
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (set) {
        int before = omp_get_max_threads();
        set(threads);
        omp_set_num_threads(before);
    }
#endif
}

void gm_blas_alone(void)
{
    /* A region of one thread is no parallel region to OpenBLAS on OpenMP, which would open its own. */
    omp_set_num_threads(1);
#ifdef GM_BLAS_BLIS
    bli_thread_set_num_threads(1); /* from version 1 on the number is the thread's own */
#endif
}

char *gm_blas_version(char *text)
{
#if defined(GM_BLAS_OPENBLAS)
    snprintf(text, GM_VERSION_TEXT, "%s", openblas_get_config());
#elif defined(GM_BLAS_BLIS)
    snprintf(text, GM_VERSION_TEXT, "BLIS %s", bli_info_get_version_str());
#else
    snprintf(text, GM_VERSION_TEXT, "with <cblas.h>, which does not tell its name");
#endif
    return text;
}
