/* Data of bench: random matrices, as a GPU that multiplies zeros draws less power and runs faster, and the exact values
 * of a sample of their product. */
#include "base/memory.h"
#include "base/size.h"
#include "base/stop.h"
#include "kernels/host.h"
#include "src/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE = 1024, PARTS = 64 }; /* of the sampled rows and columns */

/* dst: [rows][ld] = rows [row, row + rows) of the dataset. */
static void make_rows(const gm_bench *bench, char *dst, gm_dtype type, int64_t row, int64_t rows, int64_t cols,
                      int64_t ld, uint64_t key)
{
    int64_t part = gm_max(gm_ceil_div(cols, 64), 4096),
            parts = gm_ceil_div(cols, part); /* parts of a row: few rows may be long */
    size_t size = gm_dtype_size(type);
#pragma omp parallel for num_threads(bench->job->threads)
    for (int64_t i = 0; i < rows * parts; i++) {
        int64_t at = i % parts * part;
        gm_cpu_random(dst + (size_t)(i / parts * ld + at) * size, type, 0, GM_DISTRIBUTION_UNIFORM, key,
                      (row + i / parts) * cols + at, gm_min(part, cols - at));
    }
}

int gm_bench_fill(gm_bench *bench, void *dst, gm_dtype type, int64_t rows, int64_t cols, int64_t ld, uint64_t key)
{
    return gm_bench_fill_rows(bench, dst, type, 0, rows, cols, ld, key);
}

int gm_bench_fill_rows(gm_bench *bench, void *dst, gm_dtype type, int64_t first, int64_t rows, int64_t cols, int64_t ld,
                       uint64_t key)
{
    int status = GM_OK;
    size_t width = (size_t)cols * gm_dtype_size(type), pitch = (size_t)ld * gm_dtype_size(type);
    if (bench->ops->unified) {
        make_rows(bench, dst, type, first, rows, cols, ld, key);
        return GM_OK;
    }
    int64_t most = (int64_t)(GM_BENCH_STAGING / width);
    if (most == 0)
        return gm_fail(GM_EINTERNAL, "bench: a row of %zu bytes exceeds the staging buffer", width);
    for (int64_t row = 0; row < rows && !status; row += most) {
        int64_t count = gm_min(most, rows - row);
        make_rows(bench, bench->staging, type, first + row, count, cols, cols, key);
        status = bench->ops->copy_in(bench->queue, (char *)dst + (size_t)row * pitch, pitch, bench->staging, width,
                                     width, count);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
    }
    return status;
}

int gm_bench_upload(gm_bench *bench, void *dst, const void *src, size_t bytes)
{
    int status = GM_OK;
    if (bench->ops->unified) {
        memcpy(dst, src, bytes);
        return GM_OK;
    }
    for (size_t at = 0, n; at < bytes && !status; at += n) {
        n = (size_t)gm_min((int64_t)(bytes - at), GM_BENCH_STAGING);
        memcpy(bench->staging, (const char *)src + at, n);
        status = bench->ops->copy_in(bench->queue, (char *)dst + at, n, bench->staging, n, n, 1);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
    }
    return status;
}

int gm_bench_download(gm_bench *bench, void *dst, const void *src, size_t bytes)
{
    int status = GM_OK;
    if (bench->ops->unified) {
        status = bench->ops->queue_sync(bench->queue);
        memcpy(dst, src, bytes);
        return status;
    }
    for (size_t at = 0, n; at < bytes && !status; at += n) {
        n = (size_t)gm_min((int64_t)(bytes - at), GM_BENCH_STAGING);
        status = bench->ops->copy_out(bench->queue, bench->staging, n, (const char *)src + at, n, n, 1);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
        if (!status)
            memcpy((char *)dst + at, bench->staging, n);
    }
    return status;
}

/* Element i of the dataset `key`, as gm_bench_fill() makes it. */
static double element(gm_dtype type, uint64_t key, int64_t i)
{
    union {
        float f32;
        double f64;
    } value;
    gm_cpu_random(&value, type, 0, GM_DISTRIBUTION_UNIFORM, key, i, 1);
    return type == GM_DTYPE_F32 ? (double)value.f32 : value.f64;
}

/* The sampled indices below n, ascending. Returns their number; *out is NULL without memory. */
static int64_t choose(int64_t n, int all, uint64_t key, int64_t **out)
{
    int64_t count = all ? n : gm_min(n, PARTS);
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
    *sample = (gm_bench_sample){0};
}

int gm_bench_sample_make(gm_bench *bench, const gm_bench_factors *f, int whole, gm_bench_sample *sample)
{
    void *a = NULL, *b = NULL, *exact = NULL;
    int all = whole && f->m <= WHOLE && f->n <= WHOLE && !bench->is_brief;
    *sample = (gm_bench_sample){.m = f->m, .n = f->n, .k = f->k};
    sample->rows = choose(f->m, all, f->key_a + f->key_b, &sample->row);
    sample->cols = choose(f->n, all, f->key_a - f->key_b, &sample->col);
    int status = sample->row && sample->col ? GM_OK : gm_fail(GM_EDEVICE, "no memory for a sample");
    if (!status)
        status = gm_host_alloc((size_t)(sample->rows * f->k) * sizeof(double), &a);
    if (!status)
        status = gm_host_alloc((size_t)(sample->cols * f->k) * sizeof(double), &b);
    if (!status)
        status = gm_host_alloc((size_t)(sample->rows * sample->cols) * sizeof(double), &exact);
    sample->exact = exact;
    if (status)
        goto out;
#pragma omp parallel for num_threads(bench->job->threads)
    for (int64_t i = 0; i < sample->rows; i++)
        for (int64_t l = 0; l < f->k; l++)
            ((double *)a)[i * f->k + l] = element(f->type, f->key_a, (f->first + sample->row[i]) * f->k + l);
#pragma omp parallel for num_threads(bench->job->threads)
    for (int64_t l = 0; l < f->k; l++)
        for (int64_t j = 0; j < sample->cols; j++)
            ((double *)b)[l * sample->cols + j] = element(f->type, f->key_b, l * f->n + sample->col[j]);
    gm_cpu_reference(bench->job->threads, sample->rows, sample->cols, f->k, a, b, sample->exact);
    status = gm_stop_status();
out:
    gm_host_free(b);
    gm_host_free(a);
    return status;
}

int gm_bench_sample_compare(gm_bench *bench, const gm_bench_sample *sample, const void *c, gm_dtype type, int64_t ld,
                            double *max_error, double *mean_error)
{
    size_t size = gm_dtype_size(type), width = (size_t)sample->n * size;
    double sum = 0, most = 0;
    void *row = NULL;
    int status = bench->ops->host_alloc(bench->device, width, &row);
    for (int64_t i = 0; i < sample->rows && !status; i++) {
        const char *from = (const char *)c + (size_t)(sample->row[i] * ld) * size;
        status = bench->ops->copy_out(bench->queue, row, width, from, width, width, 1);
        if (!status)
            status = bench->ops->queue_sync(bench->queue);
        for (int64_t j = 0; j < sample->cols && !status; j++) {
            double got = type == GM_DTYPE_F32 ? (double)((float *)row)[sample->col[j]]
                                              : ((double *)row)[sample->col[j]];
            double right = sample->exact[i * sample->cols + j], error = fabs(got - right) / (right > 0 ? right : 1);
            error = isnan(error) ? INFINITY : error;
            most = fmax(most, error);
            sum += error;
        }
    }
    *max_error = most;
    *mean_error = sum / (double)(sample->rows * sample->cols);
    bench->ops->host_free(bench->device, row);
    return status;
}

enum { PAIR_ROW = 4096 }; /* bytes */

int gm_bench_pair_open(gm_bench *bench, int64_t size, gm_bench_pair *pair)
{
    *pair = (gm_bench_pair){.bench = bench, .size = size, .key = gm_random_key(1, 2)};
    int status = bench->ops->alloc(bench->device, (size_t)size, &pair->src);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)size, &pair->dst);
    if (!status)
        status = gm_bench_fill(bench, pair->src, GM_DTYPE_U64, size / PAIR_ROW, PAIR_ROW / 8, PAIR_ROW / 8, pair->key);
    return status;
}

void gm_bench_pair_close(gm_bench_pair *pair)
{
    pair->bench->ops->free(pair->bench->device, pair->dst);
    pair->bench->ops->free(pair->bench->device, pair->src);
}

void gm_bench_pair_source(const gm_bench_pair *pair, int64_t from, int64_t bytes, void *dst)
{
    uint64_t words[64];
    for (int64_t done = 0, n; done < bytes; done += n) {
        int64_t first = (from + done) / 8, skip = (from + done) % 8;
        n = gm_min(bytes - done, (int64_t)sizeof words - 8);
        gm_cpu_random(words, GM_DTYPE_U64, 0, GM_DISTRIBUTION_UNIFORM, pair->key, first, (skip + n + 7) / 8);
        memcpy((char *)dst + done, (const char *)words + skip, (size_t)n);
    }
}
