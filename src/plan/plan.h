/* plan.h - the plan of a run: that of its operation, with an output that can be packed, within a budget of memory and
 * by rates; for these ranks and devices, or for those of a model; in print and in the report. */
#ifndef GM_SRC_PLAN_PLAN_H
#define GM_SRC_PLAN_PLAN_H

#include "src/operation.h"

/* Plans the work within what all ranks may still allocate, which becomes run->budget, and keeps what the plan counts
 * from allocations that can do without (gm_memory_set_optional). GM_EDEVICE when that is too little: the message names
 * caps with which the plans of all ranks fit. With --plan inputs are surveyed. Collective. */
int gm_plan_all(gm_run *run);

/* The default rates of rank 0, on all ranks, or those of the model. Collective. */
int gm_plan_set_rates_all(const gm_run *run);

/* The time that a plan takes, and its parts, by the rates of the job. */
gm_expectation gm_plan_expect(const gm_run *run);

/* The plan by the nominal rates, and once more by measured ones where these may change it. Collective. */
int gm_plan_by_rates_all(gm_run *run);

/* Prints the plan, one "name value" a line. Rank 0. */
void gm_plan_print(const gm_run *run, const gm_expectation *expectation);

/* Puts the plan into the report. Rank 0. */
void gm_plan_report(gm_run *run, const gm_expectation *expectation);

/* --plan: prints and reports the plan on rank 0. Collective. */
int gm_plan_show_all(gm_run *run);

/* --model: plans the described case for one GPU of the model and for all of them, on the only rank of this run, without
 * a device; prints and reports both. Collective. */
int gm_plan_show_model_all(gm_run *run);

#endif
