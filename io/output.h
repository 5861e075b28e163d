/* output.h - slices out: a new HDF5 file that is complete or absent.
 *
 * One rank creates the file under a temporary name beside its final one, every rank writes its own rectangles at offsets that are
 * known to all, and the first rank finishes: attributes are written, the file is flushed to the disk and renamed.
 *
 * Contiguous data go where they belong, by the fastest way that this file system has (gm_way). Chunked data go to a scratch file as they
 * are; when all is written, every rank brings its share of the chunks into their final form (gm_output_pack), and finishing places them.
 *
 * A contiguous output may also be dealt to part files, in a folder FILE.parts-ID beside it: files that many threads write faster than one, as a file
 * is written by one thread at a time. Then the file itself holds a virtual dataset that names the parts, relative to itself.
 *
 * Nothing here is collective; the caller agrees on the status between the steps.
 * All errors are GM_EOUTPUT with the file's name, but for those of arguments. */
#ifndef GM_IO_OUTPUT_H
#define GM_IO_OUTPUT_H

#include "io/dataset.h"

enum { GM_OUTPUT_DATASETS = 16, GM_OUTPUT_PARTS = 80 };

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

/* How contiguous data get into a file. */
typedef enum gm_way {
    GM_WAY_PROBED,    /* asked for: what is fastest here */
    GM_WAY_PLAIN,     /* pwrite into a file that grows */
    GM_WAY_ALLOCATED, /* pwrite into a file that has its space already */
    GM_WAY_MAPPED,    /* that file mapped, and copied to by many threads at once; ranks of one host only */
    GM_WAY_DIRECT,    /* past the page cache, as far as pieces have whole pages */
    GM_WAYS
} gm_way;

const char *gm_way_name(gm_way way);

typedef enum gm_output_layout { GM_OUTPUT_SINGLE, GM_OUTPUT_PARTED, GM_OUTPUT_AUTO } gm_output_layout;

/* The output as a flat record, fit to be sent to the other ranks. */
typedef struct gm_output_record {
    /* Set by the caller: */
    char file[GM_PATH_MAX];      /* final name */
    int force, sync;
    int datasets;
    gm_output_dataset dataset[GM_OUTPUT_DATASETS];
    gm_output_layout layout;     /* parts: contiguous datasets only; auto: large ones, when probed to be worth it */
    gm_way way;                  /* GM_WAY_PROBED as a rule; gm_output_create() turns it into another one */
    int threads;                 /* that will write, of all ranks; 0 counts as 1 */
    int ranks;                   /* that will pack; 0 counts as 1 */
    int hosts;                   /* that they are on; 0 counts as 1 */
    int behind;                  /* gm_output_fill() will be called */
    /* Filled in by gm_output_create(): */
    char temporary[GM_PATH_MAX]; /* the HDF5 file until it is finished */
    char raw[GM_PATH_MAX];       /* scratch file for the elements of chunked datasets; "" when there are none */
    int64_t offset[GM_OUTPUT_DATASETS]; /* of element 0: in the file, of a chunked dataset in the scratch file */
    int64_t space;               /* size of the file once gm_output_fill() is through; 0: it has its space, or wants none */
    double rate[GM_WAYS];        /* byte/s that the probe has found; 0: not tried, or not possible */
    double parts_rate;           /* the same for several files at once */
    char folder[GM_PATH_MAX];    /* of the parts; "" when there are none */
    int parts;                   /* their number */
    int64_t stripe[GM_OUTPUT_DATASETS]; /* rows that are dealt to the parts in turn; 0: the dataset lies in the file itself */
    int64_t part_offset[GM_OUTPUT_PARTS][GM_OUTPUT_DATASETS]; /* of a dataset's first element in a part */
} gm_output_record;

/* Refuses a final name that cannot become the output: it exists (without force), is no ordinary file, is one of the inputs or something that an
 * input is made of (device and inode; force or not), its folder is missing or not writable, or has not the room for bytes. Called by one
 * rank, before anything is computed. */
int gm_output_check(const char *file, int force, int64_t bytes, const gm_dataset *inputs, int count);

/* A chunk shape of about 1 MiB for a dataset that asked for filters but no chunk. */
void gm_output_choose_chunk(gm_output_dataset *dataset);

/* Creates the temporary file with its datasets, and its parts, and fills in the rest of the record. Large outputs (256 MiB) are preceded by a probe
 * of less than 0.1 s. Called by one rank. On failure nothing is left behind. GM_EUSAGE: chunks that cannot be, chunks with parts. */
int gm_output_create(gm_output_record *record);

/* How many times faster than one file several are, as far as the probe has found out; 0: it has not. Outputs of 4 GiB and more only. */
double gm_output_gain(const gm_output_record *record);

/* Gives the file the space that it does not have yet, which may take a second. Called once after gm_output_create(), if the record says `behind`, by the
 * same process; meant for a thread of its own: the file may be opened and written meanwhile, where writers wait for the space that they
 * need. When there is none, the temporary file is removed, and who waits fails as well. */
int gm_output_fill(const gm_output_record *record);

typedef struct gm_output gm_output;

/* Opens what the record names for writing; every rank for itself. */
int gm_output_open(const gm_output_record *record, gm_output **output);
/* Closes and reports what the system only tells then; takes NULL. With sync the rank's bytes are flushed to the disk first, which adds to
 * *sync_seconds (may be NULL). */
int gm_output_close(gm_output *output, double *sync_seconds);

/* Writes elements [row, row + rows) x [col, col + cols) of dataset index (a matrix: first dimension x the rest), rows pitch bytes apart in src.
 * Checked, thread-safe. */
int gm_output_write(gm_output *output, int index, int64_t row, int64_t rows, int64_t col, int64_t cols, const void *src, size_t pitch);

/* Rows of dataset index (0 to datasets - 1) that go to one file before the next ones go to another; 1 where all go to the same. Pieces that end at multiples of it
 * do not wait for each other, as a file is written by one thread at a time. */
int64_t gm_output_row_unit(const gm_output *output, int index);

/* Brings the share of a rank (0 to record->ranks - 1) of all chunks into their final form, by so many threads, in memory that is charged to GM_HOST:
 * two chunks a thread. Called by every rank when all have closed; does nothing without chunked datasets. GM_EDEVICE: no memory. */
int gm_output_pack(const gm_output_record *record, int rank, int threads);

/* An attribute of every dataset of the output; text longer than 60 KiB is cut. */
typedef struct gm_attribute {
    const char *name;
    enum { GM_ATTRIBUTE_TEXT, GM_ATTRIBUTE_REAL, GM_ATTRIBUTE_INTEGER } kind;
    const char *text;
    double real;
    int64_t integer;
} gm_attribute;

/* Copies the attributes of an input dataset to dataset index of the output, before it is finished; called by one rank. Those that cannot be (references into
 * the input's file, more than a header takes) are left out: their number goes to *skipped, the first one's name to first [GM_NAME_MAX]. An attribute
 * that finishing writes replaces a copied one. GM_EINPUT, GM_EOUTPUT. */
int gm_output_copy_attributes(const gm_output_record *record, int index, const gm_dataset *from, int *skipped, char *first);

/* Chunks to their places, attributes, flush, rename; with force also the end of the parts of the output that was replaced. Called by one rank after
 * every rank has closed and packed. On failure the output is discarded. The time spent in flushing to the disk adds to *sync_seconds (may be NULL). */
int gm_output_finish(const gm_output_record *record, const gm_attribute *attributes, int count, double *sync_seconds);

/* Removes the temporary files and the parts; called by one rank; harmless when they are gone. Async-signal-unsafe. */
void gm_output_discard(const gm_output_record *record);

#endif
