/* report.h - what a run tells about itself: JSON of schema "gpumem.report/1" for --report. */
#ifndef GM_SRC_REPORT_H
#define GM_SRC_REPORT_H

#include "src/stream.h"

#include <jansson.h>
#include <stdio.h>

struct gm_job;
struct gm_dataset;

typedef struct gm_report {
    double started;     /* seconds since 1970 */
    double init_s;      /* start of MPI and of the device */
    double wall_s;      /* from the first open to the rename, without sync_s */
    double sync_s;      /* flushing the output to the disk */
    gm_phase_times times;
    double flop;        /* of this rank, as are the next two */
    int64_t bytes_read, bytes_written;
    /* Rank 0 only; owned; NULL: left out. */
    json_t *inputs, *output, *plan, *verification, *results;
    FILE *file;      /* rank 0, with --report: open under a temporary name beside its final one */
    char *temporary; /* that name; owned */
} gm_report;

/* Opens the file of --report, if there is one, before anything is computed. A report replaces an older report, never an HDF5 file: GM_EOUTPUT. Collective. */
int gm_report_open_all(struct gm_job *job);

/* "inputs" entry of a dataset. New reference. */
json_t *gm_report_dataset(const struct gm_dataset *dataset);

/* The options that were given, as an object. New reference. */
json_t *gm_report_options(const struct gm_job *job);

/* Gathers what the ranks measured and, on rank 0, writes the file of --report if there is one. exit: the status of the run. Collective. */
int gm_report_write_all(struct gm_job *job, int exit);

void gm_report_clear(gm_report *report);

#endif
