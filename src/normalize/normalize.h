/* normalize.h - the parts of the operation normalize: the case, the plan, and this rank's passes over the stack.
 *
 * The stack is a matrix: a row is a frame, a column a pixel (gm_dataset_matrix). A rank has a rectangle of it, and goes
 * through that in pieces: once for the statistics (several times for percentiles of wide types), once to apply them.
 * When it fits the memory of the device, the rank's rectangle stays there, piece by piece, and only the first pass
 * reads the file.
 *
 *   op.c           the operation: its output and report
 *   case.c         the command line
 *   plan.c         shares, pieces, memory
 *   pieces.c       the pieces of a pass
 *   device.c       the stages of a piece, and the last pass
 *   moments.c      statistics for minmax and zscore
 *   percentile.c   statistics for percentile
 *   field.c        flat and dark fields
 */
#ifndef GM_SRC_NORMALIZE_NORMALIZE_H
#define GM_SRC_NORMALIZE_NORMALIZE_H

#include "base/range.h"
#include "base/statistics.h"
#include "io/read/reader.h"
#include "io/write/output.h"
#include "kernels/normalize/calls.h"
#include "src/job.h"
#include "src/stream/pool.h"
#include "src/progress.h"
#include "src/reduce/reduce.h"
#include "src/stream/ring_plan.h"
#include "src/stream/stream.h"

enum {
    GM_NORMALIZE_STAGING = 4096, /* columns whose statistics are fetched at a time */
    GM_NORMALIZE_EXCHANGE = 8192 /* pixels of a field that ranks exchange at a time */
};

typedef enum gm_method { GM_MINMAX, GM_ZSCORE, GM_SCALE, GM_PERCENTILE, GM_FLATFIELD, GM_METHODS } gm_method;
typedef enum gm_per { GM_PER_STACK, GM_PER_FRAME, GM_PER_PIXEL, GM_PERS } gm_per;

/* The case: the same on all ranks. */
typedef struct gm_normalize_case {
    gm_method method;
    gm_per per;
    gm_rounding rounding;
    int log;
    int wide;           /* float64 arithmetic */
    int widens;         /* float32 arithmetic, or float64 if the ends of a range are further apart than float32 goes */
    gm_dtype type;      /* of the output */
    double lo, hi;      /* the target of minmax and percentile; otherwise the limits, infinite for none */
    double sub, factor; /* scale */
    double percent[2];  /* percentile */
    int64_t rows, cols; /* frames, pixels */
    int has_dark;
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

/* Has the device of the job what the method needs? GM_EDEVICE. */
int gm_normalize_check_device(const gm_job *job, const gm_normalize_case *c);

/* A rank's share, in pieces of one size. */
typedef struct gm_normalize_plan {
    int64_t row, rows, col, cols; /* the rectangle */
    int as_row;  /* its elements are one row (rows = 1, col counts elements of the stack): leaves do not end with
                    frames */
    int by_rows; /* statistics of pixels: ranks share frames, and merge their statistics of each pixel */
    int64_t piece_rows, piece_cols;
    int64_t block_cols; /* pieces go down the rows of this number of columns, then of the next ones; a multiple of
                           piece_cols, or all */
    int64_t in_bytes;   /* of a slot: elements read, at its start */
    int64_t out_bytes;  /* of a slot: the result, or the records of a pass, after them */
    int readers;        /* threads that read a piece together */
    int64_t share_rows; /* rows that one of them reads at least */
    int64_t share;      /* elements that one of them reads at least of a piece that is a range of the stack's */
    int64_t entries;    /* numbers to subtract and multiply by: one, or one a row or a column of the rectangle */
    /* Percentiles: bits of a digit, digits of a key, prefixes that are counted separately, frames whose counts there is
     * room for (of a stack: 1), bytes. */
    int digit, levels, prefixes;
    int64_t batch_rows, count_bytes, prefix_bytes;
    int keep;                /* the rectangle stays on the device after the first pass */
    int passes;              /* over the rectangle, the last one included */
    gm_reduce_plan field[2]; /* flatfield: the means of the flat and the dark field */
    int64_t field_spare[2];  /* optional host memory meanwhile (gm_memory_set_optional) */
    gm_ring_plan ring;
} gm_normalize_plan;

/* The reduction of a field of the case (0: flat, 1: dark) to the means of its frames; visit and context are the
 * caller's. */
gm_reduction gm_normalize_field(const gm_normalize_case *c, int index);

/* Plans the share of a rank of the given number. piece, depth: as --piece and --depth; 0: chosen. Pure.
 * GM_EDEVICE, without a message, and the budget that it needs, when this one does not do. */
int gm_normalize_plan_make(const gm_normalize_case *c, const gm_ring_budget *budget, int ranks, int rank, int64_t piece,
                           int64_t depth, gm_normalize_plan *plan, gm_ring_budget *need);

/* Bytes that a plan reads of the stack. */
int64_t gm_normalize_bytes_read(const gm_normalize_case *c, const gm_normalize_plan *plan);

/* Pieces of the rectangle. */
int64_t gm_normalize_pieces(const gm_normalize_plan *plan);

/* Records that the pass of gm_normalize_moments_all() makes of rows x cols elements: each frame's leaves, or those of
 * all elements as one row. */
int64_t gm_normalize_records(const gm_normalize_case *c, int64_t rows, int64_t cols);

/* The most totals that a rank sends to rank 0 for statistics of the stack: those of its nodes, if the sums of its
 * floats depend on their order (as_row), or one. */
int64_t gm_normalize_nodes(const gm_normalize_case *c, int as_row, int ranks);

typedef struct gm_normalize {
    gm_job *job;
    int threads; /* that read and write */
    const gm_normalize_case *c;
    gm_normalize_plan plan;
    gm_reader *reader;
    gm_output *output;
    gm_stream *stream;
    void *kept;                  /* device memory: the rectangle, piece after piece, in_bytes each; NULL: not kept */
    int64_t filled;              /* pieces that are there, from the first on */
    int wide;                    /* float64 arithmetic: as in the case, or since gm_normalize_settle_all() */
    int overflows;               /* a span of this rank's entries, or its factor, does not fit float32 */
    void *host_scale;            /* pinned: [2][entries] of the arithmetic's type, sub and factor */
    void *scale;                 /* the same on the device; host_scale itself on a device that addresses host memory */
    gm_normalize_counts *counts; /* device memory */
    int64_t at, end;             /* pieces of this pass: the next one, and where it ends */
    void *pass;                  /* context of the pass */
} gm_normalize;

/* --- A pass over pieces [begin, end) of the rectangle --- */

/* Fills in the stages read and to_device of a pass. The other stages get p as their context, whose `pass` is that of
 * gm_normalize_run(). */
void gm_normalize_begin(gm_normalize *p, gm_program *program, int64_t begin, int64_t end);

/* The next piece. stages: those after GM_STAGE_TO_DEVICE; more_bytes: bytes that a piece moves for each element in
 * addition to those read. */
int gm_normalize_next(gm_normalize *p, gm_piece *piece, int *more, unsigned stages, int64_t more_bytes);

/* The elements of a piece on the device. */
const void *gm_normalize_elements(const gm_normalize *p, const gm_piece *piece, const gm_slot_memory *slot);

/* Runs the pass. Not collective. */
int gm_normalize_run(gm_normalize *p, gm_program *program, void *pass);

/* Do the elements of a piece follow each other in the stack? */
int gm_normalize_is_range(const gm_normalize *p, const gm_piece *piece);

/* --- The numbers to subtract and multiply by --- */

/* Sets entry i: factor = top / span in float64, rounded once. A span of 0 marks it as constant, one that is NaN makes
 * everything NaN. Returns whether it is marked. */
int gm_normalize_set(gm_normalize *p, int64_t i, double sub, double span, double top);

/* The same for the entry that maps low to the lower end of the range and high = low + span to the upper one. A span
 * that overflows is taken of halves; where low is -inf, everything that is finite becomes the lower end. */
int gm_normalize_set_ends(gm_normalize *p, int64_t i, double low, double high, double span);

/* Chooses the arithmetic of a case that widens, once all entries are set. Collective. */
int gm_normalize_settle_all(gm_normalize *p);

/* Bytes of a number of host_scale: while entries are set, and when the arithmetic is settled. */
int64_t gm_normalize_scale_bytes(const gm_normalize_case *c);

/* Each fills in p's host_scale. *constant: marked entries of all ranks. Collective. */
int gm_normalize_moments_all(gm_normalize *p, int64_t *constant);     /* minmax and zscore */
int gm_normalize_percentiles_all(gm_normalize *p, int64_t *constant); /* percentile */
int gm_normalize_fields_all(gm_normalize *p); /* flatfield: reads flat and dark; before the ring is opened */

/* The last pass: elements to the output. Adds to *counts. Not collective. */
int gm_normalize_apply(gm_normalize *p, gm_normalize_counts *counts);

#endif
