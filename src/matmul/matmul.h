/* matmul.h - the parts of the product. Rank 0 describes the case, all plan it alike, then each rank runs its part.
 *
 *   op.c       the operation: its plan, output and report
 *   case.c     the command line: operands, shapes, types
 *   file.c     operands and C as they lie in their files
 *   plan.c     grid, ring
 *   block.c    blocks and steps, by their memory
 *   part.c     the part of a rank
 *   cost.c     the seconds that a grid takes
 *   pieces.c   the pieces that go through the ring, and their order
 *   strips.c   rectangles cut into strips that fit a slot
 *   device.c   the stages of a piece: panels, products, results
 *   chain.c    what goes from layer to layer, to be folded
 *   share.c    chunks of panels that go around the ranks of a row or a column of the grid
 *   memory.c   the memory of a rank: panels, sums, vectors
 *   underflow.c  elements that a panel does not hold
 *   verdict.c  the findings of the check: gathered and reported
 *   sums.c     where the sums of the check lie
 *   probe.c    the check's products with vectors, on the device
 *   check.c    the verdict of the check
 *   repair.c   tiles that failed their check, computed once more
 *   batch/     products of stacks, frame by frame
 */
#ifndef GM_SRC_MATMUL_MATMUL_H
#define GM_SRC_MATMUL_MATMUL_H

#include "io/dataset.h"
#include "io/read/reader.h"
#include "io/write/output.h"
#include "kernels/matmul/calls.h"
#include "src/job.h"
#include "src/matmul/plan.h"
#include "src/stream/pool.h"
#include "src/stream/stream.h"

/* The case: the same flat record on all ranks. */
typedef struct gm_matmul_case {
    gm_dataset operand[GM_OPERANDS];
    int64_t stored_rows[GM_OPERANDS], stored_cols[GM_OPERANDS]; /* as they lie in the file */
    int is_row[GM_OPERANDS];     /* a vector that is taken as one stored row; C0: and C, which are then 1 x n */
    int is_checked[GM_OPERANDS]; /* 64-bit integers, of which those beyond 2^53 are an error */
    int transpose[2];            /* of A, of B */
    int is_column;               /* --order column: operand[GM_A] is the B of the command line, operand[GM_B] its A */
    int shared;                  /* A and B are the same elements of the same dataset */
    int has_c0;
    double alpha, beta;
    gm_precision precision;
    gm_kernel kernel; /* asked for; from suit on that of the product */
    char product[32]; /* from suit on: the name of its kernel on the first rank */
    gm_dtype result;  /* type of C */
    int64_t m, n, k;  /* k as it is used: 0 when alpha is 0 */
    int64_t frames;   /* --batch: of C, each m x n, and of the operands that are stacks; otherwise 1 */
    int is_batch;
    int is_stack[GM_OPERANDS]; /* a stack of frames, each stored_rows x stored_cols */
    int verify;
    gm_matmul_problem problem; /* of the plan */
} gm_matmul_case;

/* Fills in the case from the command line and the files. Called by one rank. GM_EUSAGE, GM_EINPUT. */
int gm_matmul_describe(const gm_job *job, gm_matmul_case *c);

/* "A", "B" or "C0": an operand's name on the command line. */
const char *gm_matmul_letter(const gm_matmul_case *c, int which);

/* The product of the device of the job for the case; NULL: there is none. The same on all ranks with devices of one
 * kind. */
const gm_product *gm_matmul_product(const gm_job *job, const gm_matmul_case *c);

/* The shape of C in its file, at most three dimensions. Returns their number: 0 is a scalar. */
int gm_matmul_shape(const gm_matmul_case *c, int64_t *dims);

/* Has the device of the job a product for the case, from suit on that of the first rank? GM_EUSAGE. */
int gm_matmul_check_device(const gm_job *job, const gm_matmul_case *c);

/* --- Files: rectangles of what is stored_rows x stored_cols, and of C --- */

/* Stored rows, columns of an operand that are best read together (gm_dataset_row_unit). */
int64_t gm_matmul_row_unit(const gm_matmul_case *c, int operand);
int64_t gm_matmul_col_unit(const gm_matmul_case *c, int operand);

/* Reads elements [first, first + count) of an operand, in C order, from consecutive ones of its file to those of `to`,
 * and checks integers (is_checked). GM_EINPUT. */
int gm_matmul_read_range(const gm_matmul_case *c, gm_reader *reader, int operand, int64_t first, int64_t count,
                         void *to);

/* The rows of C that are best written together (gm_output_row_unit). */
int64_t gm_matmul_result_unit(const gm_matmul_case *c, const gm_output *output);

/* gm_program.read and write of the product; context is the gm_matmul. */
int gm_matmul_read(void *context, const gm_piece *piece, gm_range part, void *to);
int gm_matmul_write(void *context, const gm_piece *piece, gm_range part, const void *from);

/* --- The check --- */

/* How far a row or a column of a block is from what is expected, and may be, relative to the norms of its factors. */
typedef struct gm_deviation {
    double residual, threshold, ratio; /* ratio: residual / threshold; -1: of no line */
} gm_deviation;

/* The first element of a tile of C. */
typedef struct gm_tile {
    int64_t row, col, frame;
} gm_tile;

/* Tiles of a rank that are computed once more: an error of the device is rare. With more of them the device, or its
 * memory, is broken. */
enum { GM_SUSPECTS = 16 };

/* The findings of the check, of a block or of several. */
typedef struct gm_verdict {
    gm_deviation passed, failed; /* the line that came nearest to its threshold; that passed it the most */
    int64_t bad_rows, bad_cols;  /* rows and columns that failed */
    int64_t suspects;            /* tiles of C that failed rows and columns go through, both where there are both */
    gm_tile suspect[GM_SUSPECTS];
    int64_t repaired;         /* tiles that passed when they were computed once more */
    int64_t checked, skipped; /* rows and columns */
    int64_t large, small;     /* of those skipped: squares of finite elements overflow; rounding hides any error */
    gm_nonfinite nonfinite;   /* as they were computed first */
    double schemes[GM_SCHEMES];
    int underflow[2]; /* elements of A, of B, became 0 or lost digits in panels of float32 */
    int is_wrong;     /* the product stays wrong */
} gm_verdict;

extern const gm_verdict gm_verdict_none;

/* Adds the findings of other blocks. */
void gm_verdict_add(gm_verdict *verdict, const gm_verdict *other);

/* "[0:128, 256:384]": the rows and columns of a tile, of a batch after the number of the frame. text has room for 96
 * bytes. Returns text. */
char *gm_tile_format(const gm_matmul_plan *plan, const gm_tile *tile, char *text);

/* Element `index` of the vector x (which = 0, along columns of C) or u (which = 1, along its rows): uniform in +-[1,
 * 2). */
double gm_check_vector(int which, int64_t index);

typedef struct gm_matmul gm_matmul;

/* Judges a block from its sums (GM_SUMS of them, one after the other). */
void gm_check_block(const gm_matmul *product, int64_t row0, int64_t rows, int64_t col0, int64_t cols,
                    const double *sums, gm_verdict *verdict);

/* The message of a block that failed. Returns GM_ECHECK. */
int gm_check_fail(const gm_matmul *product, const gm_verdict *block);

/* Computes the suspects of the verdict once more, from the files, each as a block of its own, writes them, and checks
 * them again. All other work of the rank is done. GM_ECHECK if one fails again. Adds to *times. Not collective: the
 * owner of a tile reads all leaves of it. */
int gm_matmul_repair(gm_matmul *product, gm_phase_times *times);

/* --- The pieces --- */

typedef enum gm_piece_kind {
    GM_PIECE_BEGIN,    /* of a block: clears the sums */
    GM_PIECE_LOAD,     /* file -> panel */
    GM_PIECE_SHARE,    /* the rank's own chunks up to piece.leaf may be exchanged */
    GM_PIECE_PROBE,    /* the check's share of some leaves */
    GM_PIECE_MULTIPLY, /* some leaves of the block or of a band, or one leaf that is kept apart */
    GM_PIECE_FOLD,     /* the leaves that are kept apart, to a band of acc that the layer before has folded */
    GM_PIECE_FOLD_SUMS,
    GM_PIECE_PASS,   /* when the layer after has all of the block */
    GM_PIECE_FINISH, /* acc (and C0) -> the band's part of C */
    GM_PIECE_RESULT, /* the band -> file */
    GM_PIECE_VERDICT,
    GM_PIECE_KINDS
} gm_piece_kind;

/* Walks a rectangle in strips that fit a slot. */
typedef struct gm_strips {
    int64_t row0, row1, col0, col1, row, col, rows, cols; /* rows, cols: of a full strip */
    int64_t row_unit, col_unit;                           /* strips end at multiples of them */
    int64_t at_row, at_col;                               /* where the rectangle belongs in what it is a part of */
} gm_strips;

/* The strips of a rectangle for slots of `capacity` bytes, with elements of `element` bytes. */
void gm_strips_set(gm_strips *strips, int64_t row0, int64_t rows, int64_t col0, int64_t cols, int64_t element,
                   int64_t capacity);

/* Strips of whole units of row_unit rows and col_unit columns, where one fits: a chunk would be decoded for every strip
 * that cuts it, and two strips in a stripe of a part would wait for each other. */
void gm_strips_align(gm_strips *strips, int64_t row_unit, int64_t col_unit, int64_t element, int64_t capacity);

/* The next strip as the rectangle of a piece; 0 when there is none. */
int gm_strips_next(gm_strips *strips, gm_piece *piece);

/* Where the walk over blocks, steps and strips stands. */
typedef struct gm_cursor {
    int stage;
    int64_t blocks; /* that have begun */
    gm_matmul_block block;
    int64_t leaf0, leaf1; /* of the step that is loaded, or was last */
    int64_t own;          /* the leaf up to which all that this rank reads is loaded */
    int64_t done;         /* the leaf up to which the block is multiplied */
    int64_t loads, step;  /* steps loaded and multiplied, counted over all blocks: they pick the panels */
    int64_t products;     /* MULTIPLY pieces, counted over all blocks */
    int64_t leaf;         /* the next one of the step that is multiplied */
    int back;             /* the stage after the product of a step */
    int64_t band;         /* the next one of the block */
    int matrix;
    gm_strips strips;
} gm_cursor;

/* --- The chain of layers --- */

/* The exchanges of a rank with the layers before and after its own. */
typedef struct gm_chain {
    int from, to;        /* ranks: of the layer before, which has the leaves before; of the one after. -1: none */
    int64_t block, step; /* the exchange that is under way, or comes next */
    gm_event *folded;    /* the item that goes next; at the start of a block: the memory that receives is free */
} gm_chain;

/* --- Panels that are shared --- */

/* The exchanges of a rank with the others of its row and its column of the grid. */
typedef struct gm_sharing {
    int64_t whole, own; /* leaves: up to which the panels are whole; up to which the rank's own chunks are in */
    int64_t turn;       /* of the exchanges of the step that begins at `whole`: under way, or the next one */
    gm_event *loaded;   /* the own chunks up to `own` */
} gm_sharing;

/* --- One rank's product --- */

typedef struct gm_panel {
    void *data;
    int64_t ld, bytes;  /* elements; of all rows */
    gm_event *released; /* the product that used it last */
} gm_panel;

enum { GM_AHEAD = 2 }; /* products that wait in the device's queue, so that it never stands still */

struct gm_matmul {
    const gm_job *job;
    const gm_matmul_case *c;
    int64_t frame; /* of a batch: the one that is computed */
    const gm_product *product;
    gm_matmul_plan plan;
    gm_matmul_part part;
    gm_cursor cursor;
    gm_stream *stream;
    gm_reader *const *reader; /* [GM_OPERANDS], the run's, as are the next two */
    gm_output *output;
    gm_panel panels[2][2];          /* [buffer][A or B] */
    gm_event *loaded;               /* the panels of the step are filled */
    gm_event *multiplied[GM_AHEAD]; /* the last products, in turn */
    gm_event *finished;             /* a band of C is there */
    gm_event *drained;              /* it has been copied out */
    gm_event *copied;               /* acc, or the sums, have been copied out */
    void *acc;
    int64_t ldacc;
    char *kept;  /* the leaves of a rank that is not the first of its chain, one by one: each as acc */
    void *band;  /* of C, as it will be in the file: [band_rows][block_cols] */
    void *tiles; /* for a product that wants them */
    void *parts; /* the sums of leaves side by side; NULL: none are */
    int64_t part_count;
    void *work[2];                        /* of A and of B, for a product that has work space */
    double *sums;                         /* GM_SUMS on the device */
    double *sums_in;                      /* those of the layer before, up to GM_SUM_LAYERS */
    double *x, *u;                        /* vectors of the block, on the device: [block_cols], [block_rows] */
    double *y, *y_abs, *v, *v_abs;        /* of a step, on the device: [k of a step] */
    double *host_x, *host_u;              /* of the part, pinned: [cols], [rows] */
    uint64_t *underflow, *host_underflow; /* [2], on the device, and pinned: gm_unpack_call.underflow of A and of B */
    int counts_underflow;                 /* those on the device have been cleared */
    void *probe_work;                     /* of probes; NULL: none */
    size_t probe_bytes;
    struct gm_exchange *exchange; /* of a chain or of shared panels, never of both; NULL: of neither */
    gm_chain chain;
    gm_sharing sharing;
    gm_verdict verdict;
    int has_code;     /* of kernels that come later than the first product */
    int is_repair;    /* of a tile */
    int64_t products; /* MULTIPLY pieces that the device was given */
    double flop;
};

/* gm_program.next of the product; context is the gm_matmul. */
int gm_matmul_next(void *context, gm_piece *piece, int *more);

/* Fills in the callbacks. */
void gm_matmul_program(gm_matmul *product, gm_program *program);

/* Device memory and events for the plan, from a pool. GM_EDEVICE. Not collective. */
int gm_matmul_allocate(gm_matmul *product, gm_pool *pool);

/* The pinned memory of a part of C of this shape: x, u and host_underflow. GM_EDEVICE. Not collective. */
int gm_matmul_allocate_pinned(gm_matmul *product, gm_pool *pool, int64_t rows, int64_t cols);

/* Where unpacking an operand on this queue, the only one that unpacks, notes an underflow; NULL: there can be none.
 * Then, when all work has been done: what was noted, in the verdict. GM_EDEVICE. Not collective. */
int gm_matmul_underflow_at(gm_matmul *product, int matrix, gm_queue *queue, uint64_t **at);
int gm_matmul_underflow_read(gm_matmul *product);

/* Of a product with several layers, whose exchange is open: the start of a run; gm_program.await_turn and abandon. All
 * ranks of a chain make the same exchanges, in the same order: also those that a rank has left when it fails. */
void gm_matmul_chain_begin(gm_matmul *product);
int gm_matmul_chain_await(void *context, const gm_piece *piece, int *is_there);
void gm_matmul_chain_abandon(void *context, int status);

/* The same of a product whose plan shares panels, with gm_program.drive; and the stage to_device of a SHARE piece. All
 * ranks of the grid make the same exchanges, in the same order.
 * ways: the panels, from rank to rank; called on idle ranks too. Returns GM_MATMUL_WAYS. */
enum { GM_MATMUL_WAYS = 2 };
int gm_matmul_share_ways(gm_matmul *product, gm_exchange_way ways[GM_MATMUL_WAYS]);
void gm_matmul_share_begin(gm_matmul *product);
int gm_matmul_share_drive(void *context, int *is_under_way);
void gm_matmul_share_abandon(void *context, int status);
int gm_matmul_share(gm_matmul *product, const gm_piece *piece, gm_queue *in);

/* Bytes of an element of a panel. */
int64_t gm_matmul_operand_bytes(const gm_matmul *product);
gm_dtype gm_matmul_panel_type(const gm_matmul *product, int matrix);

/* The type of acc: that of C, where C is A B in one leaf and the device's product rounds; or of its accumulators. */
gm_dtype gm_matmul_acc_type(const gm_matmul *product);

/* An element of acc, counted from its corner. */
char *gm_matmul_acc_at(const gm_matmul *product, int64_t element);

/* The call's counts, which start at zero, if the product rounds; or NULL. */
gm_nonfinite *gm_matmul_rounded(const gm_matmul *product, void *counts);

/* The panel of a step (GM_A or GM_B), and where an element of it lies: outer counts rows of op(A) or columns of op(B).
 */
gm_panel *gm_matmul_panel(gm_matmul *product, int64_t step, int matrix);
char *gm_matmul_panel_at(gm_matmul *product, int64_t step, int matrix, int64_t outer, int64_t k);

/* Where a piece's rows or columns and its leaves begin in the panel. */
char *gm_matmul_panel_of_piece(gm_matmul *product, const gm_piece *piece, int matrix);

/* Where a strip of an operand's file goes in its panel. */
char *gm_matmul_strip_at(gm_matmul *product, const gm_piece *piece);

/* Has the ring copy a strip that needs no conversion there, if nothing can use the panel at the time of the copy. */
void gm_matmul_place_strip(gm_matmul *product, gm_piece *piece);

/* The block of C that a strip at (at_row, at_col) belongs to, as the sums know it. */
gm_piece gm_matmul_block_of(const gm_matmul *product, const gm_piece *piece);

/* A sum of a block, on the device. */
double *gm_matmul_sum(const gm_matmul *product, const gm_piece *block, gm_sum sum);

/* Has the device load the code of the probes. */
int gm_matmul_probe_load(const gm_matmul *product, gm_queue *queue);

/* Enqueues a probe of op(M), given as if M were not transposed. */
int gm_matmul_probe_op(const gm_matmul *product, gm_queue *queue, int transposed, gm_probe_call call);

/* Enqueues the check's work on the device: the start of a block, the share of a step, a band of C or a strip of C0,
 * which adds to the sum cx and the next three. */
int gm_matmul_probe_begin(gm_matmul *product, const gm_piece *block, gm_queue *queue);
int gm_matmul_probe(gm_matmul *product, const gm_piece *piece, gm_queue *queue);
int gm_matmul_probe_result(gm_matmul *product, const gm_piece *piece, gm_queue *queue, const void *m, gm_dtype type,
                           int swap, gm_sum cx);

/* k of the first element of a leaf. */
int64_t gm_matmul_k(const gm_matmul *product, int64_t leaf);

#endif
