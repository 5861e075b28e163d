/* bench gather - rows by their numbers, and numbers from one and two indices, beside a copy of as many bytes. */
#include "kernels/lab/lab_ops.h"
#include "kernels/move/calls.h"
#include "src/bench/operations/moves.h"

#include "base/memory.h"
#include "base/size.h"

#include <inttypes.h>

enum {
    COLUMNS = 256,       /* extent of the second of two indices */
    MOST_ROWS = 1 << 27, /* whose numbers are made in a second */
};

/* Rows of `bytes` bytes: those of a permutation without order, or in their order. */
typedef struct variant {
    const char *name;
    int64_t bytes;
    int in_order, indices; /* indices 0: the numbers are there */
} variant;

static const variant variants[] = {
    {"in order", 4, 1, 0},  {"random", 4, 0, 0},    {"random", 8, 0, 0},      {"random", 32, 0, 0},
    {"random", 128, 0, 0},  {"random", 512, 0, 0},  {"random", 4096, 0, 0},   {"1 index", 4, 0, 1},
    {"2 indices", 4, 0, 2}, {"1 index", 512, 0, 1}, {"2 indices", 512, 0, 2},
};

/* The data of a variant. */
typedef struct gathering {
    const variant *variant;
    int64_t rows;    /* a power of two */
    void *index[2];  /* [rows] U32, device memory */
    int64_t *number; /* [rows], device memory */
    int64_t *bad;    /* device memory */
} gathering;

static int64_t number_of(const gathering *g, int64_t at)
{
    return g->variant->in_order ? at : gm_lab_permuted(at, g->rows);
}

static int make_numbers(const gathering *g, gm_queue *queue, const gm_bench *bench)
{
    int status = GM_OK;
    for (int i = 0; i < g->variant->indices && !status; i++) {
        gm_index_rows_call call = {.count = g->rows,
                                   .extent = g->variant->indices == 1 ? g->rows
                                             : i == 0                 ? g->rows / COLUMNS
                                                                      : COLUMNS,
                                   .adds = i > 0,
                                   .type = GM_DTYPE_U32,
                                   .index = g->index[i],
                                   .rows = g->number,
                                   .bad = g->bad};
        status = bench->ops->index_rows(queue, &call);
    }
    return status;
}

static int run(const gm_bench_move *move, gm_queue *queue, void *dst, const void *src)
{
    const gathering *g = move->call;
    int64_t bytes = g->variant->bytes;
    gm_gather_call call = {.count = g->rows,
                           .rows = g->rows,
                           .bytes = bytes,
                           .index = g->number,
                           .from = src,
                           .to = dst,
                           .from_pitch = bytes,
                           .to_pitch = bytes};
    int status = make_numbers(g, queue, move->bench);
    return status ? status : move->bench->ops->gather(queue, &call);
}

static int64_t origin(const gm_bench_move *move, int64_t at)
{
    return number_of(move->call, at);
}

/* Uploads numbers[i], or index i of them, in elements of 8 or 4 bytes. */
static int upload(gm_bench *bench, const gathering *g, int index, void *dst)
{
    int64_t each = g->variant->indices ? 4 : 8;
    void *host = NULL;
    int status = gm_host_alloc((size_t)(g->rows * each), &host);
    for (int64_t i = 0; i < g->rows && !status; i++) {
        int64_t number = number_of(g, i);
        if (each == 8)
            ((int64_t *)host)[i] = number;
        else
            ((uint32_t *)host)[i] = (uint32_t)(g->variant->indices == 1 ? number
                                               : index == 0             ? number / COLUMNS
                                                                        : number % COLUMNS);
    }
    if (!status)
        status = gm_bench_upload(bench, dst, host, (size_t)(g->rows * each));
    gm_host_free(host);
    return status;
}

static int prepare(gm_bench *bench, gathering *g)
{
    const gm_device_ops *ops = bench->ops;
    int status = ops->alloc(bench->device, (size_t)g->rows * sizeof *g->number, (void **)&g->number);
    if (!status)
        status = ops->alloc(bench->device, sizeof *g->bad, (void **)&g->bad);
    if (!status)
        status = ops->zero(bench->queue, g->bad, sizeof *g->bad);
    for (int i = 0; i < g->variant->indices && !status; i++) {
        status = ops->alloc(bench->device, (size_t)g->rows * sizeof(uint32_t), &g->index[i]);
        if (!status)
            status = upload(bench, g, i, g->index[i]);
    }
    return status || g->variant->indices > 0 ? status : upload(bench, g, 0, g->number);
}

static void release(gm_bench *bench, gathering *g)
{
    bench->ops->free(bench->device, g->index[1]);
    bench->ops->free(bench->device, g->index[0]);
    bench->ops->free(bench->device, g->bad);
    bench->ops->free(bench->device, g->number);
}

/* Bytes of the numbers and indices that a row takes: each index is read, the number written, and read. */
static int64_t more_of(const variant *v)
{
    return v->indices == 0 ? 8 : v->indices * (4 + 8) + (v->indices - 1) * 8 + 8;
}

/* Rows of a variant for which the buffers of a size and the numbers have room. */
static int64_t rows_of(const gm_bench *bench, const variant *v, int64_t size)
{
    int64_t most = gm_min(gm_min(size / v->bytes, gm_bench_room(bench) / (2 * 8 + 2 * 4)), (int64_t)MOST_ROWS),
            rows = 1;
    while (2 * rows <= most)
        rows *= 2;
    return rows;
}

static int measure_variant(const gm_bench_pair *pair, const variant *v)
{
    gm_bench *bench = pair->bench;
    gathering g = {.variant = v, .rows = rows_of(bench, v, pair->size)};
    gm_bench_move move = {.elements = g.rows,
                          .bytes = v->bytes,
                          .more = g.rows * more_of(v),
                          .run = run,
                          .origin = origin,
                          .bench = bench,
                          .call = &g};
    if (g.rows < COLUMNS && v->indices == 2)
        return GM_OK;
    snprintf(move.variant, sizeof move.variant, "%s", v->name);
    snprintf(move.shape, sizeof move.shape, "%" PRId64 " rows of %" PRId64 " B", g.rows, v->bytes);
    int status = prepare(bench, &g);
    if (!status)
        status = gm_bench_moves_measure(pair, &move);
    release(bench, &g);
    return status;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    gm_bench_pair pair;
    int status = gm_bench_pair_open(bench, bytes, &pair);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0] && !status; v++)
        status = measure_variant(&pair, &variants[v]);
    gm_bench_pair_close(&pair);
    return status;
}

int gm_bench_gather(gm_bench *bench)
{
    return bench->ops->gather && bench->ops->index_rows && bench->measure->copy
               ? gm_bench_each_move_size(bench, measure_size)
               : gm_bench_skip(bench, NULL);
}
