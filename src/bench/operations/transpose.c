/* bench transpose - two axes swapped, for elements of each size, beside a copy of as many bytes. Without --shapes
 * the ladder of transpositions comes first (transpose_ladder.c). */
#include "kernels/move/calls.h"
#include "src/bench/lab/lab.h"
#include "src/bench/operations/moves.h"

#include <inttypes.h>

enum { MOST_ROWS = 32768, FRAMES = 128, COLUMNS = 512 };

/* Extents of [first][middle][second][inner]; the axes first and second are swapped. */
typedef enum form {
    SQUARE,       /* rows and columns, powers of two */
    ODD,          /* the same, no multiples of anything */
    ROWS_FIRST,   /* frames and rows of a stack: columns stay together */
    COLUMNS_FIRST /* frames and columns of a stack */
} form;

typedef struct variant {
    const char *name;
    form form;
    int64_t bytes;
} variant;

static const variant variants[] = {
    {"8 bytes", SQUARE, 8},          {"4 bytes", SQUARE, 4},
    {"2 bytes", SQUARE, 2},          {"1 byte", SQUARE, 1},
    {"odd, 8 bytes", ODD, 8},        {"odd, 4 bytes", ODD, 4},
    {"odd, 2 bytes", ODD, 2},        {"odd, 1 byte", ODD, 1},
    {"frames, rows", ROWS_FIRST, 4}, {"frames, columns", COLUMNS_FIRST, 4},
};

static gm_transpose_call make_call(const variant *v, int64_t size)
{
    int64_t elements = size / v->bytes, rows = 1;
    gm_transpose_call call = {.outer = 1, .middle = 1, .inner = 1, .bytes = v->bytes};
    while (4 * rows * rows <= elements && 2 * rows <= MOST_ROWS)
        rows *= 2;
    if (v->form == SQUARE || v->form == ODD) {
        call.first = v->form == ODD ? rows - 1 : rows;
        call.second = v->form == ODD ? rows - 3 : rows;
    } else if (v->form == ROWS_FIRST) {
        call.first = FRAMES;
        call.second = elements / FRAMES / COLUMNS;
        call.inner = COLUMNS;
    } else {
        call.first = FRAMES;
        call.middle = elements / FRAMES / COLUMNS;
        call.second = COLUMNS;
    }
    return call;
}

static int run(const gm_bench_move *move, gm_queue *queue, void *dst, const void *src)
{
    gm_transpose_call call = *(const gm_transpose_call *)move->call;
    call.src = src;
    call.dst = dst;
    return move->bench->ops->transpose(queue, &call);
}

static int64_t origin(const gm_bench_move *move, int64_t at)
{
    const gm_transpose_call *c = move->call;
    int64_t i = at % c->inner, a = at / c->inner % c->first, m = at / c->inner / c->first % c->middle,
            b = at / c->inner / c->first / c->middle;
    return ((a * c->middle + m) * c->second + b) * c->inner + i;
}

static int measure_size(gm_bench *bench, int64_t bytes)
{
    gm_bench_pair pair;
    int status = gm_bench_pair_open(bench, bytes, &pair);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0] && !status; v++) {
        gm_transpose_call call = make_call(&variants[v], bytes);
        gm_bench_move move = {.elements = call.first * call.middle * call.second * call.inner,
                              .bytes = call.bytes,
                              .run = run,
                              .origin = origin,
                              .bench = bench,
                              .call = &call};
        if (call.first < 1 || call.second < 1 || call.middle < 1)
            continue;
        snprintf(move.variant, sizeof move.variant, "%s", variants[v].name);
        snprintf(move.shape, sizeof move.shape, "%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, call.first, call.middle,
                 call.second, call.inner);
        status = gm_bench_moves_measure(&pair, &move);
    }
    gm_bench_pair_close(&pair);
    return status;
}

int gm_bench_transpose(gm_bench *bench)
{
    if (!bench->ops->transpose || !bench->measure->copy)
        return gm_bench_skip(bench, NULL);
    int status = bench->job->options->shapes ? GM_OK : gm_lab_transpose_ladder(bench);
    return status ? status : gm_bench_each_move_size(bench, measure_size);
}
