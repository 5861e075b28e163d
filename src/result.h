/* result.h - an output file through the hands of all ranks: create, open, close, finish or discard, agreed at each step. */
#ifndef GM_SRC_RESULT_H
#define GM_SRC_RESULT_H

#include "io/output.h"
#include "src/job.h"

typedef struct gm_result {
    gm_output_record *record; /* the same on all ranks; owned */
    gm_output *output;        /* this rank's way into it; NULL when closed */
    struct gm_maker *maker;   /* rank 0: the thread that makes the file */
    const gm_dataset *attributes; /* rank 0: the dataset whose attributes the first one of the output gets; NULL for none; lent */
} gm_result;

/* Rank 0 fills in the name of the output file: what -o says ("FILE[:DATASET]"; dataset gets that part, if there is one) or `fallback`. */
int gm_result_name(const gm_job *job, const char *fallback, char *file, char *dataset);

/* Reads --chunk, --deflate and --shuffle into a dataset whose rank and dims are set. Rank 0. */
int gm_result_layout(const gm_job *job, gm_output_dataset *dataset);

/* Creates on rank 0 and opens on all. record: as for gm_output_create(), rank 0 only; inputs: what it may not be. status: what this rank brings into the
 * first agreement. Collective. */
int gm_result_create_all(gm_job *job, const gm_output_record *record, const gm_dataset *inputs, int input_count, int status, gm_result *result);

/* The same in two steps, with time for something else between them: the file is created by a thread. After the first one succeeded the second one is
 * called, also after a failure (status), which then comes out again; inputs must stay till then. Collective. */
int gm_result_begin_all(gm_job *job, const gm_output_record *record, const gm_dataset *inputs, int input_count, int status, gm_result *result);
int gm_result_open_all(gm_job *job, int status, gm_result *result);

/* Waits until the thread has created the file; whether that went well (GM_OK elsewhere than on rank 0). Between the two steps. */
int gm_result_wait(gm_result *result);

/* Ends it: every rank closes; if all bring GM_OK, rank 0 writes the attributes of provenance plus `extra` ones and gives the file its name, else it
 * is discarded. Returns the agreed status. Collective. */
int gm_result_finish_all(gm_job *job, gm_result *result, const gm_attribute *extra, int extra_count, int status);

#endif
