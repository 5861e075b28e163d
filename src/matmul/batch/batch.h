/* batch.h - matmul --batch: C[f] = alpha op(A[f]) op(B[f]) + beta C0[f] for every frame f of a stack. The ranks divide
 * the frames; each frame has the tiles and leaves, and so the bits, of the same product alone.
 *
 *   op.c       the operation: its plan, output and report
 *   plan.c     the way of the frames, the frames of a piece, bytes: pure
 *   pieces.c   groups of small frames as pieces of the ring
 *   device.c   the stages of a group
 *   probe.c    the check's products with vectors, on the device
 *   memory.c   the memory of a rank
 *   run.c      a rank's frames, in the one way or the other; frames that failed their check
 *
 * There are two ways. Small frames go in groups: a piece of the ring holds A, B and C0 of some frames and has room for
 * their C, and each step of its work is one call for all of them. A frame that is too large for a piece is a product of
 * its own, with the steps and blocks of src/matmul/. */
#ifndef GM_SRC_MATMUL_BATCH_BATCH_H
#define GM_SRC_MATMUL_BATCH_BATCH_H

#include "src/matmul/matmul.h"
#include "src/run.h"

typedef struct gm_batch_plan {
    gm_matmul_plan product; /* of one frame, on one rank; of groups only its tile and leaves */
    gm_ring_plan ring;
    int64_t frames, unit;        /* of the stacks; shares and groups begin at multiples of unit */
    int64_t bytes[GM_OPERANDS];  /* of an operand in a frame; 0: none, or the same for all frames, or B is A */
    int64_t result, sums;        /* bytes of C in a frame; of the sums of its check, 0 without one */
    int64_t once[2];             /* bytes of A or B that is the same for all frames; otherwise 0 */
    int64_t group;               /* frames of a piece; 0: each frame is a product of its own */
    int64_t out_at;              /* in a slot */
    int64_t panel[2], ld[2];     /* elements of a frame in a panel, and of its row; 0: used where it was read */
    int64_t panels_of[2];        /* frames of a panel: of the group, or 1; 0: there is none */
    int64_t ldacc, acc, vectors; /* elements: of a row of acc, of acc and of the check's vectors in a frame */
} gm_batch_plan;

/* Where the bytes of a piece of some frames lie in a slot. */
typedef struct gm_batch_layout {
    int64_t at[GM_OPERANDS], in;  /* of operands; bytes that are read */
    int64_t nonfinite, sums, out; /* from the plan's out_at on, where C is: the counts, the sums; all bytes */
} gm_batch_layout;

gm_batch_layout gm_batch_lay_out(const gm_batch_plan *plan, int64_t frames);

/* Makes the plan of a case as gm_operation.plan does: frame, the problem of one product, for all ranks; operand, the
 * type of the product's panels. Pure. GM_EUSAGE, GM_EDEVICE: as gm_matmul_plan_make(). */
int gm_batch_plan_make(const gm_matmul_case *c, gm_dtype operand, const gm_matmul_problem *frame,
                       const gm_ring_budget *budget, const gm_ring_request *request, gm_batch_plan *plan,
                       gm_ring_budget *need);

/* Bytes of the product's work space for operand A or B of a frame. */
int64_t gm_batch_plan_work(const gm_batch_plan *plan, const gm_matmul_case *c, int operand);

/* The frames of a rank. */
gm_range gm_batch_plan_share(const gm_batch_plan *plan, int ranks, int rank);

/* Bytes that a rank with these frames reads and writes. */
void gm_batch_plan_bytes(const gm_matmul_case *c, const gm_batch_plan *plan, int64_t frames, int64_t *read,
                         int64_t *written);

/* A rank's batch. */
typedef struct gm_batch {
    gm_matmul product; /* of a frame: the check, and all of it where a frame is a product of its own */
    gm_batch_plan plan;
    gm_range share;   /* of the rank */
    gm_range walk;    /* the frames that are left of a run: a group begins at walk.begin */
    int once;         /* the next operand that is the same for all frames, as long as it is A or B */
    gm_strips strips; /* of that operand */
    int has_vectors;  /* x and u are on the device */
    void *panel[2];   /* of A, B; NULL: used where they were read */
    double *vectors;  /* y, |y|, v, |v| of each frame */
} gm_batch;

/* gm_program.next of groups; context is the gm_batch. begin: the frames of the walk, after the operands that are the
 * same for all frames if `loads`. */
void gm_batch_walk(gm_batch *batch, gm_range frames, int loads);
int gm_batch_next(void *context, gm_piece *piece, int *more);

/* A and B of a group: where they are, as panels, and the elements from frame to frame, 0 if it is the same for all. */
typedef struct gm_batch_operands {
    const char *a, *b;
    int64_t next_a, next_b;
} gm_batch_operands;

/* Enqueues the check's work for a group: of its operands; of C or C0, which adds to the sum cx and the next three.
 * sums: of the first frame. */
int gm_batch_probe(gm_batch *batch, const gm_piece *piece, const gm_batch_operands *operands, double *sums,
                   gm_queue *queue);
int gm_batch_probe_result(gm_batch *batch, const gm_piece *piece, const void *m, gm_dtype type, int swap, double *sums,
                          gm_sum cx, gm_queue *queue);

/* Fills in the callbacks of groups. */
void gm_batch_program(gm_batch *batch, gm_program *program);

/* Device memory for groups. GM_EDEVICE. Not collective. */
int gm_batch_allocate(gm_batch *batch, gm_pool *pool);

/* All frames of the rank, those that failed their check once more. Adds to *times. Not collective. */
int gm_batch_run(gm_batch *batch, gm_phase_times *times);

#endif
