/* reduce.h - statistics of a dataset by segments or columns, through the ring: shared by `reduce` and the operations
 * that need statistics of a dataset.
 *
 * The elements selected are seen as [outer][n][inner]; each of the outer x inner results is the gm_total of n elements
 * (base/statistics.h). Results reach the operation as they are finished, on the rank that finished them, in any order:
 *
 *   segments   inner 1, a piece holds whole ones: finished by the I/O threads
 *   nodes      inner 1, longer ones: leaves fold on the main thread; a segment that several ranks share is finished by
 *              rank 0
 *   batches    inner > 1, a piece holds all n x inner elements of some outer indices
 *   columns    inner > 1, larger ones: a block of columns lives in device memory and is walked down; ranks share
 *              columns, or rows where that is exact and spares decoding chunks more than once
 *
 *   op.c       the operation: its output and report
 *   case.c     the command line: axis, statistics, types
 *   plan.c     pieces, slots, memory
 *   run.c      one rank's reduction: memory, ring, results that ranks share
 *   pieces.c   the pieces that go through the ring
 *   device.c   the stages of a piece
 */
#ifndef GM_SRC_REDUCE_REDUCE_H
#define GM_SRC_REDUCE_REDUCE_H

#include "base/range.h"
#include "base/statistics.h"
#include "io/dataset.h"
#include "src/job.h"
#include "src/progress.h"
#include "src/stream/ring_plan.h"

/* Results [first, first + count), on any thread, several at a time; at most GM_REDUCE_BATCH of them. */
enum { GM_REDUCE_BATCH = 4096 };
typedef int gm_reduce_visit(void *context, int64_t first, int64_t count, const gm_total *totals);

typedef struct gm_reduction {
    const gm_dataset *dataset;
    int64_t outer, n, inner;
    unsigned want; /* GM_WANT_... */
    gm_reduce_visit *visit;
    void *context; /* of visit */
} gm_reduction;

typedef enum gm_reduce_mode {
    GM_REDUCE_SEGMENTS,
    GM_REDUCE_NODES,
    GM_REDUCE_BATCHES,
    GM_REDUCE_COLUMNS
} gm_reduce_mode;

const char *gm_reduce_mode_name(gm_reduce_mode mode);

/* The same on all ranks. */
typedef struct gm_reduce_plan {
    gm_reduce_mode mode;
    int64_t units, unit; /* segments, nodes, outer indices, columns or rows, which ranks share in groups of `unit` */
    int by_rows;         /* columns of integers in chunks that are wider than a rank's columns: ranks share rows, totals
                            go to rank 0 */
    int64_t at_once;     /* segments, leaves or outer indices of a piece */
    int64_t rows, cols;  /* columns: of a piece */
    int64_t block;       /* columns: that live in device memory at a time */
    int64_t scratch;     /* columns: records for partial leaves */
    int64_t data;        /* bytes of a slot for elements: records follow them */
    int64_t out_at, out; /* what comes back lies in a slot from out_at on, out bytes at most */
    int64_t share;       /* elements (columns: rows) that one thread reads at least */
    int readers;         /* threads that read a piece together */
    gm_ring_plan ring;
} gm_reduce_plan;

/* The plan for one of the given number of ranks, which are alike. piece, depth: as --piece and --depth; 0: chosen.
 * Pure. GM_EDEVICE, without a message, and the budget that it needs, when this one does not do. */
int gm_reduce_plan_make(const gm_reduction *reduction, const gm_ring_budget *budget, int ranks, int64_t piece,
                        int64_t depth, gm_reduce_plan *plan, gm_ring_budget *need);

/* A rank's share of plan->units. Ranks without one are the last. */
gm_range gm_reduce_share(const gm_reduce_plan *plan, int ranks, int rank);

/* Bytes of the dataset that a share of the units holds. */
int64_t gm_reduce_bytes(const gm_reduction *reduction, const gm_reduce_plan *plan, gm_range share);

/* --- One rank's reduction --- */

typedef struct gm_reduce gm_reduce;

/* Opens the dataset, for threads that read it, and allocates the memory of the plan; reduction, plan and progress (may
 * be NULL) are lent until it is closed. Not collective. GM_EINPUT, GM_EDEVICE: *out is then NULL. */
int gm_reduce_open(gm_job *job, int threads, const gm_reduction *reduction, const gm_reduce_plan *plan,
                   gm_progress *progress, gm_reduce **out);
void gm_reduce_close(gm_reduce *reduce); /* takes NULL */

/* Runs it. Bytes and times go to job->report. Collective; all ranks return the same status. */
int gm_reduce_run_all(gm_reduce *reduce);

/* --- The operation --- */

/* The case of `reduce`: the same on all ranks. */
typedef struct gm_reduce_case {
    gm_dataset dataset;
    int64_t outer, n, inner;
    unsigned want;
    gm_statistic statistic[GM_STATISTICS];
    gm_dtype type[GM_STATISTICS]; /* of their datasets */
    int statistics;
    int propagate;             /* --nan propagate */
    int all;                   /* --axis all: results are printed */
    int writes;                /* ... and written, as all others */
    int rank;                  /* of the results */
    int64_t dims[GM_RANK_MAX]; /* of the results */
} gm_reduce_case;

/* Reads the command line for c->dataset, which is described already. Rank 0. GM_EUSAGE, GM_EINPUT. */
int gm_reduce_describe(const gm_options *options, gm_reduce_case *c);

#endif
