/* report.h - the report of a run: JSON of schema "gpumem.report/1" for --report. */
#ifndef GM_SRC_REPORT_H
#define GM_SRC_REPORT_H

#include "base/file/text_file.h"
#include "src/summary/json.h"
#include "src/stream/stream.h"

struct gm_job;
struct gm_dataset;

/* Parts of the start, in seconds; several go on at the same time. */
typedef struct gm_start_times {
    double mpi;      /* MPI_Init and what else the ranks begin with */
    double device;   /* the start of the device, with opening it */
    double wait;     /* for the device, when nothing else was left to do */
    double describe; /* the command line and the files, rank 0 */
    double plan;
} gm_start_times;

typedef struct gm_report {
    double started; /* seconds since 1970 */
    double init_s;  /* start of MPI, and wait for the device */
    double wall_s;  /* from the first open to the rename, without sync_s and the wait for the device */
    double sync_s;  /* flushing the output to the disk */
    gm_start_times start;
    gm_phase_times times;
    double flop; /* of this rank, as are the next two */
    int64_t bytes_read, bytes_written;
    int is_wanted, is_line_wanted; /* --report; a line at the end: those of rank 0, whatever the words of others are */
    int has_streamed; /* the work is done, and went through the ring: its times are told. The same on all ranks */
    /* Rank 0 only; owned; NULL: left out. */
    json_t *inputs, *output, *plan, *verification, *results;
    gm_text_file file; /* rank 0, with --report */
} gm_report;

/* How a report begins, those of bench included, white space aside: such a file may be replaced without --force. */
#define GM_REPORT_KIND "{\"schema\":\"gpumem."

/* Opens the file of --report, if there is one, before anything is computed (text_file.h); makes all ranks know what the
 * end of the run wants of them. Collective. */
int gm_report_open_all(struct gm_job *job);

/* Before the work begins: the report must replace none of the files that the inputs are read from, and not have the
 * name of the output (may be NULL). GM_EOUTPUT, GM_EINPUT. Rank 0. */
int gm_report_check(struct gm_job *job, const struct gm_dataset *inputs, int count, const char *output);

/* The words of the command line. New reference. */
json_t *gm_report_words(const struct gm_job *job);

/* "inputs" entry of a dataset. New reference. */
json_t *gm_report_dataset(const struct gm_dataset *dataset);

/* The options that were given, as an object. New reference. */
json_t *gm_report_options(const struct gm_job *job);

/* The end of a run with this status, which is agreed: gathers what the ranks measured, if anything wants it, and rank 0
 * writes the file of --report, and tells of a run that has streamed and ended well (summary/times.h). Returns the
 * status, or that of a report that could not be written; the error of the run is kept. Collective. */
int gm_report_end_all(struct gm_job *job, int status);

void gm_report_clear(gm_report *report);

#endif
