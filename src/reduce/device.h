/* device.h - inside a reduction: the state of one rank's reduction, its pieces, their stages. */
#ifndef GM_SRC_REDUCE_DEVICE_H
#define GM_SRC_REDUCE_DEVICE_H

#include "io/read/reader.h"
#include "src/stream/pool.h"
#include "src/reduce/reduce.h"
#include "src/stream/stream.h"

enum {
    GM_REDUCE_ELEMENTS,
    GM_REDUCE_RESULTS, /* totals of columns */
    GM_REDUCE_RECEIVE  /* another rank's */
};                     /* kinds of pieces */

/* A node of a segment that other ranks have nodes of as well. */
typedef struct gm_reduce_node {
    int64_t index; /* counted over all segments */
    gm_total total;
} gm_reduce_node;

struct gm_reduce {
    gm_job *job;
    int threads; /* that read */
    const gm_reduction *r;
    const gm_reduce_plan *plan;
    gm_dtype type;
    gm_dtype_kind kind;
    int64_t size, leaf;    /* bytes of an element, elements of a leaf */
    int64_t leaves, nodes; /* of a segment */
    gm_reader *reader;
    gm_stream *stream;
    gm_pool pool;
    gm_progress *progress; /* or NULL */
    int64_t begin, end;    /* this rank's units */
    int64_t at; /* the next piece: segment, leaf over all, outer index; columns: first column of the block, over all */
    /* nodes */
    gm_total node, segment;
    gm_reduce_node *cut; /* [cut_most] */
    int64_t cut_count, cut_most;
    /* columns */
    int64_t row0, row1, col1; /* this rank's rows, end of its columns */
    int64_t row, col;         /* next rectangle; col is in the block; row1: results */
    int sharers, peer;        /* by_rows: ranks that have a share; whose results come next */
    gm_total *merged;         /* by_rows, rank 0: results of a piece */
    gm_moments *open, *scratch;
    gm_total *total;
    gm_event *released; /* totals of the last block are copied */
    int block_used;
};

/* Is the segment wholly this rank's? */
int gm_reduce_is_own(const gm_reduce *p, int64_t segment);

int gm_reduce_next(void *context, gm_piece *piece, int *more);
void gm_reduce_program(gm_reduce *p, gm_program *program);

#endif
