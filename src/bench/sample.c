/* The error of a product: the values of a sample of its elements, and a result beside them. */
#include "base/memory.h"
#include "base/size.h"
#include "base/stop.h"
#include "kernels/host.h"
#include "kernels/matmul/calls.h"
#include "src/bench/bench.h"

#include <math.h>
#include <stdlib.h>

enum { WHOLE = 1024, PARTS = 64, FEW_PARTS = 8 }; /* of the sampled rows and columns */

gm_bench_matrix gm_bench_factor_a(const gm_bench_factors *f)
{
    return (gm_bench_matrix){.type = f->type, .kind = f->kind, .cols = f->k, .key = f->key_a};
}

gm_bench_matrix gm_bench_factor_b(const gm_bench_factors *f)
{
    return (gm_bench_matrix){.type = f->type, .kind = f->kind, .cols = f->n, .key = f->key_b, .by_columns = 1};
}

static double element(const gm_bench_matrix *matrix, int64_t row, int64_t col)
{
    uint64_t raw;
    double value;
    gm_bench_elements(matrix, row, col, 1, &raw);
    gm_cpu_row_f64(&value, &raw, 1, matrix->type, 0);
    return value;
}

/* The sampled indices below n, one of each of the parts, ascending. Returns their number; *out is NULL without memory.
 */
static int64_t choose(int64_t n, int64_t parts, uint64_t key, int64_t **out)
{
    int64_t count = gm_min(n, parts);
    *out = malloc((size_t)count * sizeof **out);
    for (int64_t i = 0; *out && i < count; i++) {
        int64_t from = n / count * i + gm_min(i, n % count), to = n / count * (i + 1) + gm_min(i + 1, n % count);
        (*out)[i] = from + (int64_t)(gm_random_bits(key, (uint64_t)i) % (uint64_t)(to - from));
    }
    return count;
}

void gm_bench_sample_free(gm_bench_sample *sample)
{
    free(sample->row);
    free(sample->col);
    gm_host_free(sample->exact);
    gm_host_free(sample->scale);
    *sample = (gm_bench_sample){0};
}

static int alloc_doubles(int64_t count, double **out)
{
    void *memory = NULL;
    int status = gm_host_alloc((size_t)count * sizeof(double), &memory);
    *out = memory;
    return status;
}

/* A sample of elements, in a row of each of row_parts parts of C and a column of each of col_parts. */
static int open_sample(const gm_bench_factors *f, int64_t row_parts, int64_t col_parts, gm_bench_sample *sample)
{
    int is_positive = f->kind == GM_BENCH_UNIFORM && gm_dtype_get_kind(f->type) != GM_SIGNED;
    *sample = (gm_bench_sample){.m = f->m, .n = f->n, .k = f->k};
    sample->rows = choose(f->m, row_parts, f->key_a + f->key_b, &sample->row);
    sample->cols = choose(f->n, col_parts, f->key_a - f->key_b, &sample->col);
    int status = sample->row && sample->col ? GM_OK : gm_fail(GM_EDEVICE, "no memory for a sample");
    if (!status)
        status = alloc_doubles(sample->rows * sample->cols, &sample->exact);
    return status || is_positive ? status : alloc_doubles(sample->rows * sample->cols, &sample->scale);
}

static void drop_signs(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = fabs(values[i]);
}

int gm_bench_sample_make(gm_bench *bench, const gm_bench_factors *f, int whole, gm_bench_sample *sample)
{
    const gm_bench_matrix from_a = gm_bench_factor_a(f), from_b = gm_bench_factor_b(f);
    int threads = bench->job->threads, all = whole && f->m <= WHOLE && f->n <= WHOLE && !bench->is_brief;
    double *a = NULL, *b = NULL;
    int status = open_sample(f, all ? f->m : PARTS, all ? f->n : PARTS, sample);
    if (!status)
        status = alloc_doubles(sample->rows * f->k, &a);
    if (!status)
        status = alloc_doubles(sample->cols * f->k, &b);
    if (status)
        goto out;
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < sample->rows; i++)
        for (int64_t l = 0; l < f->k; l++)
            a[i * f->k + l] = element(&from_a, f->first + sample->row[i], l);
#pragma omp parallel for num_threads(threads)
    for (int64_t l = 0; l < f->k; l++)
        for (int64_t j = 0; j < sample->cols; j++)
            b[l * sample->cols + j] = element(&from_b, f->first_b + l, sample->col[j]);
    gm_cpu_reference(threads, sample->rows, sample->cols, f->k, a, b, sample->exact);
    if (sample->scale) {
        drop_signs(a, sample->rows * f->k);
        drop_signs(b, sample->cols * f->k);
        gm_cpu_reference(threads, sample->rows, sample->cols, f->k, a, b, sample->scale);
    }
    status = gm_stop_status();
out:
    gm_host_free(b);
    gm_host_free(a);
    return status;
}

/* Row i of the sample. row: [k] and q: [k] host memory, the row of A; probe: of all rows, its
 * s and s_abs follow each other. */
static int sum_row(gm_bench *bench, const gm_bench_factors *f, const gm_probe_call *probe, int64_t i, void *row,
                   double *q, gm_bench_sample *sample)
{
    const gm_bench_matrix a = gm_bench_factor_a(f);
    size_t width = (size_t)f->n * sizeof(double);
    gm_bench_elements(&a, f->first + sample->row[i], 0, f->k, row);
    gm_cpu_row_f64(q, row, f->k, f->type, 0);
    int status = bench->ops->zero(bench->queue, probe->s, 2 * width);
    if (!status)
        status = gm_bench_upload(bench, (void *)probe->q, q, (size_t)f->k * sizeof(double));
    if (!status)
        status = bench->ops->probe(bench->queue, probe);
    if (!status)
        status = gm_bench_download(bench, sample->exact + i * f->n, probe->s, width);
    return status || !sample->scale ? status : gm_bench_download(bench, sample->scale + i * f->n, probe->s_abs, width);
}

int gm_bench_sample_rows(gm_bench *bench, const gm_bench_factors *f, const void *b, int64_t ld, gm_bench_sample *sample)
{
    const gm_device_ops *ops = bench->ops;
    size_t size = gm_dtype_size(f->type);
    double *row = NULL, *q = NULL;
    void *on_device = NULL;
    int status = open_sample(f, ops->unified ? FEW_PARTS : PARTS, f->n, sample);
    if (!status)
        status = alloc_doubles(f->k, &row);
    if (!status)
        status = alloc_doubles(f->k, &q);
    if (!status)
        status = ops->alloc(bench->device, (size_t)(f->k + 2 * f->n) * sizeof(double), &on_device);
    double *sums = status ? NULL : (double *)on_device + f->k;
    const gm_probe_call probe = {.rows = f->k,
                                 .cols = f->n,
                                 .m = b,
                                 .pitch = (size_t)ld * size,
                                 .type = f->type,
                                 .q = on_device,
                                 .s = sums,
                                 .s_abs = sums ? sums + f->n : NULL};
    for (int64_t i = 0; i < sample->rows && !status; i++) {
        status = gm_stop_status();
        if (!status)
            status = sum_row(bench, f, &probe, i, row, q, sample);
    }
    ops->free(bench->device, on_device);
    gm_host_free(q);
    gm_host_free(row);
    return status;
}

int gm_bench_sample_compare(gm_bench *bench, const gm_bench_sample *sample, const void *c, gm_dtype type, int64_t ld,
                            double *max_error, double *mean_error)
{
    size_t size = gm_dtype_size(type), width = (size_t)sample->n * size;
    double sum = 0, most = 0;
    const double *scales = sample->scale ? sample->scale : sample->exact;
    void *row = NULL;
    int status = bench->ops->host_alloc(bench->device, width, &row);
    for (int64_t i = 0; i < sample->rows && !status; i++) {
        const char *from = (const char *)c + (size_t)(sample->row[i] * ld) * size;
        status = bench->ops->copy_out(bench->queue, row, width, from, width, width, 1);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
        for (int64_t j = 0; j < sample->cols && !status; j++) {
            double got, right = sample->exact[i * sample->cols + j], scale = scales[i * sample->cols + j];
            gm_cpu_row_f64(&got, (const char *)row + (size_t)sample->col[j] * size, 1, type, 0);
            double error = fabs(got - right) / (scale > 0 ? scale : 1);
            error = isfinite(error) ? error : INFINITY;
            most = fmax(most, error);
            sum += error;
        }
    }
    *max_error = most;
    *mean_error = sum / (double)(sample->rows * sample->cols);
    bench->ops->host_free(bench->device, row);
    return status;
}
