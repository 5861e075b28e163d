/* dataset.h - a dataset of an HDF5 file as one rank found it: a flat record, fit to be sent to the other ranks as bytes. */
#ifndef GM_IO_DATASET_H
#define GM_IO_DATASET_H

#include "base/dtype.h"

enum { GM_PATH_MAX = 4096, GM_NAME_MAX = 1024, GM_RANK_MAX = 32 };

typedef enum gm_layout { GM_COMPACT, GM_CONTIGUOUS, GM_CHUNKED, GM_VIRTUAL } gm_layout;

/* A selection of a dataset: count[d] elements from start[d] on, step[d] apart, in each of the dataset's own dimensions.
 * dropped[d]: the dimension was given as a single index and does not count in the shape of the result (as in NumPy). */
typedef struct gm_selection {
    int64_t start[GM_RANK_MAX], step[GM_RANK_MAX], count[GM_RANK_MAX];
    unsigned char dropped[GM_RANK_MAX];
} gm_selection;

typedef struct gm_dataset {
    char file[GM_PATH_MAX];  /* as the user named it */
    char name[GM_NAME_MAX];  /* absolute path inside the file */
    char selected[GM_NAME_MAX]; /* the selection as the user wrote it, with its brackets; "" for all */
    uint64_t device, inode;  /* which file of this host it is */

    gm_dtype type;           /* of the elements that a reader delivers */
    int swap;                /* a reader delivers them in the other order of bytes */
    int rank;                /* of the dataset in the file; 0 for a scalar */
    int64_t dims[GM_RANK_MAX];
    gm_selection selection;  /* everything by default */
    int view_rank;           /* of what is selected: dimensions that are not dropped */
    int64_t view[GM_RANK_MAX];

    gm_layout layout;
    int filters;             /* their number */
    int64_t chunk[GM_RANK_MAX]; /* chunked only */

    int direct;              /* elements lie contiguously at offset in data_file: read by pread */
    int raw_chunks;          /* chunks of data_file can be read and decoded without libhdf5 */
    int64_t row_runs;        /* virtual, maybe of whole rows of contiguous parts, in at most so many pieces; 0: not that */
    char data_file[GM_PATH_MAX]; /* after external links */
    int64_t offset;
} gm_dataset;

/* Elements selected. */
int64_t gm_dataset_elements(const gm_dataset *dataset);

/* "FILE:DATASET[SELECTION]", for messages; text has room for GM_PATH_MAX bytes (cut if longer). Returns text. */
char *gm_dataset_title(const gm_dataset *dataset, char *text);

/* "(1, 0, 3)": a place in a dataset, for messages. text has room for GM_COORDINATES_TEXT bytes. Returns text. */
enum { GM_COORDINATES_TEXT = GM_RANK_MAX * 22 + 3 };
char *gm_coordinates_format(int rank, const int64_t *at, char *text);

/* Chunks are best read whole: rows of the matrix that lie in the same chunks begin at multiples of row_unit, columns at multiples of col_unit. 1
 * where elements are as good one by one: not chunked, or a selection that does not begin at a chunk or has steps that do not fit. */
int64_t gm_dataset_row_unit(const gm_dataset *dataset);
int64_t gm_dataset_col_unit(const gm_dataset *dataset);

/* What is selected seen as a matrix: its first dimension as rows, all the others as columns (1 row for a scalar, 1 column for a vector). */
void gm_dataset_matrix(const gm_dataset *dataset, int64_t *rows, int64_t *cols);

#endif
