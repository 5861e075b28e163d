/* reduce.h - statistics of a dataset by segments or columns, through the ring: what `reduce` and other operations share that need them.
 *
 * The elements selected are seen as [outer][n][inner]; each of the outer x inner results is the gm_total of n elements (base/statistics.h).
 * Results reach the operation as they are finished, on the rank that finished them, in any order:
 *
 *   segments   inner 1, a piece holds whole ones: finished by the I/O threads
 *   nodes      inner 1, longer ones: leaves fold on the main thread; a segment that several ranks share is finished by rank 0
 *   batches    inner > 1, a piece holds all n x inner elements of some outer indices
 *   columns    inner > 1, larger ones: a block of columns lives in device memory and is walked down; ranks share columns, or rows where that is
 *              exact and spares decoding chunks more than once
 */
#ifndef GM_SRC_REDUCE_H
#define GM_SRC_REDUCE_H

#include "base/statistics.h"
#include "io/dataset.h"
#include "src/job.h"
#include "src/stream.h"

/* Results [first, first + count), on any thread, several at a time; at most GM_REDUCE_BATCH of them. */
enum { GM_REDUCE_BATCH = 4096 };
typedef int gm_reduce_visit(void *context, int64_t first, int64_t count, const gm_total *totals);

/* What a piece holds while it is on the device: rows x cols elements, contiguous, in file bytes; row i is elements
 * [first + i * row_step, ... + cols) of the selection in C order. */
typedef struct gm_reduce_cover {
    int64_t first, rows, cols, row_step;
} gm_reduce_cover;

/* Enqueues what else is to be done with a piece on the device. Main thread. */
typedef int gm_reduce_touch(void *context, const gm_reduce_cover *cover, const void *device, gm_queue *queue);

typedef struct gm_reduction {
    const gm_dataset *dataset;
    int64_t outer, n, inner;
    unsigned want; /* GM_WANT_... */
    gm_reduce_visit *visit;
    gm_reduce_touch *touch; /* may be NULL */
    void *context;          /* of both */
} gm_reduction;

typedef enum gm_reduce_mode { GM_REDUCE_SEGMENTS, GM_REDUCE_NODES, GM_REDUCE_BATCHES, GM_REDUCE_COLUMNS } gm_reduce_mode;

/* The same on all ranks. */
typedef struct gm_reduce_plan {
    gm_reduce_mode mode;
    int64_t units, unit; /* shared out among ranks, in groups of `unit`: segments, nodes, outer indices, columns; or rows: */
    int by_rows;         /* columns of integers in chunks that are wider than a rank's columns: totals go to rank 0 */
    int64_t at_once;     /* segments, leaves or outer indices of a piece */
    int64_t rows, cols;  /* columns: of a piece */
    int64_t block;       /* columns: that live in device memory at a time */
    int64_t scratch;     /* columns: records for partial leaves */
    int64_t slot, depth; /* bytes, number */
    int64_t data;        /* bytes of a slot for elements: records lie behind them */
    int64_t share;       /* elements (columns: rows) that one thread reads at least */
    int readers;         /* threads that read a piece together */
    int64_t host_bytes, device_bytes; /* of a rank */
} gm_reduce_plan;

/* The axis as --axis names it: "all", "frame", "pixel", "vector" or a number. Fills in outer, n and inner, and the shape of the results (dims has room for
 * GM_RANK_MAX). GM_EUSAGE: no such axis in this dataset. */
int gm_reduce_axis(const gm_dataset *dataset, const char *axis, gm_reduction *reduction, int *rank, int64_t *dims);

const char *gm_reduce_mode_name(gm_reduce_mode mode);

/* This rank's share of plan->units. Ranks without one are the last. */
void gm_reduce_share(const gm_reduce_plan *plan, const gm_ranks *ranks, int64_t *begin, int64_t *end);

/* Makes the plan within what the poorest rank may use beside extra_host and extra_device bytes. GM_EDEVICE with the number that would do. Collective. */
int gm_reduce_plan_all(const gm_job *job, const gm_reduction *reduction, int64_t extra_host, int64_t extra_device, gm_reduce_plan *plan);

/* Runs it. Bytes and times go to job->report. Collective; all ranks return the same status. */
int gm_reduce_run_all(gm_job *job, const gm_reduction *reduction, const gm_reduce_plan *plan, const char *what);

#endif
