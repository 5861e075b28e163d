/* blas_once SIZE f32|f64 THREADS: one call of BLAS for a whole product of square matrices, in memory that is as
 * fresh as that of a job; prints its seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/blas/blas.h"

/* A matrix of numbers in [0, 1). */
static void *make_matrix(size_t elements, int wide)
{
    void *matrix = malloc(elements * (wide ? sizeof(double) : sizeof(float)));
    unsigned state = 1;

    for (size_t i = 0; i < elements && matrix; i++) {
        state = state * 1664525u + 1013904223u;
        if (wide)
            ((double *)matrix)[i] = state * 0x1p-32;
        else
            ((float *)matrix)[i] = (float)(state >> 8) * 0x1p-24f;
    }
    return matrix;
}

int main(int argc, char **argv)
{
    int n = argc == 4 ? atoi(argv[1]) : 0, wide = argc == 4 && strcmp(argv[2], "f64") == 0;
    void *a = make_matrix((size_t)n * (size_t)n, wide), *b = make_matrix((size_t)n * (size_t)n, wide);
    void *c = malloc((size_t)n * (size_t)n * (wide ? sizeof(double) : sizeof(float)));
    double from;

    if (n <= 0 || !a || !b || !c)
        return 1;
    gm_blas_threads(atoi(argv[3]));
    from = gm_clock();
    if (wide)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
    printf("%.6f\n", gm_clock() - from);
    free(c);
    free(b);
    free(a);
    return 0;
}
