/* normalize.h - the parts of the operation normalize: what is asked for (a case), how it is cut up (a plan), and this rank's passes over the stack.
 *
 * The stack is a matrix: a row is a frame, a column a pixel (gm_dataset_matrix). A rank has a rectangle of it, and goes through that in pieces: once for
 * the statistics (several times for percentiles of wide types), once to apply them. When it fits the memory of the device, the rank's rectangle
 * stays there, piece by piece, and only the first pass reads the file. */
#ifndef GM_SRC_NORMALIZE_H
#define GM_SRC_NORMALIZE_H

#include "base/statistics.h"
#include "io/output.h"
#include "io/reader.h"
#include "src/job.h"
#include "src/progress.h"
#include "src/stream.h"

enum { GM_NORMALIZE_STAGING = 4096 /* columns whose statistics are fetched at a time */ };

typedef enum gm_method { GM_MINMAX, GM_ZSCORE, GM_SCALE, GM_PERCENTILE, GM_FLATFIELD, GM_METHODS } gm_method;
typedef enum gm_per { GM_PER_STACK, GM_PER_FRAME, GM_PER_PIXEL, GM_PERS } gm_per;

/* What is asked for; the same on all ranks. */
typedef struct gm_normalize_case {
    gm_method method;
    gm_per per;
    gm_rounding rounding;
    int log;
    int wide;           /* float64 arithmetic */
    gm_dtype type;      /* of the output */
    double lo, hi;      /* where minmax and percentile lead to; for the others the limits, infinite for none */
    double sub, factor; /* scale */
    double percent[2];  /* percentile */
    int64_t rows, cols; /* frames, pixels */
    int has_dark;
    int by_rows;        /* statistics of pixels: ranks share frames nevertheless, see gm_normalize_by_rows_all() */
    union {
        gm_dataset input[3];
        struct {
            gm_dataset src, flat, dark;
        };
    };
} gm_normalize_case;

const char *gm_method_name(gm_method method);
const char *gm_per_name(gm_per per);

/* Reads the command line and describes the datasets. Rank 0. GM_EUSAGE, GM_EINPUT. */
int gm_normalize_describe(const gm_job *job, gm_normalize_case *c);

/* A rank's share, in pieces of one size. */
typedef struct gm_normalize_plan {
    int64_t row, rows, col, cols; /* the rectangle */
    int flat;                     /* its elements are taken as one row (rows = 1, col counts elements of the stack): leaves do not end with frames */
    int64_t piece_rows, piece_cols;
    int64_t block_cols;           /* pieces go down the rows of so many columns, then of the next ones; a multiple of piece_cols, or all */
    int64_t in_bytes, out_bytes;  /* of a slot: elements read, at its start; room for the result or the records of a pass, behind them */
    int64_t depth;
    int readers;                  /* threads that read a piece together */
    int64_t share_rows, share;    /* what one of them reads at least: rows, or elements of a piece that is a range of the stack's */
    int64_t entries;              /* numbers to subtract and multiply by: one, or one a row or a column of the rectangle */
    /* Percentiles: bits of a digit, digits of a key, prefixes that are told apart, frames whose counts there is room for (of a stack: 1), bytes. */
    int digit, levels, prefixes;
    int64_t batch_rows, count_bytes, prefix_bytes;
    int keep;                     /* the rectangle stays on the device after the first pass */
    int passes;                   /* over the rectangle, the last one included */
    int64_t device_bytes, host_bytes; /* of all this; a device that addresses host memory has them in host_bytes alone */
} gm_normalize_plan;

/* Decides on c->by_rows: where each chunk has pixels of several ranks' shares, all would decode it. Then they share frames and merge what they know of each
 * pixel, if that does not depend on order and all have memory for all pixels at once. Collective. */
int gm_normalize_by_rows_all(const gm_job *job, gm_normalize_case *c);

/* Makes the share of this rank's job->ranks and pieces of it. GM_EDEVICE, with the number that would do, when memory does not suffice. Not collective. */
int gm_normalize_plan_make(const gm_job *job, const gm_normalize_case *c, gm_normalize_plan *plan);

/* Pieces of the rectangle. */
int64_t gm_normalize_pieces(const gm_normalize_plan *plan);

/* Records that the pass of gm_normalize_moments_all() makes of so many elements: each frame's leaves, or those of all elements as one row. */
int64_t gm_normalize_records(const gm_normalize_case *c, int64_t rows, int64_t cols);

/* Piece number `step` of the rectangle: where it is, and its shape. */
void gm_normalize_place(const gm_normalize_plan *plan, int64_t step, gm_piece *piece);

typedef struct gm_normalize {
    gm_job *job;
    const gm_normalize_case *problem;
    gm_normalize_plan plan;
    gm_reader *reader;
    gm_output *output;
    gm_stream *stream;
    gm_progress *progress;
    void *kept;          /* device memory: the rectangle, piece after piece, in_bytes each; NULL: not kept */
    int64_t filled;      /* pieces that are there, from the first on */
    void *host_scale;    /* pinned: [2][entries] of the arithmetic's type, sub and factor */
    void *scale;         /* its twin on the device; host_scale itself on a device that addresses host memory */
    gm_normalize_counts *counts; /* device memory */
    int64_t at, end;     /* pieces of this pass: the next one, and where it ends */
    void *pass;          /* what the callbacks of a pass are given */
} gm_normalize;

/* A pass over pieces [begin, end) of the rectangle: fills in the program's reading of pieces; gm_normalize_next() is its `next` (stages: those behind
 * GM_STAGE_TO_DEVICE; more_bytes: what a piece moves beside reading, for each element), and gm_normalize_elements() is where a piece's elements are on the
 * device. Callbacks get p, whose `pass` is the context of gm_normalize_run(). */
void gm_normalize_begin(gm_normalize *p, gm_program *program, int64_t begin, int64_t end);
int gm_normalize_next(gm_normalize *p, gm_piece *piece, int *more, unsigned stages, int64_t more_bytes);
const void *gm_normalize_elements(const gm_normalize *p, const gm_piece *piece, const gm_slot_memory *slot);
int gm_normalize_run(gm_normalize *p, gm_program *program, void *context); /* not collective */

/* What entry i subtracts and multiplies by: factor = top / span in float64, rounded once. A span of 0 marks it, one that is NaN makes everything NaN. Returns
 * whether it is marked. */
int gm_normalize_set(gm_normalize *p, int64_t i, double sub, double span, double top);

/* What is known of the columns of the rectangle, one after the other. want: GM_WANT_... Not collective. */
typedef void gm_normalize_column(void *context, int64_t column, const gm_total *total);
int gm_normalize_columns(gm_normalize *p, unsigned want, gm_normalize_column *visit, void *context);

/* Each fills in p's host_scale. *constant: entries that are marked, of all ranks. Collective. */
int gm_normalize_moments_all(gm_normalize *p, int64_t *constant);     /* minmax and zscore */
int gm_normalize_percentiles_all(gm_normalize *p, int64_t *constant); /* percentile */
int gm_normalize_flatfield_all(gm_normalize *p);                      /* flatfield: reads flat and dark; before the ring is opened */

/* The last pass: elements to the output. Not collective. Counts what it did in *counts. */
int gm_normalize_apply(gm_normalize *p, gm_normalize_counts *counts);

#endif
