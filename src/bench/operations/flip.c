/* bench flip - the rows or the columns of a matrix in the opposite order, beside a copy of as many bytes. */
#include "kernels/move/calls.h"
#include "src/bench/operations/moves.h"

#include <inttypes.h>

enum { COLUMNS = 4096 };

typedef struct variant {
    const char *name;
    int64_t bytes, inner; /* 1: columns change places; else whole rows of as many elements */
    int64_t less;         /* rows: no multiples of anything */
} variant;

static const variant variants[] = {
    {"columns, 8 bytes", 8, 1, 0},    {"columns, 4 bytes", 4, 1, 0},     {"columns, 2 bytes", 2, 1, 0},
    {"columns, 1 byte", 1, 1, 0},     {"odd columns, 4 bytes", 4, 1, 3}, {"odd columns, 1 byte", 1, 1, 3},
    {"rows, 4 bytes", 4, COLUMNS, 0},
};

static gm_flip_call make_call(const variant *v, int64_t size)
{
    int64_t elements = size / v->bytes, cols = COLUMNS - v->less;
    return v->inner == 1
               ? (gm_flip_call){.outer = elements / cols, .rows = cols, .inner = 1, .bytes = v->bytes}
               : (gm_flip_call){.outer = 1, .rows = elements / v->inner, .inner = v->inner, .bytes = v->bytes};
}

static int run(const gm_bench_move *move, gm_queue *queue, void *dst, const void *src)
{
    gm_flip_call call = *(const gm_flip_call *)move->call;
    call.src = src;
    call.dst = dst;
    return move->bench->ops->flip(queue, &call);
}

static int64_t origin(const gm_bench_move *move, int64_t at)
{
    const gm_flip_call *c = move->call;
    int64_t i = at % c->inner, r = at / c->inner % c->rows, o = at / c->inner / c->rows;
    return (o * c->rows + c->rows - 1 - r) * c->inner + i;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    gm_bench_pair pair;
    int status = gm_bench_pair_open(bench, bytes, &pair);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0] && !status; v++) {
        gm_flip_call call = make_call(&variants[v], bytes);
        gm_bench_move move = {.elements = call.outer * call.rows * call.inner,
                              .bytes = call.bytes,
                              .run = run,
                              .origin = origin,
                              .bench = bench,
                              .call = &call};
        snprintf(move.variant, sizeof move.variant, "%s", variants[v].name);
        snprintf(move.shape, sizeof move.shape, "%" PRId64 "x%" PRId64 "x%" PRId64, call.outer, call.rows, call.inner);
        status = gm_bench_moves_measure(&pair, &move);
    }
    gm_bench_pair_close(&pair);
    return status;
}

int gm_bench_flip(gm_bench *bench)
{
    return bench->ops->flip && bench->measure->copy ? gm_bench_each_move_size(bench, measure_size)
                                                    : gm_bench_skip(bench, NULL);
}
