/* operation.h - the frame of an operation: the order in which every operation goes through its stages.
 *
 *   describe    rank 0   command line and files -> case, inputs, output; the device starts meanwhile
 *   suit        rank 0   can the device do the case?
 *   plan        each     case and budget -> pieces, slots, memory
 *   survey      rank 0   with --plan: looks at inputs for the work of the plan, which is printed; it ends here
 *   prepare     each     readers and memory, while a thread of rank 0 creates the output
 *   run_all     together the work
 *   release     each
 *
 * The frame allocates the case, agrees on every status, broadcasts, names the memory that would do when a plan does not
 * fit, prepares once more with a smaller plan when memory is gone by then, creates and finishes the output, times,
 * reports and releases. A member that an operation leaves out is the frame's own: its work is then the range
 * run->shape.map (map.h), and `program` holds the stages of a piece that are not the usual ones. */
#ifndef GM_SRC_OPERATION_H
#define GM_SRC_OPERATION_H

#include "src/rates/work.h"
#include "src/run.h"

typedef struct gm_operation {
    size_t case_bytes, own_bytes; /* of run->c and run->own */
    size_t inputs;                /* offset of the case's array of datasets */
    int several_outputs;          /* datasets whose names are the operation's: --output names their group */
    int by_rates;                 /* the plan depends on job->rates: they are measured before a long run */
    int keeps_attributes;         /* the output's first dataset gets the attributes of the first input */
    /* The axes of that output: from those of the first input, as selected. NULL: the same. */
    void (*move_axes)(const gm_run *run, gm_axes *axes);
    gm_program program; /* map: stages of a piece; context is the gm_run */
    /* The operation that these options ask for in the place of this one; NULL: this one. May be NULL. */
    const struct gm_operation *(*variant)(const gm_options *options);
    /* Do these options ask for work on files alone, without a device? NULL: no. */
    int (*is_of_files)(const gm_options *options);
    /* map: the element of the first input that a piece begins with; NULL: its own first one */
    int64_t (*source)(const gm_run *run, const gm_piece *piece);

    /* Rank 0, without the device, which may not be open yet. Calls gm_run_describe_input() and
     * gm_run_describe_output(), fills in the case. GM_EUSAGE, GM_EINPUT, GM_EOUTPUT. */
    int (*describe)(gm_run *run);

    /* Rank 0, after describe, with the device open: completes the case by what it knows of the device. GM_EDEVICE,
     * GM_EUSAGE: the device cannot do it. */
    int (*suit)(gm_run *run);

    /* Plans this rank's work within the budget and fills in run->ring. Pure but for run: may be called again, with
     * other budgets. GM_EDEVICE without a message, and the budget that it needs, when this one does not do. Not
     * collective. */
    int (*plan)(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need);

    /* --plan, rank 0: reads what the work depends on and the case does not tell, once the plan is made. Memory that the
     * plan counts is free. NULL: the case tells all. GM_EINPUT, GM_EDEVICE. */
    int (*survey)(gm_run *run);

    /* --plan, rank 0: the plan in lines of "name value", then what a rank does. ring and memory stand between them. */
    void (*print_plan)(const gm_run *run);
    void (*print_share)(const gm_run *run, int rank);

    /* The work of a rank by this rank's plan, in passes: the time that is expected rests on it. Returns their number,
     * at most GM_WORK_PASSES. Pure. */
    int (*work)(const gm_run *run, int rank, gm_work *passes);

    /* The plan for the report, to which ring and memory are added. New reference. */
    json_t *(*plan_json)(const gm_run *run);

    /* Readers and memory of this rank (run->pool). Not collective. */
    int (*prepare)(gm_run *run);

    /* The work; collective. The status is the agreed one. */
    int (*run_all)(gm_run *run);

    /* Frees what prepare made, also after a failure, also twice. Readers, ring and pool are the frame's. */
    void (*release)(gm_run *run);
} gm_operation;

/* The device that these options need. */
gm_device_need gm_operation_device(const gm_options *options);

/* Takes the operation of job->options through its stages. Collective; all ranks return the same status. */
int gm_operation_run_all(gm_job *job);

#endif
