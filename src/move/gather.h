/* gather.h - rows of a dataset by an index: out[s.., rest] = data[index[s..], rest], or data[index[s..], index2[s..],
 * rest]. The data are a matrix of rows x columns, the index a list of positions, the output positions x columns. The
 * ranks share the positions, or the columns where there are fewer positions than ranks. Each rank works in one of two
 * ways:
 *
 *   held      The data lie in device memory. A rank reads all of them once; then its indices go through the ring, and
 *             the device puts the rows that they name into the same slot, from which they are written. For data that
 *             fit and are no larger than what is asked of them, a row counting as 4 KiB at least.
 *   sorted    All else, of any size. A block of the output lies in device memory. Its indices go through the ring to
 *             the host, which sorts them by row; then the rows that are wanted go through the ring in that order, each
 *             read once, neighbours and short gaps in one read, and the device puts them to their places in the block,
 *             which goes to the file. A rank reads of its columns the rows that are wanted for each block: less than
 *             the data for few rows, as many times the data as there are blocks at most. A block takes 32 bytes of
 *             host memory for each position besides the output's; where it cannot hold one row, it is a part of one.
 *
 * Both run on every kind of device. The device checks indices as it makes numbers of rows from them; the first bad one
 * of a rank ends its work, and the first of all ranks is named. Of several blocks, the indices are all checked before
 * data are read.
 *
 *   gather.c        the operation: case and plan in print
 *   gather_plan.c   shares, pieces, blocks, bytes: pure arithmetic
 *   gather_survey.c the rows that a plan reads, by the numbers themselves
 *   gather_run.c    one rank's run
 *   gather_device.c the stages of a piece
 *   gather_sort.c   wanted rows in order, and which of them are read together */
#ifndef GM_SRC_MOVE_GATHER_H
#define GM_SRC_MOVE_GATHER_H

#include "base/range.h"
#include "src/run.h"

#include <stdatomic.h>

enum { GM_GATHER_DATA, GM_GATHER_INDEX, GM_GATHER_INPUTS = GM_GATHER_INDEX + 2 };

/* The case: the same on all ranks. */
typedef struct gm_gather_case {
    gm_dataset input[GM_GATHER_INPUTS]; /* data, and the indices along its first dimensions */
    int indices;                        /* 1 or 2 */
    int64_t positions, rows, columns;   /* of the index; of the data, as a matrix */
    int64_t size;                       /* bytes of an element of the data */
    int64_t index_size[GM_GATHER_INPUTS - GM_GATHER_INDEX];
} gm_gather_case;

/* A row that is wanted, and where. */
typedef struct gm_gather_entry {
    int64_t row, place; /* place: position in the block */
} gm_gather_entry;

/* One rank's plan. Offsets are in bytes of a slot, a multiple of GM_SLOT_ALIGN each. */
typedef struct gm_gather_plan {
    int held;
    gm_range positions, columns; /* the rank's share */
    int64_t pieces;              /* positions of a piece of indices */
    int64_t raw_at[2], rows_at; /* of indices: as they are in the file, after the word for a bad one; numbers of rows */
    int64_t out_at;             /* held: of the rows that they name */
    int64_t part;               /* columns of a piece of data or of results; of fewer than a row it has one row */
    int64_t load;               /* held: elements of a piece of data */
    int64_t entries, room;      /* sorted: entries of a piece of data; rows that it has room for */
    int64_t place_at, data_at;  /* sorted: of places, after the numbers of rows; of rows */
    int64_t block, block_columns; /* sorted: positions and columns of the block */
    gm_ring_plan ring;
} gm_gather_plan;

/* A rank's share; of data without columns, the positions whose index it checks. Ranks without one are the last. */
void gm_gather_share(const gm_gather_case *c, int ranks, int rank, gm_range *positions, gm_range *columns);

/* The plan of a rank; request has the readers, and piece and depth where they are given. Pure. GM_EDEVICE,
 * without a message, and the budget that it needs, when this one does not do. */
int gm_gather_plan_make(const gm_gather_case *c, const gm_ring_request *request, const gm_ring_budget *budget,
                        int ranks, int rank, gm_gather_plan *plan, gm_ring_budget *need);

/* Bytes of the indices that a share reads. Several blocks read them twice: once to check all of them. */
int64_t gm_gather_index_bytes(const gm_gather_case *c, const gm_gather_plan *plan, gm_range positions);

/* Bytes that a share reads and writes. Of sorted rows *read is an estimate, as if the numbers were random: for
 * callers that do not know them. */
void gm_gather_bytes(const gm_gather_case *c, const gm_gather_plan *plan, gm_range positions, gm_range columns,
                     int64_t *read, int64_t *written);

/* Sorts entries by row; those of a row keep their order. *entries and *spare, of the same length, may be exchanged.
 * rows: above every row. GM_ESTOPPED, GM_EPEER. Main thread. */
int gm_gather_sort(gm_gather_entry **entries, gm_gather_entry **spare, int64_t count, int64_t rows);

/* The slot's row for the row of the next entry, where the last entry's row lies in slot row `at` (-1: it is the first):
 * the same, the next, or after a gap of at most `gap` rows that is read as well; *joins: it lies in the file as far
 * from the last one as in the slot. */
int64_t gm_gather_pack(const gm_gather_entry *last, const gm_gather_entry *next, int64_t at, int64_t gap, int *joins);

/* Entries of a piece that begins with the first of `count` sorted ones: at most `most`, in at most `room` rows of the
 * slot, *rows of them. */
int64_t gm_gather_cut(const gm_gather_entry *entries, int64_t count, int64_t most, int64_t room, int64_t gap,
                      int64_t *rows);

/* Rows between two wanted ones that are rather read than skipped. */
int64_t gm_gather_gap(const gm_gather_case *c, int64_t columns);

/* --- One rank's run --- */

/* The reading of a rank. */
typedef struct gm_gather_traffic {
    int64_t read;  /* bytes, of indices and data */
    int64_t reads; /* of rows, a call each; held data are read in long runs, which do not count */
} gm_gather_traffic;

typedef struct gm_gather {
    gm_gather_plan plan;
    char *memory;                     /* device: data [rows][columns], or a block [positions][block_columns] */
    gm_gather_entry *entries, *spare; /* sorted: [plan.block] of the block's positions */
    gm_range block, band;             /* sorted: the positions and columns of the block in memory */
    int keeps;                        /* the rows of indices go to entries */
    int64_t at, end, col;             /* of the next piece of a program, see below */
    atomic_llong bad;                 /* the first position with a bad index; INT64_MAX: none */
    atomic_llong read, written;       /* bytes */
    atomic_llong reads;               /* of rows */
    gm_gather_traffic *traffic;       /* [ranks], on rank 0 */
    int has_traffic;                  /* of all ranks: by a survey, or by a run that has ended */
} gm_gather;

/* The programs of the ring; context is the gm_run. Pieces are made from g->at up to g->end, g->col is 0 at the start.
 */
extern const gm_program gm_gather_indices; /* positions: checked; held: written; else kept in entries if g->keeps */
extern const gm_program gm_gather_load;    /* elements of the data, to g->memory */
extern const gm_program gm_gather_rows;    /* entries: their rows of the band, to the block in g->memory */
extern const gm_program gm_gather_results; /* elements of the block, to the file */

/* Indices of positions [first, first + count), plan.pieces at most, to raw_at of a slot in host memory, after a word
 * for a bad one. Thread-safe; GM_EINPUT. */
int gm_gather_read_indices(const gm_run *run, int64_t first, int64_t count, void *host);

/* The call that makes numbers of rows, at rows_at of a slot, from its indices along dimension i. */
gm_index_rows_call gm_gather_index_call(const gm_run *run, int i, int64_t first, int64_t count, char *slot);

/* The message for a bad index at this position: GM_EINPUT. Readers are open. */
int gm_gather_fail_bad(const gm_run *run, int64_t position);

/* Room for the traffic of all ranks. GM_EDEVICE. */
int gm_gather_make_traffic(gm_run *run);

/* Members of gm_operation. */
int gm_gather_survey(gm_run *run);
int gm_gather_prepare(gm_run *run);
int gm_gather_run_all(gm_run *run);
void gm_gather_release(gm_run *run);

#endif
