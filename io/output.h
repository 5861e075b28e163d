/* output.h - slices out: a new HDF5 file that is complete or absent.
 *
 * One rank creates the file under a temporary name beside its final one, every rank writes its own rectangles at offsets that are
 * known to all, and the first rank finishes: what is not plain contiguous data is put into its final form, attributes are written, the
 * file is flushed to the disk and renamed. Nothing here is collective; the caller agrees on the status between the steps.
 * All errors are GM_EOUTPUT with the file's name, but for those of arguments. */
#ifndef GM_IO_OUTPUT_H
#define GM_IO_OUTPUT_H

#include "io/dataset.h"

enum { GM_OUTPUT_DATASETS = 16 };

/* What is to be made. */
typedef struct gm_output_dataset {
    char name[GM_NAME_MAX]; /* absolute path; groups on the way are made */
    gm_dtype type;
    int big_endian;         /* the file holds the elements in big-endian order; writers hand them over so */
    int rank;
    int64_t dims[GM_RANK_MAX];
    int chunked;
    int64_t chunk[GM_RANK_MAX]; /* chunked only; chosen by the library's user or by gm_output_choose_chunk() */
    int deflate;            /* level 1 to 9, 0: none */
    int shuffle;
} gm_output_dataset;

/* The output as a flat record, fit to be sent to the other ranks. */
typedef struct gm_output_record {
    char file[GM_PATH_MAX];      /* final name */
    char temporary[GM_PATH_MAX]; /* the HDF5 file until then */
    char raw[GM_PATH_MAX];       /* where writers put the bytes: the temporary itself, or a scratch file when some dataset is chunked */
    int force, sync;
    int datasets;
    gm_output_dataset dataset[GM_OUTPUT_DATASETS];
    int64_t offset[GM_OUTPUT_DATASETS]; /* of element 0, in raw */
} gm_output_record;

/* Refuses a final name that cannot become the output: it exists (without force), is no ordinary file, is one of the inputs (device and
 * inode; force or not), its folder is missing or not writable, or has not the room for bytes. Called by one rank, before anything is computed. */
int gm_output_check(const char *file, int force, int64_t bytes, const gm_dataset *inputs, int count);

/* A chunk shape of about 1 MiB for a dataset that asked for filters but no chunk. */
void gm_output_choose_chunk(gm_output_dataset *dataset);

/* Creates the temporary file with its datasets (file, force, sync, datasets and dataset[] of the record are set by the caller) and fills in the rest.
 * Called by one rank. On failure nothing is left behind. */
int gm_output_create(gm_output_record *record);

typedef struct gm_output gm_output;

/* Opens the raw file for writing; every rank for itself. */
int gm_output_open(const gm_output_record *record, gm_output **output);
/* Closes and reports what the system only tells then; takes NULL. With sync the rank's bytes are flushed to the disk first. */
int gm_output_close(gm_output *output);

/* Writes elements [row, row + rows) x [col, col + cols) of dataset index (a matrix: first dimension x the rest), rows pitch bytes apart in src.
 * Checked pwrite, thread-safe. */
int gm_output_write(gm_output *output, int index, int64_t row, int64_t rows, int64_t col, int64_t cols, const void *src, size_t pitch);

/* An attribute of every dataset of the output; text longer than 60 KiB is cut. */
typedef struct gm_attribute {
    const char *name;
    enum { GM_ATTRIBUTE_TEXT, GM_ATTRIBUTE_REAL, GM_ATTRIBUTE_INTEGER } kind;
    const char *text;
    double real;
    int64_t integer;
} gm_attribute;

/* Final form, attributes, flush, rename. Called by one rank after every rank has closed. On failure the output is discarded.
 * *sync_seconds (may be NULL) gets the time spent in flushing to the disk. */
int gm_output_finish(const gm_output_record *record, const gm_attribute *attributes, int count, double *sync_seconds);

/* Removes the temporary files; called by one rank; harmless when they are gone. Async-signal-unsafe. */
void gm_output_discard(const gm_output_record *record);

#endif
