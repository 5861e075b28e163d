/* dataset.h - a dataset of an HDF5 file as one rank found it: a flat record, fit to be sent to the other ranks as
 * bytes. */
#ifndef GM_IO_DATASET_H
#define GM_IO_DATASET_H

#include "base/file/path.h"
#include "base/range.h"
#include "base/types/dtype.h"
#include "io/identity.h"

enum { GM_NAME_MAX = 1024, GM_RANK_MAX = 32 };

typedef enum gm_layout { GM_COMPACT, GM_CONTIGUOUS, GM_CHUNKED, GM_VIRTUAL } gm_layout;

/* A selection of a dataset: count[d] elements from start[d] on, step[d] apart, in each of the dataset's own dimensions.
 * dropped[d]: the dimension was given as a single index and does not count in the shape of the result (as in NumPy). */
typedef struct gm_selection {
    int64_t start[GM_RANK_MAX], step[GM_RANK_MAX], count[GM_RANK_MAX];
    unsigned char dropped[GM_RANK_MAX];
} gm_selection;

typedef struct gm_dataset {
    char file[GM_PATH_MAX];     /* as the user named it */
    char name[GM_NAME_MAX];     /* absolute path inside the file */
    char selected[GM_NAME_MAX]; /* the selection as the user wrote it, with its brackets; "" for all */
    uint64_t device, inode;     /* which file of this host it is */
    gm_identity identity;       /* the same, and its state */

    gm_dtype type; /* of the elements that a reader delivers */
    int swap;      /* a reader delivers them in the other order of bytes: that of the file */
    int rank;      /* of the dataset in the file; 0 for a scalar */
    int64_t dims[GM_RANK_MAX];
    gm_selection selection; /* everything by default */
    int view_rank;          /* of the selection: dimensions that are not dropped */
    int64_t view[GM_RANK_MAX];

    gm_layout layout;
    int filters;                /* their number */
    int64_t chunk[GM_RANK_MAX]; /* chunked only */

    int direct;                  /* elements lie contiguously at offset in data_file: read by pread */
    int raw_chunks;              /* chunks of data_file can be read and decoded without libhdf5 */
    char data_file[GM_PATH_MAX]; /* that holds the dataset: after external links */
    gm_identity data_identity;
    int64_t offset;

    int external;          /* files of external storage */
    int64_t sources_bytes; /* of what io/virtual/sources.h knows of it; 0: nothing */
    uint64_t sources_hash;
    int64_t source_chunks, source_chunk_bytes; /* virtual: the most of one source that is read by chunks */
    int chunked_sources, filtered_sources;     /* how many there are */
    int serial_sources;                        /* that libhdf5 reads */
    int64_t source_files;                      /* the file of the dataset among them */
} gm_dataset;

/* Elements selected. */
int64_t gm_dataset_elements(const gm_dataset *dataset);

/* "FILE:DATASET[SELECTION]", for messages; text has room for GM_PATH_MAX bytes (cut if longer). Returns text. */
char *gm_dataset_title(const gm_dataset *dataset, char *text);

/* Are the dataset's file and the file of its data, by their names, still those described? GM_EINPUT, "TITLE: has
 * changed during the run". Thread-safe. */
int gm_dataset_check(const gm_dataset *dataset, const char *title);

/* "300x200x100", "scalar": a shape, for messages. text has room for GM_SHAPE_TEXT bytes. Returns text. */
enum { GM_SHAPE_TEXT = GM_RANK_MAX * 21 };
char *gm_shape_format(int rank, const int64_t *dims, char *text);

/* "(1, 0, 3)": a place in a dataset, for messages. text has room for GM_COORDINATES_TEXT bytes. Returns text. */
enum { GM_COORDINATES_TEXT = GM_RANK_MAX * 22 + 3 };
char *gm_coordinates_format(int rank, const int64_t *at, char *text);

/* Chunks are best read whole: rows of the matrix in the same chunks begin at multiples of row_unit, columns at
 * multiples of col_unit. 1 where there is no such unit: not chunked, or a selection that does not begin at a chunk or
 * has steps that do not divide one. */
int64_t gm_dataset_row_unit(const gm_dataset *dataset);
int64_t gm_dataset_col_unit(const gm_dataset *dataset);

/* The same along dimension v of the view: elements selected in one chunk. */
int64_t gm_dataset_view_unit(const gm_dataset *dataset, int v);

/* Are its elements, or some of those that a virtual one has from elsewhere, in chunks? */
int gm_dataset_is_chunked(const gm_dataset *dataset);

/* The bytes of a chunk without filters, of a dataset that is chunked. */
int64_t gm_dataset_chunk_bytes(const gm_dataset *dataset);

/* The chunks of this length from the one with index start to the one with start + (count - 1) * step. */
gm_range gm_chunks_of_steps(int64_t start, int64_t step, int64_t count, int64_t chunk);

/* All chunks of this shape from the first index of a selection, which is not empty, to the last, in C order: those that
 * its steps pass over too. */
typedef struct gm_chunk_walk {
    int rank;
    gm_range along[GM_RANK_MAX];
    int64_t at[GM_RANK_MAX]; /* the chunk */
} gm_chunk_walk;
gm_chunk_walk gm_chunk_walk_begin(int rank, const int64_t *start, const int64_t *step, const int64_t *count,
                                  const int64_t *chunk);

/* Goes to the next chunk; 0 after the last one. */
int gm_chunk_walk_next(gm_chunk_walk *walk);

/* Does the chunk `at` reach beyond the dataset? It is stored in full, but may be exempt from filters. */
int gm_chunk_is_partial(int rank, const int64_t *dims, const int64_t *chunk, const int64_t *at);

/* Which of the indices start + i * step, i < count, lie in the chunk `at` of this length? The range of i: empty where a
 * step passes over the chunk, which is not before the one with start. */
gm_range gm_steps_in_chunk(int64_t start, int64_t step, int64_t count, int64_t chunk, int64_t at);

/* Does the selection, of rank dimensions and not empty, have elements of the chunk `at` of a grid of chunks of this
 * shape? A long step leaves chunks out. */
int gm_selection_meets(const gm_selection *selection, int rank, const int64_t *chunk, const int64_t *at);

/* The selection as a matrix: its first dimension as rows, all the others as columns (1 row for a scalar, 1 column for a
 * vector). */
void gm_dataset_matrix(const gm_dataset *dataset, int64_t *rows, int64_t *cols);

#endif
