/* progress.h - the progress display of an operation: a bar on a terminal, a line every ten seconds in a log. Rank 0
 * shows its own share of the work. */
#ifndef GM_SRC_PROGRESS_H
#define GM_SRC_PROGRESS_H

#include "src/job.h"

typedef struct gm_progress {
    int mode; /* 0: silent, 1: lines, 2: a bar */
    int64_t total, done;
    double started, shown;
    const char *label;
} gm_progress;

/* Starts the display. label: a name of the operation, which the caller owns. total: bytes that this rank will move from
 * and to files. */
void gm_progress_start(gm_progress *progress, const gm_job *job, const char *label, int64_t total);

/* Adds bytes that were moved, and updates the display when it is due. A gm_stream_setup.progress: context is the
 * gm_progress. */
void gm_progress_add(void *context, int64_t bytes);

/* Ends the display, with its last state if it has been shown. */
void gm_progress_end(gm_progress *progress);

#endif
