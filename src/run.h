/* run.h - one run of an operation on one rank: its case, its plan, its open files and memory. The frame (operation.h)
 * makes it and takes it through its stages; operations fill in their part. */
#ifndef GM_SRC_RUN_H
#define GM_SRC_RUN_H

#include "base/range.h"
#include "io/read/reader.h"
#include "io/write/output.h"
#include "src/job.h"
#include "src/rates/work.h"
#include "src/stream/pool.h"
#include "src/progress.h"
#include "src/result.h"
#include "src/stream/ring_plan.h"
#include "src/stream/stream.h"

enum { GM_RUN_INPUTS = 3, GM_MAP_UNITS = 4 };

/* Work that is one range of elements: see map.h. */
typedef struct gm_map {
    int64_t elements;           /* of the range; 0: nothing to do, or not work of this kind */
    int64_t share;              /* the ranks' shares begin at multiples of it, and it is one of the last unit */
    int64_t unit[GM_MAP_UNITS]; /* each a multiple of the next one, but the whole range may be the first; 0 ends them */
    int64_t in, out;            /* bytes of a slot for each element: read, written */
    int64_t host;               /* bytes of a rank in addition to readers and ring */
} gm_map;

/* The same on all ranks, like the case. */
typedef struct gm_run_shape {
    int inputs;  /* datasets */
    int swapped; /* the first two inputs are the second and the first one of the command line */
    int outputs; /* datasets of the output; 0: there is none */
    gm_map map;
} gm_run_shape;

typedef struct gm_run {
    gm_job *job;
    const struct gm_operation *operation;
    void *c;   /* the operation's case, operation->case_bytes: filled in by describe, the same on all ranks */
    void *own; /* this rank's own state, operation->own_bytes, zero at the start */
    gm_run_shape shape;
    gm_dataset *input;        /* [shape.inputs], inside the case */
    gm_output_record *record; /* of the output: on rank 0 from describe on, on all ranks while it is open */
    gm_ring_budget budget;    /* that the plan was made for */
    gm_ring_plan ring;
    int threads;                       /* that read and write: fewer than the job's where there is little to move */
    gm_range range;                    /* map: this rank's share */
    int64_t at;                        /* map: the first element of the next piece */
    int64_t piece, out_at;             /* map: elements of a piece at most; offset in a slot of the bytes to write */
    int64_t bytes_read, bytes_written; /* that this rank will move, for the progress shown */
    gm_reader *reader[GM_RUN_INPUTS];
    gm_stream *stream;
    gm_pool pool; /* of this rank: released with readers and ring */
    gm_output *output;
    gm_progress progress;
    gm_attribute attribute[GM_RESULT_ATTRIBUTES]; /* of the output, in addition to those of provenance; rank 0 */
    int attributes;
    int outcome; /* of a run that went well: GM_OK or GM_DIFFER; the same on all ranks */
} gm_run;

/* --- For describe: rank 0 --- */

/* Describes the dataset that text names ("FILE[:DATASET[SELECTION]]"; preferred: the dataset of a bare file, or NULL)
 * as input number index, which counts as the last one. GM_EUSAGE, GM_EINPUT. */
int gm_run_describe_input(gm_run *run, int index, const char *text, const char *preferred);

/* Sends the sources of an input from rank 0 to all ranks, which have its record. Collective. */
int gm_run_share_sources_all(const gm_job *job, const gm_dataset *input);

/* Adds a dataset to the output, with the layout that --chunk, --deflate and --shuffle ask for (not for a scalar). The
 * first one names the file: --output, or "<stem>.<operation>.h5" beside the first input. A dataset named by --output
 * replaces name, and counts as the group of the names if the operation has several. GM_EUSAGE, GM_EOUTPUT. */
int gm_run_describe_output(gm_run *run, const char *name, gm_dtype type, int rank, const int64_t *dims);

/* The same with the name, the type and the byte order of data. */
int gm_run_describe_moved(gm_run *run, const gm_dataset *data, int rank, const int64_t *dims);

/* text[0 .. length) -> *axis, a dimension of d as selected: a number from -rank to rank - 1; negative ones count from
 * the last dimension. Returns 0, or 1 when it is no such number. */
int gm_run_axis_parse(const gm_dataset *d, const char *text, size_t length, int *axis);

/* The same of --axis. GM_EUSAGE. */
int gm_run_axis(const gm_dataset *d, const char *text, int *axis);

/* --- For plan: pure --- */

/* Do reads of any part of any input cost no more than their bytes (gm_reader_takes_any)? */
int gm_run_takes_any(const gm_run *run);

/* The request of a run to the ring: --piece, --depth and the readers of all inputs. The operation sets the rest. */
gm_ring_request gm_run_ring_request(const gm_run *run, const gm_ring_budget *budget);

/* A pass over bytes that the device reads and writes, in the pieces of the ring, with copies where it has memory of its
 * own. */
gm_work gm_run_work(const gm_run *run, double read, double written);

/* --- For prepare and run --- */

/* Opens readers of all inputs; gm_run_close() closes them. GM_EINPUT, GM_EDEVICE. Not collective. */
int gm_run_open_readers(gm_run *run);

/* Opens the ring of the plan, which shows the run's progress; gm_run_close() closes it. GM_EDEVICE. Not collective. */
int gm_run_open_ring(gm_run *run);

/* Checks that no file that the inputs are read from has changed since rank 0 described it: before results are printed,
 * or an output gets its name. Takes this rank's status, returns the agreed one; GM_EINPUT. Collective. */
int gm_run_check_inputs_all(const gm_run *run, int status);

/* Closes readers and ring and releases the pool; harmless when that is done. */
void gm_run_close(gm_run *run);

/* Adds an attribute of the output; text is lent until the run is over. Rank 0. */
void gm_run_add_text(gm_run *run, const char *name, const char *text);
void gm_run_add_real(gm_run *run, const char *name, double value);
void gm_run_add_integer(gm_run *run, const char *name, int64_t value);

#endif
