#include "kernels/blas/blas.h"

#include <omp.h>
#include <stdio.h>

#include "kernels/kernels.h"

void gm_blas_threads(int threads)
{
#if defined(GM_BLAS_OPENBLAS)
    int before = omp_get_max_threads();
    openblas_set_num_threads(threads);
    omp_set_num_threads(before);
#elif defined(GM_BLAS_BLIS)
    bli_thread_set_num_threads(threads);
#else
    (void)threads;
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
