/* The reference of products: samples of rows and columns, more accurate than every kernel that is measured. */
#include "base/size.h"
#include "base/stop.h"
#include "kernels/bench/launch.h"

enum { COLUMNS = 64 };

static void make_row(int64_t cols, int64_t k, const double *a, const double *b, double *c, int64_t j0)
{
    int64_t columns = gm_min(COLUMNS, cols - j0);
    long double sum[COLUMNS] = {0};
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < columns; j++)
            sum[j] += (long double)a[l] * b[l * cols + j0 + j];
    for (int64_t j = 0; j < columns; j++)
        c[j0 + j] = (double)sum[j];
}

void gm_cpu_reference(int threads, int64_t rows, int64_t cols, int64_t k, const double *a, const double *b, double *c)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols && !gm_stop_asked(); j += COLUMNS)
            make_row(cols, k, a + i * k, b, c + i * cols, j);
}
