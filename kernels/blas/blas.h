/* blas.h - the BLAS that configure found: its header, its integer, its threads. */
#ifndef GM_KERNELS_BLAS_BLAS_H
#define GM_KERNELS_BLAS_BLAS_H

#include "config.h"

#include <cblas.h>
#ifdef GM_BLAS_BLIS
#include <blis.h>
#endif

/* The integer of its calls, 32 bits wide as a rule; the word before the type in the name of a product
 * ("openblas-sgemm"); its name for a person. */
#if defined(GM_BLAS_OPENBLAS)
typedef blasint gm_blas_int;
#define GM_BLAS "openblas"
#define GM_BLAS_TITLE "OpenBLAS"
#elif defined(GM_BLAS_BLIS)
typedef f77_int gm_blas_int;
#define GM_BLAS "blis"
#define GM_BLAS_TITLE "BLIS"
#else
typedef int gm_blas_int;
#define GM_BLAS "cblas"
#define GM_BLAS_TITLE "BLAS"
#endif

/* Threads inside a BLAS call, for the whole process; while no call is under way. OpenBLAS on POSIX threads has a number
 * of its own. Its OpenMP flavour takes OpenMP's, which is the calling thread's and belongs to the rest of the program:
 * it is left as it was. A BLAS of which nothing is known has one thread. */
void gm_blas_threads(int threads);

/* The calls of this thread take no other one; for each thread of a parallel region, as it begins. It reaches to the end
 * of the region. */
void gm_blas_alone(void);

/* Is there address space for the buffers of OpenBLAS: of `callers` at a time, and of its `own` threads, which keep
 * theirs? It asks for one until it gets it: where a limit refuses, the call never ends. GM_EDEVICE. One thread at a
 * time. */
int gm_blas_room(int callers, int own);

#endif
