/* show.h - what is expected of a run, for people and for the report. Rank 0. */
#ifndef GM_SRC_RATES_SHOW_H
#define GM_SRC_RATES_SHOW_H

#include "src/rates/model.h"
#include "src/rates/work.h"

#include <jansson.h>

/* Lines of "name value": the rates, the bytes of each link, the seconds of each phase and of the run. Links and phases
 * that the run does not have are left out. */
void gm_expectation_print(const gm_expectation *expectation, const gm_rates *rates);

/* "expected" of the report's plan. New reference. */
json_t *gm_expectation_json(const gm_expectation *expectation, const gm_rates *rates);

/* The lines of a model that come before its plan, and those after its expectation: what it gains over one GPU of its
 * own. */
void gm_model_print(const gm_model *model);
void gm_gain_print(const gm_model *model, const gm_expectation *expectation, const gm_expectation *single);

/* "model" of "expected": both. New reference. */
json_t *gm_model_json(const gm_model *model, const gm_expectation *expectation, const gm_expectation *single);

#endif
