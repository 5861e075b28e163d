/* moves.h - tests of operations that move elements (transpose, flip, gather), beside a copy of as many bytes. */
#ifndef GM_SRC_BENCH_OPERATIONS_MOVES_H
#define GM_SRC_BENCH_OPERATIONS_MOVES_H

#include "src/bench/bench.h"

/* A move: element `at` of the result, of `bytes` bytes, is the element number origin(at) of the source. */
typedef struct gm_bench_move {
    char variant[GM_BENCH_TEXT], shape[GM_BENCH_TEXT];
    int64_t elements, bytes;
    int64_t more; /* bytes that are moved besides: of indices */
    int (*run)(const struct gm_bench_move *move, gm_queue *queue, void *dst, const void *src);
    int64_t (*origin)(const struct gm_bench_move *move, int64_t at);
    const gm_bench *bench;
    const void *call; /* of the test */
} gm_bench_move;

/* Sizes as gm_bench_each_size() takes them: the largest of one buffer, at most 8 GiB on a GPU and 64 MiB on a
 * processor. */
int gm_bench_each_move_size(gm_bench *bench, int (*measure)(gm_bench *bench, int64_t bytes));

/* Times a move and a copy of as many bytes in each cache state, checks blocks of the result, adds the rows. The copy is
 * the limit. GM_ECHECK if an element is wrong. Collective. */
int gm_bench_moves_measure(const gm_bench_pair *pair, const gm_bench_move *move);

#endif
