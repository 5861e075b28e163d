/* flat.h - datasets as rows of elements, one after the other: what operations share whose pieces are ranges of elements. */
#ifndef GM_SRC_FLAT_H
#define GM_SRC_FLAT_H

#include "io/dataset.h"
#include "src/job.h"
#include "src/stream.h"

/* This rank's share [*begin, *end) of elements; shares begin at multiples of unit. */
void gm_flat_part(const gm_ranks *ranks, int64_t elements, int64_t unit, int64_t *begin, int64_t *end);

/* The largest rectangle of a matrix with this many columns that covers elements at, at + 1, ... and none from end on. */
typedef struct gm_rectangle {
    int64_t row, rows, col, cols;
} gm_rectangle;
gm_rectangle gm_flat_rectangle(int64_t matrix_cols, int64_t at, int64_t end);

/* Size and number of slots for a rank that moves so many bytes, within --piece, --depth and what --host-memory leaves; a slot is a multiple of
 * unit bytes. GM_EDEVICE, with the number that would do, when not even two of one unit fit. */
int gm_flat_slots(const gm_job *job, int64_t bytes, int64_t unit, int64_t *piece, int64_t *depth);

/* Runs a program through a ring of such slots on this rank, showing its progress over so many bytes. Not collective. */
int gm_flat_run(gm_job *job, const char *what, int64_t bytes, int64_t piece, int64_t depth, const gm_program *program,
                gm_phase_times *times);

/* "300x200x100", "scalar": text has room for GM_SHAPE_TEXT bytes. Returns text. */
enum { GM_SHAPE_TEXT = GM_RANK_MAX * 21 };
char *gm_flat_shape(int rank, const int64_t *dims, char *text);

#endif
