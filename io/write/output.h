/* output.h - writes a new HDF5 file that is complete or absent.
 *
 * One rank creates the file under a temporary name beside its final one, every rank writes its own rectangles at
 * offsets that all know, and the first rank finishes: attributes are written, the file is flushed to the disk and
 * renamed.
 *
 * Contiguous data are written to their final place, by the fastest strategy of the file system (gm_write_strategy).
 * Chunked data are written to a scratch file without filters; after that, every rank packs its share of the chunks
 * (gm_output_pack), and finishing stores them.
 *
 * A contiguous output may also be distributed to part files, in a folder FILE.parts-ID beside it: many threads write
 * several files faster than one, as a file is written by one thread at a time. Then the file itself holds a virtual
 * dataset that names the parts relative to itself.
 *
 * Nothing here is collective; the caller agrees on the status between the steps.
 * All errors are GM_EOUTPUT with the file's name, except those of arguments. */
#ifndef GM_IO_WRITE_OUTPUT_H
#define GM_IO_WRITE_OUTPUT_H

#include "base/file/file_list.h"
#include "base/file/leftover.h"
#include "io/dataset.h"

enum { GM_OUTPUT_DATASETS = 16, GM_OUTPUT_PARTS_MAX = 80 };

/* A dataset of the output. */
typedef struct gm_output_dataset {
    char name[GM_NAME_MAX]; /* absolute path; missing groups are created */
    gm_dtype type;
    int big_endian; /* the file holds the elements in big-endian order; writers pass them in that order */
    int rank;
    int64_t dims[GM_RANK_MAX];
    int chunked;
    int64_t chunk[GM_RANK_MAX]; /* chunked only; set by the caller or by gm_output_choose_chunk() */
    int deflate;                /* level 1 to 9, 0: none */
    int shuffle;
} gm_output_dataset;

/* How contiguous data are written. */
typedef enum gm_write_strategy {
    GM_WRITE_PROBED,    /* requested: the fastest one */
    GM_WRITE_PLAIN,     /* pwrite into a file that grows */
    GM_WRITE_ALLOCATED, /* pwrite into a file whose space is allocated before */
    GM_WRITE_MAPPED,    /* the same file, mapped and copied to by many threads at once; ranks of one host only */
    GM_WRITE_DIRECT,    /* O_DIRECT for whole pages, into the same file */
    GM_WRITE_STRATEGIES
} gm_write_strategy;

const char *gm_write_strategy_name(gm_write_strategy strategy);

typedef enum gm_output_layout { GM_OUTPUT_SINGLE, GM_OUTPUT_PARTS, GM_OUTPUT_AUTO } gm_output_layout;

/* The output as a flat record that can be sent to the other ranks as bytes. */
typedef struct gm_output_record {
    /* Set by the caller: */
    char file[GM_PATH_MAX]; /* final name */
    int force, sync;
    int datasets;
    gm_output_dataset dataset[GM_OUTPUT_DATASETS];
    gm_output_layout layout;    /* parts: contiguous datasets only; auto: parts where the probe finds them faster */
    gm_write_strategy strategy; /* as a rule GM_WRITE_PROBED, which gm_output_create() replaces */
    int threads;                /* writers, of all ranks; 0 counts as 1 */
    int ranks;                  /* that pack; 0 counts as 1 */
    int hosts;                  /* of the ranks; 0 counts as 1 */
    int overlap;                /* gm_output_allocate() will be called */
    int named;                  /* other ranks cannot open descriptors of this one: temporary files need names */
    /* Filled in by gm_output_create(): */
    char temporary[GM_PATH_MAX];        /* opens the HDF5 file until it is finished (new_file.h) */
    char raw[GM_PATH_MAX];              /* the same of the scratch file for chunked datasets; "" when there are none */
    char spool[GM_PATH_MAX];            /* how the names of the ranks' spools begin */
    int descriptor, raw_descriptor;     /* of these files, in the process that created them; -1: none */
    int64_t offset[GM_OUTPUT_DATASETS]; /* of element 0: in the file, of a chunked dataset in the scratch file */
    int64_t space;                    /* size of the file after gm_output_allocate(); 0: nothing is left to allocate */
    double rate[GM_WRITE_STRATEGIES]; /* byte/s in the probe; 0: not tried, or not possible */
    double parts_rate;                /* the same for several files at once */
    char folder[GM_PATH_MAX];         /* of the parts; "" when there are none */
    int parts;                        /* their number */
    int64_t stripe[GM_OUTPUT_DATASETS]; /* rows that go to one part before the next; 0: it is in the file itself */
    int64_t part_offset[GM_OUTPUT_PARTS_MAX][GM_OUTPUT_DATASETS]; /* of a dataset's first element in a part */
} gm_output_record;

/* Refuses a final name that cannot become the output: it exists (without force), is no regular file, is one of the
 * inputs or a file that one is read from (force or not), its folder is missing or not writable, or has no space for
 * `bytes`. Removes what a run that ended has left of this output. Called by one rank, before anything is computed. */
int gm_output_check(const char *file, int force, int64_t bytes, const gm_dataset *inputs, int count);

/* The files that inputs are read from. GM_EINPUT, GM_EDEVICE. */
int gm_output_sources(const gm_dataset *inputs, int count, gm_file_list *list);

/* Removes a leftover, whoever made it. Returns whether it is gone. */
int gm_output_remove_leftover(const gm_leftover *found);

/* Sets a chunk shape of about 1 MiB, for a dataset with filters but no chunk. */
void gm_output_choose_chunk(gm_output_dataset *dataset);

/* Creates the temporary file with its datasets, and its parts, and fills in the rest of the record. Large outputs (256
 * MiB) are preceded by a probe of less than 0.1 s. Called by one rank. On failure all files are removed. GM_EUSAGE:
 * invalid chunks, chunks with parts. */
int gm_output_create(gm_output_record *record);

/* The rate of several files over that of one, in the probe; 0: unknown. Outputs of 4 GiB and more only. */
double gm_output_gain(const gm_output_record *record);

/* Allocates the space that the file does not have yet, which may take a second. Called once after gm_output_create(),
 * if the record says `overlap`, by the same process; meant for a thread of its own: the file may be opened and written
 * meanwhile, and writers wait for the space that they need. When there is none, the temporary file is removed, and the
 * writers that wait fail as well. */
int gm_output_allocate(const gm_output_record *record);

typedef struct gm_output gm_output;

/* Opens the files of a record for writing. Called by every rank. */
int gm_output_open(const gm_output_record *record, gm_output **output);
/* Closes, and reports errors of earlier writes that the system returns only then; takes NULL. With sync the rank's
 * bytes are flushed to the disk first, which adds to *sync_seconds (may be NULL). */
int gm_output_close(gm_output *output, double *sync_seconds);

/* Begins to allocate the memory of parts on tmpfs, on `threads` threads of its own, until this process first writes to
 * the output, or closes it: while the run reads or computes. Each rank that will write takes a share of the parts,
 * number `index` of `of`. It saves time only, and does nothing for other outputs, nor with 0 threads. After
 * gm_output_open(), at most once with threads. */
void gm_output_allocate_parts(gm_output *output, int index, int of, int threads);

/* Writes elements [row, row + rows) x [col, col + cols) of dataset index (a matrix: first dimension x the rest), rows
 * pitch bytes apart in src. Checked, thread-safe. */
int gm_output_write(gm_output *output, int index, int64_t row, int64_t rows, int64_t col, int64_t cols, const void *src,
                    size_t pitch);

/* Writes elements [first, first + count) in C order of a rectangle of dataset index, whose rows are `cols` elements
 * from (row, col) on, from consecutive elements of src. Checked, thread-safe. */
int gm_output_write_part(gm_output *output, int index, int64_t row, int64_t col, int64_t cols, int64_t first,
                         int64_t count, const void *src);

/* Writes elements [first, first + count) of dataset index, in C order, from consecutive elements of src. Checked,
 * thread-safe. GM_EINTERNAL: not elements of the dataset. */
int gm_output_write_range(gm_output *output, int index, int64_t first, int64_t count, const void *src);

/* Rows of dataset index (0 to datasets - 1) that go to one part before the next part follows; 1 where all are in one
 * file. Threads whose pieces end at multiples of it do not wait for each other, as a file is written by one thread at a
 * time. */
int64_t gm_output_row_unit(const gm_output *output, int index);

/* Host memory that packing and finishing take at most on any rank, with this number of threads; 0 without chunked
 * datasets. Pure. */
int64_t gm_output_pack_bytes(const gm_output_record *record, int ranks, int threads);

/* Is there a chunked dataset in a created output? */
int gm_output_is_packed(const gm_output_record *record);

/* Applies the filters to a rank's share (0 to record->ranks - 1) of all chunks, on the given threads, in memory that is
 * charged to GM_HOST: two chunks a thread. Called by every rank after all have closed; does nothing without chunked
 * datasets. GM_EDEVICE: no memory. */
int gm_output_pack(const gm_output_record *record, int rank, int threads);

/* An attribute of every dataset of the output; text longer than 60 KiB is cut. */
typedef struct gm_attribute {
    const char *name;
    enum { GM_ATTRIBUTE_TEXT, GM_ATTRIBUTE_REAL, GM_ATTRIBUTE_INTEGER } kind;
    const char *text;
    double real;
    int64_t integer;
} gm_attribute;

/* The axes of an output as dimensions of the input's dataset in its file; rank 0: they are others. */
typedef struct gm_axes {
    int rank, from[GM_RANK_MAX];
} gm_axes;

/* Copies the attributes of an input dataset to dataset index of the output, before it is finished; called by one rank.
 * Labels of dimensions (DIMENSION_LABELS) follow the axes. Those that cannot be stored (references into the input's
 * file, dimension scales among them; labels of other axes; too long for a header) are left out: their number goes to
 * *skipped, the first one's name to first [GM_NAME_MAX]. Attributes of gm_output_finish() replace copied ones.
 * GM_EINPUT: one cannot be read; GM_EOUTPUT. */
int gm_output_copy_attributes(const gm_output_record *record, int index, const gm_dataset *from, const gm_axes *axes,
                              int *skipped, char *first);

/* Stores the chunks, writes attributes, flushes and gives the file its name; with force also removes the parts of the
 * output that was replaced. Called by one rank after every rank has closed and packed. On failure the output is
 * discarded. The time of flushing to the disk adds to *sync_seconds (may be NULL). */
int gm_output_finish(gm_output_record *record, const gm_attribute *attributes, int count, double *sync_seconds);

/* Removes the temporary files and the parts; called by one rank; harmless when they are gone. Not async-signal-safe. */
void gm_output_discard(gm_output_record *record);

#endif
