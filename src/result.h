/* result.h - the output file of all ranks: create, open, close, finish or discard, agreed at each step. */
#ifndef GM_SRC_RESULT_H
#define GM_SRC_RESULT_H

#include "io/write/output.h"
#include "src/job.h"

enum { GM_RESULT_ATTRIBUTES = 16 }; /* of an operation, in addition to those of provenance */

typedef struct gm_result {
    gm_output_record *record; /* the same on all ranks once it is open; lent */
    gm_output *output;        /* this rank's way into it; NULL when closed */
    struct gm_maker *maker;   /* rank 0: the thread that makes the file */
    const gm_dataset *inputs; /* [input_count], of the run; lent */
    int input_count;
    const gm_dataset *attributes; /* rank 0: the dataset whose attributes the first one of the output gets; NULL for
                                     none; lent */
    gm_axes axes;                 /* of the first one of the output, in that dataset */
} gm_result;

/* Fills in the name of the output, file [GM_PATH_MAX]: the one of --output ("FILE[:DATASET]"; dataset [GM_NAME_MAX]
 * gets that part, if there is one) or "<stem>.<operation>.h5" for the stem of `fallback`, an input. Rank 0. GM_EUSAGE,
 * GM_EOUTPUT, GM_EDEVICE. */
int gm_result_name(const gm_job *job, const char *fallback, char *file, char *dataset);

/* Reads --chunk, --deflate and --shuffle into a dataset whose rank and dims are set. Rank 0. GM_EUSAGE. */
int gm_result_layout(const gm_job *job, gm_output_dataset *dataset);

/* *named: do temporary files need names, as some rank cannot open a descriptor of rank 0? The status is agreed.
 * Collective. */
int gm_result_ask_for_names_all(const gm_job *job, int *named);

/* Checks and creates the output on a thread of rank 0, while the ranks go on. threads: of this rank that write; record:
 * described on rank 0, room for it elsewhere; inputs: the files that the output may not replace. Both are lent until
 * the result is finished. Once it has succeeded, gm_result_open_all() is called in any case, with this rank's status.
 * The status is agreed: GM_EDEVICE. That of the thread comes from gm_result_open_all(). Collective. */
int gm_result_begin_all(gm_job *job, int threads, gm_output_record *record, const gm_dataset *inputs, int input_count,
                        gm_result *result);

/* Waits for the file and opens it on all ranks. Returns the agreed status; on failure the output is gone. Collective.
 */
int gm_result_open_all(gm_job *job, int status, gm_result *result);

/* Waits until the thread has created the file, and returns its status (GM_OK on other ranks than 0). Between the two
 * calls above. Not collective. */
int gm_result_wait(gm_result *result);

/* Ends it: every rank closes; if all pass GM_OK, rank 0 writes the attributes of provenance plus `extra` ones, at most
 * GM_RESULT_ATTRIBUTES (else GM_EINTERNAL), and gives the file its name, else it is discarded. Returns the agreed
 * status. Collective. */
int gm_result_finish_all(gm_job *job, gm_result *result, const gm_attribute *extra, int extra_count, int status);

#endif
