/* Data of bench: random, as a GPU that multiplies zeros draws less power and runs faster. */
#include "base/size.h"
#include "kernels/host.h"
#include "src/bench/bench.h"

#include <stdlib.h>
#include <string.h>

/* dst: [rows][ld] = rows [row, row + rows) of the matrix. */
static void make_rows(const gm_bench *bench, char *dst, const gm_bench_matrix *matrix, int64_t row, int64_t rows,
                      int64_t ld)
{
    int64_t cols = matrix->cols, part = gm_max(gm_ceil_div(cols, 64), 4096),
            parts = gm_ceil_div(cols, part); /* parts of a row: few rows may be long */
    size_t size = gm_dtype_size(matrix->type);
#pragma omp parallel for num_threads(bench->job->threads)
    for (int64_t i = 0; i < rows * parts; i++) {
        int64_t at = i % parts * part;
        gm_bench_elements(matrix, row + i / parts, at, gm_min(part, cols - at),
                          dst + (size_t)(i / parts * ld + at) * size);
    }
}

int gm_bench_fill(gm_bench *bench, void *dst, gm_dtype type, int64_t rows, int64_t cols, int64_t ld, uint64_t key)
{
    const gm_bench_matrix matrix = {.type = type, .cols = cols, .key = key};
    return gm_bench_fill_rows(bench, dst, &matrix, 0, rows, ld);
}

int gm_bench_fill_rows(gm_bench *bench, void *dst, const gm_bench_matrix *matrix, int64_t first, int64_t rows,
                       int64_t ld)
{
    int status = GM_OK;
    size_t size = gm_dtype_size(matrix->type), width = (size_t)matrix->cols * size, pitch = (size_t)ld * size;
    if (bench->ops->unified) {
        make_rows(bench, dst, matrix, first, rows, ld);
        return GM_OK;
    }
    int64_t most = (int64_t)(GM_BENCH_STAGING / width);
    if (most == 0)
        return gm_fail(GM_EINTERNAL, "bench: a row of %zu bytes exceeds the staging buffer", width);
    for (int64_t row = 0; row < rows && !status; row += most) {
        int64_t count = gm_min(most, rows - row);
        make_rows(bench, bench->staging, matrix, first + row, count, matrix->cols);
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
